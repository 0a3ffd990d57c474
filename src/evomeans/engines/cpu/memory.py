"""What the engine remembers of solutions, so that their children need not start from nothing."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.engines.cpu.layout import State, count_tiles

# What may be kept of a solution. With more than about 230 clusters the gaps take too much, and a
# child starts from nothing: with so many, that is little beside the rest of its K-means.
BYTES_PER_SAMPLE = 20


class Recollection:
    """The handle of a refined solution: its centres, and the state of the samples if still kept.

    Parameters
    ----------
    state : State or None
        None once forgotten.
    centers : (k, d) array
    sums : (k, 2, d + 1) array of int64

    Attributes
    ----------
    labels : array or None
        Those of a state that was too large to be kept.
    """

    __slots__ = ("__weakref__", "centers", "labels", "state", "sums")

    def __init__(self, state: State, centers: NDArray[np.float64], sums: NDArray[np.int64]) -> None:
        self.state: State | None = state
        self.centers = centers
        self.sums = sums
        self.labels: NDArray[Any] | None = None


class Memory:
    """Keeps states within a budget of bytes: the least recently used is forgotten first.

    Arrays of forgotten and of abandoned solutions are used again: fresh memory has to be mapped by
    the system page by page, which for large data takes longer than filling it.

    Parameters
    ----------
    budget : int
        Bytes; at least one state is always kept.
    """

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._kept: OrderedDict[int, tuple[weakref.ref[Recollection], State]] = OrderedDict()
        self._free: list[State] = []
        self._bytes = 0
        self._labelled: weakref.WeakSet[Recollection] = weakref.WeakSet()

    def new_state(self, n_samples: int, n_clusters: int) -> State:
        """Return room for a state, contents undefined."""
        while self._free:
            state = self._free.pop()
            if state.gaps.shape == (count_tiles(n_samples), n_clusters):
                return state
        return State.allocate(n_samples, n_clusters)

    def keep(self, recollection: Recollection) -> Recollection:
        """Remember a solution for as long as somebody holds its handle and the budget allows."""
        state = recollection.state
        assert state is not None
        size = state.nbytes
        if size > BYTES_PER_SAMPLE * state.labels.size:
            recollection.state, recollection.labels = None, state.labels.copy()
            self._labelled.add(recollection)
            self.give_back(state)
            return recollection
        key = id(recollection)
        reference = weakref.ref(recollection, lambda _: self._abandon(key))
        self._kept[key] = reference, state
        self._bytes += size
        while self._bytes > self.budget and len(self._kept) > 1:
            self._forget_oldest()
        return recollection

    def recall(self, handle: Any, n_clusters: int) -> Recollection | None:
        """Return what is known of a handle of this engine, or None."""
        if not isinstance(handle, Recollection) or id(handle) not in self._kept:
            return None
        if handle.state is None or len(handle.centers) != n_clusters:
            return None
        self._kept.move_to_end(id(handle))
        return handle

    def labels(self, handle: Any, n_clusters: int) -> NDArray[Any] | None:
        """Return the labels of a solution of this engine, or None if they are forgotten."""
        if (known := self.recall(handle, n_clusters)) is not None and known.state is not None:
            labels: NDArray[Any] = known.state.labels
            return labels
        if isinstance(handle, Recollection) and handle in self._labelled:
            return handle.labels if len(handle.centers) == n_clusters else None
        return None

    def give_back(self, state: State) -> None:
        """Take memory of :meth:`new_state` that nobody is going to keep."""
        self._free.append(state)

    def forget(self, handle: Recollection) -> None:
        """Drop the state of a solution and use its memory again."""
        handle.state = None
        self._abandon(id(handle))

    def _forget_oldest(self) -> None:
        oldest = next(iter(self._kept.values()))[0]()
        # None if it has just been abandoned, and its memory with it.
        if oldest is not None:
            self.forget(oldest)

    def _abandon(self, key: int) -> None:
        if (kept := self._kept.pop(key, None)) is not None:
            self._recycle(kept[1])

    def _recycle(self, state: State) -> None:
        size = state.nbytes
        self._bytes -= size
        # Two at least: one for the next child, and one for whoever it replaces.
        if len(self._free) < 2 or self._bytes + size * (len(self._free) + 1) <= self.budget:
            self._free.append(state)
