"""The memory of solutions: their children need not start from nothing."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from threading import RLock
from typing import Any

from numpy.typing import NDArray

from evomeans.engines.cpu.layout import Solution, count_tiles

# What may be kept of a solution: with more than about 230 clusters, a child starts from nothing.
MOST_BYTES_PER_SAMPLE = 20


class KeptSolution:
    """The handle of a refined solution.

    The ``solution`` is None once forgotten; one that was too large to be kept has ``labels`` only.
    """

    __slots__ = ("__weakref__", "labels", "memory", "n_clusters", "readers", "solution")

    def __init__(self, solution: Solution, memory: Memory) -> None:
        self.solution: Solution | None = solution
        self.n_clusters = len(solution.centers)
        self.labels: NDArray[Any] | None = None
        self.memory = memory
        self.readers = 0


Kept = tuple[weakref.ref[KeptSolution], Solution, int]
"""A handle, its solution, and the bytes that it takes."""


class Memory:
    """Keeps solutions, at least one, within a ``budget`` of bytes: the least recently used goes.

    Arrays of forgotten solutions are used again: fresh memory has to be mapped by the system page
    by page, which for large data takes longer than filling it.

    Workers share it. What one of them reads, no other makes it forget.
    """

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._kept: OrderedDict[int, Kept] = OrderedDict()
        self._free: list[Solution] = []
        self._bytes = 0
        # By shape, because they are asked for with every solution.
        self._sizes: dict[tuple[int, ...], tuple[int, bool]] = {}
        # A handle may be abandoned anywhere, also while its thread is at work in here.
        self._lock = RLock()

    def reusable(self, n_samples: int, n_clusters: int) -> int:
        """Return the bytes of solutions that can be used again; let go of those of other shapes."""
        shape = count_tiles(n_samples), n_clusters
        with self._lock:
            self._free = [one for one in self._free if one.state.gaps.shape == shape]
            return sum(one.state.nbytes for one in self._free)

    def new_solution(self, n_samples: int, n_clusters: int, n_features: int) -> Solution:
        """Return room for a solution, contents undefined."""
        with self._lock:
            while self._free:
                solution = self._free.pop()
                if solution.state.gaps.shape == (count_tiles(n_samples), n_clusters):
                    return solution
        return Solution.allocate(n_samples, n_clusters, n_features)

    def keep(self, solution: Solution) -> KeptSolution:
        """Remember a solution for as long as its handle is held and the budget allows."""
        kept_solution = KeptSolution(solution, self)
        size, is_small = self._size_of(solution)
        if not is_small:
            kept_solution.solution, kept_solution.labels = None, solution.state.labels.copy()
            self.give_back(solution)
            return kept_solution
        key = id(kept_solution)
        reference = weakref.ref(kept_solution, lambda _: self._abandon(key))
        with self._lock:
            self._kept[key] = reference, solution, size
            self._bytes += size
            while self._bytes > self.budget and len(self._kept) > 1 and self._forget_oldest():
                pass
        return kept_solution

    def _size_of(self, solution: Solution) -> tuple[int, bool]:
        """Return the bytes of a solution, and whether they are few enough to be kept."""
        shape = solution.state.gaps.shape
        if shape not in self._sizes:
            state = solution.state
            is_small = state.nbytes <= MOST_BYTES_PER_SAMPLE * state.labels.size
            self._sizes[shape] = solution.nbytes, is_small
        return self._sizes[shape]

    def lend(self, handle: Any, n_clusters: int) -> Solution | None:
        """Return what is known of a handle, or None; nobody reuses it until :meth:`take_back`."""
        with self._lock:
            if not self._is_own(handle, n_clusters) or handle.solution is None:
                return None
            self._kept.move_to_end(id(handle))
            handle.readers += 1
            known: Solution = handle.solution
        return known

    def take_back(self, handle: Any, known: Solution | None) -> None:
        """Note that what was lent for a handle is not read any more."""
        if known is not None:
            with self._lock:
                handle.readers -= 1

    def _is_own(self, handle: Any, n_clusters: int) -> bool:
        """Whether a handle is one of this engine, with this many clusters."""
        if not isinstance(handle, KeptSolution) or handle.memory is not self:
            return False
        return handle.n_clusters == n_clusters

    def labels(self, handle: Any, n_clusters: int) -> NDArray[Any] | None:
        """Return the labels of a solution that was too large to be kept, or None."""
        return handle.labels if self._is_own(handle, n_clusters) else None

    def give_back(self, solution: Solution) -> None:
        """Take memory of :meth:`new_solution` that is not going to be kept."""
        with self._lock:
            self._free.append(solution)

    def forget(self, handle: KeptSolution) -> None:
        """Drop a solution and use its memory again."""
        handle.solution = None
        self._abandon(id(handle))

    def _forget_oldest(self) -> bool:
        """Forget the solution that was used least recently; return whether there was one."""
        for reference, _, _ in self._kept.values():
            oldest = reference()
            # None if it is just being abandoned, and its memory with it.
            if oldest is not None and not oldest.readers:
                self.forget(oldest)
                return True
        return False

    def _abandon(self, key: int) -> None:
        with self._lock:
            if (kept := self._kept.pop(key, None)) is None:
                return
            _, solution, size = kept
            self._bytes -= size
            # Two at least: one for the next child, and one for the solution it replaces.
            if len(self._free) < 2 or self._bytes + size * (len(self._free) + 1) <= self.budget:
                self._free.append(solution)
