"""Cluster sums in fixed point: exact, so that their bits depend on the members alone.

A floating-point sum depends on the order of its terms, and so would everything that follows from
it: on the number of threads, on the way K-means took, on a parent's state being at hand or not.
Every term wᵢxᵢ is therefore rounded once, to an integer of two limbs (80 bits for a million
samples), and integers are added and taken away without any further rounding. Equal clusters have
equal centres, to the last bit, in every individual.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evomeans.compiled.jit import jit
from evomeans.engines.cpu.rows import by_row_type
from evomeans.engines.fixed_point import LIMBS


@jit
def add_term(sums: Any, j: int, t: int, term: float, limb: float, sign: float) -> None:
    """Add one term, scaled to at most a limb, to a cluster, or with sign −1.0 take it away."""
    whole = np.floor(term)
    sums[j, 0, t] += np.int64(sign * whole)
    sums[j, 1, t] += np.int64(sign * ((term - whole) * limb))


def _add_row_dense(
    sums: Any, j: int, rows: Any, i: int, weight: float, scales: Any, limb: float, sign: float
) -> None:
    """Add sample ``i`` to the sums of cluster ``j``, or with sign −1.0 take it away.

    Parameters
    ----------
    sums : (k, 2, d + 1) array of int64
        Upper and lower limbs; the last column sums the weights.
    """
    n_features = rows.shape[1]
    for t in range(n_features):
        add_term(sums, j, t, weight * rows[i, t] * scales[t], limb, sign)
    add_term(sums, j, n_features, weight * scales[n_features], limb, sign)


def _add_row_sparse(
    sums: Any, j: int, rows: Any, i: int, weight: float, scales: Any, limb: float, sign: float
) -> None:
    for p in range(rows.starts[i], rows.starts[i + 1]):
        t = rows.columns[p]
        add_term(sums, j, t, weight * rows.values[p] * scales[t], limb, sign)
    last = sums.shape[2] - 1
    add_term(sums, j, last, weight * scales[last], limb, sign)


add_row = by_row_type(dense=_add_row_dense, sparse=_add_row_sparse)


@jit
def update_center(
    sums: Any, scales: Any, limb: float, centers: Any, weights: Any, j: int, totals: Any
) -> None:
    """Set centre ``j`` to the mean of its cluster; an empty cluster's centre stays.

    Parameters
    ----------
    sums : (threads, k, 2, d + 1) array of int64
        What every thread has added and taken away; their total counts.
    centers : (k, d) array, out
    weights : (k,) array, out
        Total weight of each cluster.
    totals : (2, d + 1) array of int64
        Room to work in.
    """
    n_features = centers.shape[1]
    for half in range(LIMBS):
        for t in range(n_features + 1):
            totals[half, t] = sums[0, j, half, t]
        for thread in range(1, sums.shape[0]):
            for t in range(n_features + 1):
                totals[half, t] += sums[thread, j, half, t]
    unit = 1.0 / limb
    weight = (totals[0, n_features] + totals[1, n_features] * unit) / scales[n_features]
    weights[j] = weight
    if weight > 0.0:
        for t in range(n_features):
            centers[j, t] = (totals[0, t] + totals[1, t] * unit) / (scales[t] * weight)
