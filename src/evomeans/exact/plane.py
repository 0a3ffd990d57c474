"""Branch and price in the plane: cases are split where prices cannot decide, lowest bound first."""

from __future__ import annotations

import math

import numpy as np

from evomeans.exact.cases import CaseTree, Node, Pair, Step, StepKind
from evomeans.exact.certify import Finding
from evomeans.exact.limits import Limits
from evomeans.exact.plane_case import PlaneCase
from evomeans.exact.plane_master import together
from evomeans.exact.plane_prices import PriceSearch, Start, evaluate, first_start, proven_bound
from evomeans.exact.plane_proof import PlaneProof, groups_together, plane_bound
from evomeans.exact.points import WeightedPoints
from evomeans.exact.proofs import Method
from evomeans.exact.subproblem import kmeans
from evomeans.typing import FloatArray, Integers


def by_columns(points: WeightedPoints, k: int, labels: Integers, limits: Limits) -> Finding:
    """Raise the bound of prices until it meets the known inertia or time is up."""
    if points.values.shape[1] != 2:
        raise ValueError(
            f"method='plane' is for samples with 2 features, got {points.values.shape[1]}."
        )
    tree = PlaneTree(points, k, points.inertia(labels), labels, limits)
    proof = tree.prove()
    # Whatever the search believes, what counts is what the check returns.
    lower = plane_bound(points, k, proof)
    return Finding(Method.PLANE, lower, tree.labels, proof, proof.n_nodes, tree.n_columns)


PlaneNode = Node[PlaneCase, FloatArray, Start]


class PlaneTree(CaseTree[PlaneNode]):
    """A search tree over the clusterings of points in the plane, which needs a known one."""

    proof_type = PlaneProof
    share_of_gap = 0.5
    n_columns = 0
    labels: Integers

    def _root(self, former: PlaneNode | None) -> tuple[PlaneCase, Start]:
        case = PlaneCase.of_points(self.points, self.k)
        return case, first_start(case, self.labels)

    def _worked(
        self, case: PlaneCase, start: Start, inherited: float, is_root: bool = False
    ) -> PlaneNode:
        if case.is_empty:
            return Node(case, start, math.inf, [Step(StepKind.END)])
        search = PriceSearch(case, self.cutoff, start)
        search.run(self.limits, self._goal, self._tell if is_root else _silent)
        self.n_columns += search.n_columns
        start, prices = search.start, search.prices
        found = evaluate(case, prices)
        bound = max(inherited, proven_bound(case, found.bound))
        if bound >= self._goal or self.limits.expired():
            return Node(case, start, bound, [Step(StepKind.END, prices)])
        better = self._better_clustering(search)
        steps = [Step(StepKind.FIX, prices), Step(StepKind.END)]
        labels = groups_together(case, prices, found, self.cutoff)
        if labels is None:
            return Node(case, start, self.cutoff, steps, better)
        merged = case.regrouped(labels)
        return Node(merged, start.regrouped(case, merged), bound, steps, better)

    def _better_clustering(self, search: PriceSearch) -> Integers | None:
        """Look for a clustering that is better than the known one."""
        centres = search.centres() if self.improving else None
        return None if centres is None else self._if_better(kmeans(self.points, centres))

    def _halves(self, node: PlaneNode, pair: Pair) -> list[tuple[PlaneCase, Start]]:
        halves = node.case.separated(pair), node.case.merged(pair)
        return [(half, node.start.regrouped(node.case, half)) for half in halves]

    def _undecided(self, node: PlaneNode) -> Pair | None:
        """Return points of the two groups that share half a cluster; None if all is decided."""
        n = node.case.n
        if n < 2:
            return None
        share = together(n, node.start.clusters, node.start.solution.shares)
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


def _silent(bound: float) -> None:
    """Tell nobody: the bound of one case is not that of the whole."""
