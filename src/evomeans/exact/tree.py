"""Branch and bound with the relaxation: the search, the proof, and its check.

Proofs by cases, and the check that a proof holds.

A proof is a list of steps, in the order in which a reader takes them. A step treats one
subproblem and

* ends it: its bound is that of the multipliers of the step, or of a step before it ("end");
* keeps pairs apart, which the multipliers of the step justify, and continues ("fix");
* or splits it into two cases: two groups in different clusters, or in the same one ("split").

`tree_bound` is the whole check. It trusts nothing but the points and the arithmetic of `bound` and
`fixing`; how the steps were found plays no role.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum

import numpy as np

from evomeans.exact.admm import Iterate, Search
from evomeans.exact.bound import outward, pairs_to_fix, proven_bound
from evomeans.exact.limits import Limits, Threads
from evomeans.exact.points import SMALLEST_INERTIA, WeightedPoints
from evomeans.exact.projection import Workbench
from evomeans.exact.subproblem import Multipliers, Subproblem, are_valid, rounded_clustering
from evomeans.typing import Integers

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


ROOT_PATIENCE = 4
CHILD_PATIENCE = 2
FAR_PATIENCE = 12
"""Of both while the gap is wide, unless no case may be split anyway."""
SIDE_BY_SIDE = 4
"""Cases that are split at a time; independent of the threads, and so is the result."""
BETTER = 1e-9
"""Relative; a clustering replaces the known one if it is better by this much."""


@dataclass
class Case:
    """A subproblem that was worked on."""

    problem: Subproblem
    iterate: Iterate
    bound: float
    """Proven, for the computed costs; at least that of the case it was split from."""
    steps: list[Step] = field(default_factory=list)
    split: tuple[int, int] | None = None
    children: tuple[Case, Case] | None = None
    Y: np.ndarray | None = None
    better: Integers | None = None
    """Labels of the points: a clustering that is better than the known one."""


@dataclass(frozen=True)
class TreeResult:
    """What a search tree found.

    Parameters
    ----------
    proof : TreeProof
    labels : (n,) array, optional
        Of the points: a clustering that is better than the known one.
    """

    proof: TreeProof
    labels: Integers | None


class Tree:
    """A search tree over the clusterings of some points.

    Parameters
    ----------
    points : WeightedPoints
        More than k.
    k : int
    cutoff : float
        Inertia of the known clustering, in the units of the points; also one that is too high gives
        a valid proof.
    labels : (n,) array, optional
        The known clustering.
    limits : Limits
    improving : bool
        Whether to look for better clusterings.
    max_nodes : int
        Subproblems at most, but for those that are worked on side by side.
    workbench : Workbench, optional
        Threads, and where eigenvectors are computed.
    """

    def __init__(
        self,
        points: WeightedPoints,
        k: int,
        cutoff: float,
        labels: Integers | None,
        limits: Limits,
        improving: bool = True,
        max_nodes: int = 10**9,
        workbench: Workbench | None = None,
    ) -> None:
        self.points, self.k, self.limits = points, k, limits
        self.cutoff, self.labels = cutoff, labels
        self.improving, self.max_nodes = improving, max_nodes
        self.workbench = workbench or Workbench()
        # Cases run in the threads, so that each has only one for itself.
        self._own_bench = replace(self.workbench, threads=Threads())
        self.n_nodes = 0
        self._better: Integers | None = None

    def prove(self) -> TreeResult:
        """Search until the bound meets the cutoff, time is up, or nothing is left to split."""
        found, start = None, None
        while True:
            root = self._grow(start)
            proof = TreeProof(self.cutoff, tuple(steps_of(root)))
            if self._better is None:
                return TreeResult(proof, found)
            found, self._better = self._better, None
            better = self.points.inertia(found)
            if self.limits.expired() or better < SMALLEST_INERTIA:
                return TreeResult(proof, found)
            # All that was deduced spoke of the former cutoff; a lower one deduces more.
            self.cutoff, start = better, root.iterate

    def _grow(self, start: Iterate | None) -> Case:
        problem = Subproblem.of_points(self.points, self.k, self.cutoff)
        start = start or Iterate.at_clustering(problem, self.labels)
        root = self._worked(problem, start, -math.inf, is_root=True)
        self._count([root])
        heap = [(root.bound, 0, root)]
        count = 0
        while heap and self._better is None:
            lower = heap[0][0]
            self._tell(lower)
            if self._is_done(lower):
                break
            cases: list[Case] = []
            # A case with only one clustering left, better than the known one, cannot be split: once
            # it has the lowest bound, that of the whole tree cannot rise any more.
            while len(cases) < SIDE_BY_SIDE and heap and heap[0][2].problem.n > self.k:
                if self._is_done(heap[0][0]):
                    break
                cases.append(heapq.heappop(heap)[2])
            pairs = [undecided_pair(case) for case in cases]
            if not cases or None in pairs:
                break
            self._split(cases, pairs)
            for case in cases:
                for child in case.children or ():
                    count += 1
                    heapq.heappush(heap, (child.bound, count, child))
        return root

    def _is_done(self, lower: float) -> bool:
        """Whether a case with this bound need not be split, or must not."""
        goal = self.cutoff * (1 - self.limits.gap)
        return lower >= goal or self.limits.expired() or self.n_nodes >= self.max_nodes

    def _worked(
        self, problem: Subproblem, start: Iterate, inherited: float, is_root: bool = False
    ) -> Case:
        """Search for multipliers, and note the steps that prove what was found."""
        case = Case(problem, start, inherited, [Step(StepKind.END)])
        ended = end_of_case(problem, -math.inf)
        if ended > -math.inf:
            case.bound = max(inherited, ended)
            self._note(case)
            return case
        if not is_root and self.limits.expired():
            return case  # what was proven for the case that it comes from holds for it, too
        search = Search(problem, start, self.workbench if is_root else self._own_bench)
        search.run(
            self.limits,
            ROOT_PATIENCE if is_root else CHILD_PATIENCE,
            self._tell if is_root else None,
            None if self.max_nodes == 1 else FAR_PATIENCE,
        )
        best = search.best.compact()
        case.problem, case.iterate, case.Y = search.problem, search.iterate, search.Y
        case.bound = max(inherited, proven_bound(search.problem, best))
        case.steps = [Step(StepKind.FIX, lemma) for lemma in search.lemmas]
        case.steps.append(Step(StepKind.END, best))
        self._note(case)
        return case

    def _count(self, cases: list[Case]) -> None:
        """Count cases, and keep the best of the clusterings that they found."""
        self.n_nodes += len(cases)
        known = math.inf if self._better is None else self.points.inertia(self._better)
        for case in cases:
            if case.better is not None and self.points.inertia(case.better) < known:
                self._better, known = case.better, self.points.inertia(case.better)

    def _note(self, case: Case) -> None:
        """Look for a clustering that is better than the known one."""
        if not self.improving or case.bound >= self.cutoff:
            return
        if case.problem.n == self.k:
            labels: Integers | None = case.problem.members
        elif case.Y is not None:
            labels = rounded_clustering(self.points, case.problem, case.Y)
        else:
            labels = None
        if labels is not None and self.points.inertia(labels) < self.cutoff * (1 - BETTER):
            case.better = labels

    def _split(self, cases: list[Case], pairs: Sequence[tuple[int, int] | None]) -> None:
        """Split cases, and work on all that come from them side by side."""
        calls: list[tuple[Subproblem, Iterate, float]] = []
        for case, pair in zip(cases, pairs, strict=True):
            assert pair is not None
            a, b = case.split = pair
            apart, merged = case.problem.separated(a, b), case.problem.merged(a, b)
            start = case.iterate
            calls.append((apart, start, case.bound))
            calls.append((merged, start.merged(case.problem, a, b, merged), case.bound))
        children = self.workbench.threads.map(self._worked, calls)
        self._count(children)
        for case, apart_child, merged_child in zip(
            cases, children[::2], children[1::2], strict=True
        ):
            case.children = apart_child, merged_child

    def _tell(self, lower: float) -> None:
        points = self.points
        self.limits.progress(
            points.in_data_units(min(max(lower, 0.0), self.cutoff)),
            points.in_data_units(self.cutoff),
            self.n_nodes,
        )


def undecided_pair(case: Case) -> tuple[int, int] | None:
    """Return the pair that Y neither puts together nor keeps apart; None if Y has no number."""
    problem = case.problem
    assert case.Y is not None
    Z = case.Y / problem.products
    own, w = np.diag(Z), problem.weights
    share = Z / np.maximum(np.minimum(own[:, None], own), 1e-300)
    # Where the lighter group goes is what a split decides.
    score = np.minimum(share, 1 - share) / (1 / w[:, None] + 1 / w)
    score[problem.apart | ~np.isfinite(score)] = -np.inf
    np.fill_diagonal(score, -np.inf)
    a, b = np.unravel_index(int(np.argmax(score)), score.shape)
    return (int(min(a, b)), int(max(a, b))) if np.isfinite(score[a, b]) else None


def steps_of(root: Case) -> list[Step]:
    """List the steps of a tree, the case "apart" before the case "together"."""
    steps: list[Step] = []
    pending = [root]
    while pending:
        case = pending.pop()
        if case.children is None or case.split is None:
            steps += case.steps
            continue
        # The multipliers at the end of a split case no longer matter, unless its bound is needed.
        steps += case.steps[:-1]
        steps.append(Step(StepKind.SPLIT, case.steps[-1].multipliers, case.split))
        pending += [case.children[1], case.children[0]]
    return steps
