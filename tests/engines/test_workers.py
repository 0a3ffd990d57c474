"""Workers do jobs in any order, and hand back the results in the one that is wanted."""

from __future__ import annotations

import threading
import time

import pytest

from evomeans.engines.workers import Workers
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
