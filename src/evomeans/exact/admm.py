"""The search for multipliers with a high bound, by alternating directions, and branch and bound.

The relaxation minimises <C, Y> over matrices that lie in two simple sets: Y = û û' + Y' with
0 <= Y' <= I and trace k - 1 on the complement of û, and V >= 0 that satisfies the cuts. The method
of multipliers with two blocks [1]_ projects onto one and the other. The nearest matrix of the first
set has the eigenvectors of the given one, and the eigenvalues clip(λ - t, 0, 1) with the t that
gives the right trace. The second projection takes a few sweeps over the cuts. The multiplier L of
Y = V is sum mu B - S. Nothing here has to be exact: `relaxation` evaluates what is found.

References
----------
.. [1] S. Boyd, N. Parikh, E. Chu, B. Peleato, J. Eckstein: "Distributed optimization and
   statistical learning via the alternating direction method of multipliers", Foundations and
   Trends in Machine Learning 3, 2011.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from evomeans.compiled.jit import REORDER, jit
from evomeans.exact.cases import CaseTree, Limits, Node, Pair, ProofStep, StepKind, untold
from evomeans.exact.cuts import MOST_MEMBERS, Cuts, add_cuts, no_cuts, sweep_cuts, violated_cuts
from evomeans.exact.points import WeightedPoints, column_sums, kmeans
from evomeans.exact.relaxation import (
    Multipliers,
    Subproblem,
    TreeProof,
    dual_matrix,
    pairs_to_fix,
    proven_bound,
    shifted_matrix,
)
from evomeans.typing import Flags, FloatArray, Integers

ROUND, FIXING_ROUNDS = 25, 3
"""Iterations of a round, which ends with a bound and new cuts; rounds between fixes of pairs."""
RELAXATION = 1.8
FINE_GAP, FINE_RESIDUAL = 2e-5, 1e-5
"""Below these, eigenvectors are computed in double precision; single takes half as long."""
STALLED, WIDE_GAP = 0.15, 3e-3
"""Share of the gap that has to close within the patience; gap above which splitting gains less."""


@dataclass(frozen=True)
class Iterate:
    """Where the search stands, and where the children of its subproblem begin."""

    V: FloatArray
    L: FloatArray
    cuts: Cuts
    prices: FloatArray
    penalty: float

    @classmethod
    def at_clustering(cls, problem: Subproblem, labels: np.ndarray | None) -> Iterate:
        """Begin at the matrix of a clustering, or at the centre of the relaxation."""
        v, n, k = problem.roots / math.sqrt(problem.weights.sum()), problem.n, problem.k
        if labels is None:
            V = np.outer(v, v) * (1 - (k - 1) / (n - 1)) + (k - 1) / (n - 1) * np.eye(n)
        else:
            together = labels[:, None] == labels
            V = together * problem.products / (together @ problem.weights)[:, None]
        penalty = 1.5 * float(np.linalg.norm(problem.costs)) / math.sqrt(k)
        return cls(V, np.zeros((n, n)), no_cuts(), np.zeros(0), penalty)

    def merged(self, problem: Subproblem, a: int, b: int, child: Subproblem) -> Iterate:
        """Return the iterate for the child in which group b has joined a."""
        places = problem.new_places(a, b)
        L, Z = self.L * problem.products, self.V / problem.products
        for matrix in (L, Z):
            matrix[a] += matrix[b]
            matrix[:, a] += matrix[:, b]
        Z[a] /= 2
        Z[:, a] /= 2
        kept = np.arange(problem.n) != b
        cuts = np.where(self.cuts >= 0, places[self.cuts], -1).astype(np.int32)
        ordered = np.sort(cuts, axis=1)
        whole = ~((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(axis=1)
        return Iterate(
            Z[np.ix_(kept, kept)] * child.products,
            L[np.ix_(kept, kept)] / child.products,
            np.ascontiguousarray(cuts[whole]),
            self.prices[whole],
            self.penalty,
        )


class MultiplierSearch:
    """One subproblem, and the best multipliers found for it.

    Pairs to keep apart are added to the ``problem`` on the way; ``lemmas`` are the multipliers that
    proved which, in order. ``bound`` is the quick bound of the ``best`` multipliers. U is
    L / penalty, and N its part without the cuts: -S / penalty.
    """

    def __init__(self, problem: Subproblem, start: Iterate, pool: Executor | None = None) -> None:
        self.pool, n = pool, problem.n
        self.problem, self.iterate, self.Y = problem, start, start.V
        self.best, self.bound = Multipliers.none(n), -math.inf
        self.lemmas: list[Multipliers] = []
        self.n_iterations, self.n_found = 0, -1
        self.cuts, self.prices, self.penalty = start.cuts, start.prices.copy(), start.penalty
        self.inverse_roots = 1.0 / problem.roots
        cut_part = np.zeros((n, n))
        add_cuts(cut_part, np.zeros((n, n)), self.inverse_roots, self.cuts, self.prices)
        self.V = start.V.copy()
        self.U = start.L / self.penalty
        self.N = self.U - cut_part / self.penalty
        self.ages = np.zeros(len(self.cuts))
        v = problem.roots / math.sqrt(problem.weights.sum())
        self.projector = Projector(v, problem.k)
        self.A, self.base, self.matrix = (np.empty((n, n)) for _ in range(3))

    @property
    def gap(self) -> float:
        """Relative gap that is left."""
        return (self.problem.cutoff - self.bound) / self.problem.cutoff

    def run(
        self,
        limits: Limits,
        patience: int,
        tell: Callable[[float], None] = untold,
        far_patience: int | None = None,
    ) -> None:
        """Iterate until the gap is closed, time is up, or nothing changes any more.

        The patience is in rounds without progress, ``far_patience`` while the gap is wide.
        """
        last_progress, reference = 0, -math.inf
        last_fixing, fixed_gap = 0, math.inf
        for number in itertools.count(1):
            try:
                primal, dual = self._round()
            except np.linalg.LinAlgError:
                # Weights or distances out of all proportion; what was found before counts.
                return
            self.n_iterations += ROUND
            self._evaluate()
            missing = self.problem.cutoff - self.bound
            if self.bound > reference + max(2e-5 * self.problem.cutoff, STALLED * missing):
                reference, last_progress = self.bound, number
            tell(self.bound)
            L = self.U * self.penalty
            self.iterate = Iterate(self.V.copy(), L, self.cuts, self.prices.copy(), self.penalty)
            if self.gap <= 0.9 * limits.gap or limits.expired():
                return
            is_solved = max(primal, dual) < 1e-6 and self.n_found == 0
            rounds_left = patience - (number - last_progress)
            if far_patience is not None and self.gap > WIDE_GAP:
                rounds_left += far_patience - patience
            if is_solved or rounds_left < 0:
                # The case will be split, and both halves keep these pairs apart.
                self._fix()
                return
            worth_fixing = self.gap < 0.02 and self.gap < 0.8 * fixed_gap
            if worth_fixing and number - last_fixing >= FIXING_ROUNDS:
                last_fixing, fixed_gap = number, self.gap
                if self._fix() > self.problem.n // 5:
                    last_progress = number
            if self.gap < FINE_GAP or max(primal, dual) < FINE_RESIDUAL:
                self.projector.fine = True
            self._balance(primal, dual, number)
            if max(primal, dual) < 3e-3:
                self._renew_cuts(1e-3 if number < 40 else 1e-4)

    def _round(self) -> tuple[float, float]:
        """Do a round of iterations; return the primal and the dual residual."""
        primal = dual = math.inf
        C, apart = self.problem.costs, self.problem.apart
        scaled, Y = self.prices / self.penalty, self.Y
        for _ in range(ROUND):
            size = point_to_project(self.V, C, self.U, self.penalty, self.A)
            Y = self.projector.project(self.A, size)
            relax(Y, self.V, self.N, RELAXATION, self.base, self.matrix)
            sweep_cuts(self.matrix, apart, self.inverse_roots, self.cuts, scaled)
            primal, dual = finish(self.matrix, self.base, apart, Y, self.V, self.U, self.N)
        if not math.isfinite(primal + dual):
            raise np.linalg.LinAlgError("The residuals are not finite.")
        self.prices, self.Y = scaled * self.penalty, Y
        scale = 1 / math.sqrt(self.problem.k)
        return math.sqrt(primal) * scale, math.sqrt(dual) * scale

    def _evaluate(self) -> None:
        """Keep S and mu of the current multiplier L = sum mu B - S if they are the best."""
        raw = Multipliers(-self.penalty * self.N, self.cuts, self.prices.copy())
        multipliers = Multipliers(raw.admissible_slack(self.problem), raw.cuts, raw.prices)
        try:
            A, bound, _ = shifted_matrix(self.problem, dual_matrix(self.problem, multipliers)[0])
            # Without the allowance for rounding: to compare multipliers, not to prove.
            bound += lowest_sum(A, self.problem.k - 1)
        except (ValueError, np.linalg.LinAlgError):
            return
        if bound > self.bound:
            self.bound, self.best = bound, multipliers

    def _fix(self) -> int:
        """Keep pairs apart; return how many are new."""
        proven = proven_bound(self.problem, self.best)
        pairs = pairs_to_fix(self.problem, self.best, proven)
        count = int(np.count_nonzero(pairs & ~self.problem.apart)) // 2
        if count:
            self.lemmas.append(self.best.compact())
            self.problem = self.problem.with_apart(pairs)
        return count

    def _balance(self, primal: float, dual: float, number: int) -> None:
        """Let the penalty follow the larger residual."""
        if number > 24 and number % 4:
            return
        factor = 1.4 if primal > 1.5 * dual else 1 / 1.4 if dual > 1.5 * primal else 1.0
        self.penalty *= factor
        self.U /= factor
        self.N /= factor

    def _renew_cuts(self, share: float) -> None:
        """Add violated cuts, and drop those that had no price in two rounds."""
        Z = self.Y / self.problem.products
        found = violated_cuts(Z, share * float(np.diag(Z).mean()), self.pool)
        self.n_found = len(found)
        ages = np.where(self.prices > 0, 0, self.ages + 1)
        kept = ages < 2
        cuts = np.concatenate([self.cuts[kept], found])
        zeros = np.zeros(len(found))
        prices = np.concatenate([self.prices[kept], zeros])
        ages = np.concatenate([ages[kept], zeros])
        # Equal keys of different cuts are unlikely, and only lose one of them.
        keys = (cuts + 2).astype(np.int64) @ (
            1000003 ** np.arange(MOST_MEMBERS + 1, dtype=np.int64)
        )
        first = np.sort(np.unique(keys, return_index=True)[1])
        self.cuts = np.ascontiguousarray(cuts[first])
        self.prices, self.ages = prices[first], ages[first]


# ---- projections: element-wise kernels, and eigenvectors ----------------------------------------


@jit(fastmath=REORDER)
def point_to_project(
    V: FloatArray, C: FloatArray, U: FloatArray, penalty: float, A: FloatArray
) -> float:
    """Set A = V - C / penalty - U, all of shape (n, n); return its Frobenius norm."""
    n = V.shape[0]
    inverse, total = 1.0 / penalty, 0.0
    for i in range(n):
        for j in range(n):
            value = V[i, j] - C[i, j] * inverse - U[i, j]
            A[i, j] = value
            total += value * value
    return np.sqrt(total)


@jit(fastmath=REORDER)
def shift(A: FloatArray, b: FloatArray, v: FloatArray) -> None:
    """Subtract b v' + v b' from A. Shapes: A (n, n); b, v (n,)."""
    n = v.shape[0]
    for i in range(n):
        for j in range(n):
            A[i, j] -= b[i] * v[j] + v[i] * b[j]


@jit
def capped_simplex(values: FloatArray, total: float) -> None:
    """Project onto {0 <= x <= 1, sum x = total}, in place: x = clip(values - t, 0, 1).

    Shape: values (n,), ascending. The shift t is found by bisection.
    """
    n = values.shape[0]
    low, high = values[0] - 1.0, values[n - 1]
    for _ in range(60):
        middle = (low + high) / 2.0
        found = 0.0
        for i in range(n - 1, -1, -1):
            if values[i] <= middle:
                break
            found += min(values[i] - middle, 1.0)
        if found > total:
            low = middle
        else:
            high = middle
    for i in range(n):
        values[i] = min(max(values[i] - (low + high) / 2.0, 0.0), 1.0)


@jit(fastmath=REORDER)
def relax(
    Y: FloatArray, V: FloatArray, N: FloatArray, share: float, base: FloatArray, matrix: FloatArray
) -> None:
    """Set base = share Y + (1 - share) V and matrix = base + N, all of shape (n, n)."""
    n = Y.shape[0]
    for i in range(n):
        for j in range(n):
            value = share * Y[i, j] + (1.0 - share) * V[i, j]
            base[i, j] = value
            matrix[i, j] = value + N[i, j]


@jit(fastmath=REORDER)
def finish(
    matrix: FloatArray,
    base: FloatArray,
    apart: Flags,
    Y: FloatArray,
    V: FloatArray,
    U: FloatArray,
    N: FloatArray,
) -> tuple[float, float]:
    """V becomes the positive part of matrix, U += base - V, and N = matrix - V.

    All are of shape (n, n). Returns the squares of |Y - V| and of the change of V.
    """
    n = V.shape[0]
    primal = dual = 0.0
    for i in range(n):
        for j in range(n):
            value = 0.0 if apart[i, j] else max(matrix[i, j], 0.0)
            change = value - V[i, j]
            dual += change * change
            rest = Y[i, j] - value
            primal += rest * rest
            U[i, j] += base[i, j] - value
            N[i, j] = matrix[i, j] - value
            V[i, j] = value
    return primal, dual


SMALLEST_FOR_SUBSETS, SMALLEST_FOR_SINGLE = 120, 60
"""Groups from which on a few eigenvectors, or single precision, are faster."""


class Projector:
    """Projects matrices of one subproblem, whose û is ``v``; ``fine`` in double precision."""

    def __init__(self, v: FloatArray, k: int) -> None:
        self._v, self._k = v, k
        self._vv = np.outer(v, v)
        self.fine = len(v) < SMALLEST_FOR_SINGLE
        self.rank = len(v)

    def project(self, A: FloatArray, size: float) -> FloatArray:
        """Return the projection of A, whose norm is ``size``; A is overwritten."""
        # First v becomes an eigenvector of A whose eigenvalue lies below all others.
        product = A @ self._v
        shift(A, product - (float(self._v @ product) / 2 - 1.5 * size) * self._v, self._v)
        if not self.fine:
            with np.errstate(over="ignore"):
                single = A.astype(np.float32)
            # Weights out of all proportion need the range of double precision, too.
            self.fine = not np.isfinite(single).all()
        values, Q = self._leading_pairs(A if self.fine else single)
        used = values > 0
        self.rank = int(np.count_nonzero(used))
        Q = Q[:, used]
        return (Q * values[used].astype(Q.dtype)) @ Q.T + self._vv

    def _leading_pairs(self, A: NDArray[Any]) -> tuple[FloatArray, NDArray[Any]]:
        """Return projected eigenvalues, and their vectors in the precision of A."""
        n = len(A)
        few = self.rank + 8
        if n > SMALLEST_FOR_SUBSETS and few < n // 4:
            last = [n - few, n - 1]
            values, Q = eigh(A, driver="evr", subset_by_index=last, check_finite=False)
            values = projected_values(values, self._k - 1)
            if values[0] <= 0:  # else there may be more
                return values, Q
        if self.fine:
            values, Q = np.linalg.eigh(A)  # less overhead, for small matrices
        else:
            values, Q = eigh(A, driver="evd", check_finite=False)
        return projected_values(values, self._k - 1), Q


def lowest_sum(A: FloatArray, count: int) -> float:
    """Return the sum of the lowest eigenvalues of A; A is overwritten."""
    if count == 0:
        return 0.0
    options: dict[str, Any] = {"driver": "evr", "check_finite": False, "overwrite_a": True}
    return float(eigh(A, eigvals_only=True, subset_by_index=[0, count - 1], **options).sum())


def projected_values(values: NDArray[Any], total: float) -> FloatArray:
    """Return clip(λ - t, 0, 1) with this sum, for ascending eigenvalues λ."""
    if not np.isfinite(values).all():
        raise np.linalg.LinAlgError("The eigenvalues are not finite.")
    found = values.astype(np.float64)
    capped_simplex(found, total)
    return found


# ---- branch and bound ----------------------------------------------------------------------------

ROOT_PATIENCE, CHILD_PATIENCE, FAR_PATIENCE = 4, 2, 12
"""The last is that of both while the gap is wide, unless no case may be split anyway."""


class RelaxationTree(CaseTree):
    """A search tree over subproblems of the relaxation."""

    proof_type = TreeProof
    side_by_side = 4

    def _root(self, former: Node | None) -> tuple[Subproblem, Iterate]:
        problem = Subproblem.of_points(self.points, self.k, self.cutoff)
        return problem, former.start if former else Iterate.at_clustering(problem, self.labels)

    def _worked(
        self, case: Subproblem, start: Iterate, inherited: float, is_root: bool = False
    ) -> Node:
        end = [ProofStep(StepKind.END)]
        node = Node(case, start, inherited, end, is_last=case.n <= self.k)
        ended = TreeProof.end(case, -math.inf)
        if ended > -math.inf:
            node.bound = max(inherited, ended)
            node.better = self._better_clustering(node)
            return node
        if not is_root and self.limits.expired():
            return node  # what was proven for the case that it comes from holds for it, too
        # Cases run in the threads, so that each has only one for itself.
        search = MultiplierSearch(case, start, self.pool if is_root else None)
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

    def _better_clustering(self, node: Node) -> Integers | None:
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

    def _undecided(self, node: Node) -> Pair | None:
        """Return the pair that Y neither puts together nor keeps apart; None if Y has no number."""
        problem = node.case
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
