"""Watching a search while it runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence

import numpy as np

from evomeans.search.history import OffspringRecord

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
    """

    def __init__(self, verbose: int = 1, every: float = 2.0) -> None:
        self.verbose = verbose
        self.every = every
        self._best = float("inf")
        self._printed = -float("inf")

    def __call__(self, record: OffspringRecord) -> None:
        """Print the record if it is time to."""
        now = time.perf_counter()
        improved = record.best < self._best
        due = now - self._printed >= self.every
        if due or self.verbose >= 3 or (improved and self.verbose >= 2):
            self._printed = now
            print(
                f"[HGMeans] {record.seconds:8.1f} s  offspring {record.number:5d}  "
                f"best inertia {record.best:.8g}",
                file=sys.stdout,
                flush=True,
            )
        self._best = min(self._best, record.best)
