"""Prices of groups, and the bound that they prove.

With prices p, a group of weight w and mean x gains a(y) = w |x - y|² - p in a cluster with mean y.
Every cluster costs at least the prices of its groups, and their scatters, plus v, where

    v = the least value of f(y) over all y,
    f(y) = the least sum of a(y) over groups that may share a cluster,

because f at the mean of a cluster is at most its cost minus the prices of its groups. If all groups
may share a cluster, f is the sum of min(0, a). So for any prices, a clustering into at most k
clusters costs at least

    sum of p + sum of scatters + k min(0, v).

This is the bound of column generation [1]_. `plane_boxes` bounds the least value of f from below.

References
----------
.. [1] D. Aloise, P. Hansen, L. Liberti: "An improved column generation algorithm for minimum
   sum-of-squares clustering", Mathematical Programming 131, 2012.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from evomeans.exact.bound import relative_error
from evomeans.exact.plane_boxes import least_value
from evomeans.exact.plane_case import PlaneCase
from evomeans.exact.points import UNIT, Floats

TOLERANCE = 1e-9
"""What the bound may lose at the boxes, as a share of all prices."""
LARGEST = 1e290
"""Prices from here on prove nothing: their sums might overflow."""


class Evaluation(NamedTuple):
    """What prices prove of the computed groups.

    Parameters
    ----------
    bound : float
        No clustering of the computed groups costs less.
    cluster_bound : float
        At most v.
    error : float
        What rounding can change of the cost minus the prices of a cluster.
    """

    bound: float
    cluster_bound: float
    error: float


def evaluate(case: PlaneCase, prices: Floats, tolerance: float = TOLERANCE) -> Evaluation:
    """Return the lower bound that prices prove, in the units of the points.

    Rounding is allowed for. Each box subtracts what its own sums may be off by. Discs that rounding
    left out of a box lack at most 16 u of their prices, and the middles of boxes are off by u of
    the extent, which moves the minimum of a quadratic by at most 64 u times weight, radius and
    extent. Scatters are too large by a share.
    """
    if not np.abs(prices).max() < LARGEST:
        return NOTHING
    paid = float(np.maximum(prices, 0.0).sum())
    radius = math.sqrt(float((np.maximum(prices, 0.0) / case.weights).max()))
    least, _ = least_value(case, prices, tolerance * paid / case.k, -np.inf)
    error = 64 * UNIT * (paid + float(case.weights.sum()) * radius * case.extent)
    least -= error
    total = math.fsum(prices.tolist()) - 4 * UNIT * math.fsum(np.abs(prices).tolist())
    scatter = math.fsum(case.scatters.tolist()) * (1 - relative_error(case.points))
    bound = total + scatter + case.k * min(0.0, least)
    return Evaluation(bound, least, error)


NOTHING = Evaluation(-math.inf, -math.inf, math.inf)


def proven_bound(case: PlaneCase, bound: float) -> float:
    """Lower a bound of the computed groups to one of the points.

    The root of the inertia is a norm, so that it differs from that of groups that are moved by
    their errors by at most the displacement.
    """
    if not bound > 0:
        return 0.0
    return max(0.0, math.sqrt(bound) * (1 - 4 * UNIT) - case.displacement) ** 2 * (1 - 4 * UNIT)
