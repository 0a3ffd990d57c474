"""Searches while they run: one live display on a terminal, else a few lines."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from evomeans.cli.terminal import Terminal
from evomeans.wording import duration_text, number_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from evomeans.estimators.hgmeans import HGMeans
    from evomeans.path.state import PathRecord
    from evomeans.search import OffspringRecord


FIRST_LINE, LONGEST_PAUSE = 2.0, 60.0
"""Seconds to the first line of a log, and the most between two; the pauses double."""


class SearchDisplay:
    """An observer that shows the search of a model; enter it around the fit.

    ``known`` is the history of a search that continues.
    """

    def __init__(
        self,
        terminal: Terminal,
        model: HGMeans,
        known: Sequence[OffspringRecord] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.terminal = terminal
        self.clock = clock
        self.first: OffspringRecord | None = known[0] if known else None
        self.last: OffspringRecord | None = known[-1] if known else None
        self._seen = clock()
        # Imported late: it loads the search.
        from evomeans.estimators.parameters import check_search_settings
        from evomeans.search.observers import Forecast

        self.forecast = Forecast.of(check_search_settings(model), model.n_clusters)
        self._pause = FIRST_LINE
        self._due = FIRST_LINE + (known[-1].seconds if known else 0.0)

    def __call__(self, record: OffspringRecord) -> None:
        """Take in what happened to an offspring, and show it if it is time to."""
        self.first, self.last, self._seen = self.first or record, record, self.clock()
        self.forecast.add(record)
        if not self.terminal.is_live and record.seconds >= self._due:
            self.terminal.note(self.log_line(record))
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
            self._due = record.seconds + self._pause

    def gain(self) -> str:
        """Return how far the best is below the first solution, in percent of it, if it is known."""
        if self.first is None or self.last is None or not self.first.inertia:
            return ""
        return f"{100.0 * (1.0 - self.last.best / self.first.inertia):.3f} %"

    def left(self, seconds: float) -> str:
        """Return how long it can take at most after some seconds, if that can be told."""
        left = self.forecast.seconds_left(seconds)
        return "" if left is None else duration_text(left)

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

        last, grid = self.last, Table.grid(padding=(0, 2))
        if last is None:
            return Text("preparing; the kernels are compiled on the first use")
        seconds = last.seconds + self.clock() - self._seen
        limits = self.forecast
        for name, value, total in (
            ("best inertia", number_text(last.best), None),
            ("gain over the first solution", self.gain(), None),
            ("offspring", last.number, limits.max_offspring),
            ("population", f"{last.population}", None),
            ("since it improved", last.since_improvement, limits.longest_wait),
            ("elapsed", duration_text(seconds), None),
            ("left at most", self.left(seconds), None),
        ):
            shown = value if isinstance(value, str) else f"{value:,} of {total:,}"
            bar = Text("") if isinstance(value, str) else ProgressBar(total, value, width=24)
            grid.add_row(Text(name, style="dim"), Text(shown, justify="right"), bar)
        return grid

    def log_line(self, record: OffspringRecord) -> str:
        """Write the state of a search into one line."""
        gain, left = self.gain(), self.left(record.seconds)
        parts = [
            f"{duration_text(record.seconds):>11}",
            f"best inertia {number_text(record.best)}",
            gain and f"{gain} below the first solution",
            f"{record.number:,} of {self.forecast.max_offspring:,} offspring",
            f"population {record.population}: {record.since_improvement:,} of "
            f"{self.forecast.longest_wait:,} since it improved",
            left and f"at most {left} left",
        ]
        return "  ".join(filter(None, parts))


BARS = "▁▂▃▄▅▆▇█"
DOING = {
    "up": "first sweep, from few clusters to many",
    "down": "second sweep, from many clusters to few",
    "unite": "populations that disagreed",
    "grow": "what a smaller k taught",
    "merge": "what a larger k taught",
    "fresh": "populations begun anew",
}


class PathDisplay:
    """An observer that shows a path; enter it around the fit."""

    def __init__(
        self,
        terminal: Terminal,
        max_time: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.terminal = terminal
        self.max_time = max_time
        self.clock = clock
        self.last: PathRecord | None = None
        self.best: dict[int, float] = {}
        self._seen = clock()
        self._pause = self._due = FIRST_LINE

    def __call__(self, record: PathRecord) -> None:
        """Take in what a step brought, and show it if it is time to."""
        self.last, self._seen = record, self.clock()
        self.best[record.k] = record.best
        if not self.terminal.is_live and record.seconds >= self._due:
            self.terminal.note(self.log_line(record))
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
            self._due = record.seconds + self._pause

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

    def left(self, seconds: float) -> str:
        """Return how long it can take at most after some seconds, if there is a limit."""
        return "" if self.max_time is None else duration_text(max(0.0, self.max_time - seconds))

    def curve(self) -> str:
        """Draw the inertias found so far as bars, in logarithms."""
        values = [math.log(self.best[k]) for k in sorted(self.best) if self.best[k] > 0.0]
        if not values:
            return ""
        low, height = min(values), (max(values) - min(values)) or 1.0
        return "".join(BARS[int((value - low) / height * (len(BARS) - 1))] for value in values)

    def render(self) -> RenderableType:
        """Draw the display as it is now."""
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        last, grid = self.last, Table.grid(padding=(0, 2))
        if last is None:
            return Text("preparing; the kernels are compiled on the first use")
        seconds = last.seconds + self.clock() - self._seen
        agreed = last.n_known - last.n_open
        for name, shown, done in (
            ("k with a solution", f"{last.n_known:,} of {last.n_total:,}", last.n_known),
            ("k at which populations agree", f"{agreed:,} of {last.n_total:,}", agreed),
            ("now", f"k = {last.k}, {DOING.get(last.kind, last.kind)}", None),
            ("inertia", number_text(last.best), None),
            ("elapsed", duration_text(seconds), None),
            ("left at most", self.left(seconds), None),
            ("log inertia by k", self.curve(), None),
        ):
            if not shown:
                continue
            bar = Text("") if done is None else ProgressBar(last.n_total, done, width=24)
            grid.add_row(Text(name, style="dim"), Text(shown), bar)
        return grid

    def log_line(self, record: PathRecord) -> str:
        """Write the state of a path into one line."""
        agreed, left = record.n_known - record.n_open, self.left(record.seconds)
        parts = [
            f"{duration_text(record.seconds):>11}",
            f"{record.n_known:,} of {record.n_total:,} k have a solution",
            f"populations agree at {agreed:,}",
            f"k = {record.k}: {DOING.get(record.kind, record.kind)}",
            left and f"at most {left} left",
        ]
        return "  ".join(filter(None, parts))
