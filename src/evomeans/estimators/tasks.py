"""What models make of samples: an engine to search with, and an answer to keep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from numpy.typing import NDArray

from evomeans.engines import Engine, create_engine, is_dask
from evomeans.estimators.parameters import Parameters
from evomeans.estimators.solution import (
    Solution,
    canonical_solution,
    confirmed,
    proven_optimum,
)
from evomeans.estimators.validation import check_resolved
from evomeans.search import History, Individual, SearchResult, SearchSettings, Strategy
from evomeans.typing import FloatArray


@dataclass(frozen=True)
class Task:
    """What a model makes of samples: an engine to search with, and an answer to keep.

    Parameters
    ----------
    open_engine : callable
        Returns the engine.
    settle : callable
        Turns the engine and the best individual into a :class:`Solution`. The last argument says
        whether there is no time left for K-means.
    rows : (m, d) array or CSR matrix
        What the engine holds; of most models, the samples.
    weights : (m,) array, optional
        Their weights.
    engine : str
        Whose kernels are needed, besides those that match and merge centres.
    kernel_calls : callable, optional
        Returns calls that have to be compiled, of models with an engine of their own.
    solve : callable, optional
        Finds the optimum with the engine instead of a search.
    identity : dict
        What a checkpoint compares besides samples and settings.
    strategy : Strategy, optional
        The model's own version of the default strategy.
    check_labels : callable, optional
        Raises ValueError for labels of the rows that no solution can have.
    constant : float
        What the objective of the samples is higher than that of the rows, whatever the clusters.
    """

    open_engine: Callable[[], Engine]
    settle: Callable[[Engine, Individual, bool], Solution]
    rows: Any
    weights: FloatArray | None
    engine: str = "none"
    kernel_calls: Callable[[], Sequence[Any]] | None = None
    solve: Callable[[Engine], SearchResult] | None = None
    identity: dict[str, int | str | None] = field(default_factory=dict)
    strategy: Strategy | None = None
    check_labels: Callable[[NDArray[Any]], None] | None = None
    constant: float = 0.0


def is_line(engine: str, X: Any) -> bool:
    """Whether the samples have one feature, so that all is computed exactly."""
    return engine == "auto" and X.shape[1] == 1 and not is_dask(X)


def plain_task(
    rows: Any,
    weights: FloatArray | None,
    n_clusters: int,
    parameters: Parameters,
    *,
    is_line: bool = False,
) -> Task:
    """Return the task of plain k-means; one feature (``is_line``) is solved exactly."""

    def solve(engine: Engine) -> SearchResult:
        return proven_optimum(engine, rows, n_clusters, weights)

    def settle(engine: Engine, best: Individual, is_final: bool) -> Solution:
        solution = canonical_solution(engine, best.centers, rows.dtype, is_final=is_final)
        if not is_line:
            check_resolved(engine, rows, weights, solution)
        return confirmed(solution, best, rows, weights, is_line=is_line)

    return Task(
        partial(create_engine, parameters.engine, rows, weights, n_jobs=parameters.n_threads),
        settle,
        rows,
        weights,
        engine=parameters.engine,
        solve=solve if is_line else None,
    )


def lowered(settings: SearchSettings, constant: float) -> SearchSettings:
    """Return settings for a search whose objective is lower by a constant."""
    target = settings.target_inertia
    if constant == 0.0 or target is None:
        return settings
    # Less than the constant cannot be reached.
    return replace(settings, target_inertia=target - constant if target >= constant else None)


def raised(result: SearchResult, constant: float) -> SearchResult:
    """Add a constant to every objective in the result of a search."""
    if constant == 0.0:
        return result
    names = ("inertia", "best", "population_best", "population_median", "population_worst")
    history = History(
        [
            replace(record, **{name: getattr(record, name) + constant for name in names})
            for record in result.history
        ]
    )
    population = tuple(
        replace(member, inertia=member.inertia + constant) for member in result.population
    )
    best = replace(result.best, inertia=result.best.inertia + constant)
    return replace(result, best=best, population=population, history=history)
