"""Follow a stream of solutions: keep the best, record each of them, and stop in time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from evomeans.engines.protocol import Refinement
from evomeans.search.settings import SearchSettings
from evomeans.search.stopping import DeferredInterrupt, Progress, StopReason, reason_to_stop


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One solution of a search.

    ``number`` counts from 1. ``best`` is the lowest inertia so far, this one included. ``n_iter``
    counts iterations of K-means, and ``seconds`` the time since the search began.
    """

    number: int
    inertia: float
    best: float
    n_iter: int
    seconds: float


def pursue(
    solutions: Iterable[Refinement],
    interrupt: DeferredInterrupt,
    max_time: float | None = None,
    target_inertia: float | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[Refinement, tuple[RunRecord, ...], StopReason]:
    """Take solutions one by one until they end or a limit is reached.

    The first solution is always taken, so that there is an answer whatever the limits are. Returns
    the best solution (the first of equal ones), the record of all, and why it ended: MAX_ITER if
    there were no more solutions.
    """
    settings = SearchSettings(max_time=max_time, target_inertia=target_inertia)
    began = clock()
    best: Refinement | None = None
    history: list[RunRecord] = []
    for number, solution in enumerate(solutions, start=1):
        if best is None or solution.inertia < best.inertia:
            best = solution
        seconds = clock() - began
        record = RunRecord(number, solution.inertia, best.inertia, solution.n_iter, seconds)
        history.append(record)
        # The limits on offspring are those of HG-means alone.
        progress = Progress(0, False, 0, seconds, best.inertia)
        interrupted = StopReason.INTERRUPTED if interrupt.requested else None
        reason = interrupted or reason_to_stop(progress, settings)
        if reason is not None:
            return best, tuple(history), reason
    assert best is not None, "every method makes at least one solution"
    return best, tuple(history), StopReason.MAX_OFFSPRING
