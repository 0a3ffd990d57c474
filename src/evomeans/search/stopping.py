"""When a search ends, by which reason, and with which result."""

from __future__ import annotations

import math
import signal
import threading
from dataclasses import dataclass
from enum import StrEnum
from types import FrameType, TracebackType
from typing import Any, NamedTuple

from evomeans.engines.protocol import Ability
from evomeans.search.certainty import level_of_cheap
from evomeans.search.history import History
from evomeans.search.population import Individual
from evomeans.search.settings import MOST_AGREEING, SearchSettings


class DeferredInterrupt:
    """While entered, the first SIGINT only sets :attr:`requested`; a second one raises.

    Only the main thread can receive signals; in other threads, and where the program has a handler
    of its own, this does nothing. A program that ignores SIGINT still does, but may call the
    handler itself, with another signal, to end the search.
    """

    def __init__(self) -> None:
        self.requested = False
        self._previous: Any = None

    def __enter__(self) -> DeferredInterrupt:
        if threading.current_thread() is threading.main_thread():
            current = signal.getsignal(signal.SIGINT)
            if current in (signal.default_int_handler, signal.SIG_IGN):
                self._previous = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        if signum == signal.SIGINT and self._previous is signal.SIG_IGN:
            return
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True


class StopReason(StrEnum):
    """Why a search ended. Compares equal to its text."""

    MAX_OFFSPRING = "max_offspring"
    NO_IMPROVEMENT = "no_improvement"
    AGREEMENT = "agreement"
    MAX_TIME = "max_time"
    TARGET_INERTIA = "target_inertia"
    OBSERVER = "observer"
    INTERRUPTED = "interrupted"
    PROVEN_OPTIMAL = "proven_optimal"
    PRECISION = "precision"

    @classmethod
    def _missing_(cls, value: object) -> StopReason | None:
        # Its name in files of earlier versions.
        return cls.MAX_OFFSPRING if value == "max_iter" else None


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
    certainty : float
        That there is nothing better, as far as populations that have ended tell.
    work : float
        That the search has taken (:func:`~evomeans.search.certainty.work`).
    """

    offspring: int
    is_settled: bool
    n_agreeing: int
    seconds: float
    best: float
    solutions: int = FEW
    is_exhausted: bool = False
    reserve: float = 0.0
    certainty: float = 0.0
    work: float = math.inf


def reason_to_stop(progress: Progress, settings: SearchSettings) -> StopReason | None:
    """Return the first criterion that holds, or None to go on."""
    target, limit = settings.target_inertia, settings.max_time
    if progress.best == 0.0:
        return StopReason.PROVEN_OPTIMAL
    if target is not None and progress.best <= target:
        return StopReason.TARGET_INERTIA
    if progress.offspring >= settings.max_offspring:
        return StopReason.MAX_OFFSPRING
    agreement = settings.strategy.agreement
    if agreement == 1 and progress.is_settled:
        return StopReason.NO_IMPROVEMENT
    if agreement > 1 and progress.n_agreeing >= agreement:
        level = level_of_cheap(settings.certainty, progress.work)
        if progress.certainty >= level or progress.n_agreeing >= MOST_AGREEING:
            return StopReason.AGREEMENT
    if agreement > 1 and progress.is_settled and progress.is_exhausted:
        # Where founders cannot differ, further populations would be copies of the others.
        return StopReason.NO_IMPROVEMENT
    if limit is not None:
        grace = 0.0 if progress.solutions >= FEW else GRACE * limit
        if progress.seconds + progress.reserve >= limit + grace:
            return StopReason.MAX_TIME
    return None


@dataclass(frozen=True)
class SearchResult:
    """The outcome of a search; complete whatever ended it.

    Parameters
    ----------
    best : Individual
        The solution with the lowest objective of the whole search.
    population : tuple of Individual
        The final members, best first.
    history : History
        One record per solution made.
    stop_reason : StopReason
        Which criterion ended the search.
    n_offspring : int
        Offspring made.
    n_rediscoveries : int
        Further starts, of founders or populations, that led to the best solution independently.
    certainty : float
        Probability that no solution within reach is better by more than 0.01 %
        (:mod:`~evomeans.search.certainty`); not a number if the search does not look for its best
        solution again.
    missing_abilities : frozenset of Ability
        What the strategy would have used and the engine cannot do.
    is_unfinished : bool
        Whether time was up before the first run of K-means had ended. The best solution is where
        it had come to then, and not a fixed point.
    n_given_up : int
        Of the offspring, those that were given up because they would have been worse than all
        survivors.
    n_on_samples : int
        Offspring of searches on samples, which are not among the others.
    levels : tuple of int
        Rows that the search was about, all rows first, then those of samples.
    """

    best: Individual
    population: tuple[Individual, ...]
    history: History
    stop_reason: StopReason
    n_offspring: int
    n_rediscoveries: int = 0
    certainty: float = math.nan
    missing_abilities: frozenset[Ability] = frozenset()
    is_unfinished: bool = False
    n_given_up: int = 0
    n_on_samples: int = 0
    levels: tuple[int, ...] = ()
