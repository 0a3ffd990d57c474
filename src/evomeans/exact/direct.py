"""Problems that need no search: one cluster, a cluster for every point, all but one, one column."""

from __future__ import annotations

import numpy as np

from evomeans.exact.line import line_segments
from evomeans.exact.points import UNIT, WeightedPoints, smallest_cost
from evomeans.typing import Integers

MOST_POINTS = 4000
"""For which all pairs are compared."""


def solves(points: WeightedPoints, k: int) -> bool:
    """Whether `optimum` has an answer."""
    n = points.n
    pair_left = k == n - 1 and n <= MOST_POINTS
    return k == 1 or n <= k or pair_left or points.values.shape[1] == 1


def optimum(points: WeightedPoints, k: int) -> tuple[float, Integers]:
    """Return a lower bound, below the optimum by no more than rounding, and optimal labels.

    Both are in terms of the points. What is subtracted: the share by which `WeightedPoints.inertia`
    or the cost of a pair may be too high, what underflow may hide, and for a column what
    `line_program` may lose.
    """
    if not solves(points, k):
        raise ValueError(f"{points.n} points and {k} clusters need a search.")
    n, d = points.values.shape
    if n <= k:
        return 0.0, np.arange(n)
    if k == 1:
        labels = np.zeros(n, np.int64)
        return _lowered(points, points.inertia(labels), 0.0), labels
    if d == 1:
        found = line_segments(points.values[:, 0], [k], points.weights)[0]
        labels = found.labels_of(points.values[:, 0])
        return _lowered(points, points.inertia(labels), found.doubt_of_input), labels
    w = points.weights
    costs = points.squared_distances() * (w[:, None] / (w[:, None] + w) * w)
    np.fill_diagonal(costs, np.inf)
    a, b = sorted(divmod(int(costs.argmin()), n))
    labels = np.arange(n)
    labels[b] = a
    labels[labels > b] -= 1
    return _lowered(points, float(costs[a, b]), 0.0), labels


def _lowered(points: WeightedPoints, inertia: float, doubt: float) -> float:
    n, d = points.values.shape
    relative = 8 * (n + d + 40) * UNIT + 2 * points.weight_error
    return max(0.0, inertia * (1 - relative) - doubt - smallest_cost(points))
