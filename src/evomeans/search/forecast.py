"""How long a search can still take at most."""

from __future__ import annotations

from evomeans.search.history import OffspringRecord
from evomeans.search.settings import SearchSettings


class Forecast:
    """Knows the limits of a search, and measures its pace from the records it is given.

    Parameters
    ----------
    max_offspring : int
        The search ends after this many.
    longest_wait : int
        A population has settled after this many in a row without improvement.
    max_time : float, optional
        The search ends after this many seconds.
    """

    def __init__(
        self, max_offspring: int, longest_wait: int, max_time: float | None = None
    ) -> None:
        self.max_offspring = max_offspring
        self.longest_wait = longest_wait
        self.max_time = max_time
        # The first offspring of this process, from which the pace is measured.
        self._began: OffspringRecord | None = None
        self._last: OffspringRecord | None = None

    @classmethod
    def of(cls, settings: SearchSettings, n_clusters: int) -> Forecast:
        """Return the forecast for a search with these settings."""
        wait = settings.longest_wait(n_clusters)
        return cls(settings.max_offspring, wait, settings.max_time)

    def add(self, record: OffspringRecord) -> None:
        """Take in a record."""
        self._last = record
        if self._began is None and record.number > 0:
            self._began = record

    def seconds_left(self, seconds: float) -> float | None:
        """Return the most that can still follow after some seconds, if that can be told."""
        left = []
        if self.max_time is not None:
            left.append(max(0.0, self.max_time - seconds))
        if self._last and self._began and (made := self._last.number - self._began.number):
            pace = (self._last.seconds - self._began.seconds) / made
            left.append((self.max_offspring - self._last.number) * pace)
        return min(left) if left else None
