"""Merge clusters pairwise, nearest first: Ward's method, from given clusters on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

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

    Returns
    -------
    absorbing, absorbed : (count,) arrays
        A cluster has the lowest index of all that it consists of.
    """
    # Imported late: importing the estimator loads no compiler.
    from evomeans.compiled import ward

    n = len(centers)
    costs, lowest, nearest = np.empty((n, n)), np.empty(n), np.empty(n, np.intp)
    absorbing, absorbed = np.empty((2, count), np.intp)
    # Costs are only compared: a common factor does not matter, and none of them overflows.
    weights = weights / weights.max()
    ward.cheapest(centers, weights, costs, nearest, lowest)
    ward.mergers(costs, weights, nearest, lowest, absorbing, absorbed)
    return absorbing, absorbed


def kernel_calls() -> list[Any]:
    """Return what :func:`pnn_merge` calls, see :func:`~evomeans.compiled.ready.ready`."""
    from evomeans.compiled import ward
    from evomeans.compiled.ready import Call

    one, square, index = np.zeros(1), np.zeros((1, 1)), np.zeros(1, np.intp)
    return [
        Call(ward.cheapest, (square, one, square, index, one), 0.5),
        Call(ward.mergers, (square, one, index, one, index, index), 0.7),
    ]
