"""When the search ends, and how it says why."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from evomeans.search.settings import SearchSettings


class StopReason(StrEnum):
    """Why a search ended. Compares equal to its text."""

    MAX_ITER = "max_iter"
    NO_IMPROVEMENT = "no_improvement"
    MAX_TIME = "max_time"
    TARGET_INERTIA = "target_inertia"
    OBSERVER = "observer"
    INTERRUPTED = "interrupted"
    PROVEN_OPTIMAL = "proven_optimal"


# However little time there is, this many solutions are made, unless they take longer by so much.
FEW, GRACE = 3, 1.0


class Progress(NamedTuple):
    """What stopping criteria look at.

    Parameters
    ----------
    offspring : int
        Made so far.
    since_improvement : int
        Offspring since the best of the population improved.
    finds : int
        Populations that ended with the best solution, this one included if it has it.
    seconds : float
        Since the search began.
    best : float
        Lowest inertia so far.
    solutions : int
        Made so far, founders included.
    """

    offspring: int
    since_improvement: int
    finds: int
    seconds: float
    best: float
    solutions: int = FEW


def reason_to_stop(progress: Progress, settings: SearchSettings) -> StopReason | None:
    """Return the first criterion that holds, or None to go on."""
    target, limit = settings.target_inertia, settings.max_time
    if progress.best == 0.0:
        return StopReason.PROVEN_OPTIMAL
    if target is not None and progress.best <= target:
        return StopReason.TARGET_INERTIA
    if progress.offspring >= settings.max_offspring:
        return StopReason.MAX_ITER
    stagnant = progress.since_improvement >= settings.patience
    if stagnant and progress.finds >= settings.strategy.agreement:
        return StopReason.NO_IMPROVEMENT
    if limit is not None:
        grace = 0.0 if progress.solutions >= FEW else GRACE
        if progress.seconds >= limit + grace:
            return StopReason.MAX_TIME
    return None
