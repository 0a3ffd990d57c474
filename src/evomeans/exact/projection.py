"""The projection of `admm` that takes an eigen-decomposition, and where it is computed.

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

from evomeans.exact.admm_kernels import capped_simplex, shift
from evomeans.exact.points import Floats
from evomeans.exact.threads import Threads

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

    def project(self, A: Floats, size: float) -> Floats:
        """Return the projection of A, whose norm is ``size``; A is overwritten."""

    def lowest_sum(self, A: Floats, count: int) -> float:
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

    def __init__(self, v: Floats, k: int) -> None:
        self._v, self._k = v, k
        self._vv = np.outer(v, v)
        self.fine = len(v) < SMALLEST_FOR_SINGLE
        self.rank = len(v)

    def project(self, A: Floats, size: float) -> Floats:
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

    def _leading_pairs(self, A: NDArray[Any]) -> tuple[Floats, NDArray[Any]]:
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

    def lowest_sum(self, A: Floats, count: int) -> float:
        """Return the sum of the lowest eigenvalues of A; A is overwritten."""
        return lowest_sum(A, count)


def projected_values(values: NDArray[Any], total: float) -> Floats:
    """Return clip(λ - t, 0, 1) with this sum, for ascending eigenvalues λ."""
    if not np.isfinite(values).all():
        raise np.linalg.LinAlgError("The eigenvalues are not finite.")
    found = values.astype(np.float64)
    capped_simplex(found, total)
    return found


def move_down(A: Floats, v: Floats, size: float) -> None:
    """Make v an eigenvector of A whose eigenvalue lies below all others, in place."""
    product = A @ v
    shift(A, product - (float(v @ product) / 2 - 1.5 * size) * v, v)


def lowest_sum(A: Floats, count: int) -> float:
    """Return the sum of the lowest eigenvalues of A; A is overwritten."""
    options: dict[str, Any] = {"driver": "evr", "check_finite": False, "overwrite_a": True}
    return float(eigh(A, eigvals_only=True, subset_by_index=[0, count - 1], **options).sum())


@dataclass(frozen=True)
class Workbench:
    """What a search for multipliers works with. None of it changes what is valid.

    Parameters
    ----------
    threads : Threads
        For cuts, and for cases side by side. They do not change the result.
    projector : callable
        Returns a :class:`Projector`, given û and the number of clusters.
    """

    threads: Threads = field(default_factory=Threads)
    projector: Callable[[Floats, int], Projector] = CpuProjector
