"""Searches, paths and proofs while they run: lines, or a bar in a notebook."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from evomeans.search.history import SearchObserver
from evomeans.wording import duration_text, number_text

if TYPE_CHECKING:
    from evomeans.path.state import PathRecord
    from evomeans.search import OffspringRecord, SearchSettings


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

    def left(self, seconds: float) -> str:
        """Return the same as a text, which is empty if it cannot be told."""
        left = self.seconds_left(seconds)
        return "" if left is None else f"at most {duration_text(left)} left"

    def waiting(self, record: OffspringRecord) -> str:
        """Say how long the population has been waiting for an improvement."""
        return (
            f"population {record.population}: {record.since_improvement:,} of "
            f"{self.longest_wait:,} since it improved"
        )


def best_text(record: OffspringRecord) -> str:
    """Say how good the best solution is."""
    return f"best inertia {number_text(record.best)}"


def percent_between(lower: float, upper: float) -> float:
    """Return how far two bounds are apart, in percent of the upper one."""
    return 100 * (upper - lower) / upper if upper > 0 else 0.0


# Lines, for ``verbose``.


def print_line(name: str, *parts: str) -> None:
    """Print what is known, and who says it."""
    print("  ".join([f"[{name}] {parts[0]}", *filter(None, parts[1:])]), flush=True)


class SearchPrinter(SearchObserver):
    """Prints a line when the best improves and at intervals.

    Parameters
    ----------
    verbose : int
        1 prints at most every few seconds, 2 at every improvement as well, 3 every record.
    forecast : Forecast
        The limits of the search.
    name : str
        What a line begins with.
    every : float
        Seconds between two lines.
    """

    def __init__(
        self, verbose: int, forecast: Forecast, name: str = "HGMeans", every: float = 2.0
    ) -> None:
        self.verbose, self.forecast, self.name, self.every = verbose, forecast, name, every
        self._best, self._printed = math.inf, -math.inf

    def on_solution(self, record: OffspringRecord) -> None:
        """Print the record if it is time to."""
        self.forecast.add(record)
        now = time.perf_counter()
        improved, due = record.best < self._best, now - self._printed >= self.every
        if due or self.verbose >= 3 or (improved and self.verbose >= 2):
            self._printed = now
            print_line(
                self.name,
                f"{record.seconds:8.1f} s",
                f"offspring {record.number:5d} of {self.forecast.max_offspring}",
                self.forecast.waiting(record),
                self.forecast.left(record.seconds),
                f"best inertia {record.best:.8g}",
            )
        self._best = min(self._best, record.best)


class PathPrinter:
    """Prints what the steps of a path bring.

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
            print_line(
                "HGMeansPath",
                f"{record.seconds:8.1f} s",
                f"{record.kind:<6} k = {record.k:<4d} inertia {record.best:.8g}",
                f"{record.n_open} of {record.n_total} still open",
            )


class ProofPrinter:
    """Prints both bounds of a proof every few seconds."""

    def __init__(self, every: float = 5.0) -> None:
        self.every, self._printed = every, time.monotonic()

    def __call__(self, lower: float, upper: float, nodes: int) -> None:
        """Print how far the proof is if it is time to."""
        if time.monotonic() - self._printed >= self.every:
            self._printed = time.monotonic()
            print_line(
                "certify",
                f"{nodes} nodes: {lower:.10g} <= optimum <= {upper:.10g}, "
                f"gap {percent_between(lower, upper):.2g} %",
            )


# One bar in a notebook.


class TqdmBar:
    """A bar of tqdm, which has widgets where notebooks have them."""

    def __init__(self, name: str, total: int) -> None:
        from tqdm.auto import tqdm

        self._bar: Any = tqdm(total=total, desc=name, unit=" offspring")

    def show(self, done: int, text: str) -> None:
        """Show so many offspring, and a text."""
        self._bar.set_postfix_str(text, refresh=False)
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        """Leave it as it is."""
        self._bar.refresh()
        self._bar.close()


class RichBar:
    """A bar of rich."""

    def __init__(self, name: str, total: int) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        texts = TextColumn("{task.description}"), TextColumn("{task.fields[text]}")
        self._progress = Progress(texts[0], BarColumn(), MofNCompleteColumn(), texts[1])
        self._task = self._progress.add_task(name, total=total, text="")
        self._progress.start()

    def show(self, done: int, text: str) -> None:
        """Show so many offspring, and a text."""
        self._progress.update(self._task, completed=done, text=text)

    def close(self) -> None:
        """Leave it as it is."""
        self._progress.stop()


def is_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(type(shell), "__name__", "") in ("ZMQInteractiveShell", "Shell")


MakeBar = Callable[[str, int], TqdmBar | RichBar]


def bar_maker() -> MakeBar | None:
    """Return what makes bars with the packages that are installed, if any."""
    for package, make in (("tqdm", TqdmBar), ("rich", RichBar)):
        if find_spec(package) is not None:
            return make
    return None


class NotebookBar(SearchObserver):
    """Moves a bar, which appears with the first record.

    Parameters
    ----------
    name : str
        What is fitted.
    forecast : Forecast
        The limits of the search.
    make : callable
        Makes a bar from a name and the number of offspring to come at most.
    """

    def __init__(self, name: str, forecast: Forecast, make: MakeBar) -> None:
        self._name, self._forecast, self._make = name, forecast, make
        self._bar: TqdmBar | RichBar | None = None

    def on_solution(self, record: OffspringRecord) -> None:
        """Move the bar."""
        self._forecast.add(record)
        if self._bar is None:
            self._bar = self._make(self._name, self._forecast.max_offspring)
        waiting, left = self._forecast.waiting(record), self._forecast.left(record.seconds)
        self._bar.show(record.number, ", ".join(filter(None, (best_text(record), waiting, left))))

    def on_end(self) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def search_observer(verbose: int, name: str, forecast: Forecast) -> SearchObserver:
    """Return what shows a search for ``verbose``: lines, or in a notebook a bar if there is one."""
    make = bar_maker() if verbose == 1 and is_notebook() else None
    if make is not None:
        return NotebookBar(name, forecast, make)
    return SearchPrinter(verbose, forecast, name)
