"""The reference engine: every operator in plain NumPy, slow and obvious, the oracle of all tests.

It shares no course, kernel or bound with the engines that are compared with it.
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

from evomeans.engines.base import DrawnCenters
from evomeans.engines.course import AbandonRule, Momentum
from evomeans.engines.frame import Frame
from evomeans.engines.protocol import Ability, Handle, Order, Refinement
from evomeans.engines.rules import (
    BETTER,
    MAX_ITERATIONS,
    MAX_REPAIRS,
    MEAN_ROUNDING,
    MOST_SPARE,
    WORTHWHILE,
    repair_draw,
    sits_on_centers,
)
from evomeans.engines.sampling import Drawing, roulette
from evomeans.typing import Flags, FloatArray


class ReferenceEngine(DrawnCenters):
    """Dense samples, brute force, one thread."""

    batch = 1
    most_sampled = sys.maxsize
    abilities = frozenset(Ability)

    def __init__(
        self, X: NDArray[Any], sample_weight: FloatArray | None, frame: Frame | None = None
    ) -> None:
        self.frame = Frame.around(X) if frame is None else frame
        self.samples = self.frame.encode(X).astype(np.float64)
        self.weights = np.ones(len(X)) if sample_weight is None else sample_weight
        self.chances = self.weights
        self.total_weight = float(self.weights.sum())
        self.norms = np.einsum("ij,ij->i", self.samples, self.samples)
        self.n_samples = len(X)
        self.dtype = X.dtype

    def subsample(self, drawing: Drawing) -> ReferenceEngine:
        """Make an engine over rows that are drawn by their weights and distances."""
        costs, centers = None, drawing.centers
        if centers is not None:
            costs = self.weights * self.nearest(centers)
        rows, own = drawing.choose(costs, self.weights, self.total_weight, self.n_samples)
        return ReferenceEngine(self.frame.decode(self.samples[rows]), own, self.frame)

    def refine(self, starts: Sequence[Order]) -> list[Refinement]:
        """Refine every start, one after the other."""
        return [self._refine(start) for start in starts]

    def _refine(self, start: Order) -> Refinement:
        centers = start.centers.copy()
        if start.removed >= 0:
            self.relocate(centers, start.removed, start.alpha, start.quantile, start.power)
        best = self._descend(centers, start)
        n_iter = best.n_iter
        if start.local_search.max_iter is None and len(centers) > 1:
            # The engine has no randomness of its own: all draws follow from that of the start.
            rng = np.random.default_rng(int(start.quantile * 2**53))
            for _ in range(start.local_search.swaps):
                swapped = self._descend(
                    self.swapped(best.centers, best.cluster_weights, rng), start
                )
                n_iter += swapped.n_iter
                if swapped.inertia < best.inertia * BETTER:
                    best = swapped
        inertia = self.frame.inertia_in_data_units(best.inertia)
        return replace(best, inertia=inertia, n_iter=n_iter)

    def _descend(self, centers: FloatArray, start: Order) -> Refinement:
        """K-means, single moves and refilled clusters; the inertia is in the frame."""
        limit, single_moves = start.local_search.max_iter, start.local_search.single_moves
        labels = np.full(self.n_samples, -1)
        n_iter, repairs, steps = 0, 0, 0
        if start.local_search.momentum and limit is None:
            rule = AbandonRule(0.0 if start.local_search.swaps else start.least_explained)
            n_iter, is_hopeless = self._descend_with_momentum(centers, rule)
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
            nearest = self.nearest(centers)
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
                self.relocate(centers, empty, alpha, quantile, start.power)

    def _descend_with_momentum(self, centers: FloatArray, rule: AbandonRule) -> tuple[int, bool]:
        """Lead centres near a fixed point; return the assignments made, and if it is hopeless."""
        momentum, n_iter = Momentum(), 0
        while n_iter < MAX_ITERATIONS:
            n_iter += 1
            labels = np.argmin(self._squares(centers), axis=1)
            weights, means = self._cluster_weights(labels, len(centers)), centers.copy()
            self._move_to_means(means, labels, weights)
            if rule.is_hopeless(centers, means, weights):
                return n_iter, True
            target = momentum.next(centers, means, weights)
            if target is None:
                break
            centers[:] = target
        return n_iter, False

    def _move_single_samples(self, centers: FloatArray, labels: NDArray[np.intp]) -> bool:
        """Make Hartigan's moves, one sample after the other; return whether there were any."""
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
        helps = can_leave & (spent[each, targets] < least * WORTHWHILE)
        return np.where(helps, targets, -1)

    def _move_to_means(
        self, centers: FloatArray, labels: NDArray[np.intp], weights: FloatArray
    ) -> None:
        for j in np.flatnonzero(weights):
            members = (labels == j) & (self.weights > 0.0)
            rows = self.samples[members]
            # From a member on, so that the mean of equal samples is that sample.
            centers[j] = rows[0] + np.average(rows - rows[0], axis=0, weights=self.weights[members])

    def rows(self, chosen: NDArray[np.intp]) -> FloatArray:
        """Return a few samples."""
        return self.samples[chosen]

    def nearest(self, centers: FloatArray) -> FloatArray:
        """Squared distances to the closest centres."""
        nearest: FloatArray = self._squares(centers).min(axis=1)
        return nearest

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
            drawn = self.rows(roulette(self.chance(nearest), trials))
            savings = np.maximum(nearest[:, None] - self._squares(drawn), 0.0)
            best = np.argmax(self.weights @ savings)
            centers = np.vstack([centers, drawn[best]])
            nearest = np.minimum(nearest, self._squares(drawn[best : best + 1])[:, 0])
        return centers

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
