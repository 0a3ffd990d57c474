"""One record per step of the path: everything that displays and tables read."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PathRecord:
    """What one step of the path brought.

    Parameters
    ----------
    number : int
        1, 2, … for the steps of the path.
    kind : str
        "up" and "down" for the two sweeps; "unite" for populations that disagreed; "grow" and
        "merge" for what a neighbour taught; "fresh" for a population that began anew; "mean" for
        k = 1, and "exact" for one feature.
    k : int
        The number of clusters it was for.
    source : int
        The number of clusters whose solutions it began with, 0 for none.
    inertia : float
        The lowest of this step.
    best : float
        The lowest for this number of clusters so far.
    improvement : float
        By which share of the best before it is lower; 0 if it is not, or if there was none.
    n_agreeing : int
        Independent populations that have come to the best.
    n_solutions : int
        Solutions made in this step.
    n_known : int
        Numbers of clusters that have a solution.
    n_open : int
        Numbers of clusters at which no two populations agree so far.
    n_total : int
        Numbers of clusters on the path.
    seconds : float
        Since the path began.
    """

    number: int
    kind: str
    k: int
    source: int
    inertia: float
    best: float
    improvement: float
    n_agreeing: int
    n_solutions: int
    n_known: int
    n_open: int
    n_total: int
    seconds: float


PathObserver = Callable[[PathRecord], object]
"""Called with every record; returning ``True`` ends the path."""


class PathPrinter:
    """Prints what steps bring, for ``verbose``.

    Parameters
    ----------
    verbose : int
        1 prints a line for each number of clusters that gets its first solution or a better one, 2
        one for every step.
    """

    def __init__(self, verbose: int = 1) -> None:
        self.verbose = verbose
        self._known: set[int] = set()

    def __call__(self, record: PathRecord) -> None:
        """Print the record if it has something to say."""
        is_news = record.k not in self._known or record.improvement > 0.0
        self._known.add(record.k)
        if is_news or self.verbose >= 2:
            print(
                f"[HGMeansPath] {record.seconds:8.1f} s  {record.kind:<6} k = {record.k:<4d} "
                f"inertia {record.best:.8g}  {record.n_open} of {record.n_total} still open",
                file=sys.stdout,
                flush=True,
            )
