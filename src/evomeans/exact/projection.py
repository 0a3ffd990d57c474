"""The steps of `admm`: element-wise kernels, and the projection by eigenvectors.

The nearest matrix û û' + Y' with 0 <= Y' <= I, trace k - 1 and Y' û = 0 has the eigenvectors of A,
and the eigenvalues clip(λ - t, 0, 1) with the t that gives the right trace.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from evomeans.compiled.jit import REORDER, jit
from evomeans.exact.limits import Threads
from evomeans.typing import Flags, FloatArray


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


SMALLEST_FOR_SUBSETS = 120
"""Groups from which on a few eigenvectors are found faster than all of them."""
SMALLEST_FOR_SINGLE = 60
"""Groups from which on single precision pays for the conversion."""


class Projector(Protocol):
    """Projects matrices of one subproblem, again and again."""

    fine: bool
    """Whether eigenvectors are needed in double precision."""
    rank: int
    """Of the last Y'."""

    def project(self, A: FloatArray, size: float) -> FloatArray:
        """Return the projection of A, whose norm is ``size``; A is overwritten."""

    def lowest_sum(self, A: FloatArray, count: int) -> float:
        """Return the sum of the lowest eigenvalues of A; A is overwritten."""


class CpuProjector:
    """Eigen-decompositions by LAPACK.

    Parameters
    ----------
    v : (n,) array
        The vector û.
    k : int
        Number of clusters.
    """

    def __init__(self, v: FloatArray, k: int) -> None:
        self._v, self._k = v, k
        self._vv = np.outer(v, v)
        self.fine = len(v) < SMALLEST_FOR_SINGLE
        self.rank = len(v)

    def project(self, A: FloatArray, size: float) -> FloatArray:
        """Return the projection of A, whose norm is ``size``; A is overwritten."""
        move_down(A, self._v, size)
        if not self.fine:
            with np.errstate(over="ignore"):
                single = A.astype(np.float32)
            # Weights out of all proportion need the range of double precision, too.
            self.fine = not np.isfinite(single).all()
        values, Q = self._leading_pairs(A if self.fine else single)
        used = values > 0
        self.rank = int(np.count_nonzero(used))
        Q = Q[:, used]
        return np.asarray((Q * values[used].astype(Q.dtype)) @ Q.T + self._vv)

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

    def lowest_sum(self, A: FloatArray, count: int) -> float:
        """Return the sum of the lowest eigenvalues of A; A is overwritten."""
        return lowest_sum(A, count)


class TorchProjector(CpuProjector):
    """The same on a GPU, by PyTorch, always in double precision.

    Only the search for multipliers uses it. The inequality that counts is evaluated on the CPU.

    Parameters
    ----------
    v, k
        As above.
    device : torch.device
    """

    def __init__(self, v: FloatArray, k: int, device: Any) -> None:
        # Imported here: PyTorch is not needed, and may not exist, without a GPU.
        import torch

        super().__init__(v, k)
        self.fine, self._torch, self._device = True, torch, device

    def project(self, A: FloatArray, size: float) -> FloatArray:
        """Return the projection of A, whose norm is ``size``; A is overwritten."""
        move_down(A, self._v, size)
        found, Q = self._decomposed(self._torch.linalg.eigh, A)
        values = projected_values(found.cpu().numpy(), self._k - 1)
        used = int(np.argmax(values > 0))
        self.rank = len(values) - used
        Q = Q[:, used:]
        scaled = Q * self._torch.from_numpy(values[used:]).to(self._device)
        Y: FloatArray = (scaled @ Q.T).cpu().numpy()
        Y += self._vv
        return Y

    def lowest_sum(self, A: FloatArray, count: int) -> float:
        """Return the sum of the lowest eigenvalues of A."""
        return float(self._decomposed(self._torch.linalg.eigvalsh, A)[:count].sum())

    def _decomposed(self, function: Any, A: FloatArray) -> Any:
        try:
            return function(self._torch.from_numpy(A).to(self._device))
        except self._torch.linalg.LinAlgError as error:
            raise np.linalg.LinAlgError(str(error)) from error


def projected_values(values: NDArray[Any], total: float) -> FloatArray:
    """Return clip(λ - t, 0, 1) with this sum, for ascending eigenvalues λ."""
    if not np.isfinite(values).all():
        raise np.linalg.LinAlgError("The eigenvalues are not finite.")
    found = values.astype(np.float64)
    capped_simplex(found, total)
    return found


def move_down(A: FloatArray, v: FloatArray, size: float) -> None:
    """Make v an eigenvector of A whose eigenvalue lies below all others, in place."""
    product = A @ v
    shift(A, product - (float(v @ product) / 2 - 1.5 * size) * v, v)


def lowest_sum(A: FloatArray, count: int) -> float:
    """Return the sum of the lowest eigenvalues of A; A is overwritten."""
    options: dict[str, Any] = {"driver": "evr", "check_finite": False, "overwrite_a": True}
    return float(eigh(A, eigvals_only=True, subset_by_index=[0, count - 1], **options).sum())


@dataclass(frozen=True)
class ProjectionTools:
    """What a search for multipliers works with. None of it changes what is valid.

    Parameters
    ----------
    threads : Threads
        For cuts, and for cases side by side. They do not change the result.
    projector : callable
        Returns a :class:`Projector`, given û and the number of clusters.
    """

    threads: Threads = field(default_factory=Threads)
    projector: Callable[[FloatArray, int], Projector] = CpuProjector
