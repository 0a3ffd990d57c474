"""A search while it runs: one live display on a terminal, else a few lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from evomeans.cli.terminal import Terminal
from evomeans.wording import duration_text, number_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from evomeans.search import OffspringRecord

FIRST_LINE, LONGEST_PAUSE = 2.0, 60.0
"""Seconds to the first line of a log, and the most between two; the pauses double."""


@dataclass(frozen=True)
class Limits:
    """When the search ends at the latest.

    Parameters
    ----------
    offspring : int
        In all.
    patience : int
        Without improvement.
    seconds : float, optional
        In all.
    """

    offspring: int
    patience: int
    seconds: float | None


@dataclass(frozen=True)
class Progress:
    """How far a search is.

    Parameters
    ----------
    first : float, optional
        Inertia of its first solution; None if that is not known.
    best : float
        Lowest inertia so far.
    offspring, since_improvement : int
        Offspring made, in all and since the best improved.
    seconds : float
        Since the search began.
    per_offspring : float, optional
        Seconds that an offspring takes, on average since this process began.
    """

    first: float | None = None
    best: float = float("inf")
    offspring: int = 0
    since_improvement: int = 0
    seconds: float = 0.0
    per_offspring: float | None = None

    @property
    def gain(self) -> float | None:
        """How far the best lies below the first solution, in percent of it."""
        return None if not self.first else 100.0 * (1.0 - self.best / self.first)

    def seconds_left(self, limits: Limits) -> float | None:
        """Return how long it can take at most, if that can be told."""
        left = []
        if limits.seconds is not None:
            left.append(max(0.0, limits.seconds - self.seconds))
        if self.per_offspring is not None:
            left.append((limits.offspring - self.offspring) * self.per_offspring)
        return min(left, default=None)


class SearchDisplay:
    """An observer that shows the search; enter it around the fit.

    Parameters
    ----------
    terminal : Terminal
        Where to show it.
    limits : Limits
        When the search ends.
    known : Progress
        What is known of a search that goes on.
    clock : callable
        Seconds, for the time that passes between two offspring.
    """

    def __init__(
        self,
        terminal: Terminal,
        limits: Limits,
        known: Progress = Progress(),  # noqa: B008
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.terminal = terminal
        self.limits = limits
        self.progress = known
        self.clock = clock
        self._began: tuple[int, float] | None = None
        self._seen = clock()
        self._pause = FIRST_LINE
        self._due = known.seconds + FIRST_LINE

    def __call__(self, record: OffspringRecord) -> None:
        """Take in what happened to an offspring, and show it if it is time to."""
        last, self._seen = self.progress, self.clock()
        if self._began is None and record.number > 0:
            self._began = record.number, record.seconds
        number, seconds = self._began or (record.number, record.seconds)
        made = record.number - number
        self.progress = replace(
            last,
            first=record.inertia if last.best == float("inf") and not record.number else last.first,
            best=record.best,
            offspring=record.number,
            since_improvement=record.since_improvement,
            seconds=record.seconds,
            per_offspring=(record.seconds - seconds) / made if made else last.per_offspring,
        )
        if not self.terminal.is_live and record.seconds >= self._due:
            self.terminal.note(log_line(self.progress, self.limits))
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

    def render(self) -> RenderableType:
        """Draw the display as it is now."""
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        progress = replace(self.progress, seconds=self.progress.seconds + self.clock() - self._seen)
        if progress.best == float("inf"):
            return Text("preparing; the kernels are compiled on the first use")
        grid = Table.grid(padding=(0, 2))
        for name, value, bar in display_rows(progress, self.limits):
            total, done = bar or (0, 0)
            drawn = ProgressBar(total, done, width=24) if total else Text("")
            grid.add_row(Text(name, style="dim"), Text(value, justify="right"), drawn)
        return grid


def display_rows(
    progress: Progress, limits: Limits
) -> list[tuple[str, str, tuple[int, int] | None]]:
    """Return the rows of the display: a name, a value, and how much of how much."""
    left = progress.seconds_left(limits)
    gain = "" if progress.gain is None else f"{progress.gain:.3f} %"
    return [
        ("best inertia", number_text(progress.best), None),
        ("gain over the first solution", gain, None),
        (
            "offspring",
            f"{progress.offspring:,} of {limits.offspring:,}",
            (limits.offspring, progress.offspring),
        ),
        (
            "since improvement",
            f"{progress.since_improvement:,} of {limits.patience:,}",
            (limits.patience, progress.since_improvement),
        ),
        ("elapsed", duration_text(progress.seconds), None),
        ("left at most", "" if left is None else duration_text(left), None),
    ]


def log_line(progress: Progress, limits: Limits) -> str:
    """Write the state of a search into one line."""
    left = progress.seconds_left(limits)
    parts = [
        f"{duration_text(progress.seconds):>11}",
        f"best inertia {number_text(progress.best)}",
        "" if progress.gain is None else f"{progress.gain:.3f} % below the first solution",
        f"{progress.offspring:,} of {limits.offspring:,} offspring",
        f"{progress.since_improvement:,} of {limits.patience:,} since the population improved",
        "" if left is None else f"at most {duration_text(left)} left",
    ]
    return "  ".join(filter(None, parts))
