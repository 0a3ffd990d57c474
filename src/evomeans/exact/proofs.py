"""What a proof is, the kinds without cases, and problems that need no search."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

import numpy as np

from evomeans.exact.line import cluster_line
from evomeans.exact.points import UNIT, WeightedPoints, smallest_cost
from evomeans.exact.separation import separation_bound
from evomeans.typing import Integers


class Method(StrEnum):
    """How a bound is proven."""

    DIRECT = "direct"
    SEPARATION = "separation"
    RELAXATION = "relaxation"
    PLANE = "plane"
    PARTS = "parts"


class InvalidProofError(ValueError):
    """A proof that cannot be followed: damaged, or of other samples."""


class Proof(ABC):
    """What proves a lower bound for the inertia of all clusterings."""

    method: ClassVar[Method]

    def lower_bound(self, points: WeightedPoints, k: int) -> float:
        """Return the bound in the units of the points, with rounding allowed for.

        Only the final inequalities are evaluated; how the proof was found plays no role.
        """
        return 0.0 if points.n <= k else self._bound(points, k)

    @abstractmethod
    def _bound(self, points: WeightedPoints, k: int) -> float:
        """Return the bound for more points than clusters."""


@dataclass(frozen=True)
class DirectProof(Proof):
    """Solving the problem again is the proof; see `direct_optimum`."""

    method = Method.DIRECT

    def _bound(self, points: WeightedPoints, k: int) -> float:
        if not is_direct(points, k):
            raise InvalidProofError("The proof is one for simpler problems.")
        return direct_optimum(points, k)[0]


@dataclass(frozen=True)
class SeparationProof(Proof):
    """The clustering of the points itself is the proof; see `separation`."""

    method = Method.SEPARATION
    labels: Integers

    def _bound(self, points: WeightedPoints, k: int) -> float:
        labels = self.labels
        _check_shape(labels, points.n)
        if not 0 <= labels.min() <= labels.max() < points.n:
            raise InvalidProofError("The clustering of the proof has labels that are out of range.")
        # One with fewer than k clusters proves nothing.
        is_whole = len(np.unique(labels)) == k == labels.max() + 1
        return separation_bound(points, labels) if is_whole else 0.0


@dataclass(frozen=True)
class PartsProof(Proof):
    """The part of every point, and a proof for each part: the bounds add up; see `parts`.

    Own means are at least as good for every part. The bound of a part without a proof counts as
    zero.
    """

    method = Method.PARTS
    parts: Integers
    proofs: tuple[Proof | None, ...]

    def _bound(self, points: WeightedPoints, k: int) -> float:
        parts, proofs = self.parts, self.proofs
        _check_shape(parts, points.n)
        if len(proofs) > points.n:
            raise InvalidProofError(
                f"The proof has {len(proofs)} parts of {points.n} distinct samples."
            )
        if not 0 <= parts.min() <= parts.max() < len(proofs):
            raise InvalidProofError("A point belongs to a part without a proof.")
        bounds = [
            proof.lower_bound(points.restricted(np.flatnonzero(parts == number)), k)
            for number, proof in enumerate(proofs)
            if proof is not None
        ]
        return max(0.0, math.fsum(bounds) * (1 - 1e-15))


@dataclass(frozen=True)
class Finding:
    """What an attempt has proven, in the units of the points."""

    lower: float
    """No clustering into k clusters costs less."""
    labels: Integers
    """The best clustering known, perhaps better than the given one."""
    proof: Proof
    reason: str = ""
    """Why this method was used."""
    n_nodes: int = 0
    n_cuts: int = 0


def _check_shape(values: np.ndarray, n: int) -> None:
    if values.shape != (n,):
        raise InvalidProofError(
            f"The proof is one for {values.size} distinct samples, not for {n}."
        )


# ---- problems that need no search: one cluster, one column, at most k + 1 points -----------------

MOST_COMPARED = 4000
"""Points for which all pairs are compared, where all clusters but one have a single point."""


def is_direct(points: WeightedPoints, k: int) -> bool:
    """Whether `direct_optimum` has an answer."""
    n = points.n
    pair_left = k == n - 1 and n <= MOST_COMPARED
    return k == 1 or n <= k or pair_left or points.values.shape[1] == 1


def direct_optimum(points: WeightedPoints, k: int) -> tuple[float, Integers]:
    """Return a lower bound, below the optimum by no more than rounding, and optimal labels.

    Both are in terms of the points. What is subtracted: the share by which `WeightedPoints.inertia`
    or the cost of a pair may be too high, what underflow may hide, and for a column what
    `line_program` may lose.
    """
    if not is_direct(points, k):
        raise ValueError(f"{points.n} points and {k} clusters need a search.")
    n, d = points.values.shape
    if n <= k:
        return 0.0, np.arange(n)
    if k == 1:
        labels = np.zeros(n, np.int64)
        return _lowered(points, points.inertia(labels), 0.0), labels
    if d == 1:
        found = cluster_line(points.values[:, 0], k, points.weights)
        doubt = float(np.ldexp(found.doubt, found.unit_exponent))
        return _lowered(points, points.inertia(found.segments), doubt), found.segments
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
