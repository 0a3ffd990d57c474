"""Means of clusters that follow every sample which joins or leaves, for dense and sparse rows.

For dense rows ``Clusters.centers`` are the means. For sparse ones a mean is
``centers[j]·scales[j]``, and its squared norm is ``norms[j]``. So a sample that joins or leaves
changes the few coordinates that it has and two numbers, and no distance needs more:
‖x − c‖² = ‖x‖² + ‖c‖² − 2x·c. Digits that cancel there cost time at most: swaps only have to find a
place from where K-means continues, and what they find is compared with what was before.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.jit import REORDER
from evomeans.engines.cpu.layout import Rows, SparseRows, by_row_type
from evomeans.kernels.vectors import squared_difference
from evomeans.typing import FloatArray, Index

# A scale below this would lose digits; the mean is written out before.
SMALLEST_SCALE = 1e-3


def _square_to_dense(rows: Rows, i: Index, clusters: Any, j: Index) -> float:
    """Return ‖x − c‖² for a sample and the mean of a cluster."""
    return squared_difference(rows, i, clusters.centers, j)


def _square_to_sparse(rows: SparseRows, i: Index, clusters: Any, j: Index) -> float:
    total = 0.0
    for p in range(rows.starts[i], rows.starts[i + 1]):
        total += rows.values[p] * clusters.centers[j, rows.columns[p]]
    return max(rows.squares[i] + clusters.norms[j] - 2.0 * clusters.scales[j] * total, 0.0)


square_to = by_row_type(dense=_square_to_dense, sparse=_square_to_sparse, fastmath=REORDER)


def _set_apart_dense(rows: Rows, clusters: Any, apart: FloatArray, j: Index) -> None:
    """Set ``apart`` to the squared distances of all means from that of cluster ``j``."""
    features = clusters.features
    for other in range(apart.shape[0]):
        apart[other] = 0.0
    for t in range(features.shape[0]):
        own = features[t, j]
        for other in range(apart.shape[0]):
            difference = features[t, other] - own
            apart[other] += difference * difference


def _set_apart_sparse(rows: SparseRows, clusters: Any, apart: FloatArray, j: Index) -> None:
    centers, scales, norms = clusters.centers, clusters.scales, clusters.norms
    for other in range(apart.shape[0]):
        total = 0.0
        for t in range(centers.shape[1]):
            total += centers[j, t] * centers[other, t]
        apart[other] = max(norms[j] + norms[other] - 2.0 * scales[j] * scales[other] * total, 0.0)


set_apart = by_row_type(
    dense=_set_apart_dense, sparse=_set_apart_sparse, fastmath=REORDER, inline=False
)


def _set_mean_dense(rows: Rows, clusters: Any, j: Index, means: FloatArray, place: Index) -> None:
    """Set the mean of a cluster to a row of a matrix."""
    for t in range(means.shape[1]):
        clusters.centers[j, t] = means[place, t]
        clusters.features[t, j] = means[place, t]


def _set_mean_sparse(
    rows: SparseRows, clusters: Any, j: Index, means: FloatArray, place: Index
) -> None:
    norm = 0.0
    for t in range(means.shape[1]):
        clusters.centers[j, t] = means[place, t]
        norm += means[place, t] * means[place, t]
    clusters.scales[j], clusters.norms[j] = 1.0, norm


set_mean = by_row_type(
    dense=_set_mean_dense, sparse=_set_mean_sparse, fastmath=REORDER, inline=False
)


def _get_mean_dense(rows: Rows, clusters: Any, j: Index, means: FloatArray, place: Index) -> None:
    """Write the mean of a cluster into a row of a matrix."""
    for t in range(means.shape[1]):
        means[place, t] = clusters.centers[j, t]


def _get_mean_sparse(
    rows: SparseRows, clusters: Any, j: Index, means: FloatArray, place: Index
) -> None:
    for t in range(means.shape[1]):
        means[place, t] = clusters.centers[j, t] * clusters.scales[j]


get_mean = by_row_type(dense=_get_mean_dense, sparse=_get_mean_sparse, inline=False)


def _move_mean_dense(rows: Rows, i: Index, clusters: Any, j: Index, share: float) -> None:
    """Move the mean of a cluster towards a sample by a share of the way, or away from it."""
    for t in range(rows.shape[1]):
        mean = clusters.centers[j, t] + (rows[i, t] - clusters.centers[j, t]) * share
        clusters.centers[j, t] = clusters.features[t, j] = mean


def _move_mean_sparse(rows: SparseRows, i: Index, clusters: Any, j: Index, share: float) -> None:
    centers, scale, rest = clusters.centers, clusters.scales[j], 1.0 - share
    if abs(rest * scale) < SMALLEST_SCALE or abs(rest * scale) > 1.0 / SMALLEST_SCALE:
        # Written out. The only sample of a cluster is its mean already.
        for t in range(centers.shape[1]):
            centers[j, t] *= scale * rest
        scale = 1.0
    else:
        scale *= rest
    total = 0.0
    for p in range(rows.starts[i], rows.starts[i + 1]):
        t, value = rows.columns[p], rows.values[p]
        # Before the change the mean is (centers·scale)/rest, unless rest is zero.
        total += value * centers[j, t]
        centers[j, t] += value * (share / scale)
    norm = rest * rest * clusters.norms[j] + share * share * rows.squares[i]
    clusters.norms[j] = max(norm + 2.0 * share * scale * total, 0.0)
    clusters.scales[j] = scale


move_mean = by_row_type(dense=_move_mean_dense, sparse=_move_mean_sparse)


def _point_to_dense(rows: Rows, i: Index, normal: FloatArray) -> None:
    """Replace a point by the vector from it to a sample."""
    for t in range(normal.shape[0]):
        normal[t] = rows[i, t] - normal[t]


def _point_to_sparse(rows: SparseRows, i: Index, normal: FloatArray) -> None:
    for t in range(normal.shape[0]):
        normal[t] = -normal[t]
    for p in range(rows.starts[i], rows.starts[i + 1]):
        normal[rows.columns[p]] += rows.values[p]


point_to = by_row_type(dense=_point_to_dense, sparse=_point_to_sparse)


def _product_with_dense(rows: Rows, i: Index, vector: FloatArray) -> float:
    """Return the scalar product of a sample with a vector."""
    total = 0.0
    for t in range(vector.shape[0]):
        total += rows[i, t] * vector[t]
    return total


def _product_with_sparse(rows: SparseRows, i: Index, vector: FloatArray) -> float:
    total = 0.0
    for p in range(rows.starts[i], rows.starts[i + 1]):
        total += rows.values[p] * vector[rows.columns[p]]
    return total


product_with = by_row_type(dense=_product_with_dense, sparse=_product_with_sparse, fastmath=REORDER)


def _add_to_dense(rows: Rows, i: Index, weight: float, vector: NDArray[np.float64]) -> None:
    """Add a sample to a vector, by its weight."""
    for t in range(vector.shape[0]):
        vector[t] += weight * rows[i, t]


def _add_to_sparse(rows: SparseRows, i: Index, weight: float, vector: NDArray[np.float64]) -> None:
    for p in range(rows.starts[i], rows.starts[i + 1]):
        vector[rows.columns[p]] += weight * rows.values[p]


add_to = by_row_type(dense=_add_to_dense, sparse=_add_to_sparse)
