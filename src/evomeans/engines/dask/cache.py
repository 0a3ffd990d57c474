"""The memory of a worker from one request to the next. It saves time and decides nothing.

A block that is not here is loaded again, and labels that are not here are found again, with the
same bits. So everything may be lost at any moment, and everything is bounded in bytes.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evomeans.engines.cpu.layout import Samples, State
from evomeans.engines.cpu.simd import WIDTH
from evomeans.engines.dask.blocks import LARGEST_BLOCK
from evomeans.typing import FloatArray

# Dask pauses a worker at four fifths of its limit: less than that is for everything, and of it
# some is needed for code, and some for the blocks that every thread has in hand or waiting.
WORKER_SHARE = 0.65
RESERVE, RESERVE_PER_THREAD = 2**26, 12 * LARGEST_BLOCK
# Of the memory that is free, where no limit is set.
FREE_SHARE = 0.5
# Of all that is kept, so much is for blocks; the rest is for standings.
SAMPLES_SHARE = 2 / 3

BlockKey = tuple[str, int]
"""The token of the data, and the number of the block."""

StandingKey = tuple[str, int, int, bool]
"""Token, name of a solution, block, and whether neighbours stand together in it."""


class Standing(NamedTuple):
    """Where a block stands with a solution: labels and bounds, and the centres they belong to.

    ``sums`` (k, 2, d + 1) int64: of the samples of this block.
    """

    state: State
    centers: FloatArray
    sums: NDArray[np.int64]

    @property
    def nbytes(self) -> int:
        """Memory that this takes."""
        return self.state.nbytes + self.centers.nbytes + self.sums.nbytes

    def copy(self) -> Standing:
        """Return a copy that can go its own way."""
        state = State(*(np.array(array) for array in self.state))
        return Standing(state, self.centers.copy(), self.sums.copy())


class Held(OrderedDict[Any, Any]):
    """Values by their keys, in the order in which they were put here last, and all their bytes."""

    nbytes = 0

    def put(self, key: Any, value: Any, size: int) -> None:
        """Hold a value of some bytes, as the latest one."""
        self.take(key)
        self[key] = value, size
        self.nbytes += size

    def take(self, key: Any) -> Any:
        """Return a value and let it go; None if it is not here."""
        value, size = self.pop(key, (None, 0))
        self.nbytes -= size
        return value


class WorkerCache:
    """Blocks in the form that kernels read, and standings, each within its share of a budget.

    By default, the first task that asks for room decides about the budget: only tasks know the
    memory of their worker.
    """

    def __init__(self, budget: int | None = None) -> None:
        self.budget = budget
        self._samples = Held()
        self._standings = Held()
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> tuple[int, int]:
        """Bytes of the blocks and of the standings that are kept."""
        return self._samples.nbytes, self._standings.nbytes

    def _limit(self, share: float) -> float:
        if self.budget is None:
            self.budget = budget_here()
        return share * self.budget

    def samples(self, key: BlockKey) -> Samples | None:
        """Return a block if it is here."""
        with self._lock:
            samples: Samples | None = self._samples.get(key, (None, 0))[0]
            return samples

    def has_room(self, token: str, size: int) -> bool:
        """Whether a block of this size would be kept.

        Blocks of other data make room. Blocks of the same data do not: all of them are needed in
        turn, so evicting one of them for another saves nothing.
        """
        with self._lock:
            own = sum(taken for key, (_, taken) in self._samples.items() if key[0] == token)
            return bool(own + size <= self._limit(SAMPLES_SHARE))

    def keep_samples(self, key: BlockKey, samples: Samples) -> bool:
        """Keep a block if there is room, and say whether it is kept."""
        size = memory_of(samples)
        if not self.has_room(key[0], size):
            return False
        with self._lock:
            if key in self._samples:
                return True
            others = [other for other in self._samples if other[0] != key[0]]
            while others and self._samples.nbytes + size > self._limit(SAMPLES_SHARE):
                self._samples.take(others.pop(0))
            if self._samples.nbytes + size > self._limit(SAMPLES_SHARE):
                return False
            self._samples.put(key, samples, size)
            return True

    def take(self, key: StandingKey) -> Standing | None:
        """Take a standing out: no other task can touch it until it is given back."""
        with self._lock:
            found = self._standings.take(key)
        return None if found is None else found[0]

    def give(self, key: StandingKey, standing: Standing, serial: int) -> None:
        """Keep a standing if there is room; those used least recently make room.

        But not those that the last requests used too: like the blocks, they are needed in turn.
        """
        size = standing.nbytes
        with self._lock:
            while self._standings.nbytes + size > self._limit(1.0 - SAMPLES_SHARE):
                if not self._standings:
                    return
                oldest, ((_, used), _) = next(iter(self._standings.items()))
                if oldest[0] == key[0] and used >= serial - 2:
                    return
                self._standings.take(oldest)
            self._standings.put(key, (standing, serial), size)

    def forget(self, token: str, names: frozenset[int]) -> None:
        """Drop the standings of some solutions."""
        with self._lock:
            for key in [key for key in self._standings if key[0] == token and key[1] in names]:
                self._standings.take(key)

    def drop(self, token: str) -> None:
        """Drop all blocks of a data set, and their standings."""
        with self._lock:
            for held in (self._samples, self._standings):
                for key in [key for key in held if key[0] == token]:
                    held.take(key)


CACHE = WorkerCache()
"""The cache of this process."""


def memory_of(samples: Samples) -> int:
    """Bytes that a block takes."""
    return sum(array.nbytes for array in samples if isinstance(array, np.ndarray))


def memory_for(X: NDArray[Any], weighted: bool) -> int:
    """Bytes that a block will take, at least: rows, tiles, middles, and numbers for every row."""
    per_row = X.shape[1] * (X.itemsize + 4 + 8 / WIDTH) + 12 + 8 * weighted
    return int(len(X) * per_row)


def budget_here() -> int:
    """Bytes that may be kept in this process, by the limit of the worker, else by what is free."""
    import psutil
    from dask.system import CPU_COUNT
    from distributed import get_worker

    free = FREE_SHARE * psutil.virtual_memory().available
    try:
        worker: Any = get_worker()
    except ValueError:
        return int(free)
    n_threads, limit = worker.state.nthreads, worker.memory_manager.memory_limit
    if not limit:
        return int(free * min(1.0, n_threads / CPU_COUNT))
    used: int = psutil.Process().memory_info().rss + RESERVE + n_threads * RESERVE_PER_THREAD
    return max(0, int(WORKER_SHARE * limit) - used)
