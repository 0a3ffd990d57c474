"""Merge clusters pairwise, nearest first: Ward's method, from given clusters on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]


def pnn_merge(
    centers: FloatArray, weights: FloatArray, k: int
) -> tuple[FloatArray, FloatArray, IndexArray]:
    """Merge the two clusters whose union costs least, again and again, until ``k`` are left.

    Merging a and b raises the sum of squared distances by wₐwᵦ/(wₐ+wᵦ)·‖cₐ−cᵦ‖² (Ward [1]_; the
    pairwise nearest neighbour method of Equitz [2]_).

    Parameters
    ----------
    centers : (n, d) array
        Means of the clusters.
    weights : (n,) array
        Their weights. Merging one without any costs nothing and leaves no trace; such clusters go
        first.
    k : int
        Clusters to be left, at least 1 and at most n.

    Returns
    -------
    centers : (k, d) array
        Means of the clusters that are left.
    weights : (k,) array
    origins : (k,) array
        Ascending; the first of the given clusters that each of them consists of.

    References
    ----------
    .. [1] Ward, J.H. (1963). "Hierarchical grouping to optimize an objective function". Journal of
       the American Statistical Association 58, 236-244.
    .. [2] Equitz, W.H. (1989). "A new vector quantization clustering algorithm". IEEE Transactions
       on Acoustics, Speech, and Signal Processing 37, 1568-1575.
    """
    weighty = weights > 0.0
    kept = np.sort((~weighty).argsort(kind="stable")[: max(k, np.count_nonzero(weighty))])
    centers, weights = centers[kept], weights[kept]
    if len(kept) == k:
        return centers, weights, kept
    absorbing, absorbed = _mergers(centers, weights, len(kept) - k)
    origin = np.arange(len(kept))
    origin[absorbed] = absorbing
    # One that absorbs others may itself be absorbed, by one with a lower index.
    while (origin[origin] != origin).any():
        origin = origin[origin]
    order = origin.argsort(kind="stable")
    origins, begins = np.unique(origin[order], return_index=True)
    totals = np.add.reduceat(weights[order], begins)
    # From one of them on, so that the mean of equal centres is that centre.
    moments = weights[:, None] * (centers - centers[origin])
    moves = np.add.reduceat(moments[order], begins) / totals[:, None]
    return centers[origins] + moves, totals, kept[origins]


def _mergers(centers: FloatArray, weights: FloatArray, count: int) -> tuple[IndexArray, IndexArray]:
    """Return the ``count`` cheapest mergers; all weights are positive.

    No merger brings a third cluster nearer than the nearer of the two was. So only those that were
    nearest to one of the two have to look for their nearest again. And two that are the nearest of
    each other will be merged sooner or later, whatever happens elsewhere: all such pairs are merged
    at once. Those that turn out too expensive, because there were cheaper ones to come, are dropped
    in the end.

    Returns
    -------
    absorbing, absorbed : (count,) arrays
        A cluster has the lowest index of all that it consists of.
    """
    centers, weights = centers.copy(), weights.copy()
    indices = np.arange(len(centers))
    alive = np.ones(len(centers), dtype=np.bool_)
    absorber, heights = indices.copy(), np.zeros(len(centers))
    costs = _costs(indices, centers, weights, alive)
    nearest, lowest = costs.argmin(axis=1), costs.min(axis=1)
    while np.count_nonzero(heights[~alive] <= lowest.min()) < count:
        a = np.flatnonzero((nearest[nearest] == indices) & (indices < nearest))
        b = nearest[a]
        # Never less than what it builds upon, which rounding could make it.
        heights[a] = heights[b] = np.maximum(lowest[a], np.maximum(heights[a], heights[b]))
        absorber[b] = a
        alive[b] = False
        _unite(centers, weights, a, b)
        costs[a] = _costs(a, centers, weights, alive)
        costs[:, a], costs[:, b] = costs[a].T, np.inf
        concerned = np.zeros(len(centers), dtype=np.bool_)
        concerned[a] = concerned[b] = True
        looking = np.flatnonzero(concerned[nearest] & alive)
        rows = costs[looking]
        nearest[looking], lowest[looking] = rows.argmin(axis=1), rows.min(axis=1)
        nearest[b], lowest[b] = b, np.inf
    # Of equally expensive ones those first that others build upon.
    absorbed = np.flatnonzero(~alive)[::-1]
    absorbed = absorbed[heights[absorbed].argsort(kind="stable")[:count]]
    return absorber[absorbed], absorbed


def _costs(
    some: IndexArray, centers: FloatArray, weights: FloatArray, alive: NDArray[np.bool_]
) -> FloatArray:
    """Return what it costs to merge some clusters with each of the others, shape (some, n)."""
    costs: FloatArray = cdist(centers[some], centers, "sqeuclidean")
    # Divided by 1/wₐ + 1/wᵦ, which is to the last bit the same for a with b as for b with a: else
    # there need not be two that are the nearest of each other.
    costs /= np.add.outer(1.0 / weights[some], 1.0 / weights)
    costs[:, ~alive] = np.inf
    costs[np.arange(len(some)), some] = np.inf
    return costs


def _unite(centers: FloatArray, weights: FloatArray, a: IndexArray, b: IndexArray) -> None:
    """Turn the clusters a into their unions with the clusters b."""
    totals = weights[a] + weights[b]
    centers[a] += (weights[b] / totals)[:, None] * (centers[b] - centers[a])
    weights[a] = totals
