"""Problems that need no search: one cluster, a cluster for every point, all but one, one column."""

from __future__ import annotations

import numpy as np

from evomeans.exact.line import cluster_line
from evomeans.exact.points import UNIT, Indices, WeightedPoints

MOST_POINTS = 4000
"""For which all pairs are compared."""


def solves(points: WeightedPoints, k: int) -> bool:
    """Whether `optimum` has an answer."""
    n = points.n
    pair_left = k == n - 1 and n <= MOST_POINTS
    return k == 1 or n <= k or pair_left or points.values.shape[1] == 1


def optimum(points: WeightedPoints, k: int) -> tuple[float, Indices]:
    """Return a lower bound, below the optimum by no more than rounding, and optimal labels.

    Both are in terms of the points. For a column see `line_program`, which says how exact it is.
    """
    if not solves(points, k):
        raise ValueError(f"{points.n} points and {k} clusters need a search.")
    n, d = points.values.shape
    w = points.weights
    relative = 8 * (n + d + k + 40) * UNIT + 2 * points.weight_error
    if n <= k:
        return 0.0, np.arange(n)
    if k == 1:
        labels = np.zeros(n, np.int64)
        spread = np.ptp(points.values, axis=0)
        # The square of the error of the mean, which makes the direct formula too high.
        shift = float(w.sum() * np.square(n * UNIT * spread).sum()) * 4
        return _lowered(points.inertia(labels), relative, shift), labels
    if d == 1:
        labels = cluster_line(points.values[:, 0], k, w).labels.astype(np.int64)
        relative += 8 * n**2 * float(w.sum() / w.min()) * 2.0**-100
        return _lowered(points.inertia(labels), relative, 0.0), labels
    costs = points.squared_distances() * (w[:, None] / (w[:, None] + w) * w)
    np.fill_diagonal(costs, np.inf)
    a, b = sorted(divmod(int(costs.argmin()), n))
    labels = np.arange(n)
    labels[b] = a
    labels[labels > b] -= 1
    return _lowered(float(costs[a, b]), relative, 0.0), labels


def _lowered(inertia: float, relative: float, absolute: float) -> float:
    return max(0.0, inertia * (1 - relative) - absolute)
