"""The split is fixed, traces are searches, and the report counts what they say."""

from __future__ import annotations

import math

import pytest

from evomeans import HGMeans, HGMeansPath
from evomeans.search.certainty import path_features
from lab.certainty import command
from lab.certainty.fitting import CAUTION, fit
from lab.certainty.paths import PathEnd, fit_paths, follow, read_paths, said_by
from lab.certainty.problems import (
    DEVELOPMENT,
    HALVES,
    IN_PART,
    WHOLE,
    Problem,
    problems_of,
)
from lab.certainty.report import binned, brier, cost_ratio, ended
from lab.certainty.traces import Moment, read_searches, trace, write_moments
from lab.data import is_available
from lab.measure import append_row

IRIS = Problem("iris", 10, DEVELOPMENT)
# Another split would make a report of what was tuned on.
IRIS_NUMBERS = [[21, 5, 18, 16], [19, 30, 15, 2]]


def moment(problem="a:5", seed=0, starts=1, inertia=1.0, cpu=1.0, waited=1.0, **changed) -> Moment:
    values = {"offspring": 50, "work": 1e12, "has_ended": True, "lateness": 0.5, **changed}
    return Moment(
        problem, "default", seed, cpu, inertia=inertia, n_starts=starts, waited=waited, **values
    )


@pytest.mark.skipif(not all(map(is_available, (*WHOLE, *IN_PART))), reason="data sets are missing")
def test_the_halves_share_no_problem_and_have_as_many() -> None:
    development, report = map(problems_of, HALVES)
    assert len(development) == len(report) == 136
    assert not {one.name for one in development} & {one.name for one in report}
    numbers = [[one.k for one in half if one.dataset == "iris"] for half in (development, report)]
    assert numbers == IRIS_NUMBERS


def test_a_trace_is_the_search_that_continues(tmp_path) -> None:
    """The search ends where its trace says, with the same inertia after as many offspring."""
    traced = trace(IRIS, 0)
    (end,) = ended([traced], {IRIS.name: 1.0}, lambda one: command.certainty(one.evidence), 0.95)
    model = HGMeans(IRIS.k, random_state=0, n_jobs=1).fit(IRIS.samples())
    assert end.moment.inertia == pytest.approx(model.inertia_, rel=1e-12)
    assert end.moment.offspring == model.n_iter_
    assert end.certainty == pytest.approx(model.certainty_)
    path = tmp_path / "rows.csv"
    write_moments(path, traced)
    (read,) = read_searches(path)
    assert [one.evidence.n_starts for one in read] == [one.evidence.n_starts for one in traced]


def test_the_fit_follows_the_share_of_successes_and_is_cautious() -> None:
    wrong, right = moment(inertia=2.0), moment()
    searches = [[wrong if seed % 4 == 0 else right] for seed in range(40)]
    fitted = fit([[one[0]] for one in searches], {"a:5": 1.0})
    odds = fitted.certainty(right) / (1.0 - fitted.certainty(right))
    assert 0.5 < fitted.certainty(right) < 0.75
    assert odds < 3.0
    assert CAUTION > 0.0


def test_searches_end_at_the_level_and_are_compared_with_three_starts() -> None:
    search = [moment(starts=n, cpu=n, inertia=1.0 if n > 2 else 2.0) for n in (1, 2, 3, 4)]
    levels = {1: 0.99, 2: 0.9, 3: 0.94, 4: 0.97}
    best = {"a:5": 1.0}
    (end,) = ended([search], best, lambda one: levels[one.n_starts], 0.95)
    assert (end.moment.n_starts, end.certainty, end.is_right) == (4, 0.97, True)
    assert (end.before.n_starts, end.was_right) == (3, True)
    assert cost_ratio([[end]]) == pytest.approx(4 / 3)
    (early,) = ended([search], best, lambda one: levels[one.n_starts], 0.9)
    assert (early.moment.n_starts, early.is_right) == (2, False)
    (said,) = binned([early])
    assert (said.runs, said.said, said.right) == (1, 0.9, 0.0)
    assert brier([early, end]) == pytest.approx(((0.81 + 0.0009) / 2, 0.25))


def test_the_stored_coefficients_are_those_of_the_fit(capsys) -> None:
    command.main(["fit"])
    printed = capsys.readouterr().out
    from evomeans.search import certainty

    assert f"INTERCEPT = {certainty.INTERCEPT:.3f}" in printed
    listed = ", ".join(f"{one:.3f}" for one in certainty.COEFFICIENTS)
    assert f"COEFFICIENTS = ({listed})" in printed


def test_a_path_says_of_each_problem_what_it_says_to_its_user(tmp_path) -> None:
    """The rows of a path have what its certainty is computed from, and come back as they were."""
    problems = [Problem("iris", k, DEVELOPMENT) for k in (5, 9)]
    ends = follow(problems, 0)
    path = HGMeansPath((2, 9), criteria=(), select=None, random_state=0).fit(IRIS.samples())
    best = {end.problem: end.inertia for end in ends}
    assert [said.certainty for said in said_by(ends, best)] == list(path.certainty_[[3, 7]])
    assert all(said.is_right for said in said_by(ends, best))
    file = tmp_path / "rows.csv"
    for end in ends:
        append_row(file, vars(end))
    assert read_paths(file) == ends


def test_the_fit_of_paths_follows_the_share_of_successes() -> None:
    """Of those that agree, three of four are right here; of the others, half."""
    ends = [
        PathEnd(DEVELOPMENT, f"{seed}:10", seed, 10, agree, 2.0 if seed % 4 < wrong else 1.0)
        for agree, wrong in ((1, 2), (2, 1))
        for seed in range(400)
    ]
    fitted = fit_paths(ends, {end.problem: 1.0 for end in ends})
    shares = [
        1.0 / (1.0 + math.exp(-fitted.intercept - dot))
        for dot in (
            sum(a * b for a, b in zip(fitted.coefficients, path_features(10, n), strict=True))
            for n in (1, 2)
        )
    ]
    assert shares == pytest.approx([0.5, 0.75], abs=0.01)
