"""Cluster sums in fixed point: exact, so that their bits depend on the members alone.

Every term wᵢxᵢ is rounded once, to an integer of two *limbs* of up to 60 bits (80 bits in all for a
million samples), and integers are added and subtracted without further rounding. Equal clusters
have equal centres, to the last bit, in every individual.

The value of limbs (upper, lower) in column t is (upper + lower / limb) / scales[t].
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.jit import jit
from evomeans.engines.cpu.layout import (
    Centers,
    Samples,
    SparseRows,
    by_row_type,
    copy_row,
    weight_of,
)
from evomeans.engines.frame import LIMBS
from evomeans.typing import FloatArray, Index


@jit
def add_term(
    sums: NDArray[np.int64], j: Index, t: Index, term: float, limb: float, sign: float
) -> None:
    """Add one term, scaled to at most a limb, to a cluster, or with sign −1.0 subtract it."""
    whole = np.floor(term)
    sums[j, 0, t] += np.int64(sign * whole)
    sums[j, 1, t] += np.int64(sign * ((term - whole) * limb))


def _add_row_dense(
    samples: Samples, sums: NDArray[np.int64], j: Index, i: int, sign: float
) -> None:
    """Add sample ``i`` to the sums of cluster ``j``, or with sign −1.0 subtract it.

    ``sums`` (k, 2, d + 1) are upper and lower limbs; the last column sums the weights. The scales
    are powers of two that bring every term below a limb, 2 to the number of its bits.
    """
    rows = samples.rows
    n_features: int = rows.shape[1]
    weight, scales, limb = weight_of(samples, i), samples.scales, samples.limb
    for t in range(n_features):
        add_term(sums, j, t, weight * rows[i, t] * scales[t], limb, sign)
    add_term(sums, j, n_features, weight * scales[n_features], limb, sign)


def _add_row_sparse(
    samples: Samples, sums: NDArray[np.int64], j: Index, i: int, sign: float
) -> None:
    rows: SparseRows = samples.rows
    weight, scales, limb = weight_of(samples, i), samples.scales, samples.limb
    for p in range(rows.starts[i], rows.starts[i + 1]):
        t = rows.columns[p]
        add_term(sums, j, t, weight * rows.values[p] * scales[t], limb, sign)
    last = sums.shape[2] - 1
    add_term(sums, j, last, weight * scales[last], limb, sign)


add_row = by_row_type(dense=_add_row_dense, sparse=_add_row_sparse)


@jit
def update_center(
    samples: Samples,
    sums: NDArray[np.int64],
    centers: FloatArray,
    weights: FloatArray,
    j: Index,
    totals: NDArray[np.int64],
) -> None:
    """Set centre ``j`` to its mean over the ``sums`` of all threads; that of an empty one stays."""
    n_features, scales = centers.shape[1], samples.scales
    for half in range(LIMBS):
        for t in range(n_features + 1):
            totals[half, t] = sums[0, j, half, t]
        for thread in range(1, sums.shape[0]):
            for t in range(n_features + 1):
                totals[half, t] += sums[thread, j, half, t]
    unit = 1.0 / samples.limb
    weight = (totals[0, n_features] + totals[1, n_features] * unit) / scales[n_features]
    weights[j] = weight
    if weight > 0.0:
        for t in range(n_features):
            centers[j, t] = (totals[0, t] + totals[1, t] * unit) / (scales[t] * weight)


# The square of a length this close to one is one but for rounding.
NEARLY_ONE = 1e-12


@jit
def set_length_one(centers: FloatArray, j: Index, instead: FloatArray) -> float:
    """Make a centre a direction, and return its length; without one it goes to ``instead``."""
    square = 0.0
    for t in range(centers.shape[1]):
        square += centers[j, t] * centers[j, t]
    length = np.sqrt(square)
    if length == 0.0:
        copy_row(instead, j, centers, j)
    elif abs(square - 1.0) > NEARLY_ONE:
        for t in range(centers.shape[1]):
            centers[j, t] /= length
    return length


@jit
def follow_sums(samples: Samples, centers: Centers, j: Index, totals: NDArray[np.int64]) -> None:
    """Move centre ``j`` to the mean of its cluster; on the sphere, to the direction of that.

    Of all centres of length one, it costs the samples least (Dhillon and Modha, 2001). Without a
    direction the centre goes back to ``before``.
    """
    update_center(samples, centers.sums, centers.exact, centers.weights, j, totals)
    centers.masses[j] = centers.weights[j]
    if samples.on_sphere != 0.0:
        centers.masses[j] *= set_length_one(centers.exact, j, centers.before)
