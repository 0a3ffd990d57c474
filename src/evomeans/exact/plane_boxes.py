"""The function f of `plane_proof`: its values downhill, and a lower bound over all of the plane.

For the bound, the box around all groups is split again and again. In a box, discs |x - y|² < p / w
are left out if they do not meet it. Those that contain it are summed to a quadratic, whose minimum
in the box is known. For the others the nearest point of the box counts. Of groups that stay apart,
the best choice joins the quadratic if it is the best in all of the box; else the lowest value of
any choice counts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from evomeans.compiled.bundle import bundle
from evomeans.compiled.jit import jit
from evomeans.typing import Flags, FloatArray, Integers, Labels

STEPS = 60  # of a way downhill, at most


@bundle
class PricedGroups(NamedTuple):
    """What kernels need to know of a case: means x (n, 2), weights, prices (n,), and choices.

    A cluster makes one choice for every component of the pairs that stay apart: ``parts[a]`` to
    ``parts[a + 1]`` are those of component a. Groups ``members[starts[q]:starts[q + 1]]`` belong to
    choice q; one choice is empty. A cluster may take ``free`` groups whatever else it takes.
    """

    x: FloatArray
    w: FloatArray
    prices: FloatArray
    parts: Integers
    starts: Integers
    members: Integers
    free: Labels


def descend_all(groups: PricedGroups, starts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Follow f downhill from every start; return the values and where they are taken."""
    ends = np.array(starts, np.float64)
    values = np.empty(len(ends))
    # Groups without a price never join, and would only take time.
    descend(groups, groups.free[groups.prices[groups.free] > 0], ends, values)
    return values, ends


def clusters_at(groups: PricedGroups, ends: FloatArray) -> Flags:
    """Return, for every place y, the groups whose sum is f(y)."""
    found = np.zeros((len(ends), len(groups.x)), np.bool_)
    join(groups, ends, found)
    return found


@jit
def gain(groups: PricedGroups, i: int, y0: float, y1: float) -> float:
    """Return w |x - y|² - p of a group."""
    o0, o1 = groups.x[i, 0] - y0, groups.x[i, 1] - y1
    return groups.w[i] * (o0 * o0 + o1 * o1) - groups.prices[i]


@jit
def best_choice(groups: PricedGroups, part: int, y0: float, y1: float) -> tuple[float, int]:
    """Return the lowest sum of gains at y of any choice, and the choice."""
    parts, starts = groups.parts, groups.starts
    lowest, best = np.inf, parts[part]
    for q in range(parts[part], parts[part + 1]):
        total = 0.0
        for place in range(starts[q], starts[q + 1]):
            total += gain(groups, groups.members[place], y0, y1)
        if total < lowest:
            lowest, best = total, q
    return lowest, best


@jit
def descend_from(
    groups: PricedGroups, free: Any, count: int, y0: float, y1: float
) -> tuple[float, float, float]:
    """Move y to the mean of the groups whose sum is f(y), until nothing changes; return f and y.

    Only the first ``count`` groups of ``free`` are looked at, so f may be lower still.
    """
    x, w, prices = groups.x, groups.w, groups.prices
    starts, members = groups.starts, groups.members
    last = value = np.inf
    for _ in range(STEPS):
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
        for part in range(groups.parts.shape[0] - 1):
            lowest, q = best_choice(groups, part, y0, y1)
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
def descend(groups: PricedGroups, free: Labels, ends: FloatArray, values: FloatArray) -> None:
    """Follow f downhill from many starts.

    Shapes: free (m,); ends (s, 2), starts that become ends; values (s,).
    """
    for start in range(ends.shape[0]):
        y0, y1 = ends[start, 0], ends[start, 1]
        values[start], ends[start, 0], ends[start, 1] = descend_from(
            groups, free, free.shape[0], y0, y1
        )


@jit
def join(groups: PricedGroups, ends: FloatArray, found: Flags) -> None:
    """Mark the groups whose sum is f(y). Shapes: ends (s, 2); found (s, n)."""
    free = groups.free
    for end in range(ends.shape[0]):
        y0, y1 = ends[end, 0], ends[end, 1]
        for place in range(free.shape[0]):
            found[end, free[place]] = gain(groups, free[place], y0, y1) < 0.0
        for part in range(groups.parts.shape[0] - 1):
            _, q = best_choice(groups, part, y0, y1)
            for place in range(groups.starts[q], groups.starts[q + 1]):
                found[end, groups.members[place]] = True


# ---- the bound -----------------------------------------------------------------------------------

DEPTH = 200  # splits of a box, at most
MOST_BOXES = 2_000_000
MOST_PLACES = 3000


@bundle
class Boxes(NamedTuple):
    """A stack of boxes. Row 0 is for the box that is being split, row 1 holds the first one.

    The lists have the groups whose discs meet a box, the counts how many these are. Sides are lower
    and upper corners, and bounds are those of f. Shapes: lists (DEPTH + 2, n); sides (DEPTH + 2, 2,
    2); counts, bounds (DEPTH + 2,).
    """

    lists: Labels
    sides: FloatArray
    counts: Integers
    bounds: FloatArray

    @classmethod
    def around(cls, groups: PricedGroups) -> Boxes:
        """Return a stack with the box around all groups, where f is at least -sum of prices."""
        rows, free = DEPTH + 2, groups.free
        lists, counts = np.empty((rows, len(groups.x)), np.int32), np.empty(rows, np.int64)
        found = cls(lists, np.empty((rows, 2, 2)), counts, np.empty(rows))
        found.lists[1, : len(free)] = free
        found.counts[1] = len(free)
        found.bounds[1] = -1.000001 * float(np.maximum(groups.prices, 0.0).sum())
        found.sides[1] = groups.x.min(axis=0), groups.x.max(axis=0)
        return found


def least_value(groups: PricedGroups, tolerance: float, wanted: float) -> tuple[float, FloatArray]:
    """Return a lower bound for f, and some places where it is below ``wanted``.

    The bound is ``tolerance`` below the least value found.
    """
    values, ends = descend_all(groups, groups.x)
    least = min(float(values.min()), 0.0)
    places, n_places = np.empty((MOST_PLACES, 2)), np.zeros(1, np.int64)
    boxes = Boxes.around(groups)
    found = bound_boxes(groups, least, tolerance, wanted, boxes, places, n_places)
    low = places[: min(MOST_PLACES, int(n_places[0]))]
    return float(found), np.concatenate([ends[values < wanted], low])


@jit
def range_of_distance(x: FloatArray, i: int, box: Any) -> tuple[float, float]:
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
    groups: PricedGroups, margin: float, box: Any, candidates: Any, count: int, kept: Any
) -> tuple[int, float, float]:
    """Bound f in a box from below, list the groups near it, and find f in its middle.

    Listed are the groups whose least gain in the box is below ``margin``, at least 0.
    Shapes: box (2, 2); candidates, kept (n,).
    """
    x, w, prices = groups.x, groups.w, groups.prices
    parts, starts, members = groups.parts, groups.starts, groups.members
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
        middle += best_choice(groups, part, c0, c1)[0]
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
def cut_of(box: Any) -> tuple[int, float]:
    """Return the axis of the longer side of a box, and the middle of that side."""
    axis = 0 if box[1, 0] - box[0, 0] >= box[1, 1] - box[0, 1] else 1
    return axis, (box[0, axis] + box[1, axis]) / 2.0


@jit
def take_box(boxes: Boxes, top: int) -> bool:
    """Move the box on top of the stack to row 0; whether it is too small to be cut, or all full."""
    lists, sides, counts = boxes.lists, boxes.sides, boxes.counts
    counts[0] = counts[top]
    for place in range(counts[0]):
        lists[0, place] = lists[top, place]
    for side in range(2):
        for e in range(2):
            sides[0, side, e] = sides[top, side, e]
    axis, middle = cut_of(sides[0])
    is_tiny = middle <= sides[0, 0, axis] or middle >= sides[0, 1, axis]
    return is_tiny or top + 1 >= lists.shape[0]


@jit
def push_half(
    groups: PricedGroups, margin: float, boxes: Boxes, top: int, half: int
) -> tuple[int, float, float]:
    """Put half of the box in row 0 into row ``top``; return what `restrict` does."""
    lists, sides, counts = boxes.lists, boxes.sides, boxes.counts
    for side in range(2):
        for e in range(2):
            sides[top, side, e] = sides[0, side, e]
    axis, middle = cut_of(sides[0])
    sides[top, 1 - half, axis] = middle
    found, bound, value = restrict(groups, margin, sides[top], lists[0], counts[0], lists[top])
    counts[top], boxes.bounds[top] = found, bound
    return found, bound, value


@jit
def bound_boxes(
    groups: PricedGroups,
    least: float,
    tolerance: float,
    wanted: float,
    boxes: Boxes,
    places: FloatArray,
    n_places: Integers,
) -> float:
    """Split boxes until f is nowhere lower than ``least - tolerance``; return what is certain.

    ``least`` is the least value found so far; ``places`` are filled with middles of boxes where f
    is below ``wanted``, the first of them overwritten when it is full.

    Shapes: places (MOST_PLACES, 2); n_places (1,).
    """
    lists, sides, bounds = boxes.lists, boxes.sides, boxes.bounds
    target = least - tolerance
    certain = target
    top, n_boxes = 1, 0
    while top > 0:
        bound = bounds[top]
        is_final = take_box(boxes, top)
        top -= 1
        n_boxes += 1
        if is_final or n_boxes > MOST_BOXES:
            certain = min(certain, bound)
            continue
        for half in range(2):
            top += 1
            found, bound, value = push_half(groups, 0.0, boxes, top, half)
            if value < least:
                # Without the way down from here, boxes around it would be split again and again.
                y0 = (sides[top, 0, 0] + sides[top, 1, 0]) / 2.0
                y1 = (sides[top, 0, 1] + sides[top, 1, 1]) / 2.0
                lowest, y0, y1 = descend_from(groups, lists[top], found, y0, y1)
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


@jit
def sort_groups(
    groups: PricedGroups,
    limit: float,
    slack: float,
    finest: float,
    boxes: Boxes,
    labels: Integers,
    is_alone: Flags,
    scratch: Integers,
) -> int:
    """Give different labels to groups of which a box needs only one; return how many boxes matter.

    Shapes: labels, is_alone (n,); scratch (4, n + 1).
    """
    x, w, prices, members = groups.x, groups.w, groups.prices, groups.members
    lists, sides, n = boxes.lists, boxes.sides, groups.x.shape[0]
    # How many groups have a label, how many of them a box needs, their new label, and in which box.
    sizes, needed, moved, needs = scratch[0], scratch[1], scratch[2], scratch[3]
    sizes[0] = n
    n_labels, n_boxes, n_useful, top = 1, 0, 0, 1
    while top > 0:
        is_final = take_box(boxes, top)
        top -= 1
        n_boxes += 1
        if is_final:
            # Too small to be split, so nothing is decided.
            n_useful += 1
            for i in range(n):
                is_alone[i] = True
            continue
        for half in range(2):
            top += 1
            found, bound, _ = push_half(groups, slack, boxes, top, half)
            # f is at least v everywhere, whatever the bound in this box.
            left = min(limit - bound, slack)
            if left <= 0.0:
                top -= 1
                continue
            widest, n_open = 0.0, 0
            for place in range(found):
                i = lists[top, place]
                nearest, farthest = range_of_distance(x, i, sides[top])
                if w[i] * farthest - prices[i] > -left and w[i] * nearest - prices[i] < left:
                    n_open += 1
                    widest = max(widest, w[i] * (farthest - nearest))
            if n_open > 0 and widest > finest and n_boxes < MOST_BOXES // 10:
                continue
            n_useful += 1
            for place in range(found):
                i = lists[top, place]
                nearest, farthest = range_of_distance(x, i, sides[top])
                if w[i] * farthest - prices[i] <= -left:
                    needs[i] = n_useful
                    needed[labels[i]] += 1
                elif w[i] * nearest - prices[i] < left:
                    is_alone[i] = True
            for place in range(members.shape[0]):
                i = members[place]
                if w[i] * range_of_distance(x, i, sides[top])[0] - prices[i] < left:
                    is_alone[i] = True
            # Groups that are needed leave those with the same label that are not.
            first = n_labels
            for place in range(found):
                i = lists[top, place]
                if needs[i] != n_useful or labels[i] >= first:
                    continue
                old = labels[i]
                if needed[old] == sizes[old]:
                    continue
                if moved[old] < first:
                    moved[old] = n_labels
                    sizes[n_labels] = 0
                    needed[n_labels] = 0
                    n_labels += 1
                labels[i] = moved[old]
                sizes[moved[old]] += 1
            for label in range(first):
                if moved[label] >= first:
                    sizes[label] -= needed[label]
                needed[label] = 0
            top -= 1
    return n_useful
