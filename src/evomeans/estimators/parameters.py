"""The parameters of the estimators, checked for type and translated; no estimator is changed.

Wrong types raise TypeError, wrong values ValueError. The ranges of the limits of a search belong to
:class:`~evomeans.search.SearchSettings`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import wraps
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from joblib import cpu_count
from sklearn.utils import check_random_state
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads

from evomeans.engines import ENGINE_NAMES, is_dask
from evomeans.engines.frame import is_sparse
from evomeans.progress import Printer, SearchDisplay
from evomeans.search import STRATEGIES, SearchSettings, Strategy

T = TypeVar("T")
RandomSource = int | np.random.Generator | np.random.RandomState

# More is a slip, or a hostile model file.
MOST_THREADS = 4096
DENSE_ENGINES = ("gpu", "dask", "reference")
DEFAULT_CERTAINTY = 0.95

# What HGMeans does instead of what these set in sklearn.cluster.KMeans.
KMEANS_PARAMETERS = {
    "n_init": "It searches with a population instead of restarts. Leave it out; max_offspring, "
    "max_time and HGMeans.fast bound the search.",
    "max_iter": "Every run of K-means continues until nothing changes any more. Leave it out; "
    "max_offspring limits the number of runs.",
    "tol": "Every run of K-means continues until nothing changes any more. Leave it out.",
    "copy_x": "It never changes X. Leave it out.",
    "algorithm": "Every engine computes the steps of Lloyd's algorithm exactly. Leave it out.",
}


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """Where and from what a search runs."""

    engine: str
    n_threads: int
    random_source: RandomSource
    checkpoint: Path | None
    # Those of the user, and the display of ``verbose``.
    observers: tuple[Any, ...]

    @property
    def seed(self) -> int | None:
        """The seed, if one was given."""
        return self.random_source if isinstance(self.random_source, int) else None


@dataclass(frozen=True, kw_only=True)
class Parameters(Surroundings):
    """The parameters of HGMeans as the fit uses them."""

    n_clusters: int
    settings: SearchSettings


def check_surroundings(estimator: Any, display: Any, *displayed: Any) -> dict[str, Any]:
    """Check where and from what a search runs; return it by the names that Surroundings have.

    The class of the ``display`` that ``verbose`` may ask for is made for what is ``displayed``.
    """
    observers = check_callables(estimator.observers)
    if level := check_verbose(estimator.verbose):
        printer = Printer(type(estimator).__name__)
        observers = (*observers, display(printer, *displayed, verbose=level))
    return {
        "engine": check_engine(estimator.engine),
        "n_threads": check_thread_count(estimator.n_jobs),
        "random_source": check_random_source(estimator.random_state),
        "checkpoint": check_checkpoint(estimator.checkpoint),
        "observers": observers,
    }


def check_parameters(estimator: Any) -> Parameters:
    """Check all parameters of HGMeans for which no samples are needed."""
    n_clusters = check_int("n_clusters", estimator.n_clusters, at_least=1)
    if not isinstance(estimator.warm_start, bool | np.bool_):
        raise TypeError(f"warm_start must be True or False, got {shown(estimator.warm_start)}.")
    settings = check_search_settings(estimator)
    surroundings = check_surroundings(estimator, SearchDisplay, settings, n_clusters)
    return Parameters(n_clusters=n_clusters, settings=settings, **surroundings)


def check_search_settings(estimator: Any) -> SearchSettings:
    """Turn the estimator's parameters into the settings of the search."""
    if estimator.certainty is None:
        raise TypeError("certainty must be a number between 0 and 1, got None.")
    try:
        return SearchSettings(
            min_population=check_int("min_population", estimator.min_population),
            max_population=check_int("max_population", estimator.max_population),
            max_offspring=check_int("max_offspring", estimator.max_offspring),
            patience=check_optional_int("n_iter_no_change", estimator.n_iter_no_change),
            max_time=check_real("max_time", estimator.max_time),
            target_inertia=check_real("target_inertia", estimator.target_inertia),
            certainty=check_real("certainty", estimator.certainty) or 0.0,
            subsample=check_subsample(estimator.subsample, estimator.n_clusters),
            strategy=check_strategy(estimator.strategy),
        )
    except ValueError as error:
        # The one limit that has another name in the search.
        raise ValueError(str(error).replace("patience=", "n_iter_no_change=")) from None


def explaining_kmeans_parameters(kind: type[T]) -> type[T]:
    """Let a class say what to do instead of setting a parameter that only KMeans has."""
    init: Callable[..., None] = kind.__init__

    @wraps(init)
    def explain(*args: Any, **given: Any) -> None:
        for name in KMEANS_PARAMETERS.keys() & given.keys():
            raise TypeError(f"HGMeans does not have KMeans' {name}. {KMEANS_PARAMETERS[name]}")
        init(*args, **given)

    kind.__init__ = explain  # type: ignore[method-assign]
    return kind


def check_strategy(strategy: object) -> Strategy:
    """Return the strategy of this name, or the one that was passed in."""
    if isinstance(strategy, Strategy):
        if STRATEGIES.get(strategy.name, strategy) != strategy:
            # Checkpoints tell searches apart by the name.
            raise ValueError(f"strategy has the name {strategy.name!r}; choose a name of its own.")
        return strategy
    if not isinstance(strategy, str):
        names = _listed(STRATEGIES)
        raise TypeError(f"strategy must be a Strategy or one of {names}, got {shown(strategy)}.")
    if strategy not in STRATEGIES:
        hint = " The fast setting is HGMeans.fast(n_clusters)." if strategy == "fast" else ""
        raise ValueError(f"strategy={strategy!r} must be one of {_listed(STRATEGIES)}.{hint}")
    return STRATEGIES[strategy]


def check_int(name: str, value: object, *, at_least: int | None = None) -> int:
    """Return ``value`` as an int; booleans and floats are refused."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an int, got {shown(value)}.")
    if at_least is not None and value < at_least:
        raise ValueError(f"{name}={value} must be at least {at_least}.")
    return int(value)


def check_optional_int(name: str, value: object) -> int | None:
    """Return ``value`` as an int, or None."""
    return None if value is None else check_int(name, value)


def check_subsample(subsample: object, n_clusters: int) -> int | str | None:
    """Return how many rows the smallest sample should have, "auto", or None for no sample."""
    if subsample is None:
        return None
    if isinstance(subsample, str):
        if subsample != "auto":
            raise ValueError(f"subsample={subsample!r} must be 'auto', a number of rows, or None.")
        return subsample
    size = check_int("subsample", subsample)
    if size < 2 * int(n_clusters):
        raise ValueError(
            f"subsample={size} must be at least twice n_clusters={n_clusters}. Some hundred rows "
            "for each cluster are a good choice."
        )
    return size


def check_real(name: str, value: object) -> float | None:
    """Return a number as a float, or None."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number or None, got {shown(value)}.")
    return float(value)


def shown(value: object) -> str:
    """Return a value and its type as errors show them."""
    text = repr(value)
    if len(text) > 60:
        text = f"{text[:57]}..."
    return f"{text} of type {type(value).__name__}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in names)


def check_engine(name: object, among: Sequence[str] = ENGINE_NAMES) -> str:
    """Return the name of an engine."""
    if not isinstance(name, str):
        raise TypeError(f"engine must be one of {_listed(among)}, got {shown(name)}.")
    if name not in among:
        problem = "cannot be used here" if name in ENGINE_NAMES else "is unknown"
        raise ValueError(f"engine={name!r} {problem}; it must be one of {_listed(among)}.")
    return name


def check_engine_holds(name: str, X: Any) -> None:
    """Reject samples of a kind that the engine cannot hold."""
    if name in DENSE_ENGINES and is_sparse(X):
        raise ValueError(
            f"engine={name!r} takes dense X only, got a sparse matrix. "
            "Choose engine='cpu' or engine='auto'."
        )
    if name not in ("auto", "dask") and is_dask(X):
        raise ValueError(
            f"engine={name!r} cannot hold a Dask collection. "
            "Choose engine='dask' or engine='auto', or pass X.compute()."
        )


def check_thread_count(n_jobs: object) -> int:
    """Return the number of threads: −1 means all cores, −2 all but one.

    None means as many as scikit-learn's KMeans would use: one per core that the process may use, as
    far as cgroups, ``OMP_NUM_THREADS`` and joblib, for its workers, allow it.
    """
    if n_jobs is None:
        # Private to scikit-learn, but nothing public follows threadpoolctl's limits at once.
        return int(_openmp_effective_n_threads())
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral):
        raise TypeError(f"n_jobs must be an int or None, got {shown(n_jobs)}.")
    count = int(n_jobs)
    if count == 0:
        raise ValueError("n_jobs=0 must be positive, -1 for all cores, or None.")
    if abs(count) > MOST_THREADS:
        raise ValueError(f"n_jobs={count} must not exceed {MOST_THREADS}.")
    return count if count > 0 else max(1, cpu_count() + 1 + count)


def check_random_source(random_state: Any) -> RandomSource:
    """Return what randomness comes from, untouched: for None NumPy's global state."""
    if isinstance(random_state, np.random.Generator | np.random.RandomState):
        return random_state
    if isinstance(random_state, Integral) and not isinstance(random_state, bool):
        if random_state < 0:
            raise ValueError(f"random_state={random_state} must not be negative.")
        return int(random_state)
    if not (random_state is None or random_state is np.random):
        raise TypeError(
            "random_state must be None, an int, a numpy.random.Generator or a "
            f"numpy.random.RandomState, got {shown(random_state)}."
        )
    legacy: np.random.RandomState = check_random_state(None)
    return legacy


def generator_from(source: RandomSource) -> np.random.Generator:
    """Return the generator of all randomness of a fit; an instance is advanced by every call."""
    if isinstance(source, np.random.RandomState):
        return np.random.default_rng(source.randint(2**32, size=4, dtype=np.uint32))
    return np.random.default_rng(source)


def check_checkpoint(checkpoint: object) -> Path | None:
    """Return the path of the checkpoint, None if there is to be none."""
    if checkpoint is None:
        return None
    text = os.fspath(checkpoint) if isinstance(checkpoint, str | os.PathLike) else None
    # Paths may also be bytes.
    if not isinstance(text, str):
        raise TypeError(f"checkpoint must be a path or None, got {shown(checkpoint)}.")
    if not text or "\0" in text:
        raise ValueError(f"checkpoint={text!r} must be the path of a file, or None.")
    return Path(text)


def check_callables(observers: Any) -> tuple[Any, ...]:
    """Return the user's observers."""
    single = (observers,) if callable(observers) else observers
    given = () if observers is None else single
    if not isinstance(given, list | tuple) or not all(callable(one) for one in given):
        raise TypeError(
            f"observers must be None, a callable or a list of callables, got {shown(observers)}."
        )
    return tuple(given)


def check_verbose(verbose: object) -> int:
    """Return how much to print; True means 1."""
    return int(verbose) if isinstance(verbose, bool) else check_int("verbose", verbose, at_least=0)
