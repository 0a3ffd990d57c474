"""Searches, paths and proofs while they run: a live display on a terminal, else lines of a log."""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from evomeans.wording import duration_text, number_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from evomeans.path import PathRecord
    from evomeans.search import OffspringRecord, SearchSettings

FIRST_LINE, LONGEST_PAUSE = 2.0, 60.0
"""Seconds to the first line of a log, and the most between two; the pauses double."""
IMPROVEMENTS, EVERYTHING = 2, 3
"""Levels of ``verbose`` from which improvements, or all records, have a line of their own."""


class Screen(Protocol):
    """Where displays appear."""

    @property
    def is_live(self) -> bool:
        """Whether something that moves can be shown."""

    def note(self, text: str) -> None:
        """Show a line."""


class Printer(NamedTuple):
    """Standard output, where estimators print under their names."""

    name: str
    is_live: bool = False

    def note(self, text: str) -> None:
        """Print a line."""
        print(f"[{self.name}] {text}", flush=True)


class Row(NamedTuple):
    """A line of the live display."""

    name: str
    text: str
    share: float | None = None  # of a bar, how much is done

    @classmethod
    def counting(cls, name: str, done: int, total: int) -> Row:
        """Return a line with a bar."""
        return cls(name, f"{done:,} of {total:,}", done / total)


class Display(ABC):
    """Takes in records of what runs, and shows the last one; enter :meth:`shown` around the work.

    Where nothing can move, ``verbose`` = 1 writes lines at growing intervals, 2 one for each
    improvement as well, 3 one for each record.
    """

    def __init__(
        self,
        terminal: Screen,
        max_time: float | None = None,
        *,
        verbose: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.terminal, self.max_time = terminal, max_time
        self.verbose, self.clock = verbose, clock
        self.last: Any = None
        self._seconds, self._seen = 0.0, clock()
        self._pause = self._due = FIRST_LINE

    @abstractmethod
    def _rows(self) -> list[Row]:
        """Return what the last record says; rows without a text are left out."""

    def take(self, record: Any, seconds: float, *, is_better: bool = False) -> None:
        """Take in how it is after some seconds, and write a line if it is time to."""
        self.last, self._seconds, self._seen = record, seconds, self.clock()
        is_due = seconds >= self._due
        is_asked_for = self.verbose >= (IMPROVEMENTS if is_better else EVERYTHING)
        if not self.terminal.is_live and (is_due or is_asked_for):
            self.terminal.note(self.log_line())
        if is_due:
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
            self._due = seconds + self._pause

    def left(self, seconds: float) -> str:
        """Return how long it can take at most after some seconds, if that is known."""
        return "" if self.max_time is None else duration_text(max(0.0, self.max_time - seconds))

    def log_line(self) -> str:
        """Write how it is into one line."""
        rows = *self._rows(), Row("left at most", self.left(self._seconds))
        parts = [f"{row.name} {row.text}" for row in rows if row.text]
        return "  ".join([f"{duration_text(self._seconds):>11}", *parts])

    def shown(self) -> AbstractContextManager[object]:
        """Return what keeps the display alive while it is entered."""
        if not self.terminal.is_live:
            return nullcontext()
        from rich.console import Console
        from rich.live import Live

        return Live(
            get_renderable=self.render,
            console=Console(file=sys.stderr),
            transient=True,
            refresh_per_second=5,
        )

    def render(self) -> RenderableType:
        """Draw the display as it is now."""
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        if self.last is None:
            return Text("preparing; the kernels are compiled on the first use")
        grid, seconds = Table.grid(padding=(0, 2)), self._seconds + self.clock() - self._seen
        times = Row("elapsed", duration_text(seconds)), Row("left at most", self.left(seconds))
        for name, text, share in (*self._rows(), *times):
            bar = Text("") if share is None else ProgressBar(1.0, share, width=24)
            if text:
                grid.add_row(Text(name, style="dim"), Text(text), bar)
        return grid


class SearchDisplay(Display):
    """An observer that shows a search."""

    def __init__(
        self, terminal: Screen, settings: SearchSettings, n_clusters: int, **options: Any
    ) -> None:
        super().__init__(terminal, settings.max_time, **options)
        self.max_offspring = settings.max_offspring
        self.longest_wait = settings.longest_wait(n_clusters)
        # A search that continues has no first founder. The pace is that of this process.
        self._first: OffspringRecord | None = None
        self._began: OffspringRecord | None = None

    def __call__(self, record: OffspringRecord) -> None:
        """Take in what happened to an offspring."""
        if record.number == 0:
            self._first = self._first or record
        else:
            self._began = self._began or record
        is_better = self.last is None or record.best < self.last.best
        self.take(record, record.seconds, is_better=is_better)

    def gain(self) -> str:
        """Return how far the best is below the first solution, in percent of it, if it is."""
        if self._first is None or self.last.best >= self._first.inertia:
            return ""
        return f"{100.0 * (1.0 - self.last.best / self._first.inertia):.3f} %"

    def left(self, seconds: float) -> str:
        """Return how long it can take at most after some seconds, if that is known."""
        left = [] if self.max_time is None else [max(0.0, self.max_time - seconds)]
        if self._began is not None and (made := self.last.number - self._began.number):
            pace = (self.last.seconds - self._began.seconds) / made
            left.append((self.max_offspring - self.last.number) * pace)
        return duration_text(min(left)) if left else ""

    def _rows(self) -> list[Row]:
        last = self.last
        return [
            Row("best inertia", number_text(last.best)),
            Row("below the first solution", self.gain()),
            Row.counting("offspring", last.number, self.max_offspring),
            Row("population", f"{last.population}"),
            Row.counting("since it improved", last.since_improvement, self.longest_wait),
        ]


DOING = {
    "up": "first sweep, to larger k",
    "down": "second sweep, to smaller k",
    "combine": "populations that disagreed",
    "grow": "what a smaller k taught",
    "merge": "what a larger k taught",
    "fresh": "populations begun anew",
}


class PathDisplay(Display):
    """An observer that shows a path over the numbers of clusters ``ks``."""

    def __init__(self, terminal: Screen, ks: Collection[int], *limits: Any, **options: Any) -> None:
        super().__init__(terminal, *limits, **options)
        self.ks = ks
        self._seen_ks: set[int] = set()

    def __call__(self, record: PathRecord) -> None:
        """Take in what a step brought."""
        is_better = record.k not in self._seen_ks or record.improvement > 0.0
        self._seen_ks.add(record.k)
        self.take(record, record.seconds, is_better=is_better and record.k in self.ks)

    def counts(self, record: PathRecord) -> tuple[int, int, int]:
        """Return how many k have a solution, at how many populations agree, and how many there are.

        Every path has k = 1, which counts only if it was asked for; others may have been added.
        """
        known = max(0, record.n_known - (1 not in self.ks))
        return known, max(0, known - record.n_open), max(known, len(self.ks))

    def _rows(self) -> list[Row]:
        last, (known, agreed, total) = self.last, self.counts(self.last)
        return [
            Row.counting("k with a solution", known, total),
            Row.counting("k with agreement", agreed, total),
            Row("now", f"k = {last.k}, {DOING.get(last.kind, last.kind)}"),
            Row("inertia", number_text(last.best)),
        ]


class ProofDisplay(Display):
    """Shows both bounds while a proof is under way."""

    def __call__(self, lower: float, upper: float, nodes: int) -> None:
        """Take in how far the proof is."""
        seconds = self._seconds + self.clock() - self._seen
        self.take((lower, upper, nodes), seconds)

    def _rows(self) -> list[Row]:
        lower, upper, nodes = self.last
        gap = 100 * (upper - lower) / upper if upper > 0 else 0.0
        return [
            Row("bounds", f"{number_text(lower, 10)} <= optimum <= {number_text(upper, 10)}"),
            Row("gap", f"{number_text(gap, 2)} %"),
            Row("nodes", f"{nodes:,}"),
        ]
