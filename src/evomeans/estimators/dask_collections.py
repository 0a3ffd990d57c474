"""Samples and weights that Dask holds are checked without looking at their values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from evomeans.engines import is_dask
from evomeans.engines.dask.blocks import (
    as_dask_array,
    counted,
    frame_to_array,
    import_dask_array,
    numeric_type,
)
from evomeans.engines.frame import is_sparse


def is_read_by_dask(X: Any) -> bool:
    """Whether only Dask reads ``X``: its collections, memory maps, arrays kept in files."""
    if is_dask(X) or isinstance(X, np.memmap):
        return True
    is_array = all(hasattr(X, name) for name in ("shape", "dtype", "ndim", "__getitem__"))
    is_tensor = type(X).__module__.partition(".")[0] == "torch"
    return is_array and not (isinstance(X, np.ndarray) or is_sparse(X) or is_tensor)


def check_lazy_samples(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Return samples as a Dask array of float32 or float64.

    No value is looked at. The estimator learns number and names of the features, and chunks of
    unknown size are counted; with ``reset=False`` features are compared, and nothing is counted.
    """
    import_dask_array()
    meta = getattr(X, "_meta", None)
    if hasattr(meta, "columns"):
        validate_data(estimator, meta, reset=reset, skip_check_array=True)
        X = frame_to_array(X)
    else:
        _check_array(X)
        validate_data(estimator, np.empty((0, X.shape[1])), reset=reset, skip_check_array=True)
        X = as_dask_array(X)
        X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    return counted(X) if reset else X


def _check_array(X: Any) -> None:
    da = import_dask_array()
    if is_dask(X) and not isinstance(X, da.Array):
        raise TypeError(f"X must be a Dask array or a Dask dataframe, got a {type(X).__name__}.")
    meta = getattr(X, "_meta", None)
    if isinstance(X, da.Array) and type(meta) not in (np.ndarray, np.memmap):
        raise ValueError(
            f"X must be a Dask array with chunks that are NumPy arrays, got {type(meta).__name__}. "
            "Make them dense with X.map_blocks, or fill in what is masked."
        )
    if X.ndim != 2:
        raise ValueError(f"X.shape={X.shape} must have two dimensions: samples and features.")
    if np.dtype(X.dtype).kind not in "fiub":
        raise ValueError(f"X must hold real numbers, got dtype={X.dtype}.")
    if math.isnan(X.shape[1]):
        raise ValueError("X must have a known number of columns; only rows may be uncounted.")
    if X.shape[1] == 0 or X.shape[0] == 0:
        raise ValueError(f"X.shape={X.shape} has no values; at least one row and one column.")


def check_lazy_weight(sample_weight: Any) -> Any:
    """Return weights of Dask as an array with chunks of known size."""
    da = import_dask_array()
    # Asked of its type, for a Delayed has every attribute.
    is_frame = hasattr(type(sample_weight), "to_dask_array")
    if not isinstance(sample_weight, da.Array) and not is_frame:
        raise TypeError(
            "sample_weight must be a Dask array or series, an array or a number, got a "
            f"{type(sample_weight).__name__}."
        )
    if sample_weight.ndim != 1:
        raise ValueError(
            f"sample_weight has {sample_weight.ndim} dimensions and must have one: one weight per "
            "sample."
        )
    if numeric_type(sample_weight.dtype) is None:
        raise ValueError(f"sample_weight must hold real numbers, got dtype={sample_weight.dtype}.")
    weights = sample_weight.astype(np.float64)
    return counted(weights.to_dask_array() if is_frame else weights, "sample_weight")
