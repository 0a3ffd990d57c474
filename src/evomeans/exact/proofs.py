"""All kinds of proofs, and the one function that checks them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from evomeans.exact import direct
from evomeans.exact.cases import InvalidProofError
from evomeans.exact.plane_proof import PlaneProof, plane_bound
from evomeans.exact.points import WeightedPoints
from evomeans.exact.separation import separation_bound
from evomeans.exact.tree import TreeProof, tree_bound
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
    """Solving the problem again is the proof; see `direct`."""


@dataclass(frozen=True)
class SeparationProof:
    """The clustering itself is the proof; see `separation`.

    Parameters
    ----------
    labels : (n,) array
        Of the points.
    """

    labels: Integers


@dataclass(frozen=True)
class PartsProof:
    """A partition of the points, and a proof for each part: the bounds add up; see `parts`.

    Parameters
    ----------
    parts : (n,) array
        The part of every point.
    proofs : tuple
        One for each part; None for a part whose bound counts as zero.
    """

    parts: Integers
    proofs: tuple[Proof | None, ...]


Proof = DirectProof | SeparationProof | TreeProof | PlaneProof | PartsProof


def check_proof(points: WeightedPoints, k: int, proof: Proof) -> float:
    """Return the lower bound that a proof proves, in the units of the points.

    Only the final inequalities are evaluated, with allowances for rounding; how the proof was found
    plays no role.
    """
    if points.n <= k:
        return 0.0
    if isinstance(proof, TreeProof):
        return tree_bound(points, k, proof)
    if isinstance(proof, DirectProof):
        if not direct.solves(points, k):
            raise InvalidProofError("The proof is one for simpler problems.")
        return direct.optimum(points, k)[0]
    if isinstance(proof, SeparationProof):
        return _separation_bound(points, k, proof.labels)
    if isinstance(proof, PlaneProof):
        return plane_bound(points, k, proof)
    return parts_bound(points, k, proof)


def _separation_bound(points: WeightedPoints, k: int, labels: Integers) -> float:
    """Return the bound of a clustering; one with fewer than k clusters proves nothing."""
    _check_shape(labels, points.n)
    if not 0 <= labels.min() <= labels.max() < points.n:
        raise InvalidProofError("The clustering of the proof has labels that are out of range.")
    if len(np.unique(labels)) != k or labels.max() != k - 1:
        return 0.0
    return separation_bound(points, labels)


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
