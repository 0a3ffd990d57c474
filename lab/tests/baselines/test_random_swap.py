"""Random swap: one centre elsewhere, two iterations, and only what is better is kept."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from evomeans.engines import Order
from evomeans.engines.protocol import LocalSearch
from evomeans.estimators.solution import canonical_solution
from fakes import ScriptedEngine
from lab.baselines import RandomSwap
from lab.baselines.engines import create_engine


def test_trials_begin_at_the_best_so_far() -> None:
    """Its centres and its handle; equal is not better."""
    inertias = [10.0, 12.0, 9.0, 9.0, 11.0, 8.0, 7.0]
    engine = ScriptedEngine(inertias)
    trials = list(RandomSwap(2, n_swaps=6).solutions(engine, np.random.default_rng(0)))
    assert [trial.inertia for trial in trials] == inertias
    assert [start.parent for start in engine.starts] == [
        None,
        "handle 0",
        "handle 0",
        "handle 2",
        "handle 2",
        "handle 2",
        "handle 5",
    ]
    for start in engine.starts[1:]:
        number = int(str(start.parent).removeprefix("handle "))
        assert_array_equal(start.centers, engine.answers[number].centers)


def test_a_trial_swaps_a_random_centre_for_a_random_sample() -> None:
    """α = 0 draws the sample by weight alone, and K-means makes as many iterations as asked for."""
    engine = ScriptedEngine([3.0] * 401)
    model = RandomSwap(4, n_swaps=400, kmeans_iterations=5)
    list(model.solutions(engine, np.random.default_rng(0)))
    first, *trials = engine.starts
    assert (first.removed, first.local_search.max_iter) == (-1, 5)
    assert {(start.alpha, start.local_search.max_iter) for start in trials} == {(0.0, 5)}
    assert np.bincount([start.removed for start in trials], minlength=4).min() > 70
    quarters = [int(4.0 * start.quantile) for start in trials]
    assert np.bincount(quarters, minlength=4).min() > 70


@pytest.mark.parametrize(("batch", "calls"), [(1, [1] * 8), (4, [1, 4, 3])])
def test_engines_get_as_many_trials_as_they_like(batch, calls) -> None:
    """All of a round from the same solution, the best of the rounds before."""
    engine = ScriptedEngine([9.0, 8.0, 7.0, 8.5, 6.0, 5.0, 4.0, 3.0], batch=batch)
    list(RandomSwap(2, n_swaps=7).solutions(engine, np.random.default_rng(0)))
    assert engine.calls == calls
    if batch == 4:
        parents = [start.parent for start in engine.starts]
        assert parents == [None, *["handle 0"] * 4, *["handle 4"] * 3]


def test_it_finds_clusters_that_kmeans_misses() -> None:
    """25 groups on a grid: K-means from the same samples finds some of them only."""
    rng = np.random.default_rng(1)
    grid = np.stack(np.meshgrid(np.arange(5.0), np.arange(5.0)), axis=-1).reshape(-1, 2)
    X = np.repeat(10.0 * grid, 20, axis=0) + rng.normal(scale=0.3, size=(500, 2))
    model = RandomSwap(25, n_swaps=1500, random_state=0).fit(X)
    truth = sum(
        ((X[i : i + 20] - X[i : i + 20].mean(axis=0)) ** 2).sum() for i in range(0, 500, 20)
    )
    assert model.inertia_ == pytest.approx(truth, rel=1e-9)
    assert model.history_[0].inertia > 5.0 * truth


def test_trials_are_what_their_definition_says() -> None:
    """By hand, without handles: swap, two steps of K-means, and the better one stays."""
    X = np.random.default_rng(6).normal(size=(300, 3))
    engine, rng = create_engine("cpu", X, None), np.random.default_rng(7)
    solutions = RandomSwap(6, n_swaps=30).solutions(engine, rng)
    best = next(solutions)
    other = np.random.default_rng(7)
    other.choice(300, 6, replace=False), other.random()
    for trial in solutions:
        removed, quantile = other.random(2)
        centers = best.centers.copy()
        centers[int(removed * 6)] = engine.samples_at(np.array([quantile]))[0]
        two_steps = LocalSearch(max_iter=2)
        start = Order(centers, alpha=0.0, quantile=quantile, local_search=two_steps)
        (expected,) = engine.refine([start])
        assert_array_equal(trial.centers, expected.centers)
        assert trial.n_iter <= 3
        best = min(best, trial, key=lambda solution: solution.inertia)


def test_the_answer_is_a_fixed_point() -> None:
    """Solutions on the way are not; the last steps of K-means follow at the end."""
    X = np.random.default_rng(8).normal(size=(500, 2))
    model = RandomSwap(12, n_swaps=10, kmeans_iterations=1, random_state=0).fit(X)
    assert model.inertia_ < model.history_[-1].best
    engine = create_engine("cpu", X, None)
    again = canonical_solution(engine, engine.frame.encode(model.cluster_centers_), X.dtype)
    assert again.inertia == model.inertia_
