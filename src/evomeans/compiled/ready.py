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


class Job(NamedTuple):
    """A kernel to compile, and the types of its arguments."""

    kernel: Any
    types: tuple[Any, ...]
    seconds: float


def missing_jobs(calls: Sequence[Call]) -> list[Job]:
    """Return what has to be compiled for these calls, longest first."""
    jobs = [Job(one.kernel, one.kernel.types_of(one.arguments), one.seconds) for one in calls]
    missing = [job for job in jobs if not job.kernel.is_compiled(job.types)]
    return sorted(missing, key=lambda job: -job.seconds)


def ready(
    calls: Sequence[Call],
    n_processes: int | None = None,
    done: Callable[[Job], None] = lambda job: None,
) -> None:
    """Compile what these calls need, and say so if it takes a while.

    * ``n_processes``: including this one; by default as many as pay and as there are cores.
    * ``done``: called with every job that is done.
    """
    jobs = missing_jobs(calls)
    if not jobs:
        return
    seconds = sum(job.seconds for job in jobs)
    takes_long = seconds > SECONDS_WORTH_A_WORD
    if n_processes is None:
        n_processes = min(count_cores(), MOST_PROCESSES)
    n_processes = min(n_processes, len(jobs)) if takes_long and can_help(jobs) else 1
    if takes_long:
        announce(max(seconds / n_processes, jobs[0].seconds))
    with helpers(jobs, n_processes - 1):
        in_background(compiling(jobs, done))


def compiling(jobs: Sequence[Job], done: Callable[[Job], None]) -> Iterator[Job]:
    """Do the jobs that no other thread has claimed, and then wait for the others, one by one."""
    for job in jobs:
        job.kernel.compile_unless_claimed(job.types)
        if job.types in job.kernel.overloads:
            done(job)
        yield job
    for job in jobs:
        if job.types not in job.kernel.overloads:
            job.kernel.compile(job.types)
            done(job)
            yield job


def in_background(steps: Iterator[Job]) -> None:
    """Let another thread take the steps, while this one waits for it, or for Ctrl-C.

    Python sees Ctrl-C only between two calls, and a call of the compiler may take seconds. The
    thread then ends after the step that it is at.
    """
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


def announce(seconds: float) -> None:
    """Say that compilation takes a while."""
    if is_trusted():
        message = "evomeans is compiling for this machine, once: %.0f to %.0f s"
        LOG.warning(message, seconds, SLOWER * seconds)
    else:
        LOG.warning("evomeans is compiling the plain way, which takes minutes")


def can_help(jobs: Sequence[Job]) -> bool:
    """Whether another process can compile for this one: there is a cache, and an interpreter."""
    is_python = Path(sys.executable or "").stem.lower().startswith(("python", "pypy"))
    has_cache = all(job.kernel.can_share for job in jobs)
    return has_cache and is_python and not getattr(sys, "frozen", False)


@contextmanager
def helpers(jobs: Sequence[Job], count: int) -> Iterator[None]:
    """Run processes that do the same jobs; they end with the block at the latest."""
    # Kernels are found by their names.
    functions = ((job.kernel.py_func, job.types) for job in jobs)
    names = [(one.__module__, one.__name__, types) for one, types in functions]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    # -P: what lies in the current folder must not be imported in place of modules. In a session of
    # its own, Ctrl-C does not reach a helper; this process ends it.
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
    """Do the jobs on standard input that no other process has claimed: what a helper does."""
    for module, name, types in pickle.load(sys.stdin.buffer):
        getattr(import_module(module), name).compile_unless_claimed(types)


if __name__ == "__main__":
    help_another()
