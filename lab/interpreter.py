"""How much of a search only one thread at a time can do, and how much faster more can make it.

Run ``python -m lab interpreter``, or name problems as for ``lab.cores``. Each search
runs with one thread, ``--rounds`` times, and the round with the least total counts. All figures
are CPU time, so other programs disturb them little. Refinements that take long have a thread of
their own, for which the other one waits; both count. The columns:

* ``kernels``: milliseconds of an offspring in kernels, which do not hold the interpreter.
* ``python``: microseconds of an offspring in which the interpreter is held. All else is this:
  Python itself, NumPy, and what Numba does before and after a kernel.
* ``calls``: kernels that Python calls for an offspring.
* ``serial``: the share of the search before the first solution and after the last. Only one thread
  works there, unless the samples are many.
* ``limit``: how many times faster ``--threads`` threads can be at most. The serial part takes as
  long as with one thread, and the rest at least as long as it holds the interpreter in all.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import numpy as np
from numba import carray, cfunc, types
from numba.core import cgutils
from numba.extending import intrinsic

from evomeans import HGMeans
from evomeans.compiled.kernel import Kernel
from evomeans.search.history import History, OffspringRecord
from lab.cores import SEED, SETUPS
from lab.measure import Column, Table, parser_for
from lab.setups import samples_of

# Of clock_gettime: the CPU time of the calling thread.
THREAD_CLOCK = 3
# Entries of ``memory``: two for clock_gettime; nanoseconds in which kernels ran, when the last one
# began, and how many there were.
SECONDS, NANOSECONDS, RAN, BEGAN, CALLS = range(5)
memory = np.zeros(5, np.int64)


def watch_kernels() -> list[Any]:
    """Measure what kernels take from now on; return what has to be kept alive for it.

    Numba calls PyEval_SaveThread before a kernel and PyEval_RestoreThread after it. Code that it
    loads from now on gets functions of our own for these.
    """
    for name in ("PyEval_SaveThread", "PyEval_RestoreThread"):
        function = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p)
        llvm.add_symbol(f"true_{name}", function.value)
    save = types.ExternalFunction("true_PyEval_SaveThread", types.voidptr())
    restore = types.ExternalFunction("true_PyEval_RestoreThread", types.void(types.voidptr))
    clock = types.ExternalFunction("clock_gettime", types.int32(types.int32, types.voidptr))
    address = memory.ctypes.data

    @intrinsic
    def pointer(typing_context, number):  # type: ignore[no-untyped-def]
        def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            return builder.inttoptr(arguments[0], cgutils.voidptr_t)

        return types.voidptr(types.int64), codegen

    @cfunc(types.voidptr())
    def release() -> Any:
        state = save()
        numbers = carray(pointer(address), 5, np.int64)
        clock(THREAD_CLOCK, pointer(address))
        numbers[BEGAN] = numbers[SECONDS] * 1_000_000_000 + numbers[NANOSECONDS]
        numbers[CALLS] += 1
        return state

    @cfunc(types.void(types.voidptr))
    def hold(state: Any) -> None:
        numbers = carray(pointer(address), 5, np.int64)
        clock(THREAD_CLOCK, pointer(address))
        now = numbers[SECONDS] * 1_000_000_000 + numbers[NANOSECONDS]
        numbers[RAN] += now - numbers[BEGAN]
        restore(state)

    llvm.add_symbol("PyEval_SaveThread", release.address)
    llvm.add_symbol("PyEval_RestoreThread", hold.address)
    entry = Kernel.entry
    Kernel.entry = lambda *given: timed(entry(*given))  # type: ignore[method-assign]
    return [release, hold]


def timed(call: Callable[..., None]) -> Callable[..., None]:
    """Measure calls without Numba; what ctypes does for them counts as a part of the kernel."""

    def timed_call(*arguments: float) -> None:
        began = time.thread_time_ns()
        call(*arguments)
        memory[RAN] += time.thread_time_ns() - began
        memory[CALLS] += 1

    return timed_call


class Instant(NamedTuple):
    """Nanoseconds of CPU time, those in kernels, and how many of these were called."""

    total: int
    kernels: int
    calls: int

    @classmethod
    def now(cls) -> Instant:
        """Read the clocks."""
        return cls(time.process_time_ns(), int(memory[RAN]), int(memory[CALLS]))

    def since(self, other: Instant) -> Instant:
        """Return what has passed since another instant."""
        return Instant(*(a - b for a, b in zip(self, other, strict=True)))


class Watch:
    """Notes when each solution of a search is recorded, and whether it is an offspring."""

    def __init__(self) -> None:
        self.noted: list[tuple[bool, Instant]] = []
        self._append = History.append

    def __enter__(self) -> Watch:
        def append(history: History, record: OffspringRecord) -> None:
            self._append(history, record)
            self.noted.append((not record.founder, Instant.now()))

        History.append = append  # type: ignore[method-assign]
        return self

    def __exit__(self, *error: object) -> None:
        History.append = self._append  # type: ignore[method-assign]


def search(X: Any, m: int, n_offspring: int) -> list[tuple[bool | None, Instant]]:
    """Search with one thread; return what every solution took, and whether it is an offspring.

    None stands for the first solution with all before it, and for what comes after the last.
    """
    limit = {"max_offspring": n_offspring} if n_offspring else {}
    began = Instant.now()
    with Watch() as watch:
        HGMeans(m, n_jobs=1, random_state=SEED, **limit).fit(X)
    instants = [began, *(instant for _, instant in watch.noted), Instant.now()]
    kinds = [None, *(is_offspring for is_offspring, _ in watch.noted[1:]), None]
    return [(kind, b.since(a)) for kind, (a, b) in zip(kinds, pairwise(instants), strict=True)]


def total_of(parts: list[Instant]) -> Instant:
    return Instant(*(sum(numbers) for numbers in zip(*parts, strict=True)))


def measure(setup: str, n_threads: int, rounds: int) -> dict[str, Any]:
    """Run the searches of a problem; return a row of the table."""
    name, n_offspring = setup.rsplit(":", 1)
    X, m = samples_of(name)
    # Kernels are compiled or loaded, and memory is touched.
    search(X, m, 2)
    parts = min(
        (search(X, m, int(n_offspring)) for _ in range(rounds)),
        key=lambda parts: sum(part.total for _, part in parts),
    )
    offspring = [part for kind, part in parts if kind]
    each, serial = total_of(offspring), total_of([part for kind, part in parts if kind is None])
    shared = total_of([part for kind, part in parts if kind is not None])
    fastest = serial.total + max(shared.total - shared.kernels, shared.total / n_threads)
    return {
        "setup": setup,
        "kernels": each.kernels / len(offspring) / 1e6,
        "python": (each.total - each.kernels) / len(offspring) / 1e3,
        "calls": each.calls / len(offspring),
        "serial": 100 * serial.total / (serial.total + shared.total),
        "limit": (serial.total + shared.total) / fastest,
    }


def main(given: Sequence[str] | None = None) -> None:
    parser = parser_for("interpreter", __doc__)
    parser.add_argument("setups", nargs="*", default=SETUPS, help="as for lab.cores")
    parser.add_argument("--threads", type=int, default=16, help="for the limit")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args(given)
    kept = watch_kernels()
    columns = [
        Column("problem", "setup"),
        Column("kernels", "kernels", "{:.3f} ms"),
        Column("python", "python", "{:.0f} µs"),
        Column("calls", "calls", "{:.1f}"),
        Column("serial", "serial", "{:.1f} %"),
        Column("limit", "limit", "{:.1f}x"),
    ]
    table = Table(columns, max(arguments.setups, key=len))
    table.print_head()
    for setup in arguments.setups:
        table.print_row(measure(setup, arguments.threads, arguments.rounds))
    del kept
