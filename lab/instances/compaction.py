"""Certificates made small enough to be kept: the same proof with fewer steps and fewer digits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from evomeans.exact.cases import StepKind
from evomeans.exact.certificate import Certificate
from evomeans.exact.cuts import add_cuts
from evomeans.exact.plane_proof import PlaneProof
from evomeans.exact.points import WeightedPoints
from evomeans.exact.proofs import InvalidProofError
from evomeans.exact.relaxation import Multipliers
from evomeans.exact.tree import TreeProof
from evomeans.typing import FloatArray
from lab.instances import library

LARGEST_PACKED = 1_200_000
"""Bytes of a certificate that is kept; a larger one only leaves its bound."""
BITS = (12, 14, 16, 18, 20, 22, 24, 28, 53)
"""Bits of rounded multipliers, relative to the largest; the coarsest that still prove it count."""
ENOUGH = 0.9e-6
"""The relative gap that a smaller proof must reach; 1e-6 is called optimal."""


def compact(certificate: Certificate, X: FloatArray) -> tuple[Certificate, bytes | None]:
    """Make the proof of an optimum smaller; None instead of a file if it stays too large.

    Steps that the proof does not need are left out, and multipliers are rounded as coarsely as
    they still prove the optimum. Any steps and multipliers prove some bound, and the one of the
    smaller proof is computed anew.
    """
    if not isinstance(certificate.proof, TreeProof | PlaneProof):
        return _kept(certificate)
    shorter, roots = _shortened(certificate, X), np.sqrt(WeightedPoints.of_samples(X).weights)
    for bits in BITS:
        steps = [_rounded_step(step, bits, roots) for step in shorter.proof.steps]  # type: ignore[union-attr]
        found = _proven(certificate, steps, X)
        if found is not None:
            return _kept(found)
    return certificate, None


def _kept(certificate: Certificate) -> tuple[Certificate, bytes | None]:
    content = library.packed(certificate)
    return certificate, content if len(content) <= LARGEST_PACKED else None


def _proven(certificate: Certificate, steps: list[Any], X: FloatArray) -> Certificate | None:
    """Return the certificate with other steps, None if they do not prove the optimum."""
    proof = replace(certificate.proof, steps=tuple(steps))  # type: ignore[type-var]
    unproven = replace(
        certificate, proof=proof, lower_bound=0.0, status="bounded", stop_reason="gap_reached"
    )
    try:
        lower = min(unproven.verify(X), certificate.upper_bound)
    except InvalidProofError:  # a step no longer decides what later steps rely on
        return None
    if certificate.upper_bound - lower > ENOUGH * certificate.upper_bound:
        return None
    return replace(certificate, proof=proof, lower_bound=lower)


def _shortened(certificate: Certificate, X: FloatArray) -> Certificate:
    """Leave out the multipliers of splits, and all steps that only fix what is not needed."""
    steps: list[Any] = list(certificate.proof.steps)  # type: ignore[union-attr]
    bare = [replace(one, multipliers=None) if one.kind is StepKind.SPLIT else one for one in steps]
    found = _proven(certificate, bare, X)
    certificate, steps = (certificate, steps) if found is None else (found, bare)
    for step in [one for one in steps if one.kind is StepKind.FIX]:
        fewer = [one for one in steps if one is not step]
        found = _proven(certificate, fewer, X)
        if found is not None:
            certificate, steps = found, fewer
    return certificate


def _rounded_step(step: Any, bits: int, roots: FloatArray) -> Any:
    given = step.multipliers
    if given is None:
        return step
    if isinstance(given, np.ndarray):
        return replace(step, multipliers=_rounded(given, np.abs(given).max(initial=0.0), bits))
    largest = np.abs(given.slack).max(initial=0.0)
    prices = _rounded(given.prices, largest, bits)
    order = np.lexsort(given.cuts.T[::-1])
    order = order[prices[order] > 0]
    multipliers = replace(
        given,
        slack=_rounded(_balanced(given, prices, roots), largest, bits),
        prices=prices[order],
        cuts=np.ascontiguousarray(given.cuts[order]),
    )
    return replace(step, multipliers=multipliers)


def _balanced(given: Multipliers, prices: FloatArray, roots: FloatArray) -> FloatArray:
    """Return the slack that takes up what other prices change, where it is positive."""
    if len(given.slack) != len(roots):  # groups of samples, whose weights only the tree knows
        return given.slack
    changed = np.zeros_like(given.slack)
    add_cuts(changed, np.zeros_like(changed), 1.0 / roots, given.cuts, prices - given.prices)
    slack = np.maximum(given.slack + (changed + changed.T) / 2, 0.0)
    return np.where(given.slack > 0.0, slack, given.slack)


def _rounded(values: Any, largest: float, bits: int) -> Any:
    if largest == 0:
        return values
    unit = np.ldexp(1.0, int(np.frexp(largest)[1]) - bits)
    return np.round(values / unit) * unit
