"""Observers see every solution, and may end the search."""

from __future__ import annotations

from itertools import repeat

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scripted_search import FOUNDERS, restarting, run, small

from evomeans.search import StopReason
from evomeans.search.history import SearchObserver


class Diary(SearchObserver):
    """Writes down what it is told."""

    def __init__(self):
        self.told = []

    def on_start(self, state):
        self.told.append(("start", len(state.history)))

    def on_solution(self, record):
        self.told.append(("solution", record.inertia))

    def on_best(self, record):
        self.told.append(("best", record.best))

    def on_settled(self, population):
        self.told.append(("settled", population.number, len(population)))

    def on_end(self):
        self.told.append(("end",))


def test_an_observer_is_told_what_its_verbs_say() -> None:
    diary = Diary()
    script = [9.0, 8.0, 8.5, 8.6, *[30.0] * 3, 7.0]
    run(script, restarting(max_offspring=4, target_inertia=7.0), observers=[diary])
    assert diary.told[:5] == [
        ("start", 0),
        ("solution", 9.0),
        ("best", 9.0),
        ("solution", 8.0),
        ("best", 8.0),
    ]
    assert diary.told[-4:] == [("settled", 1, 4), ("solution", 7.0), ("best", 7.0), ("end",)]


def test_verbs_that_an_observer_lacks_are_not_missed() -> None:
    """A function is told of solutions, and a plain object of what it has."""

    class Ending:
        ended = 0

        def __call__(self, record):
            return None

        def on_end(self):
            self.ended += 1

    ending = Ending()
    run(repeat(1.0), small(max_offspring=1), observers=[ending, lambda record: None])
    assert ending.ended == 1


def test_an_observer_can_tidy_up_after_an_error() -> None:
    diary = Diary()
    with pytest.raises(AssertionError, match="not in the script"):
        run([1.0], small(), observers=[diary])
    assert diary.told[-1] == ("end",)


def test_an_observer_sees_the_state_after_every_round_and_at_the_end() -> None:
    """The last round is told once, and not at all if an error has ended the search."""

    class Keeper(SearchObserver):
        def __init__(self):
            self.rounds = []

        def on_round(self, state, is_last):
            self.rounds.append((len(state.history), is_last))

    keeper = Keeper()
    script = [*FOUNDERS, 1.0, 2.0, 3.0, 4.0]
    run(script, small(max_offspring=4), batch=4, observers=[keeper])
    assert keeper.rounds == [(4, False), (8, False), (8, True)]
    failing = Keeper()
    with pytest.raises(AssertionError, match="not in the script"):
        run([1.0], small(), observers=[failing])
    assert failing.rounds == [(1, False)]


def test_an_observer_sees_every_record_and_stops_with_true() -> None:
    seen = []

    def stop_at_third(record):
        seen.append(record)
        return record.number == 3

    _, result = run(repeat(1.0), observers=[stop_at_third])
    assert result.stop_reason is StopReason.OBSERVER
    assert result.n_offspring == 3
    assert seen == list(result.history)


def test_an_observer_can_stop_in_the_initial_population() -> None:
    _, result = run(repeat(1.0), observers=[lambda record: True])
    assert result.stop_reason is StopReason.OBSERVER
    assert result.n_offspring == 0
    assert len(result.population) == 1


@pytest.mark.parametrize("answer", [None, False, np.False_, 1, "stop", [True]])
def test_only_true_stops(answer) -> None:
    """A value that an observer returns by accident, such as a length, does not end the search."""
    _, result = run(repeat(1.0), small(max_offspring=3), observers=[lambda record: answer])
    assert result.stop_reason is StopReason.MAX_OFFSPRING


def test_the_true_of_numpy_stops_too() -> None:
    """Comparing the NumPy scalars of an own computation gives one."""
    _, result = run(repeat(1.0), observers=[lambda record: np.float64(record.inertia) < 2.0])
    assert result.stop_reason is StopReason.OBSERVER


def test_observers_see_the_centres_in_data_units_and_the_history_does_not_keep_them() -> None:
    seen = []
    engine, result = run([*FOUNDERS, 5.0], small(max_offspring=1), observers=[seen.append])
    for record, answer in zip(seen, engine.answers, strict=True):
        assert_array_equal(record.centers, engine.frame.decode(answer.centers))
    assert all(record.centers is None for record in result.history)


def test_all_observers_see_the_record_at_which_one_of_them_stops() -> None:
    seen = []
    observers = [lambda record: True, seen.append]
    run(repeat(1.0), observers=observers)
    assert len(seen) == 1


def test_an_error_in_an_observer_is_not_swallowed() -> None:
    def broken(record):
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        run(repeat(1.0), observers=[broken])
