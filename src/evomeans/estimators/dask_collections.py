"""Samples that Dask holds: checked without being looked at, and answers that are computed later."""

from __future__ import annotations

import logging
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from evomeans.engines import create_engine, is_dask
from evomeans.engines.dask.blocks import (
    check_total_weight,
    defect_of,
    is_usable,
    summarize,
)
from evomeans.engines.dask.sources import as_dask_array, import_dask_array
from evomeans.engines.frame import Frame, is_sparse
from evomeans.estimators.solution import encode_centers, frame_for
from evomeans.estimators.validation import check_sample_weight

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
    is_tensor = type(X).__module__.partition(".")[0] == "torch"
    return is_array and not (isinstance(X, np.ndarray) or is_sparse(X) or is_tensor)


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
    validate_data(estimator, np.empty((0, X.shape[1])), reset=reset, skip_check_array=True)
    X = as_dask_array(X)
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    return counted(X) if reset else X


def frame_to_array(frame: Any) -> Any:
    """Return a Dask dataframe as an array with chunks of known sizes."""
    return counted(_of_frame(frame))


def _of_frame(frame: Any) -> Any:
    kinds = [_numeric_type(kind) for kind in frame._meta.dtypes]
    wrong = [str(name) for name, kind in zip(frame.columns, kinds, strict=True) if kind is None]
    if wrong:
        raise ValueError(f"X must hold real numbers only, but has other columns: {wrong[:5]}.")
    if not kinds:
        raise ValueError("X has no columns; at least one is needed.")
    narrow = all(kind == np.float32 for kind in kinds)
    return frame.astype(np.float32 if narrow else np.float64).to_dask_array()


def _numeric_type(kind: Any) -> np.dtype[Any] | None:
    """Return the type of a column, or of an array, in NumPy; None if it does not hold numbers."""
    kind = getattr(kind, "numpy_dtype", kind)
    return kind if isinstance(kind, np.dtype) and kind.kind in "fiub" else None


def counted(X: Any, name: str = "X") -> Any:
    """Count the rows of every chunk, if that is not known."""
    if not any(math.isnan(rows) for rows in X.chunks[0]):
        return X
    log.warning(
        "%s has chunks of unknown size: their rows are counted, in a pass over the data.", name
    )
    from dask import compute, delayed

    chunks = X.to_delayed()[:, 0] if X.ndim == 2 else X.to_delayed()
    counts = compute(*map(delayed(len), chunks))
    X = X.copy()
    X._chunks = (tuple(map(int, counts)), *X.chunks[1:])
    if X.shape[0] == 0:
        raise ValueError(f"{name} has no rows.")
    return X


def check_lazy_weight(sample_weight: Any, X: Any) -> Any:
    """Return weights as a Dask array in the chunks of ``X``, which are known."""
    da = import_dask_array()
    n_samples, chunks = X.shape[0], (X.chunks[0],)
    if is_dask(sample_weight):
        return _lazy_weights(sample_weight, n_samples).rechunk(chunks)
    if np.ndim(sample_weight) == 0:
        checked: Any = check_sample_weight(sample_weight, 1)
        return da.full(n_samples, checked[0], chunks=chunks)
    # Cut up here: every block gets its own weights, not all of them.
    return da.from_array(check_sample_weight(sample_weight, n_samples), chunks=chunks)


def _lazy_weights(sample_weight: Any, n_samples: int) -> Any:
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
    if _numeric_type(sample_weight.dtype) is None:
        raise ValueError(f"sample_weight must hold real numbers, got dtype={sample_weight.dtype}.")
    weights = sample_weight.astype(np.float64)
    weights = counted(weights.to_dask_array() if is_frame else weights, "sample_weight")
    if weights.shape != (n_samples,):
        raise ValueError(
            f"sample_weight.shape={weights.shape} must be ({n_samples},): one weight per sample."
        )
    return weights


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
    results = compute(*parts)
    if sample_weight is not None:
        check_total_weight(sum(weight for _, weight in results))
    return math.fsum(inertia for inertia, _ in results)


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
) -> tuple[float, float]:
    """Return inertia and weight."""
    summary = summarize(X, sample_weight)
    if summary.defect is not None:
        raise ValueError(summary.defect.text(number, summary.defect.row))
    if summary.weight == 0.0 or not math.isfinite(summary.weight):
        return 0.0, summary.weight
    engine, encoded = _engine(X, sample_weight, centers, frame, number)
    return float(engine.assign(encoded)[1]), summary.weight
