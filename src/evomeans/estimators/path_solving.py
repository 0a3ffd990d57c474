"""The parameters of a path, checked, and the search itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from evomeans.criteria import Criterion, find_criterion
from evomeans.criteria.base import Searched
from evomeans.engines import Engine, create_engine, is_dask
from evomeans.engines.frame import is_sparse
from evomeans.estimators.parameters import (
    RandomSource,
    check_callables,
    check_int,
    check_optional_int,
    check_real,
    check_strategy,
    check_surroundings,
    check_verbose,
    shown,
)
from evomeans.estimators.searching import prepare_strategy
from evomeans.estimators.solution import (
    EarlyAnswer,
    FinalSolution,
    canonical_solution,
    check_resolved,
    confirmed,
    has_no_time,
    is_line,
    line_individual,
)
from evomeans.path.search import PathOutcome, follow_path, learn
from evomeans.path.state import (
    FRESH,
    Kind,
    PathObserver,
    PathSettings,
    PathState,
    Step,
)
from evomeans.progress import PathDisplay, Printer
from evomeans.search import Individual, StopReason
from evomeans.search.search import Weigh
from evomeans.search.stopping import DeferredInterrupt
from evomeans.storage.checkpoint import PathCheckpoint
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
    max_time : float or None
        For everything; ``settings`` has that of one search.
    settings, engine, n_threads, random_source, checkpoint, observers
        As in :class:`~evomeans.estimators.parameters.Parameters`.
    """

    ks: Sequence[int]
    criteria: tuple[Criterion, ...]
    select: Any
    max_time: float | None
    settings: PathSettings
    engine: str
    n_threads: int
    random_source: RandomSource
    checkpoint: Path | None
    observers: tuple[PathObserver, ...]

    def deadline(self, began: float, seconds_before: float) -> float | None:
        """Return when everything should be done, if a fit that began has been going on before.

        However long that was, criteria get the share of their own.
        """
        if self.max_time is None:
            return None
        assert self.settings.max_time is not None
        left = max(self.max_time - seconds_before, self.max_time - self.settings.max_time)
        return began + left


def check_path_parameters(estimator: Any) -> PathParameters:
    """Check all parameters of HGMeansPath for which no samples are needed."""
    ks = check_k_range(estimator.k_range)
    criteria, select = check_criteria(estimator.criteria, estimator.select, ks)
    settings = check_path_settings(estimator)
    max_time = settings.max_time
    if max_time is not None:
        efforts = sum(getattr(one, "effort", 0.0) for one in criteria)
        settings = replace(settings, max_time=max_time / (1.0 + efforts))
    return PathParameters(
        ks=ks,
        criteria=criteria,
        select=select,
        max_time=max_time,
        settings=settings,
        **check_surroundings(estimator),
        observers=check_path_observers(estimator, ks),
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
        ks = [check_int(f"every number in {name}", k) for k in k_range]
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


def check_most_clusters(ks: Sequence[int], n_samples: int) -> None:
    """Reject more clusters than samples."""
    if ks[-1] > n_samples:
        raise ValueError(
            f"n_samples={n_samples} should be >= {ks[-1]}, the largest number of clusters asked "
            "for. Lower it."
        )


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


def check_path_observers(estimator: Any, ks: Sequence[int]) -> tuple[PathObserver, ...]:
    """Return all that watches the path: the user's observers and the printer of ``verbose``."""
    given, level = check_callables(estimator.observers), check_verbose(estimator.verbose)
    printer = Printer(type(estimator).__name__)
    return (*given, PathDisplay(printer, ks, verbose=level)) if level else given


class PathInterruptedError(Exception):
    """Ctrl-C ended the search of other samples, which a criterion asked for."""


@dataclass(frozen=True)
class PathSearch:
    """Samples, and how paths of them are searched.

    Parameters
    ----------
    parameters : PathParameters
    X, sample_weight
        The samples.
    interrupt : DeferredInterrupt
    """

    parameters: PathParameters
    X: Any
    sample_weight: Any
    interrupt: DeferredInterrupt

    @property
    def is_exact(self) -> bool:
        """Whether there is one feature, so that all is computed and nothing searched."""
        return is_line(self.parameters.engine, self.X)

    def prepare(self, ks: Sequence[int]) -> None:
        """Compile what the search needs, before its clock starts."""
        strategy = None if self.is_exact else self.parameters.settings.strategy
        # Founders from neighbours are merged with the kernels of the crossover.
        merging = strategy is not None
        prepare_strategy(strategy, self.parameters.engine, self.X, ks, merging=merging)

    def open_engine(self) -> Engine:
        """Return an engine that holds the samples."""
        threads = self.parameters.n_threads
        return create_engine(self.parameters.engine, self.X, self.sample_weight, n_jobs=threads)

    def run(self, engine: Engine, state: PathState, **watched: Any) -> StopReason:
        """Search for all numbers of clusters of a state, or compute them if there is one feature.

        What watches it is that of :func:`~evomeans.path.search.follow_path`.
        """
        if self.is_exact:
            return self._solve_line(engine, state, watched.get("observers", ()))
        settings = self.parameters.settings
        return follow_path(engine, state, settings, interrupt=self.interrupt, **watched)

    def _solve_line(
        self, engine: Engine, state: PathState, observers: Sequence[PathObserver]
    ) -> StopReason:
        # Imported here: it loads Numba.
        from evomeans.exact import cluster_line_path

        column = (self.X.toarray() if is_sparse(self.X) else self.X)[:, 0]
        lines = cluster_line_path(column, state.ks, self.sample_weight)
        for k, line in zip(state.ks, lines, strict=True):
            best = line_individual(engine, line)
            state.entries.pop(k, None)
            record = learn(state, Step(Kind.EXACT, k), PathOutcome([best], 0), 0.0, state.seconds)
            for observer in observers:
                observer(record)
        return StopReason.PROVEN_OPTIMAL

    def settle(
        self,
        engine: Engine,
        state: PathState,
        known: Sequence[int],
        reason: StopReason,
        answers: Answers,
    ) -> dict[int, FinalSolution]:
        """Return the answers for the numbers of clusters that have one, and for 1."""
        X, sample_weight, solutions = self.X, self.sample_weight, {}
        for k in sorted({1, *known} & state.entries.keys()):
            best = state.entries[k].best
            solution = answers.settle(best, has_no_time(reason, engine, k))
            solutions[k] = confirmed(solution, best, X, sample_weight, is_line=self.is_exact)
        if not self.is_exact:
            check_resolved(engine, X, sample_weight, solutions[known[-1]])
        return solutions

    def of_others(
        self, X: Any, sample_weight: Any, ks: Sequence[int], entropy: Sequence[int]
    ) -> Searched:
        """Search other samples for a criterion, with the same effort as those of the fit."""
        search = replace(self, X=X, sample_weight=sample_weight)
        state = PathState(sorted({1, *ks}), list(entropy))
        with closing(search.open_engine()) as engine:
            if search.run(engine, state) is StopReason.INTERRUPTED:
                raise PathInterruptedError
            best = {k: entry.best for k, entry in state.entries.items()}
            return Searched(
                {k: one.inertia for k, one in best.items()},
                {k: engine.frame.decode(one.centers) for k, one in best.items()},
            )

    def keeper(self, engine: Engine, ks: Sequence[int]) -> PathCheckpoint | None:
        """Return what keeps the state in a file, if there is to be one."""
        parameters = self.parameters
        if parameters.checkpoint is None or self.is_exact:
            return None
        settings, source = parameters.settings, parameters.random_source
        plain = settings.search(1, FRESH, 1)
        own = {
            name: str(value)
            for name, value in asdict(settings).items()
            if name not in ("strategy", "max_time")
        }
        problem = {
            **describe_problem(engine, self.X, self.sample_weight, 1, plain, ()),
            "n_clusters": ", ".join(map(str, ks)),
            **own,
        }
        return PathCheckpoint(
            parameters.checkpoint,
            problem,
            n_features=self.X.shape[1],
            total_weight=engine.total_weight,
            seed=source if isinstance(source, int) else None,
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

    def settle(self, best: Individual, is_final: bool) -> FinalSolution:
        """Return the solution with the centres of the best individual."""
        early = self._early.get(len(best.centers)) if is_final else None
        known = None if early is None else early.solution_for(best)
        return self._settle(self._engine, best, is_final) if known is None else known

    def _settle(self, engine: Engine, best: Individual, is_final: bool) -> FinalSolution:
        return canonical_solution(engine, best.centers, self._X.dtype, is_final=is_final)


def lazy_columns(columns: Sequence[Any]) -> Any:
    """Put labels side by side; those in Dask stay lazy."""
    if is_dask(columns[0]):
        import dask.array as da

        return da.stack(columns, axis=1)
    return np.stack(columns, axis=1)
