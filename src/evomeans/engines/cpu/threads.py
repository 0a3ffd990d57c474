"""A group of threads (a *team*) that run one kernel together and meet at barriers inside it.

Handing every step of K-means to a thread pool would cost more than the step.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from evomeans.compiled.jit import jit
from evomeans.engines.protocol import Abandoned

# About as long as a balanced step takes. After that, a thread yields, and after as many more rounds
# it sleeps: on a busy machine, a thread that wakes is served before one that yields.
SPINS_BEFORE_YIELD = 1000
YIELDS_BEFORE_SLEEP = 200
# Consecutive tiles of one thread, so that threads seldom write to the same cache line.
TURN = 4
# Entries of the barrier, the first two a cache line apart.
ARRIVALS, GENERATION, ABANDONED = 0, 8, 15
_yield_cpu = types.ExternalFunction(
    "SwitchToThread" if os.name == "nt" else "sched_yield", types.int32()
)
# Windows counts milliseconds; with zero it yields.
_sleep = types.ExternalFunction("Sleep" if os.name == "nt" else "usleep", types.int32(types.uint32))
MICROSECONDS_OF_SLEEP = 0 if os.name == "nt" else 50


@jit
def nth_item(nth: int, thread: int, n_threads: int) -> int:
    """Return the nth tile of a thread's share: TURN neighbours in turn, to balance the work."""
    return (nth // TURN * n_threads + thread) * TURN + nth % TURN


@jit
def share(count: int, thread: int, n_threads: int) -> tuple[int, int]:
    """Return where a thread's share of ``count`` items begins and ends."""
    return count * thread // n_threads, count * (thread + 1) // n_threads


@jit(inline=False)
def meet(barrier: NDArray[np.int64], n_threads: int) -> None:
    """Wait until all ``n_threads`` threads have called this; their writes are then visible.

    ``barrier`` (16,) is zero at first. No thread waits once its entry ABANDONED is set.
    """
    if n_threads == 1:
        return
    generation = _load(barrier, GENERATION)
    if _fetch_and_add(barrier, ARRIVALS, 1) == n_threads - 1:
        _fetch_and_add(barrier, ARRIVALS, -n_threads)
        _fetch_and_add(barrier, GENERATION, 1)
    else:
        spins = 0
        while _load(barrier, GENERATION) == generation and _load(barrier, ABANDONED) == 0:
            spins += 1
            if spins > SPINS_BEFORE_YIELD + YIELDS_BEFORE_SLEEP:
                _sleep(MICROSECONDS_OF_SLEEP)
            elif spins > SPINS_BEFORE_YIELD:
                _yield_cpu()


def _address(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    array_type, index_type = signature.args[:2]
    data = context.make_array(array_type)(context, builder, arguments[0]).data
    return builder.gep(data, [context.cast(builder, arguments[1], index_type, types.intp)])


@intrinsic
def _load(typing_context, array, index):  # type: ignore[no-untyped-def]
    """Return ``array[index]`` as the other threads see it."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        address = _address(context, builder, signature, arguments)
        return builder.load_atomic(address, "seq_cst", 8)

    return types.int64(array, index), codegen


@intrinsic
def _fetch_and_add(typing_context, array, index, value):  # type: ignore[no-untyped-def]
    """Add to ``array[index]`` atomically and return the value before."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        address = _address(context, builder, signature, arguments)
        amount = context.cast(builder, arguments[2], signature.args[2], types.int64)
        return builder.atomic_rmw("add", address, amount, "seq_cst")

    return types.int64(array, index, value), codegen


class ThreadTeam:
    """Runs ``kernel(..., thread, n_threads)`` in several threads, the caller being thread 0.

    * ``n_threads``: including the caller; with 1 no thread is ever started.
    * ``barrier`` (16,) of int64: for :func:`meet`. Kernels have to return soon after its entry
      ABANDONED is set.
    """

    def __init__(self, n_threads: int) -> None:
        self.n_threads = n_threads
        self.barrier = np.zeros(16, np.int64)
        self._is_abandoned = False
        self._pool = ThreadPoolExecutor(max(1, n_threads - 1), "evomeans")

    def run(self, kernel: Callable[..., None], *arguments: Any, most: int = sys.maxsize) -> None:
        """Run the kernel once in every thread, ``most`` of them; return when all are done.

        See :meth:`check`.
        """
        n_threads = min(self.n_threads, most)
        self.barrier[:] = 0
        self.check()
        others: list[Future[None]] = []
        try:
            others.extend(
                self._pool.submit(self._enter, kernel, arguments, thread, n_threads)
                for thread in range(1, n_threads)
            )
            self._enter(kernel, arguments, 0, n_threads)
        except BaseException:
            # Other threads may be waiting for this one at the barrier.
            self.barrier[ABANDONED] = 1
            raise
        finally:
            for other in others:
                # It waits until the other one is done.
                other.exception()
        for other in others:
            other.result()
        self.check()

    def abandon(self, is_abandoned: bool) -> None:
        """End the kernel that another thread runs soon, and whatever follows at once."""
        self._is_abandoned = is_abandoned
        if is_abandoned:
            self.barrier[ABANDONED] = 1

    def check(self) -> None:
        """Raise Abandoned if the team is: what a kernel has done so far is undefined then."""
        if self._is_abandoned:
            raise Abandoned

    def _enter(
        self, kernel: Callable[..., None], arguments: tuple[Any, ...], thread: int, n_threads: int
    ) -> None:
        try:
            kernel(*arguments, thread, n_threads)
        except BaseException:
            self.barrier[ABANDONED] = 1
            raise
