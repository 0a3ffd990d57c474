"""Searches that begin on samples of the rows."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array

from evomeans import HGMeans
from evomeans.engines import create_engine
from evomeans.engines.protocol import Ability
from evomeans.engines.reference import ReferenceEngine
from evomeans.search import DEEP, PAPER, SearchSettings, StopReason, solve
from evomeans.search.levels import (
    FEWEST_CARRIED,
    LEAST_ROUNDS,
    WorkLimit,
    draw_samples,
    level_sizes,
    refined_on,
    settings_below,
    wait_of_sampled,
)
from evomeans.search.plan import Facts, plan

SETTINGS = SearchSettings(strategy=DEEP)


def blobs(n: int, k: int, d: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    centers = rng.uniform(0.0, 100.0, (k, d))
    return centers[rng.integers(k, size=n)] + rng.normal(size=(n, d)), centers


@pytest.mark.parametrize(
    ("changes", "n", "k", "sizes"),
    [
        ({}, 39_999, 3, ()),
        ({}, 40_000, 3, (5_000,)),
        ({}, 8 * 30_000 - 1, 100, ()),
        ({}, 1_000_000, 10, (80_000, 20_000, 5_000)),
        ({}, 10_000_000, 100, (480_000, 120_000, 30_000)),
        ({"strategy": PAPER}, 10**7, 3, ()),
        ({"subsample": None}, 10**7, 3, ()),
        ({"subsample": 50}, 60, 3, (50,)),
        ({"subsample": 60}, 60, 3, ()),
        ({"strategy": PAPER, "subsample": 50}, 10_000, 3, (800, 200, 50)),
    ],
)
def test_many_rows_have_several_levels_each_four_times_the_one_below(changes, n, k, sizes) -> None:
    """Few rows, and those of the paper, are searched whole; a number is taken at its word."""
    assert level_sizes(replace(SETTINGS, **changes), n, k) == sizes


def test_a_search_below_is_of_one_population_and_leaves_time_for_those_above() -> None:
    limited = replace(SETTINGS, max_time=10.0, target_inertia=1.0)
    below = settings_below(limited, 3, ratio=20.0, seconds=2.0)
    assert below.strategy.agreement == 1
    assert below.longest_wait(3) == SETTINGS.longest_wait(3) // 3
    assert below.max_time == 2.0
    assert below.target_inertia is None


def test_the_more_an_offspring_on_all_rows_costs_the_longer_waits_the_sample() -> None:
    wait = SETTINGS.longest_wait(3)
    waits = [settings_below(SETTINGS, 3, ratio, 0.0).longest_wait(3) for ratio in (8, 300, 1e6)]
    assert waits == [wait // 3, 300, 5 * wait]
    in_rounds = settings_below(SETTINGS, 3, 1e6, 0.0, batch=25)
    assert in_rounds.longest_wait(3) == 20 * wait


def test_a_population_from_a_sample_waits_longer_the_fewer_rows_there_are() -> None:
    waits = [wait_of_sampled(SETTINGS, 3, n) for n in (50_000, 100_000, 300_000, 10**7)]
    longest = 2 * SETTINGS.longest_wait(3)
    assert waits == [longest, longest, longest // 3, 3]


def test_momentum_takes_the_place_of_single_moves_on_a_sample() -> None:
    below = settings_below(SETTINGS, 3, ratio=20.0, seconds=0.0)
    facts = Facts(frozenset(Ability), 900, 2)
    sparse, dense = (plan(below, facts, 3, spacing) for spacing in (1e3, 1.0))
    assert not any(one.single_moves for one in (sparse, dense))
    assert dense.momentum
    assert not sparse.momentum


def test_a_sample_is_searched_while_that_costs_little_or_improves() -> None:
    """30 iterations on all rows are 300 on a tenth of them."""
    limit = WorkLimit(1_000, 10_000)

    def record(best: float, n_iter: int, median: float = 100.0, founder: bool = False):
        values = {"population_best": best, "population_median": median, "founder": founder}
        return SimpleNamespace(best=best, n_iter=n_iter, number=0, **values)

    assert not limit(record(100.0, 250))
    assert not limit(record(99.5, 200)), "what improves is worth its work"
    assert not limit(record(99.49, 100)), "by too little to begin anew, and not too much work"
    assert limit(record(99.48, 1))
    assert not limit(record(99.48, 1, median=110.0)), "others may become much better"
    assert not limit(record(99.48, 99, founder=True))
    assert limit(record(99.48, 1, founder=True)), "a third of the work, if founders are alike"


def test_a_sample_has_some_rounds_where_all_rows_have_rounds() -> None:
    """However much work founders and offspring are, all rounds of four are made first."""
    limit, fewest = WorkLimit(1_000, 10_000, batch=4), 4 * LEAST_ROUNDS

    def record(number: int):
        values = {"population_best": 1.0, "population_median": 1.0, "founder": number == 0}
        return SimpleNamespace(best=1.0, number=number, n_iter=1_000, **values)

    ended = [limit(record(number)) for number in (0, 0, 1, fewest - 1, fewest)]
    assert ended == [False] * 4 + [True]


def test_larger_samples_keep_the_better_half() -> None:
    X, _ = blobs(500, 6)
    sample = ReferenceEngine(X, None)
    rng = np.random.default_rng(0)
    starts = [sample.samples_at(rng.random(6)) for _ in range(10)]
    refined = refined_on(sample, starts)
    assert len(refined) == 5
    inertias = [sample.assign(centers)[1] for centers in refined]
    assert inertias == sorted(inertias)
    assert len(refined_on(sample, starts[:5])) == FEWEST_CARRIED


@pytest.mark.parametrize("n_features", [1, 3])
def test_a_search_that_begins_on_samples_finds_the_planted_clusters(engine_name, n_features):
    X, centers = blobs(3000, 6, n_features, seed=3)
    model = HGMeans(6, subsample=150, engine=engine_name, random_state=0, max_offspring=60).fit(X)
    found = model.cluster_centers_
    closest = np.linalg.norm(found[:, None] - centers, axis=2).min(axis=0)
    assert closest.max() < 1.0
    assert model.levels_ == (3000, 150)
    founders = [record for record in model.history_ if record.founder]
    assert founders[0] is model.history_[0]
    assert all(record.made_by.startswith("sample of ") for record in founders)


def test_bits_do_not_depend_on_threads(eager_threads) -> None:
    X, _ = blobs(2000, 5, seed=1)
    one, two = (
        HGMeans(5, subsample=200, n_jobs=n_jobs, random_state=3, max_offspring=80).fit(X)
        for n_jobs in (1, 2)
    )
    assert_array_equal(one.cluster_centers_, two.cluster_centers_)
    assert [r.inertia for r in one.history_] == [r.inertia for r in two.history_]


def test_a_resumed_search_is_the_search_that_never_stopped(tmp_path) -> None:
    X = np.random.default_rng(5).normal(size=(1500, 4))
    search = {"subsample": 150, "random_state": 1, "max_offspring": 400, "n_iter_no_change": 20}
    whole = HGMeans(6, **search).fit(X)
    assert whole.history_[-1].population > 1
    path = tmp_path / "c"
    n_records = len(whole.history_)
    for stop in (1, n_records // 3, n_records // 2):
        seen = []

        def watch(record, seen=seen, stop=stop):
            seen.append(record)
            return len(seen) >= stop

        HGMeans(6, **search, checkpoint=path, observers=watch).fit(X)
    resumed = HGMeans(6, **search, checkpoint=path).fit(X)
    assert_array_equal(resumed.cluster_centers_, whole.cluster_centers_)
    assert [r.inertia for r in resumed.history_] == [r.inertia for r in whole.history_]
    assert [r.made_by for r in resumed.history_] == [r.made_by for r in whole.history_]


def test_a_checkpoint_of_another_sample_size_is_refused(tmp_path) -> None:
    X, _ = blobs(1000, 3)
    path = tmp_path / "c"
    HGMeans(3, subsample=100, max_offspring=5, random_state=0, checkpoint=path).fit(X)
    with pytest.raises(ValueError, match="levels is"):
        HGMeans(3, subsample=200, max_offspring=5, random_state=0, checkpoint=path).fit(X)


def test_a_group_far_out_gets_its_centre() -> None:
    X = np.random.default_rng(0).normal(size=(100_000, 2))
    X[500:550] += 300.0
    model = HGMeans(5, random_state=0, max_offspring=20).fit(X)
    assert model.levels_ == (100_000, 5_000)
    assert np.bincount(model.labels_).min() == 50


def test_given_solutions_are_refined_too() -> None:
    X, centers = blobs(2000, 4, seed=2)
    model = HGMeans(4, subsample=100, init=centers, max_offspring=1, random_state=0).fit(X)
    assert "given" in {record.made_by for record in model.history_}


def test_sparse_rows_and_weights() -> None:
    X, _ = blobs(3000, 4, seed=6)
    X[X < 20.0] = 0.0
    weights = np.random.default_rng(0).integers(0, 3, 3000).astype(float)
    search = {"subsample": 200, "random_state": 0, "max_offspring": 60}
    dense = HGMeans(4, **search).fit(X, sample_weight=weights)
    sparse = HGMeans(4, **search).fit(csr_array(X), sample_weight=weights)
    assert sparse.inertia_ == pytest.approx(dense.inertia_, rel=1e-6)


def test_rows_without_weight_leave_no_sample_to_search() -> None:
    X, _ = blobs(2000, 4)
    weights = np.zeros(2000)
    weights[:7] = 1.0
    model = HGMeans(5, subsample=100, random_state=0, max_offspring=5).fit(X, sample_weight=weights)
    assert model.inertia_ < HGMeans(4, random_state=0).fit(X[:7]).inertia_ + 1e-9


def test_duplicates_are_no_obstacle() -> None:
    X = np.repeat([[0.0, 0.0], [1.0, 5.0], [7.0, 2.0]], 1000, axis=0)
    model = HGMeans(3, subsample=60, random_state=0, max_offspring=5).fit(X)
    assert model.inertia_ == 0.0
    assert model.stop_reason_ == StopReason.PROVEN_OPTIMAL


def test_a_sample_has_the_shape_of_the_data() -> None:
    """One that is drawn from another one, too."""
    X, _ = blobs(20_000, 8, seed=9)
    engine = create_engine("cpu", X, None)
    larger, sample = draw_samples(engine, 8, [5000, 1000], np.random.default_rng(0))
    assert 4000 < larger.n_samples < 6000
    assert 700 < sample.n_samples < 1300
    assert sample.total_weight == pytest.approx(20_000, rel=0.1)
    found = solve(sample, 8, replace(SETTINGS, max_offspring=20), np.random.default_rng(0))
    assert engine.assign(found.best.centers)[1] == pytest.approx(found.best.inertia, rel=0.1)


@pytest.mark.parametrize(
    ("subsample", "error", "text"),
    [
        (7, ValueError, "subsample=7 must be at least twice n_clusters=4"),
        ("all", ValueError, "subsample='all' must be 'auto', a number of rows, or None"),
        (100.0, TypeError, "subsample must be an int, got 100.0 of type float"),
    ],
)
def test_impossible_samples_are_refused(subsample, error, text) -> None:
    with pytest.raises(error, match=text):
        HGMeans(4, subsample=subsample).fit(np.random.default_rng(0).normal(size=(100, 2)))
