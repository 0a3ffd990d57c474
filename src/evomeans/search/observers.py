"""Observers of a search, and how long it can still take at most."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from evomeans.search.history import OffspringRecord
from evomeans.search.settings import SearchSettings
from evomeans.wording import duration_text

if TYPE_CHECKING:
    from evomeans.search.population import Population
    from evomeans.search.state import SearchState


class Forecast:
    """Knows the limits of a search, and measures its pace from the records it is given.

    Parameters
    ----------
    max_offspring : int
        The search ends after this many.
    longest_wait : int
        A population has settled after this many in a row without improvement.
    max_time : float, optional
        The search ends after this many seconds.
    """

    def __init__(
        self, max_offspring: int, longest_wait: int, max_time: float | None = None
    ) -> None:
        self.max_offspring = max_offspring
        self.longest_wait = longest_wait
        self.max_time = max_time
        # The first offspring of this process, from which the pace is measured.
        self._began: OffspringRecord | None = None
        self._last: OffspringRecord | None = None

    @classmethod
    def of(cls, settings: SearchSettings, n_clusters: int) -> Forecast:
        """Return the forecast for a search with these settings."""
        wait = settings.longest_wait(n_clusters)
        return cls(settings.max_offspring, wait, settings.max_time)

    def add(self, record: OffspringRecord) -> None:
        """Take in a record."""
        self._last = record
        if self._began is None and record.number > 0:
            self._began = record

    def seconds_left(self, seconds: float) -> float | None:
        """Return the most that can still follow after some seconds, if that can be told."""
        left = []
        if self.max_time is not None:
            left.append(max(0.0, self.max_time - seconds))
        if self._last and self._began and (made := self._last.number - self._began.number):
            pace = (self._last.seconds - self._began.seconds) / made
            left.append((self.max_offspring - self._last.number) * pace)
        return min(left) if left else None


class SearchObserver:
    """Watches a search. Every verb does nothing unless a subclass has it do something.

    Any function of a record will do as an observer, too: it is :meth:`on_solution`. An object need
    not be of this class either; it is asked for the verbs that it has.
    """

    def on_start(self, state: SearchState) -> None:
        """See the state with which the search begins, or from which it continues."""

    def on_solution(self, record: OffspringRecord) -> object:
        """See what became of a solution; return True to end the search."""

    def on_best(self, record: OffspringRecord) -> None:
        """See a solution that is better than all before it."""

    def on_settled(self, population: Population) -> None:
        """See a population that has found what it can, before another one takes its place."""

    def on_end(self) -> None:
        """Tidy up. The search has ended, by whatever reason or error."""

    def __call__(self, record: OffspringRecord) -> object:
        """Be an observer like a function."""
        return self.on_solution(record)


Observer = Callable[[OffspringRecord], object]
"""Called with every record; returning ``True`` ends the search."""


class Audience:
    """All observers of a search.

    Parameters
    ----------
    observers : sequence of callables and SearchObservers
    """

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._seeing = [getattr(one, "on_solution", one) for one in observers]
        self._verbs = {
            verb: [getattr(one, verb) for one in observers if hasattr(one, verb)]
            for verb in ("on_start", "on_best", "on_settled", "on_end")
        }
        self.said_stop = False

    def __len__(self) -> int:
        return len(self._seeing)

    def tell(self, verb: str, *seen: Any) -> None:
        """Tell all who want to know."""
        for told in self._verbs[verb]:
            told(*seen)

    def show(self, record: OffspringRecord, is_best: bool) -> None:
        """Show a record to all, and note whether one of them asks to stop."""
        answers = [see(record) for see in self._seeing]
        self.said_stop = any(
            isinstance(answer, bool | np.bool_) and bool(answer) for answer in answers
        )
        if is_best:
            self.tell("on_best", record)


class ProgressPrinter(SearchObserver):
    """Prints a line when the best improves and at intervals, for ``verbose``.

    Parameters
    ----------
    verbose : int
        1 prints at most every few seconds, 2 at every improvement as well, 3 every record.
    every : float
        Seconds between two lines.
    name : str
        What a line begins with.
    forecast : Forecast, optional
        The limits of the search, if lines shall name them.
    """

    def __init__(
        self,
        verbose: int = 1,
        every: float = 2.0,
        name: str = "HGMeans",
        forecast: Forecast | None = None,
    ) -> None:
        self.verbose = verbose
        self.every = every
        self.name = name
        self.forecast = forecast
        self._best = float("inf")
        self._printed = -float("inf")

    def on_solution(self, record: OffspringRecord) -> None:
        """Print the record if it is time to."""
        if self.forecast is not None:
            self.forecast.add(record)
        now = time.perf_counter()
        improved = record.best < self._best
        due = now - self._printed >= self.every
        if due or self.verbose >= 3 or (improved and self.verbose >= 2):
            self._printed = now
            print(self.line(record), file=sys.stdout, flush=True)
        self._best = min(self._best, record.best)

    def line(self, record: OffspringRecord) -> str:
        """Write the state of a search into one line."""
        parts = [f"[{self.name}] {record.seconds:8.1f} s", f"offspring {record.number:5d}"]
        if self.forecast is not None:
            left = self.forecast.seconds_left(record.seconds)
            parts[-1] += f" of {self.forecast.max_offspring}"
            parts.append(
                f"population {record.population}: {record.since_improvement} of "
                f"{self.forecast.longest_wait} since it improved"
            )
            parts += [] if left is None else [f"at most {duration_text(left)} left"]
        return "  ".join([*parts, f"best inertia {record.best:.8g}"])
