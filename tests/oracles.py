"""Slow and obvious answers to compare with."""

from __future__ import annotations

from functools import cache
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def squared_distances(samples: FloatArray, centers: FloatArray) -> FloatArray:
    """Σ(x−c)² of every sample and every centre, in float64, by the direct formula."""
    difference = np.asarray(samples, float)[:, None, :] - np.asarray(centers, float)[None, :, :]
    return np.sum(difference * difference, axis=2)


def cheapest_matching(first: FloatArray, second: FloatArray) -> tuple[float, float]:
    """Lowest total distance over all permutations, and the lowest above it (inf if none).

    Permutations of equal cost that pair equal centres count as the same matching.
    """
    distances = np.sqrt(squared_distances(first, second))
    rows = np.arange(len(first))
    orders = np.array(list(permutations(range(len(first)))))
    costs = np.sort(distances[rows, orders].sum(axis=1))
    return float(costs[0]), float(costs[1]) if len(costs) > 1 else np.inf


def lowest_inertia(X: FloatArray, weights: FloatArray, k: int) -> float:
    """Global optimum over all partitions into at most ``k`` blocks, by dynamic programming.

    ``best[j][S] = min over T ⊆ S of cost[T] + best[j−1][S∖T]`` over all subsets S as bit masks.
    """
    cost = _cost_of_all_subsets(np.asarray(X, float), np.asarray(weights, float))
    subsets, rests, begins = _subsets_of_all_subsets(len(X))
    best = cost
    for _ in range(k - 1):
        best = np.minimum.reduceat(cost[subsets] + best[rests], begins)
    return float(best[-1])


def _cost_of_all_subsets(X: FloatArray, weights: FloatArray) -> FloatArray:
    """Σ w‖x−mean‖² = Σ_{i<j} wᵢwⱼ‖xᵢ−xⱼ‖² / Σw of every subset: no term cancels."""
    members = (np.arange(2 ** len(X))[:, None] >> np.arange(len(X)) & 1).astype(float)
    pairs = np.outer(weights, weights) * squared_distances(X, X)
    totals = members @ weights
    sums = 0.5 * np.einsum("si,si->s", members @ pairs, members)
    return np.divide(sums, totals, out=np.zeros_like(sums), where=totals > 0)


@cache
def _subsets_of_all_subsets(n: int) -> tuple[NDArray[np.intp], ...]:
    """Masks of T and S∖T for all T ⊆ S, grouped by S, and where the group of each S begins."""
    state = np.arange(3**n)[:, None] // 3 ** np.arange(n) % 3
    bits = 2 ** np.arange(n)
    sets, subsets = (state > 0) @ bits, (state == 2) @ bits
    order = np.argsort(sets, kind="stable")
    sets, subsets = sets[order], subsets[order]
    return subsets, sets ^ subsets, np.searchsorted(sets, np.arange(2**n))
