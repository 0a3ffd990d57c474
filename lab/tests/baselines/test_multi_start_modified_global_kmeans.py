"""Multi-start modified global K-means against the method written down plainly."""

from __future__ import annotations

import numpy as np
import pytest
from incremental_oracles import path, several_minima
from numpy.testing import assert_allclose

from lab.baselines import ModifiedGlobalKMeans, MultiStartModifiedGlobalKMeans
from problems import make_samples, make_weights


def problem(n=60, seed=0):
    rng = np.random.default_rng(seed)
    return make_samples("normal", n, 2, np.float64, rng), make_weights(n, rng) + 0.01


@pytest.mark.parametrize("gammas", [(0.3, 0.3, 3.0), (0.5, 0.8, 1.5), (0.0, 0.9, 1.05)])
def test_the_path_is_that_of_the_publication(engine_name, gammas) -> None:
    """Samples, means and local minima, each filtered by its parameter; K-means from all."""
    X, weights = problem()
    names = dict(zip(("gamma1", "gamma2", "gamma3"), gammas, strict=True))
    model = MultiStartModifiedGlobalKMeans(6, engine=engine_name, **names)
    model.fit(X, sample_weight=weights)
    counts = []

    def places(*arguments):
        found = several_minima(*gammas)(*arguments)
        counts.append(len(found))
        return found

    assert_allclose(model.inertias_, path(X, weights, 6, places), rtol=1e-9)
    assert [step.n_runs for step in model.path_] == [1, *counts]
    assert max(counts) > 1


def test_without_filters_the_first_step_is_at_least_as_deep_as_the_modified_methods() -> None:
    """Its place is among the others'. Later steps start from other solutions."""
    for seed in range(10):
        X, weights = problem(seed=seed)
        several = MultiStartModifiedGlobalKMeans(2, gamma1=0.0, gamma2=0.0, gamma3=1e9)
        one = ModifiedGlobalKMeans(2).fit(X, sample_weight=weights).inertia_
        assert several.fit(X, sample_weight=weights).inertia_ <= one


def test_the_narrowest_filters_leave_one_place() -> None:
    X, weights = problem()
    model = MultiStartModifiedGlobalKMeans(6, gamma1=1.0, gamma2=1, gamma3=1)
    assert model.fit(X, sample_weight=weights).n_iter_ == 6


def test_parameters_depend_on_the_number_of_samples() -> None:
    """Where they are not given."""
    model = MultiStartModifiedGlobalKMeans(gamma2=0.6)
    assert model._gammas(5000) == [0.3, 0.6, 3.0]
    assert model._gammas(5001) == [0.5, 0.6, 1.5]
