"""The steps of `admm`: element-wise kernels, and the projection by eigenvectors.

The nearest matrix û û' + Y' with 0 <= Y' <= I, trace k - 1 and Y' û = 0 has the eigenvectors of A,
and the eigenvalues clip(λ - t, 0, 1) with the t that gives the right trace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from evomeans.compiled.jit import REORDER, jit
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
"""Groups from which on single precision is worth the conversion."""


class Projector:
    """Projects matrices of one subproblem, again and again, with eigenvectors by LAPACK.

    ``v`` is the vector û. ``fine`` says whether eigenvectors are needed in double precision, and
    ``rank`` is that of the last Y'.
    """

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
        return self._scaled(A) + self._vv

    def _scaled(self, A: FloatArray) -> NDArray[Any]:
        """Return Y', in the precision in which it was computed."""
        if not self.fine:
            with np.errstate(over="ignore"):
                single = A.astype(np.float32)
            # Weights out of all proportion need the range of double precision, too.
            self.fine = not np.isfinite(single).all()
        values, Q = self._leading_pairs(A if self.fine else single)
        used = values > 0
        self.rank = int(np.count_nonzero(used))
        Q = Q[:, used]
        return (Q * values[used].astype(Q.dtype)) @ Q.T

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
        options: dict[str, Any] = {"driver": "evr", "check_finite": False, "overwrite_a": True}
        return float(eigh(A, eigvals_only=True, subset_by_index=[0, count - 1], **options).sum())


class TorchProjector(Projector):
    """The same on a GPU, by PyTorch, always in double precision.

    Only the search for multipliers uses it. The inequality that counts is evaluated on the CPU.
    """

    def __init__(self, v: FloatArray, k: int, device: Any) -> None:
        # Imported here: PyTorch is not needed, and may not exist, without a GPU.
        import torch

        super().__init__(v, k)
        self.fine, self._torch, self._device = True, torch, device

    def _scaled(self, A: FloatArray) -> NDArray[Any]:
        found, Q = self._decomposed(self._torch.linalg.eigh, A)
        values = projected_values(found.cpu().numpy(), self._k - 1)
        used = int(np.argmax(values > 0))
        self.rank = len(values) - used
        Q = Q[:, used:]
        scaled = Q * self._torch.from_numpy(values[used:]).to(self._device)
        return np.asarray((scaled @ Q.T).cpu().numpy())

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


Result = TypeVar("Result")


@dataclass(frozen=True)
class Tools:
    """Threads, and where eigenvectors are computed. None of it changes what is valid.

    Threads do not change the result either: kernels and linear algebra run side by side, because
    they do not hold the interpreter lock. Functions that run in a thread must not use the threads.
    """

    projector: Callable[[FloatArray, int], Projector] = Projector
    n_threads: int = 1
    pool: Executor | None = None

    @classmethod
    @contextmanager
    def with_threads(
        cls, count: int, projector: Callable[[FloatArray, int], Projector] = Projector
    ) -> Iterator[Tools]:
        """Have threads until the end of the context; one calls functions without any thread."""
        if count == 1:
            yield cls(projector)
            return
        pool = ThreadPoolExecutor(count, "evomeans proof")
        try:
            yield cls(projector, count, pool)
        finally:
            pool.shutdown(cancel_futures=True)

    def map(
        self, function: Callable[..., Result], calls: Iterable[tuple[Any, ...]]
    ) -> list[Result]:
        """Call a function with each of the arguments; return the results in order."""
        if self.pool is None:
            return [function(*arguments) for arguments in calls]
        futures = [self.pool.submit(function, *arguments) for arguments in calls]
        return [future.result() for future in futures]
