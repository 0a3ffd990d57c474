"""The smallest size among many numbers, in one pass that is as fast as memory."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from evomeans.compiled.jit import FINITE, jit

# Larger than any number of a sample; infinity would keep the minimum from being vectorised.
NONE = 1e308


@jit(fastmath=FINITE)
def smallest_size(values: NDArray[Any]) -> float:
    """Return the smallest absolute value of a flat array that is not zero, NONE if all are."""
    least = NONE
    for i in range(values.shape[0]):
        size = abs(values[i])
        least = min(least, size if size > 0.0 else NONE)
    return least
