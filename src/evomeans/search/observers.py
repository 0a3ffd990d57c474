"""Watching a search while it runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence

import numpy as np

from evomeans.search.forecast import Forecast
from evomeans.search.history import OffspringRecord
from evomeans.wording import duration_text

Observer = Callable[[OffspringRecord], object]
"""Called with every record; returning ``True`` ends the search."""


def notify(observers: Sequence[Observer], record: OffspringRecord) -> bool:
    """Show a record to all observers; return whether one of them asks to stop."""
    answers = [observer(record) for observer in observers]
    return any(isinstance(answer, bool | np.bool_) and bool(answer) for answer in answers)


class ProgressPrinter:
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

    def __call__(self, record: OffspringRecord) -> None:
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
