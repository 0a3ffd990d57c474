"""Branch and bound with the relaxation: what its steps mean, and the search for them.

A case is a `Subproblem`: groups of points that share a cluster, and pairs that do not. Its
multipliers prove the bound of `bound.proven_bound`, and keep the pairs of `bound.pairs_to_fix`
apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from evomeans.exact.admm import Iterate, MultiplierSearch
from evomeans.exact.cases import (
    ALONE,
    CasesProof,
    CaseTree,
    Node,
    Pair,
    ProofStep,
    StepKind,
    untold,
)
from evomeans.exact.cuts import are_valid
from evomeans.exact.points import WeightedPoints, column_sums, kmeans
from evomeans.exact.proofs import InvalidProofError, Method
from evomeans.exact.relaxation import Multipliers, Subproblem, pairs_to_fix, proven_bound
from evomeans.typing import FloatArray, Integers

ALWAYS_BUILT = 1000
"""Points whose matrices are built even if the proof has none of that size: some 20 megabytes."""
ROOT_PATIENCE = 4
CHILD_PATIENCE = 2
FAR_PATIENCE = 12
"""Of both while the gap is wide, unless no case may be split anyway."""


class TreeProof(CasesProof):
    """A proof by the multipliers of the relaxation, for clusterings into exactly k clusters."""

    method = Method.RELAXATION

    @property
    def n_cuts(self) -> int:
        """Cuts with a price in all the steps together."""
        return sum(len(step.multipliers.cuts) for step in self.steps if step.multipliers)

    def whole(self, points: WeightedPoints, k: int) -> Subproblem:
        """Return the whole problem, unless its matrices are larger than any of the proof."""
        n = points.n
        sizes = [len(step.multipliers.slack) for step in self.steps if step.multipliers is not None]
        if n > max(sizes, default=0) and n > ALWAYS_BUILT:
            raise InvalidProofError(f"The proof has no multipliers for {n} distinct samples.")
        return Subproblem.of_points(points, k, self.cutoff)

    def bound(self, case: Subproblem, multipliers: Multipliers) -> tuple[float, float]:
        """Return the bound of multipliers, unless compiled code would read out of bounds."""
        fits = (
            multipliers.slack.shape == case.K.shape
            and are_valid(multipliers.cuts, case.n)
            and multipliers.prices.shape == (len(multipliers.cuts),)
        )
        if not fits:
            raise InvalidProofError("The multipliers of a step do not fit its case.")
        bound = proven_bound(case, multipliers)
        return bound, bound

    def fixed(self, case: Subproblem, multipliers: Multipliers, found: float) -> Subproblem:
        """Keep pairs apart."""
        return case.with_apart(pairs_to_fix(case, multipliers, found))

    def split(self, case: Subproblem, pair: Pair) -> tuple[Subproblem, Subproblem] | None:
        """Return the cases in which two groups are apart and together."""
        a, b = min(pair), max(pair)
        if not 0 <= a < b < case.n:
            return None
        return case.separated(a, b), case.merged(a, b)

    @staticmethod
    def end(case: Subproblem, known: float) -> float:
        """Return the bound of a case that is not split."""
        if case.n < case.k or case.is_empty:
            return math.inf  # no clustering into k clusters is left
        if case.n > case.k:
            return known
        # Every group is a cluster of the only clustering.
        return max(known, float(np.sum(np.diag(case.K) / case.weights)))


@dataclass
class RelaxedNode(Node):
    """A subproblem that was worked on, with the matrix that the relaxation came to."""

    Y: FloatArray | None = None


class RelaxationTree(CaseTree):
    """A search tree over subproblems of the relaxation."""

    proof_type = TreeProof
    side_by_side = 4

    def _root(self, former: Node | None) -> tuple[Subproblem, Iterate]:
        problem = Subproblem.of_points(self.points, self.k, self.cutoff)
        return problem, former.start if former else Iterate.at_clustering(problem, self.labels)

    def _worked(
        self, case: Subproblem, start: Iterate, inherited: float, is_root: bool = False
    ) -> RelaxedNode:
        node = RelaxedNode(
            case, start, inherited, [ProofStep(StepKind.END)], is_last=case.n <= self.k
        )
        ended = TreeProof.end(case, -math.inf)
        if ended > -math.inf:
            node.bound = max(inherited, ended)
            node.better = self._better_clustering(node)
            return node
        if not is_root and self.limits.expired():
            return node  # what was proven for the case that it comes from holds for it, too
        # Cases run in the threads, so that each has only one for itself.
        search = MultiplierSearch(case, start, self.threads if is_root else ALONE)
        search.run(
            self.limits,
            ROOT_PATIENCE if is_root else CHILD_PATIENCE,
            self._tell if is_root else untold,
            None if self.max_nodes == 1 else FAR_PATIENCE,
        )
        best = search.best.compact()
        node.case, node.start, node.Y = search.problem, search.iterate, search.Y
        node.bound = max(inherited, proven_bound(search.problem, best))
        node.steps = [ProofStep(StepKind.FIX, lemma) for lemma in search.lemmas]
        node.steps.append(ProofStep(StepKind.END, best))
        node.better = self._better_clustering(node)
        return node

    def _better_clustering(self, node: RelaxedNode) -> Integers | None:
        """Look for a clustering that is better than the known one."""
        if not self.improving or node.bound >= self.cutoff:
            return None
        if node.case.n == self.k:
            return self._if_better(node.case.members)
        if node.Y is None:
            return None
        return self._if_better(rounded_clustering(self.points, node.case, node.Y))

    def _halves(self, node: Node, pair: Pair) -> list[tuple[Subproblem, Iterate]]:
        a, b = pair
        apart, merged = node.case.separated(a, b), node.case.merged(a, b)
        return [(apart, node.start), (merged, node.start.merged(node.case, a, b, merged))]

    def _undecided(self, node: Any) -> Pair | None:
        """Return the pair that Y neither puts together nor keeps apart; None if Y has no number."""
        problem = node.case
        assert node.Y is not None
        Z = node.Y / problem.products
        own, w = np.diag(Z), problem.weights
        share = Z / np.maximum(np.minimum(own[:, None], own), 1e-300)
        # Where the lighter group goes is what a split decides.
        score = np.minimum(share, 1 - share) / (1 / w[:, None] + 1 / w)
        score[problem.apart | ~np.isfinite(score)] = -np.inf
        np.fill_diagonal(score, -np.inf)
        a, b = np.unravel_index(int(np.argmax(score)), score.shape)
        return (int(min(a, b)), int(max(a, b))) if np.isfinite(score[a, b]) else None


def rounded_clustering(
    points: WeightedPoints, problem: Subproblem, Y: FloatArray
) -> Integers | None:
    """Turn Y into labels of the points: k distant rows, then K-means; None if a cluster dies.

    Row g of Y says with whom group g shares its cluster, and so where the centre would be.
    """
    sums = column_sums(problem.members, points.values * points.weights[:, None])
    Z = np.maximum(Y / problem.products, 0.0)
    centres = Z @ sums / np.maximum(Z @ problem.weights, 1e-300)[:, None]
    chosen = [int(np.argmax(problem.weights))]
    distance = np.full(problem.n, np.inf)
    for _ in range(problem.k - 1):
        offsets = centres - centres[chosen[-1]]
        distance = np.minimum(distance, np.einsum("ij,ij->i", offsets, offsets))
        chosen.append(int(np.argmax(distance * problem.weights)))
    return kmeans(points, centres[chosen])
