"""Putting samples into an order in which neighbours stand together.

The samples are halved again and again, across the direction in which they extend most, until a part
fills one tile. Neighbours in the space mostly end up in the same tile, also where there are dozens
of features: what counts is that they share a centre and its rivals. The order decides how fast the
kernels are, and nothing else.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.jit import REORDER, jit

# Samples of a part from which its main direction is taken, and the rounds of finding it.
POLLED = 256
ROUNDS = 4
# Sparse samples are projected onto this many random directions first.
SKETCH = 16


def neighbour_order(X: Any, width: int) -> NDArray[np.uint32]:
    """Return the rows of ``X`` in such an order that runs of ``width`` are neighbours.

    Parameters
    ----------
    X : (n, d) array or CSR matrix
        Of moderate size: squares must not overflow.
    width : int
    """
    points = X if isinstance(X, np.ndarray) else sketch(X)
    n_samples, n_features = points.shape
    order = np.arange(n_samples, dtype=np.uint32)
    parts = np.empty((2 * n_samples.bit_length() + 2, 2), np.int64)
    halve(points, order, width, parts, np.empty(n_samples), np.empty((3, n_features)))
    return order


def sketch(X: Any) -> NDArray[np.float64]:
    """Project sparse rows onto a few random directions, which nearly keeps their distances."""
    directions = np.random.default_rng(0).standard_normal((X.shape[1], SKETCH))
    return np.asarray(X @ directions, dtype=np.float64)


@jit
def halve(points: Any, order: Any, width: int, parts: Any, keys: Any, vectors: Any) -> None:
    """Sort ``order`` into neighbours.

    Parameters
    ----------
    parts : (2·log₂ n, 2) array of int64
        Room for the parts that have still to be halved, the latest first.
    keys : (n,) array
    vectors : (3, d) array
        Room to work in.
    """
    direction, mean, pull = vectors[0], vectors[1], vectors[2]
    parts[0, 0], parts[0, 1] = 0, order.shape[0]
    waiting = 1
    while waiting > 0:
        waiting -= 1
        first, last = parts[waiting, 0], parts[waiting, 1]
        n_tiles = (last - first + width - 1) // width
        if n_tiles < 2:
            continue
        find_direction(points, order, first, last, direction, mean, pull)
        for p in range(first, last):
            keys[p] = project(points, order[p], direction)
        middle = first + n_tiles // 2 * width
        partition(order, keys, first, last, middle)
        parts[waiting, 0], parts[waiting, 1] = first, middle
        parts[waiting + 1, 0], parts[waiting + 1, 1] = middle, last
        waiting += 2


@jit
def find_direction(
    points: Any, order: Any, first: int, last: int, direction: Any, mean: Any, pull: Any
) -> None:
    """Set ``direction`` to about the first principal component of ``order[first:last]``."""
    n_features = points.shape[1]
    step = max(1, (last - first) // POLLED)
    count = (last - first + step - 1) // step
    for t in range(n_features):
        mean[t] = 0.0
        # Neither zero nor, but by odd chance, at a right angle to the component.
        direction[t] = 1.0 + 0.1 * (t % 7)
    for p in range(first, last, step):
        for t in range(n_features):
            mean[t] += points[order[p], t] / count
    for _ in range(ROUNDS):
        offset = 0.0
        for t in range(n_features):
            pull[t] = 0.0
            offset += mean[t] * direction[t]
        for p in range(first, last, step):
            key = project(points, order[p], direction) - offset
            for t in range(n_features):
                pull[t] += key * (points[order[p], t] - mean[t])
        length = 0.0
        for t in range(n_features):
            length += pull[t] * pull[t]
        if not length > 0.0:
            return
        for t in range(n_features):
            direction[t] = pull[t] / np.sqrt(length)


@jit(fastmath=REORDER)
def project(points: Any, i: int, direction: Any) -> float:
    """Return the component of a point along a direction."""
    total = 0.0
    for t in range(points.shape[1]):
        total += points[i, t] * direction[t]
    return total


@jit
def partition(order: Any, keys: Any, first: int, last: int, middle: int) -> None:
    """Reorder places ``first`` to ``last`` so that no key before ``middle`` exceeds one after."""
    low, high = first, last - 1
    while low < high:
        pivot = keys[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while keys[i] < pivot:
                i += 1
            while keys[j] > pivot:
                j -= 1
            if i <= j:
                keys[i], keys[j] = keys[j], keys[i]
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            return
