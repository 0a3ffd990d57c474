"""Follow a stream of solutions: keep the best, write down the way, and stop when it is time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from evomeans.engines.protocol import Refinement
from evomeans.search.interrupts import DeferredInterrupt
from evomeans.search.settings import check_limits
from evomeans.search.stopping import StopReason


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What happened to one solution.

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
        Since the fit began to search.
    """

    number: int
    inertia: float
    best: float
    n_iter: int
    seconds: float


@dataclass(frozen=True)
class Limits:
    """When to stop before the stream of solutions ends.

    Parameters
    ----------
    max_time : float, optional
        Seconds.
    target_inertia : float, optional
        An inertia that is low enough.
    """

    max_time: float | None = None
    target_inertia: float | None = None

    def __post_init__(self) -> None:
        check_limits(self.max_time, self.target_inertia)


@dataclass(frozen=True)
class Pursuit:
    """How following a stream of solutions ended.

    Parameters
    ----------
    best : Refinement
        The deepest solution; the first of equal ones.
    history : tuple of RunRecord
        One record per solution.
    stop_reason : StopReason
        Why it ended; ``max_iter`` if the stream came to its own end.
    """

    best: Refinement
    history: tuple[RunRecord, ...]
    stop_reason: StopReason


def pursue(
    solutions: Iterable[Refinement],
    limits: Limits,
    interrupt: DeferredInterrupt | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Pursuit:
    """Take solutions one by one until they end or a limit is reached.

    The first solution is always taken, so that there is an answer whatever the limits are.
    """
    began = clock()
    best: Refinement | None = None
    history: list[RunRecord] = []
    reason: StopReason | None = None
    for number, solution in enumerate(solutions, start=1):
        if best is None or solution.inertia < best.inertia:
            best = solution
        seconds = clock() - began
        history.append(RunRecord(number, solution.inertia, best.inertia, solution.n_iter, seconds))
        interrupted = interrupt is not None and interrupt.requested
        reason = _reason_to_stop(best.inertia, seconds, limits, interrupted)
        if reason is not None:
            break
    assert best is not None, "every method makes at least one solution"
    return Pursuit(best, tuple(history), reason or StopReason.MAX_ITER)


def _reason_to_stop(
    best: float, seconds: float, limits: Limits, interrupted: bool
) -> StopReason | None:
    if interrupted:
        return StopReason.INTERRUPTED
    if best == 0.0:
        return StopReason.PROVEN_OPTIMAL
    if limits.target_inertia is not None and best <= limits.target_inertia:
        return StopReason.TARGET_INERTIA
    if limits.max_time is not None and seconds >= limits.max_time:
        return StopReason.MAX_TIME
    return None
