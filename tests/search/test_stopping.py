"""Stopping criteria are pure functions of a snapshot."""

from __future__ import annotations

import json

import pytest

from evomeans.search.settings import MOST_AGREEING, SearchSettings, Strategy
from evomeans.search.stopping import Progress, StopReason, reason_to_stop

SETTINGS = SearchSettings(max_offspring=100, patience=10, max_time=60.0, target_inertia=5.0)
RUNNING = {"offspring": 50, "is_settled": False, "n_agreeing": 1, "seconds": 30.0, "best": 7.0}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, None),
        ({"offspring": 99}, None),
        ({"offspring": 100}, StopReason.MAX_OFFSPRING),
        ({"is_settled": True}, StopReason.NO_IMPROVEMENT),
        ({"seconds": 59.9}, None),
        ({"seconds": 60.0}, StopReason.MAX_TIME),
        ({"best": 5.1}, None),
        ({"best": 5.0}, StopReason.TARGET_INERTIA),
        ({"best": 0.0}, StopReason.PROVEN_OPTIMAL),
    ],
)
def test_each_criterion_holds_from_its_limit_on(change, reason) -> None:
    assert reason_to_stop(Progress(**{**RUNNING, **change}), SETTINGS) is reason


def test_without_target_and_time_only_offspring_count() -> None:
    late = Progress(4999, False, [0], seconds=1e9, best=1e-300)
    assert reason_to_stop(late, SearchSettings()) is None


def test_what_was_achieved_is_named_before_what_ran_out() -> None:
    over = Progress(100, True, [0], seconds=60.0, best=4.0)
    assert reason_to_stop(over, SETTINGS) is StopReason.TARGET_INERTIA


@pytest.mark.parametrize(
    ("n_agreeing", "certainty", "is_enough"),
    [
        (2, 0.89, False),
        (2, 0.9, True),
        (1, 0.99, False),
        (MOST_AGREEING, 0.5, True),
        (MOST_AGREEING - 1, 0.5, False),
    ],
)
def test_agreement_is_enough_from_a_level_of_certainty_on(n_agreeing, certainty, is_enough) -> None:
    settings = SearchSettings(certainty=0.9, strategy=Strategy("several", agreement=2))
    seen = {**RUNNING, "n_agreeing": n_agreeing, "certainty": certainty}
    reason = reason_to_stop(Progress(**seen), settings)
    assert reason is (StopReason.AGREEMENT if is_enough else None)


@pytest.mark.parametrize(
    ("agreement", "n_agreeing", "is_enough"),
    [(2, 1, False), (2, 2, True), (3, 2, False), (3, 3, True), (3, 4, True)],
)
@pytest.mark.parametrize("is_settled", [False, True])
def test_independent_populations_agree(agreement, n_agreeing, is_enough, is_settled) -> None:
    settings = SearchSettings(strategy=Strategy("agreeing", agreement=agreement))
    progress = Progress(**{**RUNNING, "n_agreeing": n_agreeing, "is_settled": is_settled})
    assert reason_to_stop(progress, settings) is (StopReason.AGREEMENT if is_enough else None)


def test_a_reason_is_its_text() -> None:
    assert StopReason.MAX_TIME == "max_time"
    assert f"{StopReason.NO_IMPROVEMENT}" == "no_improvement"
    assert json.dumps(StopReason.OBSERVER) == '"observer"'


def test_a_search_ends_where_founders_cannot_differ() -> None:
    """A settled population of copies is no evidence, and a further one would be the same."""
    settings = SearchSettings(strategy=Strategy("deep", agreement=3))
    copies = {**RUNNING, "n_agreeing": 2, "is_exhausted": True}
    assert reason_to_stop(Progress(**copies), settings) is None
    settled = Progress(**{**copies, "is_settled": True})
    assert reason_to_stop(settled, settings) is StopReason.NO_IMPROVEMENT
