"""The reference engine: every operator in plain NumPy, slow and obvious, the oracle of all tests.

It shares no course, kernel or bound with the other engines, only the rules of
:mod:`~evomeans.engines.rules`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from evomeans.engines.frame import Frame
from evomeans.engines.inherited import OneAtATime
from evomeans.engines.momentum import Momentum
from evomeans.engines.outlook import Outlook
from evomeans.engines.protocol import (
    Ability,
    Attracted,
    ClusterSums,
    Flags,
    FloatArray,
    Handle,
    Refinement,
    Start,
)
from evomeans.engines.rules import (
    BETTER,
    MAX_ITERATIONS,
    MAX_REPAIRS,
    MEAN_ROUNDING,
    MOST_SPARE,
    WORTHWHILE,
    repair_draw,
    sits_on_centers,
    split_mixture,
    sum_by_center,
)
from evomeans.engines.sampling import Drawing


class ReferenceEngine(OneAtATime):
    """Dense samples, brute force, one thread.

    Parameters
    ----------
    X : (n, d) array
        Samples in data units.
    sample_weight : (n,) array, optional
        Non-negative, not all zero.
    frame : Frame, optional
        The frame to work in, by default the one around ``X``.
    """

    batch = 1
    most_sampled = sys.maxsize
    abilities = frozenset(Ability)

    def __init__(
        self, X: NDArray[Any], sample_weight: FloatArray | None, frame: Frame | None = None
    ) -> None:
        self.frame = Frame.around(X) if frame is None else frame
        self.samples = self.frame.encode(X).astype(np.float64)
        self.weights = np.ones(len(X)) if sample_weight is None else sample_weight
        self.total_weight = float(self.weights.sum())
        self.norms = np.einsum("ij,ij->i", self.samples, self.samples)
        self.n_samples = len(X)
        self.dtype = X.dtype

    def samples_at(self, quantiles: FloatArray) -> FloatArray:
        """Rows at quantiles of the cumulated weight."""
        return self.samples[draw(self.weights, quantiles)]

    def subsample(self, drawing: Drawing) -> ReferenceEngine:
        """Make an engine over rows that are drawn by their weights and distances."""
        costs, centers = None, drawing.centers
        if centers is not None:
            costs = self.weights * self._squares(centers).min(axis=1)
        rows, own = drawing.choose(costs, self.weights, self.total_weight, self.n_samples)
        return ReferenceEngine(self.frame.decode(self.samples[rows]), own, self.frame)

    def close(self) -> None:
        """Release nothing."""

    def refine(self, starts: Sequence[Start]) -> list[Refinement]:
        """Refine every start, one after the other."""
        return [self._refine(start) for start in starts]

    def _refine(self, start: Start) -> Refinement:
        centers = start.centers.copy()
        if start.removed >= 0:
            self._relocate(centers, start.removed, start.alpha, start.quantile, start.power)
        best = self._descend(centers, start)
        n_iter = best.n_iter
        if start.local_search.max_iter is None and len(centers) > 1:
            # The engine has no randomness of its own: all draws follow from that of the start.
            rng = np.random.default_rng(int(start.quantile * 2**53))
            for _ in range(start.local_search.swaps):
                swapped = self._descend(self._swap(best, rng), start)
                n_iter += swapped.n_iter
                if swapped.inertia < best.inertia * BETTER:
                    best = swapped
        inertia = self.frame.inertia_in_data_units(best.inertia)
        return replace(best, inertia=inertia, n_iter=n_iter)

    def _descend(self, centers: FloatArray, start: Start) -> Refinement:
        """K-means, single moves and refilled clusters; the inertia is in the frame."""
        limit, single_moves = start.local_search.max_iter, start.local_search.single_moves
        labels = np.full(self.n_samples, -1)
        n_iter, repairs, steps = 0, 0, 0
        if start.local_search.momentum and limit is None:
            outlook = Outlook(0.0 if start.local_search.swaps else start.least_explained)
            n_iter, is_hopeless = self._descend_with_momentum(centers, outlook)
            if is_hopeless:
                return Refinement(centers, math.inf, np.zeros(len(centers)), n_iter)
        while True:
            previous, labels = labels, np.argmin(self._squares(centers), axis=1)
            n_iter += 1
            weights = self._cluster_weights(labels, len(centers))
            if steps != limit:
                steps += 1
                self._move_to_means(centers, labels, weights)
                if not np.array_equal(labels, previous) and n_iter < MAX_ITERATIONS:
                    continue
                moves = single_moves and n_iter < MAX_ITERATIONS
                if moves and self._move_single_samples(centers, labels):
                    continue
            nearest = self._squares(centers).min(axis=1)
            inertia = float(self.weights @ nearest)
            counted = np.flatnonzero(self.weights)
            on_samples = sits_on_centers(nearest[counted], self.norms[counted])
            if weights.all() or on_samples or repairs >= MAX_REPAIRS * len(centers):
                if on_samples:
                    present, members = np.unique(labels[counted], return_index=True)
                    centers[present] = self.samples[counted[members]]
                    squares = self._squares(centers)
                    inertia = float(self.weights @ squares.min(axis=1))
                    weights = self._cluster_weights(squares.argmin(axis=1), len(centers))
                return Refinement(centers, inertia, weights, n_iter)
            steps = 0
            for empty in np.flatnonzero(weights == 0.0).tolist():
                repairs += 1
                alpha, quantile = repair_draw(start.alpha, start.quantile, repairs)
                self._relocate(centers, empty, alpha, quantile, start.power)

    def _descend_with_momentum(self, centers: FloatArray, outlook: Outlook) -> tuple[int, bool]:
        """Lead the centres near a fixed point.

        Return how many assignments that took, and whether it is hopeless.
        """
        momentum, n_iter = Momentum(), 0
        while n_iter < MAX_ITERATIONS:
            n_iter += 1
            labels = np.argmin(self._squares(centers), axis=1)
            weights, means = self._cluster_weights(labels, len(centers)), centers.copy()
            self._move_to_means(means, labels, weights)
            if outlook.is_hopeless(centers, means, weights):
                return n_iter, True
            target = momentum.next(centers, means, weights)
            if target is None:
                break
            centers[:] = target
        return n_iter, False

    def _swap(self, solution: Refinement, rng: np.random.Generator) -> FloatArray:
        """Take away a centre of little use, and put it onto a sample that costs much.

        The use of a cluster is what merging it with the cheapest other one would cost, wₐwᵦ/(wₐ+wᵦ)
        times the squared distance of their centres; of a few clusters drawn, the least useful one
        goes. The sample is drawn by its share of the sum of squares.
        """
        centers, weights = solution.centers, solution.cluster_weights
        k = len(centers)
        drawn = rng.integers(k, size=max(2, k // 10))
        apart = np.sum((centers[drawn][:, None] - centers) ** 2, axis=2)
        products, totals = np.outer(weights[drawn], weights), np.add.outer(weights[drawn], weights)
        costs = apart * products / np.where(totals > 0.0, totals, 1.0)
        costs[np.arange(len(drawn)), drawn] = np.inf
        removed = drawn[costs.min(axis=1).argmin()]
        shares = self.weights * self._squares(centers).min(axis=1)
        chance = shares if shares.any() else self.weights
        swapped = centers.copy()
        swapped[removed] = self.samples[draw(chance, rng.random(1))[0]]
        return swapped

    def _move_single_samples(self, centers: FloatArray, labels: NDArray[np.intp]) -> bool:
        """Make Hartigan's moves; return whether there were any.

        Samples that could gain by a move are visited one after the other, and move if they still
        can after the moves before.
        """
        moved = False
        for i in np.flatnonzero(self._best_moves(centers, labels) >= 0):
            target = self._best_moves(centers, labels, slice(i, i + 1))[0]
            if target >= 0:
                moved = True
                labels[i] = target
                self._move_to_means(centers, labels, self._cluster_weights(labels, len(centers)))
        return moved

    def _best_moves(
        self, centers: FloatArray, labels: NDArray[np.intp], chosen: slice = slice(None)
    ) -> NDArray[np.intp]:
        """Return the clusters to which samples had best move, −1 for those that had better stay."""
        weights, own = self.weights[chosen], labels[chosen]
        totals, each = self._cluster_weights(labels, len(centers)), np.arange(len(own))
        difference = self.samples[chosen, None] - centers
        distances = np.sqrt((difference**2).sum(axis=2))
        rounding = MEAN_ROUNDING * np.sqrt(self.samples.shape[1])
        rest = totals[own] - weights
        can_leave = (weights > 0.0) & (rest > 0.0)
        least = np.maximum(distances[each, own] - rounding, 0.0) ** 2 * totals[own]
        least /= np.where(can_leave, rest, 1.0)
        spent = (distances + rounding) ** 2 * totals / (totals + weights[:, None] + (totals == 0.0))
        spent[:, totals == 0.0] = np.inf
        spent[each, own] = np.inf
        targets = spent.argmin(axis=1)
        pays = can_leave & (spent[each, targets] < least * WORTHWHILE)
        return np.where(pays, targets, -1)

    def _move_to_means(
        self, centers: FloatArray, labels: NDArray[np.intp], weights: FloatArray
    ) -> None:
        for j in np.flatnonzero(weights):
            members = (labels == j) & (self.weights > 0.0)
            rows = self.samples[members]
            # From a member on, so that the mean of equal samples is that sample.
            centers[j] = rows[0] + np.average(rows - rows[0], axis=0, weights=self.weights[members])

    def _relocate(
        self, centers: FloatArray, removed: int, alpha: float, quantile: float, power: int
    ) -> None:
        """Put one centre onto a sample drawn from the mixture (the paper's eq. 5)."""
        by_distance, quantile = split_mixture(alpha, quantile)
        chance = self.weights
        if by_distance and len(centers) > 1:
            rest = np.delete(centers, removed, axis=0)
            distances = self._squares(rest).min(axis=1) ** (power / 2)
            if np.any(self.weights * distances > 0.0):
                chance = self.weights * distances
        centers[removed] = self.samples[draw(chance, np.array([quantile]))[0]]

    def _cluster_weights(self, labels: NDArray[np.intp], k: int) -> FloatArray:
        return np.bincount(labels, self.weights, k).astype(np.float64)

    def _squares(self, centers: FloatArray) -> FloatArray:
        difference = self.samples[:, None, :] - centers[None, :, :]
        squares: FloatArray = np.einsum("ikj,ikj->ik", difference, difference)
        return squares

    def assign(self, centers: FloatArray) -> tuple[NDArray[np.int32], float]:
        """Labels of the closest centres, and the inertia."""
        squares = self._squares(centers)
        inertia = float(self.weights @ squares.min(axis=1))
        return squares.argmin(axis=1).astype(np.int32), self.frame.inertia_in_data_units(inertia)

    def distances(self, centers: FloatArray) -> FloatArray:
        """Distances of all samples to all centres."""
        return np.ldexp(np.sqrt(self._squares(centers)), -self.frame.exponent)

    def seed(self, quantiles: FloatArray) -> FloatArray:
        """Centres drawn by D² seeding."""
        first, *later = quantiles.reshape(len(quantiles), -1)
        centers = self.samples_at(first[:1])
        nearest = self._squares(centers)[:, 0]
        for trials in later:
            chance = self.weights * nearest
            drawn = self.samples[draw(chance if chance.any() else self.weights, trials)]
            savings = np.maximum(nearest[:, None] - self._squares(drawn), 0.0)
            best = np.argmax(self.weights @ savings)
            centers = np.vstack([centers, drawn[best]])
            nearest = np.minimum(nearest, self._squares(drawn[best : best + 1])[:, 0])
        return centers

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

    def better_parts(
        self,
        first: FloatArray,
        second: FloatArray,
        first_handle: Handle | None = None,
        second_handle: Handle | None = None,
    ) -> tuple[Flags, Flags] | None:
        """Put the better versions of all parts together in which two solutions differ."""
        k, counted = len(first), np.flatnonzero(self.weights)
        squares = [self._squares(centers)[counted] for centers in (first, second)]
        labels = [square.argmin(axis=1) for square in squares]
        errors = [
            np.bincount(own, self.weights[counted] * square.min(axis=1), k)
            for own, square in zip(labels, squares, strict=True)
        ]
        edges = coo_array((np.ones(len(counted)), (labels[0], labels[1] + k)), (2 * k, 2 * k))
        count, part = connected_components(edges, directed=False)
        extra_costs = np.bincount(part, np.concatenate([-errors[0], errors[1]]), count)
        extra_clusters = np.bincount(part, np.repeat([-1.0, 1.0], k), count).astype(int)
        taken = balanced_choice(extra_costs.tolist(), extra_clusters.tolist())
        gone, chosen = np.isin(part, taken).reshape(2, k)
        total = errors[0][~gone].sum() + errors[1][chosen].sum()
        if total >= min(errors[0].sum(), errors[1].sum()) * BETTER:
            return None
        return gone, chosen

    def rows(self, chosen: NDArray[np.intp]) -> FloatArray:
        """Return a few samples."""
        return self.samples[chosen]

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
        row = int(draw(costs if costs.any() else self.weights, np.array([quantile]))[0])
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
                    trials.append(int(draw(chance, np.array([quantile]))[0]))
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


def draw(chance: FloatArray, quantiles: FloatArray) -> NDArray[np.intp]:
    """Roulette wheel: indices whose share of the cumulated ``chance`` holds the quantiles."""
    cumulated = np.cumsum(chance)
    indices = np.searchsorted(cumulated, quantiles * cumulated[-1], side="right")
    drawn: NDArray[np.intp] = np.minimum(indices, np.flatnonzero(chance)[-1])
    return drawn


def balanced_choice(extra_costs: Sequence[float], extra_clusters: Sequence[int]) -> list[int]:
    """Choose items of the least total cost among those choices whose extra clusters add up to 0."""
    best: dict[int, tuple[float, list[int]]] = {0: (0.0, [])}
    for item, (extra, more) in enumerate(zip(extra_costs, extra_clusters, strict=True)):
        taken = {
            balance + more: (cost + extra, [*items, item])
            for balance, (cost, items) in best.items()
            if abs(balance + more) <= MOST_SPARE
        }
        best = {
            balance: min(
                (options[balance] for options in (best, taken) if balance in options),
                key=lambda choice: choice[0],
            )
            for balance in best.keys() | taken.keys()
        }
    return best[0][1]
