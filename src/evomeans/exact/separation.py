"""A proof in closed form for well-separated clusters, for any number of points.

For clusters a of weight n_a with means c_a, let

    Δ_ab = the least value of |x - c_b|² - |x - c_a|² over the points x of cluster a,
    z    = the least value of 2 n_a n_b / (n_a + n_b) Δ_ab over all a and b,
    ρ_ab = n_a n_b |c_a - c_b|² - z (n_a + n_b) / 2.

If z > 0, the clustering is optimal as soon as no eigenvalue of the matrix N exceeds z, where N has
the blocks

    N_ab = R_a (2 I - 4 n_a n_b / ρ_ab (c_a - c_b)(c_a - c_b)') R_b',    N_aa = 2 R_a R_a',

and R_a' R_a is the scatter matrix of cluster a. N has k d rows, however many points there are. In
any case, no clustering costs less than the given one by more than half of the sum of the k largest
values of max(0, eigenvalue - z).

This is the dual certificate of [1]_ after two simplifications, which follow from the definitions of
the quantities there: its vectors are affine functions of the points, so all its eigenvectors
that matter are combinations of centred columns. docs/background/proofs.md has the whole argument.

References
----------
.. [1] T. Iguchi, D. G. Mixon, J. Peterson, S. Villar: "Probably certifiably correct k-means
   clustering", Mathematical Programming 165, 2017.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from evomeans.exact.points import SMALLEST_INERTIA, UNIT, WeightedPoints, smallest_cost, sums_by
from evomeans.typing import FloatArray, Integers

MOST_ROWS = 3000
"""Of N; more would take minutes."""
SHARES = (1 - 1e-6, 0.75, 0.5, 0.25)
"""Any smaller z is valid too, and the best one is taken. A share below 1 also keeps rounding from
making a multiplier negative."""


def separation_bound(points: WeightedPoints, labels: Integers) -> float:
    """Return a lower bound in the units of the points; 0 if the clusters are not separated."""
    n, d = points.values.shape
    k = int(labels.max()) + 1
    if not 1 < k < n or k * d > MOST_ROWS:
        return 0.0
    inertia = points.inertia(labels)
    if inertia < SMALLEST_INERTIA:
        return 0.0
    clusters = SeparatedClusters.of_points(points, labels)
    z = clusters.least_margin()
    if not z > 0:
        return 0.0
    excess: float = min(clusters.excess(share * z) for share in SHARES)
    # The excess is rounded up by itself; the inertia may be too high by a share.
    bound = inertia * (1 - 8 * (n + d + 40) * UNIT) - excess / 2
    return max(0.0, bound * (1 - 2 * points.weight_error) - smallest_cost(points))


@dataclass(frozen=True)
class SeparatedClusters:
    """What the proof needs to know of the clusters."""

    offsets: list[FloatArray]
    """Points of each cluster minus its mean."""
    factors: FloatArray
    """R_a, shape (k, d, d)."""
    means: FloatArray
    sizes: FloatArray
    """Weights of the clusters."""
    error: float
    """Bound for the errors of means and offsets, in every coordinate."""
    missed: float
    """Frobenius norm of what the factors miss of the offsets times roots of weights."""
    tilt: float
    """How far the factorisation is from an orthogonal one."""

    @classmethod
    def of_points(cls, points: WeightedPoints, labels: Integers) -> SeparatedClusters:
        """Factorise the scatter of every cluster."""
        n, d = points.values.shape
        k = int(labels.max()) + 1
        middle = points.values.mean(axis=0)
        centred, means = points.values - middle, points.means(labels) - middle
        order = np.argsort(labels, kind="stable")
        bounds = np.searchsorted(labels[order], np.arange(1, k))
        parts = [np.asarray(part) for part in np.split(order, bounds)]
        offsets = [centred[part] - means[a] for a, part in enumerate(parts)]
        extent = max(float(np.ptp(part, axis=0).max()) for part in offsets)
        error = 16 * UNIT * (float(np.abs(points.values).max()) + n * extent)
        factors, missed, tilt = np.zeros((k, d, d)), 0.0, 0.0
        for a, part in enumerate(parts):
            weighted = offsets[a] * np.sqrt(points.weights[part])[:, None]
            Q, R = np.linalg.qr(weighted)
            factors[a, : len(R)] = R
            missed += float(np.linalg.norm(weighted - Q @ R)) + 4 * d * UNIT * float(
                np.linalg.norm(weighted)
            ) * math.sqrt(d)
            rest = float(np.linalg.norm(Q.T @ Q - np.eye(len(R))))
            tilt = max(tilt, rest + 4 * len(part) * UNIT * d)
        sizes = sums_by(labels, points.weights)
        missed += math.sqrt(float(sizes.sum()) * d) * error
        return cls(offsets, factors, means, sizes, error, missed, tilt)

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
