"""What the engine remembers of solutions, so that their children need not start from nothing."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from threading import RLock
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
    memory : Memory or None
        The memory that keeps it.
    readers : int
        Threads that are reading the state.
    """

    __slots__ = ("__weakref__", "centers", "labels", "memory", "readers", "state", "sums")

    def __init__(self, state: State, centers: NDArray[np.float64], sums: NDArray[np.int64]) -> None:
        self.state: State | None = state
        self.centers = centers
        self.sums = sums
        self.labels: NDArray[Any] | None = None
        self.memory: Memory | None = None
        self.readers = 0


class Memory:
    """Keeps states within a budget of bytes: the least recently used is forgotten first.

    Arrays of forgotten and of abandoned solutions are used again: fresh memory has to be mapped by
    the system page by page, which for large data takes longer than filling it.

    Workers share it. What one of them reads, no other makes it forget.

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
        # A handle may be abandoned anywhere, also while its thread is at work in here.
        self._lock = RLock()

    def new_state(self, n_samples: int, n_clusters: int) -> State:
        """Return room for a state, contents undefined."""
        with self._lock:
            while self._free:
                state = self._free.pop()
                if state.gaps.shape == (count_tiles(n_samples), n_clusters):
                    return state
        return State.allocate(n_samples, n_clusters)

    def keep(self, recollection: Recollection) -> Recollection:
        """Remember a solution for as long as somebody holds its handle and the budget allows."""
        state = recollection.state
        assert state is not None
        recollection.memory = self
        size = state.nbytes
        if size > BYTES_PER_SAMPLE * state.labels.size:
            recollection.state, recollection.labels = None, state.labels.copy()
            self.give_back(state)
            return recollection
        key = id(recollection)
        reference = weakref.ref(recollection, lambda _: self._abandon(key))
        with self._lock:
            self._kept[key] = reference, state
            self._bytes += size
            while self._bytes > self.budget and len(self._kept) > 1 and self._forget_oldest():
                pass
        return recollection

    def lend(self, handle: Any, n_clusters: int) -> Recollection | None:
        """Return what is known of a handle of this engine, or None.

        Nobody else uses its memory until :meth:`take_back`.
        """
        with self._lock:
            known = self._recall(handle, n_clusters)
            if known is not None:
                known.readers += 1
        return known

    def take_back(self, known: Recollection | None) -> None:
        """Note that what was lent is not read any more."""
        if known is not None:
            with self._lock:
                known.readers -= 1

    def _recall(self, handle: Any, n_clusters: int) -> Recollection | None:
        if not self._is_own(handle, n_clusters) or handle.state is None:
            return None
        self._kept.move_to_end(id(handle))
        known: Recollection = handle
        return known

    def _is_own(self, handle: Any, n_clusters: int) -> bool:
        """Whether a handle is one of this engine, with this many clusters."""
        if not isinstance(handle, Recollection) or handle.memory is not self:
            return False
        return len(handle.centers) == n_clusters

    def labels(self, handle: Any, n_clusters: int) -> NDArray[Any] | None:
        """Return the labels of a solution whose state was too large to be kept, or None."""
        return handle.labels if self._is_own(handle, n_clusters) else None

    def give_back(self, state: State) -> None:
        """Take memory of :meth:`new_state` that nobody is going to keep."""
        with self._lock:
            self._free.append(state)

    def forget(self, handle: Recollection) -> None:
        """Drop the state of a solution and use its memory again."""
        handle.state = None
        self._abandon(id(handle))

    def _forget_oldest(self) -> bool:
        """Forget the solution that was used least recently; return whether there was one."""
        for reference, _ in self._kept.values():
            oldest = reference()
            # None if it is just being abandoned, and its memory with it.
            if oldest is not None and not oldest.readers:
                self.forget(oldest)
                return True
        return False

    def _abandon(self, key: int) -> None:
        with self._lock:
            if (kept := self._kept.pop(key, None)) is not None:
                self._recycle(kept[1])

    def _recycle(self, state: State) -> None:
        size = state.nbytes
        self._bytes -= size
        # Two at least: one for the next child, and one for whoever it replaces.
        if len(self._free) < 2 or self._bytes + size * (len(self._free) + 1) <= self.budget:
            self._free.append(state)
