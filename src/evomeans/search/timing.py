"""The time of a search: what is left of it, what may be done in it, and whether Ctrl-C has come."""

from __future__ import annotations

import math
from collections.abc import Callable

from evomeans.engines.protocol import Engine
from evomeans.search.founding import Founding, KMeansPlusPlus, quick_start
from evomeans.search.stopping import DeferredInterrupt

# Of the time that is left, what it should take to place the first solution; K-means gets the rest.
# And when centres on random samples take the places of those that are missing.
PLACING, HURRYING = 0.3, 0.6
# If k-means++ would take longer than that, a quick start takes its place: of so much of the time
# left, or of all of it if there are fewer looks at all samples left than K-means needs to get
# anywhere. It has so much of the limit, and so many seconds, even if labels need all the time:
# without a single iteration, an answer is worth little.
QUICK, A_START = 0.45, 2.0
LEAST_SHARE, LEAST_SECONDS = 0.1, 0.1


class Timing:
    """The clock of a search, and its limit.

    Parameters
    ----------
    engine : Engine
    n_clusters : int
    max_time : float, optional
        Seconds that the search may take.
    clock : callable
        Seconds.
    spent : float
        Seconds of the search before this moment.
    interrupt : DeferredInterrupt
        Whether Ctrl-C has come.
    """

    def __init__(
        self,
        engine: Engine,
        n_clusters: int,
        max_time: float | None,
        clock: Callable[[], float],
        spent: float,
        interrupt: DeferredInterrupt,
    ) -> None:
        self.engine = engine
        self.n_clusters = n_clusters
        self.max_time = max_time
        self.clock = clock
        self.interrupt = interrupt
        # Time between a checkpoint and its resumption does not count.
        self._began = clock() - spent
        left = self.seconds_left
        self._hurries_at = math.inf if left is None else self.seconds + HURRYING * left
        self._is_quick, self._overdue_at = False, -math.inf

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

    def should_hurry(self) -> bool:
        """Whether to place the first solution has taken its share of the time; said once."""
        is_placing = self._is_quick or self.engine.is_prepared
        if self.seconds < self._hurries_at or not is_placing:
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
        if founding.n_trials(self.n_clusters) * look <= PLACING * max(left, 0.0):
            return founding
        least = LEAST_SHARE * max_time + LEAST_SECONDS
        seconds = max(QUICK * left if left >= A_START * look else left, least)
        self._is_quick, self._overdue_at = True, self.seconds + least
        self._hurries_at = self.seconds + seconds
        return quick_start(self.engine, self.n_clusters, seconds / look)
