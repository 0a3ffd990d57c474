"""What a search asks of a place that keeps its state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from evomeans.engines.protocol import Engine, Order
from evomeans.search.plan import most_swaps
from evomeans.search.settings import SearchSettings
from evomeans.search.state import SearchState

Waiting = Callable[[], list[Order]]
"""Returns what belongs into ``SearchState.waiting``; only those who store it ask."""


@dataclass(frozen=True)
class Bounds:
    """What every state of a search is within. A stored one that is not would harm the kernels.

    Parameters
    ----------
    n_clusters, n_features, n_samples : int
        Centres of a solution, their coordinates, and the labels that a solution has, if any.
    total_weight : float
        Of all samples.
    most_swaps : int
        Of a refinement.
    """

    n_clusters: int
    n_features: int
    n_samples: int
    total_weight: float
    most_swaps: int

    @classmethod
    def of_search(cls, engine: Engine, n_clusters: int, settings: SearchSettings) -> Bounds:
        """Return the bounds of a search with an engine."""
        return cls(
            n_clusters,
            len(engine.frame.shift),
            engine.n_samples,
            engine.total_weight,
            most_swaps(settings.strategy, n_clusters),
        )


class Keeper(Protocol):
    """Stores the state of a search from time to time."""

    def begin(self, state: SearchState, bounds: Bounds) -> None:
        """Turn the state of a new search into a stored one, if there is one.

        Parameters
        ----------
        state : SearchState, in and out
        bounds : Bounds
            A stored state beyond these is refused.
        """
        ...

    def keep(self, state: SearchState, waiting: Waiting) -> None:
        """Store the state if it is time to."""
        ...

    def end(self, state: SearchState, waiting: Waiting) -> None:
        """Store the last state."""
        ...


class KeepNothing:
    """The keeper of a search that needs none."""

    def begin(self, state: SearchState, bounds: Bounds) -> None:
        """Leave the state as it is."""

    def keep(self, state: SearchState, waiting: Waiting) -> None:
        """Store nothing."""

    def end(self, state: SearchState, waiting: Waiting) -> None:
        """Store nothing."""
