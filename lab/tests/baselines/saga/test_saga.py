"""SAGA as an estimator: the quality of its solutions, parameters that adapt, and limits."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from lab.baselines import SAGA, MultiStartKMeans
from lab.baselines.saga import ParameterSet
from lab.baselines.saga.crossovers import CROSSOVERS

SMALL = {"population_size": 10, "n_generations": 6, "random_state": 0}
X = np.random.default_rng(0).normal(size=(300, 3)) + 4.0 * np.arange(300)[:, None] % 28.0


# ---- the search ------------------------------------------------------------------------------


def test_it_is_better_than_many_runs_of_kmeans() -> None:
    """Of 40 blobs in the plane, of which 100 runs of k-means++ miss some."""
    blobs, _ = make_blobs(1000, centers=40, cluster_std=0.3, random_state=3)
    runs = MultiStartKMeans(40, init="k-means++", n_runs=100, random_state=0).fit(blobs)
    model = SAGA(40, population_size=20, n_generations=30, random_state=0).fit(blobs)
    assert model.inertia_ < 0.95 * runs.inertia_


def test_every_solution_is_recorded_and_the_last_is_the_best() -> None:
    """The first generation, eight children in each of six, and the best, refined."""
    model = SAGA(6, **SMALL).fit(X)
    assert len(model.history_) == model.n_iter_ == 10 + 6 * 8 + 1
    inertias = [record.inertia for record in model.history_]
    assert inertias[-1] == min(inertias)
    assert model.inertia_ == pytest.approx(inertias[-1], rel=1e-12)


def test_children_get_the_steps_that_were_asked_for() -> None:
    """More of them make the first children better."""
    means = []
    for steps in (0, 1, 5):
        model = SAGA(6, kmeans_iterations=steps, **SMALL).fit(X)
        means.append(np.mean([record.inertia for record in model.history_[10:18]]))
    assert means[0] > means[1] > means[2]


# ---- strategy parameters ---------------------------------------------------------------------


def test_the_parameters_of_the_last_generation_are_shown() -> None:
    """One for each candidate, all within their ranges."""
    model = SAGA(6, **SMALL).fit(X)
    assert len(model.strategies_) == 10
    for parameters in model.strategies_:
        assert isinstance(parameters, ParameterSet)
        assert parameters.crossover in CROSSOVERS
        assert 0.0 <= parameters.mutation_probability <= 1.0
        assert 0.0 <= parameters.noise_range <= 1.0


def test_a_crossover_that_spoils_children_dies_out(monkeypatch) -> None:
    """Parameters adapt: what makes good children is passed on with them."""

    def spoiled(couple, uniforms):
        return np.full_like(couple.parents[0], 0.9), 0

    monkeypatch.setitem(CROSSOVERS, "PNN", spoiled)
    monkeypatch.setitem(CROSSOVERS, "random multipoint", spoiled)
    share = []
    for seed in range(3):
        model = SAGA(6, population_size=30, n_generations=15, random_state=seed).fit(X)
        share += [s.crossover in ("PNN", "random multipoint") for s in model.strategies_[:15]]
    assert np.mean(share) < 0.1


# ---- limits ----------------------------------------------------------------------------------


def test_a_target_ends_the_search() -> None:
    model = SAGA(6, **SMALL).fit(X)
    target = model.history_[20].best
    stopped = SAGA(6, target_inertia=target, **SMALL).fit(X)
    assert stopped.stop_reason_ == "target_inertia"
    assert stopped.n_iter_ <= 21
    assert stopped.inertia_ <= target


def test_a_time_limit_ends_the_search() -> None:
    """Even before the first generation is complete; there is a solution all the same."""
    model = SAGA(6, population_size=10, n_generations=10**6, max_time=1e-9).fit(X)
    assert model.stop_reason_ == "max_time"
    assert model.n_iter_ == 1
    assert model.strategies_ == ()
    later = SAGA(6, population_size=10, n_generations=10**6, max_time=0.2).fit(X)
    assert later.stop_reason_ == "max_time"
    assert len(later.strategies_) == 10


def test_a_failure_in_the_search_is_not_hidden(monkeypatch) -> None:
    def fail(*arguments):
        raise MemoryError("no room")

    monkeypatch.setattr("lab.baselines.saga.evolution.Evolution.__init__", fail)
    model = SAGA(6)
    with pytest.raises(MemoryError, match="no room"):
        model.fit(X)
    assert vars(model) == vars(SAGA(6))
