"""All that kernels do with a sample, for dense and for sparse rows.

Kernels are written once. They reach the samples only through the functions of this file, of which
Numba takes the variant for the type of ``rows``: an (n, d) array, or :class:`SparseRows`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import overload
from numpy.typing import NDArray

from evomeans.engines.cpu.jit import REORDER, jit
from evomeans.engines.cpu.tile import FAR_KEY, RANKS, WIDTH, gather, rank_centers

# Below this share of the squared norms, the expanded form of a squared distance has lost too many
# digits to cancellation; the direct form takes over.
CANCELLED = 1e-3


class SparseRows(NamedTuple):
    """Rows in CSR format, with what their distances to centres need.

    ``starts`` (n + 1,) and ``columns`` (nnz,) integers, ``values`` (nnz,); ``squares`` (n,)
    float64, the squared norms; ``center_squares`` (k + 1,) float64, those of the current centres,
    which :func:`remember_centers` keeps up to date.
    """

    starts: NDArray[Any]
    columns: NDArray[Any]
    values: NDArray[Any]
    squares: NDArray[np.float64]
    center_squares: NDArray[np.float64]


def by_row_type(
    *, dense: Callable[..., Any], sparse: Callable[..., Any], reorder: bool = False
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
    overload(function, jit_options={"fastmath": set(REORDER)} if reorder else {})(choose)
    function.__doc__ = dense.__doc__
    return function


@jit(reorder=True)
def squared_difference(one: Any, i: int, other: Any, j: int) -> float:
    """‖one[i] − other[j]‖² of two matrices, in double precision."""
    total = 0.0
    for t in range(one.shape[1]):
        difference = one[i, t] - other[j, t]
        total += difference * difference
    return total


# ---- distance ------------------------------------------------------------------------------------


def _squared_distance_dense(rows: Any, i: int, centers: Any, j: int) -> float:
    """‖rows[i] − centers[j]‖² in double precision, good to about 1e-13.

    Its last bits may depend on the kernel it is compiled into. Where results hang on a comparison,
    the kernels leave a margin for that and pass close calls on to one single place.
    """
    return squared_difference(rows, i, centers, j)


def _squared_distance_sparse(rows: Any, i: int, centers: Any, j: int) -> Any:
    product = 0.0
    for p in range(rows.starts[i], rows.starts[i + 1]):
        product += rows.values[p] * centers[j, rows.columns[p]]
    norms = rows.squares[i] + rows.center_squares[j]
    square = norms - 2.0 * product
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
    dense=_squared_distance_dense, sparse=_squared_distance_sparse, reorder=True
)


# ---- centres for ranking -------------------------------------------------------------------------


def _remember_centers_dense(
    rows: Any, exact: Any, k: int, copy: Any, drift: Any, all_of_them: bool
) -> None:
    """Prepare the centres that moved for :func:`rank_samples`.

    ``copy`` is (k, d), for sparse rows (d, k).
    """
    for j in range(k):
        if all_of_them or drift[j] > 0.0:
            for t in range(exact.shape[1]):
                copy[j, t] = exact[j, t]


def _remember_centers_sparse(
    rows: Any, exact: Any, k: int, copy: Any, drift: Any, all_of_them: bool
) -> None:
    for j in range(k):
        if all_of_them or drift[j] > 0.0:
            total = 0.0
            for t in range(exact.shape[1]):
                copy[t, j] = exact[j, t]
                total += exact[j, t] * exact[j, t]
            rows.center_squares[j] = total


remember_centers = by_row_type(dense=_remember_centers_dense, sparse=_remember_centers_sparse)


# ---- ranking -------------------------------------------------------------------------------------


def _rank_samples_dense(
    rows: Any,
    chosen: Any,
    first: int,
    count: int,
    centers: Any,
    bits: int,
    scratch: Any,
    thread: int,
) -> None:
    """Find the five nearest centres of samples ``chosen[first:first + count]``, at most WIDTH.

    ``scratch.keys[thread]`` as in :func:`~evomeans.engines.cpu.tile.rank_centers`.
    """
    k, tile = centers.weights.shape[0], scratch.tiles[thread]
    gather(rows, chosen, first, count, tile)
    rank_centers(tile, centers.copy, k, bits, scratch.squares[thread], scratch.keys[thread])


def _rank_samples_sparse(
    rows: Any,
    chosen: Any,
    first: int,
    count: int,
    centers: Any,
    bits: int,
    scratch: Any,
    thread: int,
) -> None:
    k, copy = centers.weights.shape[0], centers.copy
    products, keys, squares = (
        scratch.tiles[thread, 0],
        scratch.keys[thread],
        scratch.squares[thread],
    )
    mask = np.int32(-1) << np.int32(bits)
    for lane in range(count):
        i = chosen[first + lane]
        for j in range(k):
            products[j] = 0.0
        for p in range(rows.starts[i], rows.starts[i + 1]):
            value, column = rows.values[p], rows.columns[p]
            for j in range(k):
                products[j] += value * copy[column, j]
        for rank in range(RANKS):
            keys[rank * WIDTH + lane] = (FAR_KEY & mask) | np.int32(k)
        for j in range(k):
            norms = rows.squares[i] + rows.center_squares[j]
            square = norms - 2.0 * products[j]
            if square <= CANCELLED * norms:
                square = squared_distance(rows, i, centers.exact, j)
            squares[lane] = square
            key = (keys[RANKS * WIDTH + lane] & mask) | np.int32(j)
            for rank in range(RANKS):
                other = keys[rank * WIDTH + lane]
                keys[rank * WIDTH + lane] = min(key, other)
                key = max(key, other)


rank_samples = by_row_type(dense=_rank_samples_dense, sparse=_rank_samples_sparse)


# ---- a centre on a sample ------------------------------------------------------------------------


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
