"""When a search ends: criteria that are pure functions of a snapshot, and how certain it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evomeans.search.certainty import CHEAP, SearchEvidence, certainty, gather, level_of_cheap, work
from evomeans.search.history import SWAPPED, OffspringRecord
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


def test_a_search_ends_where_founders_cannot_differ() -> None:
    """A settled population of copies is no evidence, and a further one would be the same."""
    settings = SearchSettings(strategy=Strategy("deep", agreement=3))
    copies = {**RUNNING, "n_agreeing": 2, "is_exhausted": True}
    assert reason_to_stop(Progress(**copies), settings) is None
    settled = Progress(**{**copies, "is_settled": True})
    assert reason_to_stop(settled, settings) is StopReason.NO_IMPROVEMENT


# ---- certainty -----------------------------------------------------------------------------------


PATIENCE, TOLERANCE = 100, 1e-5


def record(number, inertia, population, *, founder=False, best=None, made_by="") -> OffspringRecord:
    return OffspringRecord(
        number=number,
        inertia=inertia,
        best=inertia if best is None else best,
        alpha=0.5,
        n_iter=3,
        seconds=0.0,
        population_size=2,
        accepted=True,
        clone=False,
        population=population,
        founder=founder,
        made_by=made_by,
    )


def evidence(*records) -> SearchEvidence:
    return gather(records, PATIENCE, TOLERANCE)


def test_populations_that_reach_the_best_are_starts() -> None:
    seen = evidence(
        record(0, 12.0, 1, founder=True),
        record(10, 10.0, 1),
        record(10, 11.0, 2, founder=True),
        record(60, 10.5, 2),
        record(60, 13.0, 3, founder=True),
        record(75, 10.00001, 3, best=10.0),
    )
    assert seen == SearchEvidence(n_starts=2, lateness=0.125, waited=0.65)


def test_founders_that_reach_the_best_by_themselves_are_starts() -> None:
    founders = [record(0, 10.0, 1, founder=True) for _ in range(3)]
    assert evidence(*founders, record(50, 10.0, 1)).n_starts == 3


def test_the_first_solution_after_its_swaps_is_not_another_start() -> None:
    swapped = record(0, 10.0, 1, founder=True, made_by=SWAPPED)
    assert evidence(record(0, 10.0, 1, founder=True), swapped).n_starts == 1


def test_a_better_solution_begins_the_count_anew() -> None:
    agreed = [record(0, 10.0, population, founder=True) for population in (1, 2, 3)]
    assert evidence(*agreed) == SearchEvidence(3, 0.0, 0.0)
    assert evidence(*agreed, record(5, 9.0, 4, founder=True)) == SearchEvidence(1, 0.0, 0.0)


def test_a_population_that_unites_others_finds_nothing_again() -> None:
    first = record(0, 10.0, 1, founder=True)
    second = record(9, 11.0, 2, founder=True, best=10.0)
    assert evidence(first, second, record(20, 10.0, 3)).n_starts == 1
    assert evidence(first, second, record(20, 9.0, 3), record(30, 9.0, 4)).n_starts == 1


COUNTS = st.integers(0, 1000)


TIMES = st.floats(0.0, 1e6)


@given(st.integers(1, 1000), TIMES, TIMES, COUNTS)
def test_evidence_moves_certainty_in_one_direction(starts, lateness, waited, more) -> None:
    before = certainty(SearchEvidence(starts, lateness, waited))
    assert 0.0 < before < 1.0
    assert certainty(SearchEvidence(starts + more, lateness, waited)) >= before
    assert certainty(SearchEvidence(starts, lateness + more, waited)) <= before
    assert certainty(SearchEvidence(starts, lateness, waited + more)) >= before


def test_cheap_searches_are_asked_for_better_odds() -> None:
    assert level_of_cheap(0.95, CHEAP) == level_of_cheap(0.95, 100 * CHEAP) == pytest.approx(0.95)
    assert level_of_cheap(0.95, CHEAP / 10) == pytest.approx(1900 / 1901)
    assert level_of_cheap(0.0, CHEAP / 10) == 0.0
    assert level_of_cheap(1.0, CHEAP / 10) == 1.0


def test_work_grows_with_solutions_and_their_size() -> None:
    assert work(10, 100, 2, 3) < work(11, 100, 2, 3) < work(11, 10**6, 2, 3)
    assert work(10**6, 10**9, 10**4, 10**4) < float("inf")
