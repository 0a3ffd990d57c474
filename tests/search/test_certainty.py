"""Certainty counts what a search has seen, and more evidence never makes it less certain."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evomeans.search.certainty import CHEAP, SearchEvidence, certainty, gather, level_of_cheap, work
from evomeans.search.history import SWAPPED, OffspringRecord

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
