"""Sums over clusters in one pass, for all metrics, criteria and reports."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse
from scipy.spatial.distance import cdist

from evomeans.sparse import as_csr
from evomeans.typing import FloatArray, Indices

# Rows are handled in blocks of about this many numbers.
NUMBERS_PER_BLOCK = 2**21
# From so many centres and features on, near centres are found by matrix products.
MANY_CENTERS, MANY_FEATURES = 4, 16


def checked_samples(X: Any) -> Any:
    """Return samples as a float array of two dimensions or as a CSR matrix."""
    return as_csr(X) if issparse(X) else _real_matrix("X", X, "n_samples")


def _real_matrix(name: str, values: Any, rows: str) -> NDArray[Any]:
    array: NDArray[Any] = np.asarray(values)
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(
            f"{name} has shape {array.shape}; expected ({rows}, n_features), neither of them 0."
        )
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} has dtype {array.dtype}; expected real numbers.")
    return array


def checked_centers(name: str, centers: ArrayLike) -> FloatArray:
    """Return centres as a finite array of two dimensions, or say what is wrong with them."""
    array = _real_matrix(name, centers, "n_clusters").astype(np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} has NaN or infinite coordinates; expected finite numbers.")
    return array


def checked_labels(name: str, labels: ArrayLike, n_samples: int | None = None) -> Indices:
    """Return labels as 0, 1, …, in the order of the values that were given."""
    array: NDArray[Any] = np.asarray(labels)
    if array.ndim != 1 or not array.size:
        raise ValueError(f"{name} has shape {array.shape}; expected (n_samples,), not empty.")
    if n_samples is not None and len(array) != n_samples:
        raise ValueError(f"{name} has {len(array)} labels for {n_samples} samples.")
    return np.unique(array, return_inverse=True)[1].reshape(-1)


def checked_weights(sample_weight: ArrayLike | None, n_samples: int) -> FloatArray:
    """Return one weight for each sample; ones for None."""
    if sample_weight is None:
        return np.ones(n_samples)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_samples,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}; expected ({n_samples},): one per sample."
        )
    if not (np.isfinite(weights).all() and (weights >= 0.0).all() and weights.any()):
        raise ValueError("sample_weight must be finite, not negative, and not all zero.")
    return weights


def dense(X: Any) -> FloatArray:
    """Return samples as a float64 array."""
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)


def dense_blocks(X: Any, numbers_per_row: int) -> Iterator[tuple[slice, FloatArray]]:
    """Yield some rows at a time, dense and in double precision, and where they are."""
    size = max(1, NUMBERS_PER_BLOCK // max(1, numbers_per_row))
    for first in range(0, X.shape[0], size):
        rows = slice(first, first + size)
        yield rows, dense(X[rows])


@dataclass(frozen=True)
class ClusterSums:
    """Sums over the samples of each cluster; those of blocks of samples can be added up."""

    # (k,). Σ w.
    weights: FloatArray
    # (k,). Σ w‖x − c‖².
    squares: FloatArray
    # (k,). Σ w‖x − c‖.
    distances: FloatArray
    # (k,). Σ w·s, with the simplified silhouette s = (b − a)/max(a, b): a is the distance to the
    # own centre, b that to the closest other.
    silhouettes: FloatArray

    def __add__(self, other: ClusterSums) -> ClusterSums:
        pairs = ((getattr(self, one.name), getattr(other, one.name)) for one in fields(self))
        return ClusterSums(*(a + b for a, b in pairs))


def cluster_sums(
    X: Any, centers: FloatArray, weights: FloatArray, labels: Indices | None = None
) -> ClusterSums:
    """Sum up over the samples of each cluster; by default that of the closest centre.

    On ties, it is the first one.
    """
    k = len(centers)
    total = ClusterSums(*np.zeros((4, k)))
    for rows, block in dense_blocks(X, X.shape[1] + k):
        own = None if labels is None else labels[rows]
        clusters, near, far, _ = two_distances(block, centers, own)
        w = weights[rows]
        parts = (w, w * near * near, w * near, w * simplified(near, far))
        summed = [np.bincount(clusters, values, k).astype(np.float64) for values in parts]
        total += ClusterSums(*summed)
    return total


def two_distances(
    rows: FloatArray, centers: FloatArray, labels: Indices | None = None
) -> tuple[Indices, FloatArray, FloatArray, Indices]:
    """Return the cluster of each row, its distances to its centre and the closest other, and which.

    The latter is infinite if there is only one centre. Distances are computed directly, not from
    squared lengths, so that no digits cancel. Many centres are chosen by a matrix product, where
    those whose distances differ by rounding only may be taken for each other.
    """
    is_large = len(centers) >= MANY_CENTERS and rows.shape[1] >= MANY_FEATURES
    scores = _scores(rows, centers) if is_large else cdist(rows, centers)
    places = np.arange(len(rows))
    own: Indices = scores.argmin(axis=1) if labels is None else labels
    near = scores[places, own]
    scores[places, own] = np.inf
    other: Indices = scores.argmin(axis=1)
    far = scores[places, other]
    if is_large:
        near, far = (np.linalg.norm(rows - centers[chosen], axis=1) for chosen in (own, other))
        if labels is None:
            own, other = np.where(near <= far, own, other), np.where(near <= far, other, own)
            near, far = np.minimum(near, far), np.maximum(near, far)
    return own, near, far, other


def _scores(rows: FloatArray, centers: FloatArray) -> FloatArray:
    """Return numbers in the order of the distances of each row."""
    middle = centers.mean(axis=0)
    moved = centers - middle
    scores: FloatArray = (middle - rows) @ (2.0 * moved.T)
    scores += np.einsum("jt,jt->j", moved, moved)
    return scores


def simplified(near: FloatArray, far: FloatArray) -> FloatArray:
    """Return (b − a)/max(a, b), and 0 where both are 0 or there is no other cluster."""
    larger = np.maximum(near, far)
    known = (larger > 0.0) & np.isfinite(far)
    return np.divide(far - near, larger, out=np.zeros_like(near), where=known)


@dataclass(frozen=True, eq=False)
class ClusterMoments:
    """Sums over the samples of each cluster about its centre c, column by column."""

    # (k, d).
    centers: FloatArray
    # (k,). Σ w.
    weights: FloatArray
    # (k, d). Σ w(x − c) and Σ w(x − c)².
    first: FloatArray
    second: FloatArray

    @property
    def inertia(self) -> FloatArray:
        """Σ w‖x − c‖² of each cluster."""
        inertia: FloatArray = self.second.sum(axis=1)
        return inertia

    @property
    def means(self) -> FloatArray:
        """The mean of each cluster; its centre if it has no samples."""
        return self.centers + self.first / self._totals

    @property
    def deviations(self) -> FloatArray:
        """Standard deviations within each cluster, about its centre."""
        return np.sqrt(self.second / self._totals)

    @property
    def mean(self) -> FloatArray:
        """The mean of all samples."""
        # From one centre on, so that large offsets do not cost digits.
        moved = self.weights @ (self.centers - self.centers[0]) + self.first.sum(axis=0)
        mean: FloatArray = self.centers[0] + moved / self.weights.sum()
        return mean

    @property
    def spread(self) -> FloatArray:
        """The standard deviation of all samples."""
        away = self.centers - self.mean
        squares = self.second + 2.0 * away * self.first + self.weights[:, None] * away**2
        spread: FloatArray = np.sqrt(np.maximum(squares.sum(axis=0), 0.0) / self.weights.sum())
        return spread

    @property
    def _totals(self) -> FloatArray:
        return np.where(self.weights > 0.0, self.weights, 1.0)[:, None]


def cluster_moments(
    X: Any, centers: FloatArray, weights: FloatArray, labels: NDArray[Any]
) -> ClusterMoments:
    """Sum up over the samples of each cluster in one pass; the label −1 does not count."""
    (k, d), totals = centers.shape, np.zeros(len(centers))
    first, second = np.zeros((k, d)), np.zeros((k, d))
    for rows, block in dense_blocks(X, d):
        is_counted = labels[rows] >= 0
        own = np.where(is_counted, labels[rows], 0)
        w = np.where(is_counted, weights[rows], 0.0)
        owned = csr_array((w, (own, np.arange(len(own)))), shape=(k, len(own)))
        away = block - centers[own]
        totals += np.bincount(own, w, k)
        first += owned @ away
        second += owned @ np.square(away)
    return ClusterMoments(centers, totals, first, second)


def means_by_label(X: Any, labels: Indices, weights: FloatArray) -> FloatArray:
    """Return the weighted mean of the samples of each label."""
    # From one sample of each cluster on, so that large offsets do not cost digits.
    origins = dense(X[np.unique(labels, return_index=True)[1]])
    return cluster_moments(X, origins, weights, labels).means
