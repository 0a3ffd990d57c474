"""What a proof is, the kinds without cases, and what proves a bound without a search.

These are problems that are solved directly, and well-separated clusters, for which there is a proof
in closed form: the dual certificate of [1]_, simplified (docs/background/proofs.md).

References
----------
.. [1] T. Iguchi, D. G. Mixon, J. Peterson, S. Villar: "Probably certifiably correct k-means
   clustering", Mathematical Programming 165, 2017.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

import numpy as np
from scipy.linalg import eigh

from evomeans.exact.line import cluster_line
from evomeans.exact.points import SMALLEST_INERTIA, UNIT, WeightedPoints, smallest_cost, sums_by
from evomeans.typing import FloatArray, Integers


class Method(StrEnum):
    """How a bound is proven."""

    DIRECT = "direct"
    SEPARATION = "separation"
    RELAXATION = "relaxation"
    PLANE = "plane"
    PARTS = "parts"


class InvalidProofError(ValueError):
    """A proof that cannot be followed: damaged, or of other samples."""


class Proof(ABC):
    """What proves a lower bound for the inertia of all clusterings."""

    method: ClassVar[Method]

    def lower_bound(self, points: WeightedPoints, k: int) -> float:
        """Return the bound in the units of the points, with rounding allowed for.

        Only the final inequalities are evaluated; how the proof was found plays no role.
        """
        return 0.0 if points.n <= k else self._bound(points, k)

    @abstractmethod
    def _bound(self, points: WeightedPoints, k: int) -> float:
        """Return the bound for more points than clusters."""


@dataclass(frozen=True)
class DirectProof(Proof):
    """Solving the problem again is the proof; see `direct_optimum`."""

    method = Method.DIRECT

    def _bound(self, points: WeightedPoints, k: int) -> float:
        if not is_direct(points, k):
            raise InvalidProofError("The proof is one for simpler problems.")
        return direct_optimum(points, k)[0]


@dataclass(frozen=True)
class SeparationProof(Proof):
    """The clustering of the points itself is the proof; see `separation_bound`."""

    method = Method.SEPARATION
    labels: Integers

    def _bound(self, points: WeightedPoints, k: int) -> float:
        labels = self.labels
        _check_shape(labels, points.n)
        if not 0 <= labels.min() <= labels.max() < points.n:
            raise InvalidProofError("The clustering of the proof has labels that are out of range.")
        # One with fewer than k clusters proves nothing.
        is_whole = len(np.unique(labels)) == k == labels.max() + 1
        return separation_bound(points, labels) if is_whole else 0.0


@dataclass(frozen=True)
class PartsProof(Proof):
    """The part of every point, and a proof for each part: the bounds add up; see `parts`."""

    method = Method.PARTS
    parts: Integers
    proofs: tuple[Proof | None, ...]

    def _bound(self, points: WeightedPoints, k: int) -> float:
        parts, proofs = self.parts, self.proofs
        _check_shape(parts, points.n)
        if len(proofs) > points.n:
            raise InvalidProofError(
                f"The proof has {len(proofs)} parts of {points.n} distinct samples."
            )
        if not 0 <= parts.min() <= parts.max() < len(proofs):
            raise InvalidProofError("A point belongs to a part without a proof.")
        bounds = [
            proof.lower_bound(points.restricted(np.flatnonzero(parts == number)), k)
            for number, proof in enumerate(proofs)
            if proof is not None
        ]
        return max(0.0, math.fsum(bounds) * (1 - 1e-15))


@dataclass(frozen=True)
class Finding:
    """What an attempt has proven, in the units of the points."""

    lower: float  # no clustering into k clusters costs less
    labels: Integers  # the best clustering known, perhaps better than the given one
    proof: Proof
    reason: str = ""  # why this method was used
    n_nodes: int = 0
    n_cuts: int = 0


def _check_shape(values: np.ndarray, n: int) -> None:
    if values.shape != (n,):
        raise InvalidProofError(
            f"The proof is one for {values.size} distinct samples, not for {n}."
        )


# ---- problems that need no search: one cluster, one column, at most k + 1 points -----------------

MOST_COMPARED = 4000
"""Points for which all pairs are compared, where all clusters but one have a single point."""


def is_direct(points: WeightedPoints, k: int) -> bool:
    """Whether `direct_optimum` has an answer."""
    n = points.n
    pair_left = k == n - 1 and n <= MOST_COMPARED
    return k == 1 or n <= k or pair_left or points.values.shape[1] == 1


def direct_optimum(points: WeightedPoints, k: int) -> tuple[float, Integers]:
    """Return a lower bound, below the optimum by no more than rounding, and optimal labels.

    Both are in terms of the points. What is subtracted: the share by which `WeightedPoints.inertia`
    or the cost of a pair may be too high, what underflow may hide, and for a column what
    `line` may lose.
    """
    if not is_direct(points, k):
        raise ValueError(f"{points.n} points and {k} clusters need a search.")
    n, d = points.values.shape
    if n <= k:
        return 0.0, np.arange(n)
    if k == 1:
        labels = np.zeros(n, np.int64)
        return _lowered(points, points.inertia(labels), 0.0), labels
    if d == 1:
        found = cluster_line(points.values[:, 0], k, points.weights)
        doubt = float(np.ldexp(found.doubt, found.unit_exponent))
        return _lowered(points, points.inertia(found.segments), doubt), found.segments
    w = points.weights
    costs = points.squared_distances() * (w[:, None] / (w[:, None] + w) * w)
    np.fill_diagonal(costs, np.inf)
    a, b = sorted(divmod(int(costs.argmin()), n))
    labels = np.arange(n)
    labels[b] = a
    labels[labels > b] -= 1
    return _lowered(points, float(costs[a, b]), 0.0), labels


def _lowered(points: WeightedPoints, inertia: float, doubt: float) -> float:
    n, d = points.values.shape
    relative = 8 * (n + d + 40) * UNIT + 2 * points.weight_error
    return max(0.0, inertia * (1 - relative) - doubt - smallest_cost(points))


# ---- well-separated clusters ---------------------------------------------------------------------

MOST_ROWS = 3000  # of N; more would take minutes
SHARES = (1 - 1e-6, 0.75, 0.5, 0.25)
"""Any smaller z is valid too, and the best one is taken. A share below 1 also keeps rounding from
making a multiplier negative."""


def separation_bound(points: WeightedPoints, labels: Integers) -> float:
    """Return a lower bound in the units of the points; 0 if the clusters are not separated.

    For clusters a of weight n_a with means c_a, let

        Δ_ab = the least value of |x - c_b|² - |x - c_a|² over the points x of cluster a,
        z    = the least value of 2 n_a n_b / (n_a + n_b) Δ_ab over all a and b,
        ρ_ab = n_a n_b |c_a - c_b|² - z (n_a + n_b) / 2,
        N_ab = R_a (2 I - 4 n_a n_b / ρ_ab (c_a - c_b)(c_a - c_b)') R_b',    N_aa = 2 R_a R_a',

    where R_a' R_a is the scatter matrix of cluster a. If z > 0, no clustering costs less than the
    given one by more than half of the sum of the k largest values of max(0, eigenvalue of N - z).
    N has k d rows, however many points there are.
    """
    n, d = points.values.shape
    k = int(labels.max()) + 1
    if not 1 < k < n or k * d > MOST_ROWS:
        return 0.0
    inertia = points.inertia(labels)
    if inertia < SMALLEST_INERTIA:
        return 0.0
    clusters = SeparatedClusters(points, labels)
    z = clusters.least_margin()
    if not z > 0:
        return 0.0
    excess: float = min(clusters.excess(share * z) for share in SHARES)
    # The excess is rounded up by itself; the inertia may be too high by a share.
    bound = inertia * (1 - 8 * (n + d + 40) * UNIT) - excess / 2
    return max(0.0, bound * (1 - 2 * points.weight_error) - smallest_cost(points))


class SeparatedClusters:
    """What the proof needs to know of the clusters, with bounds for the errors of all that.

    ``offsets`` are the points of each cluster minus its mean, ``sizes`` the weights of clusters,
    and ``factors`` R, of shape (k, d, d). Means and offsets are off by at most ``error`` in every
    coordinate, ``missed`` is the Frobenius norm of what the factors miss of the offsets times roots
    of weights, and ``tilt`` how far the factorisation is from an orthogonal one.
    """

    def __init__(self, points: WeightedPoints, labels: Integers) -> None:
        n, d = points.values.shape
        k = int(labels.max()) + 1
        middle = points.values.mean(axis=0)
        centred, self.means = points.values - middle, points.means(labels) - middle
        order = np.argsort(labels, kind="stable")
        bounds = np.searchsorted(labels[order], np.arange(1, k))
        parts = [np.asarray(part) for part in np.split(order, bounds)]
        self.offsets = [centred[part] - self.means[a] for a, part in enumerate(parts)]
        extent = max(float(np.ptp(part, axis=0).max()) for part in self.offsets)
        self.error = 16 * UNIT * (float(np.abs(points.values).max()) + n * extent)
        self.factors, self.missed, self.tilt = np.zeros((k, d, d)), 0.0, 0.0
        for a, part in enumerate(parts):
            weighted = self.offsets[a] * np.sqrt(points.weights[part])[:, None]
            Q, R = np.linalg.qr(weighted)
            self.factors[a, : len(R)] = R
            rounding = 4 * d * UNIT * float(np.linalg.norm(weighted)) * math.sqrt(d)
            self.missed += float(np.linalg.norm(weighted - Q @ R)) + rounding
            rest = float(np.linalg.norm(Q.T @ Q - np.eye(len(R))))
            self.tilt = max(self.tilt, rest + 4 * len(part) * UNIT * d)
        self.sizes = sums_by(labels, points.weights)
        self.missed += math.sqrt(float(self.sizes.sum()) * d) * self.error

    def least_margin(self) -> float:
        """Return z, lowered by what rounding may have added to Δ."""
        k, d = self.means.shape
        least = math.inf
        for a in range(k):
            apart = self.means - self.means[a]
            # |x - c_b|² - |x - c_a|² = |c_b - c_a|² - 2 (x - c_a)'(c_b - c_a)
            lengths = np.square(apart).sum(axis=1)
            margin = lengths - 2 * (self.offsets[a] @ apart.T).max(axis=0)
            largest = float(np.square(self.offsets[a]).sum(axis=1).max())
            doubt = 8 * math.sqrt(d) * self.error * (np.sqrt(lengths) + math.sqrt(largest))
            doubt += 8 * (d + 8) * UNIT * (lengths + largest)
            shares = 2 * self.sizes[a] * self.sizes / (self.sizes[a] + self.sizes)
            scaled = shares * (margin - doubt)
            scaled[a] = math.inf
            least = min(least, float(scaled.min()))
        return least

    def excess(self, z: float) -> float:
        """Return the sum of the k largest values of max(0, eigenvalue of N - z), rounded up."""
        k, d = self.means.shape
        T, relative = self._middle(z)
        if not math.isfinite(relative):
            return math.inf
        R = self.factors
        N = np.einsum("aij,ajbl,bml->aibm", R, T, R, optimize=True).reshape(k * d, k * d)
        N = (N + N.T) / 2
        values, Q = eigh(N)
        rounding = 4 * k * d * UNIT * float(np.abs(values).sum())
        residual = float(np.linalg.norm(N - (Q * values) @ Q.T)) + rounding
        tilt = float(np.linalg.norm(Q.T @ Q - np.eye(k * d))) + 4 * (k * d) ** 2 * UNIT
        size_T, size_R = float(np.linalg.norm(T)), float(np.linalg.norm(R))
        # If the offsets are off by E, the matrix is off by at most |T| (2 |R| |E| + |E|²).
        doubt = size_T * self.missed * (2 * size_R + self.missed)
        doubt += (relative + 16 * (k * d + 40) * UNIT) * size_T * size_R**2
        allowance = residual + (tilt + 2 * self.tilt) * float(np.abs(values).max()) + doubt
        exceeding: FloatArray = np.maximum(0.0, values + 2 * allowance - z)
        return float(np.sort(exceeding)[::-1][:k].sum())

    def _middle(self, z: float) -> tuple[FloatArray, float]:
        """Return the matrix between the factors, and the relative error of its blocks."""
        k, d = self.means.shape
        T = np.empty((k, d, k, d))
        relative = 0.0
        for a in range(k):
            T[a, :, a, :] = 2 * np.eye(d)
            for b in range(a):
                apart, product = self.means[a] - self.means[b], self.sizes[a] * self.sizes[b]
                length = float(apart @ apart)
                rho = product * length - z * (self.sizes[a] + self.sizes[b]) / 2
                if not rho > 0:
                    return T, math.inf
                T[a, :, b, :] = 2 * np.eye(d) - 4 * product / rho * np.outer(apart, apart)
                T[b, :, a, :] = T[a, :, b, :]
                step = 4 * math.sqrt(d) * self.error / math.sqrt(length)
                step += 8 * (sum(map(len, self.offsets)) + d) * UNIT
                relative = max(relative, 4 * step * (1 + product * length / rho))
        return T, relative
