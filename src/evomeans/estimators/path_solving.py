"""The parameters of a path, checked, and the search itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from evomeans.criteria import Criterion, find_criterion
from evomeans.criteria.base import Searched
from evomeans.engines import Engine, create_engine, is_dask, prepare_kernels
from evomeans.engines.frame import is_sparse
from evomeans.estimators.parameters import (
    RandomSource,
    check_checkpoint,
    check_engine,
    check_int,
    check_optional_int,
    check_random_source,
    check_real,
    check_strategy,
    check_thread_count,
    shown,
)
from evomeans.estimators.solution import (
    EarlyAnswer,
    Solution,
    canonical_solution,
    line_individual,
)
from evomeans.path.search import Outcome, PathKeeper, follow_path, learn
from evomeans.path.state import (
    FRESH,
    Kind,
    PathObserver,
    PathPrinter,
    PathSettings,
    PathState,
    Step,
)
from evomeans.search import Individual, StopReason
from evomeans.search.crossover import MATCHING, merging_crossover
from evomeans.search.plan import needed_abilities
from evomeans.search.steps import Weigh
from evomeans.search.stopping import DeferredInterrupt
from evomeans.storage.path_checkpoint import PathCheckpoint
from evomeans.storage.state_file import describe_problem
from evomeans.typing import FloatArray

Select = str | Criterion | Callable[[Mapping[str, Any]], int] | None


@dataclass(frozen=True)
class PathParameters:
    """The parameters of HGMeansPath as the fit uses them.

    Parameters
    ----------
    ks : sequence of int
        Ascending. It may be a range that is far too long, until it is compared with the samples.
    criteria : tuple of Criterion
        That of ``select`` among them.
    select : Criterion, callable or None
    settings : PathSettings
    engine : str
    n_threads : int
    random_source : int, Generator or RandomState
    checkpoint : Path, optional
    observers : tuple of callables
    """

    ks: Sequence[int]
    criteria: tuple[Criterion, ...]
    select: Any
    settings: PathSettings
    engine: str
    n_threads: int
    random_source: RandomSource
    checkpoint: Path | None
    observers: tuple[PathObserver, ...]


def check_path_parameters(estimator: Any) -> PathParameters:
    """Check all parameters of HGMeansPath for which no samples are needed."""
    ks = check_k_range(estimator.k_range)
    criteria, select = check_criteria(estimator.criteria, estimator.select, ks)
    return PathParameters(
        ks=ks,
        criteria=criteria,
        select=select,
        settings=check_path_settings(estimator),
        engine=check_engine(estimator.engine),
        n_threads=check_thread_count(estimator.n_jobs),
        random_source=check_random_source(estimator.random_state),
        checkpoint=check_checkpoint(estimator.checkpoint),
        observers=check_path_observers(estimator.observers, estimator.verbose),
    )


def check_path_settings(estimator: Any) -> PathSettings:
    """Turn the estimator's parameters into the settings of the search."""
    patience = check_optional_int("n_iter_no_change", estimator.n_iter_no_change)
    if patience is not None and patience < 1:
        raise ValueError(f"n_iter_no_change={patience} must be at least 1, or None.")
    own: dict[str, Any] = {}
    if patience is not None:
        own = {"patience": patience, "patience_per_cluster": 0.0}
    return PathSettings(
        strategy=check_strategy(estimator.strategy),
        confirmations=check_int("confirmations", estimator.confirmations, at_least=0),
        max_offspring=check_int("max_offspring", estimator.max_offspring, at_least=1),
        max_time=check_real("max_time", estimator.max_time),
        **own,
    )


def check_k_range(k_range: Any, name: str = "k_range") -> Sequence[int]:
    """Return numbers of clusters in ascending order.

    A pair is an inclusive range, an int K stands for 2 to K, and everything else is a collection of
    numbers. What is a range stays one, so that a slip of the finger does not fill the memory.
    """
    if isinstance(k_range, Integral) and not isinstance(k_range, bool):
        k_range = (2, k_range)
        if k_range[1] < 2:
            raise ValueError(f"{name}={k_range[1]} must be at least 2; it stands for 2 to {name}.")
    if isinstance(k_range, str) or not isinstance(k_range, Iterable):
        raise TypeError(
            f"{name} must be a pair (first, last), a list of ints or one int, got {shown(k_range)}."
        )
    is_pair = isinstance(k_range, tuple) and len(k_range) == 2
    if isinstance(k_range, range):
        ks: Sequence[int] = k_range if k_range.step > 0 else k_range[::-1]
    else:
        ks = [check_int(f"every number in {name}", _plain(k)) for k in k_range]
    if is_pair:
        if ks[0] > ks[1]:
            raise ValueError(
                f"{name}=({ks[0]}, {ks[1]}) is empty: the first number must not exceed the last."
            )
        ks = range(ks[0], ks[1] + 1)
    if not ks:
        raise ValueError(f"{name} is empty; give at least one number of clusters, as in (2, 20).")
    if not isinstance(ks, range):
        ks = tuple(sorted(set(ks)))
    if ks[0] < 1:
        raise ValueError(f"{name} has {ks[0]}; every number of clusters must be at least 1.")
    return ks


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, np.integer) else value


def check_criteria(
    criteria: Any, select: Any, ks: Sequence[int]
) -> tuple[tuple[Criterion, ...], Any]:
    """Return the criteria to compute, that of ``select`` among them, and ``select`` itself."""
    if criteria is None:
        criteria = ()
    named = [criteria] if isinstance(criteria, str) or hasattr(criteria, "judge") else criteria
    if not isinstance(named, Iterable):
        raise TypeError(f"criteria must be a list of names or criteria, got {shown(criteria)}.")
    found = [find_criterion(one) for one in named]
    names = [one.name for one in found]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"criteria has {twice!r} twice; leave one of them out.")
    if isinstance(select, str) or hasattr(select, "judge"):
        select = next((one for one in found if one.name == select), None) or find_criterion(select)
        if select.name not in names:
            found.append(select)
        if ks[-1] == 1 and select.name not in DEFINED_AT_ONE:
            raise ValueError(
                f"select={select.name!r} is not defined for k=1, the only number in k_range; "
                f"add larger ones, or choose one of {', '.join(DEFINED_AT_ONE)}."
            )
    elif select is not None and not callable(select):
        raise TypeError(
            "select must be the name of a criterion, a callable that takes results_, or None, got "
            f"{shown(select)}."
        )
    return tuple(found), select


DEFINED_AT_ONE = ("bic", "jump")
"""Criteria that have a value for a single cluster, whatever comes after it."""


def check_path_observers(observers: Any, verbose: object) -> tuple[PathObserver, ...]:
    """Return all that watches the path: the user's observers and the printer of ``verbose``."""
    given = () if observers is None else observers
    if callable(given):
        given = (given,)
    if not isinstance(given, list | tuple) or not all(callable(one) for one in given):
        raise TypeError(
            f"observers must be None, a callable or a list of callables, got {shown(observers)}."
        )
    level = int(verbose) if isinstance(verbose, bool) else check_int("verbose", verbose, at_least=0)
    return (*given, PathPrinter(level)) if level else tuple(given)


class PathInterruptedError(Exception):
    """Ctrl-C ended the search of other samples, which a criterion asked for."""


def is_line(engine: str, X: Any) -> bool:
    """Whether the samples have one feature, so that all is computed exactly."""
    return engine == "auto" and X.shape[1] == 1 and not is_dask(X)


def prepare_path(engine: str, X: Any, ks: Sequence[int], settings: PathSettings) -> None:
    """Compile what the search needs, before its clock starts."""
    on_line, strategy = is_line(engine, X), settings.strategy
    crossovers = () if on_line else [one.crossover for one in strategy.crossovers]
    prepare_kernels(
        engine,
        X,
        max(ks),
        frozenset() if on_line else needed_abilities(strategy),
        matching=any(one in MATCHING for one in crossovers),
        # Founders from neighbours are merged with the same kernels.
        merging=not on_line or merging_crossover in crossovers,
        momentum=X.shape[0] >= strategy.momentum_from * min(ks),
    )


def search_path(
    engine: Engine,
    X: Any,
    sample_weight: FloatArray | None,
    state: PathState,
    settings: PathSettings,
    *,
    exactly: bool,
    interrupt: DeferredInterrupt,
    observers: Sequence[PathObserver] = (),
    keeper: PathKeeper | None = None,
    spent: float = 0.0,
    weigh_for: Callable[[int], Weigh | None] = lambda _: None,
) -> StopReason:
    """Search for all numbers of clusters of a state, or compute them if there is one feature."""
    if exactly:
        return _solve_line(engine, X, sample_weight, state, observers)
    return follow_path(
        engine,
        state,
        settings,
        observers=observers,
        interrupt=interrupt,
        keeper=keeper,
        spent=spent,
        weigh_for=weigh_for,
    )


def _solve_line(
    engine: Engine,
    X: Any,
    sample_weight: FloatArray | None,
    state: PathState,
    observers: Sequence[PathObserver],
) -> StopReason:
    # Imported here: it loads Numba.
    from evomeans.exact import cluster_line_path

    column = (X.toarray() if is_sparse(X) else X)[:, 0]
    for k, line in zip(state.ks, cluster_line_path(column, state.ks, sample_weight), strict=True):
        best = line_individual(engine, line)
        step = Step(Kind.EXACT, k)
        state.entries.pop(k, None)
        record = learn(state, step, Outcome([best], 0), 0.0, state.seconds)
        for observer in observers:
            observer(record)
    return StopReason.PROVEN_OPTIMAL


def search_others(
    X: Any,
    sample_weight: FloatArray | None,
    ks: Sequence[int],
    entropy: Sequence[int],
    engine_name: str,
    n_threads: int,
    settings: PathSettings,
    interrupt: DeferredInterrupt,
) -> Searched:
    """Search other samples for a criterion, with the same effort as those of the fit."""
    state = PathState(sorted({1, *ks}), list(entropy))
    with closing(create_engine(engine_name, X, sample_weight, n_jobs=n_threads)) as engine:
        reason = search_path(
            engine,
            X,
            sample_weight,
            state,
            settings,
            exactly=is_line(engine_name, X),
            interrupt=interrupt,
        )
        if reason is StopReason.INTERRUPTED:
            raise PathInterruptedError
        best = {k: entry.best for k, entry in state.entries.items()}
        return Searched(
            {k: one.inertia for k, one in best.items()},
            {k: engine.frame.decode(one.centers) for k, one in best.items()},
        )


class Answers:
    """Labels the samples for the solutions of a path; once only where time is up.

    Parameters
    ----------
    engine : Engine
    X, sample_weight
        The samples.
    """

    def __init__(self, engine: Engine, X: Any, sample_weight: FloatArray | None) -> None:
        self._engine = engine
        self._X = X
        self._weights = sample_weight
        self._early: dict[int, EarlyAnswer] = {}

    def weigh_for(self, k: int) -> Weigh | None:
        """Return what weighs the clusters of a search that has to end before K-means has."""
        if is_dask(self._X):
            return None
        self._early[k] = EarlyAnswer(self._engine, self._settle, self._weights)
        return self._early[k].weigh

    def settle(self, best: Individual, is_final: bool) -> Solution:
        """Return the solution with the centres of the best individual."""
        early = self._early.get(len(best.centers)) if is_final else None
        known = None if early is None else early.solution_for(best)
        return self._settle(self._engine, best, is_final) if known is None else known

    def _settle(self, engine: Engine, best: Individual, is_final: bool) -> Solution:
        return canonical_solution(engine, best.centers, self._X.dtype, is_final=is_final)


def lazy_columns(columns: Sequence[Any]) -> Any:
    """Put labels side by side; those in Dask stay lazy."""
    if is_dask(columns[0]):
        import dask.array as da

        return da.stack(columns, axis=1)
    return np.stack(columns, axis=1)


def keeper_for(
    parameters: PathParameters,
    engine: Engine,
    X: Any,
    sample_weight: FloatArray | None,
    ks: list[int],
) -> PathCheckpoint | None:
    """Return what keeps the state in a file, if there is to be one."""
    if parameters.checkpoint is None:
        return None
    settings, source = parameters.settings, parameters.random_source
    plain = settings.search(1, FRESH, 1)
    own = {
        name: str(value)
        for name, value in asdict(settings).items()
        if name not in ("strategy", "max_time")
    }
    problem = {
        **describe_problem(engine, X, sample_weight, 1, plain, ()),
        "n_clusters": ", ".join(map(str, ks)),
        **own,
    }
    seed = source if isinstance(source, int) else None
    return PathCheckpoint(
        parameters.checkpoint,
        problem,
        n_features=X.shape[1],
        total_weight=engine.total_weight,
        seed=seed,
    )
