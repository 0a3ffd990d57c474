"""Prices of points, and the bound that they prove.

Every cluster costs at least the prices λ of its points plus v, where

    v = the least value of f(y) = sum over i of min(0, w_i |x_i - y|² - λ_i) over all y,

because f at the mean of a cluster is at most its cost minus the prices of its points. So for any
prices, a clustering into at most k clusters costs at least

    sum of λ + k min(0, v).

This is the bound of column generation [1]_. It is tight if clusters are small. The least value of f
is bounded from below by splitting the box around the points. In a box, discs
|x_i - y|² < λ_i / w_i are left out if they do not meet it. Those that contain it are summed to a
quadratic, whose minimum in the box is known. For the others the nearest point of the box counts.

References
----------
.. [1] D. Aloise, P. Hansen, L. Liberti: "An improved column generation algorithm for minimum
   sum-of-squares clustering", Mathematical Programming 131, 2012.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.jit import jit
from evomeans.compiled.ready import Call
from evomeans.exact.bound import relative_error
from evomeans.exact.points import UNIT, Floats, WeightedPoints

DEPTH = 200
"""Splits of a box, at most."""
MOST_BOXES = 20_000_000
TOLERANCE = 1e-9
"""What the bound may lose at the boxes, as a share of all prices."""
STEPS = 60
MOST_PLACES = 3000


def plane_bound(points: WeightedPoints, k: int, prices: Floats) -> float:
    """Return the lower bound that prices prove, in the units of the points.

    Rounding is allowed for. Each box subtracts what its own sums may be off by. Discs that rounding
    left out of a box lack at most 16 u of their prices, and the middles of boxes, at most 1, are
    off by u, which moves the minimum of a quadratic by at most 64 u times weight and radius.
    """
    prices = np.maximum(np.where(np.isfinite(prices), prices, 0.0), 0.0)
    total = math.fsum(prices.tolist())
    if total == 0:
        return 0.0
    least, _ = least_value(points, prices, TOLERANCE * total / k, -np.inf)
    radius = math.sqrt(float((prices / points.weights).max()))
    least -= 64 * UNIT * (total + float(points.weights.sum()) * radius)
    bound = total * (1 - 4 * UNIT) + k * min(0.0, least)
    return max(0.0, bound * (1 - relative_error(points))) if math.isfinite(bound) else 0.0


def least_value(
    points: WeightedPoints, prices: Floats, tolerance: float, wanted: float
) -> tuple[float, Floats]:
    """Return a lower bound for f, and places where it is low.

    The bound is ``tolerance`` below the least value found; the places are some of those where f is
    below ``wanted``.
    """
    values, ends = descend_all(points, prices, points.values)
    n, d = points.values.shape
    lists = np.empty((DEPTH + 2, n), np.int32)
    boxes = np.empty((DEPTH + 2, 2, d))
    counts, bounds = np.empty(DEPTH + 2, np.int64), np.empty(DEPTH + 2)
    boxes[1, 0], boxes[1, 1] = points.values.min(axis=0), points.values.max(axis=0)
    lists[1], counts[1], bounds[1] = np.arange(n), n, -np.inf
    x, w = np.ascontiguousarray(points.values), points.weights
    stack = lists, boxes, counts, bounds
    least = min(float(values.min()), 0.0)
    places, n_places = np.empty((MOST_PLACES, d)), np.zeros(1, np.int64)
    found = bound_boxes(
        x, w, prices, least, tolerance, wanted, *stack, places, n_places, MOST_BOXES
    )
    low = places[: min(MOST_PLACES, int(n_places[0]))]
    return float(found), np.concatenate([ends[values < wanted], low])


def descend_all(points: WeightedPoints, prices: Floats, starts: Floats) -> tuple[Floats, Floats]:
    """Follow f downhill from every start; return the values and where they are taken."""
    ends = np.array(starts, np.float64)
    values = np.empty(len(ends))
    middle = np.empty(points.values.shape[1])
    x = np.ascontiguousarray(points.values)
    descend(x, points.weights, prices, ends, values, middle, STEPS)
    return values, ends


@jit
def descend(
    x: Floats, w: Floats, prices: Floats, ends: Floats, values: Floats, middle: Floats, steps: int
) -> None:
    """Move each y to the mean of the points whose discs contain it, until nothing changes.

    Shapes: x (n, d); w, prices (n,); ends (m, d), starts that become ends; values (m,);
    middle (d,).
    """
    n, d = x.shape
    for start in range(ends.shape[0]):
        last = np.inf
        for _ in range(steps):
            total = value = 0.0
            for e in range(d):
                middle[e] = 0.0
            for i in range(n):
                distance = 0.0
                for e in range(d):
                    offset = x[i, e] - ends[start, e]
                    distance += offset * offset
                gain = w[i] * distance - prices[i]
                if gain < 0.0:
                    value += gain
                    total += w[i]
                    for e in range(d):
                        middle[e] += w[i] * (x[i, e] - ends[start, e])
            values[start] = value
            if total == 0.0 or not value < last:
                break
            last = value
            for e in range(d):
                ends[start, e] += middle[e] / total


@jit
def restrict(
    x: Floats,
    w: Floats,
    prices: Floats,
    box: Any,
    candidates: Any,
    count: int,
    kept: Any,
) -> tuple[int, float, float]:
    """Bound f in a box from below, list the points whose discs meet it, and find f in its middle.

    Shapes: x (n, d); w, prices (n,); box (2, d); candidates, kept (n,).
    """
    d = x.shape[1]
    n_kept = 0
    weight = squares = paid = outside = middle = 0.0
    s0 = s1 = 0.0
    c0, c1 = (box[0, 0] + box[1, 0]) / 2.0, (box[0, 1] + box[1, 1]) / 2.0
    for place in range(count):
        i = candidates[place]
        nearest = farthest = 0.0
        for e in range(d):
            low, high = box[0, e] - x[i, e], x[i, e] - box[1, e]
            away = max(low, high, 0.0)
            nearest += away * away
            reach = max(-low, -high)
            farthest += reach * reach
        if w[i] * nearest >= prices[i]:
            continue
        kept[n_kept] = i
        n_kept += 1
        o0, o1 = x[i, 0] - c0, x[i, 1] - c1
        middle += min(w[i] * (o0 * o0 + o1 * o1) - prices[i], 0.0)
        if w[i] * farthest <= prices[i]:
            weight += w[i]
            s0 += w[i] * o0
            s1 += w[i] * o1
            squares += w[i] * (o0 * o0 + o1 * o1)
            paid += prices[i]
        else:
            outside += w[i] * nearest - prices[i]
    value = outside - paid
    if weight > 0.0:
        m0, m1 = s0 / weight, s1 / weight
        a0 = max(abs(m0) - (box[1, 0] - box[0, 0]) / 2.0, 0.0)
        a1 = max(abs(m1) - (box[1, 1] - box[0, 1]) / 2.0, 0.0)
        value += squares - weight * (m0 * m0 + m1 * m1) + weight * (a0 * a0 + a1 * a1)
    # u = 2**-53 for each of the sums, and the discs that rounding put on the wrong side.
    allowance = 16.0 * (n_kept + 16) * 1.2e-16 * (squares + paid - outside)
    return n_kept, value - allowance, middle


@jit
def bound_boxes(
    x: Floats,
    w: Floats,
    prices: Floats,
    least: float,
    tolerance: float,
    wanted: float,
    lists: NDArray[np.int32],
    boxes: Floats,
    counts: NDArray[np.int64],
    bounds: Floats,
    places: Floats,
    n_places: NDArray[np.int64],
    most: int,
) -> float:
    """Split boxes until f is nowhere lower than ``least - tolerance``; return what is certain.

    ``least`` is the least value found so far; ``places`` are filled with middles of boxes where f
    is below ``wanted``, the first of them overwritten when it is full.

    Row 0 of the stack is for the box that is being split, row 1 holds the first one.
    Shapes: x (n, 2); w, prices (n,); lists (DEPTH + 2, n); boxes (DEPTH + 2, 2, 2);
    counts, bounds (DEPTH + 2,); places (MOST_PLACES, 2); n_places (1,).
    """
    target = least - tolerance
    certain = target
    top, n_boxes = 1, 0
    while top > 0:
        count, bound = counts[top], bounds[top]
        for place in range(count):
            lists[0, place] = lists[top, place]
        for side in range(2):
            for e in range(2):
                boxes[0, side, e] = boxes[top, side, e]
        top -= 1
        n_boxes += 1
        axis = 0 if boxes[0, 1, 0] - boxes[0, 0, 0] >= boxes[0, 1, 1] - boxes[0, 0, 1] else 1
        middle = (boxes[0, 0, axis] + boxes[0, 1, axis]) / 2.0
        at_limit = middle <= boxes[0, 0, axis] or middle >= boxes[0, 1, axis]
        if n_boxes > most or top + 2 >= lists.shape[0] or at_limit:
            certain = min(certain, bound)
            continue
        for half in range(2):
            top += 1
            for side in range(2):
                for e in range(2):
                    boxes[top, side, e] = boxes[0, side, e]
            boxes[top, 1 - half, axis] = middle
            found, bound, value = restrict(x, w, prices, boxes[top], lists[0], count, lists[top])
            counts[top], bounds[top] = found, bound
            if value < least:
                least = value
                target = least - tolerance
            if value < wanted:
                row = n_places[0] % places.shape[0]
                n_places[0] += 1
                for e in range(2):
                    places[row, e] = (boxes[top, 0, e] + boxes[top, 1, e]) / 2.0
            if bound >= target:
                top -= 1
    return min(certain, target)


def kernel_calls() -> list[Call]:
    """Return what a proof calls of these, see :func:`~evomeans.compiled.ready.ready`."""
    grid, one = np.zeros((1, 2)), np.zeros(1)
    index = np.zeros(1, np.int64)
    stack = np.zeros((1, 1), np.int32), np.zeros((1, 2, 2)), index, one
    return [
        Call(descend, (grid, one, one, grid, one, one, 1), 0.4),
        Call(bound_boxes, (grid, one, one, 0.0, 0.0, 0.0, *stack, grid, index, 1), 1.0),
    ]
