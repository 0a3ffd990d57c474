"""A node of the search tree: groups of points, and pairs of groups that must stay apart.

A clustering of the groups into k clusters is the matrix Y with Y_gh = sqrt(w_g w_h) / w(Q) if g and
h share the cluster Q, else 0. With K_gh, the sum of w_i w_j |x_i - x_j|² / 2 over i in g and j in
h, its inertia is the sum of K_gh / w(Q) over all pairs that share a cluster, that is <C, Y> with
C_gh = K_gh / sqrt(w_g w_h). All terms are nonnegative, so that no digits cancel: merging groups
only adds entries of K.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evomeans.exact.points import UNIT, Floats, Indices, WeightedPoints

Mask = NDArray[np.bool_]

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

    K: Floats
    weights: Floats
    apart: Mask
    members: Indices
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
    def roots(self) -> Floats:
        """Square roots of the weights."""
        return np.sqrt(self.weights)

    @cached_property
    def products(self) -> Floats:
        """sqrt(w_g w_h) of all pairs."""
        return np.outer(self.roots, self.roots)

    @cached_property
    def costs(self) -> Floats:
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

    def with_apart(self, pairs: Mask) -> Subproblem:
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

    def new_places(self, a: int, b: int) -> Indices:
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
