"""Observers of a search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from evomeans.search.history import OffspringRecord

if TYPE_CHECKING:
    from evomeans.search.population import Population
    from evomeans.search.state import SearchState


class SearchObserver:
    """Watches a search. Every verb does nothing unless a subclass has it do something.

    Any function of a record will do as an observer, too: it is :meth:`on_solution`. An object need
    not be of this class either; it is asked for the verbs that it has.
    """

    def on_start(self, state: SearchState) -> None:
        """See the state with which the search begins, or from which it continues."""

    def on_solution(self, record: OffspringRecord) -> object:
        """See what became of a solution; return True to end the search."""

    def on_best(self, record: OffspringRecord) -> None:
        """See a solution that is better than all before it."""

    def on_settled(self, population: Population) -> None:
        """See a population that has found what it can, before another one takes its place."""

    def on_end(self) -> None:
        """Tidy up. The search has ended, by whatever reason or error."""

    def __call__(self, record: OffspringRecord) -> object:
        """Be an observer like a function."""
        return self.on_solution(record)


Observer = Callable[[OffspringRecord], object]
"""Called with every record; returning ``True`` ends the search."""


class Audience:
    """All observers of a search.

    Parameters
    ----------
    observers : sequence of callables and SearchObservers
    """

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._seeing = [getattr(one, "on_solution", one) for one in observers]
        self._verbs = {
            verb: [getattr(one, verb) for one in observers if hasattr(one, verb)]
            for verb in ("on_start", "on_best", "on_settled", "on_end")
        }
        self.said_stop = False

    def __len__(self) -> int:
        return len(self._seeing)

    def tell(self, verb: str, *seen: Any) -> None:
        """Tell all who want to know."""
        for told in self._verbs[verb]:
            told(*seen)

    def show(self, record: OffspringRecord, is_best: bool) -> None:
        """Show a record to all, and note whether one of them asks to stop."""
        answers = [see(record) for see in self._seeing]
        self.said_stop = any(
            isinstance(answer, bool | np.bool_) and bool(answer) for answer in answers
        )
        if is_best:
            self.tell("on_best", record)
