"""FLS++: swaps that pay after a step of K-means, and no others."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from evomeans.engines import Order, Refinement
from evomeans.engines.protocol import LocalSearch
from lab.baselines import FLSpp
from lab.baselines.engines import create_engine
from lab.baselines.flspp import foreseen_swap

X = np.random.default_rng(0).normal(size=(200, 2))
ONE_STEP = LocalSearch(max_iter=1)


def refined(engine, centers) -> Refinement:
    return engine.refine([Order(centers, local_search=ONE_STEP)])[0]


def test_the_best_swap_is_made(engine_name) -> None:
    """By brute force: after one step, no other swap of the sample is better, nor is none."""
    engine = create_engine(engine_name, X, None)
    rng = np.random.default_rng(1)
    swaps = 0
    for _ in range(20):
        solution = refined(engine, engine.rows(rng.choice(200, 8, replace=False)))
        uniform = rng.random()
        row, _ = engine.swap_gains(solution.centers, uniform)
        candidates = [solution.centers]
        for j in range(8):
            swapped = solution.centers.copy()
            swapped[j] = engine.rows(np.array([row]))[0]
            candidates.append(swapped)
        costs = []
        for centers in candidates:
            labels = np.asarray(engine.assign(centers)[0])
            means = np.array(
                [engine.rows(np.flatnonzero(labels == j)).mean(axis=0) for j in range(8)]
            )
            points = engine.rows(np.arange(200))
            costs.append(((points - means[labels]) ** 2).sum())
        start = foreseen_swap(engine, solution, uniform, 0.5)
        assert_array_equal(start.centers, candidates[int(np.argmin(costs))])
        assert start.local_search == ONE_STEP
        swaps += int(np.argmin(costs) > 0)
    assert 0 < swaps < 20


def test_every_step_is_better_than_the_one_before() -> None:
    """As a step of K-means without a swap would be, at least."""
    model = FLSpp(10, random_state=3).fit(X)
    values = [record.inertia for record in model.history_]
    assert len(values) == 22
    assert (np.diff(values) <= 1e-9).all()
    assert model.inertia_ <= values[-1]


def test_swaps_help() -> None:
    """Compared with K-means from the same start, on average."""
    with_swaps = [FLSpp(20, random_state=seed).fit(X).inertia_ for seed in range(8)]
    engine = create_engine("cpu", X, None)
    without = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        seeds = engine.seed(rng.random((20, 1)))
        without.append(engine.refine([Order(seeds)])[0].inertia)
    assert np.mean(with_swaps) < 0.97 * np.mean(without)


@pytest.mark.parametrize(("init", "trials"), [("k-means++", 1), ("greedy k-means++", 4)])
def test_the_greedy_start_has_candidates(init, trials, monkeypatch) -> None:
    engine, seen = create_engine("reference", X, None), []

    def remember(quantiles):
        seen.append(quantiles.shape)
        return type(engine).seed(engine, quantiles)

    monkeypatch.setattr(engine, "seed", remember)
    next(FLSpp(10, init=init).solutions(engine, np.random.default_rng(0)))
    assert seen == [(10, trials)]
