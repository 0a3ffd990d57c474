"""The linear program of column generation, by an interior-point method.

A fractional clustering takes the cluster Q with a share z_Q >= 0. The program is

    least sum of c_Q z_Q   such that every group is covered: sum of z_Q over Q with i in Q >= 1,
                           and at most k clusters are taken: sum of z_Q <= k,

and its dual, the prices λ of groups and σ of a cluster,

    largest sum of λ - k σ   such that λ(Q) - σ <= c_Q for every cluster Q, λ >= 0, σ >= 0.

Clusterings are highly degenerate vertices: k clusters cover all points, so a whole polytope of
prices is optimal for them. The simplex method returns corners of it, far from the prices that also
hold for the clusters that are still missing. An interior-point method that stops early returns
prices in the middle of it, and needs few rounds of columns [1]_, [2]_.

References
----------
.. [1] O. du Merle, P. Hansen, B. Jaumard, N. Mladenović: "An interior point algorithm for minimum
   sum-of-squares clustering", SIAM Journal on Scientific Computing 21, 2000.
.. [2] J. Gondzio, P. González-Brevis, P. Munari: "New developments in the primal-dual column
   generation technique", European Journal of Operational Research 224, 2013.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import csc_array

from evomeans.compiled.jit import jit
from evomeans.typing import FloatArray, Integers

MOST_NEWTON_STEPS = 60
SHORT = 0.99
"""Share of the way to the border that a step goes."""

Members = NDArray[np.int32]
Direction = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


@dataclass(frozen=True)
class ProgramSolution:
    """Prices λ of n groups and σ, shares z of all m clusters, and the value of the program."""

    prices: FloatArray
    sigma: float
    shares: FloatArray
    value: float


class Master:
    """The linear program over the clusters that are known so far.

    To leave a group uncovered costs the ``dearest`` price, more than any other.
    """

    def __init__(self, n: int, k: int, dearest: float) -> None:
        self.n, self.k = n, k
        self.clusters: list[Members] = []
        self._costs: list[float] = []
        self._known: set[bytes] = set()
        self._dearest = dearest

    def knows(self, members: Members) -> bool:
        """Whether a cluster was added before; the members are sorted."""
        return members.tobytes() in self._known

    def add(self, members: Members, cost: float) -> None:
        """Add a cluster that is not known."""
        self._known.add(members.tobytes())
        self.clusters.append(members)
        self._costs.append(cost)

    def solve(self, start: ProgramSolution, accuracy: float) -> ProgramSolution | None:
        """Return a solution near the central path whose gap is a small share of its value.

        The start has shares of the first clusters; those of the others are small. The result is
        None if the arithmetic fails, as it may in odd units.
        """
        with np.errstate(all="ignore"):
            found = self._solve(start, accuracy)
        is_good = np.isfinite(found.prices).all() and np.isfinite(found.shares).all()
        return found if is_good else None

    def _solve(self, start: ProgramSolution, accuracy: float) -> ProgramSolution:
        n, m = self.n, len(self.clusters)
        program = _Program(self.clusters, n)
        c = np.append(self._costs, np.full(n, self._dearest))
        b = np.append(np.ones(n), -float(self.k))
        x = np.full(m + n, 1e-3)
        x[: len(start.shares)] = np.maximum(start.shares, 1e-4)
        x[m:] = 1e-5
        y = np.maximum(np.append(start.prices, start.sigma), 1e-6)
        A, At = program.A, program.A.T
        z, s = np.maximum(c - At @ y, 1e-3), np.maximum(A @ x - b, 1e-3)
        largest = max(1.0, float(np.abs(c[:m]).max(initial=0.0)))
        for _ in range(MOST_NEWTON_STEPS):
            missing, excess = b - A @ x + s, c - At @ y - z
            products = float(x @ z + s @ y)
            is_feasible = np.abs(excess).max() < max(1e-9, 0.1 * accuracy) * largest
            is_feasible = is_feasible and np.abs(missing).max() < max(1e-6, 0.1 * accuracy)
            if is_feasible and products <= accuracy * abs(float(c @ x)):
                break
            direction = program.newton(x, y, z, s, missing, excess)
            if direction is None:
                break  # as far as the arithmetic goes
            # Mehrotra's predictor and corrector.
            dx, dy, dz, ds = direction(-x * z, -s * y)
            primal, dual = min(_step(x, dx), _step(s, ds)), min(_step(z, dz), _step(y, dy))
            after = (x + primal * dx) @ (z + dual * dz) + (s + primal * ds) @ (y + dual * dy)
            centring = max((after / products) ** 3, 0.05 if min(primal, dual) < 0.5 else 0.01)
            goal = centring * products / (m + 2 * n + 1)
            dx, dy, dz, ds = direction(goal - x * z - dx * dz, goal - s * y - ds * dy)
            primal = SHORT * min(_step(x, dx), _step(s, ds))
            dual = SHORT * min(_step(z, dz), _step(y, dy))
            x, s, y, z = x + primal * dx, s + primal * ds, y + dual * dy, z + dual * dz
        return ProgramSolution(y[:n], float(y[n]), x[:m], float(c @ x))


def together(n: int, clusters: Sequence[Members], shares: FloatArray) -> FloatArray:
    """Return for every pair of groups the shares of the clusters that hold both."""
    if not clusters:
        return np.zeros((n, n))
    starts = np.cumsum([0, *map(len, clusters)]).astype(np.int64)
    found = np.empty((n + 1, n + 1))
    normal_matrix(starts, np.concatenate(clusters), np.zeros(len(shares)), shares, found)
    lower = np.tril(found[:n, :n])
    return lower + np.tril(lower, -1).T


class _Program:
    """The matrix A; its last row holds -1 for clusters, and 0 for groups left uncovered."""

    def __init__(self, clusters: Sequence[Members], n: int) -> None:
        self.members = np.concatenate([*clusters, np.arange(n, dtype=np.int32)])
        lengths = [*map(len, clusters), *([1] * n)]
        self.starts = np.cumsum([0, *lengths]).astype(np.int64)
        self.counted = np.append(np.ones(len(clusters)), np.zeros(n))
        self._matrix = np.empty((n + 1, n + 1))
        # The last row comes first in every column, and so in every sum.
        rows = np.insert(self.members, self.starts[:-1], n)
        entries = np.insert(np.ones(len(self.members)), self.starts[:-1], -self.counted)
        ends = self.starts + np.arange(len(self.starts))
        self.A = csc_array((entries, rows, ends), shape=(n + 1, len(lengths)))

    def newton(
        self,
        x: FloatArray,
        y: FloatArray,
        z: FloatArray,
        s: FloatArray,
        missing: FloatArray,
        excess: FloatArray,
    ) -> Callable[[FloatArray, FloatArray], Direction] | None:
        """Return Newton's method for A x - s = b, A'y + z = c and products x z, s y at a point.

        It solves x dz + z dx = xz and s dy + y ds = sy for the ``missing`` of b and the ``excess``
        of c. None if the normal equations are singular.
        """
        A, ratios, matrix = self.A, x / z, self._matrix
        normal_matrix(self.starts, self.members, self.counted, ratios, matrix)
        matrix[np.diag_indices_from(matrix)] += s / y + 1e-12 * ratios.max()
        try:
            factor = cho_factor(matrix, lower=True, check_finite=False)
        except LinAlgError:
            return None

        def direction(xz: FloatArray, sy: FloatArray) -> Direction:
            right = missing - A @ ((xz - x * excess) / z) + sy / y
            dy = cho_solve(factor, right, check_finite=False)
            dz = excess - A.T @ dy
            return (xz - x * dz) / z, dy, dz, (sy - s * dy) / y

        return direction


def _step(values: FloatArray, change: FloatArray) -> float:
    """Return the largest step, at most 1, that keeps all values nonnegative."""
    falls = change < 0
    return min(1.0, float((-values[falls] / change[falls]).min(initial=1.0)))


@jit
def normal_matrix(
    starts: Integers, members: Members, counted: FloatArray, ratios: FloatArray, found: FloatArray
) -> None:
    """Fill the lower triangle of A diag(ratios) A'; row n of A holds -1 for clusters that count.

    Shapes: starts (m + 1,), members of all clusters, counted, ratios (m,), found (n + 1, n + 1).
    """
    n = found.shape[0] - 1
    for i in range(n + 1):
        for j in range(i + 1):
            found[i, j] = 0.0
    for q in range(ratios.shape[0]):
        ratio, last = ratios[q], ratios[q] * counted[q]
        for s in range(starts[q], starts[q + 1]):
            i = members[s]
            for t in range(starts[q], s + 1):
                found[i, members[t]] += ratio
            found[n, i] -= last
        found[n, n] += last
