"""Prices of groups of points: how they are found, and the bound that they prove.

With prices p, a group of weight w and mean x gains a(y) = w |x - y|² - p in a cluster with mean y.
Every cluster costs at least the prices of its groups, and their scatters, plus v, where

    v = the least value of f(y) over all y,
    f(y) = the least sum of a(y) over groups that may share a cluster,

because f at the mean of a cluster is at most its cost minus the prices of its groups. If all groups
may share a cluster, f is the sum of min(0, a). So for any prices, a clustering into at most k
clusters costs at least

    sum of p + sum of scatters + k min(0, v).

This is the bound of column generation [1]_. `plane_boxes` bounds the least value of f from below.

`PriceSearch` looks for prices with a high bound. The bound is a concave function of the prices, and
every cluster that pricing finds is a column of the linear program of `plane_master`, which proposes
the next prices. Nothing in that search has to be exact.

References
----------
.. [1] D. Aloise, P. Hansen, L. Liberti: "An improved column generation algorithm for minimum
   sum-of-squares clustering", Mathematical Programming 131, 2012.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from evomeans.exact.cases import Limits
from evomeans.exact.plane_boxes import least_value
from evomeans.exact.plane_case import PlaneCase, clusters_at, descend_all
from evomeans.exact.plane_master import Master, Members, ProgramSolution
from evomeans.exact.points import UNIT, relative_error, sums_by
from evomeans.typing import FloatArray, Integers

BOX_TOLERANCE = 1e-9
"""What the bound may lose at the boxes, as a share of all prices."""
LARGEST_PRICE = 1e290
"""Prices from here on prove nothing: their sums might overflow."""


class Evaluation(NamedTuple):
    """What prices prove of the computed groups."""

    bound: float
    """No clustering of the computed groups costs less."""
    cluster_bound: float
    """At most v."""
    error: float
    """What rounding can change of the cost minus the prices of a cluster."""


def evaluate(case: PlaneCase, prices: FloatArray) -> Evaluation:
    """Return the lower bound that prices prove, in the units of the points.

    Rounding is allowed for. Each box subtracts what its own sums may be off by. Discs that rounding
    left out of a box lack at most 16 u of their prices, and the middles of boxes are off by u of
    the extent, which moves the minimum of a quadratic by at most 64 u times weight, radius and
    extent. Scatters are too large by a share.
    """
    if not np.abs(prices).max() < LARGEST_PRICE:
        return PROVES_NOTHING
    paid = float(np.maximum(prices, 0.0).sum())
    radius = math.sqrt(float((np.maximum(prices, 0.0) / case.weights).max()))
    least, _ = least_value(case, prices, BOX_TOLERANCE * paid / case.k, -np.inf)
    error = 64 * UNIT * (paid + float(case.weights.sum()) * radius * case.extent)
    least -= error
    total = math.fsum(prices.tolist()) - 4 * UNIT * math.fsum(np.abs(prices).tolist())
    scatter = math.fsum(case.scatters.tolist()) * (1 - relative_error(case.points))
    bound = total + scatter + case.k * min(0.0, least)
    return Evaluation(bound, least, error)


PROVES_NOTHING = Evaluation(-math.inf, -math.inf, math.inf)


def proven_bound(case: PlaneCase, bound: float) -> float:
    """Lower a bound of the computed groups to one of the points.

    The root of the inertia is a norm, so it differs from that of groups that are moved by
    their errors by at most the displacement.
    """
    if not bound > 0:
        return 0.0
    return max(0.0, math.sqrt(bound) * (1 - 4 * UNIT) - case.displacement) ** 2 * (1 - 4 * UNIT)


NEIGHBOURS_JOINED = 8
"""Points next to each cluster for which the clusters with one point more are columns at once."""
MOST_NEW = 600
"""Columns that one pricing adds, at most."""
NEAREST = 5
"""Pricing starts half-way between each group and so many of its neighbours, itself included."""
ROUGH = 1e-7
"""What the bound may lose at the boxes while prices are searched, as a share of the cutoff."""
CENTRAL = 0.3
"""The program is solved to this share of the gap between its value and the bound."""
UNDECIDED = 0.02
"""A program is solved if its value is above the bound by this share of the gap that is left."""


@dataclass(frozen=True)
class PriceStart:
    """Where a search for prices begins: a solution, and the groups of its clusters, sorted."""

    solution: ProgramSolution
    clusters: Sequence[Members]

    def regrouped(self, before: PlaneCase, after: PlaneCase) -> PriceStart:
        """Return the start for a case with fewer clusterings, without the clusters it forbids."""
        groups = np.empty(before.n, np.int64)
        groups[before.groups] = after.groups
        sizes = np.bincount(groups)
        prices = sums_by(groups, self.solution.prices)
        shares, clusters = [], []
        for share, old in zip(self.solution.shares, self.clusters, strict=True):
            new, counts = np.unique(groups[old], return_counts=True)
            is_whole = np.array_equal(counts, sizes[new])
            if is_whole and not any(a in new and b in new for a, b in after.pairs):
                shares.append(share)
                clusters.append(new.astype(np.int32))
        solution = replace(self.solution, prices=prices, shares=np.array(shares))
        return PriceStart(solution, clusters)


def first_start(case: PlaneCase, labels: Integers) -> PriceStart:
    """Begin at a known clustering, of points that are all groups of their own.

    Prices are half-way between what a point saves by leaving its cluster and what it costs in
    another one. Clusters are those of the clustering, with one point less and with one point more.
    """
    x, w = case.values, case.weights
    means, sizes = case.points.means(labels), sums_by(labels, w)
    distances = np.square(x[:, None] - means).sum(axis=2)
    rows = np.arange(case.n)
    left = np.maximum(sizes[labels] - w, 1e-12 * sizes[labels])
    low = w * distances[rows, labels] * sizes[labels] / left
    cost = w[:, None] * distances * sizes / (sizes + w[:, None])
    cost[rows, labels] = np.inf
    high = np.maximum(cost.min(axis=1), low)
    low = np.where(left > 1e-9 * sizes[labels], low, 0.0)
    cutoff = case.points.inertia(labels)
    prices = np.where(np.isfinite(high), (low + high) / 2, low)
    # A price above all costs is not needed, and would spoil the arithmetic of the program.
    prices = np.minimum(prices, cutoff)
    members = [np.flatnonzero(labels == a) for a in range(len(means))]
    clusters = list(members)
    for a, own in enumerate(members):
        if len(own) > 1:
            clusters += [np.delete(own, place) for place in range(len(own))]
        others = np.flatnonzero(labels != a)
        count = min(len(others), max(NEIGHBOURS_JOINED, len(own) // 2))
        if count:
            near = np.argpartition(distances[others, a], count - 1)[:count]
            clusters += [np.sort(np.append(own, j)) for j in others[near]]
    shares = np.where(np.arange(len(clusters)) < len(members), 1.0, 1e-3)
    solution = ProgramSolution(prices * case.n / cutoff, 1.0, shares, math.nan)
    return PriceStart(solution, [one.astype(np.int32) for one in clusters])


class PriceSearch:
    """Prices of the groups of a case, and the clusters that were found on the way."""

    def __init__(self, case: PlaneCase, cutoff: float, start: PriceStart) -> None:
        self.case, self.cutoff = case, cutoff
        self.unit = cutoff / case.points.n
        self.scatter = float(case.scatters.sum())
        self.prices = start.solution.prices * self.unit - case.scatters
        self.bound = -math.inf
        self.solution = start.solution
        self._master = Master(case.n, case.k, 2 * cutoff / self.unit)
        shares = []
        for share, members in zip(start.solution.shares, start.clusters, strict=True):
            if self._add(members, 2 * cutoff):
                shares.append(share)
        self.solution = replace(start.solution, shares=np.array(shares))
        count = min(NEAREST, case.n)
        near = np.asarray(cKDTree(case.values).query(case.values, count)[1]).reshape(-1, count)
        self._starts = np.concatenate([(case.values + case.values[one]) / 2 for one in near.T])

    @property
    def start(self) -> PriceStart:
        """Where the search for a similar case may begin."""
        return PriceStart(self.solution, self._master.clusters[: len(self.solution.shares)])

    @property
    def n_columns(self) -> int:
        """Clusters that the program knows."""
        return len(self._master.clusters)

    def centres(self) -> FloatArray | None:
        """Return the means of k clusters with large shares; None if there are not so many.

        One after the other is taken, by its share times the part of its weight that is not covered.
        """
        case, start = self.case, self.start
        if not start.clusters:
            return None
        uncovered = np.ones(case.n)
        weights = np.array([case.weights[one].sum() for one in start.clusters])
        chosen: list[int] = []
        for _ in range(case.k):
            rest = case.weights * uncovered
            scores = np.array([rest[one].sum() for one in start.clusters]) / weights
            best = int(np.argmax(scores * start.solution.shares))
            if scores[best] <= 0:
                return None
            chosen.append(best)
            uncovered[start.clusters[best]] = 0.0
        means = [
            np.average(case.values[one], axis=0, weights=case.weights[one])
            for one in (start.clusters[q] for q in chosen)
        ]
        return np.array(means)

    def _add(self, members: Members, dearest: float = math.inf) -> bool:
        """Add a cluster, unless it is known or too dear; whether it was added."""
        if self._master.knows(members):
            return False
        case = self.case
        w, x = case.weights[members], case.values[members]
        offsets = x - (w[:, None] * x).sum(axis=0) / w.sum()
        cost = (w * np.square(offsets).sum(axis=1)).sum() + case.scatters[members].sum()
        if not cost < dearest:
            return False
        self._master.add(members, float(cost) / self.unit)
        return True

    def run(self, limits: Limits, goal: float, tell: Callable[[float], None]) -> None:
        """Solve and price until the bound reaches the goal, or all is solved; tell every bound."""
        self._price(self.prices, 0.0)
        n_idle = 0
        while self.bound < goal and not limits.expired() and n_idle < 3:
            value = self.solution.value * self.unit
            left = (value - self.bound) / self.cutoff if math.isfinite(value) else 1.0
            accuracy = max(min(0.1, CENTRAL * left), 1e-9)
            solution = self._master.solve(self.solution, accuracy)
            if solution is None:
                break
            self.solution = solution
            before = self.bound
            prices = np.maximum(self.solution.prices, 0.0) * self.unit - self.case.scatters
            n_new = self._price(prices, self.solution.sigma * self.unit)
            tell(self.bound)
            is_idle = n_new == 0 and self.bound - before <= 0.1 * (goal - self.bound)
            n_idle = n_idle + 1 if is_idle else 0
            value = self.solution.value * self.unit
            # The value is only as accurate as the solution.
            undecided = goal - value - 10 * accuracy * self.cutoff
            if value - self.bound <= UNDECIDED * undecided:
                break

    def _price(self, prices: FloatArray, sigma: float) -> int:
        """Keep the prices if their bound is the best, and add clusters that are too cheap."""
        case = self.case
        total, k = float(prices.sum()) + self.scatter, case.k
        values, ends = descend_all(case, prices, self._starts)
        if total + k * min(float(values.min()), 0.0) > self.bound:
            # Promising: now look everywhere.
            tolerance = ROUGH * self.cutoff / k
            least, places = least_value(case, prices, tolerance, -sigma - 1e-7 * self.unit)
            more = descend_all(case, prices, places)
            values, ends = np.append(values, more[0]), np.concatenate([ends, more[1]])
            bound = total + k * min(least, 0.0)
            if bound > self.bound:
                self.bound, self.prices = bound, prices
        order = np.argsort(values, kind="stable")
        order = order[values[order] + sigma < -1e-9 * self.unit]
        n_new = 0
        for found in clusters_at(case, prices, ends[order]):
            members = np.flatnonzero(found).astype(np.int32)
            if len(members):
                n_new += self._add(members)
            if n_new >= MOST_NEW:
                break
        return n_new
