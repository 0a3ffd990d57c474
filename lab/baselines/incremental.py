"""Baselines that add one centre at a time, and so solve for every number of clusters."""

from __future__ import annotations

import copy
import time
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from evomeans.engines.protocol import Order, Refinement
from evomeans.engines.rules import MAX_ITERATIONS
from evomeans.estimators.parameters import check_int
from evomeans.estimators.solution import canonical_solution
from evomeans.search.stopping import DeferredInterrupt
from evomeans.typing import FloatArray, Indices
from lab.baselines.base import Baseline, Found
from lab.baselines.engine import BaselineEngine, made

# Numbers that differ by less, relatively, differ by rounding; then the order decides.
ROUNDING = 1e-12
# Points are handled in blocks of about this many coordinates.
BLOCK = 2**24


@dataclass(frozen=True, slots=True, eq=False)
class PathStep:
    """The solution for one number of clusters, as in the fitted attributes of an estimator.

    ``labels`` have the smallest unsigned integer type that holds them. ``n_runs`` counts the local
    searches since the previous step, and ``seconds`` the time since the search began.
    """

    n_clusters: int
    inertia: float
    cluster_centers: NDArray[Any]
    labels: NDArray[np.unsignedinteger[Any]]
    n_runs: int
    seconds: float


@dataclass(eq=False, repr=False, kw_only=True)
class IncrementalBaseline(Baseline):
    """A baseline that lacks only its choice of the next centre, and maybe a local search.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters at the end of the path.

    Attributes
    ----------
    path_ : tuple of PathStep
        The solutions for 1, 2, …, ``n_clusters`` clusters, with their ``inertia``,
        ``cluster_centers``, ``labels``, ``n_runs`` and ``seconds``. :meth:`at` turns any of them
        into a fitted estimator.
    inertias_ : ndarray of shape (n_clusters,)
        The inertias on the path; they never rise.
    n_iter_ : int
        Local searches made on the whole path: runs of K-means, or of the method's own solver.
    """

    path_: tuple[PathStep, ...] = field(init=False)
    inertias_: FloatArray = field(init=False)

    def at(self, n_clusters: int) -> Self:
        """Return the estimator as if it had been fitted with fewer clusters.

        Parameters
        ----------
        n_clusters : int
            At most the number it was fitted with.

        Returns
        -------
        estimator : object
            A fitted estimator with the labels, centres and methods of that solution.
        """
        check_is_fitted(self, "path_")
        if check_int("n_clusters", n_clusters, at_least=1) > len(self.path_):
            raise ValueError(
                f"n_clusters={n_clusters} is beyond the path, which ends at {len(self.path_)}. "
                "Fit with more clusters."
            )
        step = self.path_[n_clusters - 1]
        model = copy.copy(self).set_params(n_clusters=n_clusters)
        model.cluster_centers_ = step.cluster_centers
        model.labels_ = step.labels.astype(np.int32)
        model.inertia_ = step.inertia
        model.__dict__.update(_path_attributes(self.path_[:n_clusters]))
        return cast("Self", model)

    @abstractmethod
    def _new_centers(
        self, engine: BaselineEngine, solution: Refinement, squares: FloatArray
    ) -> FloatArray:
        """Return at least one place for a new centre that is worth a local search.

        ``squares`` are those of the solution; not all of them are zero.
        """

    def _descend(self, engine: BaselineEngine, start: Order) -> Refinement:
        """Improve a solution: by K-means, unless a method has something of its own."""
        return engine.refine([start])[0]

    def _search(self, engine: BaselineEngine, interrupt: DeferredInterrupt) -> Found:
        began = time.perf_counter()
        path: list[PathStep] = []
        for solution, n_runs in self._solutions(engine, interrupt):
            found = canonical_solution(engine, solution.centers, engine.dtype)
            k, seconds = len(found.centers), time.perf_counter() - began
            labels = found.labels.astype(np.min_scalar_type(k - 1))
            path.append(PathStep(k, found.inertia, found.centers, labels, n_runs, seconds))
            _obey(interrupt)
        return solution, _path_attributes(tuple(path))

    def _solutions(
        self, engine: BaselineEngine, interrupt: DeferredInterrupt
    ) -> Iterator[tuple[Refinement, int]]:
        """Make the solutions for 1, 2, … clusters, with the number of runs that each took."""
        (solution,) = engine.refine([Order(engine.samples_at(np.array([0.5])))])
        yield solution, 1
        while len(solution.centers) < self.n_clusters:
            squares = engine.nearest_squares(solution.centers)
            # Where every sample has a centre of its own, it does not matter where one more goes.
            places = solution.centers[:1]
            if squares.any():
                places = self._new_centers(engine, solution, squares)
            improved = self._improved(engine, solution, places, interrupt)
            solution = min(improved, key=lambda each: each.inertia)
            yield solution, len(places)

    def _improved(
        self,
        engine: BaselineEngine,
        solution: Refinement,
        places: FloatArray,
        interrupt: DeferredInterrupt,
    ) -> Iterator[Refinement]:
        """Search from a solution with one more centre, at each of the places."""
        begun = [np.vstack([solution.centers, place]) for place in places]
        first = self._descend(engine, Order(begun[0]))
        yield first
        # All starts share most of their centres with this solution.
        jobs = (
            partial(self._descend, start=Order(centers, parent=first.handle))
            for centers in begun[1:]
        )
        for other in made(engine, len(begun[0]), jobs):
            _obey(interrupt)
            yield other


def _obey(interrupt: DeferredInterrupt) -> None:
    """Give up if that was requested: half a path is not an answer."""
    if interrupt.requested:
        raise KeyboardInterrupt


def _path_attributes(path: tuple[PathStep, ...]) -> dict[str, Any]:
    inertias = np.array([step.inertia for step in path])
    return {"path_": path, "inertias_": inertias, "n_iter_": sum(step.n_runs for step in path)}


def promising(
    engine: BaselineEngine,
    samples: Indices,
    squares: FloatArray,
    *,
    share: float = 1.0,
    moved: bool,
) -> Indices:
    """Return the samples at which one more centre reduces the objective most.

    They are chosen from ``samples``, and reach at least ``share`` of the largest reduction. If
    ``moved``, the centre first moves from the sample to the mean of the samples it attracts there.
    """
    n_features = engine.rows(samples[:1]).shape[1]
    size = max(1, BLOCK // n_features)
    reductions = []
    for first in range(0, len(samples), size):
        points = engine.rows(samples[first : first + size])
        if moved:
            points = attracted_means(engine, points, squares)
        reductions.append(engine.reductions(points, squares))
    return samples[largest(np.concatenate(reductions), share)]


def largest(values: FloatArray, share: float = 1.0) -> Indices:
    """Return the indices, in order, of values that are at least ``share`` of the largest."""
    return np.flatnonzero(values >= share * (1.0 - ROUNDING) * values.max())


def attracted_means(engine: BaselineEngine, points: FloatArray, squares: FloatArray) -> FloatArray:
    """Mean of the samples closer to a point than to their centres (Bagirov's set S₂), for each."""
    # Samples that are equally far, up to rounding, stay.
    return engine.attracted_means(points, squares * (1.0 - ROUNDING))


def settle(engine: BaselineEngine, points: FloatArray, squares: FloatArray) -> FloatArray:
    """Descend to local minima of the auxiliary function Σ_j w_j·min(squares_j, ‖y − x_j‖²).

    Every point moves to the mean of the samples it attracts, until no sample comes or goes. The
    distinct minima are returned in lexicographic order.
    """
    arrived = []
    for _ in range(MAX_ITERATIONS):
        means = attracted_means(engine, points, squares)
        stays = (means == points).all(axis=1)
        arrived.append(points[stays])
        # Points that attract the same samples continue as one.
        points = np.unique(means[~stays], axis=0)
        if len(points) == 0:
            break
    return np.unique(np.concatenate([*arrived, points]), axis=0)
