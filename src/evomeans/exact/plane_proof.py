"""Proofs in the plane: their cases, the bound that prices prove, groups to merge, and the check.

A case has groups of points that share a cluster, and pairs that do not. A group of weight w and
mean m adds w |m - y|² plus its own scatter to the cost of a cluster with mean y. So a group is a
point again, and only the sum of all scatters is added to every cost. With prices p, the group gains
a(y) = w |m - y|² - p. Let f(y) be the least sum of a(y) over groups that may share a cluster, and v
its least value over all y. A clustering into at most k clusters costs at least

    sum of p + sum of scatters + k min(0, v),

for any prices (docs/background/proofs.md). This is the bound of column generation; `plane_boxes`
bounds v from below.

A step of `cases` that fixes merges groups. The check trusts nothing but the points and the
arithmetic of `plane_boxes` and of this module.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from evomeans.exact.cases import CasesProof, Pair
from evomeans.exact.plane_boxes import Boxes, PricedGroups, least_value, sort_groups
from evomeans.exact.points import UNIT, WeightedPoints, anchors, relative_error, sums_by
from evomeans.exact.proofs import InvalidProofError, Method
from evomeans.typing import FloatArray, Integers, Labels

BOX_TOLERANCE = 1e-9  # what the bound may lose at the boxes, as a share of all prices
LARGEST_PRICE = 1e290  # prices from here on prove nothing: their sums might overflow
GAP_MARGIN = 1e-9  # by this share of the gap, t is higher than it need be
FINEST = 0.05  # share of the gap by which gains may vary in boxes that are not split
MOST_CHOICES = 128  # subsets of groups that stay apart, in one connected component of the pairs


@dataclass(frozen=True)
class PlaneCase:
    """Clusterings into at most k clusters that keep groups together and some pairs apart."""

    points: WeightedPoints
    k: int
    groups: Integers  # of every point
    apart: tuple[Pair, ...] = ()  # points whose groups do not share a cluster

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
    def free(self) -> Labels:
        """The groups that a cluster may take whatever else it takes."""
        return np.setdiff1d(np.arange(self.n), self.choices[2]).astype(np.int32)

    def priced(self, prices: FloatArray) -> PricedGroups:
        """Return what kernels need to know."""
        values = np.ascontiguousarray(self.values)
        return PricedGroups(
            values, self.weights, np.ascontiguousarray(prices), *self.choices, self.free
        )


class Evaluation(NamedTuple):
    """What prices prove of the computed groups."""

    bound: float  # no clustering of the computed groups costs less
    cluster_bound: float  # at most v
    error: float  # what rounding can change of the cost minus the prices of a cluster


def evaluate(case: PlaneCase, prices: FloatArray) -> Evaluation:
    """Return the lower bound that prices prove, in the units of the points.

    Rounding is allowed for, see docs/background/proofs.md. Each box subtracts what its own sums may
    be off by; the ``error`` is for discs on the wrong side and for middles of boxes.
    """
    if not np.abs(prices).max() < LARGEST_PRICE:
        return PROVES_NOTHING
    paid = float(np.maximum(prices, 0.0).sum())
    radius = math.sqrt(float((np.maximum(prices, 0.0) / case.weights).max()))
    least, _ = least_value(case.priced(prices), BOX_TOLERANCE * paid / case.k, -np.inf)
    error = 64 * UNIT * (paid + float(case.weights.sum()) * radius * case.extent)
    least -= error
    total = math.fsum(prices.tolist()) - 4 * UNIT * math.fsum(np.abs(prices).tolist())
    scatter = math.fsum(case.scatters.tolist()) * (1 - relative_error(case.points))
    bound = total + scatter + case.k * min(0.0, least)
    return Evaluation(bound, least, error)


PROVES_NOTHING = Evaluation(-math.inf, -math.inf, math.inf)


def proven_bound(case: PlaneCase, bound: float) -> float:
    """Lower a bound of the computed groups to one of the points.

    The root of the inertia is a norm, so it differs from that of groups that are moved by
    their errors by at most the displacement.
    """
    if not bound > 0:
        return 0.0
    return max(0.0, math.sqrt(bound) * (1 - 4 * UNIT) - case.displacement) ** 2 * (1 - 4 * UNIT)


def groups_together(
    case: PlaneCase, prices: FloatArray, found: Evaluation, cutoff: float
) -> Integers | None:
    """Return labels of groups, equal for those to merge; None if nothing here beats the cutoff.

    Of a clustering cheaper than the cutoff, every cluster has

        F = cost minus prices < t = cutoff - prices and scatters of all - (k - 1) min(0, v).

    Let its mean be in a box where f is at least b. Then b < t; a group whose gain is at most b - t
    in all of the box is in the cluster, and one with a gain of at least t - b is not. Groups share
    a cluster if each such box either needs or excludes all of them (docs/background/proofs.md).
    """
    # The root of the inertia is a norm, see `proven_bound`.
    root = math.sqrt(cutoff * (1 + relative_error(case.points))) + case.displacement
    gap = root**2 * (1 + 1e-15) - found.bound
    if gap < 0:
        return None
    if not math.isfinite(gap):
        return np.arange(case.n)
    slack = gap * (1 + GAP_MARGIN) + 2 * found.error
    limit = min(0.0, found.cluster_bound) + slack
    n = case.n
    labels, is_alone = np.zeros(n, np.int64), np.zeros(n, np.bool_)
    scratch = np.zeros((4, n + 1), np.int64)
    groups, finest = case.priced(prices), FINEST * slack
    boxes = Boxes.around(groups)
    n_boxes = sort_groups(groups, limit, slack, finest, boxes, labels, is_alone, scratch)
    if n_boxes == 0:
        return None
    # Labels of groups that no box decides are their own.
    labels = np.where(is_alone, n + np.arange(n), labels)
    return np.unique(labels, return_inverse=True)[1].ravel()


class PlaneProof(CasesProof):
    """A proof by prices, for clusterings into at most k clusters."""

    method = Method.PLANE

    def whole(self, points: WeightedPoints, k: int) -> PlaneCase:
        """Return the whole problem; compiled code reads two coordinates of every point."""
        if points.values.shape[1] != 2:
            raise InvalidProofError(
                f"The proof is one in the plane, and the samples have {points.values.shape[1]} "
                "features instead of 2."
            )
        return PlaneCase.of_points(points, k)

    def bound(self, case: PlaneCase, multipliers: FloatArray) -> tuple[float, Evaluation]:
        """Return the bound of prices."""
        if multipliers.shape != (case.n,):
            raise InvalidProofError("The prices of a step do not fit its case.")
        found = evaluate(case, multipliers)
        return proven_bound(case, found.bound), found

    def fixed(
        self, case: PlaneCase, multipliers: FloatArray, found: Evaluation
    ) -> PlaneCase | None:
        """Merge groups."""
        labels = groups_together(case, multipliers, found, self.cutoff)
        return None if labels is None else case.regrouped(labels)

    def split(self, case: PlaneCase, pair: Pair) -> tuple[PlaneCase, PlaneCase] | None:
        """Return the cases in which two points are apart and together."""
        if not 0 <= min(pair) <= max(pair) < case.points.n:
            return None
        a, b = case.groups[list(pair)]
        return None if a == b else (case.separated(pair), case.merged(pair))

    @staticmethod
    def end(case: PlaneCase, known: float) -> float:
        """Return the bound of a case that is not split."""
        return math.inf if case.is_empty else known
