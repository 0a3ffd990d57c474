"""The progress of a fit in a notebook: one bar that moves, instead of lines."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Protocol

from evomeans.search import OffspringRecord
from evomeans.search.observers import Forecast, SearchObserver
from evomeans.wording import duration_text, number_text


class Bar(Protocol):
    """What shows how far a fit is."""

    def show(self, done: int, text: str) -> None:
        """Show so many offspring, and a text."""

    def close(self) -> None:
        """Leave it as it is."""


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

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[text]}"),
        )
        self._progress = Progress(*columns)
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


def bar_maker() -> Callable[[str, int], Bar] | None:
    """Return what makes bars with the packages that are installed, if any."""
    for package, make in (("tqdm", TqdmBar), ("rich", RichBar)):
        if find_spec(package) is not None:
            return make
    return None


def state_of_search(record: OffspringRecord, forecast: Forecast) -> tuple[str, str]:
    """Say how good the best solution is, and how long its population has been waiting."""
    return (
        f"best inertia {number_text(record.best)}",
        f"population {record.population}: {record.since_improvement:,} of "
        f"{forecast.longest_wait:,} since it improved",
    )


class ProgressBar(SearchObserver):
    """An observer that moves a bar; it appears with the first record.

    Parameters
    ----------
    name : str
        What is fitted.
    forecast : Forecast
        The limits of the search.
    make : callable
        Makes a bar from a name and the number of offspring to come at most.
    """

    def __init__(self, name: str, forecast: Forecast, make: Callable[[str, int], Bar]) -> None:
        self._name, self._forecast, self._make = name, forecast, make
        self._bar: Bar | None = None

    def on_solution(self, record: OffspringRecord) -> None:
        """Move the bar."""
        self._forecast.add(record)
        if self._bar is None:
            self._bar = self._make(self._name, self._forecast.max_offspring)
        left = self._forecast.seconds_left(record.seconds)
        ends = [] if left is None else [f"at most {duration_text(left)} left"]
        self._bar.show(record.number, ", ".join([*state_of_search(record, self._forecast), *ends]))

    def on_end(self) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
