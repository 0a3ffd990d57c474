"""Where two solutions differ, and which of them is the better one there.

Draw a line between a cluster of one solution and a cluster of the other if they have a sample in
common. What hangs together by such lines is a part: samples that one solution divides into some
clusters and the other into some others, and no other cluster is concerned. The sum of squares is
the sum over the parts. So the better version of every part can be taken, as long as that makes k
clusters in all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.jit import jit
from evomeans.engines.cpu.clusters import weight_of
from evomeans.engines.cpu.lanes import WIDTH
from evomeans.engines.cpu.rows import remember_center, squared_distance
from evomeans.engines.rules import BETTER, MOST_SPARE

FIRST, SECOND = range(2)
# How many clusters more than k the parts decided about may have: from −MOST_SPARE on.
BALANCES = 2 * MOST_SPARE + 1
# The place of balance zero.
EVEN = MOST_SPARE


class Parts(NamedTuple):
    """Two solutions with k clusters each, and their parts.

    ``errors`` (2, k): sums of squares of the clusters; ``root`` (2k,) int64: the first cluster of
    the part to which each cluster belongs, those of the second solution counted on from k.

    At the root of every part: ``gains`` (2k,), by how much the second version is worse, ``spare``
    (2k,) int64, how many clusters more it has, and ``chosen`` (2k,) uint8, whether it is taken.
    ``costs`` (2, BALANCES) and ``takes`` (2k, BALANCES) uint8: room to work in.
    """

    errors: NDArray[np.float64]
    root: NDArray[np.int64]
    gains: NDArray[np.float64]
    spare: NDArray[np.int64]
    chosen: NDArray[np.uint8]
    costs: NDArray[np.float64]
    takes: NDArray[np.uint8]

    @classmethod
    def allocate(cls, n_clusters: int) -> Parts:
        """Make room."""
        nodes = 2 * n_clusters
        return cls(
            np.empty((2, n_clusters)),
            np.empty(nodes, np.int64),
            np.empty(nodes),
            np.empty(nodes, np.int64),
            np.empty(nodes, np.uint8),
            np.empty((2, BALANCES)),
            np.empty((nodes, BALANCES), np.uint8),
        )


@jit
def sum_squares(samples: Any, labels: Any, centers: Any, errors: Any) -> None:
    """Sum up the squared distances of the samples to their centres, cluster by cluster."""
    rows = samples.rows
    for j in range(errors.shape[0]):
        errors[j] = 0.0
        remember_center(rows, centers, j)
    for i in range(samples.order.shape[0]):
        own = np.int64(labels[i // WIDTH, i % WIDTH])
        errors[own] += weight_of(samples, i) * squared_distance(rows, i, centers, own)


@jit
def choose_parts(samples: Any, first: Any, second: Any, parts: Any) -> Any:
    """Choose the better version of every part.

    Parameters
    ----------
    samples : Samples
    first, second : (tiles, WIDTH) arrays
        Labels.
    parts : Parts, in and out
        ``errors`` are known; in the end ``chosen`` tells what to take from the second solution.

    Returns
    -------
    is_better : bool
        Whether that is better than both solutions.
    """
    connect(samples, first, second, parts.root)
    compare_versions(parts)
    balance(parts)
    # Not the gain: there may be nothing left of it if one solution is far worse than the other.
    total, first_total, second_total = 0.0, 0.0, 0.0
    for j in range(parts.errors.shape[1]):
        own, other = parts.errors[FIRST, j], parts.errors[SECOND, j]
        first_total += own
        second_total += other
        total += 0.0 if is_taken(parts, j) else own
        total += other if is_taken(parts, j + parts.errors.shape[1]) else 0.0
    return total < min(first_total, second_total) * BETTER


@jit
def is_taken(parts: Any, node: Any) -> Any:
    """Whether the second version of a cluster's part is chosen."""
    return parts.chosen[parts.root[node]] != 0


@jit
def connect(samples: Any, first: Any, second: Any, root: Any) -> None:
    """Give clusters that samples of some weight connect the same root: the lowest of them."""
    k = root.shape[0] // 2
    for node in range(2 * k):
        root[node] = node
    for i in range(samples.order.shape[0]):
        if weight_of(samples, i) > 0.0:
            one = find_root(root, np.int64(first[i // WIDTH, i % WIDTH]))
            other = find_root(root, k + np.int64(second[i // WIDTH, i % WIDTH]))
            root[max(one, other)] = min(one, other)
    for node in range(2 * k):
        root[node] = root[root[node]]


@jit
def find_root(root: Any, node: Any) -> Any:
    """Return where a cluster leads to, and shorten the way."""
    while root[node] != node:
        root[node] = root[root[node]]
        node = root[node]
    return node


@jit
def compare_versions(parts: Any) -> None:
    """Set how much worse the second version of every part is, and how many clusters more it has."""
    root, k = parts.root, parts.errors.shape[1]
    for node in range(2 * k):
        parts.gains[node], parts.spare[node] = 0.0, 0
    for j in range(k):
        parts.gains[root[j]] -= parts.errors[FIRST, j]
        parts.spare[root[j]] -= 1
        parts.gains[root[k + j]] += parts.errors[SECOND, j]
        parts.spare[root[k + j]] += 1


@jit
def balance(parts: Any) -> None:
    """Choose versions so that the sum of squares is least, and k clusters are left.

    Part by part, ``costs`` has the least cost of all choices so far for every balance.
    """
    root, costs, takes = parts.root, parts.costs, parts.takes
    for place in range(BALANCES):
        costs[0, place] = np.inf
    costs[0, EVEN] = 0.0
    for node in range(root.shape[0]):
        if root[node] != node:
            continue
        spare, gain = parts.spare[node], parts.gains[node]
        for place in range(BALANCES):
            origin = place - spare
            taken = costs[0, origin] + gain if 0 <= origin < BALANCES else np.inf
            takes[node, place] = taken < costs[0, place]
            costs[1, place] = min(taken, costs[0, place])
        for place in range(BALANCES):
            costs[0, place] = costs[1, place]
    place = EVEN
    for node in range(root.shape[0] - 1, -1, -1):
        parts.chosen[node] = 0
        if root[node] == node and takes[node, place] != 0:
            parts.chosen[node] = 1
            place -= parts.spare[node]
