"""Follow a stream of solutions: keep the best, record each of them, and stop in time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from evomeans.engines.protocol import Refinement
from evomeans.search.interrupts import DeferredInterrupt
from evomeans.search.stopping import StopReason


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One solution of a search.

    Parameters
    ----------
    number : int
        1, 2, … in the order in which the solutions were made.
    inertia : float
        Of this solution.
    best : float
        Lowest inertia so far, this one included.
    n_iter : int
        K-means iterations it took.
    seconds : float
        Since the search began.
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

    The first solution is always taken, so that there is an answer whatever the limits are.

    Returns
    -------
    best : Refinement
        The solution with the lowest inertia; the first of equal ones.
    history : tuple of RunRecord
        One record per solution.
    stop_reason : StopReason
        Why it ended; MAX_ITER if there were no more solutions.
    """
    began = clock()
    best: Refinement | None = None
    history: list[RunRecord] = []
    for number, solution in enumerate(solutions, start=1):
        if best is None or solution.inertia < best.inertia:
            best = solution
        seconds = clock() - began
        record = RunRecord(number, solution.inertia, best.inertia, solution.n_iter, seconds)
        history.append(record)
        reason = _reason_to_stop(record, interrupt.requested, max_time, target_inertia)
        if reason is not None:
            return best, tuple(history), reason
    assert best is not None, "every method makes at least one solution"
    return best, tuple(history), StopReason.MAX_ITER


def _reason_to_stop(
    last: RunRecord, interrupted: bool, max_time: float | None, target_inertia: float | None
) -> StopReason | None:
    if interrupted:
        return StopReason.INTERRUPTED
    if last.best == 0.0:
        return StopReason.PROVEN_OPTIMAL
    if target_inertia is not None and last.best <= target_inertia:
        return StopReason.TARGET_INERTIA
    if max_time is not None and last.seconds >= max_time:
        return StopReason.MAX_TIME
    return None
