"""Kernels that show whether what we know of Numba is true; see :mod:`evomeans.compiled.check`.

Their result is remembered in the cache of kernels, so that it costs later processes nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.address import AddressEntry
from evomeans.compiled.bundle import bundle, written_at
from evomeans.compiled.cache import SharedCache
from evomeans.compiled.jit import OWN_OPTIONS, is_cached, options_for
from evomeans.compiled.kernel import Kernel
from evomeans.compiled.numba_private import call_kernel, unexpected


@bundle
class Inner(NamedTuple):
    """A bundle in a bundle."""

    values: NDArray[np.int32]


@bundle
class Outer(NamedTuple):
    """All that fields of bundles can be."""

    result: NDArray[np.float64]
    factor: float
    small: np.float32
    table: NDArray[np.float32]
    inner: Any


def add_up(outer: Outer, scale: float, times: int, negative: bool) -> None:
    """Use every field and every argument."""
    total = outer.factor + outer.small
    for i in range(outer.table.shape[0]):
        for j in range(outer.table.shape[1]):
            total += outer.table[i, j] * outer.inner.values[j]
    outer.result[0] = (-total if negative else total) * scale * times
    outer.result[1] = outer.table.size


def add_up_at(address: int, outer: Outer, scale: float, times: int, negative: bool) -> None:
    """Call the same by its address."""
    call_kernel(address, outer, scale, times, negative)


def sample() -> Outer:
    """Return a bundle whose arrays have strides."""
    table = np.arange(24, dtype=np.float32).reshape(4, 6)[:, ::2]
    inner = Inner(np.array([3, -1, 2], np.int32))
    return Outer(np.zeros(2), 0.1, np.float32(0.7), table, inner)


def objection() -> str | None:
    """Return what is not as we know it; None if all is."""
    options = {**options_for(), **OWN_OPTIONS}
    kernel, caller = (Kernel(one, options, is_kept=is_cached()) for one in (add_up, add_up_at))
    notes = SharedCache(add_up, is_cached())
    if notes.remembers("trusted"):
        return None
    if (reason := unexpected(kernel.targetctx)) is not None:
        return f"Its code generator is another one: {reason}."
    numbers = 0.5, 3, True
    expected, called, entered, reached = (sample() for _ in range(4))
    add_up(expected, *numbers)
    kernel(called, *numbers)
    AddressEntry(kernel, entered, *numbers)(written_at(entered), *numbers)
    caller(kernel.address(reached, *numbers), reached, *numbers)
    for one in (called, entered, reached):
        if not np.allclose(one.result, expected.result, rtol=1e-6):
            return f"A kernel returned {one.result} instead of {expected.result}."
    notes.remember("trusted")
    return None
