"""What a search asks of a place that keeps its state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from evomeans.search.state import Draft, SearchState

Drafts = Callable[[], list[Draft]]
"""Returns what belongs into ``SearchState.waiting``; only those who store it ask."""


class Keeper(Protocol):
    """Stores the state of a search from time to time."""

    def begin(self, state: SearchState, shape: tuple[int, int]) -> None:
        """Turn the state of a new search into a stored one, if there is one.

        Parameters
        ----------
        state : SearchState, in and out
        shape : (int, int)
            Centres and features of a solution.
        """
        ...

    def keep(self, state: SearchState, drafts: Drafts) -> None:
        """Store the state if it is time to."""
        ...

    def end(self, state: SearchState, drafts: Drafts) -> None:
        """Store the last state."""
        ...


class KeepNothing:
    """The keeper of a search that needs none."""

    def begin(self, state: SearchState, shape: tuple[int, int]) -> None:
        """Leave the state as it is."""

    def keep(self, state: SearchState, drafts: Drafts) -> None:
        """Store nothing."""

    def end(self, state: SearchState, drafts: Drafts) -> None:
        """Store nothing."""
