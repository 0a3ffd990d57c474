"""When the search ends, and how it says why."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from evomeans.search.settings import SearchSettings


class StopReason(StrEnum):
    """Why a search ended. Compares equal to its text."""

    MAX_ITER = "max_iter"
    NO_IMPROVEMENT = "no_improvement"
    AGREEMENT = "agreement"
    MAX_TIME = "max_time"
    TARGET_INERTIA = "target_inertia"
    OBSERVER = "observer"
    INTERRUPTED = "interrupted"
    PROVEN_OPTIMAL = "proven_optimal"
    PRECISION = "precision"


# However little time there is, this many solutions are made, unless it is exceeded by this share.
FEW, GRACE = 3, 0.1


class Progress(NamedTuple):
    """What stopping criteria look at.

    Parameters
    ----------
    offspring : int
        Made so far.
    is_settled : bool
        Whether the population has found what it can.
    n_agreeing : int
        Founders and populations that, independently, have come to the best solution.
    seconds : float
        Since the search began.
    best : float
        Lowest inertia so far.
    solutions : int
        Made so far, founders included.
    is_exhausted : bool
        Whether the founders of the population had no other starts than those before.
    reserve : float
        Seconds that are needed after the search.
    """

    offspring: int
    is_settled: bool
    n_agreeing: int
    seconds: float
    best: float
    solutions: int = FEW
    is_exhausted: bool = False
    reserve: float = 0.0


def reason_to_stop(progress: Progress, settings: SearchSettings) -> StopReason | None:
    """Return the first criterion that holds, or None to go on."""
    target, limit = settings.target_inertia, settings.max_time
    if progress.best == 0.0:
        return StopReason.PROVEN_OPTIMAL
    if target is not None and progress.best <= target:
        return StopReason.TARGET_INERTIA
    if progress.offspring >= settings.max_offspring:
        return StopReason.MAX_ITER
    agreement = settings.strategy.agreement
    if agreement == 1 and progress.is_settled:
        return StopReason.NO_IMPROVEMENT
    if agreement > 1 and progress.n_agreeing >= agreement:
        return StopReason.AGREEMENT
    if agreement > 1 and progress.is_settled and progress.is_exhausted:
        # Where founders cannot differ, further populations would be copies of the others.
        return StopReason.NO_IMPROVEMENT
    if limit is not None:
        grace = 0.0 if progress.solutions >= FEW else GRACE * limit
        if progress.seconds + progress.reserve >= limit + grace:
            return StopReason.MAX_TIME
    return None
