"""Branch and price in the plane: cases are split where prices cannot decide, lowest bound first."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field

import numpy as np

from evomeans.exact.certify import Finding
from evomeans.exact.limits import Limits
from evomeans.exact.plane_case import Pair, PlaneCase
from evomeans.exact.plane_master import together
from evomeans.exact.plane_prices import PriceSearch, Start, evaluate, first_start, proven_bound
from evomeans.exact.plane_proof import PlaneProof, PlaneStep, groups_together, plane_bound
from evomeans.exact.points import SMALLEST_INERTIA, WeightedPoints
from evomeans.exact.proofs import Method
from evomeans.exact.subproblem import kmeans
from evomeans.exact.tree import StepKind
from evomeans.typing import FloatArray, Integers

BETTER = 1e-9
"""Relative; a clustering replaces the known one if it is better by this much."""


def by_columns(points: WeightedPoints, k: int, labels: Integers, limits: Limits) -> Finding:
    """Raise the bound of prices until it meets the known inertia or time is up."""
    if points.values.shape[1] != 2:
        raise ValueError(
            f"method='plane' is for samples with 2 features, got {points.values.shape[1]}."
        )
    tree = PlaneTree(points, k, labels, limits)
    proof = tree.prove()
    # Whatever the search believes, what counts is what the check returns.
    lower = plane_bound(points, k, proof)
    return Finding(Method.PLANE, lower, tree.labels, proof, proof.n_nodes, tree.n_columns)


@dataclass
class Node:
    """A case that was worked on."""

    case: PlaneCase
    """After merging."""
    start: Start
    """For the cases it is split into."""
    bound: float
    """Proven, but for the rounding of the last step; at least that of the case it came from."""
    steps: list[PlaneStep] = field(default_factory=list)
    pair: Pair | None = None
    children: tuple[Node, Node] | None = None


class PlaneTree:
    """A search tree over the clusterings of points in the plane.

    Parameters
    ----------
    points : WeightedPoints
        More than k.
    k : int
    labels : (n,) array
        The known clustering; also one that is not the best gives a valid proof.
    limits : Limits
    improving : bool
        Whether to look for better clusterings.
    """

    def __init__(
        self,
        points: WeightedPoints,
        k: int,
        labels: Integers,
        limits: Limits,
        improving: bool = True,
    ) -> None:
        self.points, self.k, self.limits, self.improving = points, k, limits, improving
        self.labels, self.cutoff = labels, points.inertia(labels)
        self.n_nodes = self.n_columns = 0
        self._better: Integers | None = None

    def prove(self) -> PlaneProof:
        """Search until the bound meets the cutoff, time is up, or nothing is left to split."""
        while True:
            root = self._grow()
            proof = PlaneProof(self.cutoff, tuple(steps_of(root)))
            if self._better is None:
                return proof
            # All that was deduced spoke of the former cutoff; a lower one deduces more.
            self.labels, self._better = self._better, None
            self.cutoff = self.points.inertia(self.labels)
            if self.limits.expired() or self.cutoff < SMALLEST_INERTIA:
                return proof

    @property
    def _goal(self) -> float:
        return self.cutoff * (1 - 0.5 * self.limits.gap)

    def _grow(self) -> Node:
        case = PlaneCase.of_points(self.points, self.k)
        root = self._worked(case, first_start(case, self.labels), 0.0)
        heap = [(root.bound, 0, root)]
        count = 0
        while heap and self._better is None:
            lower, _, node = heap[0]
            self._tell(lower)
            if lower >= self._goal or self.limits.expired():
                break
            pair = undecided_pair(node)
            if pair is None:
                break
            heapq.heappop(heap)
            self._split(node, pair)
            for child in node.children or ():
                count += 1
                heapq.heappush(heap, (child.bound, count, child))
        return root

    def _worked(self, case: PlaneCase, start: Start, inherited: float) -> Node:
        """Search for prices, merge what they merge, and note the steps that prove it."""
        self.n_nodes += 1
        if case.is_empty:
            return Node(case, start, math.inf, [PlaneStep(StepKind.END)])
        search = PriceSearch(case, self.cutoff, start)
        search.run(self.limits, self._goal, self._tell if self.n_nodes == 1 else _silent)
        self.n_columns += search.n_columns
        start, prices = search.start, search.prices
        found = evaluate(case, prices)
        bound = max(inherited, proven_bound(case, found.bound))
        if bound >= self._goal or self.limits.expired():
            return Node(case, start, bound, [PlaneStep(StepKind.END, prices)])
        self._note(search)
        labels = groups_together(case, prices, found, self.cutoff)
        steps = [PlaneStep(StepKind.FIX, prices), PlaneStep(StepKind.END)]
        if labels is None:
            return Node(case, start, self.cutoff, steps)
        merged = case.regrouped(labels)
        return Node(merged, start.regrouped(case, merged), bound, steps)

    def _note(self, search: PriceSearch) -> None:
        """Keep a clustering that is better than the known one."""
        if not self.improving:
            return
        centres = search.centres()
        labels = None if centres is None else kmeans(self.points, centres)
        if labels is not None and self.points.inertia(labels) < self.cutoff * (1 - BETTER):
            self._better = labels

    def _split(self, node: Node, pair: Pair) -> None:
        node.pair = pair
        apart, merged = node.case.separated(pair), node.case.merged(pair)
        node.children = (
            self._worked(apart, node.start.regrouped(node.case, apart), node.bound),
            self._worked(merged, node.start.regrouped(node.case, merged), node.bound),
        )

    def _tell(self, lower: float) -> None:
        self.limits.progress(
            self.points.in_data_units(min(max(lower, 0.0), self.cutoff)),
            self.points.in_data_units(self.cutoff),
            self.n_nodes,
        )


def _silent(bound: float) -> None:
    """Tell nobody: the bound of one case is not that of the whole."""


def undecided_pair(node: Node) -> Pair | None:
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


def steps_of(root: Node) -> list[PlaneStep]:
    """List the steps of a tree, the case "apart" before the case "together"."""
    steps: list[PlaneStep] = []
    pending = [root]
    while pending:
        node = pending.pop()
        if node.children is None or node.pair is None:
            steps += node.steps
            continue
        steps += node.steps[:-1]
        steps.append(PlaneStep(StepKind.SPLIT, None, node.pair))
        pending += [node.children[1], node.children[0]]
    return steps
