"""What users may pass: every parameter and array is checked here; Dask's in dask_collections.

An error names the parameter, says what was expected and shows what came. Wrong types raise
TypeError, wrong values ValueError. Nothing here changes the estimator.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import validate_data

from evomeans.engines import ENGINE_NAMES, is_dask
from evomeans.engines.frame import is_sparse
from evomeans.engines.rules import LARGEST_VALUE
from evomeans.engines.values import OVERFLOW, check_total_weight
from evomeans.search import STRATEGIES, SearchSettings, Strategy
from evomeans.search.observers import Observer, ProgressPrinter

FloatArray = NDArray[np.float64]

# More is a slip, or a hostile model file.
MOST_THREADS = 4096
DENSE_ENGINES = ("gpu", "dask", "reference")


@dataclass(frozen=True)
class Features:
    """What scikit-learn wants remembered of the columns of ``X``.

    Parameters
    ----------
    count : int
        Number of columns.
    names : array of str, optional
        Their names, if they have any and all are strings.
    """

    count: int
    names: NDArray[Any] | None


# Parameters


def check_parameters(estimator: Any) -> SearchSettings:
    """Check all parameters of HGMeans for which no samples are needed; return the settings."""
    check_int("n_clusters", estimator.n_clusters, at_least=1)
    check_engine(estimator.engine)
    check_thread_count(estimator.n_jobs)
    check_flag("warm_start", estimator.warm_start)
    check_checkpoint(estimator.checkpoint)
    check_observers(estimator.observers, estimator.verbose)
    seed = estimator.random_state
    sources = (np.random.Generator, np.random.RandomState)
    # A source of randomness is not touched by a mere look at it.
    if not (seed is None or seed is np.random or isinstance(seed, sources)):
        check_generator(seed)
    return check_search_settings(
        min_population=estimator.min_population,
        max_population=estimator.max_population,
        max_iter=estimator.max_iter,
        n_iter_no_change=estimator.n_iter_no_change,
        max_time=estimator.max_time,
        target_inertia=estimator.target_inertia,
        strategy=estimator.strategy,
    )


def check_search_settings(
    *,
    min_population: object,
    max_population: object,
    max_iter: object,
    n_iter_no_change: object,
    max_time: object,
    target_inertia: object,
    strategy: object,
) -> SearchSettings:
    """Turn the estimator's parameters into the settings of the search."""
    smallest = check_int("min_population", min_population, at_least=1)
    largest = check_int("max_population", max_population, at_least=1)
    if smallest > largest:
        raise ValueError(
            f"min_population={smallest} must not be larger than max_population={largest}."
        )
    return SearchSettings(
        min_population=smallest,
        max_population=largest,
        max_offspring=check_int("max_iter", max_iter, at_least=1),
        patience=check_int("n_iter_no_change", n_iter_no_change, at_least=1),
        max_time=None if max_time is None else check_seconds("max_time", max_time),
        target_inertia=(
            None if target_inertia is None else check_inertia("target_inertia", target_inertia)
        ),
        strategy=check_strategy(strategy),
    )


def check_strategy(name: object) -> Strategy:
    """Return the strategy of this name."""
    if not isinstance(name, str) or name not in STRATEGIES:
        names = " or ".join(repr(known) for known in STRATEGIES)
        raise ValueError(f"strategy={_shown(name)} must be {names}.")
    return STRATEGIES[name]


def check_int(name: str, value: object, *, at_least: int) -> int:
    """Return ``value`` as an int; booleans and floats are none."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an int, got {_shown(value)}.")
    if value < at_least:
        raise ValueError(f"{name}={value} must be at least {at_least}.")
    return int(value)


def check_flag(name: str, value: object) -> bool:
    """Return a boolean, Python's or NumPy's."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {_shown(value)}.")
    return bool(value)


def check_seconds(name: str, value: object) -> float:
    """Return a positive number as a float."""
    number = _real(name, value, "a positive number of seconds or None")
    if not number > 0:
        raise ValueError(f"{name}={value} must be a positive number of seconds, or None.")
    return number


def check_inertia(name: str, value: object) -> float:
    """Return a finite number that is not negative as a float."""
    number = _real(name, value, "a number or None")
    if not 0 <= number < np.inf:
        raise ValueError(f"{name}={value} must be finite and not negative, or None.")
    return number


def _real(name: str, value: object, expected: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be {expected}, got {_shown(value)}.")
    return float(value)


def _shown(value: object) -> str:
    text = repr(value)
    if len(text) > 60:
        text = f"{text[:57]}..."
    return f"{text} of type {type(value).__name__}"


def check_engine(name: object, X: Any = None, among: Sequence[str] = ENGINE_NAMES) -> str:
    """Return the name of an engine that will do and, if ``X`` is given, can hold it."""
    if not isinstance(name, str):
        raise TypeError(f"engine must be one of {_listed(among)}, got {_shown(name)}.")
    if name not in among:
        problem = "cannot be used here" if name in ENGINE_NAMES else "is unknown"
        raise ValueError(f"engine={name!r} {problem}; it must be one of {_listed(among)}.")
    if name in DENSE_ENGINES and is_sparse(X):
        raise ValueError(
            f"engine={name!r} takes dense X only, got a sparse matrix. "
            "Choose engine='cpu' or engine='auto'."
        )
    if is_dask(X) and "dask" not in among:
        raise ValueError(
            "X is a Dask collection, which only HGMeans with engine='dask' can hold. "
            "Pass X.compute() if it fits into memory."
        )
    if name not in ("auto", "dask") and is_dask(X):
        raise ValueError(
            f"engine={name!r} cannot hold a Dask collection. "
            "Choose engine='dask' or engine='auto', or pass X.compute()."
        )
    return name


def _listed(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)


def check_thread_count(n_jobs: object) -> int:
    """Return the number of threads: None means 1, −1 all cores, −2 all but one."""
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral):
        raise TypeError(f"n_jobs must be an int or None, got {_shown(n_jobs)}.")
    count = int(n_jobs)
    if count == 0:
        raise ValueError("n_jobs=0 must be positive, -1 for all cores, or None for one thread.")
    if abs(count) > MOST_THREADS:
        raise ValueError(f"n_jobs={count} must not exceed {MOST_THREADS}.")
    return count if count > 0 else max(1, _core_count() + 1 + count)


def _core_count() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def check_generator(random_state: Any) -> np.random.Generator:
    """Return the generator of all randomness of a fit.

    As everywhere in scikit-learn, None draws from NumPy's global state, an int gives the same
    result in every call, and an instance is advanced by every call.
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, Integral) and not isinstance(random_state, bool):
        if random_state < 0:
            raise ValueError(f"random_state={random_state} must not be negative.")
        return np.random.default_rng(int(random_state))
    is_legacy = isinstance(random_state, np.random.RandomState)
    if not (random_state is None or random_state is np.random or is_legacy):
        raise TypeError(
            "random_state must be None, an int, a numpy.random.Generator or a "
            f"numpy.random.RandomState, got {_shown(random_state)}."
        )
    words = check_random_state(random_state).randint(2**32, size=4, dtype=np.uint32)
    return np.random.default_rng(words)


def check_checkpoint(checkpoint: object) -> Path | None:
    """Return the path of the checkpoint, None if there is to be none."""
    if checkpoint is None:
        return None
    if not isinstance(checkpoint, str | os.PathLike):
        raise TypeError(f"checkpoint must be a path or None, got {_shown(checkpoint)}.")
    text = os.fspath(checkpoint)
    if not isinstance(text, str):
        raise TypeError(f"checkpoint must be a path of text, not bytes, got {_shown(checkpoint)}.")
    if not text or "\0" in text:
        raise ValueError(f"checkpoint={text!r} must be the path of a file, or None.")
    return Path(text)


def check_observers(observers: Any, verbose: object) -> tuple[Observer, ...]:
    """Return all that watches the search: the user's observers and the printer of ``verbose``."""
    given = () if observers is None else observers
    if callable(given):
        given = (given,)
    if not isinstance(given, list | tuple) or not all(callable(one) for one in given):
        raise TypeError(
            f"observers must be None, a callable or a list of callables, got {_shown(observers)}."
        )
    level = int(verbose) if isinstance(verbose, bool) else check_int("verbose", verbose, at_least=0)
    return (*given, ProgressPrinter(level)) if level else tuple(given)


# Samples and weights


def check_samples(estimator: Any, X: Any) -> tuple[Any, Features]:
    """Return the samples to fit as an array or canonical CSR matrix, and their features."""
    # validate_data writes to the estimator, which must stay as it was if anything is wrong.
    probe = copy.copy(estimator)
    X = _validated(probe, X, reset=True)
    return X, Features(probe.n_features_in_, getattr(probe, "feature_names_in_", None))


def check_new_samples(estimator: Any, X: Any) -> Any:
    """Return samples for a fitted estimator, in a precision that keeps every digit of the fit."""
    X = _validated(estimator, X, reset=False)
    return X.astype(np.result_type(X.dtype, estimator.cluster_centers_.dtype), copy=False)


def _validated(estimator: Any, X: Any, *, reset: bool) -> Any:
    if not is_dask(X) and estimator.engine != "dask":
        return _in_memory(estimator, X, reset=reset)
    # scikit-learn would pull all of it into memory.
    check_engine(estimator.engine, X)
    from evomeans.engines.dask.sources import as_dask_array
    from evomeans.estimators.dask_collections import check_lazy_samples, is_read_by_dask

    if is_read_by_dask(X):
        return check_lazy_samples(estimator, X, reset=reset)
    return as_dask_array(_in_memory(estimator, X, reset=reset))


def _in_memory(estimator: Any, X: Any, *, reset: bool) -> Any:
    with _naming("X"):
        # In C order, since sums over samples round differently in another one.
        X = validate_data(
            estimator,
            from_torch(X),
            reset=reset,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order="C",
        )
    values = X.data if is_sparse(X) else X
    largest = max(float(np.max(values, initial=0.0)), -float(np.min(values, initial=0.0)))
    if largest > LARGEST_VALUE:
        raise ValueError(f"X contains a value of size {largest:.3g}; {OVERFLOW}")
    return _canonical_csr(X) if is_sparse(X) else X


def from_torch(values: Any) -> Any:
    """Return a tensor of PyTorch, from whatever device, as an array; all else as it is."""
    # Asked this way nobody has to import it.
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


def check_sample_weight(sample_weight: Any, n_samples: int, X: Any = None) -> Any:
    """Return weights as float64, or None for equal ones; for a Dask array ``X`` as one of Dask."""
    if sample_weight is None:
        return None
    is_lazy = is_dask(X) and is_dask(sample_weight)
    if is_lazy:
        from evomeans.estimators.dask_collections import check_lazy_weight

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
        from evomeans.engines.dask.sources import in_chunks

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
            f"init must be None or an array of centres to start from, got {_shown(init)}. "
            "Without one, HGMeans starts from random samples."
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
            f"warm_start=True goes on from solutions of n_clusters={shape[0]} centres with "
            f"n_features={shape[1]}, but n_clusters={n_clusters} and n_features={n_features} are "
            "asked for. Set warm_start=False to begin anew."
        )
