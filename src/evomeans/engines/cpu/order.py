"""The order of the samples: neighbours in space become neighbours in memory.

The samples are split in half again and again, across the direction in which they extend most, until
a part fills one tile. K-means and seeding give the same result in any order; swaps may not.

Of many samples, neighbours first come into the same of some thousand buckets, by a tree of
hyperplanes that is found by a small part of the samples. Buckets fit into the cache of a core, and
threads put them into order side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.jit import REORDER, jit
from evomeans.engines.cpu.layout import copy_row
from evomeans.engines.frame import Frame
from evomeans.engines.workers import side_by_side
from evomeans.kernels.blas import one_blas_thread
from evomeans.typing import FloatArray

# Samples that the main direction of a part is estimated from, and rounds of the power iteration.
POLLED = 256
POWER_ROUNDS = 4
# Sparse samples are projected onto this many random directions first.
SKETCH = 16
# Dense samples of at least so many features are projected onto so many leading directions first,
# found by subspace iteration on some of them; fewer samples than MANY_TO_ORDER are not.
MANY_COLUMNS, LEADING = 128, 32
MANY_TO_ORDER = 16384
POLLED_FOR_LEADING, LEADING_ROUNDS = 1024, 2
POLLED_VALUES, FEWEST_POLLED = 2**22, 256
# Rows that are worth a thread of their own: they take some milliseconds.
ROWS_WORTH_A_THREAD = 4096
# Values that are sorted between two looks at whether the order is still wanted: milliseconds too.
VALUES_AT_A_TIME = 2**20


def neighbour_order(
    X: Any, width: int, n_jobs: int = 1, check: Callable[[], None] = lambda: None
) -> NDArray[np.uint32]:
    """Return the rows of ``X`` in an order in which runs of ``width`` rows are neighbours.

    The order is the same for any ``n_jobs``. Squares of values must not overflow. ``check`` raises
    an error to end this.
    """
    if not isinstance(X, np.ndarray):
        points = sketch(X, check)
    else:
        # Few samples are worth the better order: every iteration looks at them again.
        is_wide = X.shape[1] >= MANY_COLUMNS and len(X) >= MANY_TO_ORDER
        points = leading(X, n_jobs, check) if is_wide else X
    order = np.arange(len(points), dtype=np.uint32)
    sort_part(points, order, width, n_jobs, check)
    return order


def sort_part(
    points: NDArray[Any],
    order: NDArray[np.uint32],
    width: int,
    n_threads: int,
    check: Callable[[], None],
) -> None:
    """Sort some rows. With several threads, each half is sorted by half of them."""
    check()
    n_rows = len(order)
    if n_rows < 2 * max(ROWS_WORTH_A_THREAD, width):
        n_threads = 1
    parts = np.empty((2 * n_rows.bit_length() + 2, 2), np.int64)
    memory = np.empty(n_rows), np.empty((3, points.shape[1])), parts
    if n_threads == 1 and (n_rows <= width or n_rows * points.shape[1] <= VALUES_AT_A_TIME):
        halve(points, order, width, 1, *memory)
        return
    halve(points, order, width, n_rows, *memory)
    middle = middle_of(n_rows, width)
    fewer = max(1, n_threads // 2)
    halves = (order[:middle], fewer), (order[middle:], max(1, n_threads - fewer))
    side_by_side(
        lambda half: sort_part(points, half[0], width, half[1], check), halves, min(2, n_threads)
    )


def sketch(X: Any, check: Callable[[], None]) -> NDArray[np.float64]:
    """Project sparse rows onto a few random directions, which nearly keeps their distances."""
    directions = np.random.default_rng(0).standard_normal((X.shape[1], SKETCH))
    found = np.empty((X.shape[0], SKETCH))
    for part in row_blocks(X.indptr):
        check()
        found[part] = X[part] @ directions
    return found


def row_blocks(starts: NDArray[Any]) -> Iterator[slice]:
    """Divide the rows of a CSR matrix, by its ``indptr``, into runs of about as many values."""
    ends = np.searchsorted(starts, np.arange(VALUES_AT_A_TIME, starts[-1], VALUES_AT_A_TIME))
    cuts = np.unique([0, *ends, len(starts) - 1])
    for first, last in pairwise(cuts):
        yield slice(first, last)


def leading(X: NDArray[Any], n_jobs: int, check: Callable[[], None]) -> NDArray[np.float64]:
    """Project dense rows onto about their leading principal components, which tell neighbours."""
    points = np.empty((len(X), LEADING))
    # Threads of matrix products would stay busy afterwards.
    with one_blas_thread:
        directions = leading_directions(polled(X), LEADING, check).astype(X.dtype)

        def fill(first: int) -> None:
            part = slice(first, first + ROWS_WORTH_A_THREAD)
            points[part] = X[part] @ directions

        side_by_side(fill, range(0, len(X), ROWS_WORTH_A_THREAD), n_jobs)
    return points


def polled(X: NDArray[Any]) -> NDArray[Any]:
    """Return the rows by which leading directions are found: fewer if they are very long."""
    step = max(len(X) // POLLED_FOR_LEADING, X.size // POLLED_VALUES)
    return X[:: max(1, min(step, len(X) // FEWEST_POLLED))]


def leading_directions(
    rows: NDArray[Any], n_directions: int, check: Callable[[], None]
) -> NDArray[np.float64]:
    """Return about the leading principal components of some rows, as columns."""
    rows = rows.astype(np.float64)
    rows -= rows.mean(axis=0)
    directions = np.random.default_rng(0).standard_normal((rows.shape[1], n_directions))
    at_once = max(1, VALUES_AT_A_TIME // rows.shape[1])
    parts = [rows[first : first + at_once] for first in range(0, len(rows), at_once)]
    for _ in range(LEADING_ROUNDS):
        pulls = np.zeros_like(directions)
        for part in parts:
            check()
            pulls += part.T @ (part @ directions)
        directions, _ = np.linalg.qr(pulls)
    return directions


def middle_of(n_rows: int, width: int) -> int:
    """Return how many of the rows belong to the first half: whole runs; none if there is one."""
    return (n_rows + width - 1) // width // 2 * width


first_half = jit(middle_of)


@jit
def halve(
    points: NDArray[Any],
    order: NDArray[np.uint32],
    width: int,
    least: int,
    keys: FloatArray,
    vectors: FloatArray,
    parts: NDArray[np.int64],
) -> None:
    """Sort ``order`` such that runs of ``width`` rows are neighbours.

    Parts of fewer than ``least`` rows are left as they are. ``parts`` (2·log₂ n, 2) is a stack of
    those that still have to be split. For ``keys`` and ``vectors`` see :func:`divide`.
    """
    parts[0, 0], parts[0, 1] = 0, order.shape[0]
    waiting = 1
    while waiting > 0:
        waiting -= 1
        first, last = parts[waiting, 0], parts[waiting, 1]
        middle = first + first_half(last - first, width)
        if middle == first or last - first < least:
            continue
        divide(points, order, first, last, middle, keys, vectors)
        parts[waiting, 0], parts[waiting, 1] = first, middle
        parts[waiting + 1, 0], parts[waiting + 1, 1] = middle, last
        waiting += 2


@jit
def divide(
    points: NDArray[Any],
    order: NDArray[np.uint32],
    first: int,
    last: int,
    middle: int,
    keys: FloatArray,
    vectors: FloatArray,
) -> None:
    """Reorder places ``first`` to ``last`` across the direction in which their rows extend most.

    ``keys`` (n,) and ``vectors`` (3, d) are working memory; ``vectors[0]`` becomes the direction,
    and ``keys`` how far the rows are along it.
    """
    find_direction(points, order, first, last, vectors)
    for p in range(first, last):
        keys[p] = project(points, order[p], vectors[0])
    partition(order, keys, first, last, middle)


@jit
def find_direction(
    points: NDArray[Any], order: NDArray[np.uint32], first: int, last: int, vectors: FloatArray
) -> None:
    """Set ``vectors[0]`` to about the first principal component, by power iteration on a few."""
    direction, mean, pull = vectors[0], vectors[1], vectors[2]
    n_features = points.shape[1]
    step = max(1, (last - first) // POLLED)
    count = (last - first + step - 1) // step
    for t in range(n_features):
        mean[t] = 0.0
        # Not zero, and unlikely to be at a right angle to the component.
        direction[t] = 1.0 + 0.1 * (t % 7)
    for p in range(first, last, step):
        for t in range(n_features):
            mean[t] += points[order[p], t] / count
    for _ in range(POWER_ROUNDS):
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
def project(points: NDArray[Any], i: int, direction: FloatArray) -> float:
    """Return the component of a point along a direction."""
    total = 0.0
    for t in range(points.shape[1]):
        total += points[i, t] * direction[t]
    return total


@jit
def partition(
    order: NDArray[np.uint32], keys: FloatArray, first: int, last: int, middle: int
) -> None:
    """Reorder places so that no key before ``middle`` exceeds one after it: quickselect (Hoare)."""
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


# Rows of a bucket, about.
BUCKET_ROWS = 2**15
# Rows per bucket that the tree is found by.
POLLED_PER_BUCKET = 64
# Rows that a thread looks at together. Nothing depends on it.
ROUTED_AT_ONCE = 2**17


def ordered_rows(
    X: NDArray[Any], frame: Frame, width: int, n_jobs: int, check: Callable[[], None] = lambda: None
) -> tuple[NDArray[np.uint32], NDArray[Any]]:
    """Return an order in which runs of ``width`` rows are neighbours, and the rows in the frame."""
    order, ends = into_buckets(X, frame, n_jobs, check)
    rows = np.empty(X.shape, X.dtype)

    def sort(bounds: tuple[int, int]) -> None:
        check()
        part = slice(*bounds)
        own = order[part]
        points = frame.encode(X[own])
        within = neighbour_order(points, width, check=check)
        rows[part], order[part] = points[within], own[within]

    # Runs are neighbours only if buckets begin where runs do.
    limits = np.unique(np.append(0, (ends + width // 2) // width * width).clip(max=len(X)))
    limits[-1] = len(X)
    side_by_side(sort, zip(limits[:-1].tolist(), limits[1:].tolist(), strict=True), n_jobs)
    return order, rows


def into_buckets(
    X: NDArray[Any], frame: Frame, n_jobs: int, check: Callable[[], None] = lambda: None
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return the rows bucket by bucket, and where the buckets end."""
    depth = min(16, (len(X) // BUCKET_ROWS).bit_length())
    tree = find_planes(X, frame, depth)
    buckets = np.empty(len(X), np.uint16)

    def look(begin: int) -> None:
        check()
        part = slice(begin, begin + ROUTED_AT_ONCE)
        route(frame.encode(X[part]), *tree, depth, buckets[part])

    side_by_side(look, range(0, len(X), ROUTED_AT_ONCE), n_jobs)
    ends: NDArray[np.int64] = np.cumsum(np.bincount(buckets, minlength=2**depth))
    return np.argsort(buckets, kind="stable").astype(np.uint32), ends


def find_planes(X: NDArray[Any], frame: Frame, depth: int) -> tuple[FloatArray, FloatArray]:
    """Find a tree of hyperplanes by rows at equal intervals; return directions and thresholds.

    Rows at least as far along the direction of node i as its threshold go right, to node 2i + 2.
    """
    polled = np.linspace(0, len(X) - 1, POLLED_PER_BUCKET << depth).astype(np.int64)
    points = frame.encode(X[polled])
    n_nodes, n_features = (1 << depth) - 1, X.shape[1]
    tree = np.zeros((n_nodes, n_features)), np.zeros(n_nodes)
    order = np.arange(len(polled), dtype=np.uint32)
    split(points, order, *tree, np.empty(len(polled)), np.empty((3, n_features)))
    return tree


@jit
def split(
    points: NDArray[Any],
    order: NDArray[np.uint32],
    directions: FloatArray,
    thresholds: FloatArray,
    keys: FloatArray,
    vectors: FloatArray,
) -> None:
    """Halve the points again and again; every leaf of the tree has as many. See :func:`divide`."""
    n_nodes, size = thresholds.shape[0], order.shape[0]
    for node in range(n_nodes):
        # The first of its level has the number ``level`` − 1.
        level = 1
        while 2 * level <= node + 1:
            level *= 2
        extent = size // level
        first = (node + 1 - level) * extent
        last, middle = first + extent, first + extent // 2
        divide(points, order, first, last, middle, keys, vectors)
        copy_row(vectors, 0, directions, node)
        threshold = keys[middle]
        for p in range(middle, last):
            threshold = min(threshold, keys[p])
        thresholds[node] = threshold


@jit
def route(
    points: NDArray[Any],
    directions: FloatArray,
    thresholds: FloatArray,
    depth: int,
    buckets: NDArray[np.uint16],
) -> None:
    """Set the bucket of every point."""
    for i in range(points.shape[0]):
        node = 0
        for _ in range(depth):
            goes_right = project(points, i, directions[node]) >= thresholds[node]
            node = 2 * node + (2 if goes_right else 1)
        buckets[i] = node - thresholds.shape[0]
