"""The engine of trimmed k-means: the farthest samples do not count.

Trimming leaves out the samples that are farthest from the centres as they are. But a sample that is
left out would attract a centre if it counted, so the sum of squares can fall although it is farther
away. So samples that are left out are exchanged with samples that count. What an exchange changes
is computed with the means moving along, as in Hartigan's method.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.jit import jit
from evomeans.compiled.ready import Call
from evomeans.engines.base import ModelEngine, is_hopeless, weighted_sum
from evomeans.engines.constrained.engine import closest_centers, measured_blocks
from evomeans.engines.constrained.engine import kernel_calls as constrained_calls
from evomeans.engines.constrained.moves import (
    NONE,
    Clustering,
    Items,
    MoveMemory,
    centre,
    measure,
    move_items,
)
from evomeans.engines.frame import Frame
from evomeans.engines.protocol import Refinement
from evomeans.kernels.vectors import squared_difference
from evomeans.typing import FloatArray, Integers, Labels

# Samples of each cluster that may be left out instead of others: those farthest from its centre.
CANDIDATES = 16
# What is less than this share of the terms that make it up is rounding.
LEAST_GAIN = 1e-10


@jit(inline=False)
def exchange_outliers(
    items: Items,
    clusters: Clustering,
    weights: FloatArray,
    candidates: Integers,
    away: FloatArray,
    squares: FloatArray,
) -> int:
    """Let samples count that are left out, each instead of another one, where the objective falls.

    The weights of ``items`` are what counts of the samples, ``weights`` (n,) all of theirs; items
    and clusters follow the exchanges. Returns how many there were.
    """
    k, exchanged = clusters.means.shape[0], 0
    list_farthest(items, clusters, candidates, away)
    for j in range(weights.shape[0]):
        left = weights[j] - items.weights[j]
        if left <= 0.0:
            continue
        for b in range(k):
            squares[b] = squared_difference(items.points, j, clusters.means, b)
        i, b = find_exchange(items, clusters, j, left, candidates, away, squares)
        if i != NONE:
            a = clusters.labels[i]
            exchange(items, clusters, i, j, b, min(left, items.weights[i]))
            measure_again(items, clusters, a, candidates, away)
            measure_again(items, clusters, b, candidates, away)
            exchanged += 1
    return exchanged


@jit
def list_farthest(
    items: Items, clusters: Clustering, candidates: Integers, away: FloatArray
) -> None:
    """List the samples of each cluster that are farthest from its centre, farthest first."""
    for a in range(candidates.shape[0]):
        for p in range(CANDIDATES):
            candidates[a, p] = NONE
            away[a, p] = -1.0
    for i in range(items.points.shape[0]):
        if items.weights[i] <= 0.0:
            continue
        a = clusters.labels[i]
        square = squared_difference(items.points, i, clusters.means, a)
        p = CANDIDATES
        while p > 0 and square > away[a, p - 1]:
            if p < CANDIDATES:
                candidates[a, p], away[a, p] = candidates[a, p - 1], away[a, p - 1]
            p -= 1
        if p < CANDIDATES:
            candidates[a, p], away[a, p] = i, square


@jit
def measure_again(
    items: Items, clusters: Clustering, a: int, candidates: Integers, away: FloatArray
) -> None:
    """Measure how far the listed samples of a cluster are from its centre, which has moved."""
    for p in range(CANDIDATES):
        if candidates[a, p] != NONE:
            away[a, p] = squared_difference(items.points, candidates[a, p], clusters.means, a)


@jit
def find_exchange(
    items: Items,
    clusters: Clustering,
    j: int,
    left: float,
    candidates: Integers,
    away: FloatArray,
    squares: FloatArray,
) -> tuple[int, int]:
    """Find the sample to leave out instead of j, and the cluster of j, that lower the objective."""
    k = candidates.shape[0]
    chosen, where, lowest = NONE, NONE, 0.0
    for a in range(k):
        for p in range(CANDIDATES):
            i = candidates[a, p]
            if i == NONE:
                break
            amount = min(left, items.weights[i])
            rest = clusters.weights[a] - amount
            if i == j or amount <= 0.0 or rest <= 0.0:
                continue
            for b in range(k):
                # A sample that counts in part has its cluster.
                if items.weights[j] > 0.0 and b != clusters.labels[j]:
                    continue
                if b == a:
                    change = swap_change(items, i, j, away[a, p], squares[a], amount, rest + amount)
                else:
                    total = clusters.weights[b]
                    spent = squares[b] * total / (total + amount)
                    change = amount * (spent - away[a, p] * (rest + amount) / rest)
                if change < lowest and -change > LEAST_GAIN * amount * (away[a, p] + squares[b]):
                    chosen, where, lowest = i, b, change
    return chosen, where


@jit
def swap_change(
    items: Items, i: int, j: int, own: float, other: float, amount: float, total: float
) -> float:
    """Return what changes if j takes the place of i in the same cluster.

    The squared distances to the mean change, and then the mean moves by (xⱼ − xᵢ)·amount/total.
    """
    # A bound that needs no distance between the two.
    reach = math.sqrt(own) + math.sqrt(other)
    bound = amount * (other - own) - amount * amount / total * reach * reach
    if bound >= 0.0:
        return bound
    apart = squared_difference(items.points, i, items.points, j)
    return amount * (other - own) - amount * amount / total * apart


@jit
def exchange(items: Items, clusters: Clustering, i: int, j: int, b: int, amount: float) -> None:
    """Leave out a part of i, and count as much of j in cluster b; the means follow."""
    a = clusters.labels[i]
    rest = clusters.weights[a] - amount
    for t in range(items.points.shape[1]):
        clusters.means[a, t] += (clusters.means[a, t] - items.points[i, t]) * (amount / rest)
    clusters.weights[a] = rest
    total = clusters.weights[b] + amount
    for t in range(items.points.shape[1]):
        clusters.means[b, t] += (items.points[j, t] - clusters.means[b, t]) * (amount / total)
    clusters.weights[b] = total
    items.weights[i] -= amount
    items.weights[j] += amount
    clusters.labels[j] = b


MOST_ROUNDS = 10_000
IMPROVED = 1.0 - 1e-12
OUTLIER = -1


class Trimming(NamedTuple):
    """Closest centres of samples, squared distances to them, and what is left of their weights."""

    labels: NDArray[np.int64]
    squares: FloatArray
    kept: FloatArray

    @property
    def objective(self) -> float:
        """Weighted sum of the squared distances that count."""
        return weighted_sum(self.kept, self.squares)

    def labels_with_outliers(self, weights: FloatArray) -> Labels:
        """Return the labels, −1 for samples of which nothing counts."""
        is_outlier = (self.kept == 0.0) & (weights > 0.0)
        return np.where(is_outlier, OUTLIER, self.labels).astype(np.int32)


class TrimmedEngine(ModelEngine):
    """Dense samples, of which those farthest from centres, of weight ``trimmed``, do not count."""

    def __init__(
        self, X: NDArray[Any], sample_weight: FloatArray | None, trimmed: float, *, n_jobs: int = 1
    ) -> None:
        weights = np.ones(len(X)) if sample_weight is None else sample_weight
        super().__init__(weights, Frame.around(X), n_jobs)
        self.trimmed = trimmed
        points = np.ascontiguousarray(self.frame.encode(X).astype(np.float64))
        starts, none = np.zeros(len(X) + 1, np.int64), np.empty(0, np.int64)
        counts = np.ones(len(X), np.int64)
        self.items = Items(points, weights, counts, starts, none, starts, none, np.empty(0))

    def rows(self, chosen: NDArray[np.intp]) -> FloatArray:
        """Return a few samples."""
        return self.items.points[chosen]

    def trim(self, centers: FloatArray) -> Trimming:
        """Find the closest centres, and leave out the samples that are farthest from theirs."""
        labels, nearest = closest_centers(self, self.items.points, centers)
        # The first of equals goes first.
        order = np.argsort(-nearest, kind="stable")
        kept = self.weights.copy()
        left = self.trimmed - np.concatenate([[0.0], np.cumsum(self.weights[order])[:-1]])
        kept[order] -= np.clip(left, 0.0, self.weights[order])
        return Trimming(labels, nearest, np.maximum(kept, 0.0))

    def nearest(self, centers: FloatArray) -> FloatArray:
        """Squared distances to the closest centres; zero for what is left out."""
        found = self.trim(centers)
        return np.where(found.kept > 0.0, found.squares, 0.0)

    def assign(self, centers: FloatArray) -> tuple[Labels, float]:
        """Label the samples, −1 for those left out; return the objective too."""
        found = self.trim(centers)
        objective = self.frame.inertia_in_data_units(found.objective)
        return found.labels_with_outliers(self.weights), objective

    def distances(self, centers: FloatArray) -> FloatArray:
        """Distances of all samples to all centres."""
        squares = [found for _, found in measured_blocks(self, self.items.points, centers)]
        return np.ldexp(np.sqrt(np.concatenate(squares)), -self.frame.exponent)

    def descend(
        self, centers: FloatArray, single_moves: bool, goal: float = math.inf
    ) -> Refinement:
        """Alternate assignment, trimming, means, single moves and exchanges until none improves."""
        (n, d), k = self.items.points.shape, len(centers)
        work = MoveMemory.allocate(n, k, d, self.stop)
        limits = np.zeros(k, np.int64), np.full(k, n)
        means = np.array(centers, dtype=np.float64)
        best, best_means = np.inf, means
        # The plan has no single moves for one cluster; only exchanges improve it.
        improves = single_moves or k == 1
        n_iter = 0
        for _ in range(MOST_ROUNDS):
            self.reach(best_means)
            found = self.trim(means)
            n_iter += 1
            if found.objective >= best * IMPROVED or is_hopeless(best, found.objective, goal):
                break
            best, best_means = found.objective, means.copy()
            items = self.items._replace(weights=found.kept)
            counts = np.zeros(k, np.int64)
            clusters = Clustering(found.labels, means, np.zeros(k), counts, *limits)
            lower = float(centre(items, clusters, work))
            # Only moves fill clusters that are empty.
            if (improves and lower >= best * IMPROVED) or not clusters.weights.all():
                self._move(items, clusters, work)
        found = self.trim(best_means)
        totals = np.bincount(found.labels, found.kept, k).astype(np.float64)
        labels = found.labels_with_outliers(self.weights)
        return Refinement(best_means, found.objective, totals, n_iter, labels=labels)

    def _move(self, items: Items, clusters: Clustering, work: MoveMemory) -> None:
        """Move single samples until none can be; then exchange some with those left out."""
        for _ in range(MOST_ROUNDS):
            self.check_abandoned()
            if not move_items(items, clusters, work):
                break
            # What is added up move by move drifts by rounding.
            centre(items, clusters, work)
        if self.trimmed > 0.0:
            k = len(clusters.means)
            candidates, away = np.empty((k, CANDIDATES), np.int64), np.empty((k, CANDIDATES))
            if exchange_outliers(items, clusters, self.weights, candidates, away, work.squares):
                centre(items, clusters, work)


def kernel_calls() -> list[Any]:
    """Return what a search calls, see :func:`~evomeans.compiled.ready.ready`."""
    ours = (measure, centre, move_items)
    shared = [call for call in constrained_calls() if call.kernel in ours]
    moves = next(call.arguments for call in shared if call.kernel is move_items)
    items, clusters, work = moves[:3]
    candidates, away = np.zeros((1, CANDIDATES), np.int64), np.zeros((1, CANDIDATES))
    arguments = items, clusters, np.zeros(1), candidates, away, work.squares
    return [*shared, Call(exchange_outliers, arguments, 0.6)]
