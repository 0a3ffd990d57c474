"""Many samples in order: neighbours first come into the same bucket, then each bucket into order.

A tree of hyperplanes, found by a small part of the samples, leads every sample to one of some
thousand buckets of about the same size. That takes one pass over the samples in their own order.
Buckets then fit into the cache of a core, and threads put them into order
(:mod:`~evomeans.engines.cpu.order`) side by side, without a copy of all samples in between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.jit import jit
from evomeans.engines.cpu.layout import FloatArray
from evomeans.engines.cpu.order import find_direction, neighbour_order, partition, project
from evomeans.engines.frame import Frame
from evomeans.engines.threads import side_by_side

# Rows of a bucket, about.
BUCKET_ROWS = 2**15
# Rows per bucket that the tree is found by.
POLLED = 64
# Rows that a thread looks at together. Nothing depends on it.
CHUNK = 2**17


class Tree(NamedTuple):
    """Hyperplanes, the children of node i being 2i + 1 and 2i + 2.

    * ``directions`` (nodes, d)
    * ``thresholds`` (nodes,): samples at least this far along the direction go to the right.
    """

    directions: FloatArray
    thresholds: FloatArray


def ordered_rows(
    X: NDArray[Any],
    frame: Frame,
    width: int,
    n_jobs: int,
    check: Callable[[], None] = lambda: None,
) -> tuple[NDArray[np.uint32], NDArray[Any]]:
    """Return the order in which runs of ``width`` rows are neighbours, and the rows in the frame.

    Parameters
    ----------
    X : (n, d) array
        In data units.
    frame : Frame
    width : int
    n_jobs : int
        Threads at most.
    check : callable
        Called from time to time; it raises an error if nobody wants the rows any more.
    """
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
    tree = plant(X, frame, depth)
    buckets = np.empty(len(X), np.uint16)

    def look(begin: int) -> None:
        check()
        part = slice(begin, begin + CHUNK)
        route(frame.encode(X[part]), tree.directions, tree.thresholds, depth, buckets[part])

    side_by_side(look, range(0, len(X), CHUNK), n_jobs)
    ends: NDArray[np.int64] = np.cumsum(np.bincount(buckets, minlength=2**depth))
    order = np.empty(len(X), np.uint32)
    distribute(buckets, np.append(0, ends[:-1]), order)
    return order, ends


def plant(X: NDArray[Any], frame: Frame, depth: int) -> Tree:
    """Find the tree by rows at equal intervals."""
    polled = np.linspace(0, len(X) - 1, POLLED << depth).astype(np.int64)
    points = frame.encode(X[polled])
    n_nodes, n_features = (1 << depth) - 1, X.shape[1]
    tree = Tree(np.zeros((n_nodes, n_features)), np.zeros(n_nodes))
    order = np.arange(len(polled), dtype=np.uint32)
    split(points, order, *tree, np.empty(len(polled)), np.empty((2, n_features)))
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
    """Halve the points again and again, across the direction in which they extend most.

    Parameters
    ----------
    points : (n, d) array
        As many for every leaf of the tree.
    order : (n,) array, in and out
    directions, thresholds : (nodes, d) and (nodes,) arrays, out
    keys, vectors : (n,) and (2, d) arrays
        Working memory.
    """
    n_nodes, size = thresholds.shape[0], order.shape[0]
    for node in range(n_nodes):
        # The first of its level has the number ``level`` − 1.
        level = 1
        while 2 * level <= node + 1:
            level *= 2
        extent = size // level
        first = (node + 1 - level) * extent
        last, middle = first + extent, first + extent // 2
        direction = directions[node]
        find_direction(points, order, first, last, direction, vectors[0], vectors[1])
        for p in range(first, last):
            keys[p] = project(points, order[p], direction)
        partition(order, keys, first, last, middle)
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


@jit
def distribute(
    buckets: NDArray[np.uint16], begins: NDArray[np.int64], order: NDArray[np.uint32]
) -> None:
    """Set ``order`` to the rows of the buckets, one after the other; ``begins`` is used up."""
    for i in range(buckets.shape[0]):
        place = begins[buckets[i]]
        order[place] = i
        begins[buckets[i]] = place + 1
