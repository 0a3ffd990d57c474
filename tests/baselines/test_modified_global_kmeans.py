"""Modified global K-means against the method written down plainly."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
from incremental_oracles import best_mean, path
from numpy.testing import assert_allclose

from evomeans.baselines import ModifiedGlobalKMeans, modified_global_kmeans
from problems import make_samples, make_weights


@pytest.mark.parametrize("seed", range(3))
def test_the_path_is_that_of_the_publication(engine_name, seed) -> None:
    """Means of what all samples attract, the best of them, its local minimum, K-means."""
    rng = np.random.default_rng(seed)
    X, weights = make_samples("normal", 60, 2, np.float64, rng), make_weights(60, rng) + 0.01
    model = ModifiedGlobalKMeans(6, engine=engine_name).fit(X, sample_weight=weights)
    assert_allclose(model.inertias_, path(X, weights, 6, best_mean), rtol=1e-9)
    assert [step.n_runs for step in model.path_] == [1] * 6


def test_examples() -> None:
    results = doctest.testmod(modified_global_kmeans)
    assert results.attempted > 0
    assert results.failed == 0
