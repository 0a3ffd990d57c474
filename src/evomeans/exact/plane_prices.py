"""The search for prices with a high bound, see `plane_proof`, and branch and price.

Nothing in this search has to be exact. Every cluster that pricing finds is a column of a linear
program [1]_, [2]_, which takes the cluster Q with a share z_Q >= 0:

    least sum of c_Q z_Q   such that every group is covered: sum of z_Q over Q with i in Q >= 1,
                           and at most k clusters are taken: sum of z_Q <= k.

Its dual proposes the next prices λ of groups, and the price σ of a cluster:

    largest sum of λ - k σ   such that λ(Q) - σ <= c_Q for every cluster Q, λ >= 0, σ >= 0.

Of many optimal prices, an interior-point method that stops early returns some in the middle, and
needs few rounds of columns [2]_, [3]_.

References
----------
.. [1] D. Aloise, P. Hansen, L. Liberti: "An improved column generation algorithm for minimum
   sum-of-squares clustering", Mathematical Programming 131, 2012.
.. [2] O. du Merle, P. Hansen, B. Jaumard, N. Mladenović: "An interior point algorithm for minimum
   sum-of-squares clustering", SIAM Journal on Scientific Computing 21, 2000.
.. [3] J. Gondzio, P. González-Brevis, P. Munari: "New developments in the primal-dual column
   generation technique", European Journal of Operational Research 224, 2013.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import csc_array
from scipy.spatial import cKDTree

from evomeans.compiled.jit import jit
from evomeans.exact.cases import CaseTree, Limits, Node, Pair, ProofStep, StepKind, untold
from evomeans.exact.plane_boxes import clusters_at, descend_all, least_value
from evomeans.exact.plane_proof import (
    PlaneCase,
    PlaneProof,
    evaluate,
    groups_together,
    proven_bound,
)
from evomeans.exact.points import kmeans, sums_by
from evomeans.typing import FloatArray, Integers, Labels

Members = Labels  # the groups of a cluster, sorted

NEIGHBOURS_JOINED = 8
"""Points next to each cluster for which the clusters with one point more are columns at once."""
MOST_NEW = 600  # columns that one pricing adds, at most
NEAREST = 5
"""Pricing starts half-way between each group and so many of its neighbours, itself included."""
ROUGH = 1e-7
"""What the bound may lose at the boxes while prices are searched, as a share of the cutoff."""
CENTRAL = 0.3
"""The program is solved to this share of the gap between its value and the bound."""
UNDECIDED = 0.02
"""A program is solved if its value is above the bound by this share of the gap that is left."""


@dataclass(frozen=True)
class ProgramSolution:
    """Clusters with their shares z, prices λ of groups and σ, and the value of the program."""

    clusters: Sequence[Members]
    shares: FloatArray
    prices: FloatArray
    sigma: float = 1.0
    value: float = math.nan

    def regrouped(self, before: PlaneCase, after: PlaneCase) -> ProgramSolution:
        """Return the start for a case with fewer clusterings, without the clusters it forbids."""
        groups = np.empty(before.n, np.int64)
        groups[before.groups] = after.groups
        sizes = np.bincount(groups)
        prices = sums_by(groups, self.prices)
        shares, clusters = [], []
        for share, old in zip(self.shares, self.clusters, strict=True):
            new, counts = np.unique(groups[old], return_counts=True)
            is_whole = np.array_equal(counts, sizes[new])
            if is_whole and not any(a in new and b in new for a, b in after.pairs):
                shares.append(share)
                clusters.append(new.astype(np.int32))
        return replace(self, clusters=clusters, shares=np.array(shares), prices=prices)


def first_start(case: PlaneCase, labels: Integers) -> ProgramSolution:
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
    sorted_clusters = [one.astype(np.int32) for one in clusters]
    return ProgramSolution(sorted_clusters, shares, prices * case.n / cutoff)


class PriceSearch:
    """Prices of the groups of a case, and the clusters that were found on the way."""

    def __init__(self, case: PlaneCase, cutoff: float, start: ProgramSolution) -> None:
        self.case, self.cutoff = case, cutoff
        self.unit = cutoff / case.points.n
        self.scatter = float(case.scatters.sum())
        self.prices = start.prices * self.unit - case.scatters
        self.bound = -math.inf
        self.clusters: list[Members] = []
        self._costs: list[float] = []
        self._known: set[bytes] = set()
        pairs = zip(start.shares, start.clusters, strict=True)
        shares = [share for share, members in pairs if self._add(members, 2 * cutoff)]
        self.solution = replace(start, clusters=self.clusters.copy(), shares=np.array(shares))
        count = min(NEAREST, case.n)
        near = np.asarray(cKDTree(case.values).query(case.values, count)[1]).reshape(-1, count)
        self._starts = np.concatenate([(case.values + case.values[one]) / 2 for one in near.T])

    def centres(self) -> FloatArray | None:
        """Return the means of k clusters with large shares; None if there are not so many.

        One after the other is taken, by its share times the part of its weight that is not covered.
        """
        case, found = self.case, self.solution
        if not found.clusters:
            return None
        uncovered = np.ones(case.n)
        weights = np.array([case.weights[one].sum() for one in found.clusters])
        means = []
        for _ in range(case.k):
            rest = case.weights * uncovered
            scores = np.array([rest[one].sum() for one in found.clusters]) / weights
            best = int(np.argmax(scores * found.shares))
            if scores[best] <= 0:
                return None
            members = found.clusters[best]
            means.append(np.average(case.values[members], axis=0, weights=case.weights[members]))
            uncovered[members] = 0.0
        return np.array(means)

    def _add(self, members: Members, dearest: float = math.inf) -> bool:
        """Add a cluster, unless it is known or too dear; whether it was added."""
        if members.tobytes() in self._known:
            return False
        case = self.case
        w, x = case.weights[members], case.values[members]
        offsets = x - (w[:, None] * x).sum(axis=0) / w.sum()
        cost = (w * np.square(offsets).sum(axis=1)).sum() + case.scatters[members].sum()
        if not cost < dearest:
            return False
        self._known.add(members.tobytes())
        self.clusters.append(members)
        self._costs.append(float(cost) / self.unit)
        return True

    def run(self, limits: Limits, goal: float, tell: Callable[[float], None]) -> None:
        """Solve and price until the bound reaches the goal, or all is solved; tell every bound."""
        self._price(self.prices, 0.0)
        n_idle = 0
        while self.bound < goal and not limits.expired() and n_idle < 3:
            value = self.solution.value * self.unit
            left = (value - self.bound) / self.cutoff if math.isfinite(value) else 1.0
            accuracy = max(min(0.1, CENTRAL * left), 1e-9)
            dearest = 2 * self.cutoff / self.unit
            with np.errstate(all="ignore"):
                solution = solve_program(
                    self.solution, self.clusters, self._costs, self.case.k, dearest, accuracy
                )
            if not (np.isfinite(solution.prices).all() and np.isfinite(solution.shares).all()):
                break  # as far as the arithmetic goes, in odd units
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
        groups = case.priced(prices)
        values, ends = descend_all(groups, self._starts)
        if total + k * min(float(values.min()), 0.0) > self.bound:
            # Promising: now look everywhere.
            tolerance = ROUGH * self.cutoff / k
            least, places = least_value(groups, tolerance, -sigma - 1e-7 * self.unit)
            more = descend_all(groups, places)
            values, ends = np.append(values, more[0]), np.concatenate([ends, more[1]])
            bound = total + k * min(least, 0.0)
            if bound > self.bound:
                self.bound, self.prices = bound, prices
        order = np.argsort(values, kind="stable")
        order = order[values[order] + sigma < -1e-9 * self.unit]
        n_new = 0
        for found in clusters_at(groups, ends[order]):
            members = np.flatnonzero(found).astype(np.int32)
            if len(members):
                n_new += self._add(members)
            if n_new >= MOST_NEW:
                break
        return n_new


# ---- the linear program --------------------------------------------------------------------------

MOST_NEWTON_STEPS = 60
SHORT = 0.99  # share of the way to the border that a step goes

Point = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
"""Variables x and y, and slacks z = c - A'y and s = A x - b; or a step of all four."""


def solve_program(
    start: ProgramSolution,
    clusters: Sequence[Members],
    costs: Sequence[float],
    k: int,
    dearest: float,
    accuracy: float,
) -> ProgramSolution:
    """Return a solution near the central path whose gap is a small share of its value.

    The start has shares of the first clusters; those of the others are small. To leave a group
    uncovered costs the ``dearest`` price, more than any other.
    """
    n, m = len(start.prices), len(clusters)
    members = np.concatenate([*clusters, np.arange(n, dtype=np.int32)])
    starts = np.cumsum([0, *map(len, clusters), *([1] * n)]).astype(np.int64)
    counted = np.append(np.ones(m), np.zeros(n))
    # Row n has -1 for clusters; it comes first in every column, and so in every sum.
    rows = np.insert(members, starts[:-1], n)
    entries = np.insert(np.ones(len(members)), starts[:-1], -counted)
    A = csc_array((entries, rows, starts + np.arange(len(starts))), shape=(n + 1, m + n))
    matrix = np.empty((n + 1, n + 1))
    c = np.append(costs, np.full(n, dearest))
    b = np.append(np.ones(n), -float(k))
    x = np.full(m + n, 1e-3)
    x[: len(start.shares)] = np.maximum(start.shares, 1e-4)
    x[m:] = 1e-5
    y = np.maximum(np.append(start.prices, start.sigma), 1e-6)
    z, s = np.maximum(c - A.T @ y, 1e-3), np.maximum(A @ x - b, 1e-3)
    largest = max(1.0, float(np.abs(c[:m]).max(initial=0.0)))
    for _ in range(MOST_NEWTON_STEPS):
        missing, excess = b - A @ x + s, c - A.T @ y - z
        products = float(x @ z + s @ y)
        is_feasible = np.abs(excess).max() < max(1e-9, 0.1 * accuracy) * largest
        is_feasible = is_feasible and np.abs(missing).max() < max(1e-6, 0.1 * accuracy)
        if is_feasible and products <= accuracy * abs(float(c @ x)):
            break
        ratios = x / z
        normal_matrix(starts, members, counted, ratios, matrix)
        matrix[np.diag_indices_from(matrix)] += s / y + 1e-12 * ratios.max()
        try:
            factor = cho_factor(matrix, lower=True, check_finite=False)
        except LinAlgError:
            break  # as far as the arithmetic goes
        newton = partial(newton_step, factor, A, (x, y, z, s), missing, excess)
        # Mehrotra's predictor and corrector.
        dx, dy, dz, ds = newton(-x * z, -s * y)
        primal, dual = min(longest(x, dx), longest(s, ds)), min(longest(z, dz), longest(y, dy))
        after = (x + primal * dx) @ (z + dual * dz) + (s + primal * ds) @ (y + dual * dy)
        centring = max((after / products) ** 3, 0.05 if min(primal, dual) < 0.5 else 0.01)
        goal = centring * products / (m + 2 * n + 1)
        dx, dy, dz, ds = newton(goal - x * z - dx * dz, goal - s * y - ds * dy)
        primal = SHORT * min(longest(x, dx), longest(s, ds))
        dual = SHORT * min(longest(z, dz), longest(y, dy))
        x, s, y, z = x + primal * dx, s + primal * ds, y + dual * dy, z + dual * dz
    return ProgramSolution(list(clusters), x[:m], y[:n], float(y[n]), float(c @ x))


def newton_step(
    factor: Any,
    A: Any,
    point: Point,
    missing: FloatArray,
    excess: FloatArray,
    xz: FloatArray,
    sy: FloatArray,
) -> Point:
    """Solve A dx - ds = missing, A'dy + dz = excess, x dz + z dx = xz and s dy + y ds = sy."""
    x, y, z, s = point
    right = missing - A @ ((xz - x * excess) / z) + sy / y
    dy = cho_solve(factor, right, check_finite=False)
    dz = excess - A.T @ dy
    return (xz - x * dz) / z, dy, dz, (sy - s * dy) / y


def longest(values: FloatArray, change: FloatArray) -> float:
    """Return the longest step, at most 1, that keeps all values nonnegative."""
    falls = change < 0
    return min(1.0, float((-values[falls] / change[falls]).min(initial=1.0)))


def together(n: int, clusters: Sequence[Members], shares: FloatArray) -> FloatArray:
    """Return for every pair of groups the shares of the clusters that hold both."""
    if not clusters:
        return np.zeros((n, n))
    starts = np.cumsum([0, *map(len, clusters)]).astype(np.int64)
    found = np.empty((n + 1, n + 1))
    normal_matrix(starts, np.concatenate(clusters), np.zeros(len(shares)), shares, found)
    lower = np.tril(found[:n, :n])
    return lower + np.tril(lower, -1).T


@jit
def normal_matrix(
    starts: Integers, members: Members, counted: FloatArray, ratios: FloatArray, found: FloatArray
) -> None:
    """Fill the lower triangle of A diag(ratios) A'; row n of A holds -1 for clusters that count.

    Shapes: starts (m + 1,), members of all clusters, counted, ratios (m,), found (n + 1, n + 1).
    """
    n = found.shape[0] - 1
    for i in range(n + 1):
        for j in range(i + 1):
            found[i, j] = 0.0
    for q in range(ratios.shape[0]):
        ratio, last = ratios[q], ratios[q] * counted[q]
        for s in range(starts[q], starts[q + 1]):
            i = members[s]
            for t in range(starts[q], s + 1):
                found[i, members[t]] += ratio
            found[n, i] -= last
        found[n, n] += last


# ---- branch and price ----------------------------------------------------------------------------


class PlaneTree(CaseTree):
    """A search tree over the clusterings of points in the plane, which needs a known one."""

    proof_type = PlaneProof
    share_of_gap = 0.5
    n_columns = 0
    labels: Integers

    def _root(self, former: Node | None) -> tuple[PlaneCase, ProgramSolution]:
        case = PlaneCase.of_points(self.points, self.k)
        return case, first_start(case, self.labels)

    def _worked(
        self, case: PlaneCase, start: ProgramSolution, inherited: float, is_root: bool = False
    ) -> Node:
        if case.is_empty:
            return Node(case, start, math.inf, [ProofStep(StepKind.END)])
        search = PriceSearch(case, self.cutoff, start)
        search.run(self.limits, self._goal, self._tell if is_root else untold)
        self.n_columns += len(search.clusters)
        start, prices = search.solution, search.prices
        found = evaluate(case, prices)
        bound = max(inherited, proven_bound(case, found.bound))
        if bound >= self._goal or self.limits.expired():
            return Node(case, start, bound, [ProofStep(StepKind.END, prices)])
        centres = search.centres() if self.improving else None
        better = None if centres is None else self._if_better(kmeans(self.points, centres))
        steps = [ProofStep(StepKind.FIX, prices), ProofStep(StepKind.END)]
        labels = groups_together(case, prices, found, self.cutoff)
        if labels is None:
            return Node(case, start, self.cutoff, steps, better)
        merged = case.regrouped(labels)
        return Node(merged, start.regrouped(case, merged), bound, steps, better)

    def _halves(self, node: Node, pair: Pair) -> list[tuple[PlaneCase, ProgramSolution]]:
        halves = node.case.separated(pair), node.case.merged(pair)
        return [(half, node.start.regrouped(node.case, half)) for half in halves]

    def _undecided(self, node: Node) -> Pair | None:
        """Return points of the two groups that share half a cluster; None if all is decided."""
        n = node.case.n
        if n < 2:
            return None
        share = together(n, node.start.clusters, node.start.shares)
        own = np.diag(share)
        score: FloatArray = np.minimum(share, np.minimum(own[:, None], own) - share)
        np.fill_diagonal(score, -np.inf)
        for one, other in node.case.pairs:
            score[one, other] = score[other, one] = -np.inf
        a, b = divmod(int(np.argmax(score)), n)
        if not score[a, b] > 0:
            return None
        first = np.unique(node.case.groups, return_index=True)[1]
        return int(first[a]), int(first[b])
