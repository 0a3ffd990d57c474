"""How far clusters are apart, and which samples show it: typical and borderline ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from evomeans.metrics.checks import dense_blocks
from evomeans.metrics.sums import simplified, two_distances
from evomeans.plotting.cluster_data import thin_out
from evomeans.plotting.samples import FloatArray, dense

ROWS = 200_000
"""Rows that are looked at; more would not change what is shown."""
BORDERLINE = 0.1
"""A simplified silhouette below this: two centres are nearly as close as each other."""


@dataclass(frozen=True, eq=False)
class Separation:
    """Distances of some rows to their centre and to the next one.

    Parameters
    ----------
    rows : (m,) array
        Indices of the samples.
    clusters : (m,) array
        Their clusters.
    near, far : (m,) arrays
        Distances to the own centre and to the closest other.
    other : (m,) array
        The cluster of the latter; −1 if there is only one cluster.
    weights : (m,) array
    """

    rows: NDArray[np.intp]
    clusters: NDArray[Any]
    near: FloatArray
    far: FloatArray
    other: NDArray[np.intp]
    weights: FloatArray

    def share(self, values: NDArray[Any]) -> float:
        """Return the mean of something over the rows, by their weights."""
        total = float(self.weights.sum())
        return float(self.weights @ values) / total if total > 0 else 0.0

    def by_cluster(self, values: FloatArray, n_clusters: int) -> list[float | None]:
        """Return the mean of something over the rows of each cluster; None if there are none."""
        total = np.bincount(self.clusters, self.weights, minlength=n_clusters)
        summed = np.bincount(self.clusters, self.weights * values, minlength=n_clusters)
        return [float(a / b) if b > 0 else None for a, b in zip(summed, total, strict=True)]

    @property
    def silhouettes(self) -> FloatArray:
        """The simplified silhouettes, (b − a)/max(a, b); 1 if there is only one cluster."""
        return np.where(np.isinf(self.far), 1.0, simplified(self.near, self.far))


def separation(
    X: Any, labels: NDArray[Any], centers: NDArray[Any], sample_weight: Any = None
) -> Separation:
    """Measure distances to centres in one pass; outliers, labelled −1, do not count."""
    middles = np.asarray(centers, dtype=np.float64)
    rows = thin_out(labels, ROWS)
    rows = np.sort(rows[labels[rows] >= 0])
    near, far = np.empty((2, len(rows)))
    other, own = np.empty(len(rows), np.intp), labels[rows]
    for part, block in dense_blocks(X[rows], X.shape[1] + len(middles)):
        _, near[part], far[part], other[part] = two_distances(block, middles, own[part])
    other[np.isinf(far)] = -1
    weights = np.broadcast_to(1.0 if sample_weight is None else sample_weight, len(labels))
    return Separation(rows, own, near, far, other, np.asarray(weights[rows], np.float64))


def typical(found: Separation, cluster: int, count: int) -> NDArray[np.intp]:
    """Return the places of the samples that are closest to the centre of a cluster."""
    places = np.flatnonzero(found.clusters == cluster)
    return places[np.argsort(found.near[places], kind="stable")[:count]]


def borderline(found: Separation, cluster: int, count: int) -> NDArray[np.intp]:
    """Return the places of the samples that are nearly as close to the centre of another one."""
    places = np.flatnonzero(found.clusters == cluster)
    values = found.silhouettes[places]
    order = np.argsort(values, kind="stable")[:count]
    return places[order[values[order] < BORDERLINE]]


def gaps_between(centers: NDArray[Any]) -> tuple[NDArray[np.intp], FloatArray]:
    """Return for each centre the closest other one, and how far it is; −1 if it is alone."""
    middles = np.asarray(centers, dtype=np.float64)
    if len(middles) < 2:
        return np.full(len(middles), -1, np.intp), np.full(len(middles), np.inf)
    distances = cdist(middles, middles)
    np.fill_diagonal(distances, np.inf)
    gaps: FloatArray = distances.min(axis=1)
    return distances.argmin(axis=1), gaps


def values_of(X: Any, row: int) -> FloatArray:
    """Return one sample as numbers."""
    values: FloatArray = dense(X[[row]])[0]
    return values
