"""Arithmetic on rows and arrays that kernels share."""

from __future__ import annotations

from typing import Any, SupportsIndex

from numpy.typing import NDArray

from evomeans.compiled.jit import FINITE, REORDER, jit
from evomeans.typing import FloatArray

# Centres that stay in the cache of the processor while their distances to others are computed.
CENTERS_IN_CACHE = 64


@jit(fastmath=REORDER)
def squared_difference(
    one: NDArray[Any], i: SupportsIndex, other: NDArray[Any], j: SupportsIndex
) -> float:
    """‖one[i] − other[j]‖² of two matrices, in double precision."""
    total = 0.0
    for t in range(one.shape[1]):
        difference = one[i, t] - other[j, t]
        total += difference * difference
    return total


@jit
def is_equal(one: NDArray[Any], i: SupportsIndex, other: NDArray[Any], j: SupportsIndex) -> bool:
    """Whether two rows of matrices are equal, to the last bit."""
    t, d = 0, one.shape[1]
    while t < d and one[i, t] == other[j, t]:
        t += 1
    return t == d


@jit
def coordinate_sum(one: NDArray[Any], i: SupportsIndex) -> float:
    """Σₜ one[i, t], always in this order: equal rows have equal sums."""
    total = 0.0
    for t in range(one.shape[1]):
        total += one[i, t]
    return total


# Larger than any sum of squared distances; infinity would keep minima from being vectorised.
ENDLESS = 1e300


@jit(fastmath=FINITE)
def minimum(values: FloatArray, count: int) -> float:
    """Return the lowest of the first numbers."""
    lowest = ENDLESS
    for i in range(count):
        lowest = min(lowest, values[i])
    return lowest


# Larger than any number of a sample; infinity would keep the minimum from being vectorised.
NO_SIZE = 1e308


@jit(fastmath=FINITE)
def smallest_size(values: NDArray[Any]) -> float:
    """Return the smallest absolute value of a flat array that is not zero, NO_SIZE if all are."""
    least = NO_SIZE
    for i in range(values.shape[0]):
        size = abs(values[i])
        least = min(least, size if size > 0.0 else NO_SIZE)
    return least
