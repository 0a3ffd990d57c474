"""Column generation for points in the plane: the search for prices with a high bound.

The bound of `plane_pricing` is a concave function of the prices λ, and every cluster Q that pricing
finds is a cutting plane for it: sum of λ over Q <= cost of Q + σ, where -σ stands for v. A linear
program maximises sum λ - k σ over these, within a box around the best prices so far: without the
box, prices swing from one extreme to the other (the stabilisation of [1]_ as a trust region). The
box moves when the true bound rises, and shrinks when it does not. Nothing here has to be exact.

References
----------
.. [1] O. du Merle, D. Villeneuve, J. Desrosiers, P. Hansen: "Stabilized column generation",
   Discrete Mathematics 194, 1999.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from evomeans.exact.certify import Finding
from evomeans.exact.limits import Limits
from evomeans.exact.plane_pricing import descend_all, least_value, plane_bound
from evomeans.exact.points import Floats, Indices, WeightedPoints, sums_by
from evomeans.exact.proofs import Method, PlaneProof

NEIGHBOURS = 8
"""Points next to each cluster for which the clusters with one point more are planes at once."""
MOST_NEW = 400
"""Planes that one pricing adds, at most."""


def import_highspy() -> Any:
    """Return the solver of linear programs, or say how to install it."""
    try:
        import highspy
    except ImportError as error:
        raise ImportError(
            'Proofs in the plane need highspy; install it with: pip install "evomeans[plane]"'
        ) from error
    return highspy


def by_columns(points: WeightedPoints, k: int, labels: Indices, limits: Limits) -> Finding:
    """Raise the bound of prices until it meets the known inertia or time is up."""
    import_highspy()
    if points.values.shape[1] != 2:
        raise ValueError(
            f"method='plane' is for samples with 2 features, got {points.values.shape[1]}."
        )
    search = PriceSearch(points, k, labels)
    search.run(limits)
    # Whatever the search believes, what counts is what the check returns.
    lower = plane_bound(points, k, search.prices)
    return Finding(
        Method.PLANE, lower, labels, PlaneProof(search.prices), search.n_solved, len(search.planes)
    )


class PriceSearch:
    """Prices, and the clusters that were found on the way.

    Parameters
    ----------
    points : WeightedPoints
    k : int
    labels : (n,) array
        The known clustering.
    """

    def __init__(self, points: WeightedPoints, k: int, labels: Indices) -> None:
        self.points, self.k = points, k
        self.cutoff = points.inertia(labels)
        # Prices of the program are about 1.
        self.unit = self.cutoff / points.n
        self.planes: dict[bytes, int] = {}
        self.means = points.means(labels)
        self.prices, self.reach = self._first_prices(labels)
        self.bound = -math.inf
        self.n_solved = 0
        near = np.asarray(cKDTree(points.values).query(points.values, min(5, points.n))[1])
        middles = [(points.values + points.values[one]) / 2 for one in near.T]
        self._starts = np.concatenate([*middles, self.means])
        self._program = Program(points.n, k)
        self._add_first_planes(labels)

    def _first_prices(self, labels: Indices) -> tuple[Floats, Floats]:
        """Begin between what a point saves by leaving its cluster and what it costs in another."""
        x, w = self.points.values, self.points.weights
        sizes = sums_by(labels, w)
        distances = np.square(x[:, None] - self.means).sum(axis=2)
        rows = np.arange(len(x))
        own = distances[rows, labels]
        left = np.maximum(sizes[labels] - w, 1e-12 * sizes[labels])
        low = w * own * sizes[labels] / left
        cost = w[:, None] * distances * sizes / (sizes + w[:, None])
        cost[rows, labels] = np.inf
        high = np.maximum(cost.min(axis=1), low)
        low = np.where(left > 1e-9 * sizes[labels], low, 0.0)
        middle = (low + high) / 2
        return middle, np.maximum((high - low) / 2, 0.05 * float(middle.mean()))

    def _add_first_planes(self, labels: Indices) -> None:
        """Add the clusters, with one point less and with one point more."""
        x = self.points.values
        members = [np.flatnonzero(labels == a) for a in range(len(self.means))]
        for a, own in enumerate(members):
            self._add(own)
            if len(own) > 1:
                for place in range(len(own)):
                    self._add(np.delete(own, place))
            others = np.flatnonzero(labels != a)
            near = np.square(x[others] - self.means[a]).sum(axis=1)
            count = min(len(others), max(NEIGHBOURS, len(own) // 2))
            for j in others[np.argpartition(near, count - 1)[:count]]:
                self._add(np.sort(np.append(own, j)))

    def _add(self, members: Indices) -> bool:
        key = members.astype(np.int32).tobytes()
        if key in self.planes:
            return False
        self.planes[key] = len(self.planes)
        w, x = self.points.weights[members], self.points.values[members]
        offsets = x - (w[:, None] * x).sum(axis=0) / w.sum()
        cost = float((w * np.square(offsets).sum(axis=1)).sum())
        self._program.add_plane(members.astype(np.int32), cost / self.unit)
        return True

    def run(self, limits: Limits) -> None:
        """Solve, price and move the box."""
        self._evaluate(self.prices, 0.0)
        factor, failures = 1.0, 0
        while not limits.expired() and self.bound < self.cutoff * (1 - 0.5 * limits.gap):
            reach = factor * self.reach
            trial, model, sigma = self._program.solve(
                np.maximum(self.prices - reach, 0.0) / self.unit,
                (self.prices + reach) / self.unit,
            )
            trial, model, sigma = trial * self.unit, model * self.unit, sigma * self.unit
            self.n_solved += 1
            before = self.bound
            n_new = self._evaluate(trial, sigma)
            predicted, gained = model - before, self.bound - before
            self._tell(limits)
            if gained > 0.5 * predicted:
                factor, failures = min(2 * factor, 8.0), 0
            elif gained <= 0.05 * predicted:
                failures += 1
                if failures >= 10:
                    factor, failures = factor / 2, 0
            if predicted <= 1e-9 * self.cutoff or (n_new == 0 and gained <= 0):
                if factor >= 8.0:
                    return
                # The program is solved within its box; only a larger one can help.
                factor, failures = min(4 * factor, 8.0), 0

    def _evaluate(self, prices: Floats, sigma: float) -> int:
        """Price; keep the prices if their bound is the best, and add the planes that cut."""
        values, ends = descend_all(self.points, prices, self._starts)
        least = min(float(values.min()), 0.0)
        if float(prices.sum()) + self.k * least > self.bound:
            # Promising: now look everywhere.
            tolerance = 1e-7 * float(prices.sum()) / self.k
            wanted = -sigma - 1e-7 * self.unit
            _, places = least_value(self.points, prices, tolerance, wanted)
            more = descend_all(self.points, prices, places)
            values, ends = np.append(values, more[0]), np.concatenate([ends, more[1]])
        least = min(float(values.min()), 0.0)
        bound = float(prices.sum()) + self.k * least
        if bound > self.bound:
            self.bound, self.prices = bound, prices
        order = np.argsort(values, kind="stable")
        added = 0
        for place in order[: 4 * MOST_NEW]:
            if values[place] + sigma >= -1e-9 * self.unit or added >= MOST_NEW:
                break
            offsets = self.points.values - ends[place]
            inside = self.points.weights * np.square(offsets).sum(axis=1) < prices
            if inside.any():
                added += self._add(np.flatnonzero(inside))
        return added

    def _tell(self, limits: Limits) -> None:
        limits.progress(
            self.points.in_data_units(max(self.bound, 0.0)),
            self.points.in_data_units(self.cutoff),
            self.n_solved,
        )


class Program:
    """The linear program: maximise sum λ - k σ subject to the planes and the box."""

    def __init__(self, n: int, k: int) -> None:
        highspy = import_highspy()
        self.n = n
        self.highs = highspy.Highs()
        self.highs.setOptionValue("output_flag", False)
        self.highs.setOptionValue("threads", 1)
        self.highs.changeObjectiveSense(highspy.ObjSense.kMaximize)
        self.infinity = highspy.kHighsInf
        for _ in range(n):
            self.highs.addVar(0.0, 0.0)
        self.highs.addVar(0.0, self.infinity)
        costs = np.append(np.ones(n), -float(k))
        self.highs.changeColsCost(n + 1, np.arange(n + 1, dtype=np.int32), costs)

    def add_plane(self, members: Any, cost: float) -> None:
        """Add sum of λ over the members - σ <= cost."""
        index = np.append(members, self.n).astype(np.int32)
        values = np.append(np.ones(len(members)), -1.0)
        self.highs.addRow(-self.infinity, cost, len(index), index, values)

    def solve(self, low: Floats, high: Floats) -> tuple[Floats, float, float]:
        """Return prices, the value of the program and σ."""
        index = np.arange(self.n, dtype=np.int32)
        self.highs.changeColsBounds(self.n, index, low, high)
        self.highs.run()
        found = np.array(self.highs.getSolution().col_value)
        value = float(self.highs.getInfo().objective_function_value)
        return np.maximum(found[: self.n], 0.0), value, float(found[self.n])
