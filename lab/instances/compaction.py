"""Certificates made small enough to be kept: the same proof with fewer steps and fewer digits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np

from evomeans.exact.cases import CasesProof, Pair, ProofStep, StepKind
from evomeans.exact.certificate import Certificate
from evomeans.exact.cuts import add_cuts
from evomeans.exact.plane_proof import PlaneProof
from evomeans.exact.points import WeightedPoints
from evomeans.exact.proofs import InvalidProofError
from evomeans.exact.relaxation import Multipliers, Subproblem, TreeProof
from evomeans.typing import FloatArray
from lab.instances import library

LARGEST_PACKED = 1_200_000
"""Bytes of a certificate that is kept; a larger one only leaves its bound."""
BITS = range(8, 32)
"""Bits of rounded multipliers, relative to the largest; the coarsest that still prove it count."""
COARSER = range(1, 5)
"""Bits by which prices may be coarser than the slack of the same step."""
ENOUGH = 0.9e-6
"""The relative gap that a smaller proof must reach; 1e-6 is called optimal."""
FOR_ROUNDING = 0.01e-6
"""Of it, what is left for the rounding that the whole check allows for."""


def compact(certificate: Certificate, X: FloatArray) -> tuple[Certificate, bytes | None]:
    """Make the proof of an optimum smaller; None instead of a file if it stays too large.

    Steps that the proof does not need are left out, and the multipliers of every step are rounded
    as coarsely as they still prove the optimum. Any steps and multipliers prove some bound, and
    the one of the smaller proof is computed anew.
    """
    proof = certificate.proof
    if isinstance(proof, TreeProof | PlaneProof):
        case = proof.whole(WeightedPoints.of_samples(X), certificate.n_clusters)
        goal = proof.cutoff * (1 - ENOUGH + FOR_ROUNDING)
        slimmer = Slimmer(proof, goal)
        smaller = slimmer.slim(parsed(iter(proof.steps)), case, -math.inf)
        if smaller is None:
            return certificate, None
        certificate = _proven(certificate, list(smaller.steps()), X)
    content = library.packed(certificate)
    return certificate, content if len(content) <= LARGEST_PACKED else None


def _proven(certificate: Certificate, steps: list[ProofStep], X: FloatArray) -> Certificate:
    """Return the certificate with other steps and the bound that these prove."""
    assert isinstance(certificate.proof, CasesProof)
    proof = replace(certificate.proof, steps=tuple(steps))
    unproven = replace(
        certificate, proof=proof, lower_bound=0.0, status="bounded", stop_reason="gap_reached"
    )
    lower = min(unproven.verify(X), certificate.upper_bound)
    if certificate.upper_bound - lower > ENOUGH * certificate.upper_bound:
        raise InvalidProofError("The smaller proof does not prove the optimum.")
    return replace(certificate, proof=proof, lower_bound=lower)


@dataclass(frozen=True)
class Branch:
    """The steps that treat a case and all cases that it is split into.

    Parameters
    ----------
    fixing : tuple
        The multipliers of the steps that fix.
    end : Multipliers, array or None
        Of the step that ends the case.
    pair : tuple or None
        On which the case is split instead.
    halves : tuple of Branch
    """

    fixing: tuple[Any, ...] = ()
    end: Any = None
    pair: Pair | None = None
    halves: tuple[Branch, ...] = field(default=())

    def steps(self) -> Iterator[ProofStep]:
        """Yield the steps in the order of a proof."""
        yield from (ProofStep(StepKind.FIX, one) for one in self.fixing)
        if self.pair is None:
            yield ProofStep(StepKind.END, self.end)
            return
        yield ProofStep(StepKind.SPLIT, None, self.pair)
        for half in self.halves:
            yield from half.steps()


def parsed(steps: Iterator[ProofStep]) -> Branch:
    """Return the first case of some steps; multipliers of splits are left out."""
    fixing = []
    for step in steps:
        if step.kind is StepKind.END:
            return Branch(tuple(fixing), step.multipliers)
        if step.kind is StepKind.SPLIT:
            return Branch(tuple(fixing), None, step.pair, (parsed(steps), parsed(steps)))
        fixing.append(step.multipliers)
    raise InvalidProofError("The proof ends before its last case.")


@dataclass(frozen=True)
class Slimmer:
    """Makes the branches of a proof smaller, of which every case must reach the ``goal``."""

    proof: TreeProof | PlaneProof
    goal: float

    def slim(self, branch: Branch, case: Any, known: float) -> Branch | None:
        """Return a smaller branch that reaches the goal; None if the given one does not."""
        if not self.proves(branch, case, known):
            return None
        for one in reversed(branch.fixing):
            without = tuple(other for other in branch.fixing if other is not one)
            if self.proves(fewer := replace(branch, fixing=without), case, known):
                branch = fewer
        fixing: list[Any] = []
        for place, one in enumerate(branch.fixing):
            rest = branch.fixing[place + 1 :]
            for coarse in self._rounded(one, case):
                trial = replace(branch, fixing=(coarse, *rest))
                if self.proves(trial, case, known):
                    one = coarse
                    break
            fixing.append(one)
            case, known = self._fixed(one, case, known)
        branch = replace(branch, fixing=tuple(fixing))
        if branch.pair is None:
            return replace(branch, end=self._coarsest(branch.end, case, known))
        found = []
        for half, own in zip(branch.halves, self._split(case, branch.pair), strict=True):
            smaller = self.slim(half, own, known)
            assert smaller is not None  # the whole branch reaches the goal
            found.append(smaller)
        return replace(branch, halves=tuple(found))

    def proves(self, branch: Branch, case: Any, known: float) -> bool:
        """Whether all cases of a branch reach the goal, with steps that fit them."""
        try:
            return self._proves(branch, case, known)
        except InvalidProofError:  # a step no longer merges the groups that later steps speak of
            return False

    def _proves(self, branch: Branch, case: Any, known: float) -> bool:
        for one in branch.fixing:
            case, known = self._fixed(one, case, known)
        if branch.pair is None:
            return self._reaches(branch.end, case, known)
        halves = self._split(case, branch.pair)
        pairs = zip(branch.halves, halves, strict=True)
        return all(self._proves(half, own, known) for half, own in pairs)

    def _fixed(self, given: Any, case: Any, known: float) -> tuple[Any, float]:
        if case is None:
            return None, known
        bound, found = self.proof.bound(case, given)
        return self.proof.fixed(case, given, found), max(known, bound)

    def _split(self, case: Any, pair: Pair) -> tuple[Any, Any]:
        halves = (None, None) if case is None else self.proof.split(case, pair)
        if halves is None:
            raise InvalidProofError(f"The proof splits on the impossible pair {pair}.")
        return halves

    def _reaches(self, given: Any, case: Any, known: float) -> bool:
        if case is None or self.proof.end(case, known) >= self.goal:
            return True
        return given is not None and self.proof.bound(case, given)[0] >= self.goal

    def _rounded(self, given: Any, case: Any) -> Iterator[Any]:
        """Yield multipliers that are rounded less and less."""
        return iter(()) if case is None else (rounded(given, case, bits) for bits in BITS)

    def _coarsest(self, given: Any, case: Any, known: float) -> Any:
        """Return the multipliers of an end with few digits, None if it needs none."""
        if self._reaches(None, case, known):
            return None
        few, most = BITS[0], BITS[-1]
        if not self._reaches(rounded(given, case, most), case, known):
            return given
        while few < most:
            middle = (few + most) // 2
            if self._reaches(rounded(given, case, middle), case, known):
                most = middle
            else:
                few = middle + 1
        found = [rounded(given, case, most)]
        if not isinstance(given, Multipliers):
            return found[0]
        for bits, coarser in product((most, most + 1), COARSER):
            trial = rounded(given, case, bits, coarser)
            if self._reaches(trial, case, known):
                found.append(trial)
        return min(found, key=size)


def rounded(given: Any, case: Any, bits: int, coarser: int = 0) -> Any:
    """Round multipliers to some bits relative to the largest, prices to fewer bits than slack."""
    if isinstance(given, np.ndarray):
        return _rounded(given, np.abs(given).max(initial=0.0), bits)
    largest = np.abs(given.slack).max(initial=0.0)
    prices = _rounded(given.prices, largest, bits - coarser)
    order = np.lexsort(given.cuts.T[::-1])
    order = order[prices[order] > 0]
    return Multipliers(
        _rounded(_balanced(given, prices, case), largest, bits),
        np.ascontiguousarray(given.cuts[order]),
        prices[order],
    )


def _balanced(given: Multipliers, prices: FloatArray, case: Subproblem) -> FloatArray:
    """Return the slack that takes up what other prices change, where it is positive."""
    changed = np.zeros_like(given.slack)
    add_cuts(changed, np.zeros_like(changed), 1.0 / case.roots, given.cuts, prices - given.prices)
    changed = (changed + changed.T) / 2
    slack = np.where(given.slack > 0.0, np.maximum(given.slack + changed, 0.0), given.slack)
    return np.where(case.apart, given.slack + changed, slack)


def _rounded(values: Any, largest: float, bits: int) -> Any:
    if largest == 0:
        return values
    unit = np.ldexp(1.0, int(np.frexp(largest)[1]) - bits)
    return np.round(values / unit) * unit


def size(given: Multipliers) -> float:
    """Return about how many bits multipliers take in a file."""
    triangle = given.slack[np.triu_indices(len(given.slack))]
    return _entropy(triangle) + _entropy(given.prices) + 6.0 * len(given.prices)


def _entropy(values: FloatArray) -> float:
    _, counts = np.unique(values, return_counts=True)
    return float(-(counts * np.log2(counts / counts.sum())).sum())
