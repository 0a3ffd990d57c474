"""When a search ends: the clock, Ctrl-C, the reasons, and the result."""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Callable
from dataclasses import InitVar, dataclass
from enum import StrEnum
from types import FrameType
from typing import Any, NamedTuple

from evomeans.engines.protocol import Ability, Engine
from evomeans.search.certainty import level_of_cheap
from evomeans.search.founding import (
    Founding,
    KMeansPlusPlus,
    has_many_features,
    looks_to_begin,
    quick_start,
)
from evomeans.search.history import History
from evomeans.search.population import Individual
from evomeans.search.settings import MOST_AGREEING, SearchSettings

# Shares of the time left to place the first solution, if quick steps could follow a quick start or
# not, and after which random samples complete it.
PLACING_OR_STEPS, PLACING, HURRYING = 0.02, 0.3, 0.6
# If k-means++ would take longer, a quick start takes its place, with this share of the time left;
# and the share of that and the quick steps that follow it.
QUICK, STEPPING = 0.6, 0.7
# Looks at all samples that have to be left for K-means to gain more than quick steps; and those of
# a quick start and its steps, at most, if K-means follows.
LOOKS_OF_K_MEANS, LOOKS_OF_STEPS = 6.0, 10.0
# What a quick start has of the limit, and in seconds, even if labels need all the time.
LEAST_SHARE_OF_TIME, LEAST_SECONDS = 0.1, 0.03


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

    def __exit__(self, *error: object) -> None:
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


# However little time there is, this many solutions are made, unless it is exceeded by this share.
FEW_SOLUTIONS, GRACE = 3, 0.1


class Progress(NamedTuple):
    """The progress of a search, which stopping criteria look at."""

    offspring: int
    is_settled: bool  # whether the population has found what it can
    n_agreeing: int  # founders and populations that, independently, have come to the best solution
    seconds: float  # since the search began
    best: float  # lowest inertia so far
    solutions: int = FEW_SOLUTIONS  # founders and offspring
    is_exhausted: bool = False  # whether its founders had no other starts than those before
    reserve: float = 0.0  # seconds that are needed after the search
    certainty: float = 0.0  # that nothing is better, as far as populations that have ended tell
    work: float = math.inf  # see certainty.work


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
        grace = 0.0 if progress.solutions >= FEW_SOLUTIONS else GRACE * limit
        if progress.seconds + progress.reserve >= limit + grace:
            return StopReason.MAX_TIME
    return None


@dataclass(eq=False)
class Timing:
    """The clock of a search, which has ``spent`` some seconds already, and its limit."""

    engine: Engine
    n_clusters: int
    max_time: float | None
    clock: Callable[[], float]
    spent: InitVar[float]
    interrupt: DeferredInterrupt

    def __post_init__(self, spent: float) -> None:
        # Time between a checkpoint and its resumption does not count.
        self._began = self.clock() - spent
        left = self.seconds_left
        self._hurries_at = math.inf if left is None else self.seconds + HURRYING * left
        self._is_quick, self._overdue_at = False, -math.inf
        self.has_no_k_means = False
        """Whether a quick start has all the time, because K-means on all samples needs more."""

    @property
    def seconds(self) -> float:
        """How long the search has taken."""
        return self.clock() - self._began

    @property
    def reserve(self) -> float:
        """Seconds that it will take to label the samples, once the search has ended."""
        is_timed = self.max_time is not None
        return self.engine.labelling_seconds(self.n_clusters) if is_timed else 0.0

    @property
    def seconds_left(self) -> float | None:
        """How long it may still take; None if there is no limit."""
        return None if self.max_time is None else self.max_time - self.reserve - self.seconds

    def may_take(self, share: float) -> Callable[[], bool]:
        """Return what says that a step has taken a share of the time left, or that Ctrl-C came."""
        left = self.seconds_left
        end = math.inf if left is None else self.seconds + share * max(left, 0.0)
        return lambda: self.interrupt.requested or self.seconds >= end

    @property
    def grace(self) -> float:
        """Seconds until a search without a solution has to end; infinite if there is no limit."""
        left = self.seconds_left
        return math.inf if left is None else max(0.0, left, self._overdue_at - self.seconds)

    @property
    def is_overdue(self) -> bool:
        """Whether a search without a solution has to end: time is up, or Ctrl-C has come."""
        return self.interrupt.requested or self.grace <= 0.0

    @property
    def until_hurry(self) -> float:
        """Seconds until the first solution should be placed; infinite if it cannot be hurried."""
        return max(0.0, self._hurries_at - self.seconds) if self._is_placing else math.inf

    @property
    def _is_placing(self) -> bool:
        """Whether the first solution is being placed, and samples are not put into order first."""
        return self._is_quick or self.engine.is_prepared

    def should_hurry(self) -> bool:
        """Whether to place the first solution has taken its share of the time; said once."""
        if self.seconds < self._hurries_at or not self._is_placing:
            return False
        self._hurries_at = math.inf
        return True

    def in_time(self, founding: Founding) -> Founding:
        """Return how the first solution begins: by a quick start if k-means++ takes too long."""
        left, max_time = self.seconds_left, self.max_time
        if left is None or max_time is None or not isinstance(founding, KMeansPlusPlus):
            return founding
        # A look at all samples for each candidate of all centres takes as long as their labels.
        look = self.engine.labelling_seconds(self.n_clusters)
        share = PLACING_OR_STEPS if has_many_features(self.engine) else PLACING
        if founding.n_trials(self.n_clusters) * look <= share * max(left, 0.0):
            return founding
        least = LEAST_SHARE_OF_TIME * max_time + LEAST_SECONDS
        self._is_quick, self._overdue_at = True, self.seconds + least
        # What would not take K-means anywhere is for steps.
        to_k_means = LOOKS_OF_K_MEANS + looks_to_begin(self.engine, self.n_clusters)
        self.has_no_k_means = has_many_features(self.engine) and left < to_k_means * look
        seconds = left if self.has_no_k_means else min(STEPPING * left, LOOKS_OF_STEPS * look)
        self._hurries_at = self.seconds + max(seconds, least)
        return quick_start(self.engine, self.n_clusters, max(QUICK * left, least) / look)


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
        Of the offspring, those that were abandoned because they would have been worse than all
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
