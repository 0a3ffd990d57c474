"""What the functions of this package take, and how they say what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from evomeans.sparse import as_csr

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]

# Rows are handled in blocks of about this many numbers.
BLOCK = 2**21


def checked_samples(X: Any) -> Any:
    """Return samples as a float array of two dimensions or as a CSR matrix."""
    if issparse(X):
        return as_csr(X)
    array: NDArray[Any] = np.asarray(X)
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(
            f"X has shape {array.shape}; expected (n_samples, n_features), neither of them 0."
        )
    if array.dtype.kind not in "biuf":
        raise ValueError(f"X has dtype {array.dtype}; expected real numbers.")
    return array


def checked_centers(name: str, centers: ArrayLike) -> FloatArray:
    """Return centres as a finite array of two dimensions, or say what is wrong with them."""
    array: NDArray[Any] = np.asarray(centers)
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(
            f"{name} has shape {array.shape}; expected (n_clusters, n_features), neither of them 0."
        )
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} has dtype {array.dtype}; expected real numbers.")
    array = array.astype(np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} has NaN or infinite coordinates; expected finite numbers.")
    return array


def checked_labels(name: str, labels: ArrayLike, n_samples: int | None = None) -> IndexArray:
    """Return labels as 0, 1, …, in the order of the values that were given."""
    array: NDArray[Any] = np.asarray(labels)
    if array.ndim != 1 or not array.size:
        raise ValueError(f"{name} has shape {array.shape}; expected (n_samples,), not empty.")
    if n_samples is not None and len(array) != n_samples:
        raise ValueError(f"{name} has {len(array)} labels for {n_samples} samples.")
    codes: IndexArray = np.unique(array, return_inverse=True)[1].reshape(-1)
    return codes


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


def dense_blocks(X: Any, numbers_per_row: int) -> Iterator[tuple[slice, FloatArray]]:
    """Yield some rows at a time, dense and in double precision, and where they are."""
    size = max(1, BLOCK // max(1, numbers_per_row))
    for first in range(0, X.shape[0], size):
        rows = slice(first, first + size)
        block: Any = X[rows]
        dense: Any = block.toarray() if hasattr(block, "toarray") else block
        yield rows, np.asarray(dense, dtype=np.float64)
