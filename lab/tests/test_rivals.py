"""The comparison at equal CPU time: races, ranks, and a small run of it all."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from sklearn.base import clone

from lab import baselines
from lab.baselines import (
    SAGA,
    BigMeans,
    DRSMeans,
    FLSpp,
    GlobalKMeans,
    GlobalKMeansPP,
    MDEClust,
    RecombinatorKMeans,
    Smartigan,
)
from lab.best_known import best_known
from lab.data import load
from lab.measure import read_rows
from lab.rivals import command
from lab.rivals import race as racing
from lab.rivals.clock import Clock, OutOfTimeError, cpu_limit
from lab.rivals.contestants import Contestant, contestants, fit_run, package_run
from lab.rivals.page import summary
from lab.rivals.race import race
from lab.rivals.ranks import Ranking, ranked

NEWER = {
    "MDEClust": MDEClust(population_size=40, n_iter_no_change=100),
    "recombinator": RecombinatorKMeans(),
    "FLS++": FLSpp(n_swaps=60),
    "DRS-means": DRSMeans(n_swaps=200),
    "Smartigan": Smartigan(),
    "Big-means": BigMeans(n_chunks=100),
    "elitist SAGA": SAGA(population_size=20, n_generations=15, reading="elitist"),
}


SLOW = ("MDEClust", "elitist SAGA")


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=[pytest.mark.slow] * (one in SLOW)) for one in NEWER]
)
def test_the_optima_of_iris_and_german_towns(name) -> None:
    """Within 1 %, for the best of six seeds."""
    for dataset, k in [("iris", 3), *(("german_towns", k) for k in range(2, 11))]:
        X, target = load(dataset), 1.01 * best_known(dataset, k).value
        for seed in range(6):
            model = clone(NEWER[name]).set_params(n_clusters=k, random_state=seed)
            if model.fit(X).inertia_ <= target:
                break
        else:
            pytest.fail(f"{dataset} with {k} clusters")


def test_global_kmeans_pp_is_as_good_as_global_kmeans() -> None:
    """Within 1 % on all of German Towns; adding one centre at a time cannot promise more."""
    X = load("german_towns")
    full = GlobalKMeans(10, algorithm="full").fit(X)
    model = GlobalKMeansPP(10, random_state=0).fit(X)
    assert (model.inertias_ <= 1.01 * full.inertias_).all()
    iris = GlobalKMeansPP(3, random_state=0).fit(load("iris"))
    assert iris.inertia_ <= 1.01 * best_known("iris", 3).value


# ---- races -----------------------------------------------------------------------------------


class FakeClock(Clock):
    """A clock that stands still, but for what a run says."""

    now = 0.0

    @property
    def seconds(self) -> float:
        """What a run has said."""
        return FakeClock.now


def scripted(runs: list[list[tuple[float, float]]], **options) -> Contestant:
    """Return a method whose runs take and find what is written down."""
    left = iter(runs)

    def run(X, m, seed, clock) -> Iterator[tuple[float, float]]:
        for seconds, inertia in next(left):
            FakeClock.now += seconds
            yield FakeClock.now, inertia

    return Contestant("scripted", run, **options)


def test_a_method_is_restarted_until_its_time_is_used_up() -> None:
    FakeClock.now = 0.0
    method = scripted([[(1, 9.0), (1, 7.0)], [(1, 8.0)], [(1, 6.0), (3, 5.0)], [(1, 1.0)]])
    own = race(method, np.zeros((2, 1)), 1, 0, FakeClock(6.0), 100.0)
    assert own.points == ((1, 9.0), (2, 7.0), (4, 6.0), (7, 5.0))
    assert (own.runs, own.seconds) == (3, 7.0)
    assert [own.best_after(seconds) for seconds in (1.5, 3.0, 6.0, 7.0)] == [9.0, 7.0, 6.0, 5.0]
    assert math.isnan(own.best_after(0.5))


def test_a_method_that_is_not_random_runs_once() -> None:
    FakeClock.now = 0.0
    method = scripted([[(1, 9.0)], [(1, 8.0)]], is_random=False)
    assert race(method, np.zeros((2, 1)), 1, 0, FakeClock(6.0), 100.0).runs == 1


class Slow:
    """Takes 0.05 CPU seconds to its only solution."""

    inertia_ = 7.0

    def get_params(self) -> dict[str, object]:
        return {}

    def fit(self, X: object) -> Slow:
        clock = Clock(math.inf)
        while clock.seconds < 0.05:
            pass
        return self


def test_a_solution_counts_from_the_end_of_its_fit() -> None:
    X = np.zeros((3, 2))
    for run in (
        fit_run(lambda m: Slow(), X, 2, 0, Clock(1.0)),
        package_run(lambda X, m, seed: Slow().fit(X), X, 2, 0, Clock(1.0)),
    ):
        [(seconds, inertia)] = run
        assert seconds >= 0.05
        assert inertia == 7.0


def test_every_run_has_a_seed_of_its_own() -> None:
    seeds = []

    def run(X, m, seed, clock) -> Iterator[tuple[float, float]]:
        seeds.append(seed)
        FakeClock.now += 1.0
        yield FakeClock.now, 1.0

    for seed in (0, 1):
        FakeClock.now = 0.0
        race(Contestant("watched", run), np.zeros((2, 1)), 1, seed, FakeClock(3.0), 100.0)
    assert len(set(seeds)) == 6


def test_a_run_without_end_is_abandoned(capsys) -> None:
    """What it has shown counts."""

    def run(X, m, seed, clock) -> Iterator[tuple[float, float]]:
        yield clock.seconds, 4.0
        while True:
            pass

    own = race(Contestant("endless", run), np.zeros((2, 1)), 1, 0, Clock(0.01), 0.1)
    assert own.points[0][1] == 4.0
    assert "endless, m = 1, n = 2: it took more than 0.1 CPU seconds" in capsys.readouterr().out


def endless() -> None:
    while True:
        pass


def test_the_limit_ends_with_its_block() -> None:
    with cpu_limit(0.05):
        pass
    sum(range(3_000_000))
    with pytest.raises(OutOfTimeError), cpu_limit(0.02):
        endless()


def test_all_baselines_race() -> None:
    """Each under one name, K-means with two starts."""
    own = [name for name in contestants() if not name.endswith("(package)")]
    assert len(own) == 3 + len(baselines.__all__) + 1
    assert not contestants()["MGKM"].is_random
    assert contestants()["global k-means++"].is_random


@pytest.mark.parametrize("name", contestants())
def test_every_method_finds_something(name) -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    own = race(contestants()[name], X, 4, 0, Clock(0.01), 30.0)
    assert own.points
    assert all(
        later[1] < earlier[1] for earlier, later in zip(own.points, own.points[1:], strict=False)
    )


# ---- ranks -----------------------------------------------------------------------------------


def test_the_critical_difference_is_that_of_the_literature() -> None:
    """Demšar (2006): 1.25 for 4 methods on 14 data sets; and Friedman's statistic is SciPy's."""
    values = np.random.default_rng(0).normal(size=(14, 4)) + np.array([0.0, 0.2, 0.9, 1.5])
    found = ranked(values)
    assert found.critical_difference == pytest.approx(1.25, abs=0.005)
    chi_squared = stats.friedmanchisquare(*values.T).statistic
    expected = stats.f.sf(13 * chi_squared / (14 * 3 - chi_squared), 3, 39)
    assert found.p_value == pytest.approx(expected)


def test_ties_share_their_ranks_and_infinite_values_come_last() -> None:
    found = ranked(np.array([[1.0, 1.0, math.inf], [2.0, 5.0, math.inf]]))
    assert_allclose(found.ranks, [1.25, 1.75, 3.0])


def test_groups_are_the_largest_that_are_not_told_apart() -> None:
    ranking = Ranking(np.array([4.0, 1.0, 2.5, 1.2, 9.0]), 2.0, 0.0, 10)
    assert ranking.groups() == [(1.0, 2.5), (2.5, 4.0)]


@pytest.mark.parametrize("shape", [(1, 3), (3, 1)])
def test_ranks_need_two_of_both(shape) -> None:
    with pytest.raises(ValueError, match="two problems and two methods at least"):
        ranked(np.zeros(shape))


# ---- all of it -------------------------------------------------------------------------------


@pytest.fixture
def few(monkeypatch):
    """Two methods, and no proposals of best values."""
    chosen = {name: contestants()[name] for name in ("K-means++", "MGKM")}
    monkeypatch.setattr(command, "contestants", lambda: chosen)
    monkeypatch.setattr(command, "propose_values", lambda rows: 0)
    monkeypatch.setattr(racing, "contestants", contestants)
    return chosen


def test_the_command_measures_resumes_and_writes_a_page(few, tmp_path, capsys) -> None:
    pytest.importorskip("matplotlib")
    options = ["german_towns:3", "iris:4", "--workers", "1", "--results", str(tmp_path)]
    command.main([*options, "--seconds", "0.05", "--seeds", "2"])
    rows = read_rows(tmp_path / "rivals.csv")
    # The method that is not random has one seed.
    assert len(rows) == 2 * (2 + 1)
    assert {row["budget_s"] for row in rows} == {0.05}
    command.main([*options, "--seconds", "0.05", "--seeds", "2"])
    assert "6 of 6 tasks are in rivals.csv already" in capsys.readouterr().out
    page = (tmp_path / "rivals.md").read_text()
    assert "| K-means++ |" in page
    assert "german_towns:3" in page
    for picture in ("rivals-anytime.png", "rivals-ranks.png"):
        assert f"({picture})" in page
        assert (tmp_path / picture).stat().st_size > 5000
    found = {one["method"]: one for one in summary(rows)}
    assert found["K-means++"]["success"] == 1.0
    assert found["K-means++"]["late"] == 0.0


def test_budgets_are_measured_once(few, tmp_path, monkeypatch) -> None:
    asked = []
    monkeypatch.setattr(
        racing.BudgetTask,
        "run",
        lambda task: [
            {
                "setup": task.setup,
                "seed": task.seed,
                "inertia": 1.0,
                "cpu_s": asked.append(task) or 2.0,
            }
        ],
    )
    path = tmp_path / "budgets.csv"
    assert command.budgets(["iris:3"], range(2), path, 1) == {"iris:3": 2.0}
    assert command.budgets(["iris:3"], range(5), path, 1) == {"iris:3": 2.0}
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--seeds", "0"], "--seeds must be at least 1"),
        (["--seconds", "0"], "--seconds 0.0 must be positive"),
        (["--patience", "0.5"], "--patience 0.5 must be at least 1"),
        (["--methods", "magic"], "--methods: 'magic' is none of HG-means, "),
    ],
)
def test_wrong_options_are_named(options, text, capsys) -> None:
    with pytest.raises(SystemExit):
        command.parse(options)
    assert text in capsys.readouterr().err
