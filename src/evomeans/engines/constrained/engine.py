"""The engine of k-means under constraints."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from evomeans.compiled.ready import Call
from evomeans.engines.base import Descent, ModelEngine, is_hopeless
from evomeans.engines.constrained.heaps import Heaps
from evomeans.engines.constrained.layout import Clustering, Items, MoveMemory, place_bound
from evomeans.engines.constrained.moves import (
    CANDIDATES,
    centre,
    exchange_items,
    measure,
    move_items,
    penalty,
)
from evomeans.engines.constrained.placing import PAIRS_AT_ONCE, PlacingEngine
from evomeans.engines.constrained.transport import Flow, begin, fill_soon, transport
from evomeans.typing import FloatArray, Integers, Labels

# Rounds of assignment and moves; no real search took a tenth of it.
MOST_ROUNDS = 10_000
# A round must lower the objective by this share, or it is the last.
IMPROVED = 1.0 - 1e-10


class ConstrainedEngine(PlacingEngine):
    """Items with limits and links, on which k-means keeps all constraints.

    Wherever items are placed, moves and exchanges follow that keep every constraint. The parameters
    are those of :class:`~evomeans.engines.constrained.placing.PlacingEngine`.
    """

    def nearest(self, centers: FloatArray) -> FloatArray:
        """Squared distances to the closest centres."""
        return closest_centers(self, self.items, centers)[1]

    def assign(self, centers: FloatArray) -> tuple[Labels, float]:
        """Place all items with centres where they are; return the objective too.

        If the engine has been abandoned, there is no time to do so at the least cost.
        """
        clusters = self._blank(centers)
        if self._has_time:
            clusters = self._placed(clusters)[0]
        else:
            self._place_soon(clusters)
        squares = self._costs[np.arange(self.n_samples), clusters.labels]
        objective = float(squares[self.weights > 0.0].sum()) + self._penalty(clusters.labels)
        return clusters.labels.astype(np.int32), self.in_data_units(objective)

    def distances(self, centers: FloatArray) -> FloatArray:
        """Distances of all items to all centres."""
        self._measure(centers)
        weights = np.maximum(self.weights, self.least_weight)[:, None]
        return np.ldexp(np.sqrt(self._costs / weights), -self.frame.exponent)

    def descend(self, centers: FloatArray, single_moves: bool, goal: float = math.inf) -> Descent:
        """Assign and average, then move and exchange items, until nothing changes."""
        clusters, flow = self._placed(self._blank(centers))
        objective = self._centre(clusters)
        n_iter = 1
        for _ in range(MOST_ROUNDS):
            self.reach(clusters.means.copy())
            lower = self._reassign(clusters, flow, objective)
            n_iter += 1
            if lower >= objective * IMPROVED:
                lower = min(lower, objective)
                # Only moves enforce links, so they cannot be left out.
                if not single_moves and not len(self.bound):
                    break
                if not self._move(clusters):
                    break
                lower = self._centre(clusters)
                if lower >= objective * IMPROVED:
                    break
            elif is_hopeless(objective, lower, goal):
                break
            objective = lower
        objective = self._centre(clusters)
        return Descent(
            clusters.means,
            clusters.labels.astype(np.int32),
            objective,
            clusters.weights.copy(),
            n_iter,
        )

    def _centre(self, clusters: Clustering) -> float:
        """Move centres to the means; return the objective."""
        squares: float = centre(self.items, clusters, self._work)
        return squares + self._penalty(clusters.labels)

    def _reassign(self, clusters: Clustering, flow: Flow, objective: float) -> float:
        """Assign the free items anew with centres where they are; return the new objective.

        If it is not lower, labels stay as they were.
        """
        before = clusters.labels.copy()
        self._measure(clusters.means)
        self._fill(clusters, flow)
        if np.array_equal(before, clusters.labels):
            return objective
        lower = self._centre(clusters)
        if lower >= objective:
            clusters.labels[:] = before
            lower = self._centre(clusters)
            self._measure(clusters.means)
        return lower

    def _move(self, clusters: Clustering) -> bool:
        """Move single items and chains, then exchange items; return whether any did."""
        moved = 0
        for _ in range(MOST_ROUNDS):
            self.check_abandoned()
            now = 0
            for block in self.blocks(len(self.low)):
                bounds = block.start, block.stop
                now += int(move_items(self.items, clusters, self._work, *bounds))
            if not now and self.is_limited:
                self._measure(clusters.means)
                now = self._exchange(clusters)
            if not now:
                break
            moved += now
            # What is added up move by move drifts by rounding.
            self._centre(clusters)
        return moved > 0

    def _exchange(self, clusters: Clustering) -> int:
        """Exchange items; return how many pairs."""
        k, exchanged = len(self.low), 0
        memory = self._costs, self._candidates, self._work
        at_once = max(1, PAIRS_AT_ONCE // (k * CANDIDATES**2))
        for first in range(0, k, at_once):
            self.check_abandoned()
            last = min(first + at_once, k)
            exchanged += int(exchange_items(self.items, clusters, *memory, first, last))
        return exchanged


def measured_blocks(
    engine: ModelEngine, items: Items, centers: FloatArray
) -> Iterator[tuple[slice, FloatArray]]:
    """Yield some items at a time, and their squared distances to all centres without weights."""
    k = len(centers)
    centers, columns = np.ascontiguousarray(centers), np.empty(k, np.int64)
    ones = np.ones(len(items.points))
    for block in engine.blocks(k):
        some = items._replace(points=items.points[block], weights=ones[block])
        squares, unknown = np.empty((len(some.points), k)), np.full(centers.shape, np.nan)
        measure(some, squares, centers, unknown, columns, 0.0)
        yield block, squares


def closest_centers(
    engine: ModelEngine, items: Items, centers: FloatArray
) -> tuple[Integers, FloatArray]:
    """Return the closest centre of each item, and its squared distance, whatever the weights.

    The distances to all centres are never held together: of many samples, memory has no room.
    """
    labels, nearest = np.empty(len(items.points), np.int64), np.empty(len(items.points))
    for block, squares in measured_blocks(engine, items, centers):
        labels[block], nearest[block] = squares.argmin(axis=1), squares.min(axis=1)
    return labels, nearest


def kernel_calls() -> Sequence[Call]:
    """Return what a search calls, see :func:`~evomeans.compiled.ready.ready`."""
    ints, floats, grid = np.zeros(2, np.int64), np.zeros(1), np.zeros((1, 1))
    one = ints[:1]
    items = Items(grid, floats, one, ints, one, ints, one, floats)
    clusters = Clustering(one, grid, floats, one, one, one)
    work, heaps = MoveMemory.allocate(1, 1, 1), Heaps.allocate(1, 1)
    candidates = np.zeros((1, 1, CANDIDATES), np.int64)
    flow: Any = Flow.allocate(1)
    return [
        Call(measure, (items, grid, grid, grid, one, 0.0), 0.4),
        Call(centre, (items, clusters, work), 0.4),
        Call(penalty, (items, one), 0.3),
        Call(move_items, (items, clusters, work, 0, 1), 1.0),
        Call(exchange_items, (items, clusters, grid, candidates, work, 0, 1), 1.0),
        Call(place_bound, (items, grid, one, one, 1, one, one, 0, 1), 0.6),
        Call(transport, (grid, one, one, one, one, flow, heaps), 1.2),
        Call(begin, (grid, one, one, one, one, flow), 0.3),
        Call(fill_soon, (grid, one, one, one, one), 0.2),
    ]
