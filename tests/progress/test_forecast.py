"""The time left is an upper bound from the pace of this process, or from the limit."""

from __future__ import annotations

import pytest

from evomeans.progress.verbose import Forecast
from evomeans.search import OffspringRecord, SearchSettings


def record(number: int, seconds: float) -> OffspringRecord:
    return OffspringRecord(number, 2.0, 1.0, 0.5, 3, seconds, 10, True, False)


def test_nothing_is_known_before_two_offspring() -> None:
    forecast = Forecast(100, 50)
    for one in (record(0, 0.1), record(0, 0.2), record(1, 0.3)):
        forecast.add(one)
        assert forecast.seconds_left(one.seconds) is None


def test_the_pace_is_that_of_this_process() -> None:
    """A search that continues at offspring 40 is not as fast as if it had begun there."""
    forecast = Forecast(100, 50)
    for one in (record(41, 400.0), record(43, 404.0)):
        forecast.add(one)
    assert forecast.seconds_left(404.0) == pytest.approx(57 * 2.0)


def test_the_nearer_limit_counts() -> None:
    forecast = Forecast(100, 50, max_time=10.0)
    assert forecast.seconds_left(4.0) == 6.0
    assert forecast.seconds_left(12.0) == 0.0
    for one in (record(1, 1.0), record(99, 2.0)):
        forecast.add(one)
    assert forecast.seconds_left(2.0) == pytest.approx(1 / 98)


def test_limits_come_from_the_settings() -> None:
    forecast = Forecast.of(SearchSettings(max_offspring=70, patience=9, max_time=3.0), 4)
    assert (forecast.max_offspring, forecast.longest_wait, forecast.max_time) == (70, 9, 3.0)
