"""From validated samples to the state of a searched path, and from there to solutions."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from typing import Any

import numpy as np

from evomeans.criteria.base import Searched
from evomeans.engines import Engine, create_engine, is_dask, prepare_kernels
from evomeans.engines.frame import is_sparse
from evomeans.engines.protocol import FloatArray
from evomeans.estimators.path_parameters import PathParameters
from evomeans.estimators.solution import line_individual
from evomeans.path.record import PathObserver
from evomeans.path.search import Outcome, PathKeeper, follow_path, learn
from evomeans.path.settings import FRESH, PathSettings
from evomeans.path.state import Kind, PathState, Step
from evomeans.search import StopReason
from evomeans.search.crossover import MATCHING, merging_crossover
from evomeans.search.interrupts import DeferredInterrupt
from evomeans.search.plan import needed_abilities
from evomeans.storage.path_checkpoint import PathCheckpoint
from evomeans.storage.problem import describe_problem


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
