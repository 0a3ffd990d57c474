"""Proofs in the plane, and the check that a proof holds.

A proof is a list of steps, in the order in which a reader takes them. A step treats one case and

* ends it: its bound is that of the prices of the step, or of a step before it ("end");
* merges groups, which the prices of the step justify, and continues ("fix");
* or splits it into two cases: two points in different clusters, or in the same one ("split").

`plane_bound` is the whole check. It trusts nothing but the points and the arithmetic of
`plane_pricing`, `plane_boxes` and `plane_fixing`; how the steps were found plays no role.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from evomeans.exact.bound import outward
from evomeans.exact.plane_case import Pair, PlaneCase
from evomeans.exact.plane_fixing import groups_together
from evomeans.exact.plane_pricing import NOTHING, evaluate, proven_bound
from evomeans.exact.points import SMALLEST_INERTIA, Floats, WeightedPoints
from evomeans.exact.tree_proof import InvalidProofError, StepKind, check_cutoff, check_memory


@dataclass(frozen=True)
class PlaneStep:
    """One step of a proof.

    Parameters
    ----------
    kind : StepKind
    prices : (m,) array, optional
        Of the groups of the case, in the units of the points, without their own scatters.
    pair : (int, int)
        The points on which a split is made; the case "apart" comes first.
    """

    kind: StepKind
    prices: Floats | None = None
    pair: Pair = (-1, -1)


@dataclass(frozen=True)
class PlaneProof:
    """A proof that no clustering into at most k clusters costs less than a bound.

    Parameters
    ----------
    cutoff : float
        In the units of the points. Steps that merge only speak of clusterings cheaper than this.
    steps : tuple of PlaneStep
    """

    cutoff: float
    steps: tuple[PlaneStep, ...]

    @property
    def n_nodes(self) -> int:
        """Cases in the tree."""
        return 1 + 2 * sum(step.kind is StepKind.SPLIT for step in self.steps)


def plane_bound(points: WeightedPoints, k: int, proof: PlaneProof) -> float:
    """Follow the steps of a proof and return the lower bound that they prove.

    Returns
    -------
    float
        In the units of the points, lowered by all that rounding may have added.
    """
    # Compiled code reads two coordinates of every point.
    if points.values.shape[1] != 2:
        raise InvalidProofError(
            f"The proof is one in the plane, and the samples have {points.values.shape[1]} "
            "features instead of 2."
        )
    check_cutoff(proof.cutoff)
    if proof.cutoff < SMALLEST_INERTIA:
        return 0.0  # comparisons with the cutoff might be those of underflow
    open_cases: list[tuple[PlaneCase | None, float]] = [(PlaneCase.of_points(points, k), 0.0)]
    # Without a step that speaks of the cutoff, the bound does not depend on it.
    lower = math.inf
    for step in proof.steps:
        if not open_cases:
            raise InvalidProofError("The proof has steps after its last case.")
        case, known = open_cases.pop()
        found = NOTHING
        if step.prices is not None and case is not None:
            if step.prices.shape != (case.n,):
                raise InvalidProofError("The prices of a step do not fit its case.")
            found = evaluate(case, step.prices)
            known = max(known, proven_bound(case, found.bound))
        if step.kind is StepKind.FIX:
            if step.prices is None:
                raise InvalidProofError("A step merges groups without prices.")
            if case is not None:
                lower = min(lower, proof.cutoff)
                labels = groups_together(case, step.prices, found, proof.cutoff)
                case = None if labels is None else case.regrouped(labels)
            open_cases.append((case, known))
        elif step.kind is StepKind.SPLIT:
            if not (min(step.pair) >= 0 and max(step.pair) < points.n):
                raise InvalidProofError(f"The proof splits on the impossible pair {step.pair}.")
            together = apart = case
            if case is not None:
                a, b = (int(case.groups[i]) for i in step.pair)
                if a == b:
                    raise InvalidProofError(f"The proof splits on the impossible pair {step.pair}.")
                together, apart = case.merged(step.pair), case.separated(step.pair)
            open_cases += [(together, known), (apart, known)]
            check_memory(sum(0 if one is None else one.n_bytes for one, _ in open_cases), 0)
        elif case is not None and not case.is_empty:
            lower = min(lower, known)
    if open_cases:
        raise InvalidProofError("The proof ends before its last case.")
    # Without any case that is left, the clusterings cheaper than the cutoff are all excluded.
    return outward(points, min(lower, proof.cutoff))
