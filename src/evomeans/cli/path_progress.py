"""A path while it is searched: a live display with the curve, else a few lines."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from evomeans.cli.progress import FIRST_LINE, LONGEST_PAUSE
from evomeans.cli.terminal import Terminal
from evomeans.wording import duration_text, number_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from evomeans.path.record import PathRecord

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
