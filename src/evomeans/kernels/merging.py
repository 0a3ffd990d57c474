"""Merge clusters pairwise, nearest first: Ward's method, from given clusters on."""

from __future__ import annotations

from typing import Any

import numpy as np

from evomeans.kernels import MOST_KEPT
from evomeans.typing import FloatArray, Indices, Integers


def pnn_merge(
    centers: FloatArray, weights: FloatArray, k: int, stop: Integers | None = None
) -> tuple[FloatArray, FloatArray, Indices]:
    """Merge the two clusters whose union costs least, again and again, until ``k`` are left.

    Merging a and b raises the sum of squared distances by wₐwᵦ/(wₐ+wᵦ)·‖cₐ−cᵦ‖² (Ward [1]_; the
    pairwise nearest neighbour method of Equitz [2]_).

    * ``centers`` (n, d): means of the clusters.
    * ``weights`` (n,): their weights. Merging one without any costs nothing and leaves no trace;
      such clusters go first.
    * ``k``: clusters to be left, at least 1 and at most n.
    * ``stop`` (1,): thousands of clusters are merged until another thread sets this. The result is
      undefined then.

    Returns the means (k, d) and weights (k,) of the clusters that are left, and (k,), ascending,
    the first of the given clusters that each of them consists of.

    References
    ----------
    .. [1] Ward, J.H. (1963). "Hierarchical grouping to optimize an objective function". Journal of
       the American Statistical Association 58, 236-244.
    .. [2] Equitz, W.H. (1989). "A new vector quantization clustering algorithm". IEEE Transactions
       on Acoustics, Speech, and Signal Processing 37, 1568-1575.
    """
    # Imported late: importing the estimator loads no compiler.
    from evomeans.kernels.ward import MergingArrays

    kept = np.arange(len(weights))
    if not weights.min() > 0.0:
        weighty = weights > 0.0
        kept = np.sort((~weighty).argsort(kind="stable")[: max(k, np.count_nonzero(weighty))])
        centers, weights = centers[kept], weights[kept]
    n, d = centers.shape
    if n == k:
        return centers.copy(), weights.copy(), kept
    # Zeros, because a merging that is stopped leaves them as they are.
    merged, totals, origins = np.zeros((k, d)), np.zeros(k), np.zeros(k, np.intp)
    arrays = MergingArrays.allocate(n, d, stop)
    # Costs are only compared: a common factor does not matter, and none of them overflows.
    np.divide(weights, weights.max(), out=arrays.shares)
    kernel, _ = merging(n)
    kernel(centers, weights, merged, totals, origins, arrays)
    return merged, totals, kept[origins]


def merging(n: int) -> tuple[Any, float]:
    """Return the kernel that merges so many clusters, and its size."""
    if n <= MOST_KEPT:
        from evomeans.kernels.ward import merge

        return merge, 0.8
    from evomeans.kernels.ward import merge_many

    return merge_many, 1.0


def kernel_calls(n: int) -> list[Any]:
    """Return what merging ``n`` clusters calls, see :func:`~evomeans.compiled.ready.ready`."""
    from evomeans.compiled.ready import Call
    from evomeans.kernels.ward import MergingArrays

    kernel, size = merging(n)
    one, square, index = np.zeros(1), np.zeros((1, 1)), np.zeros(1, np.intp)
    arrays = MergingArrays.allocate(1, 1)
    return [Call(kernel, (square, one, square, one, index, arrays), size)]
