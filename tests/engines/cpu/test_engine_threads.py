"""Several threads in one engine: they really run, and leave nothing behind."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from evomeans.engines import Order
from evomeans.engines.cpu import engine as cpu_engine
from evomeans.engines.cpu.engine import CpuEngine
from evomeans.engines.cpu.layout import State
from evomeans.engines.cpu.simd import WIDTH
from evomeans.engines.free_memory import bytes_of_samples
from evomeans.engines.protocol import LocalSearch
from evomeans.engines.workers import watched

pytestmark = pytest.mark.usefixtures("eager_threads")


def engines(n_jobs: int, n: int = 4000) -> tuple[CpuEngine, CpuEngine]:
    X = np.random.default_rng(3).normal(size=(n, 3))
    return CpuEngine(X, n_jobs=1), CpuEngine(X, n_jobs=n_jobs)


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_refining_after_assigning_starts_from_nothing(n_jobs) -> None:
    """Sums that threads collected while assigning must not reach the next refinement."""
    alone, together = engines(n_jobs)
    start = Order(alone.samples_at(np.linspace(0.05, 0.95, 9)))
    (expected,) = alone.refine([start])
    for _ in range(3):
        together.assign(expected.centers + 0.01)
        (result,) = together.refine([start])
        assert result.centers.tobytes() == expected.centers.tobytes()
        assert result.cluster_weights.sum() == 4000
        child = Order(expected.centers, 1.0, 0.3, removed=1)
        together.assign(expected.centers - 0.01)
        (inherited,) = together.refine([Order(child.centers, 1.0, 0.3, 1, 1, result.handle)])
        assert inherited.centers.tobytes() == alone.refine([child])[0].centers.tobytes()


def test_threads_are_used_but_never_more_than_there_are_tiles() -> None:
    _, engine = engines(4, n=3 * WIDTH)
    assert engine._workspace(5).team.n_threads == 3
    _, tiny = engines(4, n=10)
    assert tiny._workspace(5).team.n_threads == 1


@pytest.mark.parametrize(("solutions", "workers"), [(0.5, 1), (2.5, 2), (9.0, 4)])
def test_there_are_no_more_workers_than_have_their_bounds_in_memory(solutions, workers) -> None:
    """Fewer workers have more threads each."""
    X = np.random.default_rng(0).normal(size=(3000, 8)).astype(np.float32)
    size = State.allocate(3000, 200).nbytes
    assert State.size(3000, 200) == size
    engine = CpuEngine(X, n_jobs=4, memory_budget=int(solutions * size))
    found = engine.workers(200, 24)
    assert [one.n_jobs for one in found] == [4 // workers] * workers


def test_bounds_that_exceed_the_free_memory_are_refused_before_they_are_taken(
    monkeypatch,
) -> None:
    """Of the solutions that fit, there are as many in the making, and none if none fits."""
    X = np.random.default_rng(0).normal(size=(3000, 8)).astype(np.float32)
    size, of_samples = State.size(3000, 200), bytes_of_samples(3000, 8, 4)
    engine = CpuEngine(X, n_jobs=4)
    engine._deferred.samples = None
    monkeypatch.setattr(cpu_engine, "WORTH_ASKING", size)
    for free, n_workers in ((of_samples + size, 1), (of_samples + 5 * size // 2, 2), (None, 4)):
        monkeypatch.setattr(cpu_engine, "free_memory", lambda free=free: free)
        assert len(engine.workers(200, 24)) == n_workers
    monkeypatch.setattr(cpu_engine, "free_memory", lambda: of_samples + size - 1)
    with pytest.raises(MemoryError, match="3,000 samples of 8 features and 200 clusters take"):
        engine.workers(200, 24)
    # Bounds of fewer clusters are not worth asking.
    assert len(engine.workers(50, 24)) == 4


@pytest.mark.parametrize("n_clusters", [200, 250])
def test_memory_of_earlier_solutions_counts_as_free(n_clusters, monkeypatch) -> None:
    """It is used again for as many clusters, and let go of for others, as along a path."""
    engine = CpuEngine(np.random.default_rng(0).normal(size=(3000, 8)).astype(np.float32))
    size = State.size(3000, n_clusters)
    engine.memory.give_back(engine._new_solution(200))
    monkeypatch.setattr(cpu_engine, "WORTH_ASKING", size)
    monkeypatch.setattr(cpu_engine, "free_memory", lambda: 0 if engine.memory._free else size)
    assert len(engine.workers(n_clusters, 24)) == 1


def test_swaps_that_are_stopped_leave_what_they_have_reached() -> None:
    """Its inertia is at most what it was before the swaps, and known to be."""
    X = np.random.default_rng(5).normal(size=(20_000, 4))
    engine = CpuEngine(X)
    start = Order(engine.samples_at(np.linspace(0.001, 0.002, 60)))
    (before,) = engine.refine([start])
    searching = replace(start, local_search=LocalSearch(swaps=10**7), quantile=0.5)
    workspace = engine._workspace(60)
    began = time.monotonic()

    def is_over() -> bool:
        is_swapping = workspace.outcome.unswapped == workspace.inertia
        return is_swapping and time.monotonic() > began + 1.0

    (found,) = watched(engine, lambda: engine.refine([searching]), is_over)
    assert not found.is_complete
    assert found.inertia == before.inertia
    assert engine.assign(found.centers)[1] < 0.999 * before.inertia
    # A refinement that does not begin knows nothing, though the work space remembers those swaps.
    engine.abandon(True)
    (nothing,) = engine.refine([searching])
    assert np.isinf(nothing.inertia)
