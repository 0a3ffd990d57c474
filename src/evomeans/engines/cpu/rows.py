"""All that kernels do with samples, for dense and for sparse rows.

Kernels are written once. They reach the samples only through functions made by :func:`by_row_type`,
of which Numba takes the variant for the type of ``rows``: an (n, d) array, or :class:`SparseRows`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import overload
from numpy.typing import NDArray

from evomeans.compiled.jit import REORDER, jit
from evomeans.compiled.vectors import squared_difference

# Below this share of the squared norms, the expanded form of a squared distance has lost too many
# digits to cancellation; the direct form takes over.
CANCELLED = 1e-3


class SparseRows(NamedTuple):
    """Rows in CSR format, with what their distances to centres need.

    ``starts`` (n + 1,) and ``columns`` (nnz,) integers, ``values`` (nnz,); ``squares`` (n,)
    float64, the squared norms. Of the current centres, and kept up to date by
    :func:`remember_center`: ``center_squares`` (k,) float64, the same, and ``by_feature`` (d, k)
    float64, their coordinates.
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
) -> Callable[..., Any]:
    """Make one function of two: calls go to ``dense`` or ``sparse``, by the type of ``rows``.

    In kernels the choice is made when they are compiled.
    """
    signature = inspect.signature(dense)

    def function(*arguments: Any) -> Any:
        rows = signature.bind(*arguments).arguments["rows"]
        return (sparse if isinstance(rows, SparseRows) else dense)(*arguments)

    def choose(*arguments: Any, **named: Any) -> Callable[..., Any]:
        rows = signature.bind(*arguments, **named).arguments["rows"]
        return dense if isinstance(rows, types.Array) else sparse

    choose.__signature__ = signature  # type: ignore[attr-defined]
    overload(function, jit_options={"fastmath": set(fastmath)})(choose)
    function.__doc__ = dense.__doc__
    return function


# ---- distance ------------------------------------------------------------------------------------


def _squared_distance_dense(rows: Any, i: int, centers: Any, j: int) -> float:
    """‖rows[i] − centers[j]‖² in double precision, good to about 1e-13.

    Its last bits may depend on the kernel it is compiled into. Where results hang on a comparison,
    the kernels leave a margin for that and pass close calls on to one single place.
    """
    return squared_difference(rows, i, centers, j)


def _squared_distance_sparse(rows: Any, i: int, centers: Any, j: int) -> Any:
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
def product(rows: Any, i: int, centers: Any, j: int) -> float:
    """Scalar product of a sparse row with a centre."""
    total = 0.0
    for p in range(rows.starts[i], rows.starts[i + 1]):
        total += rows.values[p] * centers[j, rows.columns[p]]
    return total


# ---- centres -------------------------------------------------------------------------------------


def _remember_center_dense(rows: Any, centers: Any, j: int) -> None:
    """Take notice of where centre ``j`` is now."""


def _remember_center_sparse(rows: Any, centers: Any, j: int) -> None:
    total = 0.0
    for t in range(centers.shape[1]):
        rows.by_feature[t, j] = centers[j, t]
        total += centers[j, t] * centers[j, t]
    rows.center_squares[j] = total


remember_center = by_row_type(dense=_remember_center_dense, sparse=_remember_center_sparse)


def _write_row_dense(rows: Any, i: int, centers: Any, j: int) -> None:
    """Put centre ``j`` onto sample ``i``."""
    for t in range(rows.shape[1]):
        centers[j, t] = rows[i, t]


def _write_row_sparse(rows: Any, i: int, centers: Any, j: int) -> None:
    for t in range(centers.shape[1]):
        centers[j, t] = 0.0
    for p in range(rows.starts[i], rows.starts[i + 1]):
        centers[j, rows.columns[p]] = rows.values[p]


write_row = by_row_type(dense=_write_row_dense, sparse=_write_row_sparse)
