"""Samples that Dask holds: checked without being looked at, and answers that are computed later."""

from __future__ import annotations

import logging
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from evomeans.engines import create_engine, is_dask
from evomeans.engines.distributed.blocks import defect_of, is_usable
from evomeans.engines.distributed.sources import as_dask_array, import_dask_array
from evomeans.engines.frame import Frame, is_sparse
from evomeans.solution import encode_centers, frame_for

log = logging.getLogger("evomeans")


__all__ = [
    "as_dask_array",
    "check_lazy_samples",
    "check_lazy_weight",
    "frame_to_array",
    "inertia",
    "is_read_by_dask",
    "predict",
    "transform",
]


def is_read_by_dask(X: Any) -> bool:
    """Whether only Dask reads ``X``: its collections, memory maps, arrays kept in files."""
    if is_dask(X) or isinstance(X, np.memmap):
        return True
    is_array = all(hasattr(X, name) for name in ("shape", "dtype", "ndim", "__getitem__"))
    return is_array and not isinstance(X, np.ndarray) and not is_sparse(X)


# ---- samples and weights -------------------------------------------------------------------------


def check_lazy_samples(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Return samples as a Dask array of float32 or float64.

    No value is looked at. The estimator learns number and names of the features, and chunks of
    unknown size are counted; with ``reset=False`` features are compared, and nothing is counted.
    """
    da = import_dask_array()
    if hasattr(X, "_meta") and hasattr(X._meta, "columns"):
        validate_data(estimator, X._meta, reset=reset, skip_check_array=True)
        X = _of_frame(X)
        return counted(X) if reset else X
    if is_dask(X) and not isinstance(X, da.Array):
        raise TypeError(f"X must be a Dask array or a Dask dataframe, got a {type(X).__name__}.")
    if X.ndim != 2:
        raise ValueError(f"X.shape={X.shape} must have two dimensions: samples and features.")
    if np.dtype(X.dtype).kind not in "fiub":
        raise ValueError(f"X must hold real numbers, got dtype={X.dtype}.")
    if math.isnan(X.shape[1]):
        raise ValueError("X must have a known number of columns; only rows may be uncounted.")
    if X.shape[1] == 0 or X.shape[0] == 0:
        raise ValueError(f"X.shape={X.shape} has no values; at least one row and one column.")
    validate_data(estimator, np.empty((0, X.shape[1])), reset=reset, skip_check_array=True)
    X = as_dask_array(X)
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    return counted(X) if reset else X


def frame_to_array(frame: Any) -> Any:
    """Return a Dask dataframe as an array with chunks of known sizes."""
    return counted(_of_frame(frame))


def _of_frame(frame: Any) -> Any:
    kinds = {name: np.dtype(getattr(t, "numpy_dtype", t)) for name, t in _types(frame)}
    wrong = [str(name) for name, kind in kinds.items() if kind.kind not in "fiub"]
    if wrong:
        raise ValueError(f"X must hold real numbers only, but has other columns: {wrong[:5]}.")
    narrow = all(kind == np.float32 for kind in kinds.values())
    return frame.astype(np.float32 if narrow else np.float64).to_dask_array()


def _types(frame: Any) -> list[tuple[Any, Any]]:
    return [
        (name, object if str(kind) in ("category", "string") else kind)
        for name, kind in zip(frame.columns, frame._meta.dtypes, strict=True)
    ]


def counted(X: Any) -> Any:
    """Count the rows of every chunk, if that is not known."""
    if not any(math.isnan(rows) for rows in X.chunks[0]):
        return X
    log.warning("X has chunks of unknown size: their rows are counted, in a pass over the data.")
    from dask import compute, delayed

    chunks = X.to_delayed()[:, 0] if X.ndim == 2 else X.to_delayed()
    counts = compute(*map(delayed(len), chunks))
    X = X.copy()
    X._chunks = (tuple(map(int, counts)), *X.chunks[1:])
    if X.shape[0] == 0:
        raise ValueError("X has no rows.")
    return X


def check_lazy_weight(sample_weight: Any, X: Any) -> Any:
    """Return weights as a Dask array in the chunks of ``X``, which are known."""
    da = import_dask_array()
    if is_dask(sample_weight):
        if hasattr(sample_weight, "to_dask_array"):
            sample_weight = sample_weight.to_dask_array()
        weights = counted(sample_weight)
    else:
        weights = np.asarray(sample_weight, dtype=np.float64)
        if weights.ndim == 0:
            weights = np.full(X.shape[0], float(weights))
        weights = da.from_array(weights, chunks=-1)
    if weights.shape != (X.shape[0],):
        raise ValueError(
            f"sample_weight.shape={weights.shape} must be ({X.shape[0]},): one weight per sample."
        )
    return weights.astype(np.float64).rechunk((X.chunks[0],))


# ---- answers -------------------------------------------------------------------------------------


def predict(X: Any, centers: NDArray[Any], frame: Frame) -> Any:
    """Return the closest centre of every sample, a lazy Dask array."""
    given = {"centers": centers, "frame": frame}
    return X.map_blocks(_predict_chunk, drop_axis=1, meta=np.empty(0, np.int32), **given)


def transform(X: Any, centers: NDArray[Any], frame: Frame) -> Any:
    """Return the distances of all samples to all centres, a lazy Dask array."""
    given = {"centers": centers, "frame": frame}
    chunks, meta = (X.chunks[0], (len(centers),)), np.empty((0, 0), X.dtype)
    return X.map_blocks(_transform_chunk, chunks=chunks, meta=meta, **given)


def inertia(X: Any, sample_weight: Any, centers: NDArray[Any], frame: Frame) -> float:
    """Compute the weighted sum of squared distances to the closest centres."""
    from dask import compute, delayed

    weights = None
    if sample_weight is not None:
        X = counted(X)
        weights = check_lazy_weight(sample_weight, X).to_delayed()
    chunks = X.to_delayed()[:, 0]
    weights = [None] * len(chunks) if weights is None else weights
    measure = delayed(_inertia_of_chunk)
    parts = [
        measure(chunk, weight, centers, frame, number)
        for number, (chunk, weight) in enumerate(zip(chunks, weights, strict=True))
    ]
    return math.fsum(compute(*parts))


def _engine(X: NDArray[Any], weights: Any, centers: NDArray[Any], frame: Frame, number: int) -> Any:
    if not is_usable(X).all():
        defect = defect_of("X", X)
        raise ValueError(defect.text(number, defect.row))
    frame = frame_for(X, frame, centers)
    engine = create_engine("cpu", X, weights, frame=frame, searching=False)
    return engine, encode_centers(frame, centers)


def _predict_chunk(
    X: NDArray[Any], centers: NDArray[Any], frame: Frame, block_id: tuple[int, ...] = (0, 0)
) -> NDArray[np.int32]:
    if len(X) == 0:
        return np.empty(0, np.int32)
    engine, encoded = _engine(X, None, centers, frame, block_id[0])
    labels: NDArray[np.int32] = engine.assign(encoded)[0]
    return labels


def _transform_chunk(
    X: NDArray[Any], centers: NDArray[Any], frame: Frame, block_id: tuple[int, ...] = (0, 0)
) -> NDArray[Any]:
    if len(X) == 0:
        return np.empty((0, len(centers)), X.dtype)
    engine, encoded = _engine(X, None, centers, frame, block_id[0])
    distances: NDArray[Any] = engine.distances(encoded).astype(X.dtype)
    return distances


def _inertia_of_chunk(
    X: NDArray[Any], sample_weight: Any, centers: NDArray[Any], frame: Frame, number: int
) -> float:
    if len(X) == 0:
        return 0.0
    engine, encoded = _engine(X, sample_weight, centers, frame, number)
    return float(engine.assign(encoded)[1])
