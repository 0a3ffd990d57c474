"""Results of fits: solutions in data units, and the tasks of searches."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evomeans.engines import Engine, Order, create_engine, is_dask
from evomeans.engines.frame import Frame, Resolution, is_sparse
from evomeans.engines.reference import ReferenceEngine
from evomeans.engines.rules import total_weights
from evomeans.engines.workers import threads_for
from evomeans.estimators.parameters import Surroundings
from evomeans.search import History, Individual, SearchResult, SearchSettings, StopReason, Strategy
from evomeans.typing import FloatArray

if TYPE_CHECKING:
    from evomeans.exact import LineClustering

# Nearly always, so many coordinates tell the order of centres. A sort by thousands takes long.
FEW_COORDINATES = 4


@dataclass(frozen=True)
class FinalSolution:
    """Centres in data units, and what follows from them."""

    # (k, d). In canonical order: centres that own samples first, each part in lexicographic order.
    centers: NDArray[Any]
    # (n,). Index of the closest centre, the lowest one on ties; of samples in Dask a lazy array.
    labels: NDArray[np.int32]
    # Weighted sum of the squared distances to them.
    inertia: float
    # The number of centres that own a sample.
    n_distinct: int
    # Further attributes of the fitted estimator, by name.
    fitted: dict[str, Any] = field(default_factory=dict)
    # Whether what was proven of the best individual holds for these labels, too.
    is_confirmed: bool = True


def canonical_solution(
    engine: Engine, centers: FloatArray, dtype: Any, *, is_final: bool = False
) -> FinalSolution:
    """Round centres to the precision of the data, order them, and label the samples anew.

    Labels and inertia are those of the rounded centres, so ``labels_`` and ``predict`` give the
    same answer. Where the order or the rounding decides a tie between two centres otherwise than
    the search did, the centres are no longer the means of their clusters. K-means then continues
    from there, to a better solution. If the centres are ``is_final``, there is no time for that.
    """
    solution = _labelled(engine, centers, dtype)
    while not is_final:
        start = Order(encode_centers(engine.frame, solution.centers))
        refined = _labelled(engine, engine.refine([start])[0].centers, dtype)
        if not refined.inertia < solution.inertia:
            return solution
        solution = refined
    return solution


class EarlyAnswer:
    """The answer of a search that has to end before K-means has: it is labelled only once."""

    def __init__(
        self,
        engine: Engine,
        settle: Callable[[Engine, Individual, bool], FinalSolution],
        weights: FloatArray | None,
    ) -> None:
        self._engine, self._settle, self._weights = engine, settle, weights
        self._centers: FloatArray | None = None
        self.solution: FinalSolution | None = None

    def weigh(self, centers: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """Return what the answer with these centres, in the frame, looks like to the search."""
        k = len(centers)
        alone = Individual(centers, math.inf, np.zeros(k), alpha=0.0)
        self.solution = found = self._settle(self._engine, alone, True)
        self._centers = encode_centers(self._engine.frame, found.centers)
        return self._centers, total_weights(found.labels, self._weights, k), found.inertia

    def solution_for(self, best: Individual) -> FinalSolution | None:
        """Return the solution if these are its centres."""
        return self.solution if best.centers is self._centers else None


def has_no_time(reason: StopReason, engine: Engine, n_clusters: int) -> bool:
    """Whether time is up and every look at the rows takes long."""
    is_over = reason in (StopReason.MAX_TIME, StopReason.INTERRUPTED)
    return is_over and engine.takes_long(n_clusters)


def _labelled(engine: Any, centers: FloatArray, dtype: Any) -> FinalSolution:
    """Round, order and label once; centres that own no sample go last."""
    rounded = lexicographic(engine.frame.decode(centers).astype(dtype))
    encoded = encode_centers(engine.frame, rounded)
    labels, inertia = engine.assign(encoded)
    in_dask, k = is_dask(labels), len(encoded)
    sizes = engine.cluster_sizes(encoded) if in_dask else np.bincount(labels, minlength=k)
    owns = sizes > 0
    if not owns.all():
        rounded = np.concatenate([rounded[owns], rounded[~owns]])
        if in_dask:
            labels, inertia = engine.assign(encode_centers(engine.frame, rounded))
        else:
            # Centres that own samples keep their order, so another look would tell the same.
            labels = (np.cumsum(owns) - 1)[labels]
    if not in_dask:
        labels = np.asarray(labels, dtype=np.int32)
    return FinalSolution(rounded, labels, float(inertia), int(np.count_nonzero(owns)))


def lexicographic(centers: NDArray[Any]) -> NDArray[Any]:
    """Return centres ordered by their first coordinate, then by their second, and so on."""
    order = np.lexsort(centers[:, :FEW_COORDINATES].T[::-1])
    first = centers[order, :FEW_COORDINATES]
    if not (first[1:] != first[:-1]).any(axis=1).all():
        order = np.lexsort(centers.T[::-1])
    return centers[order]


def encode_centers(frame: Frame, centers: NDArray[Any]) -> FloatArray:
    """Bring centres into a frame in double precision, whatever theirs is."""
    return frame.encode(centers.astype(np.float64))


def line_individual(engine: Engine, line: LineClustering) -> Individual:
    """Return a clustering of one feature as an individual, with labels if they are proven."""
    return Individual(
        encode_centers(engine.frame, line.centers.reshape(-1, 1)),
        line.inertia,
        line.cluster_weights,
        alpha=0.0,
        labels=line.labels if line.is_proven else None,
    )


def check_resolved(engine: Any, resolution: Resolution, solution: FinalSolution) -> None:
    """Refuse clusters of samples that the sums of an engine cannot resolve."""
    k = len(solution.centers)
    if is_dask(resolution.X):
        engine.check_resolution(solution.labels, k)
    elif not isinstance(engine, ReferenceEngine):
        run = map if engine.n_jobs == 1 else threads_for(engine.n_jobs).map
        resolution.check(engine.frame, solution.labels, k, run)


def confirmed(
    solution: FinalSolution, best: Individual, X: Any, sample_weight: Any, is_line: bool
) -> FinalSolution:
    """Note whether a solution is what was proven of the best individual.

    An inertia of zero is optimal, unless it is one of underflow. The labels of one feature are
    proven; those of the centres rounded to the precision of the data may be others.
    """
    if is_dask(X) or not (is_line or best.inertia == 0.0):
        return solution
    heavy = np.ones(X.shape[0], np.bool_) if sample_weight is None else sample_weight > 0.0
    rows, labels = X[heavy], solution.labels[heavy]
    if not is_line:
        # All samples of a cluster have to be equal.
        places, inverse = np.unique(labels, return_index=True, return_inverse=True)[1:]
        different: Any = rows[places][inverse.ravel()] != rows
        holds = not (different.nnz if is_sparse(rows) else different.any())
    elif best.labels is None:
        holds = False
    else:
        proven = best.labels[heavy]
        holds = np.array_equal(labels, proven) or _is_as_deep(
            rows, None if sample_weight is None else sample_weight[heavy], labels, proven
        )
    return replace(solution, is_confirmed=holds)


def _is_as_deep(
    X: Any, sample_weight: FloatArray | None, labels: NDArray[Any], proven: NDArray[Any]
) -> bool:
    """Whether labels are no worse than others, whatever rounding or underflow hides."""
    from evomeans.exact.points import WeightedPoints, inertia_of_samples

    dense = (X.toarray() if is_sparse(X) else X).astype(np.float64)
    points = WeightedPoints.of_samples(dense, sample_weight)
    own, other = (inertia_of_samples(points, dense, sample_weight, one) for one in (labels, proven))
    return own.high <= other.low * (1 + 1e-7)


@dataclass(frozen=True)
class Task:
    """A problem that a model poses: an engine to search with, and an answer to keep."""

    # Returns the engine.
    open_engine: Callable[[], Engine]
    # Turns the engine and the best individual into a FinalSolution. The last argument says whether
    # there is no time left for K-means.
    settle: Callable[[Engine, Individual, bool], FinalSolution]
    # (m, d). What the engine holds; of most models, the samples.
    rows: Any
    # (m,). Their weights.
    weights: FloatArray | None
    # Whose kernels are needed, besides those that match and merge centres.
    engine: str = "none"
    # Returns calls that have to be compiled, of models with an engine of their own.
    kernel_calls: Callable[[], Sequence[Any]] | None = None
    # Finds the optimum with the engine instead of a search.
    solve: Callable[[Engine], SearchResult] | None = None
    # What a checkpoint compares besides samples and settings.
    identity: dict[str, int | str | None] = field(default_factory=dict)
    # The model's own version of the default strategy.
    strategy: Strategy | None = None
    # Raises ValueError for labels of the rows that no solution can have.
    check_labels: Callable[[NDArray[Any]], None] | None = None
    # What the objective of the samples is higher than that of the rows, whatever the clusters.
    constant: float = 0.0


def plain_task(
    rows: Any,
    weights: FloatArray | None,
    n_clusters: int,
    parameters: Surroundings,
) -> Task:
    """Return the task of plain k-means; with the engine "auto", one feature is solved exactly."""
    is_line = parameters.engine == "auto" and rows.shape[1] == 1 and not is_dask(rows)
    resolution = Resolution(rows, weights)

    def solve(engine: Engine) -> SearchResult:
        from evomeans.exact import cluster_line

        column = (rows.toarray() if is_sparse(rows) else rows)[:, 0]
        best = line_individual(engine, cluster_line(column, n_clusters, weights))
        reason, levels = StopReason.PROVEN_OPTIMAL, (len(column),)
        return SearchResult(best, (best,), History(), reason, n_offspring=0, levels=levels)

    def settle(engine: Engine, best: Individual, is_final: bool) -> FinalSolution:
        solution = canonical_solution(engine, best.centers, rows.dtype, is_final=is_final)
        if not is_line:
            check_resolved(engine, resolution, solution)
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
