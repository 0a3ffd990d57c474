"""Exchanges of two items between clusters whose sizes do not let a single one move."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.jit import jit
from evomeans.engines.constrained.layout import Clusters, Items, Workspace
from evomeans.engines.constrained.moves import has_room, is_better, put

FloatArray = NDArray[np.float64]
Integers = NDArray[np.int64]
# Items of each cluster that are tried with each other cluster: those that cost least more there.
CANDIDATES = 16
NONE = -1


@jit(inline=False)
def exchange_items(
    items: Items, clusters: Clusters, costs: FloatArray, candidates: Integers, work: Workspace
) -> int:
    """Exchange pairs of items that lower the objective; return how many.

    Parameters
    ----------
    items, clusters, work
        As in :func:`~evomeans.engines.constrained.moves.move_items`.
    costs : (n, k) array
        What items cost in clusters.
    candidates : (k, k, CANDIDATES) array
        Working memory.
    """
    k, exchanged = clusters.means.shape[0], 0
    list_candidates(items, clusters, costs, candidates)
    for a in range(k):
        for b in range(a + 1, k):
            if has_room(clusters, a, b, 1, 0) and has_room(clusters, a, b, 0, 1):
                # Single moves have seen to these.
                continue
            for p in range(CANDIDATES):
                for q in range(CANDIDATES):
                    i, j = candidates[a, b, p], candidates[b, a, q]
                    if i == NONE or j == NONE:
                        break
                    if clusters.labels[i] != a or clusters.labels[j] != b:
                        continue
                    if not can_pay(items, clusters, costs, i, j, a, b):
                        continue
                    work.chain[0], work.chain[1] = i, j
                    if is_better(items, clusters, a, b, 2, work):
                        put(items, clusters, i, b)
                        put(items, clusters, j, a)
                        exchanged += 1
    return exchanged


@jit
def can_pay(
    items: Items, clusters: Clusters, costs: FloatArray, i: int, j: int, a: int, b: int
) -> bool:
    """Whether an exchange of i in a and j in b could lower the objective, by a quick bound.

    Means that move along lower it by no more than (wᵢ‖xᵢ − c‖ + wⱼ‖xⱼ − c‖)² / W each.
    """
    if (
        items.soft_start[i] < items.soft_start[i + 1]
        or items.soft_start[j] < items.soft_start[j + 1]
    ):
        return True
    one, other = items.weights[i], items.weights[j]
    more = costs[i, b] - costs[i, a] + costs[j, a] - costs[j, b]
    first = math.sqrt(one * costs[i, a]) + math.sqrt(other * costs[j, a])
    second = math.sqrt(one * costs[i, b]) + math.sqrt(other * costs[j, b])
    rest = clusters.weights[a] - one + other, clusters.weights[b] - other + one
    return more * rest[0] * rest[1] < first * first * rest[1] + second * second * rest[0]


@jit
def list_candidates(
    items: Items, clusters: Clusters, costs: FloatArray, candidates: Integers
) -> None:
    """List the items of each cluster that cost least more in each other one, cheapest first."""
    k = clusters.means.shape[0]
    for a in range(k):
        for b in range(k):
            for p in range(CANDIDATES):
                candidates[a, b, p] = NONE
    for i in range(costs.shape[0]):
        # Where others have to give way, chains have been tried.
        if items.hard_start[i] < items.hard_start[i + 1]:
            continue
        a = clusters.labels[i]
        for b in range(k):
            if b == a:
                continue
            more, p = costs[i, b] - costs[i, a], CANDIDATES
            while p > 0:
                other = candidates[a, b, p - 1]
                if other != NONE and costs[other, b] - costs[other, a] <= more:
                    break
                if p < CANDIDATES:
                    candidates[a, b, p] = other
                p -= 1
            if p < CANDIDATES:
                candidates[a, b, p] = i
