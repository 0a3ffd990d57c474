"""The relaxation: its cases, the bound that multipliers prove, its rounding, and pairs it fixes.

A case has groups of points, which share a cluster, and pairs of groups that must stay apart. With
K_gh, the sum of w_i w_j |x_i - x_j|² / 2 over i in g and j in h, and C_gh = K_gh / sqrt(w_g w_h),
the inertia of a clustering is <C, Y>, where Y_gh = sqrt(w_g w_h) / w(Q) if g and h share the
cluster Q, else 0. All terms are nonnegative, so no digits cancel: merging groups only adds entries.

Let u_g = sqrt(w_g) and û = u / |u|. For any S that is nonnegative on the pairs that may share a
cluster, any prices mu >= 0 of star cuts B_c, see `cuts`, and any vector b, all clusterings into
exactly k clusters have, with M = C - S + sum_c mu_c B_c,

    inertia >= û'Mû + the sum of the k - 1 smallest eigenvalues of M + û b' + b û'.

Whatever a solver returns, the bound is valid. docs/background/proofs.md has the proof, and derives
what `proven_bound` subtracts for rounding. All of that is doubled, which covers second-order terms
and the rounding of the allowance itself.

If groups i and j share a cluster, the inertia exceeds the bound by <S, Y>. With s_ab = S_ab
sqrt(w_a w_b) and the gap g between known inertia and bound, the pair can be kept apart if

    2 s_ij - g (w_i + w_j) - sum over a of max(0, g w_a - 2 (s_ia + s_ja)) > 0,

where a runs over the groups that may join both i and j. `pairs_to_fix` returns these pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from evomeans.compiled.jit import jit
from evomeans.exact.cases import CasesProof, Pair
from evomeans.exact.cuts import Cuts, add_cuts, are_valid, no_cuts
from evomeans.exact.points import UNIT, WeightedPoints
from evomeans.exact.proofs import InvalidProofError, Method
from evomeans.typing import Flags, FloatArray, Integers

MARGIN = 1e-9
"""Relative; a pair is only excluded if it exceeds its limit by this much, far above rounding."""


@dataclass(frozen=True)
class Subproblem:
    """Clusterings of n groups into k clusters that are cheaper than the ``cutoff``.

    Shapes: K, apart (n, n), pairs that no such clustering puts together; weights (n,), of the
    groups; members (n_points,), the group of every point.
    """

    K: FloatArray
    weights: FloatArray
    apart: Flags
    members: Integers
    k: int
    cutoff: float

    @classmethod
    def of_points(cls, points: WeightedPoints, k: int, cutoff: float) -> Subproblem:
        """Return the whole problem: every point is a group of its own."""
        w, n = points.weights, points.n
        K = points.squared_distances() * (w[:, None] * w) / 2
        return cls(K, w, np.zeros((n, n), np.bool_), np.arange(n), k, cutoff).with_far_pairs()

    @property
    def n(self) -> int:
        """The number of groups."""
        return len(self.weights)

    @property
    def n_bytes(self) -> int:
        """Memory of the matrices."""
        return self.K.nbytes + self.apart.nbytes

    @cached_property
    def roots(self) -> FloatArray:
        """Square roots of the weights."""
        return np.sqrt(self.weights)

    @cached_property
    def products(self) -> FloatArray:
        """sqrt(w_g w_h) of all pairs."""
        return np.outer(self.roots, self.roots)

    @cached_property
    def costs(self) -> FloatArray:
        """The matrix C. Pairs that must stay apart may have any entry: here not a huge one."""
        largest = (self.weights[:, None] + self.weights) * (self.cutoff / 2)
        return np.where(self.apart, np.minimum(self.K, largest), self.K) / self.products

    @property
    def rounding(self) -> float:
        """Relative error that merging may have caused in entries of K."""
        return 2 * UNIT * len(self.members)

    def with_far_pairs(self) -> Subproblem:
        """Keep apart the pairs whose groups alone, in one cluster, cost more than the cutoff."""
        inner = np.diag(self.K) / self.weights
        diagonal = np.diag(self.K)
        pair = (diagonal[:, None] + diagonal + 2 * self.K) / (self.weights[:, None] + self.weights)
        cost = pair + (inner.sum() - inner[:, None] - inner)
        far = cost > self.cutoff * (1 + MARGIN) + MARGIN * inner.sum()
        np.fill_diagonal(far, False)
        return replace(self, apart=self.apart | far)

    def with_apart(self, pairs: Flags) -> Subproblem:
        """Keep more pairs apart."""
        return replace(self, apart=self.apart | pairs)

    def separated(self, a: int, b: int) -> Subproblem:
        """Return the clusterings that have groups a and b in different clusters."""
        pairs = np.zeros_like(self.apart)
        pairs[a, b] = pairs[b, a] = True
        return self.with_apart(pairs)

    def merged(self, a: int, b: int) -> Subproblem:
        """Return the clusterings that have groups a and b in one cluster: group b joins a."""
        K, apart, weights = self.K.copy(), self.apart.copy(), self.weights.copy()
        K[a] += K[b]
        K[:, a] += K[:, b]
        apart[a] |= apart[b]
        apart[:, a] |= apart[:, b]
        weights[a] += weights[b]
        kept = np.arange(self.n) != b
        return replace(
            self,
            K=K[np.ix_(kept, kept)],
            weights=weights[kept],
            apart=apart[np.ix_(kept, kept)],
            members=self.new_places(a, b)[self.members],
        ).with_far_pairs()

    def new_places(self, a: int, b: int) -> Integers:
        """Return where groups go when b joins a."""
        places = np.arange(self.n)
        places[places > b] -= 1
        places[b] = places[a]
        return places

    @property
    def is_empty(self) -> bool:
        """Whether no clustering is left: all pairs must stay apart, and that takes more than k."""
        return self.n > self.k and int(np.count_nonzero(self.apart)) == self.n * (self.n - 1)


@dataclass(frozen=True)
class Multipliers:
    """Multipliers of Y >= 0 and of star cuts. Any give a valid bound, good ones a high one."""

    slack: FloatArray
    """S, (n, n), symmetric. Only its positive part counts, except for pairs that must stay apart,
    where any sign is allowed."""
    cuts: Cuts
    prices: FloatArray  # of the cuts; negative ones count as zero

    @classmethod
    def none(cls, n: int) -> Multipliers:
        """Return the multipliers of the plain eigenvalue bound."""
        return cls(np.zeros((n, n)), no_cuts(), np.zeros(0))

    def admissible_slack(self, problem: Subproblem) -> FloatArray:
        """Return S with the signs that a proof needs."""
        return np.where(problem.apart, self.slack, np.maximum(self.slack, 0.0))

    def compact(self) -> Multipliers:
        """Drop the cuts that have no price, and make the slack symmetric to the last bit."""
        used = self.prices > 0
        return Multipliers((self.slack + self.slack.T) / 2, self.cuts[used], self.prices[used])


def proven_bound(problem: Subproblem, multipliers: Multipliers) -> float:
    """Return a lower bound for the inertia of all clusterings of a subproblem.

    It includes the allowance for rounding, except for the share `relative_error`; minus infinity
    if it cannot be evaluated.
    """
    if not are_valid(multipliers.cuts, problem.n):
        raise ValueError("The cuts of the proof are not star cuts of this problem.")
    with np.errstate(all="ignore"):
        M, error = dual_matrix(problem, multipliers)
        if not (np.isfinite(M).all() and np.isfinite(error).all()):
            return -math.inf
        try:
            bound, allowance = _eigenvalue_bound(problem, M)
        except np.linalg.LinAlgError:
            return -math.inf
        total = bound - 2 * (allowance + math.sqrt(problem.k) * float(np.linalg.norm(error)))
    return total if math.isfinite(total) else -math.inf


def dual_matrix(problem: Subproblem, multipliers: Multipliers) -> tuple[FloatArray, FloatArray]:
    """Return M = C - S + sum mu B, and bounds for the rounding errors of its entries."""
    cuts, sizes = np.zeros_like(problem.K), np.zeros_like(problem.K)
    prices = np.maximum(multipliers.prices, 0.0)
    add_cuts(cuts, sizes, 1.0 / problem.roots, multipliers.cuts, prices)
    costs, slack = problem.costs, multipliers.admissible_slack(problem)
    slack = (slack + slack.T) / 2
    error = (len(prices) + 10) * sizes + 4 * (np.abs(costs) + np.abs(slack))
    return costs - slack + cuts, np.where(problem.apart, 0.0, UNIT * error)


def shifted_matrix(problem: Subproblem, M: FloatArray) -> tuple[FloatArray, float, float]:
    """Return M + v b' + b v', v'Mv and |b|, where v = û up to rounding is pushed to the top."""
    v = problem.roots / math.sqrt(problem.weights.sum())
    product = M @ v
    middle = float(v @ product)
    top = float(np.abs(M).sum(axis=1).max())
    b = (middle + top) / 2 * v - product
    A = M + np.outer(v, b) + np.outer(b, v)
    return (A + A.T) / 2, middle, float(np.linalg.norm(b))


def _eigenvalue_bound(problem: Subproblem, M: FloatArray) -> tuple[float, float]:
    n, rank = problem.n, problem.k - 1
    A, middle, length = shifted_matrix(problem, M)
    size = float(np.linalg.norm(M))
    allowance = (6 * n + 60) * UNIT * size + rank * (4 * n + 60) * UNIT * (size + length)
    if rank == 0:
        return middle, allowance
    values, Q = np.linalg.eigh(A)
    reach = float(np.abs(values).sum())
    residual = float(np.linalg.norm(A - (Q * values) @ Q.T))
    residual += 2 * (n + 4) * UNIT * (reach + float(np.linalg.norm(A)))
    tilt = float(np.linalg.norm(Q.T @ Q - np.eye(n))) + 2 * (n + 4) * UNIT * n
    lowest = np.sort(values)[:rank]
    allowance += rank * residual + tilt * float(np.abs(lowest).sum()) + n * UNIT * reach
    return middle + float(lowest.sum()), allowance


def pairs_to_fix(problem: Subproblem, multipliers: Multipliers, bound: float) -> Flags:
    """Return the pairs that can be kept apart, given the bound of the multipliers."""
    gap = problem.cutoff * (1 + MARGIN) - bound
    found = np.zeros_like(problem.apart)
    if not 0 < gap < problem.cutoff:
        return found
    slack = np.maximum(multipliers.slack, 0.0)
    slack = np.where(problem.apart, 0.0, (slack + slack.T) / 2) * problem.products
    fix_pairs(slack, problem.weights, problem.apart, gap * (1 + MARGIN), found)
    return found


@jit
def fix_pairs(
    slack: FloatArray, weights: FloatArray, apart: Flags, gap: float, found: Flags
) -> None:
    """Mark pairs by the test above. Shapes: slack, apart, found (n, n); weights (n,)."""
    n = weights.shape[0]
    for i in range(n):
        for j in range(i):
            left = 2.0 * slack[i, j] - gap * (weights[i] + weights[j])
            if apart[i, j] or left <= 0.0:
                continue
            least = 1e-12 * slack[i, j]
            for a in range(n):
                if a in (i, j) or apart[i, a] or apart[j, a]:
                    continue
                left -= max(0.0, gap * weights[a] - 2.0 * (slack[i, a] + slack[j, a]))
                if left <= least:
                    break
            if left > least:
                found[i, j] = True
                found[j, i] = True


# ---- proofs by cases -----------------------------------------------------------------------------

ALWAYS_BUILT = 1000  # points whose matrices are built even if the proof has none of that size


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
