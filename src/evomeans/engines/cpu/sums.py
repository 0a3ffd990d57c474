"""Cluster sums in fixed point: exact, so that their bits depend on the members alone.

A floating-point sum depends on the order of its terms, and so would everything that follows from
it: on the number of threads, on the way K-means took, on a parent's state being at hand or not.
Every term wᵢxᵢ is therefore rounded once, to an integer of two limbs (80 bits for a million
samples), and integers are added and taken away without any further rounding. Equal clusters have
equal centres, to the last bit, in every individual.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from evomeans.engines.cpu.jit import jit
from evomeans.engines.cpu.rows import by_row_type

LIMBS = 2


def limb_bits(n_samples: int) -> int:
    """Bits of a limb such that the sum of ``n_samples`` of them cannot overflow."""
    return 61 - max(1, n_samples).bit_length()


def column_scales(extents: Any, weights: Any, bits: int) -> Any:
    """Factors that bring every term of every column below ``2**bits``.

    Parameters
    ----------
    extents : (d,) array
        The largest absolute value of every column.
    weights : (n,) or (0,) array
        Empty for equal weights.
    bits : int
        Size of a limb.

    Returns
    -------
    scales : (d + 1,) array
        Powers of two; the last one is for the weights themselves.
    """
    heaviest = float(weights.max()) if len(weights) else 1.0
    largest = np.append(extents, 1.0) * heaviest
    exponents = np.array([bits - math.frexp(v)[1] if v > 0 else 0 for v in largest])
    return np.ldexp(1.0, np.minimum(exponents, 1000))


@jit
def add_term(sums: Any, before: int, after: int, t: int, term: float, limb: float) -> None:
    """Move one term, scaled to at most a limb, from a cluster (−1: from none) to another."""
    whole = np.floor(term)
    upper = np.int64(whole)
    lower = np.int64((term - whole) * limb)
    sums[after, t, 0] += upper
    sums[after, t, 1] += lower
    if before >= 0:
        sums[before, t, 0] -= upper
        sums[before, t, 1] -= lower


def _transfer_dense(
    sums: Any, before: int, after: int, rows: Any, i: int, weight: float, scales: Any, limb: float
) -> None:
    """Move sample ``i`` from the sums of one cluster (−1: from none) to those of another.

    Parameters
    ----------
    sums : (k, d + 1, 2) array of int64
        Upper and lower limbs; the last column sums the weights.
    """
    n_features = rows.shape[1]
    for t in range(n_features):
        add_term(sums, before, after, t, weight * rows[i, t] * scales[t], limb)
    add_term(sums, before, after, n_features, weight * scales[n_features], limb)


def _transfer_sparse(
    sums: Any, before: int, after: int, rows: Any, i: int, weight: float, scales: Any, limb: float
) -> None:
    for p in range(rows.starts[i], rows.starts[i + 1]):
        t = rows.columns[p]
        add_term(sums, before, after, t, weight * rows.values[p] * scales[t], limb)
    last = sums.shape[1] - 1
    add_term(sums, before, after, last, weight * scales[last], limb)


transfer = by_row_type(dense=_transfer_dense, sparse=_transfer_sparse)


@jit
def update_center(sums: Any, scales: Any, limb: float, centers: Any, weights: Any, j: int) -> None:
    """Set centre ``j`` to the mean of its cluster; an empty cluster's centre stays.

    Parameters
    ----------
    sums : (threads, k, d + 1, 2) array of int64
        What every thread has added and taken away; their total counts.
    centers : (k, d) array, out
    weights : (k,) array, out
        Total weight of each cluster.
    """
    n_features = centers.shape[1]
    weight = total(sums, j, n_features, limb) / scales[n_features]
    weights[j] = weight
    if weight > 0.0:
        for t in range(n_features):
            centers[j, t] = total(sums, j, t, limb) / (scales[t] * weight)


@jit
def total(sums: Any, j: int, t: int, limb: float) -> Any:
    """Sum of a column of a cluster over all threads, scaled."""
    upper, lower = np.int64(0), np.int64(0)
    for thread in range(sums.shape[0]):
        upper += sums[thread, j, t, 0]
        lower += sums[thread, j, t, 1]
    return upper + lower / limb
