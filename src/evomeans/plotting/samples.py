"""Samples of every kind, a few rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.engines.frame import is_sparse
from evomeans.sparse import as_csr

FloatArray = NDArray[np.float64]

ENTRIES_AT_ONCE = 4_000_000


def as_rows(X: Any) -> Any:
    """Return samples as something with a shape whose rows can be taken: an array or CSR."""
    return as_csr(X) if is_sparse(X) else np.asarray(X)


def dense(X: Any) -> FloatArray:
    """Return samples as a float64 array."""
    return np.asarray(as_csr(X).toarray() if is_sparse(X) else X, dtype=np.float64)


def check_fitted(model: Any) -> None:
    """Raise scikit-learn's NotFittedError if a model has not been fitted."""
    # Imported here: the command line answers without loading it.
    from sklearn.utils.validation import check_is_fitted

    if not hasattr(model, "fit"):
        raise TypeError(
            f"A fitted estimator with centres is needed here, such as HGMeans; got "
            f"{type(model).__name__}."
        )
    check_is_fitted(model, "cluster_centers_")


def check_one_model(model: Any) -> None:
    """Raise an error that explains what is needed if this is not one fitted model."""
    check_fitted(model)
    if isinstance(model.cluster_centers_, dict):
        raise TypeError(
            f"{type(model).__name__} has a model for each k; pass one of them, such as "
            f"path.at({next(iter(model.cluster_centers_))}) or path.best_estimator_."
        )


def fitted_rows(model: Any, X: Any) -> Any:
    """Return samples as :func:`as_rows` does, if they have the features of a fitted model."""
    check_fitted(model)
    centers = model.cluster_centers_
    if isinstance(centers, dict):
        # A path has centres for every k.
        centers = next(iter(centers.values()))
    rows, expected = as_rows(X), centers.shape[1]
    if rows.ndim != 2 or rows.shape[1] != expected:
        raise ValueError(
            f"X must have {expected} features, as in the fit; it has the shape {rows.shape}."
        )
    return rows


@dataclass(frozen=True, eq=False)
class Moments:
    """Mean and standard deviation of the columns; inertia and total weight of the clusters."""

    mean: FloatArray
    spread: FloatArray
    inertia: FloatArray
    weights: FloatArray


def sample_moments(
    X: Any, labels: NDArray[Any], centers: NDArray[Any], sample_weight: Any = None
) -> Moments:
    """Describe samples and clusters in two passes that never copy all of the samples."""
    X = as_rows(X)
    (n, d), k = X.shape, len(centers)
    weight = np.ones(n) if sample_weight is None else np.broadcast_to(sample_weight, n)
    mean, variance, inertia = np.zeros(d), np.zeros(d), np.zeros(k)
    for rows, block in _blocks(X):
        mean += weight[rows] @ block
    mean /= weight.sum()
    middles = np.asarray(centers, dtype=np.float64)
    for rows, block in _blocks(X):
        variance += weight[rows] @ np.square(block - mean)
        away = np.square(block - middles[labels[rows]]).sum(axis=1)
        inertia += np.bincount(labels[rows], weight[rows] * away, minlength=k)
    spread = np.sqrt(variance / weight.sum())
    weights = np.bincount(labels, weight, minlength=k).astype(np.float64)
    return Moments(mean, spread, inertia, weights)


def column_deviations(
    X: Any,
    labels: NDArray[Any],
    centers: NDArray[Any],
    sample_weight: Any,
    columns: NDArray[np.intp],
) -> FloatArray:
    """Return the standard deviations of some columns within each cluster, about its centre."""
    X = as_rows(X)[:, columns]
    n, k = X.shape[0], len(centers)
    weight = np.ones(n) if sample_weight is None else np.broadcast_to(sample_weight, n)
    middles = np.asarray(centers, dtype=np.float64)[:, columns]
    squares, total = np.zeros((k, len(columns))), np.zeros(k)
    for rows, block in _blocks(X):
        counted = labels[rows] >= 0
        own, w = labels[rows][counted], weight[rows][counted]
        total += np.bincount(own, w, minlength=k)
        away = np.square(block[counted] - middles[own])
        for j in range(len(columns)):
            squares[:, j] += np.bincount(own, w * away[:, j], minlength=k)
    deviations: FloatArray = np.sqrt(squares / np.where(total > 0, total, 1.0)[:, None])
    return deviations


def _blocks(X: Any) -> Iterator[tuple[slice, FloatArray]]:
    step = max(1, ENTRIES_AT_ONCE // X.shape[1])
    for start in range(0, X.shape[0], step):
        rows = slice(start, start + step)
        yield rows, dense(X[rows])
