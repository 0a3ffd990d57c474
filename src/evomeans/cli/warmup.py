"""``evomeans warmup``."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from evomeans.cli.terminal import Terminal
from evomeans.engines.protocol import Ability
from evomeans.wording import counted


def needed_calls() -> list[Any]:
    """Return what all models and proofs call on the CPU, for all kinds of samples."""
    from evomeans.compiled import assignment, merging
    from evomeans.engines import trimmed
    from evomeans.engines.constrained import engine as constrained
    from evomeans.engines.cpu import choose
    from evomeans.engines.cpu.prepare import calls, other_calls
    from evomeans.engines.spherical import engine as spherical
    from evomeans.exact import line_kernels, prepare

    needed = [*assignment.kernel_calls(), *merging.kernel_calls(), *prepare.kernel_calls()]
    needed += [*constrained.kernel_calls(), *trimmed.kernel_calls(), *line_kernels.kernel_calls()]
    for dtype in (np.float64, np.float32):
        dense = np.ones((1, 1), dtype)
        for samples in (dense, csr_array(dense)):
            needed += [
                *calls(samples, 1, frozenset(Ability), breeding=True, momentum=True),
                *other_calls(samples),
            ]
            needed += [*spherical.kernel_calls_for(samples), *choose.kernel_calls_for(samples)]
    return needed


def compile_kernels(jobs: int, terminal: Terminal) -> int:
    """Compile what is not yet compiled for this machine."""
    from evomeans.compiled.ready import count_cores, missing_jobs, ready

    needed = needed_calls()
    began, total, done = time.perf_counter(), len(missing_jobs(needed)), 0

    def show(job: Any) -> None:
        nonlocal done
        done += 1
        seconds = time.perf_counter() - began
        terminal.note(f"{done:>3} of {total}  {seconds:5.1f} s  {job.kernel.py_func.__name__}")

    ready(needed, max(1, jobs if jobs > 0 else count_cores() + 1 + jobs), show)
    seconds = time.perf_counter() - began
    compiled = f"{counted(total, 'kernel')} compiled in {seconds:.1f} s"
    text = compiled if total else f"All {counted(len(needed), 'kernel')} were compiled already"
    record = {"compiled": total, "needed": len(needed), "seconds": round(seconds, 3)}
    terminal.result(record, f"{text}; evomeans info says where they are")
    return 0
