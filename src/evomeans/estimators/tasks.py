"""What models make of samples: an engine to search with, and an answer to keep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from numpy.typing import NDArray

from evomeans.engines import Engine, create_engine
from evomeans.estimators.parameters import Parameters
from evomeans.estimators.solution import (
    Solution,
    canonical_solution,
    confirmed,
    proven_optimum,
)
from evomeans.estimators.validation import check_resolved
from evomeans.search import Individual, SearchResult, Strategy
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
