"""Merge clusters pairwise, nearest first: Ward's method, from given clusters on."""

from __future__ import annotations

from typing import Any

import numpy as np

from evomeans.typing import FloatArray, Indices


def pnn_merge(
    centers: FloatArray, weights: FloatArray, k: int
) -> tuple[FloatArray, FloatArray, Indices]:
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
    # Imported late: importing the estimator loads no compiler.
    from evomeans.kernels import ward

    kept = np.arange(len(weights))
    if not weights.min() > 0.0:
        weighty = weights > 0.0
        kept = np.sort((~weighty).argsort(kind="stable")[: max(k, np.count_nonzero(weighty))])
        centers, weights = centers[kept], weights[kept]
    n = len(kept)
    if n == k:
        return centers.copy(), weights.copy(), kept
    merged, totals, origins = np.empty((k, centers.shape[1])), np.empty(k), np.empty(k, np.intp)
    # Costs are only compared: a common factor does not matter, and none of them overflows.
    memory = weights / weights.max(), np.empty((n, n)), np.empty(n), *np.empty((3, n), np.intp)
    ward.merge(centers, weights, merged, totals, origins, *memory)
    return merged, totals, kept[origins]


def kernel_calls() -> list[Any]:
    """Return what :func:`pnn_merge` calls, see :func:`~evomeans.compiled.ready.ready`."""
    from evomeans.compiled.ready import Call
    from evomeans.kernels import ward

    one, square, index = np.zeros(1), np.zeros((1, 1)), np.zeros(1, np.intp)
    result, memory = (square, one, index), (one, square, one, index, index, index)
    return [Call(ward.merge, (square, one, *result, *memory), 0.8)]
