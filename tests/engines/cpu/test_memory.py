"""The memory of the engine is bounded, and never changes a result."""

from __future__ import annotations

import gc

import numpy as np

from evomeans.engines.cpu.layout import Solution
from evomeans.engines.cpu.memory import KeptSolution, Memory
from evomeans.engines.cpu.simd import WIDTH


def kept_solution(memory: Memory, n: int = 10, k: int = 3) -> KeptSolution:
    return memory.keep(memory.new_solution(n, k, 1))


SIZE = Solution.allocate(10, 3, 1).nbytes


def test_the_least_recently_used_is_forgotten_first() -> None:
    memory = Memory(3 * SIZE)
    old, used, young = (kept_solution(memory) for _ in range(3))
    memory.take_back(old, memory.lend(old, 3))
    newest = kept_solution(memory)
    assert memory.lend(used, 3) is None
    assert all(memory.lend(one, 3) is one.solution for one in (old, young, newest))
    assert young.solution is not None


def test_what_is_being_read_is_not_forgotten() -> None:
    memory = Memory(2 * SIZE)
    read, other = kept_solution(memory), kept_solution(memory)
    solution = memory.lend(read, 3)
    newest = [kept_solution(memory) for _ in range(3)]
    assert read.solution is solution
    assert other.solution is None
    assert all(one.solution is not solution for one in newest)
    memory.take_back(read, solution)
    last = kept_solution(memory), kept_solution(memory)
    assert read.solution is None
    assert last[1].solution is not None


def test_one_state_is_kept_however_small_the_budget() -> None:
    memory = Memory(0)
    first = kept_solution(memory)
    second = kept_solution(memory)
    assert memory.lend(first, 3) is None
    assert memory.lend(second, 3) is second.solution is not None


def test_what_is_not_ours_is_not_recalled() -> None:
    """Another engine's handle, another number of clusters, or no handle at all."""
    memory = Memory(10 * SIZE)
    ours = kept_solution(memory)
    assert memory.lend(kept_solution(Memory(10 * SIZE)), 3) is None
    assert memory.lend(ours, 4) is None
    assert memory.lend(None, 3) is None
    assert memory.lend("handle", 3) is None


def test_memory_of_abandoned_solutions_is_used_again_but_never_that_of_living_ones() -> None:
    memory = Memory(10 * SIZE)
    living, dying = kept_solution(memory), kept_solution(memory)
    labels = dying.solution.state.labels
    del dying
    gc.collect()
    fresh = memory.new_solution(10, 3, 1)
    assert fresh.state.labels is labels
    other = memory.new_solution(10, 3, 1)
    for ours, theirs in zip(other.state, living.solution.state, strict=True):
        assert not np.shares_memory(ours, theirs)


def test_recycled_memory_fits_the_number_of_samples_and_clusters() -> None:
    for n, k in [(10, 3), (WIDTH, 3), (WIDTH + 1, 3), (10, 4), (10, 70_000)]:
        memory = Memory(10 * SIZE)
        dying = kept_solution(memory)
        del dying
        gc.collect()
        state = memory.new_solution(n, k, 1).state
        n_tiles = -(-n // WIDTH)
        assert state.labels.shape == (n_tiles, WIDTH)
        assert state.gaps.shape == state.present.shape == (n_tiles, k)
        assert state.spread.shape == (n_tiles,)
        assert np.iinfo(state.labels.dtype).max >= k
