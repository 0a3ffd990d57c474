"""Partition crossover: where two solutions differ, and which of them is better there.

Connect a cluster of one solution with a cluster of the other if they have a sample in common. Each
connected component is a *part*: a set of samples that one solution divides into some clusters and
the other into others, with no other cluster involved. The sum of squares is the sum over the parts.
So the better version of every part can be taken, as long as that makes k clusters in all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.bundle import bundle
from evomeans.compiled.jit import jit
from evomeans.engines.cpu.layout import Samples, remember_center, squared_distance, weight_of
from evomeans.engines.cpu.simd import WIDTH
from evomeans.engines.rules import BETTER, MOST_SPARE
from evomeans.typing import FloatArray, Index

FIRST, SECOND = range(2)
# The balance is by how many clusters the versions chosen so far exceed those of the first solution,
# from −MOST_SPARE to MOST_SPARE; EVEN is the index of balance zero.
BALANCES = 2 * MOST_SPARE + 1
EVEN = MOST_SPARE


@bundle
class Parts(NamedTuple):
    """Two solutions with k clusters each, and their parts.

    A *node* is a cluster: j of the first solution, k + j of the second.

    * ``errors`` (2, k): sums of squares of the clusters.
    * ``root`` (2k,): the first node of the part that each node belongs to.

    * ``extra_costs`` (2k,): at the root of every part, sum of squares of the second version minus
      that of the first; ``spare`` (2k,): the same of the numbers of clusters.
    * ``chosen`` (2k,): at the root, 1 if the second version is taken.
    * ``costs`` (2, BALANCES): lowest extra cost for every balance, before and after a part.
    * ``takes`` (2k, BALANCES): 1 if the second version of a part leads to this lowest cost.
    * ``is_better`` (1,): 1 if what is chosen is better than both solutions.
    """

    errors: FloatArray
    root: NDArray[np.int64]
    extra_costs: FloatArray
    spare: NDArray[np.int64]
    chosen: NDArray[np.uint8]
    costs: FloatArray
    takes: NDArray[np.uint8]
    is_better: NDArray[np.uint8]

    @classmethod
    def allocate(cls, n_clusters: int) -> Parts:
        """Allocate the arrays."""
        nodes = 2 * n_clusters
        errors, extra_costs = np.empty((2, n_clusters)), np.empty(nodes)
        (root, spare), chosen = np.empty((2, nodes), np.int64), np.empty(nodes, np.uint8)
        costs, takes = np.empty((2, BALANCES)), np.empty((nodes, BALANCES), np.uint8)
        return cls(errors, root, extra_costs, spare, chosen, costs, takes, np.empty(1, np.uint8))


@jit
def sum_squares(
    samples: Samples, labels: NDArray[Any], centers: FloatArray, errors: FloatArray
) -> None:
    """Set ``errors`` (k,) to Σ w‖x − c‖² of every cluster; ``labels`` are (tiles, WIDTH)."""
    rows = samples.rows
    for j in range(errors.shape[0]):
        errors[j] = 0.0
        remember_center(rows, centers, j)
    for i in range(samples.order.shape[0]):
        own = np.int64(labels[i // WIDTH, i % WIDTH])
        errors[own] += weight_of(samples, i) * squared_distance(rows, i, centers, own)


@jit
def choose_parts(
    samples: Samples,
    first: NDArray[Any],
    first_centers: FloatArray,
    second: NDArray[Any],
    second_centers: FloatArray,
    parts: Parts,
) -> None:
    """Choose the better version of every part; ``first`` and ``second`` are labels."""
    sum_squares(samples, first, first_centers, parts.errors[FIRST])
    sum_squares(samples, second, second_centers, parts.errors[SECOND])
    connect(samples, first, second, parts.root)
    compare_versions(parts)
    balance(parts)
    # Totals, not differences: if one solution is far worse, cancellation may leave nothing of them.
    total, first_total, second_total = 0.0, 0.0, 0.0
    for j in range(parts.errors.shape[1]):
        own, other = parts.errors[FIRST, j], parts.errors[SECOND, j]
        first_total += own
        second_total += other
        total += 0.0 if is_taken(parts, j) else own
        total += other if is_taken(parts, j + parts.errors.shape[1]) else 0.0
    parts.is_better[0] = total < min(first_total, second_total) * BETTER


@jit
def is_taken(parts: Parts, node: int) -> np.bool_:
    """Whether the second version of the part of a node is chosen."""
    return parts.chosen[parts.root[node]] != 0


@jit
def connect(
    samples: Samples, first: NDArray[Any], second: NDArray[Any], root: NDArray[np.int64]
) -> None:
    """Set the roots: nodes that share a sample of positive weight have the same, by union-find."""
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
def find_root(root: NDArray[np.int64], node: Index) -> Index:
    """Return the root of a node, and halve the path to it."""
    while root[node] != node:
        root[node] = root[root[node]]
        node = root[node]
    return node


@jit
def compare_versions(parts: Parts) -> None:
    """Set ``extra_costs`` and ``spare`` of every part."""
    root, k = parts.root, parts.errors.shape[1]
    for node in range(2 * k):
        parts.extra_costs[node], parts.spare[node] = 0.0, 0
    for j in range(k):
        parts.extra_costs[root[j]] -= parts.errors[FIRST, j]
        parts.spare[root[j]] -= 1
        parts.extra_costs[root[k + j]] += parts.errors[SECOND, j]
        parts.spare[root[k + j]] += 1


@jit
def balance(parts: Parts) -> None:
    """Choose versions with the lowest sum of squares among those that make k clusters.

    Dynamic programming over the parts. With C(b) the lowest extra cost for balance b so far, and
    e and s extra cost and spare clusters of the next part, C'(b) = min(C(b), C(b − s) + e).
    """
    root, costs, takes = parts.root, parts.costs, parts.takes
    for place in range(BALANCES):
        costs[0, place] = np.inf
    costs[0, EVEN] = 0.0
    for node in range(root.shape[0]):
        if root[node] != node:
            continue
        spare, extra = parts.spare[node], parts.extra_costs[node]
        for place in range(BALANCES):
            origin = place - spare
            taken = costs[0, origin] + extra if 0 <= origin < BALANCES else np.inf
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
