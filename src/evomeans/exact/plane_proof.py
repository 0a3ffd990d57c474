"""Proofs in the plane by branch and price: what their steps mean, their check, and the search.

The steps of a proof are those of `cases`; a step that fixes merges groups. Its check trusts nothing
but the points and the arithmetic of `plane_prices`, `plane_boxes` and `groups_together`.
"""

from __future__ import annotations

import math

import numpy as np

from evomeans.exact.cases import CasesProof, CaseTree, Node, Pair, ProofStep, StepKind, untold
from evomeans.exact.plane_boxes import Boxes, sort_groups
from evomeans.exact.plane_case import PlaneCase, PricedGroups
from evomeans.exact.plane_prices import (
    Evaluation,
    PriceSearch,
    ProgramSolution,
    evaluate,
    first_start,
    proven_bound,
    together,
)
from evomeans.exact.points import WeightedPoints, kmeans, relative_error
from evomeans.exact.proofs import InvalidProofError, Method
from evomeans.typing import FloatArray, Integers

GAP_MARGIN = 1e-9
"""By this share of the gap, t is higher than it need be."""
FINEST = 0.05
"""Boxes are split until gains vary by less than this share of the gap."""


def groups_together(
    case: PlaneCase, prices: FloatArray, found: Evaluation, cutoff: float
) -> Integers | None:
    """Return labels of groups, equal for those to merge; None if nothing here beats the cutoff.

    Of a clustering cheaper than the cutoff, every cluster has

        F = cost minus prices < t = cutoff - prices and scatters of all - (k - 1) min(0, v).

    Let its mean be in a box where f is at least b. Then b < t; a group whose gain is at most b - t
    in all of the box is in the cluster, and one with a gain of at least t - b is not. Groups share
    a cluster if each box with b < t either needs or excludes all of them. See
    docs/background/proofs.md.
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
    n_boxes = sort_groups(
        PricedGroups.of_case(case, prices),
        limit,
        slack,
        FINEST * slack,
        Boxes.around(case, prices),
        labels,
        is_alone,
        scratch,
    )
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


# ---- the search ----------------------------------------------------------------------------------


class PlaneTree(CaseTree):
    """A search tree over the clusterings of points in the plane, which needs a known one."""

    proof_type = PlaneProof
    share_of_gap = 0.5
    n_columns = 0
    labels: Integers

    def _root(self, former: Node | None) -> tuple[PlaneCase, ProgramSolution]:
        case = PlaneCase.of_points(self.points, self.k)
        return case, first_start(case, self.labels)

    def _worked(
        self, case: PlaneCase, start: ProgramSolution, inherited: float, is_root: bool = False
    ) -> Node:
        if case.is_empty:
            return Node(case, start, math.inf, [ProofStep(StepKind.END)])
        search = PriceSearch(case, self.cutoff, start)
        search.run(self.limits, self._goal, self._tell if is_root else untold)
        self.n_columns += len(search.clusters)
        start, prices = search.solution, search.prices
        found = evaluate(case, prices)
        bound = max(inherited, proven_bound(case, found.bound))
        if bound >= self._goal or self.limits.expired():
            return Node(case, start, bound, [ProofStep(StepKind.END, prices)])
        centres = search.centres() if self.improving else None
        better = None if centres is None else self._if_better(kmeans(self.points, centres))
        steps = [ProofStep(StepKind.FIX, prices), ProofStep(StepKind.END)]
        labels = groups_together(case, prices, found, self.cutoff)
        if labels is None:
            return Node(case, start, self.cutoff, steps, better)
        merged = case.regrouped(labels)
        return Node(merged, start.regrouped(case, merged), bound, steps, better)

    def _halves(self, node: Node, pair: Pair) -> list[tuple[PlaneCase, ProgramSolution]]:
        halves = node.case.separated(pair), node.case.merged(pair)
        return [(half, node.start.regrouped(node.case, half)) for half in halves]

    def _undecided(self, node: Node) -> Pair | None:
        """Return points of the two groups that share half a cluster; None if all is decided."""
        n = node.case.n
        if n < 2:
            return None
        share = together(n, node.start.clusters, node.start.shares)
        own = np.diag(share)
        score: FloatArray = np.minimum(share, np.minimum(own[:, None], own) - share)
        np.fill_diagonal(score, -np.inf)
        for one, other in node.case.pairs:
            score[one, other] = score[other, one] = -np.inf
        a, b = divmod(int(np.argmax(score)), n)
        if not score[a, b] > 0:
            return None
        first = np.unique(node.case.groups, return_index=True)[1]
        return int(first[a]), int(first[b])
