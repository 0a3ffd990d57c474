"""Downhill from a place in the plane: which groups join a cluster there, and where its mean goes.

The functions here only find values of f, see `plane_pricing`. Its lower bound comes from
`plane_boxes`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.jit import jit
from evomeans.compiled.ready import Call
from evomeans.exact.plane_case import Choices, Ints, PlaneCase
from evomeans.exact.points import Floats

STEPS = 60


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


def kernel_calls() -> list[Call]:
    """Return what a proof calls of these, see :func:`~evomeans.compiled.ready.ready`."""
    grid, one, index = np.zeros((1, 2)), np.zeros(1), np.zeros(1, np.int64)
    case = grid, one, one, *Choices(index, index, index)
    free = np.zeros(1, np.int32)
    return [
        Call(descend, (*case, free, grid, one, 1), 0.7),
        Call(join, (*case, free, grid, np.zeros((1, 1), np.bool_)), 0.4),
    ]
