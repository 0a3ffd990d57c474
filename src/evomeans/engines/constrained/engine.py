"""The engine of k-means under constraints."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from evomeans.compiled.ready import Call
from evomeans.engines.base import ModelEngine, is_hopeless
from evomeans.engines.constrained.feasibility import find_clustering, place_exactly
from evomeans.engines.constrained.links import (
    Groups,
    Links,
    check_penalties,
    group_samples,
    neighbours,
    pairs_among,
    soft_pairs,
)
from evomeans.engines.constrained.moves import (
    CANDIDATES,
    NONE,
    Clustering,
    Items,
    MoveMemory,
    centre,
    exchange_items,
    measure,
    move_items,
    penalty,
    place_bound,
)
from evomeans.engines.constrained.transport import (
    Flow,
    Heaps,
    Problem,
    begin,
    fill_soon,
    transport,
)
from evomeans.engines.frame import Frame
from evomeans.engines.protocol import Refinement
from evomeans.typing import FloatArray, Integers, Labels

# If more than FEW_WAITING items wait, placing looks at WINDOW of them for the next one.
FEW_WAITING, WINDOW = 400, 64
# The largest integer program to repair a placement with, and the size of its search tree.
MOST_VARIABLES, MOST_NODES = 6000, 50
# To find prices for all items, a transport begins with every 64th, then with every 8th item, if
# that leaves enough of them for each cluster.
STRIDES, FEWEST_PER_CLUSTER = (64, 8), 10
# What items without weight count when they are placed.
LEAST_SHARE = 1e-12
# Rounds of assignment and moves; no real search took a tenth of it.
MOST_ROUNDS = 10_000
# A round must lower the objective by this share, or it is the last.
IMPROVED = 1.0 - 1e-10


class ConstrainedEngine(ModelEngine):
    """Items with limits and links, on which k-means keeps all constraints.

    Bound items, which have links or are groups under size limits, are placed one after the other in
    order of regret. All others are assigned at the least total cost. Wherever items are placed,
    moves and exchanges follow that keep every constraint.

    Clusters must and may have ``low`` and ``high`` (k,) samples. Raises an InfeasibleError if no
    clustering satisfies all constraints.
    """

    def __init__(
        self, groups: Groups, links: Links, low: Integers, high: Integers, *, n_jobs: int = 1
    ) -> None:
        frame = Frame.around(groups.points)
        super().__init__(groups.weights, frame, n_jobs)
        self.groups = groups
        self.low, self.high = low, high
        self.points = frame.encode(groups.points).astype(np.float64)
        self.is_limited = bool(low.any() or (high < groups.counts.sum()).any())
        m = len(groups.counts)
        self.pairs = np.unique(np.sort(groups.of_sample[links.hard_cannot], axis=1), axis=0)
        soft, penalties, constant = soft_pairs(links, groups.of_sample)
        check_penalties(penalties, constant, frame)
        # Penalties are in the units of the data, and all computing is done in the frame.
        penalties = np.ldexp(penalties, 2 * frame.exponent)
        self.least_penalty = float(np.ldexp(constant, 2 * frame.exponent))
        hard_start, hard, _ = neighbours(m, self.pairs)
        own = self.points, np.ascontiguousarray(groups.weights), groups.counts
        self.items = Items(*own, hard_start, hard, *neighbours(m, soft, penalties))
        self.least_weight = LEAST_SHARE * self.total_weight / m
        degrees = np.diff(self.items.hard_start)
        is_bound = (degrees > 0) | (np.diff(self.items.soft_start) > 0)
        if self.is_limited:
            is_bound |= groups.counts > 1
        self.free, bound = np.flatnonzero(~is_bound), np.flatnonzero(is_bound)
        self.bound = bound[np.argsort(-degrees[bound] - groups.counts[bound], kind="stable")]
        self.differ = bool(np.ptp(low) or np.ptp(high))
        self.cliques, self.parts = self._components()
        self._allocate()
        self.feasible = self._some_placement()

    def _allocate(self) -> None:
        """Reserve memory of this engine's own."""
        self._has_time = True
        (m, d), k = self.points.shape, len(self.low)
        self._work = MoveMemory.allocate(m, k, d, self.stop)
        self._costs = np.empty((m, k))
        # The centres whose costs these are: none, and NaN differs from all.
        self._measured = np.full((k, d), np.nan)
        self._heaps = Heaps.allocate(len(self.free) if self.is_limited else 0, k)
        self._candidates = np.empty((k, k, CANDIDATES), np.int64)

    def twin(self) -> Self:
        """Return an engine with memory of its own over the same items."""
        twin = super().twin()
        twin._allocate()
        return twin

    def _components(self) -> tuple[list[Integers], Integers]:
        """Return the conflict components that are cliques, and the component of every item."""
        parts = group_samples(len(self.points), self.pairs)
        sizes = np.bincount(parts)
        edges = np.bincount(parts[self.pairs[:, 0]], minlength=len(sizes))
        is_clique = (sizes > 2) & (edges == sizes * (sizes - 1) // 2)
        order, ends = np.argsort(parts, kind="stable"), np.cumsum(sizes)
        cliques = [order[ends[i] - sizes[i] : ends[i]] for i in np.flatnonzero(is_clique)]
        return cliques, parts

    def _some_placement(self) -> Integers:
        """Return places of the bound items that keep all constraints, whatever they cost."""
        k = len(self.low)
        spread = self.rows(np.linspace(0, len(self.points) - 1, k).astype(np.intp))
        if len(self.bound):
            self._measure(spread)
        clusters = self._blank(spread)
        if self._try_to_place(clusters) and self._problem(clusters) is not None:
            return clusters.labels[self.bound].copy()
        return find_clustering(self.groups, self.bound, self.pairs, self.low, self.high)

    def rows(self, chosen: NDArray[np.intp]) -> FloatArray:
        """Return a few items."""
        return self.points[chosen]

    def abandon(self, is_abandoned: bool) -> None:
        """End the refinement that another thread is running; labels will be found soon, too."""
        super().abandon(is_abandoned)
        self._has_time = self._has_time and not is_abandoned

    def _blank(self, centers: FloatArray) -> Clustering:
        k = len(centers)
        labels = np.full(self.n_samples, -1, np.int64)
        means = np.array(centers, dtype=np.float64)
        return Clustering(labels, means, np.zeros(k), np.zeros(k, np.int64), self.low, self.high)

    def _measure(self, centers: FloatArray) -> None:
        """Fill in what all items cost with the centres, for those of them that have moved."""
        centers = np.ascontiguousarray(centers, np.float64)
        moved = np.flatnonzero((centers != self._measured).any(axis=1))
        # Nothing is measured before all is: another thread may end it.
        self._measured[moved] = np.nan
        for block in self.blocks(len(centers)):
            own = self.points[block], self.items.weights[block], self._costs[block]
            measure(*own, centers, moved, self.least_weight)
        self._measured[moved] = centers[moved]

    def _penalty(self, labels: Integers) -> float:
        # Rounding must not make it negative.
        return max(0.0, float(penalty(self.items, labels)) + self.least_penalty)

    def _placed(self, centers: FloatArray) -> tuple[Clustering, Flow]:
        """Place all items with centres where they are, or in the order that suits the limits."""
        orders = [np.arange(len(self.low))]
        if self.differ:
            orders.append(self._order_by_size(centers))
        found = []
        for order in orders:
            one, flow = self._blank(centers[order]), Flow.allocate(self._heaps, self.stop)
            self._place(one, flow)
            cost = float(self._costs[np.arange(self.n_samples), one.labels].sum())
            cost += self._penalty(one.labels)
            found.append((cost, one, flow))
        _, best, flow = min(found, key=lambda placed: placed[0])
        # The costs of the order that was chosen are still needed.
        self._measure(best.means)
        return best, flow

    def _placed_soon(self, centers: FloatArray) -> Clustering:
        """Place the bound items where they are known to fit, and the free ones one by one."""
        clusters = self._blank(centers)
        self._measure(centers)
        clusters.labels[self.bound] = self.feasible
        problem = self._problem(clusters)
        assert problem is not None
        fill_soon(problem)
        return clusters

    def _order_by_size(self, centers: FloatArray) -> NDArray[np.intp]:
        """Give the centres that are closest to most samples to the clusters with most room."""
        self._measure(centers)
        sizes = np.bincount(self._costs.argmin(axis=1), self.groups.counts, len(centers))
        order = np.empty(len(centers), np.intp)
        order[np.lexsort([-self.low, -self.high])] = np.argsort(-sizes, kind="stable")
        return order

    def _place(self, clusters: Clustering, flow: Flow) -> None:
        """Place the bound items in order of regret, and then the free ones at the least cost."""
        self._measure(clusters.means)
        is_placed = self._try_to_place(clusters) and self._fill(clusters, flow)
        if not is_placed and not (self._repair(clusters) and self._fill(clusters, flow)):
            # One that is known to be possible; moves improve it.
            clusters.labels[self.bound] = self.feasible
            self._fill(clusters, flow)

    def _try_to_place(self, clusters: Clustering) -> bool:
        """Place the bound items; return whether all of them found a place."""
        clusters.labels[self.bound] = -1
        bound = self.bound.copy()
        if not self.is_limited:
            for clique in self.cliques:
                if len(clique) > len(self.low):
                    return False
                clusters.labels[clique] = linear_sum_assignment(self._costs[clique])[1]
            bound = bound[clusters.labels[bound] < 0]
        window = len(bound) if len(bound) <= FEW_WAITING else WINDOW
        clusters.counts[:] = 0
        left = place_bound(self.items, clusters, self._costs, bound, window, self.stop)
        self.check_abandoned()
        return bool(left == 0)

    def _repair(self, clusters: Clustering) -> bool:
        """Place bound items by an integer program; return whether it was small enough.

        Without size limits, only the components that have items without a place.
        """
        labels = clusters.labels
        if self.is_limited:
            return self._solve(self.bound, labels, len(self.free))
        parts = np.unique(self.parts[self.bound[labels[self.bound] < 0]])
        return all(self._solve(np.flatnonzero(self.parts == part), labels, 0) for part in parts)

    def _solve(self, items: Integers, labels: Integers, n_free: int) -> bool:
        """Place some items exactly, together with samples that cost nothing anywhere."""
        if len(items) * len(self.low) > MOST_VARIABLES:
            return False
        pairs, counts = pairs_among(items, self.pairs, self.n_samples), self.groups.counts[items]
        limits = self.low, self.high
        found = place_exactly(
            self._costs[items], pairs, counts, n_free, *limits, max_nodes=MOST_NODES
        )
        if found is not None:
            labels[items] = found
        return found is not None

    def _fill(self, clusters: Clustering, flow: Flow) -> bool:
        """Assign the free items at the least total cost; return whether limits allow it."""
        if (problem := self._problem(clusters)) is None:
            return False
        if self.is_limited:
            self._find_prices(problem, flow)
        is_possible: bool = transport(problem, flow)
        self.check_abandoned()
        return is_possible

    def _problem(self, clusters: Clustering) -> Problem | None:
        """Return how the free items are to be assigned; None if limits do not allow it."""
        counts = self.groups.counts[self.bound]
        taken = np.bincount(clusters.labels[self.bound], counts, len(self.low)).astype(np.int64)
        low, high, n_free = np.maximum(self.low - taken, 0), self.high - taken, len(self.free)
        if (high < 0).any() or not low.sum() <= n_free <= high.sum():
            return None
        # More than all there are is never needed, and would be filled with nothing.
        return Problem(self._costs, self.free, low, np.minimum(high, n_free), clusters.labels)

    def _find_prices(self, problem: Problem, flow: Flow) -> None:
        """Solve the problem for some of the items first, if prices are far from what they will be.

        Prices of a share of the items are off by what is left to chance, so this is not worthwhile
        if less than that has to be shifted.
        """
        n_free, k = len(self.free), len(self.low)
        for stride in STRIDES:
            items = np.ascontiguousarray(self.free[::stride])
            if len(items) < FEWEST_PER_CLUSTER * k:
                continue
            if flow.prices.any():
                begin(problem, flow)
                too_many = int(flow.excess[flow.excess > 0].sum())
                if too_many < math.sqrt(stride * n_free * k):
                    continue
            share = len(items) / n_free
            low = np.floor(share * problem.low).astype(np.int64)
            high = np.minimum(np.ceil(share * problem.high), len(items)).astype(np.int64)
            transport(problem._replace(items=items, low=low, high=high), flow)

    def nearest(self, centers: FloatArray) -> FloatArray:
        """Squared distances to the closest centres."""
        return closest_centers(self, self.points, centers)[1]

    def assign(self, centers: FloatArray) -> tuple[Labels, float]:
        """Place all items with centres where they are; return the objective too.

        If the engine has been abandoned, there is no time to do so at the least cost.
        """
        clusters = self._placed(centers)[0] if self._has_time else self._placed_soon(centers)
        squares = self._costs[np.arange(self.n_samples), clusters.labels]
        objective = float(squares[self.weights > 0.0].sum()) + self._penalty(clusters.labels)
        return clusters.labels.astype(np.int32), self.frame.inertia_in_data_units(objective)

    def distances(self, centers: FloatArray) -> FloatArray:
        """Distances of all items to all centres."""
        self._measure(centers)
        weights = np.maximum(self.weights, self.least_weight)[:, None]
        return np.ldexp(np.sqrt(self._costs / weights), -self.frame.exponent)

    def descend(
        self, centers: FloatArray, single_moves: bool, goal: float = math.inf
    ) -> Refinement:
        """Assign and average, then move and exchange items, until nothing changes."""
        clusters, flow = self._placed(centers)
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
        labels, weights = clusters.labels.astype(np.int32), clusters.weights.copy()
        return Refinement(clusters.means, objective, weights, n_iter, labels=labels)

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
        for n_rounds in range(MOST_ROUNDS):
            now = int(move_items(self.items, clusters, self._work))
            self.check_abandoned()
            if not now and self.is_limited:
                self._measure(clusters.means)
                self._candidates.fill(NONE)
                memory = self._costs, self._candidates, self._work
                now = int(exchange_items(self.items, clusters, *memory))
                self.check_abandoned()
            if not now:
                return n_rounds > 0
            # What is added up move by move drifts by rounding.
            self._centre(clusters)
        return True


def measured_blocks(
    engine: ModelEngine, points: FloatArray, centers: FloatArray
) -> Iterator[tuple[slice, FloatArray]]:
    """Yield some samples at a time, and their squared distances to all centres."""
    centers, columns = np.ascontiguousarray(centers), np.arange(len(centers))
    for block in engine.blocks(len(centers)):
        some = points[block]
        squares = np.empty((len(some), len(centers)))
        measure(some, np.ones(len(some)), squares, centers, columns, 0.0)
        yield block, squares


def closest_centers(
    engine: ModelEngine, points: FloatArray, centers: FloatArray
) -> tuple[Integers, FloatArray]:
    """Return the closest centre of each sample, and its squared distance.

    The distances to all centres are never held together: of many samples, memory has no room.
    """
    labels, nearest = np.empty(len(points), np.int64), np.empty(len(points))
    for block, squares in measured_blocks(engine, points, centers):
        labels[block], nearest[block] = squares.argmin(axis=1), squares.min(axis=1)
    return labels, nearest


def kernel_calls() -> Sequence[Call]:
    """Return what a search calls, see :func:`~evomeans.compiled.ready.ready`."""
    ints, floats, grid = np.zeros(2, np.int64), np.zeros(1), np.zeros((1, 1))
    one = ints[:1]
    items = Items(grid, floats, one, ints, one, ints, one, floats)
    clusters = Clustering(one, grid, floats, one, one, one)
    work, candidates = MoveMemory.allocate(1, 1, 1, one), np.zeros((1, 1, CANDIDATES), np.int64)
    problem, flow = Problem(grid, one, one, one, one), Flow.allocate(Heaps.allocate(1, 1))
    return [
        Call(measure, (grid, floats, grid, grid, one, 0.0), 0.4),
        Call(centre, (items, clusters, work), 0.4),
        Call(penalty, (items, one), 0.3),
        Call(move_items, (items, clusters, work), 1.0),
        Call(exchange_items, (items, clusters, grid, candidates, work), 1.0),
        Call(place_bound, (items, clusters, grid, one, 1, one), 0.6),
        Call(transport, (problem, flow), 1.2),
        Call(begin, (problem, flow), 0.3),
        Call(fill_soon, (problem,), 0.2),
    ]
