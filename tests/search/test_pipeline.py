"""Solutions in the making: rounds of several, and offspring that are made side by side."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from itertools import chain, repeat

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scripted_search import FOUNDERS, restarting, run, small

from evomeans.engines.cpu import CpuEngine
from evomeans.engines.protocol import Order, Way
from evomeans.engines.workers import Workers
from evomeans.search import (
    DEEP,
    PAPER,
    Crossing,
    SearchSettings,
    StopReason,
    Strategy,
    genetic,
    solve,
)
from evomeans.search.genetic import Pipeline
from evomeans.search.population import different_parents
from evomeans.search.stopping import DeferredInterrupt, Timing
from fakes import ScriptedClock, ScriptedEngine, breeding, refinement


def test_founders_and_offspring_come_in_rounds_of_batch() -> None:
    """With batch 3, four founders are 3 + 1; then rounds of three."""
    engine, result = run(repeat(1.0), small(max_offspring=6), batch=3)
    assert engine.calls == [3, 1, 3, 3]
    assert result.n_offspring == 6


def test_a_round_is_bred_from_the_same_population_and_inserted_in_order() -> None:
    """Both children of the round have founders as parents, though the first already joined."""
    best_of_all = breeding(coins=[0.9, 0.9], first=(0.25, 0.25), second=(0.25, 0.25))
    fourth = breeding(coins=[0.9, 0.9], first=(0.99, 0.99), second=(0.99, 0.99))
    engine, result = run(
        [*FOUNDERS, 1.0, 2.0], small(max_offspring=2), batch=2, uniforms=[best_of_all, fourth]
    )
    assert [start.parent for start in engine.starts[4:]] == ["handle 1", "handle 3"]
    assert [record.inertia for record in result.history] == [*FOUNDERS, 1.0, 2.0]
    assert [record.population_size for record in result.history] == [1, 2, 3, 4, 2, 3]


def test_a_stop_inside_a_round_drops_the_rest_of_it() -> None:
    """The target is met by the second of four: the other two are refined, but never counted."""
    engine, result = run([*FOUNDERS, 15.0, 5.0, 1.0, 2.0], small(target_inertia=6.0), batch=4)
    assert engine.calls == [4, 4]
    assert result.stop_reason is StopReason.TARGET_INERTIA
    assert result.n_offspring == 2
    assert result.best.inertia == 5.0
    assert [record.inertia for record in result.history] == [*FOUNDERS, 15.0, 5.0]


@pytest.mark.parametrize(
    ("limit", "reason"),
    [("max_offspring", StopReason.MAX_OFFSPRING), ("patience", StopReason.NO_IMPROVEMENT)],
)
def test_a_limit_need_not_be_a_multiple_of_batch(limit, reason) -> None:
    _, result = run(repeat(1.0), small(**{limit: 5}), batch=4)
    assert (result.n_offspring, result.stop_reason) == (5, reason)


def test_an_observer_may_stop_inside_a_round() -> None:
    """The word of the observer is kept even if the round has more records to show."""
    seen = []

    def stop(record):
        seen.append(record.number)
        return record.number == 2

    _, result = run(repeat(1.0), batch=4, observers=[stop])
    assert result.stop_reason is StopReason.OBSERVER
    assert seen == [0, 0, 0, 0, 1, 2]


def test_a_round_is_added_before_the_population_gives_way() -> None:
    """Also the part of it that comes after the patience has run out."""
    falling = [1.0 / number for number in range(2, 60)]
    script = [1.0, 1.1, 1.2, 1.3, *[1.0] * 8, *falling]
    engine, result = run(script, restarting(max_offspring=10, patience=5), batch=4)
    assert engine.calls == [4, 4, 4, 4, 4]
    numbers = [record.number for record in result.history]
    assert numbers == [0] * 4 + list(range(1, 9)) + [8] * 4 + [9, 10]


def spying(seen: list[set[float]], **changes) -> Strategy:
    """Return a strategy that notes the inertias from which parents are selected."""

    def selection(population, uniforms):
        seen.append({member.inertia for member in population})
        return different_parents(population, uniforms)

    return Strategy("spying", selection=selection, **changes)


@pytest.mark.parametrize("lag", [1, 2, 3])
def test_an_offspring_knows_all_but_the_last_before_it(lag) -> None:
    """Number i is bred when i − lag has been inserted; here nobody dies."""
    seen: list[set[float]] = []
    strategy = spying(seen, lag=lag, survival=lambda population, count, rng: list(population))
    script = [float(99 - i) for i in range(12)]
    run(script, small(max_offspring=8, strategy=strategy))
    for number, known in enumerate(seen[:8], start=1):
        assert known == set(script[: 4 + number - lag])


def test_offspring_are_bred_when_half_of_the_founders_are_there() -> None:
    """Not before there are ``min_population`` of them, however long the lag."""
    seen: list[set[float]] = []
    settings = small(max_offspring=4, strategy=spying(seen, lag=16))
    run(repeat(1.0), settings)
    assert len(seen) >= 4
    seen.clear()
    run([4.0, 3.0, 2.0, 1.0, *[5.0] * 40], settings)
    assert seen[0] == {4.0, 3.0}


def test_offspring_beyond_the_limit_are_not_refined() -> None:
    engine, result = run(repeat(1.0), small(max_offspring=5, strategy=Strategy("wide", lag=8)))
    assert result.n_offspring == 5
    assert len(engine.starts) == 4 + 5


def test_a_new_population_drops_what_the_old_one_was_making() -> None:
    """Of lag 3, two are in the making when patience ends; the next to be refined is a founder."""
    strategy = Strategy("dropping", agreement=2, lag=3)
    script = chain(range(1, 8), range(2, 99))
    engine, result = run(script, restarting(max_offspring=6, strategy=strategy))
    founders = [record.founder for record in result.history]
    assert founders == ([True] * 4 + [False] * 3) * 2
    assert len(engine.starts) == len(founders)


@pytest.mark.usefixtures("eager_threads")
@pytest.mark.parametrize("strategy", [DEEP, PAPER])
def test_the_number_of_threads_changes_no_bit(strategy) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)) + rng.integers(4, size=(300, 1))
    settings = SearchSettings(4, 8, max_offspring=90, patience=30, strategy=strategy)
    results = [
        solve(CpuEngine(X, n_jobs=n_jobs), 12, settings, np.random.default_rng(1))
        for n_jobs in (1, 2, 5)
    ]
    for result in results[1:]:
        assert_array_equal(result.best.centers, results[0].best.centers)
        for one, other in zip(result.history, results[0].history, strict=True):
            assert replace(one, seconds=0.0) == replace(other, seconds=0.0)


@pytest.mark.usefixtures("eager_threads")
def test_an_error_of_a_worker_ends_the_search_and_all_threads() -> None:
    def failing(first, second, breeding):
        raise ZeroDivisionError("no child")

    strategy = Strategy("failing", crossovers=(Crossing(failing),), lag=4)
    X = np.random.default_rng(0).normal(size=(100, 2))
    settings = SearchSettings(2, 4, strategy=strategy)
    with pytest.raises(ZeroDivisionError, match="no child"):
        solve(CpuEngine(X, n_jobs=3), 3, settings, np.random.default_rng(0))
    assert not any(thread.name.startswith("evomeans worker") for thread in threading.enumerate())


@pytest.mark.usefixtures("eager_threads")
def test_time_that_is_up_ends_what_workers_are_doing(monkeypatch) -> None:
    """The first solution is there; the others would take a minute each."""
    abandoned = threading.Event()
    refine, abandon = CpuEngine.refine, CpuEngine.abandon

    def slow(engine, starts):
        if threading.current_thread().name.startswith("evomeans worker"):
            abandoned.wait(60.0)
        return refine(engine, starts)

    def note(engine, is_abandoned):
        if is_abandoned:
            abandoned.set()
        abandon(engine, is_abandoned)

    monkeypatch.setattr(CpuEngine, "refine", slow)
    monkeypatch.setattr(CpuEngine, "abandon", note)
    X = np.random.default_rng(0).normal(size=(100, 2))
    settings = SearchSettings(2, 4, max_time=0.2)
    began = time.perf_counter()
    result = solve(CpuEngine(X, n_jobs=3), 3, settings, np.random.default_rng(0))
    assert time.perf_counter() - began < 30.0
    assert result.stop_reason is StopReason.MAX_TIME
    assert len(result.history) == 1


class Leading(ScriptedEngine):
    """An engine with two workers, on which refinements take long."""

    def workers(self, n_clusters, most):
        return [replace(self), replace(self)]

    def takes_long(self, n_clusters):
        return True


def test_an_engine_is_used_by_one_thread_at_a_time(monkeypatch) -> None:
    """Centres are asked for while another thread makes the offspring, as a checkpoint does."""
    monkeypatch.setattr(genetic, "MOMENT", 0.01)
    in_use, centers_are_here = threading.Lock(), threading.Event()

    def use(until=None):
        assert in_use.acquire(blocking=False), "another thread uses the engine"
        assert until is None or until.wait(10.0)
        in_use.release()

    def place(orders, own):
        use()
        return [order.placed(np.zeros((2, 1)), "made") for order in orders]

    def wait(*_):
        use(until=centers_are_here)
        return refinement(1.0, 0)

    monkeypatch.setattr(genetic, "ways_of", lambda order: [Way.MATCHING])
    monkeypatch.setattr(Leading, "offspring", wait, raising=False)
    monkeypatch.setattr(Leading, "refine", lambda own, orders: [wait()])
    engine = Leading([])
    timing = Timing(engine, 2, None, ScriptedClock(), 0.0, DeferredInterrupt())
    with Workers(engine, 2, 2).at_work() as workers:
        making = Pipeline(workers, place, timing)
        making.begin([Order()], at_once=False)
        assert list(making.refined()) == []
        (order,) = making.waiting()
        centers_are_here.set()
        assert order.made_by == "made"
        while not (made := list(making.refined())):
            pass
        assert made[0][1].inertia == 1.0


def test_what_is_placed_in_a_hurry_when_time_is_up_is_placed_again() -> None:
    """Else a search that continues would make another solution than one that was not stopped."""
    begun = threading.Event()

    def place(orders, worker):
        begun.set()
        while worker is not engine and not worker.is_abandoned:
            time.sleep(0.001)
        where = np.full((2, 1), float(worker.is_abandoned))
        return [order.placed(where, "made") for order in orders]

    engine = CpuEngine(np.random.default_rng(0).normal(size=(40_000, 1)), n_jobs=2)
    timing = Timing(engine, 2, None, ScriptedClock(), 0.0, DeferredInterrupt())
    with Workers(engine, 2, 2).at_work() as workers:
        making = Pipeline(workers, place, timing)
        making.begin([Order(parents=None)])
        assert begun.wait(20.0)
        making.stopped()
        (order,) = making.waiting()
        assert_array_equal(order.centers, np.zeros((2, 1)))
