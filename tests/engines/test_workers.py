"""Workers do jobs in any order, and hand back the results in the one that is wanted."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from evomeans.engines import workers
from evomeans.engines.cpu.engine import share_threads
from evomeans.engines.workers import Workers, extremes, side_by_side
from fakes import ScriptedEngine


class Shared(ScriptedEngine):
    """An engine with as many workers as are wanted, all of which remember being abandoned."""

    def __init__(self) -> None:
        super().__init__([])
        self.abandoned = threading.Event()
        self.calls_of_abandon: list[bool] = []

    def workers(self, n_clusters, most):
        return [self] * most

    def abandon(self, is_abandoned):
        self.calls_of_abandon.append(is_abandoned)
        if is_abandoned:
            self.abandoned.set()


@pytest.mark.parametrize("count", [1, 3])
def test_results_come_in_the_order_of_the_jobs(count) -> None:
    """Also if those that began first take longest."""

    def job(number):
        def work(engine):
            time.sleep(0.03 / (number + 1))
            return number

        return work

    with Workers(Shared(), 2, count).at_work() as workers:
        assert list(workers.in_order(job(number) for number in range(9))) == list(range(9))


def test_jobs_run_at_the_same_time() -> None:
    """Three that wait for each other would never end one after the other."""
    meeting = threading.Barrier(3, timeout=10.0)
    with Workers(Shared(), 2, 3).at_work() as workers:
        assert sorted(workers.in_order([lambda _: meeting.wait()] * 3)) == [0, 1, 2]


def test_errors_are_raised_where_the_result_is_asked_for() -> None:
    with Workers(Shared(), 2, 2).at_work() as workers:
        bad, good = workers.hand_out(lambda _: 1 / 0), workers.hand_out(lambda _: 7)
        assert workers.result(good) == 7
        with pytest.raises(ZeroDivisionError):
            workers.result(bad)


@pytest.mark.parametrize(("count", "at_once"), [(1, True), (3, False)])
def test_nothing_is_done_before_it_is_asked_for(count, at_once) -> None:
    """Without threads, or if that is wanted."""
    done = []
    with Workers(Shared(), 2, count).at_work() as workers:
        tasks = [workers.hand_out(lambda _, n=n: done.append(n), at_once=at_once) for n in range(3)]
        workers.result(tasks[1])
        assert done == [1]


def test_one_thread_does_all_long_jobs_that_no_worker_has(monkeypatch) -> None:
    """Where they are waited for with a limit; threads of their own would find cold caches."""
    monkeypatch.setattr(Shared, "takes_long", lambda *_: True)
    found = set()
    with Workers(Shared(), 2, 1).at_work() as workers:
        for _ in range(5):
            task = workers.hand_out(lambda _: threading.get_ident())
            while not workers.is_done(task, 0.01):
                pass
            found.add(workers.result(task))
    assert len(found) == 1
    assert threading.get_ident() not in found


def test_what_is_dropped_ends_soon_and_what_has_not_begun_never_begins() -> None:
    engine, both_run, ended = Shared(), threading.Barrier(3, timeout=10.0), []

    def long(_):
        both_run.wait()
        ended.append(engine.abandoned.wait(10.0))

    with Workers(engine, 2, 2).at_work() as workers:
        for job in (long, long, lambda _: ended.append("never")):
            workers.hand_out(job)
        both_run.wait()
        workers.drop()
        assert ended == [True, True]
        assert engine.calls_of_abandon == [True, True, False, False]
        assert workers.result(workers.hand_out(lambda _: 5)) == 5


def test_no_thread_is_left_behind() -> None:
    before = threading.active_count()

    def fail() -> None:
        with Workers(Shared(), 2, 4).at_work() as workers:
            workers.hand_out(lambda _: time.sleep(0.01))
            assert threading.active_count() == before + 4
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert threading.active_count() == before


# ---- parts of arrays -----------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("shape", [(1,), (1001,), (1, 4), (501, 7)])
def test_extremes_are_those_of_every_column(shape, n_jobs, monkeypatch) -> None:
    """The last part is shorter than the others."""
    monkeypatch.setattr(workers, "VALUES_AT_ONCE", 100)
    X = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    low, high = extremes(X, n_jobs)
    assert_array_equal(low, X.min(axis=0))
    assert_array_equal(high, X.max(axis=0))


def test_extremes_of_a_column_without_a_number(monkeypatch) -> None:
    monkeypatch.setattr(workers, "VALUES_AT_ONCE", 10)
    X = np.ones((50, 2))
    X[33, 1] = np.nan
    assert_array_equal(extremes(X), [[1.0, np.nan], [1.0, np.nan]])


def test_rows_longer_than_a_part_are_looked_at_one_by_one(monkeypatch) -> None:
    monkeypatch.setattr(workers, "VALUES_AT_ONCE", 3)
    assert_array_equal(extremes(np.arange(20).reshape(2, 10))[1], np.arange(10, 20))


def test_every_item_is_done_and_errors_are_raised() -> None:
    done, meeting = [], threading.Barrier(2)

    def do(item: int) -> None:
        # Passed only if two threads are at work.
        meeting.wait(timeout=30)
        done.append(item)

    side_by_side(do, range(4), 2)
    assert sorted(done) == [0, 1, 2, 3]
    with pytest.raises(ZeroDivisionError):
        side_by_side(lambda item: 1 // item, [1, 0], 2)


@pytest.mark.parametrize(
    ("n_jobs", "most", "work", "expected"),
    [
        (16, 24, 10_000, (1, 16)),
        (16, 24, 10**7, (16, 1)),
        (16, 1, 10**7, (1, 16)),
        (16, 24, 2**33, (8, 2)),
        (16, 24, 2**40, (2, 8)),
        (12, 24, 2**40, (1, 12)),
        (4, 24, 2**40, (1, 4)),
    ],
)
def test_threads_make_a_solution_each_unless_that_takes_long(n_jobs, most, work, expected) -> None:
    """Workers, and threads of each: small ones are not worth a worker, large ones have a team."""
    assert share_threads(n_jobs, most, work) == expected
