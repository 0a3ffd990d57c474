"""Which samples, weights and initial centres users may pass; ``parameters.py`` checks the rest.

The values in Dask collections are checked by the engine that reads them.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.utils import assert_all_finite, check_array
from sklearn.utils.validation import validate_data

from evomeans.engines import is_dask
from evomeans.engines.frame import LARGEST_VALUE, OVERFLOW, check_total_weight, is_sparse
from evomeans.engines.free_memory import bytes_of_samples, free_memory
from evomeans.engines.workers import extremes
from evomeans.estimators.parameters import (
    check_engine,
    check_engine_holds,
    check_thread_count,
    shown,
)
from evomeans.sparse import as_csr
from evomeans.typing import FloatArray


def exceeds_memory(X: Any) -> bool:
    """Whether ``X`` is a memory map that the CPU engine cannot hold in the memory that is free."""
    if not isinstance(X, np.memmap) or X.ndim != 2:
        return False
    n_samples, n_features = X.shape
    free = free_memory()
    return free is not None and bytes_of_samples(n_samples, n_features, X.dtype.itemsize) > free


# The fitted attributes about columns that scikit-learn wants remembered: their number, and their
# names if all are strings.
FEATURES = ("n_features_in_", "feature_names_in_")
Features = dict[str, Any]


# Samples and weights


def check_samples(estimator: Any, X: Any) -> tuple[Any, Features]:
    """Return the samples to fit as an array or canonical CSR matrix, and their features."""
    # validate_data writes to the estimator, which must stay as it was if anything is wrong.
    probe = copy.copy(estimator)
    X = _validated(probe, X, reset=True)
    return X, features_of(probe)


def features_of(estimator: Any) -> Features:
    """Return what an estimator knows of its columns, by the names of its attributes."""
    return {name: getattr(estimator, name) for name in FEATURES if hasattr(estimator, name)}


def check_new_samples(estimator: Any, X: Any) -> Any:
    """Return samples for a fitted estimator, in a precision that keeps every digit of the fit."""
    X = _validated(estimator, X, reset=False)
    return X.astype(np.result_type(X.dtype, estimator._centers.dtype), copy=False)


def _validated(estimator: Any, X: Any, *, reset: bool) -> Any:
    engine = check_engine(estimator.engine)
    check_engine_holds(engine, X)
    in_file = engine == "auto" and exceeds_memory(X)
    if not is_dask(X) and engine != "dask" and not in_file:
        return _in_memory(estimator, X, reset=reset)
    # scikit-learn would pull all of it into memory.
    from evomeans.engines.dask.blocks import as_dask_array

    if is_read_by_dask(X):
        return check_lazy_samples(estimator, X, reset=reset)
    return as_dask_array(_in_memory(estimator, X, reset=reset))


def _in_memory(estimator: Any, X: Any, *, reset: bool) -> Any:
    with _naming("X"):
        # In C order, since sums over samples round differently in another one.
        X = validate_data(
            estimator,
            as_csr(X) if is_sparse(X) else from_torch(X),
            reset=reset,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order="C",
            # The extremes tell it of the samples of a fit.
            ensure_all_finite=not reset,
        )
        # The sizes of new samples are checked when they are brought into the frame of the fit.
        if reset:
            _check_values(estimator, X)
    return _canonical_csr(X) if is_sparse(X) else X


def _check_values(estimator: Any, X: Any) -> None:
    """Refuse values that are not finite, or too large, in one pass by several threads."""
    values = (X.data if is_sparse(X) else X).reshape(-1)
    if not len(values):
        return
    low, high = map(float, extremes(values, check_thread_count(estimator.n_jobs)))
    if not math.isfinite(high - low):
        assert_all_finite(X, estimator_name=type(estimator).__name__, input_name="X")
        # It says nothing if scikit-learn is to assume that all values are finite.
        raise ValueError("X contains NaN or infinity. Remove or replace such values.")
    if (largest := max(high, -low)) > LARGEST_VALUE:
        raise ValueError(f"X contains a value of size {largest:.3g}; {OVERFLOW}")


def from_torch(values: Any) -> Any:
    """Return a tensor of PyTorch, from whatever device, as an array; all else as it is."""
    # Asked this way it need not be imported.
    if type(values).__module__.partition(".")[0] != "torch" or not hasattr(values, "detach"):
        return values
    if str(values.layout) != "torch.strided":
        raise TypeError(f"a torch tensor must be dense, got one with layout {values.layout}.")
    tensor = values.detach().cpu()
    return (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()


def _canonical_csr(X: Any) -> Any:
    """Return CSR with sorted indices, no duplicates, and 32-bit indices wherever these suffice."""
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if X.indices.dtype != np.int32 and max(X.nnz, *X.shape) <= np.iinfo(np.int32).max:
        # Kernels are compiled anew for every type of index.
        narrow = X.indices.astype(np.int32), X.indptr.astype(np.int32)
        X = type(X)((X.data, *narrow), shape=X.shape)
    return X


def check_cluster_count(n_clusters: int, n_samples: int) -> None:
    """Reject more clusters than samples."""
    if n_samples < n_clusters:
        raise ValueError(f"n_samples={n_samples} should be >= n_clusters={n_clusters}.")


def check_most_clusters(ks: Sequence[int], n_samples: int) -> None:
    """Reject more clusters than samples."""
    if ks[-1] > n_samples:
        raise ValueError(
            f"n_samples={n_samples} should be >= {ks[-1]}, the largest number of clusters asked "
            "for. Lower it."
        )


def check_sample_weight(sample_weight: Any, n_samples: int, X: Any = None) -> Any:
    """Return weights as float64, or None for equal ones; for a Dask array ``X`` as one of Dask."""
    if sample_weight is None:
        return None
    is_lazy = is_dask(X) and is_dask(sample_weight)
    if is_lazy:
        weights = check_lazy_weight(sample_weight)
    else:
        weights = _finite_array("sample_weight", sample_weight)
    if weights.shape not in ((), (n_samples,)):
        raise ValueError(
            f"sample_weight.shape={weights.shape} must be ({n_samples},): one weight per sample."
        )
    # The values of lazy weights are checked by block, together with those of the samples.
    if not is_lazy:
        if weights.min() < 0:
            raise ValueError(f"sample_weight must not be negative, got {weights.min()}.")
        with np.errstate(over="ignore"):
            check_total_weight(weights.sum() if weights.ndim else weights * n_samples)
    if is_dask(X):
        from evomeans.engines.dask.blocks import in_chunks

        return in_chunks(X, weights)
    return np.ascontiguousarray(weights) if weights.ndim else np.full(n_samples, float(weights))


def _finite_array(name: str, values: Any) -> Any:
    with _naming(name):
        return check_array(
            from_torch(values),
            dtype=np.float64,
            ensure_2d=False,
            allow_nd=True,
            ensure_min_samples=0,
            ensure_min_features=0,
            input_name=name,
        )


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Put the name of the argument into errors of scikit-learn that lack it."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if name in str(error).split():
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"Invalid {name}: {error}") from error


# Solutions to start from


def check_init(init: Any, n_clusters: int, n_features: int) -> list[FloatArray]:
    """Return the given solutions, a list of (k, d) arrays in data units."""
    if init is None:
        return []
    if isinstance(init, str) or callable(init):
        raise TypeError(
            f"init must be None or an array of centres, got {shown(init)}. Leave it out: half of "
            "the first solutions begin with k-means++ by themselves and the others with random "
            "samples (all of them with strategy='paper')."
        )
    stack = _finite_array("init", init)
    expected = (n_clusters, n_features)
    if stack.ndim not in (2, 3) or stack.shape[-2:] != expected or len(stack) == 0:
        raise ValueError(
            f"init.shape={stack.shape} must be (n_clusters, n_features)={expected}, or "
            f"(n_solutions, n_clusters, n_features)=(p, {n_clusters}, {n_features})."
        )
    return [stack] if stack.ndim == 2 else list(stack)


def check_warm_start(population: Sequence[Any], n_clusters: int, n_features: int) -> None:
    """Reject a population of another shape than the solutions sought."""
    shape = population[0].centers.shape
    if shape != (n_clusters, n_features):
        raise ValueError(
            f"warm_start=True continues from solutions of n_clusters={shape[0]} centres with "
            f"n_features={shape[1]}, but n_clusters={n_clusters} and n_features={n_features} are "
            "asked for. Set warm_start=False to begin anew."
        )


# Samples in Dask, whose values are not looked at


def is_read_by_dask(X: Any) -> bool:
    """Whether only Dask reads ``X``: its collections, memory maps, arrays kept in files."""
    if is_dask(X) or isinstance(X, np.memmap):
        return True
    is_array = all(hasattr(X, name) for name in ("shape", "dtype", "ndim", "__getitem__"))
    is_tensor = type(X).__module__.partition(".")[0] == "torch"
    return is_array and not (isinstance(X, np.ndarray) or is_sparse(X) or is_tensor)


def check_lazy_samples(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Return samples as a Dask array of float32 or float64; no value is looked at.

    With ``reset``, the estimator learns the features, and chunks of unknown size are counted.
    """
    from evomeans.engines.dask import blocks

    da = blocks.import_dask_array()
    meta = getattr(X, "_meta", None)
    if hasattr(meta, "columns"):
        validate_data(estimator, meta, reset=reset, skip_check_array=True)
        X = blocks.frame_to_array(X)
    else:
        _check_lazy_array(X, da, meta)
        validate_data(estimator, np.empty((0, X.shape[1])), reset=reset, skip_check_array=True)
        X = blocks.as_dask_array(X)
        X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    return blocks.counted(X) if reset else X


def _check_lazy_array(X: Any, da: Any, meta: Any) -> None:
    if is_dask(X) and not isinstance(X, da.Array):
        raise TypeError(f"X must be a Dask array or a Dask dataframe, got a {type(X).__name__}.")
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
    from evomeans.engines.dask import blocks

    da = blocks.import_dask_array()
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
    if blocks.numeric_type(sample_weight.dtype) is None:
        raise ValueError(f"sample_weight must hold real numbers, got dtype={sample_weight.dtype}.")
    weights = sample_weight.astype(np.float64)
    return blocks.counted(weights.to_dask_array() if is_frame else weights, "sample_weight")
