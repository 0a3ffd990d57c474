"""A case of a proof in the plane: groups of points that share a cluster, and pairs that do not.

A group of weight w and mean m adds w |m - y|² plus its own scatter to the cost of a cluster with
mean y. So a group is a point again, and only the sum of all scatters is added to every cost.

The kernels go downhill from places in the plane: which groups join a cluster there, and where its
mean goes. They only find values of f, see `plane_prices`; `plane_boxes` bounds f from below.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.bundle import bundle
from evomeans.compiled.jit import jit
from evomeans.exact.cases import Pair
from evomeans.exact.points import UNIT, WeightedPoints, anchors, sums_by
from evomeans.typing import FloatArray, Integers

MOST_CHOICES = 128
"""Subsets of groups that stay apart, in one connected component of the pairs."""


@dataclass(frozen=True)
class PlaneCase:
    """Clusterings into at most k clusters that keep groups together and some pairs apart.

    ``groups`` has the group of every point, ``apart`` the points whose groups do not share a
    cluster.
    """

    points: WeightedPoints
    k: int
    groups: Integers
    apart: tuple[Pair, ...] = ()

    @classmethod
    def of_points(cls, points: WeightedPoints, k: int) -> PlaneCase:
        """Return the whole problem, in which every point is a group."""
        return cls(points, k, np.arange(points.n))

    @cached_property
    def n(self) -> int:
        """The number of groups."""
        return int(self.groups.max()) + 1

    @property
    def n_bytes(self) -> int:
        """Memory of the groups and pairs."""
        return self.groups.nbytes + 16 * len(self.apart)

    @cached_property
    def values(self) -> FloatArray:
        """Means of the groups; those of single points are exact."""
        return self.points.means(self.groups)

    @cached_property
    def weights(self) -> FloatArray:
        """Weights of the groups."""
        return sums_by(self.groups, self.points.weights)

    @cached_property
    def scatters(self) -> FloatArray:
        """Inertia of every group about its mean, see `WeightedPoints.inertia`."""
        offsets = self.points.offsets(self.groups)
        return sums_by(self.groups, self.points.weights * np.square(offsets).sum(axis=1))

    @property
    def extent(self) -> float:
        """The largest coordinate of any point, at most 1."""
        return float(np.abs(self.points.values).max())

    @cached_property
    def displacement(self) -> float:
        """Return at least the root of sum of w |e|², where e is the error of a group's mean.

        The mean is a point of the group plus an average offset. The addition is off by u times the
        extent, and the average of m offsets of length r by (2 m + 8) u r, in both coordinates.
        """
        sizes = np.bincount(self.groups)
        anchor = anchors(self.points.values, self.points.weights, self.groups)
        offsets = np.abs(self.points.values - anchor[self.groups]).max(axis=1)
        longest = np.zeros(self.n)
        np.maximum.at(longest, self.groups, offsets)
        error = np.where(sizes > 1, 2 * UNIT * (self.extent + (2 * sizes + 8) * longest), 0.0)
        return 1.01 * math.sqrt(float((self.weights * np.square(error)).sum()))

    @property
    def is_empty(self) -> bool:
        """Whether a pair must be both together and apart."""
        return any(self.groups[i] == self.groups[j] for i, j in self.apart)

    def merged(self, pair: Pair) -> PlaneCase:
        """Return the case in which two points share a cluster."""
        a, b = sorted(int(self.groups[i]) for i in pair)
        groups = np.where(self.groups == b, a, self.groups)
        return PlaneCase(self.points, self.k, groups - (groups > b), self.apart)

    def separated(self, pair: Pair) -> PlaneCase:
        """Return the case in which two points are in different clusters."""
        return PlaneCase(self.points, self.k, self.groups, (*self.apart, pair))

    def regrouped(self, labels: Integers) -> PlaneCase:
        """Return the case in which groups with the same label share a cluster."""
        groups = np.unique(labels[self.groups], return_inverse=True)[1].ravel()
        return PlaneCase(self.points, self.k, groups, self.apart)

    @cached_property
    def pairs(self) -> frozenset[Pair]:
        """The groups that stay apart."""
        found = {tuple(sorted((int(self.groups[i]), int(self.groups[j])))) for i, j in self.apart}
        return frozenset((a, b) for a, b in found if a != b)

    @cached_property
    def choices(self) -> tuple[Integers, Integers, Integers]:
        """What a cluster may take of the groups in `pairs`: the last arrays of `PricedGroups`.

        If there were too many choices, some pairs are ignored: that only lowers a bound.
        """
        parts: list[tuple[set[int], list[frozenset[int]]]] = []
        for a, b in sorted(self.pairs):
            touched = [part for part in parts if part[0] & {a, b}]
            inside = {a, b}.union(*(part[0] for part in touched))
            allowed = [frozenset[int]()]
            for _, choices in touched:
                allowed = [one | other for one in allowed for other in choices]
            for new in sorted({a, b} - set().union(*(part[0] for part in touched))):
                allowed += [one | {new} for one in allowed]
            allowed = [one for one in allowed if not {a, b} <= one]
            if len(allowed) <= MOST_CHOICES:
                parts = [part for part in parts if part not in touched] + [(inside, allowed)]
        counts = [len(choices) for _, choices in parts]
        every = [sorted(one) for _, choices in parts for one in choices]
        firsts = np.cumsum([0, *counts]).astype(np.int64)
        starts = np.cumsum([0, *map(len, every)]).astype(np.int64)
        return firsts, starts, np.array([g for one in every for g in one], np.int64)

    @cached_property
    def free(self) -> NDArray[np.int32]:
        """The groups that a cluster may take whatever else it takes."""
        return np.setdiff1d(np.arange(self.n), self.choices[2]).astype(np.int32)


STEPS = 60
"""Of a way downhill, at most."""


@bundle
class PricedGroups(NamedTuple):
    """What kernels need to know of a case: means x (n, 2), weights, prices (n,), and choices.

    A cluster makes one choice for every component of the pairs that stay apart: ``parts[a]`` to
    ``parts[a + 1]`` are those of component a. Groups ``members[starts[q]:starts[q + 1]]`` belong to
    choice q; one choice is empty.
    """

    x: FloatArray
    w: FloatArray
    prices: FloatArray
    parts: Integers
    starts: Integers
    members: Integers

    @classmethod
    def of_case(cls, case: PlaneCase, prices: FloatArray) -> PricedGroups:
        """Put the arrays together."""
        values = np.ascontiguousarray(case.values)
        return cls(values, case.weights, np.ascontiguousarray(prices), *case.choices)


def descend_all(
    case: PlaneCase, prices: FloatArray, starts: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Follow f downhill from every start; return the values and where they are taken."""
    ends = np.array(starts, np.float64)
    values = np.empty(len(ends))
    # Groups without a price never join, and would only take time.
    free = case.free[prices[case.free] > 0]
    descend(PricedGroups.of_case(case, prices), free, ends, values)
    return values, ends


def clusters_at(case: PlaneCase, prices: FloatArray, ends: FloatArray) -> NDArray[np.bool_]:
    """Return, for every place y, the groups whose sum is f(y)."""
    found = np.zeros((len(ends), case.n), np.bool_)
    join(PricedGroups.of_case(case, prices), case.free, ends, found)
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
def descend(
    groups: PricedGroups, free: NDArray[np.int32], ends: FloatArray, values: FloatArray
) -> None:
    """Follow f downhill from many starts.

    Shapes: free (m,); ends (s, 2), starts that become ends; values (s,).
    """
    for start in range(ends.shape[0]):
        y0, y1 = ends[start, 0], ends[start, 1]
        values[start], ends[start, 0], ends[start, 1] = descend_from(
            groups, free, free.shape[0], y0, y1
        )


@jit
def join(
    groups: PricedGroups, free: NDArray[np.int32], ends: FloatArray, found: NDArray[np.bool_]
) -> None:
    """Mark the groups whose sum is f(y). Shapes: free (m,); ends (s, 2); found (s, n)."""
    for end in range(ends.shape[0]):
        y0, y1 = ends[end, 0], ends[end, 1]
        for place in range(free.shape[0]):
            found[end, free[place]] = gain(groups, free[place], y0, y1) < 0.0
        for part in range(groups.parts.shape[0] - 1):
            _, q = best_choice(groups, part, y0, y1)
            for place in range(groups.starts[q], groups.starts[q + 1]):
                found[end, groups.members[place]] = True
