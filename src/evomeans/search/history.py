"""One record per solution made, the observers that see it, and small pictures for notebooks."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

import numpy as np
from numpy.typing import NDArray

from evomeans.files import write_atomically
from evomeans.search.population import IMPROVEMENT

if TYPE_CHECKING:
    from evomeans.search.population import Population

SWAPPED = "swaps of the first"  # what made the second solution


@dataclass(frozen=True, slots=True)
class OffspringRecord:
    """The record of one solution, founder or offspring.

    Parameters
    ----------
    number : int
        1, 2, … for offspring. Founders of a population have that of the last offspring before
        them, which is 0 for the first population.
    inertia : float
        Inertia of this solution, after its local search.
    best : float
        Lowest inertia so far, this one included.
    alpha : float
        Mutation parameter of this solution.
    n_iter : int
        Number of K-means iterations.
    seconds : float
        Seconds since the search began.
    population_size : int
        Size of the population after the solution was added and, if due, survivors were selected.
    accepted : bool
        Whether it is a member of the population after that.
    clone : bool
        Whether it repeats a solution that was in the population.
    population : int
        The population it was made for: 1 for the first, 2 for the one that followed it, and so on.
    founder : bool
        Whether the population began with it. Otherwise it is an offspring.
    made_by : str
        The operator that made it: "given", "random samples", "k-means++" or "swaps of the first"
        for founders; the crossover for offspring, such as "squared matching", "merging" or
        "partition".
    since_improvement : int
        Offspring since the best of its population improved; the search or the population ends when
        the patience with them does.
    population_best, population_median, population_worst : float
        Inertia of the members of the population after it was added.
    population_distinct : int
        Number of members with different inertias. 0 in histories that do not know the members.
    centers : (k, d) array, optional
        Its centres, in data units and in no particular order. Observers see them; the history does
        not keep them.
    """

    number: int
    inertia: float
    best: float
    alpha: float
    n_iter: int
    seconds: float
    population_size: int
    accepted: bool
    clone: bool
    population: int = 1
    founder: bool = False
    made_by: str = ""
    since_improvement: int = 0
    population_best: float = 0.0
    population_median: float = 0.0
    population_worst: float = 0.0
    population_distinct: int = 0
    centers: NDArray[np.float64] | None = field(default=None, repr=False, compare=False)


COLUMNS = tuple(one.name for one in fields(OffspringRecord) if one.name != "centers")


class History(list[OffspringRecord]):
    """The records of a search, in the order in which they were made.

    It is a list that also returns columns, data frames and CSV files.
    """

    @overload
    def __getitem__(self, index: SupportsIndex, /) -> OffspringRecord: ...
    @overload
    def __getitem__(self, index: slice, /) -> History: ...
    def __getitem__(self, index: SupportsIndex | slice, /) -> OffspringRecord | History:
        if isinstance(index, slice):
            return History(super().__getitem__(index))
        return super().__getitem__(index)

    def __repr__(self) -> str:
        if not self:
            return "History(empty)"
        last = self[-1]
        return f"History({last.number} offspring, best inertia {last.best:.6g})"

    def _repr_html_(self) -> str:
        """Show a small convergence picture in notebooks."""
        picture = line_svg([record.best for record in self]) if self else ""
        return f"<div>{picture}<div>{escape(repr(self))}</div></div>"

    def column(self, name: str) -> NDArray[np.generic]:
        """One field of all records as an array, e.g. ``history.column("best")``."""
        if name not in COLUMNS:
            raise KeyError(f"No column {name!r} in the history; it has {', '.join(COLUMNS)}.")
        return np.array([getattr(record, name) for record in self])

    def when_best_was_found(self) -> OffspringRecord:
        """Return the first record with the best inertia of all, up to rounding."""
        limit = self[-1].best * (1.0 + IMPROVEMENT)
        return next(record for record in self if record.best <= limit)

    def to_csv(self, path: str | Path) -> None:
        """Write a header and one line per record; floats keep all their digits.

        The file is written whole or not at all, also if the disk is full.
        """
        text = io.StringIO(newline="")
        writer = csv.writer(text)
        writer.writerow(COLUMNS)
        for record in self:
            writer.writerow([getattr(record, name) for name in COLUMNS])
        write_atomically(path, text.getvalue().encode("utf-8"))

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame with a row for each record and a column for each field."""
        from pandas import DataFrame

        return DataFrame({name: self.column(name) for name in COLUMNS})


class SearchObserver:
    """Observes a search; a subclass overrides the methods that it needs.

    An observer may also be a function of a record, which is then used as :meth:`on_solution`, or an
    object of any class that has some of these methods.
    """

    def on_start(self, state: Any) -> None:
        """See the state with which the search begins, or from which it continues."""

    def on_solution(self, record: OffspringRecord) -> object:
        """See what became of a solution; return True to end the search."""

    def on_best(self, record: OffspringRecord) -> None:
        """See a solution that is better than all before it."""

    def on_settled(self, population: Population) -> None:
        """See a population that has converged, before the next one begins."""

    def on_round(self, state: Any, is_last: bool) -> None:
        """See the state whenever it is complete and can be stored.

        That is between two rounds of solutions, and at the end of a search (``is_last``) unless an
        error ended it.
        """

    def on_end(self) -> None:
        """Release resources. The search has ended, by a stopping criterion or by an error."""

    def __call__(self, record: OffspringRecord) -> object:
        """Be an observer like a function."""
        return self.on_solution(record)


Observer = Callable[[OffspringRecord], object]
"""Called with every record; returning ``True`` ends the search."""


class Audience:
    """All observers of a search, or of a path."""

    def __init__(self, observers: Sequence[Callable[[Any], object]]) -> None:
        self._observers = observers
        self.seeing = [
            getattr(one, "on_solution", one)
            for one in observers
            if getattr(type(one), "on_solution", None) is not SearchObserver.on_solution
        ]
        self.said_stop = False

    def tell(self, verb: str, *seen: Any) -> None:
        """Tell all who have that verb."""
        for one in self._observers:
            if hasattr(one, verb):
                getattr(one, verb)(*seen)

    @contextmanager
    def watching(self, state: Any) -> Iterator[None]:
        """Tell all when it begins, and when it has ended."""
        self.tell("on_start", state)
        try:
            yield
        finally:
            self.tell("on_end")

    def show(self, record: Any, is_best: bool) -> None:
        """Show a record to all, and note whether one of them asks to stop."""
        answers = [see(record) for see in self.seeing]
        self.said_stop = any(
            isinstance(answer, bool | np.bool_) and bool(answer) for answer in answers
        )
        if is_best:
            self.tell("on_best", record)


WIDE, HIGH = 320, 64
SMALLEST_GAP = 1e-6  # at the bottom of the logarithmic scale, relative to the first one


def line_svg(best: Sequence[float]) -> str:
    """Draw the gap above the last value, over all solutions, as a staircase that falls."""
    values = np.asarray(best, dtype=np.float64)
    gaps = values - values[-1]
    depth = np.ones(len(gaps))
    if gaps[0] > 0:
        depth = np.log(np.maximum(gaps / gaps[0], SMALLEST_GAP)) / np.log(SMALLEST_GAP)
    down = 3 + (HIGH - 6) * depth
    step = (WIDE - 2) / max(1, len(values) - 1)
    corners = np.flatnonzero(np.diff(down)) + 1
    falls = "".join(f"H{1 + step * i:.1f}V{down[i]:.1f}" for i in corners)
    return (
        f'<svg width="{WIDE}" height="{HIGH}" viewBox="0 0 {WIDE} {HIGH}" role="img" '
        'aria-label="Best inertia by solutions made">'
        f'<path d="M0 {HIGH - 0.5}H{WIDE}" stroke="currentColor" opacity="0.25"/>'
        f'<path d="M1 {down[0]:.1f}{falls}H{WIDE - 1}" fill="none" stroke="#0072B2" '
        'stroke-width="2" stroke-linejoin="round"/></svg>'
    )
