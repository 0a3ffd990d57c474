"""A node of the search tree: groups of points, pairs that must stay apart, and cuts.

A clustering of the groups into k clusters is the matrix Y with Y_gh = sqrt(w_g w_h) / w(Q) if g and
h share the cluster Q, else 0. With K_gh, the sum of w_i w_j |x_i - x_j|² / 2 over i in g and j in
h, its inertia is the sum of K_gh / w(Q) over all pairs that share a cluster, that is <C, Y> with
C_gh = K_gh / sqrt(w_g w_h). All terms are nonnegative, so that no digits cancel: merging groups
only adds entries of K.

Star cuts are inequalities that hold for clusterings and not for their relaxation. With
z_ij = 1 / w(Q) if groups i and j share the cluster Q, else 0, every i and every set T without i
satisfy

    sum over t in T of z_it  -  sum over pairs s < t in T of z_st  <=  z_ii.

If m members of T are in the cluster of i, the left side is at most (m - m (m - 1) / 2) / w(Q),
which is at most 1 / w(Q), and pairs in other clusters only lower it. One member of T gives the pair
cuts of the literature, two the triangle cuts [1]_.

A cut is a row of ``MOST_MEMBERS + 1`` indices: i, then the members of T, then -1. As a matrix,
<B, Y> is the left side minus the right side, with Y_ij = z_ij sqrt(w_i w_j).

References
----------
.. [1] V. Piccialli, A. M. Sudoso, A. Wiegele: "SOS-SDP: an exact solver for minimum sum-of-squares
   clustering", INFORMS Journal on Computing 34, 2022.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.jit import REORDER, jit
from evomeans.exact.points import UNIT, WeightedPoints, sums_by
from evomeans.typing import Flags, FloatArray, Integers

MARGIN = 1e-9
"""Relative; a pair is only excluded if it exceeds its limit by this much, far above rounding."""


@dataclass(frozen=True)
class Subproblem:
    """Clusterings of groups into k clusters that are cheaper than a known one.

    Parameters
    ----------
    K : (n, n) array
        Costs of pairs, see above.
    weights : (n,) array
        Weights of the groups.
    apart : (n, n) array of bool
        Pairs that no clustering cheaper than ``cutoff`` puts together.
    members : (n_points,) array
        The group of every point.
    k : int
    cutoff : float
        Inertia of the known clustering.
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

    @property
    def settled_inertia(self) -> float | None:
        """The inertia of the only clustering, where every group is a cluster."""
        return float(np.sum(np.diag(self.K) / self.weights)) if self.n == self.k else None


Cuts = NDArray[np.int32]
MOST_MEMBERS = 6
"""Members of T, at most."""


def no_cuts() -> Cuts:
    """Return an empty list of cuts."""
    return np.zeros((0, MOST_MEMBERS + 1), np.int32)


def are_valid(cuts: Cuts, n: int) -> bool:
    """Whether these are star cuts of n groups: members differ, and -1 only follows them."""
    if cuts.ndim != 2 or cuts.shape[1] != MOST_MEMBERS + 1:
        return False
    if len(cuts) == 0:
        return True
    used = cuts >= 0
    in_order = bool(np.all(used[:, :-1] >= used[:, 1:])) and bool(used[:, :2].all())
    ordered = np.sort(cuts, axis=1)
    repeated = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    return in_order and cuts.min() >= -1 and cuts.max() < n and not repeated.any()


@jit
def add_cuts(
    matrix: FloatArray, sizes: FloatArray, inverse_roots: FloatArray, cuts: Cuts, prices: FloatArray
) -> None:
    """Add sum_c prices[c] B_c to ``matrix``, and the absolute values of all terms to ``sizes``.

    Shapes: matrix, sizes (n, n); inverse_roots (n,), 1 / sqrt(w); cuts (m, MOST_MEMBERS + 1);
    prices (m,).
    """
    for c in range(cuts.shape[0]):
        price = prices[c]
        if price == 0.0:
            continue
        i = cuts[c, 0]
        term = price * inverse_roots[i] * inverse_roots[i]
        matrix[i, i] -= term
        sizes[i, i] += term
        for a in range(1, MOST_MEMBERS + 1):
            t = cuts[c, a]
            if t < 0:
                break
            term = 0.5 * price * inverse_roots[i] * inverse_roots[t]
            matrix[i, t] += term
            matrix[t, i] = matrix[i, t]
            sizes[i, t] += term
            sizes[t, i] = sizes[i, t]
            for b in range(1, a):
                s = cuts[c, b]
                term = 0.5 * price * inverse_roots[s] * inverse_roots[t]
                matrix[s, t] -= term
                matrix[t, s] = matrix[s, t]
                sizes[s, t] += term
                sizes[t, s] = sizes[s, t]


@jit(fastmath=REORDER)
def sweep_cuts(
    matrix: FloatArray,
    apart: NDArray[np.bool_],
    inverse_roots: FloatArray,
    cuts: Cuts,
    prices: FloatArray,
    n_sweeps: int,
) -> None:
    """Hildreth's sweeps towards the projection onto {V >= 0, V[apart] = 0, all cuts}.

    Dual coordinate ascent: every visit of a cut sets its price to the best value, given all others.
    ``matrix`` holds the point to project minus sum_c prices[c] B_c, and V is its positive part.

    Shapes: matrix, apart (n, n); inverse_roots (n,); cuts (m, MOST_MEMBERS + 1); prices (m,).
    """
    m = cuts.shape[0]
    for sweep in range(n_sweeps):
        for step in range(m):
            c = step if sweep % 2 == 0 else m - 1 - step
            if sweep > 0 and prices[c] == 0.0:
                continue
            i = cuts[c, 0]
            own = inverse_roots[i]
            norm = own * own * own * own
            excess = -max(matrix[i, i], 0.0) * own * own
            size = 0
            for a in range(1, MOST_MEMBERS + 1):
                t = cuts[c, a]
                if t < 0:
                    break
                size = a
                factor = own * inverse_roots[t]
                norm += 0.5 * factor * factor
                if matrix[i, t] > 0.0 and not apart[i, t]:
                    excess += matrix[i, t] * factor
                for b in range(1, a):
                    s = cuts[c, b]
                    factor = inverse_roots[s] * inverse_roots[t]
                    norm += 0.5 * factor * factor
                    if matrix[s, t] > 0.0 and not apart[s, t]:
                        excess -= matrix[s, t] * factor
            change = max(excess / norm, -prices[c])
            if change == 0.0:
                continue
            prices[c] += change
            matrix[i, i] += change * own * own
            for a in range(1, size + 1):
                t = cuts[c, a]
                matrix[i, t] -= 0.5 * change * own * inverse_roots[t]
                matrix[t, i] = matrix[i, t]
                for b in range(1, a):
                    s = cuts[c, b]
                    matrix[s, t] += 0.5 * change * inverse_roots[s] * inverse_roots[t]
                    matrix[t, s] = matrix[s, t]


@dataclass(frozen=True)
class Multipliers:
    """Multipliers of Y >= 0 and of star cuts. Any values give a valid bound, good ones a high one.

    Parameters
    ----------
    slack : (n, n) array
        S, symmetric. Only its positive part counts, except for pairs that must stay apart, where
        any sign is allowed.
    cuts : (m, MOST_MEMBERS + 1) array of int32
    prices : (m,) array
        Of the cuts. Negative ones count as zero.
    """

    slack: FloatArray
    cuts: Cuts
    prices: FloatArray

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


MOST_LLOYD_STEPS = 100


def rounded_clustering(
    points: WeightedPoints, problem: Subproblem, Y: FloatArray
) -> Integers | None:
    """Turn Y into labels of the points: k distant rows, then K-means; None if a cluster dies.

    Row g of Y says with whom group g shares its cluster, and so where the centre would be.
    """
    weighted = (points.values * points.weights[:, None]).T
    sums = np.stack([sums_by(problem.members, column, problem.n) for column in weighted], axis=1)
    Z = np.maximum(Y / problem.products, 0.0)
    centres = Z @ sums / np.maximum(Z @ problem.weights, 1e-300)[:, None]
    chosen = [int(np.argmax(problem.weights))]
    distance = np.full(problem.n, np.inf)
    for _ in range(problem.k - 1):
        offsets = centres - centres[chosen[-1]]
        distance = np.minimum(distance, np.einsum("ij,ij->i", offsets, offsets))
        chosen.append(int(np.argmax(distance * problem.weights)))
    return kmeans(points, centres[chosen])


def kmeans(points: WeightedPoints, centres: FloatArray) -> Integers | None:
    """Lloyd's algorithm; None if a cluster loses all its points."""
    k, labels = len(centres), np.full(points.n, -1)
    for _ in range(MOST_LLOYD_STEPS):
        # Up to a term that is the same for all centres.
        scores = points.values @ centres.T - np.einsum("ij,ij->i", centres, centres) / 2
        nearest = scores.argmax(axis=1)
        if np.array_equal(nearest, labels):
            break
        labels = nearest
        if len(np.unique(labels)) < k:
            return None
        centres = points.means(labels)
    return labels
