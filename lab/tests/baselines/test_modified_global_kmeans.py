"""Modified global K-means against the method written down plainly."""

from __future__ import annotations

import numpy as np
import pytest
from incremental_oracles import best_mean, best_sample, minimum, path
from numpy.testing import assert_allclose

from evomeans.engines import Order
from lab.baselines import ModifiedGlobalKMeans
from lab.baselines.engines import create_engine
from problems import make_samples, make_weights


@pytest.mark.parametrize("seed", range(3))
def test_the_path_is_that_of_the_publication(engine_name, seed) -> None:
    """Means of what all samples attract, the best of them, its local minimum, K-means."""
    rng = np.random.default_rng(seed)
    X, weights = make_samples("normal", 60, 2, np.float64, rng), make_weights(60, rng) + 0.01
    model = ModifiedGlobalKMeans(6, engine=engine_name).fit(X, sample_weight=weights)
    assert_allclose(model.inertias_, path(X, weights, 6, best_mean), rtol=1e-9)
    assert [step.n_runs for step in model.path_] == [1] * 6


def test_the_centre_begins_at_the_minimum_of_the_auxiliary_function(engine_name) -> None:
    """Not where the best sample leads to, and not at the first mean."""
    X = make_samples("normal", 100, 4, np.float64, np.random.default_rng(3))
    engine, weights = create_engine(engine_name, X, None), np.ones(100)
    Z = engine.rows(np.arange(100))
    others = [0, 0]
    for k in range(1, 13):
        (solution,) = engine.refine([Order(Z[:k])])
        squares = engine.nearest_squares(solution.centers)
        place = ModifiedGlobalKMeans()._new_centers(engine, solution, squares)
        assert_allclose(place, best_mean(Z, weights, squares), rtol=0.0, atol=1e-12)
        from_sample = minimum(Z, weights, squares, best_sample(Z, weights, squares)[0])
        others[0] += not np.allclose(place[0], from_sample)
        means = engine.attracted_means(Z, squares)
        first = means[np.argmax(engine.reductions(means, squares))]
        others[1] += not np.allclose(place[0], first)
    assert min(others) > 2
