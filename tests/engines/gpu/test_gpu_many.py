"""Thousands of clusters on the device: rounds, populations and crossovers."""

from __future__ import annotations

import numpy as np
import pytest

from evomeans.engines.cpu import CpuEngine
from evomeans.engines.protocol import Ability, Order
from evomeans.kernels.ward import pnn_merge
from evomeans.search import DEEP, PAPER, SearchSettings, solve
from evomeans.search.founding import KMeansPlusPlus, MergedStarts, RandomSamples
from evomeans.search.plan import Facts, plan
from optional import require_torch

pytestmark = pytest.mark.usefixtures("gpu_device")
N_FEATURES = 6


def overlapping(n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, N_FEATURES)) + 2.0 * rng.integers(0, 4, size=(n, 1))


@pytest.fixture(name="engine_of")
def _engine_of(monkeypatch):
    """Return a function that makes an engine on which solutions take long."""
    require_torch()
    from evomeans.engines.gpu import engine as module

    monkeypatch.setattr(module, "PRODUCTS_OF_A_ROUND", 1)
    monkeypatch.setattr(module, "MOST_MATCHED_EXACTLY", 10)
    return module.GpuEngine


def explained(centers, weights):
    return float(weights @ np.sum(centers * centers, axis=1))


@pytest.mark.parametrize("n_shared", [0, 40, 119])
def test_pairs_that_are_merged_together_cost_what_single_ones_do(engine_of, n_shared) -> None:
    """Within five percent of Ward's method; every weight is in a cluster that is left."""
    k, rng = 120, np.random.default_rng(n_shared)
    first, second = overlapping(2 * k).reshape(2, k, N_FEATURES)
    second[:n_shared] = first[:n_shared]
    both, weights = np.concatenate([first, second]), rng.integers(1, 50, 2 * k).astype(float)
    given = both.copy()
    merged, totals, origins = engine_of(overlapping(300)).merge(both, weights, k)
    exact = pnn_merge(given, weights, k)
    np.testing.assert_array_equal(both, given)
    assert np.all(np.diff(origins) > 0)
    assert totals.sum() == weights.sum()
    np.testing.assert_allclose(totals @ merged, weights @ given, rtol=1e-9)
    lost = explained(given, weights) - explained(merged, totals)
    assert lost <= 1.05 * (explained(given, weights) - explained(*exact[:2])) + 1e-9


@pytest.mark.parametrize("weights", [np.zeros(60), np.r_[np.ones(30), np.zeros(30)]])
def test_clusters_without_weight_leave_no_trace(engine_of, weights) -> None:
    centers = overlapping(60)
    merged, totals, origins = engine_of(overlapping(300)).merge(centers, weights, 30)
    assert totals.sum() == weights.sum()
    assert np.isfinite(merged).all()
    if weights.any():
        np.testing.assert_array_equal(np.sort(merged, axis=0), np.sort(centers[:30], axis=0))
    assert len(np.unique(origins)) == 30


def test_equal_centres_are_merged_without_end(engine_of) -> None:
    merged, totals, _ = engine_of(overlapping(300)).merge(np.ones((50, 3)), np.ones(50), 20)
    np.testing.assert_array_equal(merged, np.ones((20, 3)))
    assert totals.sum() == 50.0


def test_merging_ends_when_the_engine_is_abandoned(engine_of) -> None:
    from evomeans.engines.protocol import Abandoned

    engine = engine_of(overlapping(300))
    engine.abandon(True)
    with pytest.raises(Abandoned):
        engine.merge(overlapping(60), np.ones(60), 30)


def test_the_first_answer_is_one_solution_and_populations_are_small(engine_of) -> None:
    """Of merged starts; two others complete the population, and rounds of four are merged."""
    engine = engine_of(overlapping(3000))
    rounds = []
    refine = engine.refine
    engine.refine = lambda orders: rounds.append(len(orders)) or refine(orders)
    settings = SearchSettings(strategy=DEEP, max_offspring=8)
    history = solve(engine, 600, settings, np.random.default_rng(0)).history
    assert rounds == [1, 2, 4, 4]
    assert [one.made_by for one in history[:3]].count("merged starts") >= 1
    assert history[0].made_by == "merged starts"
    assert {one.made_by for one in history[3:]} == {"merging"}
    assert max(one.population_size for one in history) <= 10


def test_what_is_fast_or_of_the_paper_is_searched_as_before() -> None:
    few = frozenset({Ability.MOMENTUM})
    slow, fast = (Facts(few, 10**6, 128, 32, size) for size in (4, 32))
    deep, paper = (SearchSettings(strategy=one) for one in (DEEP, PAPER))
    assert plan(deep, fast, 1000, 1.0).rules.n_founders == 20
    assert plan(paper, slow, 1000, 1.0).rules.n_founders == 20
    assert len(plan(paper, slow, 1000, 1.0).crossovers) == 1
    # Of few clusters, k-means++ begins.
    assert isinstance(plan(deep, slow, 100, 0.0).founding[0], KMeansPlusPlus)
    assert isinstance(plan(deep, slow, 1000, 0.0).founding[0], MergedStarts)
    assert [one.share for one in plan(deep, slow, 1000, 1.0).crossovers] == [1.0]
    assert len(plan(deep, slow, 100, 1.0).crossovers) == 2


def test_merged_starts_are_better_than_random_samples(engine_of) -> None:
    """K-means from them ends lower than from either draw; an abandoned engine has centres too."""
    X = overlapping(3000)
    engine, rng = engine_of(X), np.random.default_rng(3)
    draws = MergedStarts().draw(len(X), 100, rng)
    starts = RandomSamples().place(engine, list(draws))
    (united,) = MergedStarts().place(engine, [draws])
    assert united.shape == (100, N_FEATURES)
    inertias = [engine.refine([Order(one)])[0].inertia for one in (united, *starts)]
    assert inertias[0] < 0.99 * min(inertias[1:])
    engine.abandon(True)
    np.testing.assert_array_equal(engine.unite(starts), starts[0])


def test_seeds_on_the_device_are_those_of_the_host(engine_of) -> None:
    """Of each of three founders, up to ties of rounding, which these samples do not have."""
    engine = engine_of(overlapping(500))
    places, draws = (np.arange(500) + 0.5) / 500, np.random.default_rng(2).random((3, 40, 4))
    rows = engine.samples_at(places)
    host = CpuEngine(engine.frame.decode(rows), frame=engine.frame)
    for placed, numbers in zip(engine.seeds_among(places, draws), draws, strict=True):
        np.testing.assert_allclose(placed, host.seed(numbers), atol=1e-12)
        assert {tuple(row) for row in placed.tolist()} <= {tuple(row) for row in rows.tolist()}


def test_seeds_among_equal_samples_are_samples(engine_of) -> None:
    engine = engine_of(np.repeat(overlapping(3), 100, axis=0))
    places, draws = (np.arange(300) + 0.5) / 300, np.random.default_rng(2).random((2, 40, 4))
    rows = {tuple(row) for row in engine.samples_at(places).tolist()}
    for centers in engine.seeds_among(places, draws):
        assert {tuple(center) for center in centers.tolist()} == rows
