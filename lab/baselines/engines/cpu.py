"""The CPU engine of the baselines: what only they ask, beside all that the search asks."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from evomeans.engines.cpu import engine as cpu
from evomeans.engines.cpu.kernels import Move
from evomeans.engines.cpu.samples import with_room
from evomeans.engines.cpu.workspace import Workspace
from evomeans.engines.protocol import Handle
from evomeans.engines.sampling import WeightedDraw
from evomeans.typing import FloatArray
from lab.baselines.engine import Attracted, BaselineEngine, ClusterSums
from lab.baselines.engines.foresight import Foresight, foresee, squares_to
from lab.baselines.engines.losses import find_two_closest
from lab.baselines.engines.pooling import PoolMemory, draw_from_pool
from lab.baselines.engines.reductions import Attraction
from lab.baselines.engines.thresholds import gather, visit_all
from lab.baselines.engines.utilities import sum_by_center


class TwoClosest(NamedTuple):
    """``labels`` and ``others``, the closest and second closest centres; their squared distances.

    All are (n,) arrays. With one centre, ``others`` has no meaning, and ``second`` is infinite.
    """

    labels: NDArray[np.int32]
    others: NDArray[np.int32]
    first: FloatArray
    second: FloatArray


class BaselineCpuEngine(cpu.CpuEngine, BaselineEngine):
    """The CPU engine, and what :class:`~lab.baselines.engine.BaselineEngine` asks beyond it."""

    def __init__(self, X: Any, sample_weight: FloatArray | None = None, **options: Any) -> None:
        super().__init__(X, sample_weight, **options)
        self._attractions: dict[int, Attraction] = {}

    def workers(self, n_clusters: int, most: int) -> list[Self]:
        """Engines that share the samples and the memory, each with its own work space."""
        workers = super().workers(n_clusters, most)
        for worker in workers:
            if worker is not self:
                worker._attractions = {}
        return workers

    def errors_and_utilities(
        self, centers: FloatArray, power: int = 2
    ) -> tuple[FloatArray, FloatArray]:
        """Return what the samples of each centre cost, and what more without it."""
        closest = find_closest(self._workspace(len(centers)), centers)
        weights = None if self.weights is None else self.samples.weights
        sums = sum_by_center(
            closest.labels, closest.first, closest.second, weights, len(centers), power
        )
        errors, utilities = np.ldexp(sums, -power * self.frame.exponent)
        return errors, utilities

    def nearest_squares(self, centers: FloatArray) -> FloatArray:
        """Squared distances to the closest centres; zero for samples without weight."""
        costs, weights = self._costs(centers), self.weights
        if weights is None:
            return costs
        return np.divide(costs, weights, out=np.zeros_like(costs), where=weights > 0.0)

    def two_closest(self, centers: FloatArray) -> tuple[NDArray[np.int32], FloatArray, FloatArray]:
        """Labels of the closest centres, and squared distances to the two closest."""
        places = self.samples.places
        closest = find_closest(self._workspace(len(centers)), centers)
        return closest.labels[places], closest.first[places], closest.second[places]

    def swap_gains(self, centers: FloatArray, quantile: float) -> tuple[int, FloatArray]:
        """Draw a sample by D²; return it, and the gains of putting each centre onto it."""
        workspace = self._workspace(len(centers))
        closest = find_closest(workspace, centers)
        costs = closest.first[self.samples.places]
        if self.weights is not None:
            costs *= self.weights
        drawing = WeightedDraw(self.n_samples, costs if costs.any() else self.weights)
        row = drawing.rows(np.array([quantile]))
        gains = foresee_swaps(workspace, closest, self.rows(row))
        return int(row[0]), np.ldexp(gains, -2 * self.frame.exponent)

    def threshold_moves(
        self,
        labels: NDArray[np.int32],
        n_clusters: int,
        order: NDArray[np.intp],
        factor: float,
    ) -> tuple[NDArray[np.int32], FloatArray]:
        """Move single samples, in this order, where that costs less than a multiple of before."""
        places, workspace = self.samples.places, self._workspace(n_clusters)
        given = labels[self.samples.order], places[order], factor
        moved, centers = move_by_threshold(workspace, *given)
        return moved[places], centers

    def seed_from(
        self, pool: FloatArray, chances: FloatArray, quantiles: FloatArray
    ) -> NDArray[np.intp]:
        """Draw points of a pool by k-means++, judged by all samples; return their indices."""
        samples = with_room(self.samples, len(pool), self.n_features)
        drawn = np.zeros(len(quantiles), np.intp)
        memory = PoolMemory.allocate(self.n_samples, len(pool))
        draw_from_pool(samples, pool, chances, quantiles, drawn, memory)
        return drawn

    def reductions(self, points: FloatArray, squares: FloatArray) -> FloatArray:
        """How much lower the objective is with one more centre, at each of the points."""
        gains = self._attraction(len(points)).reductions(points, squares)
        return np.ldexp(gains, -2 * self.frame.exponent)

    def attracted_means(self, points: FloatArray, squares: FloatArray) -> FloatArray:
        """Means of the samples that a centre at each of the points would attract."""
        return self._attraction(len(points)).means(points, squares)

    def attracted(self, points: FloatArray, squares: FloatArray) -> Attracted:
        """Reductions in the frame, weights and means, for a centre at each of the points."""
        return self._attraction(len(points)).attracted(points, squares)

    def cluster_sums(self, centers: FloatArray, parent: Handle | None = None) -> ClusterSums:
        """Assign all samples to these centres, and sum them up."""
        workspace = self._workspace(len(centers))
        found = self._new_solution(workspace.k)
        known = self.memory.lend(parent, workspace.k)
        before = found if known is None else known
        try:
            workspace.run(before, found, centers, Move(inherit=known is not None, steps=0))
        finally:
            self.memory.take_back(parent, known)
        limbs, weights = found.sums, found.weights.copy()
        sums = (limbs[:, 0, :-1] + limbs[:, 1, :-1] / self.samples.limb) / self.samples.scales[:-1]
        return ClusterSums(workspace.inertia, weights, sums, self.memory.keep(found))

    def _attraction(self, n_points: int) -> Attraction:
        work = n_points * self.n_samples * self.n_features
        n_threads = self.n_jobs if work >= cpu.WORTH_A_CALL else 1
        if n_threads not in self._attractions:
            self._attractions[n_threads] = Attraction(self.samples, self.n_features, n_threads)
        return self._attractions[n_threads]


def find_closest(workspace: Workspace, centers: FloatArray) -> TwoClosest:
    """Return the two closest centres of every sample, by place, with squared distances."""
    workspace.centers.exact[:] = centers
    n_samples = len(workspace.samples.order)
    found = TwoClosest(*np.zeros((2, n_samples), np.int32), *np.full((2, n_samples), np.inf))
    workspace.team.run(
        find_two_closest, workspace.samples, workspace.centers.exact, workspace.scratch, *found
    )
    return found


def foresee_swaps(workspace: Workspace, closest: TwoClosest, point: FloatArray) -> FloatArray:
    """Return what swaps of centres with a point, shape (1, d), would gain, in the frame.

    See :mod:`~lab.baselines.engines.foresight`.
    """
    memory = Foresight.allocate(*workspace.target.shape)
    members = closest.labels.argsort(kind="stable")
    begins = np.searchsorted(closest.labels[members], np.arange(workspace.k + 1))
    away = squares_to(workspace.samples, point)
    foresee(workspace.samples, *closest, away, members, begins, memory)
    return memory.gains


def move_by_threshold(
    workspace: Workspace, labels: NDArray[np.int32], order: NDArray[np.uint32], factor: float
) -> tuple[NDArray[Any], FloatArray]:
    """Make a pass of moves, by place; see :mod:`~lab.baselines.engines.thresholds`."""
    clusters = workspace.swapped
    clusters.labels[:] = labels
    gather(workspace.samples, clusters, workspace.target)
    visit_all(workspace.samples, clusters, order, factor, np.empty(workspace.k), workspace.target)
    return clusters.labels.copy(), workspace.target.copy()
