"""Access to samples, for dense and for sparse rows.

Kernels are written once. They access samples only through functions made by :func:`by_row_type`.
Numba compiles the variant for the type of ``rows``: an (n, d) array, or :class:`SparseRows`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.bundle import BundleType, bundle
from evomeans.compiled.jit import REORDER, jit
from evomeans.compiled.vectors import squared_difference
from evomeans.engines.cpu.layout import FloatArray, Index, Samples

Rows = NDArray[np.floating[Any]]

# Where ‖x‖² + ‖c‖² − 2x·c is below this share of the squared norms, it has lost too many digits to
# cancellation. The direct form takes over.
CANCELLED = 1e-3


@bundle
class SparseRows(NamedTuple):
    """Rows in CSR format, with what their distances to the centres need.

    * ``starts`` (n + 1,): where each row begins in the next two.
    * ``columns`` and ``values`` (nnz,): the stored entries.
    * ``squares`` (n,): squared norms of the rows.
    * ``center_squares`` (k,): squared norms of the current centres.
    * ``by_feature`` (d, k): their coordinates. :func:`remember_center` keeps both up to date.
    """

    starts: NDArray[Any]
    columns: NDArray[Any]
    values: NDArray[Any]
    squares: NDArray[np.float64]
    center_squares: NDArray[np.float64]
    by_feature: NDArray[np.float64]


def by_row_type(
    *,
    dense: Callable[..., Any],
    sparse: Callable[..., Any],
    fastmath: frozenset[str] = frozenset(),
    inline: bool = True,
) -> Callable[..., Any]:
    """Combine two functions into a kernel: which is compiled depends on the type of ``rows``."""
    place = list(inspect.signature(dense).parameters).index("rows")

    def choose(*types: Any) -> Callable[..., Any]:
        return sparse if isinstance(types[place], BundleType) else dense

    return jit(fastmath=fastmath, inline=inline, choose=choose)(dense)


@jit
def weight_of(samples: Samples, i: Index) -> float:
    """Return the weight of a sample."""
    return samples.weights[i] if samples.weights.shape[0] else 1.0


# ---- distance ------------------------------------------------------------------------------------


def _squared_distance_dense(rows: Rows, i: int, centers: FloatArray, j: int) -> float:
    """‖rows[i] − centers[j]‖² in double precision, to a relative error of about 1e-13.

    The last bits may depend on the kernel it is compiled into. Where a result depends on a
    comparison, kernels leave a margin and pass close calls to one single place.
    """
    return squared_difference(rows, i, centers, j)


def _squared_distance_sparse(rows: SparseRows, i: int, centers: FloatArray, j: int) -> float:
    norms = rows.squares[i] + rows.center_squares[j]
    square = norms - 2.0 * product(rows, i, centers, j)
    if square > CANCELLED * norms:
        return square
    total, p, end = 0.0, rows.starts[i], rows.starts[i + 1]
    for t in range(centers.shape[1]):
        difference = -centers[j, t]
        if p < end and rows.columns[p] == t:
            difference += rows.values[p]
            p += 1
        total += difference * difference
    return total


squared_distance = by_row_type(
    dense=_squared_distance_dense, sparse=_squared_distance_sparse, fastmath=REORDER
)


@jit(fastmath=REORDER)
def product(rows: SparseRows, i: int, centers: FloatArray, j: int) -> float:
    """Scalar product of a sparse row with a centre."""
    total = 0.0
    for p in range(rows.starts[i], rows.starts[i + 1]):
        total += rows.values[p] * centers[j, rows.columns[p]]
    return total


# ---- centres -------------------------------------------------------------------------------------


def _remember_center_dense(rows: Rows, centers: FloatArray, j: int) -> None:
    """Update what the rows keep of centre ``j`` after it has moved; dense rows keep nothing."""


def _remember_center_sparse(rows: SparseRows, centers: FloatArray, j: int) -> None:
    total = 0.0
    for t in range(centers.shape[1]):
        rows.by_feature[t, j] = centers[j, t]
        total += centers[j, t] * centers[j, t]
    rows.center_squares[j] = total


remember_center = by_row_type(dense=_remember_center_dense, sparse=_remember_center_sparse)


def _write_row_dense(rows: Rows, i: int, centers: FloatArray, j: int) -> None:
    """Set centre ``j`` to sample ``i``."""
    for t in range(rows.shape[1]):
        centers[j, t] = rows[i, t]


def _write_row_sparse(rows: SparseRows, i: int, centers: FloatArray, j: int) -> None:
    for t in range(centers.shape[1]):
        centers[j, t] = 0.0
    for p in range(rows.starts[i], rows.starts[i + 1]):
        centers[j, rows.columns[p]] = rows.values[p]


write_row = by_row_type(dense=_write_row_dense, sparse=_write_row_sparse)
