"""The reference engine of the baselines: what only they ask, in plain NumPy, as an oracle."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evomeans.engines.protocol import Handle
from evomeans.engines.reference import ReferenceEngine
from evomeans.engines.rules import WORTHWHILE
from evomeans.engines.sampling import roulette
from evomeans.typing import FloatArray
from lab.baselines.engine import Attracted, BaselineEngine, ClusterSums
from lab.baselines.engines.utilities import sum_by_center


class BaselineReferenceEngine(ReferenceEngine, BaselineEngine):
    """The reference engine, and what the baselines ask beyond it."""

    def errors_and_utilities(
        self, centers: FloatArray, power: int = 2
    ) -> tuple[FloatArray, FloatArray]:
        """Return what the samples of each centre cost, and what more without it."""
        squares = self._squares(centers)
        ordered = np.sort(np.column_stack([squares, np.full(self.n_samples, np.inf)]), axis=1)
        labels = squares.argmin(axis=1)
        sums = sum_by_center(
            labels, ordered[:, 0], ordered[:, 1], self.weights, len(centers), power
        )
        errors, utilities = np.ldexp(sums, -power * self.frame.exponent)
        return errors, utilities

    def nearest_squares(self, centers: FloatArray) -> FloatArray:
        """Squared distances to the closest centres; zero for samples without weight."""
        return np.where(self.weights > 0.0, self._squares(centers).min(axis=1), 0.0)

    def two_closest(self, centers: FloatArray) -> tuple[NDArray[np.int32], FloatArray, FloatArray]:
        """Labels of the closest centres, and squared distances to the two closest."""
        squares = self._squares(centers)
        ordered = np.sort(np.column_stack([squares, np.full(self.n_samples, np.inf)]), axis=1)
        return squares.argmin(axis=1).astype(np.int32), ordered[:, 0], ordered[:, 1]

    def swap_gains(self, centers: FloatArray, quantile: float) -> tuple[int, FloatArray]:
        """Draw a sample by D²; return it, and the gains of putting each centre onto it."""
        squares = self._squares(centers)
        costs = self.weights * squares.min(axis=1)
        row = int(roulette(costs if costs.any() else self.weights, np.array([quantile]))[0])
        before, gains = self._cost_of(squares.argmin(axis=1), len(centers)), []
        for removed in range(len(centers)):
            swapped = centers.copy()
            swapped[removed] = self.samples[row]
            labels = self._squares(swapped).argmin(axis=1)
            gains.append(before - self._cost_of(labels, len(centers)))
        return row, np.ldexp(np.array(gains), -2 * self.frame.exponent)

    def _cost_of(self, labels: NDArray[np.intp], k: int) -> float:
        """Return the sum of squares of clusters around their means."""
        centers = np.zeros((k, self.samples.shape[1]))
        self._move_to_means(centers, labels, self._cluster_weights(labels, k))
        return float(self.weights @ ((self.samples - centers[labels]) ** 2).sum(axis=1))

    def threshold_moves(
        self,
        labels: NDArray[np.int32],
        n_clusters: int,
        order: NDArray[np.intp],
        factor: float,
    ) -> tuple[NDArray[np.int32], FloatArray]:
        """Move single samples, in this order, where that costs less than a multiple of before."""
        own = labels.astype(np.intp)
        centers = np.zeros((n_clusters, self.samples.shape[1]))
        for i in order:
            weights, weight = self._cluster_weights(own, n_clusters), self.weights[i]
            if weight == 0.0 or np.count_nonzero(self.weights[own == own[i]]) < 2:
                continue
            self._move_to_means(centers, own, weights)
            squares = ((self.samples[i] - centers) ** 2).sum(axis=1)
            costs = squares * weights / (weights + weight)
            costs[own[i]] = np.inf
            saved = squares[own[i]] * weights[own[i]] / (weights[own[i]] - weight)
            if costs.min() < factor * WORTHWHILE * saved:
                own[i] = costs.argmin()
        self._move_to_means(centers, own, self._cluster_weights(own, n_clusters))
        return own.astype(np.int32), centers

    def seed_from(
        self, pool: FloatArray, chances: FloatArray, quantiles: FloatArray
    ) -> NDArray[np.intp]:
        """Draw points of a pool by k-means++, judged by all samples; return their indices."""
        squares = self._squares(pool)
        apart = ((pool[:, None] - pool[None]) ** 2).sum(axis=2)
        drawn: list[int] = []
        for row in quantiles:
            chance = chances * (apart[:, drawn].min(axis=1) if drawn else 1.0)
            chance = chance if chance.any() else chances.copy()
            trials: list[int] = []
            for quantile in row if drawn else row[:1]:
                if chance.any():
                    trials.append(int(roulette(chance, np.array([quantile]))[0]))
                    chance[trials[-1]] = 0.0
            costs = [self.weights @ squares[:, [*drawn, one]].min(axis=1) for one in trials]
            drawn.append(trials[int(np.argmin(costs))])
        return np.array(drawn)

    def reductions(self, points: FloatArray, squares: FloatArray) -> FloatArray:
        """How much lower the objective is with one more centre, at each of the points."""
        gains = [
            self.weights @ np.maximum(squares - self._squares(point[None, :])[:, 0], 0.0)
            for point in points
        ]
        return np.ldexp(np.array(gains), -2 * self.frame.exponent)

    def attracted_means(self, points: FloatArray, squares: FloatArray) -> FloatArray:
        """Means of the samples that a centre at each of the points would attract."""
        means = points.copy()
        for i, point in enumerate(points):
            attracted = self._squares(point[None, :])[:, 0] < squares
            if attracted.any():
                weights = self.weights[attracted]
                means[i] = np.average(self.samples[attracted], axis=0, weights=weights)
        return means

    def attracted(self, points: FloatArray, squares: FloatArray) -> Attracted:
        """Reductions in the frame, weights and means, for a centre at each of the points."""
        reductions = np.ldexp(self.reductions(points, squares), 2 * self.frame.exponent)
        nearer = [self._squares(point[None, :])[:, 0] < squares for point in points]
        weights = np.array([self.weights[own].sum() for own in nearer])
        return Attracted(reductions, weights, self.attracted_means(points, squares))

    def cluster_sums(self, centers: FloatArray, parent: Handle | None = None) -> ClusterSums:
        """Assign all samples to these centres, and sum them up."""
        squares = self._squares(centers)
        owned = np.equal.outer(np.arange(len(centers)), squares.argmin(axis=1)) * self.weights
        inertia = float(self.weights @ squares.min(axis=1))
        return ClusterSums(inertia, owned.sum(axis=1), owned @ self.samples)
