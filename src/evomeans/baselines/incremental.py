"""Methods that add one centre at a time, and so solve the problem for every number of clusters."""

from __future__ import annotations

import copy
import time
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from evomeans.baselines.base import Baseline
from evomeans.engines import Engine, Start
from evomeans.engines.protocol import Refinement
from evomeans.engines.rules import MAX_ITERATIONS
from evomeans.estimators.parameters import check_int
from evomeans.estimators.solution import FloatArray, Solution, canonical_solution
from evomeans.search.interrupts import DeferredInterrupt

# Numbers that differ by less, relatively, differ by rounding: then the order decides.
ROUNDING = 1e-12
# Points are handled in blocks of about so many coordinates.
BLOCK = 2**24


class IncrementalEngine(Engine, Protocol):
    """What these methods ask of an engine beyond K-means.

    ``squares`` are the squared distances of all samples to the closest of the present centres, in
    the frame; a sample with zero there does not count.
    """

    @property
    def dtype(self) -> np.dtype[Any]:
        """The precision of the samples."""
        ...

    def rows(self, chosen: NDArray[np.intp]) -> FloatArray:
        """Return the samples with these indices, shape (m, d)."""
        ...

    def nearest_squares(self, centers: FloatArray) -> FloatArray:
        """Squares with respect to these centres; zero for samples without weight."""
        ...

    def reductions(self, points: FloatArray, squares: FloatArray) -> FloatArray:
        """Return Σ_j w_j·max(squares_j − ‖y − x_j‖², 0) of every point y, in data units."""
        ...

    def attracted_means(self, points: FloatArray, squares: FloatArray) -> FloatArray:
        """Mean of the samples with ‖y − x_j‖² < squares_j for every point y; y if there are none.

        Its bits depend on these samples alone.
        """
        ...


@dataclass(frozen=True, slots=True, eq=False)
class PathStep:
    """The solution for one number of clusters.

    Parameters
    ----------
    n_clusters : int
        The number of clusters.
    inertia : float
        Sum of the squared distances of the samples to their closest centre, times their weights.
    cluster_centers : (n_clusters, n_features) array
        In data units, in the precision of ``X`` and in lexicographic order.
    labels : (n_samples,) array of unsigned integers
        The cluster of each sample, in as few bytes as hold it.
    n_runs : int
        Runs of K-means that it took, after the step before.
    seconds : float
        Since the fit began to search.
    """

    n_clusters: int
    inertia: float
    cluster_centers: NDArray[Any]
    labels: NDArray[np.unsignedinteger[Any]]
    n_runs: int
    seconds: float


class IncrementalBaseline(Baseline):
    """A method of which only its choice of the next centre is missing.

    Attributes
    ----------
    path_ : tuple of PathStep
        The solutions for 1, 2, …, ``n_clusters`` clusters.
    inertias_ : ndarray of shape (n_clusters,)
        Their inertias.
    n_iter_ : int
        Runs of K-means made on the whole path.
    """

    # What Baseline hands to a search; nothing is random here.
    random_state: Any = 0
    path_: tuple[PathStep, ...]
    inertias_: FloatArray
    n_iter_: int

    def at(self, n_clusters: int) -> Self:
        """Return the estimator as if it had been fitted with fewer clusters.

        Parameters
        ----------
        n_clusters : int
            At most as many as it was fitted with.

        Returns
        -------
        estimator : object
            A fitted estimator with labels, centres and methods of that solution.
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
        for name, value in _path_attributes(self.path_[:n_clusters]).items():
            setattr(model, name, value)
        return cast("Self", model)

    @abstractmethod
    def _new_centers(
        self, engine: IncrementalEngine, solution: Refinement, squares: FloatArray
    ) -> FloatArray:
        """Return the places of one more centre that are worth a run of K-means, at least one.

        Parameters
        ----------
        engine : IncrementalEngine
        solution : Refinement
            With one centre less.
        squares : (n,) array
            Of this solution; not all are zero.
        """

    def _search(
        self, engine: Engine, rng: np.random.Generator, interrupt: DeferredInterrupt
    ) -> tuple[Refinement, dict[str, Any]]:
        samples = cast("IncrementalEngine", engine)
        began = time.perf_counter()
        path: list[PathStep] = []
        for solution, n_runs in self._solutions(samples, interrupt):
            canonical = canonical_solution(engine, solution.centers, samples.dtype)
            path.append(_path_step(canonical, n_runs, time.perf_counter() - began))
            _obey(interrupt)
        return solution, _path_attributes(tuple(path))

    def _solutions(
        self, engine: IncrementalEngine, interrupt: DeferredInterrupt
    ) -> Iterator[tuple[Refinement, int]]:
        """Make the solutions for 1, 2, … clusters, with the number of runs that each took."""
        (solution,) = engine.refine([Start(engine.samples_at(np.array([0.5])))])
        yield solution, 1
        while len(solution.centers) < self.n_clusters:
            squares = engine.nearest_squares(solution.centers)
            if squares.any():
                places = self._new_centers(engine, solution, squares)
            else:
                # Every sample has a centre of its own; one more is to spare wherever it is.
                places = solution.centers[:1]
            solution = _best_refined(engine, solution, places, interrupt)
            yield solution, len(places)


def _best_refined(
    engine: Engine, solution: Refinement, places: FloatArray, interrupt: DeferredInterrupt
) -> Refinement:
    """Run K-means from a solution with one more centre at each of the places; the first best."""
    best: Refinement | None = None
    parent = None
    for first in range(0, len(places), engine.batch):
        _obey(interrupt)
        starts = [
            Start(np.vstack([solution.centers, place]), parent=parent)
            for place in places[first : first + engine.batch]
        ]
        for refined in engine.refine(starts):
            # All starts share most of their centres with this solution.
            parent = refined.handle if parent is None else parent
            if best is None or refined.inertia < best.inertia:
                best = refined
    assert best is not None, "there is at least one place"
    return best


def _obey(interrupt: DeferredInterrupt) -> None:
    """Give up if that has been asked for: half a path is no answer."""
    if interrupt.requested:
        raise KeyboardInterrupt


def _path_step(solution: Solution, n_runs: int, seconds: float) -> PathStep:
    k = len(solution.centers)
    labels = solution.labels.astype(np.min_scalar_type(k - 1))
    return PathStep(k, solution.inertia, solution.centers, labels, n_runs, seconds)


def _path_attributes(path: tuple[PathStep, ...]) -> dict[str, Any]:
    return {
        "path_": path,
        "inertias_": np.array([step.inertia for step in path]),
        "n_iter_": sum(step.n_runs for step in path),
    }


# ---- choosing a place ----------------------------------------------------------------------------


def sample_reductions(
    engine: IncrementalEngine, chosen: NDArray[np.intp], squares: FloatArray, *, moved: bool
) -> FloatArray:
    """Reductions that one more centre brings at each of some samples.

    Parameters
    ----------
    chosen : (m,) array
        Indices of the samples.
    moved : bool
        Whether the centre moves from the sample to the mean of what it attracts there.
    """
    n_features = engine.rows(chosen[:1]).shape[1]
    size = max(1, BLOCK // n_features)
    results = []
    for first in range(0, len(chosen), size):
        points = engine.rows(chosen[first : first + size])
        if moved:
            points = attracted_means(engine, points, squares)
        results.append(engine.reductions(points, squares))
    return np.concatenate(results)


def attracted_means(
    engine: IncrementalEngine, points: FloatArray, squares: FloatArray
) -> FloatArray:
    """Mean of the samples nearer to a point than to their centres (Bagirov's set S₂), for each."""
    # Samples that are equally far, but for rounding, stay.
    return engine.attracted_means(points, squares * (1.0 - ROUNDING))


def largest(values: FloatArray, share: float = 1.0) -> NDArray[np.intp]:
    """Return the indices, in order, of values that are at least ``share`` of the largest."""
    return np.flatnonzero(values >= share * (1.0 - ROUNDING) * values.max())


def settle(engine: IncrementalEngine, points: FloatArray, squares: FloatArray) -> FloatArray:
    """Descend to local minima of the auxiliary function Σ_j w_j·min(squares_j, ‖y − x_j‖²).

    Every point moves to the mean of the samples it attracts, until no sample comes or goes.

    Returns
    -------
    minima : (m, d) array
        All that are reached, each once, in lexicographic order.
    """
    arrived = []
    for _ in range(MAX_ITERATIONS):
        means = attracted_means(engine, points, squares)
        stays = (means == points).all(axis=1)
        arrived.append(points[stays])
        # Points that attract the same samples go on as one.
        points = np.unique(means[~stays], axis=0)
        if len(points) == 0:
            break
    return np.unique(np.concatenate([*arrived, points]), axis=0)
