"""Kernels of the solver on the line: precise prefix sums and the minima of one layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from evomeans.compiled.jit import jit
from evomeans.compiled.ready import Call

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.integer[Any]]


def _fma(_context: Any, _a: Any, _b: Any, _c: Any) -> Any:
    def generate(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    double = types.float64
    return double(double, double, double), generate


# a·b + c with one rounding. fma(a, b, -(a * b)) is the rounding error of a product, exactly.
fma = cast("Callable[[float, float, float], float]", intrinsic(_fma))


@jit
def two_sum(a: float, b: float) -> tuple[float, float]:
    """Return ``a + b`` and its rounding error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@jit
def add(high: float, low: float, term: float, term_low: float) -> tuple[float, float]:
    """Add a term to the double-double number ``high + low``."""
    total, error = two_sum(high, term)
    error += low + term_low
    high = total + error
    return high, error - (high - total)


@jit
def prefix_sums(x: FloatArray, w: FloatArray, centre: FloatArray, sums: FloatArray) -> None:
    """Sum w, w·y and w·y² with y = x - centre over the first j points, to some 30 digits.

    Shapes: x, w, centre (n,); sums (n + 1, 6), columns 0-2 the leading and 3-5 the trailing parts.
    """
    w_high = w_low = wy_high = wy_low = wyy_high = wyy_low = 0.0
    sums[0] = 0.0
    for t in range(x.size):
        y, y_low = two_sum(x[t], -centre[t])
        wy = w[t] * y
        wy_error = fma(w[t], y, -wy) + w[t] * y_low
        wyy = wy * y
        wyy_error = fma(wy, y, -wyy) + (wy * y_low + wy_error * y)
        w_high, w_low = add(w_high, w_low, w[t], 0.0)
        wy_high, wy_low = add(wy_high, wy_low, wy, wy_error)
        wyy_high, wyy_low = add(wyy_high, wyy_low, wyy, wyy_error)
        row = sums[t + 1]
        row[0], row[1], row[2] = w_high, wy_high, wyy_high
        row[3], row[4], row[5] = w_low, wy_low, wyy_low


@jit
def segment_cost(sums: FloatArray, i: int, j: int) -> float:
    """Σ w·y² - (Σ w·y)² / Σ w over the points i..j-1.

    Differences of the leading parts are exact, because these lie on a common grid. With the
    rounded mean c and r = Σ w·y - c·Σ w, the quotient is c·Σ w·y + c·r + r² / Σ w; the last term
    is below the precision of the sums and left out.
    """
    w = sums[j, 0] - sums[i, 0]
    wy = sums[j, 1] - sums[i, 1]
    wyy = sums[j, 2] - sums[i, 2]
    w_low = sums[j, 3] - sums[i, 3]
    wy_low = sums[j, 4] - sums[i, 4]
    wyy_low = sums[j, 5] - sums[i, 5]
    c = (wy + wy_low) / (w + w_low)
    product = c * wy
    product_error = fma(c, wy, -product)
    r = fma(-c, w, wy) + (wy_low - c * w_low)
    cost: float = (wyy - product) + (wyy_low - product_error - c * (wy_low + r))
    return cost


@jit
def row_minima(
    sums: FloatArray,
    first: IndexArray,
    previous: FloatArray,
    current: FloatArray,
    argmin: IndexArray,
    low_row: int,
    high_row: int,
    low_column: int,
    high_column: int,
    bound: float,
) -> int:
    """current[j] = min over i of previous[i] + cost of points i..j-1, for low_row <= j <= high_row.

    The leftmost minimiser does not decrease with j: the rows are visited at halving strides, each
    between the minimisers of its neighbours, in O(rows · log rows). Columns run from low_column
    to high_column and from first[j - 1], where the segment that ends at j may start at the
    earliest. The minima increase with j; rows from the first one above ``bound`` are dropped.

    Shapes: sums (n + 1, 6); first (n,); previous, current (n + 1,); argmin (rows,) by j - low_row.
    Returns the last row kept.
    """
    n_rows = high_row - low_row + 1
    end = n_rows
    stride = 1
    while 2 * stride <= n_rows:
        stride *= 2
    while stride > 0:
        row = stride - 1
        while row < end:
            j = low_row + row
            start = max(first[j - 1], argmin[row - stride] if row >= stride else low_column)
            stop = min(j - 1, high_column)
            # The minimiser of a row above the bound may be off by more than matters here.
            if row + stride < end:
                stop = min(stop, argmin[row + stride])
            best, best_cost = start, np.inf
            for i in range(start, stop + 1):
                cost = previous[i] + segment_cost(sums, i, j)
                if cost < best_cost:
                    best, best_cost = i, cost
            argmin[row] = best
            current[j] = best_cost
            if best_cost > bound:
                end = row
            row += 2 * stride
        stride //= 2
    return low_row + end - 1


def kernel_calls() -> list[Call]:
    """Return what the solver calls, see :func:`~evomeans.compiled.ready.ready`."""
    one, sums, index = np.zeros(1), np.zeros((1, 6)), np.zeros(1, np.int32)
    rows = sums, index, one, one, index, 1, 1, 0, 0, 1.0
    return [Call(prefix_sums, (one, one, one, sums), 0.6), Call(row_minima, rows, 1.2)]
