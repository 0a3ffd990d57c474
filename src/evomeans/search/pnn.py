"""Merge clusters pairwise, nearest first: Ward's method, from given clusters on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

FloatArray = NDArray[np.float64]
# No sum of weights is smaller, unless it is zero.
SMALLEST = np.finfo(np.float64).tiny


def pnn_merge(
    centers: FloatArray, weights: FloatArray, k: int
) -> tuple[FloatArray, FloatArray, NDArray[np.intp]]:
    """Merge the two clusters whose union costs least, again and again, until ``k`` are left.

    Merging a and b raises the sum of squared distances by wₐwᵦ/(wₐ+wᵦ)·‖cₐ−cᵦ‖² (Ward [1]_; the
    pairwise nearest neighbour method of Equitz [2]_). Every cluster knows its nearest one. That
    only ever changes for those who were nearest to one of the merged: no merger brings a third
    cluster nearer than the nearer of the two was. So a merger takes O(n·d), and O(n) more for
    everyone who has to look again, which are few.

    Parameters
    ----------
    centers : (n, d) array
        Means of the clusters.
    weights : (n,) array
        Their weights. Those without any are merged first, and leave no trace.
    k : int
        Clusters to be left, at least 1 and at most n.

    Returns
    -------
    centers : (k, d) array
        Means of the clusters that are left.
    weights : (k,) array
    origins : (k,) array
        Ascending; which of the ``centers`` each of them stands for: the first of those merged
        into it.

    References
    ----------
    .. [1] Ward, J.H. (1963). "Hierarchical grouping to optimize an objective function". Journal of
       the American Statistical Association 58, 236-244.
    .. [2] Equitz, W.H. (1989). "A new vector quantization clustering algorithm". IEEE Transactions
       on Acoustics, Speech, and Signal Processing 37, 1568-1575.
    """
    kept, weights = _merge_equal(centers, weights, k)
    centers, weights = centers[kept], weights[kept]
    alive = np.ones(len(centers), dtype=np.bool_)
    costs = _costs_of_all(centers, weights)
    nearest, lowest = costs.argmin(axis=1), costs.min(axis=1)
    for _ in range(len(centers) - k):
        one = int(lowest.argmin())
        a, b = sorted((one, int(nearest[one])))
        _unite(centers, weights, a, b)
        alive[b] = False
        costs[b] = costs[:, b] = lowest[b] = np.inf
        costs[a] = costs[:, a] = _costs_of_one(a, centers, weights, alive)
        looking = np.flatnonzero(((nearest == a) | (nearest == b)) & alive)
        rows = costs[looking]
        nearest[looking], lowest[looking] = rows.argmin(axis=1), rows.min(axis=1)
    return centers[alive], weights[alive], kept[alive]


def _merge_equal(
    centers: FloatArray, weights: FloatArray, k: int
) -> tuple[NDArray[np.intp], FloatArray]:
    """Merge clusters with the same centre up front, all at once, but leave at least ``k``.

    It costs nothing, so it is what comes first anyway, and two good solutions share most of their
    centres. Equal centres have equal coordinate sums; a pair with another centre of that sum in
    between is overlooked, and left to the mergers that follow.

    Returns
    -------
    kept : array
        Ascending; the clusters that are left.
    weights : (n,) array
        Now with the weights of those that are not.
    """
    keys = centers.sum(axis=1)
    order = keys.argsort(kind="stable")
    ranked = centers[order]
    equals_last = np.append(False, (ranked[1:] == ranked[:-1]).all(axis=1))
    equals_last[np.flatnonzero(equals_last)[len(centers) - k :]] = False
    first = order[~equals_last][np.cumsum(~equals_last) - 1]
    totals: FloatArray = np.bincount(first, weights[order], len(centers)).astype(np.float64)
    return np.sort(order[~equals_last]), totals


def _costs_of_all(centers: FloatArray, weights: FloatArray) -> FloatArray:
    """Return what every merger costs; a cluster is not merged with itself."""
    costs: FloatArray = cdist(centers, centers, "sqeuclidean")
    costs *= _reduced_weight(weights[:, None], weights)
    np.fill_diagonal(costs, np.inf)
    return costs


def _costs_of_one(
    a: int, centers: FloatArray, weights: FloatArray, alive: NDArray[np.bool_]
) -> FloatArray:
    """Return what it costs to merge cluster ``a`` with each of the others."""
    difference = centers - centers[a]
    costs: FloatArray = np.einsum("ij,ij->i", difference, difference)
    costs *= _reduced_weight(weights, weights[a])
    costs[~alive] = costs[a] = np.inf
    return costs


def _reduced_weight(first: FloatArray, second: FloatArray | np.float64) -> FloatArray:
    """Return w₁w₂/(w₁+w₂), which is zero for two clusters without weight."""
    return first * (second / np.maximum(first + second, SMALLEST))


def _unite(centers: FloatArray, weights: FloatArray, a: int, b: int) -> None:
    """Turn cluster ``a`` into the union of both."""
    heavy, light = (a, b) if weights[a] >= weights[b] else (b, a)
    total = weights[a] + weights[b]
    # From the heavier on, so that what is equal, or weighs nothing, does not move it.
    share = weights[light] / total if total > 0.0 else 0.0
    centers[a] = centers[heavy] + share * (centers[light] - centers[heavy])
    weights[a] = total
