"""The steps of HGMeansPath: checks of parameters, search, evidence, and the choice of k."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from numbers import Integral
from typing import Any

import numpy as np

from evomeans.criteria import (
    Budget,
    Criterion,
    Evidence,
    SampleSource,
    Searched,
    find_criterion,
)
from evomeans.engines import Engine, is_dask
from evomeans.engines.frame import is_sparse
from evomeans.estimators.parameters import (
    Surroundings,
    check_int,
    check_real,
    check_strategy,
    check_surroundings,
    shown,
)
from evomeans.estimators.searching import prepare_strategy
from evomeans.estimators.solution import (
    EarlyAnswer,
    FinalSolution,
    Task,
    confirmed,
    has_no_time,
    line_individual,
    plain_task,
)
from evomeans.metrics.sums import ClusterSums, cluster_sums
from evomeans.path import (
    FRESH,
    PathObserver,
    PathSettings,
    PathState,
    Step,
    follow_path,
    learn,
)
from evomeans.progress import PathDisplay
from evomeans.search import History, SearchResult, StopReason
from evomeans.search.certainty import path_certainty
from evomeans.search.history import Audience
from evomeans.search.plan import missing_abilities
from evomeans.search.search import Weigh
from evomeans.search.stopping import DeferredInterrupt
from evomeans.storage.checkpoint import PathCheckpoint, describe_problem
from evomeans.typing import FloatArray


@dataclass(frozen=True, kw_only=True)
class PathParameters(Surroundings):
    """The parameters of HGMeansPath as the fit uses them."""

    # Ascending. It may be a range that is far too long, until it is compared with the samples.
    ks: Sequence[int]
    # That of ``select`` among them.
    criteria: tuple[Criterion, ...]
    select: Any
    # For everything; the settings have that of one search.
    max_time: float | None
    settings: PathSettings

    def deadline(self, began: float, seconds_before: float) -> float | None:
        """Return when a fit that began should end; criteria keep their own share of the time."""
        if self.max_time is None:
            return None
        assert self.settings.max_time is not None
        left = max(self.max_time - seconds_before, self.max_time - self.settings.max_time)
        return began + left


def check_path_parameters(estimator: Any) -> PathParameters:
    """Check all parameters of HGMeansPath for which no samples are needed."""
    ks = check_k_range(estimator.k_range)
    criteria, select = check_criteria(estimator.criteria, estimator.select, ks)
    patience: dict[str, Any] = {}
    if (given := estimator.n_iter_no_change) is not None:
        wait = check_int("n_iter_no_change", given, at_least=1)
        patience = {"patience": wait, "patience_per_cluster": 0.0}
    settings = PathSettings(
        strategy=check_strategy(estimator.strategy),
        confirmations=check_int("confirmations", estimator.confirmations, at_least=0),
        max_offspring=check_int("max_offspring", estimator.max_offspring, at_least=1),
        max_time=check_real("max_time", estimator.max_time),
        **patience,
    )
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
        **check_surroundings(estimator, PathDisplay, ks),
    )


def check_k_range(k_range: Any, name: str = "k_range") -> Sequence[int]:
    """Return numbers of clusters in ascending order.

    A pair is an inclusive range, an int K stands for 2 to K, and everything else is a collection of
    numbers. What is a range stays one, so that a slip of the finger does not fill the memory.
    """
    if isinstance(k_range, Integral) and not isinstance(k_range, bool):
        if k_range < 2:
            raise ValueError(f"{name}={k_range} must be at least 2; it stands for 2 to {name}.")
        k_range = (2, k_range)
    if isinstance(k_range, str) or not isinstance(k_range, Iterable):
        raise TypeError(
            f"{name} must be a pair (first, last), a list of ints or one int, got {shown(k_range)}."
        )
    ks: Sequence[int]
    if isinstance(k_range, range):
        ks = k_range if k_range.step > 0 else k_range[::-1]
    else:
        ks = sorted({check_int(f"every number in {name}", k) for k in k_range})
    if isinstance(k_range, tuple) and len(k_range) == 2:
        first, last = map(int, k_range)
        if first > last:
            raise ValueError(
                f"{name}=({first}, {last}) is empty: the first number must not exceed the last."
            )
        ks = range(first, last + 1)
    if not ks:
        raise ValueError(f"{name} is empty; give at least one number of clusters, as in (2, 20).")
    if ks[0] < 1:
        raise ValueError(f"{name} has {ks[0]}; every number of clusters must be at least 1.")
    return ks


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


UNFINISHED = (StopReason.INTERRUPTED, StopReason.MAX_TIME, StopReason.OBSERVER)
DEFINED_AT_ONE = ("bic", "jump")
"""Criteria that have a value for a single cluster, whatever comes after it."""


class PathInterruptedError(Exception):
    """Ctrl-C ended the search of other samples, which a criterion asked for."""


@dataclass(frozen=True)
class PathSearch:
    """Samples, and how paths of them are searched."""

    parameters: PathParameters
    X: Any
    sample_weight: Any
    interrupt: DeferredInterrupt
    # By number of clusters, for searches that had to end before K-means had.
    early: dict[int, EarlyAnswer] = field(default_factory=dict)

    @cached_property
    def task(self) -> Task:
        """The task that HGMeans has with the samples; its engine and its answers serve all k."""
        parameters = self.parameters
        return plain_task(self.X, self.sample_weight, parameters.ks[-1], parameters)

    @property
    def is_exact(self) -> bool:
        """Whether there is one feature, so that all is computed and nothing searched."""
        return self.task.solve is not None

    def prepare(self, ks: Sequence[int]) -> None:
        """Compile what the search needs, before its clock starts."""
        settings = self.parameters.settings
        strategy = None if self.is_exact else settings.strategy
        # Founders from neighbours are merged with the kernels of the crossover.
        prepare_strategy(
            strategy,
            self.parameters.engine,
            self.X,
            ks,
            is_timed=settings.max_time is not None,
            merging=strategy is not None,
        )

    def run(self, engine: Engine, state: PathState, **watched: Any) -> StopReason:
        """Search for all numbers of clusters of a state, or compute them if there is one feature.

        What watches it is that of :func:`~evomeans.path.follow_path`.
        """
        if self.is_exact:
            return self._solve_line(engine, state, watched.get("observers", ()))
        settings = self.parameters.settings
        return follow_path(engine, state, settings, interrupt=self.interrupt, **watched)

    def _solve_line(
        self, engine: Engine, state: PathState, observers: Sequence[PathObserver]
    ) -> StopReason:
        from evomeans.exact import cluster_line_path

        column = (self.X.toarray() if is_sparse(self.X) else self.X)[:, 0]
        lines = cluster_line_path(column, state.ks, self.sample_weight)
        audience = Audience(observers)
        with audience.watching(state):
            for k, line in zip(state.ks, lines, strict=True):
                found = [line_individual(engine, line)]
                state.entries.pop(k, None)
                record = learn(state, Step("exact", k), found, 0, 0.0, state.seconds)
                audience.show(record, is_best=True)
        return StopReason.PROVEN_OPTIMAL

    def weigh_for(self, engine: Engine, k: int) -> Weigh | None:
        """Return what weighs the clusters of a search that has to end before K-means has."""
        if is_dask(self.X):
            return None
        self.early[k] = EarlyAnswer(engine, self.task.settle, self.sample_weight)
        return self.early[k].weigh

    def settle(
        self, engine: Engine, state: PathState, known: Sequence[int], reason: StopReason
    ) -> dict[int, FinalSolution]:
        """Return the answers for the numbers of clusters that have one, and for 1.

        Where time is up, samples that have been labelled already are not labelled again.
        """
        solutions = {}
        for k in sorted({1, *known} & state.entries.keys()):
            best, is_final = state.entries[k].best, has_no_time(reason, engine, k)
            early = self.early[k].solution_for(best) if is_final and k in self.early else None
            solutions[k] = (
                self.task.settle(engine, best, is_final)
                if early is None
                else confirmed(early, best, self.X, self.sample_weight, is_line=False)
            )
        return solutions

    def result_at(
        self, engine: Engine, state: PathState, k: int, reason: StopReason, solution: FinalSolution
    ) -> SearchResult:
        """Return what a search for one number of clusters would have returned."""
        entry, strategy = state.entries[k], self.parameters.settings.strategy
        n_agreeing = entry.n_agreeing(strategy.tolerance)
        if self.is_exact or entry.best.inertia == 0.0:
            is_proven = solution.is_confirmed
            reason = StopReason.PROVEN_OPTIMAL if is_proven else StopReason.PRECISION
        elif n_agreeing > 1:
            reason = StopReason.AGREEMENT
        elif reason not in UNFINISHED:
            reason = StopReason.NO_IMPROVEMENT
        certainty = math.nan
        # One cluster has one solution.
        if k == 1 or reason is StopReason.PROVEN_OPTIMAL:
            certainty = 1.0
        elif strategy.agreement > 1 and entry.up and entry.down:
            certainty = path_certainty(k, n_agreeing)
        return SearchResult(
            best=entry.best,
            population=tuple(entry.members),
            history=History(),
            stop_reason=reason,
            n_offspring=entry.n_solutions,
            n_rediscoveries=n_agreeing - 1 if entry.up else 0,
            certainty=certainty,
            missing_abilities=missing_abilities(strategy, engine.abilities),
            levels=(int(self.X.shape[0]),),
        )

    def of_others(
        self, entropy: Sequence[int], X: Any, sample_weight: Any, ks: Sequence[int], number: int
    ) -> Searched:
        """Search other samples for a criterion, with the same effort as those of the fit."""
        search = replace(self, X=X, sample_weight=sample_weight)
        state = PathState(sorted({1, *ks}), [*entropy, 1, number, X.shape[0]])
        with closing(search.task.open_engine()) as engine:
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
        settings = parameters.settings
        plain = settings.search(1, FRESH, 1)
        own = {name: str(value) for name, value in asdict(settings).items()}
        del own["strategy"], own["max_time"]
        problem = describe_problem(engine, self.X, self.sample_weight, 1, plain, ())
        problem = {**problem, "n_clusters": ", ".join(map(str, ks)), **own}
        return PathCheckpoint(
            parameters.checkpoint,
            problem,
            n_features=self.X.shape[1],
            total_weight=engine.total_weight,
            seed=parameters.seed,
        )


def _sums_in_dask(X: Any, sample_weight: Any, centers: FloatArray) -> ClusterSums:
    """Sum up over the samples of each cluster, each block of Dask where it is."""
    from evomeans.engines.dask.blocks import by_chunk

    parts: list[ClusterSums] = by_chunk(_sums_of_chunk, X, sample_weight, centers)
    return sum(parts[1:], start=parts[0])


def _sums_of_chunk(
    X: Any, weights: FloatArray | None, number: int, centers: FloatArray
) -> ClusterSums:
    own = np.ones(len(X)) if weights is None else np.asarray(weights, np.float64)
    return cluster_sums(np.asarray(X), centers, own)


def collect_evidence(
    search: PathSearch,
    engine: Engine,
    state: PathState,
    solutions: Mapping[int, FinalSolution],
    deadline: float | None,
) -> Evidence:
    """Gather what criteria may look at."""
    ks = sorted(solutions)
    in_dask = partial(_sums_in_dask, search.X, search.sample_weight) if is_dask(search.X) else None
    return Evidence(
        k_values=np.array(ks),
        inertias=np.array([solutions[k].inertia for k in ks]),
        centers={k: np.asarray(solutions[k].centers, np.float64) for k in ks},
        labels=lambda k: solutions[k].labels,
        cluster_weights={k: state.entries[k].best.cluster_weights for k in ks},
        n_samples=engine.total_weight,
        n_features=search.X.shape[1],
        samples=SampleSource(search.X, search.sample_weight, in_dask),
        search=partial(search.of_others, state.entropy),
        seed=state.entropy[0],
        budget=Budget(deadline),
    )


def judge_all(
    parameters: PathParameters, evidence: Evidence, found: Mapping[int, SearchResult]
) -> tuple[dict[str, Any], dict[str, int | None], list[str]]:
    """Return results and suggestions, and the criteria that were interrupted."""
    ks = np.array(list(found))
    places = np.searchsorted(evidence.k_values, ks)
    results: dict[str, Any] = {
        "k": ks,
        "inertia": evidence.inertias[places],
        "n_rediscoveries": np.array([one.n_rediscoveries for one in found.values()]),
        "n_solutions": np.array([one.n_offspring for one in found.values()]),
    }
    suggestions: dict[str, int | None] = {}
    left_out: list[str] = []
    for criterion in parameters.criteria:
        try:
            verdict = criterion.judge(evidence, ks)
        except PathInterruptedError:
            left_out.append(criterion.name)
            continue
        results[criterion.name] = verdict.values[places]
        results |= {name: values[places] for name, values in verdict.extra.items()}
        suggestions[criterion.name] = verdict.choice
    return results, suggestions, left_out


def choose_k(
    parameters: PathParameters,
    results: Mapping[str, Any],
    suggestions: Mapping[str, int | None],
    known: list[int],
) -> int | None:
    """Return the number of clusters that ``select`` chooses."""
    select = parameters.select
    if select is None:
        return None
    if hasattr(select, "judge"):
        return suggestions.get(select.name)
    choice = check_int("the value that select returns", select(results))
    if choice not in known:
        raise ValueError(
            f"select returned k={choice}, which is not on the path: it has k from {known[0]} to "
            f"{known[-1]}."
        )
    return choice
