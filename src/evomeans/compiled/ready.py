"""Compile the kernels that a fit needs before it begins, several at a time.

Numba compiles one function at a time in a process. So other processes help: each takes the next
kernel that is not claimed, and what they compile meets in the disk cache.
"""

from __future__ import annotations

import logging
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from threading import Event, Thread
from typing import Any, NamedTuple

from evomeans.compiled.check import is_trusted

LOG = logging.getLogger("evomeans")
# More would hardly help: the kernel that takes longest takes as long as three others.
MOST_PROCESSES = 4
# Less is not worth a word, nor another process, which needs a second to start.
SECONDS_WORTH_A_WORD = 1.0
# A busy or slow machine takes this many times as long as the one on which kernels were timed.
SLOWER = 2.5
# What a session of its own is on other systems, and no window.
OWN_GROUP: int = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0) | getattr(
    subprocess, "CREATE_NO_WINDOW", 0
)


class Call(NamedTuple):
    """A call that has to be ready: a kernel, arguments of the right types, seconds to compile."""

    kernel: Any
    arguments: tuple[Any, ...]
    seconds: float

    @property
    def types(self) -> tuple[Any, ...]:
        """Types of the arguments."""
        found: tuple[Any, ...] = self.kernel.types_of(self.arguments)
        return found


def missing_calls(calls: Sequence[Call]) -> list[Call]:
    """Return the calls whose kernels have to be compiled, longest first."""
    found = [one for one in calls if not one.kernel.is_compiled(one.types)]
    return sorted(found, key=lambda one: -one.seconds)


def ready(
    calls: Sequence[Call],
    n_processes: int | None = None,
    done: Callable[[Call], None] = lambda call: None,
) -> None:
    """Compile what these calls need, with ``n_processes`` in all; say so if it takes a while."""
    calls = missing_calls(calls)
    if not calls:
        return
    seconds = sum(one.seconds for one in calls)
    takes_long = seconds > SECONDS_WORTH_A_WORD
    if n_processes is None:
        n_processes = min(count_cores(), MOST_PROCESSES)
    n_processes = min(n_processes, len(calls)) if takes_long and can_help(calls) else 1
    if takes_long and is_trusted():
        least = max(seconds / n_processes, calls[0].seconds)
        message = "evomeans is compiling for this machine, once: %.0f to %.0f s"
        LOG.warning(message, least, SLOWER * least)
    elif takes_long:
        LOG.warning("evomeans is compiling the plain way, which takes minutes")
    with helpers(calls, n_processes - 1):
        in_background(compiling(calls, done))


def compiling(calls: Sequence[Call], done: Callable[[Call], None]) -> Iterator[Call]:
    """Compile what no other process has claimed, and then wait for the others, one by one."""
    for one in calls:
        one.kernel.compile_unless_claimed(one.types)
        if one.types in one.kernel.overloads:
            done(one)
        yield one
    for one in calls:
        if one.types not in one.kernel.overloads:
            one.kernel.compile(one.types)
            done(one)
            yield one


def in_background(steps: Iterator[Call]) -> None:
    """Let another thread take the steps: Python sees Ctrl-C only between two calls."""
    is_interrupted, errors = Event(), []

    def work() -> None:
        try:
            for _ in steps:
                if is_interrupted.is_set():
                    return
        except BaseException as error:
            errors.append(error)

    thread = Thread(target=work, name="evomeans compiler", daemon=True)
    try:
        thread.start()
        while thread.is_alive():
            # On Windows, Ctrl-C does not end a wait without a limit.
            thread.join(0.1)
    except BaseException:
        is_interrupted.set()
        raise
    if errors:
        raise errors[0]


def count_cores() -> int:
    """Return how many cores this process may use."""
    has_affinity = hasattr(os, "sched_getaffinity")
    return len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1


def can_help(calls: Sequence[Call]) -> bool:
    """Whether another process can compile for this one: there is a cache, and an interpreter."""
    is_python = Path(sys.executable or "").stem.lower().startswith(("python", "pypy"))
    has_cache = all(one.kernel.can_share for one in calls)
    return has_cache and is_python and not getattr(sys, "frozen", False)


@contextmanager
def helpers(calls: Sequence[Call], count: int) -> Iterator[None]:
    """Run processes that compile the same; they end with the block at the latest."""
    # Kernels are found by their names.
    functions = [(one.kernel.py_func, one.types) for one in calls]
    names = [(function.__module__, function.__name__, types) for function, types in functions]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    # -P: no modules of the current folder. In a session of its own, it does not receive Ctrl-C.
    command = [sys.executable, "-P", "-m", "evomeans.compiled.ready"]
    nowhere = subprocess.DEVNULL
    apart: dict[str, Any] = {"start_new_session": True, "creationflags": OWN_GROUP}
    apart |= {"stdin": subprocess.PIPE, "stdout": nowhere, "stderr": nowhere}
    started = []
    try:
        for _ in range(count):
            try:
                process = subprocess.Popen(command, env=environment, **apart)
            except OSError:
                # No more processes are allowed: this one does it all.
                break
            started.append(process)
            assert process.stdin
            try:
                with process.stdin:
                    process.stdin.write(pickle.dumps(names))
            except OSError:
                # It has ended already; Windows does not call that a broken pipe.
                pass
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def help_another() -> None:
    """Compile what standard input names and no other process has claimed: what a helper does."""
    for module, name, types in pickle.load(sys.stdin.buffer):
        getattr(import_module(module), name).compile_unless_claimed(types)


if __name__ == "__main__":
    help_another()
