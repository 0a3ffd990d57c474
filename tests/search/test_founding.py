"""The solutions with which a population begins."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from scripted_search import ALL, FOUNDER_UNIFORMS, FOUNDERS, inertias, restarting, run, small

from evomeans.engines.cpu import CpuEngine
from evomeans.engines.reference import ReferenceEngine
from evomeans.search import Strategy
from evomeans.search.founding import (
    KMeansPlusPlus,
    ProjectedStart,
    QuickSeeding,
    QuickStart,
    RandomSamples,
    quick_start,
)


def test_the_initial_population_has_max_population_members_from_distinct_random_samples() -> None:
    """Π_max K-means runs from k different samples, α uniform, nothing relocated, no parent."""
    engine, result = run([*FOUNDERS, 5.0], small(max_offspring=1), k=3, n_samples=7)
    founders = engine.starts[:4]
    for start, (alpha, quantile) in zip(founders, FOUNDER_UNIFORMS, strict=True):
        assert (start.alpha, start.quantile) == (alpha, quantile)
        assert (start.removed, start.parent, start.power) == (-1, None, 2)
        slots = start.centers[:, 0] * 7 - 0.5
        np.testing.assert_allclose(slots, np.round(slots), atol=1e-12)
        assert len(set(np.round(slots))) == 3
        assert set(np.round(slots)) <= set(range(7))
    assert len({start.centers.tobytes() for start in founders}) > 1
    assert [record.number for record in result.history] == [0, 0, 0, 0, 1]
    assert [record.population_size for record in result.history][:4] == [1, 2, 3, 4]


def test_founders_can_use_every_sample_when_k_is_n() -> None:
    engine, _ = run([*FOUNDERS, 5.0], small(max_offspring=1), k=5, n_samples=5)
    for start in engine.starts[:4]:
        assert_array_equal(np.sort(start.centers[:, 0]), (np.arange(5) + 0.5) / 5)


def test_given_solutions_come_first_and_random_ones_fill_up() -> None:
    given = [np.array([[1.0], [2.0]]), np.array([[3.0], [4.0]])]
    engine, result = run([*FOUNDERS, 5.0], small(max_offspring=1), initial=given)
    assert len(given) == 2
    assert_array_equal(engine.starts[0].centers, given[0])
    assert_array_equal(engine.starts[1].centers, given[1])
    assert len(engine.sampled) == 2
    assert [start.removed for start in engine.starts[:4]] == [-1] * 4
    assert [record.number for record in result.history] == [0, 0, 0, 0, 1]
    made_by = ["given", "given", "random samples", "random samples", "matching"]
    assert [record.made_by for record in result.history] == made_by
    assert [record.founder for record in result.history] == [True] * 4 + [False]


def test_more_given_solutions_than_places_are_all_tried_then_survivors_are_selected() -> None:
    """Six solutions for four places: all refined, the best two go on."""
    given = [np.full((2, 1), float(i)) for i in range(6)]
    engine, result = run([6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.5], small(max_offspring=1), initial=given)
    for i in range(6):
        assert_array_equal(engine.starts[i].centers, given[i])
    assert engine.sampled == []
    assert [record.number for record in result.history] == [0] * 6 + [1]
    assert [record.population_size for record in result.history] == [1, 2, 3, 4, 5, 2, 3]
    assert inertias(result) == [0.5, 1.0, 2.0]


def test_given_solutions_join_the_first_population_only() -> None:
    given = [np.array([[0.1], [0.9]])]
    engine, _ = run([*FOUNDERS, *[50.0] * 9], restarting(max_offspring=5), initial=given)
    assert_array_equal(engine.starts[0].centers, given[0])
    assert not any((start.centers == given[0]).all() for start in engine.starts[7:11])


def test_the_second_solution_is_the_first_one_with_many_swaps() -> None:
    """It is an answer, but neither in the population nor an independent start."""
    strategy = Strategy("first", first_swaps=3.0, agreement=2, tolerance=1e-5)
    settings = restarting(strategy=strategy, max_offspring=3)
    script = [20.0, 10.0, *[30.0] * 20]
    engine, result = run(script, settings, rng=np.random.default_rng(0))
    first, second, third = engine.starts[:3]
    assert (first.local_search.swaps, second.local_search.swaps) == (0, 6)
    assert third.local_search.swaps == 0
    names = [record.made_by for record in result.history]
    assert names[:3] == ["random samples", "swaps of the first", "random samples"]
    assert names.count("swaps of the first") == 1
    assert [record.founder for record in result.history][:6] == [True] * 5 + [False]
    assert [record.accepted for record in result.history][:3] == [True, False, True]
    assert [record.best for record in result.history][:3] == [20.0, 10.0, 10.0]
    assert result.history[1].population_size == 1
    assert (result.best.inertia, result.n_rediscoveries) == (10.0, 0)


def test_where_large_clusters_are_noisy_the_first_with_swaps_is_a_founder(monkeypatch) -> None:
    monkeypatch.setattr("evomeans.search.plan.LONG_FOUNDER", 1)
    strategy = Strategy("noisy", noisy_up_to=1e12, noisy_founders=3, noisy_swaps=2.0)
    settings = small(strategy=strategy, max_offspring=2)
    engine, result = run([20.0, 10.0, *[30.0] * 20], settings, rng=np.random.default_rng(0))
    names = [record.made_by for record in result.history]
    assert names[:3] == ["random samples", "swaps of the first", "random samples"]
    assert [record.founder for record in result.history] == [True] * 3 + [False] * 2
    assert [record.accepted for record in result.history][:3] == [True] * 3
    assert [one.local_search.swaps for one in engine.starts[:3]] == [0, 4, 4]


def test_given_solutions_come_before_swaps_of_the_first() -> None:
    given = [np.array([[0.1], [0.9]])] * 4
    settings = small(strategy=Strategy("first", first_swaps=3.0), max_offspring=1)
    _, result = run(map(float, range(10, 30)), settings, initial=given)
    assert [record.made_by for record in result.history][:4] == ["given"] * 4


@pytest.mark.parametrize(("batch", "founders"), [(1, 2), (4, 4)])
def test_noisy_clusters_have_few_founders_and_a_short_patience(batch, founders) -> None:
    """In every population; but all of them where an engine refines many together."""
    strategy = Strategy(
        "noisy", noisy_up_to=1e12, noisy_founders=2, noisy_patience=0.5, patience=8, agreement=2
    )
    settings = small(strategy=strategy, max_offspring=6)
    rng = np.random.default_rng(0)
    _, result = run(map(float, range(10, 60)), settings, rng=rng, batch=batch)
    for population in (1, 2):
        made = [record for record in result.history if record.population == population]
        assert [record.founder for record in made].count(True) == founders
    made = [record for record in result.history if record.population == 1 and not record.founder]
    assert len(made) == 4


@pytest.mark.parametrize(("agreeing", "waits"), [(1, 6), (2, 3), (3, 2)])
def test_noisy_founders_that_agree_share_the_patience(agreeing, waits) -> None:
    strategy = Strategy(
        "noisy", noisy_up_to=1e12, noisy_founders=4, noisy_patience=0.5, patience=12, agreement=9
    )
    settings = small(strategy=strategy, max_offspring=20)
    script = [10.0] * agreeing + [float(11 + i) for i in range(60)]
    _, result = run(script, settings, rng=np.random.default_rng(0))
    made = [record for record in result.history if record.population == 1 and not record.founder]
    assert len(made) == waits


@pytest.mark.parametrize("batch", [1, 3])
def test_every_other_founder_is_seeded(batch) -> None:
    """In all populations, beginning with the first; given solutions take the first places."""
    strategy = Strategy("seeds", founding=(KMeansPlusPlus(), RandomSamples()), agreement=2)
    given = [np.array([[0.1], [0.9]])]
    settings = restarting(max_offspring=5, strategy=strategy)
    falling = (1.0 / number for number in range(2, 99))
    script, rng = chain(range(1, 8), falling), np.random.default_rng(0)
    engine, _ = run(script, settings, initial=given, abilities=ALL, batch=batch, rng=rng)
    assert_array_equal(engine.starts[0].centers, given[0])
    again = 4 + 3
    founders = engine.starts[1:4] + engine.starts[again : again + 4]
    seeded = [bool((start.centers < 0.0).all()) for start in founders]
    assert seeded == [False, True, False, True, False, True, False]


CLOUDS = np.random.default_rng(0).normal(size=(4000, 30)) + 40.0 * np.eye(30)[np.arange(4000) % 8]


@pytest.mark.parametrize("make", [CpuEngine, ReferenceEngine])
@pytest.mark.parametrize("weight", [None, 2.0])
def test_a_quick_start_is_close_to_the_means_of_clusters(make, weight) -> None:
    """k-means++ on 200 of 4000 samples finds all clouds; samples would be twice as far away."""
    engine = make(CLOUDS, None if weight is None else np.full(len(CLOUDS), weight))
    founding = QuickStart(200, seeded=True)
    numbers = founding.draw(engine.n_samples, 8, np.random.default_rng(3))
    (centers,) = founding.place(engine, [numbers])
    on_samples = RandomSamples().place(engine, [numbers[:, 0]])[0]
    assert engine.assign(centers)[1] < 1.1 * engine.total_weight * 30
    assert engine.assign(on_samples)[1] > 1.5 * engine.total_weight * 30


@pytest.mark.parametrize(("size", "seeded"), [(0, False), (400, False), (400, True)])
def test_a_quick_start_of_an_abandoned_engine_has_real_centers(size, seeded) -> None:
    engine, founding = CpuEngine(CLOUDS), QuickStart(size, seeded)
    numbers = founding.draw(engine.n_samples, 100, np.random.default_rng(0))
    engine.abandon(True)
    (centers,) = founding.place(engine, [numbers])
    engine.abandon(False)
    sizes = engine.cluster_sizes(centers)
    assert centers.shape == (100, 30)
    assert np.count_nonzero(sizes) > 50


@pytest.mark.parametrize(
    ("k", "looks", "expected"),
    [
        (10, 0.0, QuickStart(40, seeded=False)),
        (10, 0.05, QuickStart(50, seeded=False)),
        (10, 0.15, QuickStart(85, seeded=True)),
        (10, 0.5, QuickStart(263, seeded=True, greedy=True)),
        (10, 9.0, QuickStart(400, seeded=True, greedy=True)),
        (200, 9.0, QuickStart(2000, seeded=True, greedy=True)),
        (1000, 1.0, QuickStart(0, seeded=False)),
    ],
)
def test_the_more_time_a_quick_start_has_the_more_samples_it_gets(k, looks, expected) -> None:
    """Up to half of all; none, and centres on random samples, if they would be most of all."""
    assert quick_start(CpuEngine(CLOUDS), k, looks) == expected


WIDE = np.random.default_rng(1).normal(size=(3000, 160)) + 20.0 * np.eye(160)[np.arange(3000) % 12]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_a_start_in_leading_directions_has_means_of_clusters_in_all_features(
    dtype, is_weighted, monkeypatch
) -> None:
    """Whatever the threads; and they are far better than the samples that it began with."""
    monkeypatch.setattr("evomeans.engines.cpu.steps.MOST_COMPARISONS", 0)
    founding, X = ProjectedStart(), WIDE.astype(dtype)
    weights = np.random.default_rng(2).uniform(0.5, 2.0, len(X)) if is_weighted else None
    numbers = founding.draw(len(X), 12, np.random.default_rng(4))
    placed, seen = [], []
    for n_jobs in (1, 2):
        engine = CpuEngine(X, weights, n_jobs=n_jobs)
        average = engine.means
        engine.means = lambda *given, average=average: seen.append(given[0]) or average(*given)
        placed.append(founding.place(engine, [numbers])[0])
    assert_array_equal(*placed)
    assert_array_equal(*seen)
    own = np.ones(len(X)) if weights is None else weights
    members = [np.flatnonzero(seen[0] == j) for j in range(12)]
    expected = [np.average(WIDE[some], axis=0, weights=own[some]) for some in members]
    assert_allclose(engine.frame.decode(placed[0]), expected, atol=1e-5)
    on_samples = RandomSamples().place(engine, [numbers])[0]
    assert engine.assign(placed[0])[1] < 0.6 * engine.assign(on_samples)[1]


def test_a_start_in_leading_directions_keeps_samples_for_clusters_without_members() -> None:
    """There are fewer different samples than centres."""
    X = np.repeat(np.random.default_rng(0).normal(size=(5, 130)), 20, axis=0)
    engine, founding = CpuEngine(X), ProjectedStart()
    numbers = founding.draw(100, 30, np.random.default_rng(0))
    centers = engine.frame.decode(founding.place(engine, [numbers])[0])
    apart = np.linalg.norm(centers[:, None] - X[None, ::20], axis=2)
    assert apart.min(axis=1).max() < 1e-5


@pytest.mark.parametrize(
    ("looks", "expected"),
    [
        (25.0, QuickSeeding(n_directions=64)),
        (0.5, QuickSeeding(n_directions=32)),
        (0.3, QuickStart(236, True, True, with_steps=True)),
        (0.1, ProjectedStart(32)),
    ],
)
def test_a_quick_start_with_many_features_is_what_there_is_time_for(looks, expected) -> None:
    """Seeding in rounds takes a look in 64 directions, and half of one in 32."""
    engine = CpuEngine(np.tile(WIDE, (2, 1)))
    engine.quick_looks = lambda n_clusters, n_trials, n_directions: n_directions / 64
    engine._deferred.samples = None
    assert quick_start(engine, 12, looks) == expected


def test_quick_steps_make_a_start_on_some_samples_means_of_all() -> None:
    numbers = QuickStart(300, True).draw(3000, 12, np.random.default_rng(4))
    placed = [
        QuickStart(300, True, with_steps=own).place(CpuEngine(WIDE), [numbers])[0]
        for own in (False, True)
    ]
    engine = CpuEngine(WIDE)
    some, improved = (engine.assign(centers) for centers in placed)
    assert improved[1] < some[1]
    assert_allclose(placed[1], engine.means(improved[0], placed[1]), atol=1e-2)


def test_few_features_and_sparse_samples_are_not_projected() -> None:
    sparse = csr_array(np.where(WIDE > 1.5, WIDE, 0.0))
    assert CpuEngine(WIDE).n_directions == (32, 64)
    assert CpuEngine(WIDE[:, :127]).n_directions == ()
    assert CpuEngine(sparse).n_directions == ()
    assert ReferenceEngine(WIDE, None).n_directions == ()
