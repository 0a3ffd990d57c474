"""Work that threads share: in any number, with the result of one."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from evomeans.engines import workers
from evomeans.engines.workers import extremes, side_by_side


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
