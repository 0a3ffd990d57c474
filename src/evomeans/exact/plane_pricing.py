"""Prices of groups, and the bound that they prove.

With prices p, a group of weight w and mean x gains a(y) = w |x - y|² - p in a cluster with mean y.
Every cluster costs at least the prices of its groups, and their scatters, plus v, where

    v = the least value of f(y) over all y,
    f(y) = the least sum of a(y) over groups that may share a cluster,

because f at the mean of a cluster is at most its cost minus the prices of its groups. If all groups
may share a cluster, f is the sum of min(0, a). So for any prices, a clustering into at most k
clusters costs at least

    sum of p + sum of scatters + k min(0, v).

This is the bound of column generation [1]_. The least value of f is bounded from below by splitting
the box around the groups. In a box, discs |x - y|² < p / w are left out if they do not meet it.
Those that contain it are summed to a quadratic, whose minimum in the box is known. For the others
the nearest point of the box counts. Of groups that stay apart, see `Choices`, the best choice joins
the quadratic if it is the best in all of the box; else the lowest value of any choice counts.

References
----------
.. [1] D. Aloise, P. Hansen, L. Liberti: "An improved column generation algorithm for minimum
   sum-of-squares clustering", Mathematical Programming 131, 2012.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.jit import jit
from evomeans.compiled.ready import Call
from evomeans.exact.bound import relative_error
from evomeans.exact.plane_case import Choices, Ints, PlaneCase
from evomeans.exact.points import UNIT, Floats

DEPTH = 200
"""Splits of a box, at most."""
MOST_BOXES = 2_000_000
TOLERANCE = 1e-9
"""What the bound may lose at the boxes, as a share of all prices."""
LARGEST = 1e290
"""Prices from here on prove nothing: their sums might overflow."""
STEPS = 60
MOST_PLACES = 3000


class Boxes(NamedTuple):
    """A stack of boxes. Row 0 is for the box that is being split, row 1 holds the first one.

    Parameters
    ----------
    lists : (DEPTH + 2, n) array
        Groups whose discs meet the box.
    sides : (DEPTH + 2, 2, 2) array
        Lower and upper corner.
    counts, bounds : (DEPTH + 2,) arrays
        How many groups are listed, and a lower bound of f in the box.
    """

    lists: NDArray[np.int32]
    sides: Floats
    counts: Ints
    bounds: Floats

    @classmethod
    def around(cls, case: PlaneCase, prices: Floats) -> Boxes:
        """Return a stack with the box around all groups, where f is at least -sum of prices."""
        found = cls(
            np.empty((DEPTH + 2, case.n), np.int32),
            np.empty((DEPTH + 2, 2, 2)),
            np.empty(DEPTH + 2, np.int64),
            np.empty(DEPTH + 2),
        )
        free = case.free
        found.lists[1, : len(free)] = free
        found.counts[1] = len(free)
        found.bounds[1] = -1.000001 * float(np.maximum(prices, 0.0).sum())
        found.sides[1] = case.values.min(axis=0), case.values.max(axis=0)
        return found


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
    left out of a box lack at most 16 u of their prices, and the middles of boxes, at most 1, are
    off by u, which moves the minimum of a quadratic by at most 64 u times weight and radius.
    Scatters about a mean that is off by e are too large by w e².
    """
    if not np.abs(prices).max() < LARGEST:
        return NOTHING
    paid = float(np.maximum(prices, 0.0).sum())
    radius = math.sqrt(float((np.maximum(prices, 0.0) / case.weights).max()))
    least, _ = least_value(case, prices, tolerance * paid / case.k, -np.inf)
    error = 64 * UNIT * (paid + float(case.weights.sum()) * radius)
    least -= error
    total = math.fsum(prices.tolist()) - 4 * UNIT * math.fsum(np.abs(prices).tolist())
    scatter = math.fsum(case.scatters.tolist()) * (1 - relative_error(case.points))
    bound = total + scatter - case.displacement**2 + case.k * min(0.0, least)
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


def least_value(
    case: PlaneCase, prices: Floats, tolerance: float, wanted: float
) -> tuple[float, Floats]:
    """Return a lower bound for f, and places where it is low.

    The bound is ``tolerance`` below the least value found; the places are some of those where f is
    below ``wanted``.
    """
    values, ends = descend_all(case, prices, case.values)
    least = min(float(values.min()), 0.0)
    places, n_places = np.empty((MOST_PLACES, 2)), np.zeros(1, np.int64)
    found = bound_boxes(
        *arrays_of(case, prices),
        least,
        tolerance,
        wanted,
        *Boxes.around(case, prices),
        places,
        n_places,
        MOST_BOXES,
    )
    low = places[: min(MOST_PLACES, int(n_places[0]))]
    return float(found), np.concatenate([ends[values < wanted], low])


def arrays_of(case: PlaneCase, prices: Floats) -> tuple[Floats, Floats, Floats, Ints, Ints, Ints]:
    """Return what the kernels need to know of a case and its prices."""
    values = np.ascontiguousarray(case.values)
    return values, case.weights, np.ascontiguousarray(prices), *case.choices


def descend_all(case: PlaneCase, prices: Floats, starts: Floats) -> tuple[Floats, Floats]:
    """Follow f downhill from every start; return the values and where they are taken."""
    ends = np.array(starts, np.float64)
    values = np.empty(len(ends))
    # Groups without a price never join, and would only take time.
    free = case.free[prices[case.free] > 0]
    descend(*arrays_of(case, prices), free, ends, values, STEPS)
    return values, ends


def clusters_at(case: PlaneCase, prices: Floats, ends: Floats) -> NDArray[np.bool_]:
    """Return, for every place y, the groups whose sum is f(y)."""
    found = np.zeros((len(ends), case.n), np.bool_)
    join(*arrays_of(case, prices), case.free, ends, found)
    return found


@jit
def gain(x: Floats, w: Floats, prices: Floats, i: int, y0: float, y1: float) -> float:
    """Return w |x - y|² - p of a group."""
    o0, o1 = x[i, 0] - y0, x[i, 1] - y1
    return w[i] * (o0 * o0 + o1 * o1) - prices[i]


@jit
def best_choice(
    x: Floats,
    w: Floats,
    prices: Floats,
    parts: Ints,
    starts: Ints,
    members: Ints,
    part: int,
    y0: float,
    y1: float,
) -> tuple[float, int]:
    """Return the lowest sum of gains at y of any choice, and the choice."""
    lowest, best = np.inf, parts[part]
    for q in range(parts[part], parts[part + 1]):
        total = 0.0
        for place in range(starts[q], starts[q + 1]):
            total += gain(x, w, prices, members[place], y0, y1)
        if total < lowest:
            lowest, best = total, q
    return lowest, best


@jit
def descend_from(
    x: Floats,
    w: Floats,
    prices: Floats,
    parts: Ints,
    starts: Ints,
    members: Ints,
    free: Any,
    count: int,
    y0: float,
    y1: float,
    steps: int,
) -> tuple[float, float, float]:
    """Move y to the mean of the groups whose sum is f(y), until nothing changes; return f and y.

    Only the first ``count`` groups of ``free`` are looked at, so that f may be lower still.
    """
    last = value = np.inf
    for _ in range(steps):
        total = value = m0 = m1 = 0.0
        for place in range(count):
            i = free[place]
            o0, o1 = x[i, 0] - y0, x[i, 1] - y1
            here = w[i] * (o0 * o0 + o1 * o1) - prices[i]
            if here < 0.0:
                value += here
                total += w[i]
                m0 += w[i] * o0
                m1 += w[i] * o1
        for part in range(parts.shape[0] - 1):
            lowest, q = best_choice(x, w, prices, parts, starts, members, part, y0, y1)
            value += lowest
            for place in range(starts[q], starts[q + 1]):
                i = members[place]
                total += w[i]
                m0 += w[i] * (x[i, 0] - y0)
                m1 += w[i] * (x[i, 1] - y1)
        if total == 0.0 or not value < last:
            break
        last = value
        y0 += m0 / total
        y1 += m1 / total
    return value, y0, y1


@jit
def descend(
    x: Floats,
    w: Floats,
    prices: Floats,
    parts: Ints,
    starts: Ints,
    members: Ints,
    free: NDArray[np.int32],
    ends: Floats,
    values: Floats,
    steps: int,
) -> None:
    """Follow f downhill from many starts.

    Shapes: x (n, 2); w, prices (n,); choices as in `Choices`; free (m,); ends (s, 2), starts that
    become ends; values (s,).
    """
    for start in range(ends.shape[0]):
        values[start], ends[start, 0], ends[start, 1] = descend_from(
            x,
            w,
            prices,
            parts,
            starts,
            members,
            free,
            free.shape[0],
            ends[start, 0],
            ends[start, 1],
            steps,
        )


@jit
def join(
    x: Floats,
    w: Floats,
    prices: Floats,
    parts: Ints,
    starts: Ints,
    members: Ints,
    free: NDArray[np.int32],
    ends: Floats,
    found: NDArray[np.bool_],
) -> None:
    """Mark the groups whose sum is f(y). Shapes as in `descend`; found (s, n)."""
    for end in range(ends.shape[0]):
        y0, y1 = ends[end, 0], ends[end, 1]
        for place in range(free.shape[0]):
            found[end, free[place]] = gain(x, w, prices, free[place], y0, y1) < 0.0
        for part in range(parts.shape[0] - 1):
            _, q = best_choice(x, w, prices, parts, starts, members, part, y0, y1)
            for place in range(starts[q], starts[q + 1]):
                found[end, members[place]] = True


@jit
def range_of_distance(x: Floats, i: int, box: Any) -> tuple[float, float]:
    """Return the least and the largest squared distance of a group to a box."""
    nearest = farthest = 0.0
    for e in range(2):
        low, high = box[0, e] - x[i, e], x[i, e] - box[1, e]
        away = max(low, high, 0.0)
        nearest += away * away
        reach = max(-low, -high)
        farthest += reach * reach
    return nearest, farthest


@jit
def restrict(
    x: Floats,
    w: Floats,
    prices: Floats,
    parts: Ints,
    starts: Ints,
    members: Ints,
    margin: float,
    box: Any,
    candidates: Any,
    count: int,
    kept: Any,
) -> tuple[int, float, float]:
    """Bound f in a box from below, list the groups near it, and find f in its middle.

    Listed are the groups whose least gain in the box is below ``margin``, at least 0.
    Shapes as in `descend`; box (2, 2); candidates, kept (n,).
    """
    n_kept = 0
    weight = squares = size = outside = middle = paid = 0.0
    s0 = s1 = 0.0
    c0, c1 = (box[0, 0] + box[1, 0]) / 2.0, (box[0, 1] + box[1, 1]) / 2.0
    for place in range(count):
        i = candidates[place]
        nearest, farthest = range_of_distance(x, i, box)
        lowest = w[i] * nearest - prices[i]
        if lowest >= margin:
            continue
        kept[n_kept] = i
        n_kept += 1
        if lowest >= 0.0:
            continue
        o0, o1 = x[i, 0] - c0, x[i, 1] - c1
        square = w[i] * (o0 * o0 + o1 * o1)
        middle += min(square - prices[i], 0.0)
        size += square + prices[i]
        if w[i] * farthest <= prices[i]:
            weight += w[i]
            s0 += w[i] * o0
            s1 += w[i] * o1
            squares += square
            paid += prices[i]
        else:
            outside += lowest
    n_terms = n_kept
    for part in range(parts.shape[0] - 1):
        lowest = second = least_high = np.inf
        at_lowest = best = -1
        for q in range(parts[part], parts[part + 1]):
            low = high = larger = 0.0
            is_dominated = False
            for place in range(starts[q], starts[q + 1]):
                i = members[place]
                nearest, farthest = range_of_distance(x, i, box)
                here = w[i] * nearest - prices[i]
                is_dominated = is_dominated or here >= 0.0
                low += here
                high += w[i] * farthest - prices[i]
                larger += w[i] * farthest + abs(prices[i])
            # The choice without a group that gains nowhere in the box is better.
            if is_dominated:
                continue
            size += larger
            n_terms += starts[q + 1] - starts[q]
            if low < lowest:
                lowest, second, at_lowest = low, lowest, q
            elif low < second:
                second = low
            if high < least_high:
                least_high, best = high, q
        if (second if at_lowest == best else lowest) >= least_high:
            # This choice is the best one in all of the box, whatever the signs of its gains.
            for place in range(starts[best], starts[best + 1]):
                i = members[place]
                o0, o1 = x[i, 0] - c0, x[i, 1] - c1
                weight += w[i]
                s0 += w[i] * o0
                s1 += w[i] * o1
                squares += w[i] * (o0 * o0 + o1 * o1)
                paid += prices[i]
        else:
            outside += lowest
        middle += best_choice(x, w, prices, parts, starts, members, part, c0, c1)[0]
    value = outside - paid
    if weight > 0.0:
        m0, m1 = s0 / weight, s1 / weight
        a0 = max(abs(m0) - (box[1, 0] - box[0, 0]) / 2.0, 0.0)
        a1 = max(abs(m1) - (box[1, 1] - box[0, 1]) / 2.0, 0.0)
        value += squares - weight * (m0 * m0 + m1 * m1) + weight * (a0 * a0 + a1 * a1)
    # u = 2**-53 for each of the sums, and the discs that rounding put on the wrong side.
    allowance = 16.0 * (n_terms + 16) * 1.2e-16 * size
    return n_kept, value - allowance, middle


@jit
def split_box(
    lists: NDArray[np.int32], sides: Floats, counts: Ints, top: int
) -> tuple[int, int, float, bool]:
    """Move the box on top of the stack to row 0; return how many groups it lists and where to cut.

    The last value says that the box is too small to be cut, or the stack full.
    """
    count = counts[top]
    for place in range(count):
        lists[0, place] = lists[top, place]
    for side in range(2):
        for e in range(2):
            sides[0, side, e] = sides[top, side, e]
    axis = 0 if sides[0, 1, 0] - sides[0, 0, 0] >= sides[0, 1, 1] - sides[0, 0, 1] else 1
    middle = (sides[0, 0, axis] + sides[0, 1, axis]) / 2.0
    is_final = middle <= sides[0, 0, axis] or middle >= sides[0, 1, axis]
    return count, axis, middle, is_final or top + 1 >= lists.shape[0]


@jit
def bound_boxes(
    x: Floats,
    w: Floats,
    prices: Floats,
    parts: Ints,
    starts: Ints,
    members: Ints,
    least: float,
    tolerance: float,
    wanted: float,
    lists: NDArray[np.int32],
    sides: Floats,
    counts: Ints,
    bounds: Floats,
    places: Floats,
    n_places: Ints,
    most: int,
) -> float:
    """Split boxes until f is nowhere lower than ``least - tolerance``; return what is certain.

    ``least`` is the least value found so far; ``places`` are filled with middles of boxes where f
    is below ``wanted``, the first of them overwritten when it is full.

    Shapes as in `descend` and `Boxes`; places (MOST_PLACES, 2); n_places (1,).
    """
    target = least - tolerance
    certain = target
    top, n_boxes = 1, 0
    while top > 0:
        bound = bounds[top]
        count, axis, middle, is_final = split_box(lists, sides, counts, top)
        top -= 1
        n_boxes += 1
        if is_final or n_boxes > most:
            certain = min(certain, bound)
            continue
        for half in range(2):
            top += 1
            for side in range(2):
                for e in range(2):
                    sides[top, side, e] = sides[0, side, e]
            sides[top, 1 - half, axis] = middle
            found, bound, value = restrict(
                x,
                w,
                prices,
                parts,
                starts,
                members,
                0.0,
                sides[top],
                lists[0],
                count,
                lists[top],
            )
            counts[top], bounds[top] = found, bound
            if value < least:
                # Without the way down from here, boxes around it would be split again and again.
                y0 = (sides[top, 0, 0] + sides[top, 1, 0]) / 2.0
                y1 = (sides[top, 0, 1] + sides[top, 1, 1]) / 2.0
                lowest, y0, y1 = descend_from(
                    x,
                    w,
                    prices,
                    parts,
                    starts,
                    members,
                    lists[top],
                    found,
                    y0,
                    y1,
                    STEPS,
                )
                least = min(value, lowest)
                target = least - tolerance
            if value < wanted:
                row = n_places[0] % places.shape[0]
                n_places[0] += 1
                for e in range(2):
                    places[row, e] = (sides[top, 0, e] + sides[top, 1, e]) / 2.0
            if bound >= target:
                top -= 1
    return min(certain, target)


def kernel_calls() -> list[Call]:
    """Return what a proof calls of these, see :func:`~evomeans.compiled.ready.ready`."""
    grid, one, index = np.zeros((1, 2)), np.zeros(1), np.zeros(1, np.int64)
    case = grid, one, one, *Choices(index, index, index)
    stack = Boxes(np.zeros((1, 1), np.int32), np.zeros((1, 2, 2)), index, one)
    free = np.zeros(1, np.int32)
    return [
        Call(descend, (*case, free, grid, one, 1), 0.7),
        Call(join, (*case, free, grid, np.zeros((1, 1), np.bool_)), 0.4),
        Call(bound_boxes, (*case, 0.0, 0.0, 0.0, *stack, grid, index, 1), 2.0),
    ]
