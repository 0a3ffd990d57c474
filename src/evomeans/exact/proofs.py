"""All kinds of proofs, the one function that checks them, and problems that need no search."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from evomeans.exact.cases import CasesProof, InvalidProofError
from evomeans.exact.line import cluster_line
from evomeans.exact.plane_proof import PlaneProof
from evomeans.exact.points import UNIT, WeightedPoints, smallest_cost
from evomeans.exact.separation import separation_bound
from evomeans.exact.tree import TreeProof
from evomeans.typing import Integers


class Method(StrEnum):
    """How a bound is proven."""

    DIRECT = "direct"
    SEPARATION = "separation"
    RELAXATION = "relaxation"
    PLANE = "plane"
    PARTS = "parts"


@dataclass(frozen=True)
class DirectProof:
    """Solving the problem again is the proof; see `direct_optimum`."""


@dataclass(frozen=True)
class SeparationProof:
    """The clustering of the points itself is the proof; see `separation`."""

    labels: Integers


@dataclass(frozen=True)
class PartsProof:
    """The part of every point, and a proof for each part: the bounds add up; see `parts`.

    The bound of a part without a proof counts as zero.
    """

    parts: Integers
    proofs: tuple[Proof | None, ...]


Proof = DirectProof | SeparationProof | TreeProof | PlaneProof | PartsProof


@dataclass(frozen=True)
class Finding:
    """What an attempt has proven, in the units of the points."""

    method: Method
    lower: float
    """No clustering into k clusters costs less; if there is a confidence, only as likely as that.
    """
    labels: Integers
    """The best clustering known, perhaps better than the given one."""
    proof: Proof
    reason: str = ""
    """Why this method was used."""
    n_nodes: int = 0
    n_cuts: int = 0
    confidence: float | None = None
    """Of a statement from a sample of parts."""


def check_proof(points: WeightedPoints, k: int, proof: Proof) -> float:
    """Return the lower bound that a proof proves, in the units of the points.

    Only the final inequalities are evaluated, with allowances for rounding; how the proof was found
    plays no role.
    """
    if points.n <= k:
        return 0.0
    if isinstance(proof, CasesProof):
        return proof.lower_bound(points, k)
    if isinstance(proof, DirectProof):
        if not is_direct(points, k):
            raise InvalidProofError("The proof is one for simpler problems.")
        return direct_optimum(points, k)[0]
    if isinstance(proof, PartsProof):
        return parts_bound(points, k, proof)
    labels = proof.labels
    _check_shape(labels, points.n)
    if not 0 <= labels.min() <= labels.max() < points.n:
        raise InvalidProofError("The clustering of the proof has labels that are out of range.")
    # One with fewer than k clusters proves nothing.
    is_whole = len(np.unique(labels)) == k == labels.max() + 1
    return separation_bound(points, labels) if is_whole else 0.0


def parts_bound(points: WeightedPoints, k: int, proof: PartsProof) -> float:
    """Add up the bounds of the parts: own means are at least as good for every part."""
    _check_shape(proof.parts, points.n)
    if len(proof.proofs) > points.n:
        raise InvalidProofError(
            f"The proof has {len(proof.proofs)} parts of {points.n} distinct samples."
        )
    bounds = part_bounds(points, k, proof.parts, proof.proofs)
    return max(0.0, math.fsum(bounds) * (1 - 1e-15))


def part_bounds(
    points: WeightedPoints, k: int, parts: Integers, proofs: Sequence[Proof | None]
) -> list[float]:
    """Return the bounds of all parts, zero for those without a proof."""
    if len(parts) and not 0 <= parts.min() <= parts.max() < len(proofs):
        raise InvalidProofError("A point belongs to a part without a proof.")
    return [
        0.0
        if proof is None
        else check_proof(points.restricted(np.flatnonzero(parts == number)), k, proof)
        for number, proof in enumerate(proofs)
    ]


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
