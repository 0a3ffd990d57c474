"""What a worker remembers from one request to the next. It saves time and decides nothing.

A block that is not here is loaded again, and labels that are not here are found again, with the
same bits. So everything may be lost at any moment, and everything is bounded in bytes.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evomeans.engines.cpu.lanes import WIDTH
from evomeans.engines.cpu.layout import Samples, State
from evomeans.engines.protocol import FloatArray

# Shares of the memory that a worker has left when it begins. The rest is for blocks being loaded
# and for whatever else Dask keeps; at four fifths of its limit it would pause the worker.
SAMPLES_SHARE = 0.25
STANDINGS_SHARE = 0.15

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


class WorkerCache:
    """Blocks in the form that kernels read, and standings, each within a budget of bytes.

    Parameters
    ----------
    samples_budget, standings_budget : int
        Bytes.
    """

    def __init__(self, samples_budget: int, standings_budget: int) -> None:
        self.samples_budget = samples_budget
        self.standings_budget = standings_budget
        self._samples: OrderedDict[BlockKey, Samples] = OrderedDict()
        self._standings: OrderedDict[StandingKey, tuple[Standing, int]] = OrderedDict()
        self._samples_bytes = 0
        self._standings_bytes = 0
        self._lock = threading.Lock()

    def samples(self, key: BlockKey) -> Samples | None:
        """Return a block if it is here."""
        with self._lock:
            return self._samples.get(key)

    def has_room(self, token: str, size: int) -> bool:
        """Whether a block of this size would be kept."""
        with self._lock:
            own = sum(memory_of(kept) for key, kept in self._samples.items() if key[0] == token)
            return own + size <= self.samples_budget

    def keep_samples(self, key: BlockKey, samples: Samples) -> bool:
        """Keep a block if there is room, and say whether it is kept.

        Blocks of other data make room; blocks of the same data do not: all of them are needed in
        turn, and the one that leaves would be missed as much as the one that came.
        """
        size = memory_of(samples)
        with self._lock:
            if key in self._samples:
                return True
            others = [other for other in self._samples if other[0] != key[0]]
            while others and self._samples_bytes + size > self.samples_budget:
                self._samples_bytes -= memory_of(self._samples.pop(others.pop(0)))
            if self._samples_bytes + size > self.samples_budget:
                return False
            self._samples[key] = samples
            self._samples_bytes += size
            return True

    def take(self, key: StandingKey) -> Standing | None:
        """Take a standing out: nobody else can touch it until it is given back."""
        with self._lock:
            found = self._standings.pop(key, None)
            if found is None:
                return None
            self._standings_bytes -= found[0].nbytes
            return found[0]

    def give(self, key: StandingKey, standing: Standing, serial: int) -> None:
        """Keep a standing if there is room; those used least recently make room.

        But not those that the last request used too: like the blocks, they are needed in turn.
        """
        size = standing.nbytes
        with self._lock:
            while self._standings_bytes + size > self.standings_budget and self._standings:
                oldest, (other, used) = next(iter(self._standings.items()))
                if oldest[0] == key[0] and used >= serial - 2:
                    return
                del self._standings[oldest]
                self._standings_bytes -= other.nbytes
            if self._standings_bytes + size <= self.standings_budget:
                replaced = self._standings.pop(key, None)
                self._standings[key] = standing, serial
                self._standings_bytes += size - (replaced[0].nbytes if replaced else 0)

    def forget(self, token: str, names: frozenset[int]) -> None:
        """Drop the standings of some solutions."""
        with self._lock:
            for key in [key for key in self._standings if key[0] == token and key[1] in names]:
                self._standings_bytes -= self._standings.pop(key)[0].nbytes

    def drop(self, token: str) -> None:
        """Drop all there is of a data set."""
        with self._lock:
            for block in [key for key in self._samples if key[0] == token]:
                self._samples_bytes -= memory_of(self._samples.pop(block))
            for key in [key for key in self._standings if key[0] == token]:
                self._standings_bytes -= self._standings.pop(key)[0].nbytes

    @property
    def nbytes(self) -> tuple[int, int]:
        """Bytes of the blocks and of the standings that are kept."""
        return self._samples_bytes, self._standings_bytes


def memory_of(samples: Samples) -> int:
    """Bytes that a block takes."""
    return sum(array.nbytes for array in samples if isinstance(array, np.ndarray))


def memory_for(X: NDArray[Any], weighted: bool) -> int:
    """Bytes that a block will take, at least: rows, tiles, middles, and numbers for every row."""
    per_row = X.shape[1] * (X.itemsize + 4 + 8 / WIDTH) + 12 + 8 * weighted
    return int(len(X) * per_row)


@cache
def cache_here() -> WorkerCache:
    """Return the cache of this process."""
    left = memory_left()
    return WorkerCache(int(SAMPLES_SHARE * left), int(STANDINGS_SHARE * left))


def drop_here(token: str) -> None:
    """Drop all there is of a data set in this process."""
    # Only tasks may make the cache: nobody else knows the memory of the worker.
    if cache_here.cache_info().currsize:
        cache_here().drop(token)


def memory_left() -> int:
    """Bytes that this process may still take, of those of the worker, else of the machine."""
    import psutil
    from distributed import get_worker
    from distributed.system import MEMORY_LIMIT

    try:
        manager: Any = get_worker().memory_manager
        limit = manager.memory_limit or MEMORY_LIMIT
    except ValueError:
        limit = MEMORY_LIMIT
    return max(0, int(limit) - int(psutil.Process().memory_info().rss))
