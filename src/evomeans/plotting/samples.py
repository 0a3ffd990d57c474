"""Samples of every kind, a few rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.engines.frame import is_sparse

FloatArray = NDArray[np.float64]

ENTRIES_AT_ONCE = 4_000_000


def as_rows(X: Any) -> Any:
    """Return samples as something with a shape whose rows can be taken: an array or CSR."""
    return X.tocsr() if is_sparse(X) else np.asarray(X)


def dense_rows(X: Any, rows: Any) -> FloatArray:
    """Take some rows as a float64 array."""
    taken = X[rows]
    return np.asarray(taken.toarray() if is_sparse(taken) else taken, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums over the samples that a description of the clusters needs.

    Parameters
    ----------
    mean, spread : (d,) arrays
        Mean and standard deviation of the columns.
    inertia : (k,) array
        Sum of squared distances to the centre in each cluster.
    weights : (k,) array
        Total weight of the samples in each cluster.
    """

    mean: FloatArray
    spread: FloatArray
    inertia: FloatArray
    weights: FloatArray


def sample_moments(
    X: Any, labels: NDArray[Any], centers: NDArray[Any], sample_weight: Any = None
) -> Moments:
    """Describe samples and clusters in two passes that never copy all of the samples."""
    X = as_rows(X)
    n, d = X.shape
    k = len(centers)
    weight = np.ones(n) if sample_weight is None else np.broadcast_to(sample_weight, n)
    mean = np.zeros(d)
    for rows, block in _blocks(X):
        mean += weight[rows] @ block
    mean /= weight.sum()
    variance, inertia = np.zeros(d), np.zeros(k)
    middles = np.asarray(centers, dtype=np.float64)
    for rows, block in _blocks(X):
        variance += weight[rows] @ np.square(block - mean)
        away = np.square(block - middles[labels[rows]]).sum(axis=1)
        inertia += np.bincount(labels[rows], weight[rows] * away, minlength=k)
    spread = np.sqrt(variance / weight.sum())
    weights = np.bincount(labels, weight, minlength=k).astype(np.float64)
    return Moments(mean, spread, inertia, weights)


def _blocks(X: Any) -> Iterator[tuple[slice, FloatArray]]:
    step = max(1, ENTRIES_AT_ONCE // X.shape[1])
    for start in range(0, X.shape[0], step):
        rows = slice(start, start + step)
        yield rows, dense_rows(X, rows)
