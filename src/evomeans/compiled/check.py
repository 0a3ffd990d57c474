"""Whether the compiler layer fits the Numba that is installed.

It relies on names, and on layouts of memory, that Numba does not document. So before the first
kernel, versions and layouts are compared, and small kernels are tried. If anything differs, kernels
are compiled the plain way, with one warning and the same results.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from evomeans.compiled import numba_private
from evomeans.compiled.bundle import bundle, written_at
from evomeans.compiled.cache import SharedCache, warn_once
from evomeans.compiled.kernel import Kernel
from evomeans.compiled.numba_private import call_kernel, unexpected

# As in pyproject.toml: from the first on, below the second.
TESTED = (0, 66), (0, 69)


@cache
def is_trusted() -> bool:
    """Whether kernels are compiled by the layer of our own. Decided once in a process."""
    if os.environ.get("EVOMEANS_COMPILER") == "plain":
        return False
    reason = objection()
    if reason is not None:
        low, high = (".".join(map(str, version)) for version in TESTED)
        warn_once(
            f"Kernels are compiled the plain way: the results are the same, but it takes minutes, "
            f"in every process. {reason} Install numba>={low},<{high}."
        )
    return reason is None


def objection() -> str | None:
    """Return what speaks against the layer of our own, if anything does."""
    if not TESTED[0] <= numba.version_info.short < TESTED[1]:
        return f"evomeans was not tried with Numba {numba.__version__}."
    if numba_private.MISSING is not None:
        return f"Numba {numba.__version__} lacks a name: {numba_private.MISSING}."
    return failure()


# ---- kernels that show whether what we know of Numba is true -------------------------------------


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


def failure() -> str | None:
    """Return how the kernels above differ from what we know, or None, which the cache remembers."""
    kernel, caller = (Kernel(one, {"nogil": True}) for one in (add_up, add_up_at))
    notes = SharedCache(add_up)
    if notes.remembers("trusted"):
        return None
    if (reason := unexpected(kernel.targetctx)) is not None:
        return f"Its code generator is another one: {reason}."
    numbers = 0.5, 3, True
    expected, called, entered, reached = (sample() for _ in range(4))
    add_up(expected, *numbers)
    kernel(called, *numbers)
    kernel.entry(entered, *numbers)(written_at(entered), *numbers)
    caller(kernel.address(reached, *numbers), reached, *numbers)
    for one in (called, entered, reached):
        if not np.allclose(one.result, expected.result, rtol=1e-6):
            return f"A kernel returned {one.result} instead of {expected.result}."
    notes.remember("trusted")
    return None
