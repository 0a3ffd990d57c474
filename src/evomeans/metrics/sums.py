"""What one pass over the samples tells about a clustering."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from evomeans.metrics.checks import FloatArray, IndexArray, dense_blocks


@dataclass(frozen=True)
class ClusterSums:
    """Sums over the samples of each cluster; those of blocks of samples can be added up.

    Parameters
    ----------
    weights : (k,) array
        Σ w.
    squares : (k,) array
        Σ w‖x − c‖².
    distances : (k,) array
        Σ w‖x − c‖.
    silhouettes : (k,) array
        Σ w·s, with the simplified silhouette s = (b − a)/max(a, b): a is the distance to the own
        centre, b that to the closest other.
    """

    weights: FloatArray
    squares: FloatArray
    distances: FloatArray
    silhouettes: FloatArray

    def __add__(self, other: ClusterSums) -> ClusterSums:
        pairs = ((getattr(self, one.name), getattr(other, one.name)) for one in fields(self))
        return ClusterSums(*(a + b for a, b in pairs))


def cluster_sums(
    X: Any, centers: FloatArray, weights: FloatArray, labels: IndexArray | None = None
) -> ClusterSums:
    """Sum up over the samples of each cluster.

    Parameters
    ----------
    X : (n, d) array or CSR matrix
    centers : (k, d) array
    weights : (n,) array
    labels : (n,) array, optional
        The cluster of each sample; by default that of the closest centre, the first on ties.
    """
    k = len(centers)
    total = ClusterSums(*np.zeros((4, k)))
    for rows, block in dense_blocks(X, X.shape[1] + k):
        own = None if labels is None else labels[rows]
        clusters, near, far = two_distances(block, centers, own)
        w = weights[rows]
        s = simplified(near, far)
        parts = (w, w * near * near, w * near, w * s)
        summed = [np.bincount(clusters, values, k).astype(np.float64) for values in parts]
        total += ClusterSums(*summed)
    return total


def two_distances(
    rows: FloatArray, centers: FloatArray, labels: IndexArray | None = None
) -> tuple[IndexArray, FloatArray, FloatArray]:
    """Return the cluster of each row, and its distances to its centre and to the closest other.

    The latter is infinite if there is only one centre. Distances are computed directly, not from
    squared lengths, so that no digits cancel.
    """
    distances = cdist(rows, centers)
    places = np.arange(len(rows))
    own: IndexArray = distances.argmin(axis=1) if labels is None else labels
    near = distances[places, own]
    distances[places, own] = np.inf
    return own, near, distances.min(axis=1)


def simplified(near: FloatArray, far: FloatArray) -> FloatArray:
    """Return (b − a)/max(a, b), and 0 where both are 0."""
    larger = np.maximum(near, far)
    difference = np.where(np.isinf(far), larger, far - near)
    with np.errstate(invalid="ignore"):
        values: FloatArray = np.where(larger > 0.0, difference / larger, 0.0)
    return np.where(np.isinf(far), 0.0, values)


def means_by_label(X: Any, labels: IndexArray, weights: FloatArray) -> FloatArray:
    """Return the weighted mean of the samples of each label."""
    k = int(labels.max()) + 1
    totals = np.bincount(labels, weights, k)
    # From one sample of each cluster on, so that large offsets do not cost digits.
    origins = np.empty((k, X.shape[1]))
    first = np.unique(labels, return_index=True)[1]
    for j, row in enumerate(first):
        chosen = X[[row]]
        origins[j] = np.asarray(chosen.toarray() if hasattr(chosen, "toarray") else chosen)[0]
    moments = np.zeros_like(origins)
    for rows, block in dense_blocks(X, X.shape[1]):
        offsets = (block - origins[labels[rows]]) * weights[rows, None]
        np.add.at(moments, labels[rows], offsets)
    shares = np.where(totals > 0.0, totals, 1.0)[:, None]
    means: FloatArray = origins + moments / shares
    return means
