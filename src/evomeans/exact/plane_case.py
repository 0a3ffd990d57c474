"""A case of a proof in the plane: groups of points that share a cluster, and pairs that do not.

A group of weight w and mean m adds w |m - y|² plus its own scatter to the cost of a cluster with
mean y. So a group is a point again, and only the sum of all scatters is added to every cost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evomeans.exact.points import UNIT, Floats, Indices, WeightedPoints, sums_by

MOST_CHOICES = 128
"""Subsets of groups that stay apart, in one connected component of the pairs."""

Ints = NDArray[np.int64]
Pair = tuple[int, int]


class Choices(NamedTuple):
    """What a cluster may take of the groups that stay apart.

    Parameters
    ----------
    parts : (c + 1,) array
        Choices ``parts[a]`` to ``parts[a + 1]`` belong to component a of the pairs. A cluster makes
        one choice of every component.
    starts : (s + 1,) array
        Groups ``members[starts[q]:starts[q + 1]]`` belong to choice q; one choice is empty.
    members : array
        Groups.
    """

    parts: Ints
    starts: Ints
    members: Ints


@dataclass(frozen=True)
class PlaneCase:
    """Clusterings into at most k clusters that keep groups together and some pairs apart.

    Parameters
    ----------
    points : WeightedPoints
    k : int
    groups : (n,) array
        The group of every point.
    apart : tuple of pairs
        Points whose groups are not in the same cluster.
    """

    points: WeightedPoints
    k: int
    groups: Indices
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
    def values(self) -> Floats:
        """Means of the groups; those of single points are exact."""
        return self.points.means(self.groups)

    @cached_property
    def weights(self) -> Floats:
        """Weights of the groups."""
        return sums_by(self.groups, self.points.weights)

    @cached_property
    def scatters(self) -> Floats:
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
        anchors = self.points.anchors(self.groups)
        offsets = np.abs(self.points.values - anchors[self.groups]).max(axis=1)
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

    def regrouped(self, labels: Indices) -> PlaneCase:
        """Return the case in which groups with the same label share a cluster."""
        groups = np.unique(labels[self.groups], return_inverse=True)[1].ravel()
        return PlaneCase(self.points, self.k, groups, self.apart)

    @cached_property
    def pairs(self) -> frozenset[Pair]:
        """The groups that stay apart."""
        found = {tuple(sorted((int(self.groups[i]), int(self.groups[j])))) for i, j in self.apart}
        return frozenset((a, b) for a, b in found if a != b)

    @cached_property
    def choices(self) -> Choices:
        """What a cluster may take of the groups in `pairs`.

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
        return Choices(
            np.cumsum([0, *counts]).astype(np.int64),
            np.cumsum([0, *map(len, every)]).astype(np.int64),
            np.array([g for one in every for g in one], np.int64),
        )

    @cached_property
    def free(self) -> NDArray[np.int32]:
        """The groups that a cluster may take whatever else it takes."""
        return np.setdiff1d(np.arange(self.n), self.choices.members).astype(np.int32)
