"""What a search asks of a place that keeps its state."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from evomeans.engines.protocol import Start
from evomeans.search.settings import SearchSettings
from evomeans.search.state import SearchState


class Resumable(Protocol):
    """A search as a checkpoint sees it."""

    settings: SearchSettings

    @property
    def shape(self) -> tuple[int, int]:
        """Centres k and features d of a solution."""
        ...

    @property
    def seconds(self) -> float:
        """Time spent so far."""
        ...

    def start(
        self, centers: NDArray[np.float64], alpha: float, quantile: float, removed: int
    ) -> Start:
        """Ask for a refinement as the settings want it."""
        ...

    def state(self) -> SearchState:
        """Return all that is needed to go on elsewhere."""
        ...

    def restore(self, state: SearchState) -> None:
        """Go on from there."""
        ...


class NoCheckpoint:
    """Keeps nothing."""

    def begin(self, search: Resumable) -> None:
        """Begin anew."""

    def keep(self, search: Resumable) -> None:
        """Keep nothing."""

    def end(self, search: Resumable) -> None:
        """Leave nothing behind."""
