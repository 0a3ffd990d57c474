"""Proofs by cases, and the check that a proof holds.

A proof is a list of steps, in the order in which a reader takes them. A step treats one
subproblem and

* ends it: its bound is that of the multipliers of the step, or of a step before it ("end");
* keeps pairs apart, which the multipliers of the step justify, and continues ("fix");
* or splits it into two cases: two groups in different clusters, or in the same one ("split").

`tree_bound` is the whole check. It trusts nothing but the points and the arithmetic of `bound` and
`fixing`; how the steps were found plays no role.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from evomeans.exact.bound import outward, proven_bound
from evomeans.exact.fixing import pairs_to_fix
from evomeans.exact.multipliers import Multipliers
from evomeans.exact.points import SMALLEST_INERTIA, WeightedPoints
from evomeans.exact.star_cuts import are_valid
from evomeans.exact.subproblem import Subproblem

SMALL = 1000
"""Points whose matrices are built in any case: some 20 megabytes."""
LARGEST_CUTOFF = 1e290
"""Coordinates and weights are small in the units of the points, and so are inertias."""
MOST_BYTES, MOST_DEPTH = 2**30, 64
"""Of the cases that are open at the same time; and how many may be as large as the whole."""


class StepKind(IntEnum):
    """What a step does."""

    END = 0
    FIX = 1
    SPLIT = 2


@dataclass(frozen=True)
class Step:
    """One step of a proof.

    Parameters
    ----------
    kind : StepKind
    multipliers : Multipliers, optional
        Splits need none, nor does the end of a case in which nothing is left to decide.
    pair : (int, int)
        The groups on which a split is made; the case "apart" comes first.
    """

    kind: StepKind
    multipliers: Multipliers | None = None
    pair: tuple[int, int] = (-1, -1)


@dataclass(frozen=True)
class TreeProof:
    """A proof that no clustering into k clusters costs less than a bound.

    Parameters
    ----------
    cutoff : float
        In the units of the points. The steps only speak of clusterings cheaper than this.
    steps : tuple of Step
    """

    cutoff: float
    steps: tuple[Step, ...]

    @property
    def n_nodes(self) -> int:
        """Subproblems in the tree."""
        return 1 + 2 * sum(step.kind is StepKind.SPLIT for step in self.steps)

    @property
    def n_cuts(self) -> int:
        """Cuts with a price in all the steps together."""
        return sum(len(step.multipliers.cuts) for step in self.steps if step.multipliers)


class InvalidProofError(ValueError):
    """A proof that cannot be followed: damaged, or of other samples."""


def tree_bound(points: WeightedPoints, k: int, proof: TreeProof) -> float:
    """Follow the steps of a proof and return the lower bound that they prove.

    Returns
    -------
    float
        In the units of the points, lowered by all that rounding may have added.
    """
    if points.n <= k:
        return 0.0  # exactly k clusters, which the steps speak of, need not be optimal
    check_cutoff(proof.cutoff)
    _check_size(points.n, proof)
    if proof.cutoff < SMALLEST_INERTIA:
        return 0.0  # comparisons with the cutoff might be those of underflow
    lower = follow(Subproblem.of_points(points, k, proof.cutoff), proof.steps)
    return outward(points, lower)


def check_cutoff(cutoff: float) -> None:
    """Refuse a cutoff whose multiples would overflow."""
    if not 0 <= cutoff <= LARGEST_CUTOFF:
        raise InvalidProofError(f"The proof speaks of the impossible inertia {cutoff!r}.")


def _check_size(n: int, proof: TreeProof) -> None:
    """Refuse to build matrices for many points if the proof has none of that size."""
    sizes = [len(step.multipliers.slack) for step in proof.steps if step.multipliers is not None]
    if n > max(sizes, default=0) and n > SMALL:
        raise InvalidProofError(f"The proof has no multipliers for {n} distinct samples.")


def follow(root: Subproblem, steps: Sequence[Step]) -> float:
    """Return the least bound of all cases, or the cutoff if that is less."""
    open_cases = [(root, -math.inf)]
    lower = root.cutoff
    for step in steps:
        if not open_cases:
            raise InvalidProofError("The proof has steps after its last case.")
        problem, known = open_cases.pop()
        bound = -math.inf
        if step.multipliers is not None:
            _check_multipliers(step.multipliers, problem)
            bound = proven_bound(problem, step.multipliers)
            known = max(known, bound)
        if step.kind is StepKind.FIX:
            if step.multipliers is None:
                raise InvalidProofError("A step keeps pairs apart without multipliers.")
            pairs = pairs_to_fix(problem, step.multipliers, bound)
            open_cases.append((problem.with_apart(pairs), known))
        elif step.kind is StepKind.SPLIT:
            a, b = step.pair
            if not 0 <= min(a, b) < max(a, b) < problem.n:
                raise InvalidProofError(f"The proof splits on the impossible pair {step.pair}.")
            open_cases.append((problem.merged(min(a, b), max(a, b)), known))
            open_cases.append((problem.separated(a, b), known))
            check_memory(sum(case.n_bytes for case, _ in open_cases), root.n_bytes)
        else:
            lower = min(lower, end_of_case(problem, known))
    if open_cases:
        raise InvalidProofError("The proof ends before its last case.")
    return lower


def _check_multipliers(multipliers: Multipliers, problem: Subproblem) -> None:
    """Refuse what compiled code would read out of bounds."""
    fits = (
        multipliers.slack.shape == problem.K.shape
        and are_valid(multipliers.cuts, problem.n)
        and multipliers.prices.shape == (len(multipliers.cuts),)
    )
    if not fits:
        raise InvalidProofError("The multipliers of a step do not fit its case.")


def check_memory(n_bytes: int, of_root: int) -> None:
    """Refuse a proof that leaves more cases open than any search does."""
    if n_bytes > max(MOST_BYTES, MOST_DEPTH * of_root):
        raise InvalidProofError("The proof splits into more cases than memory should hold.")


def end_of_case(problem: Subproblem, known: float) -> float:
    """Return the bound of a case that is not split further."""
    if problem.n < problem.k or problem.is_empty:
        return math.inf  # no clustering into k clusters is left
    settled = problem.settled_inertia
    return known if settled is None else max(known, settled)
