"""Global K-means against the method written down plainly."""

from __future__ import annotations

import numpy as np
import pytest
from incremental_oracles import best_sample, every_sample, path
from numpy.testing import assert_allclose, assert_array_equal

from lab.baselines import GlobalKMeans
from problems import make_samples, make_weights


def problem(n=40, seed=0):
    rng = np.random.default_rng(seed)
    return make_samples("normal", n, 2, np.float64, rng), make_weights(n, rng) + 0.01


@pytest.mark.parametrize(
    ("algorithm", "places"), [("fast", best_sample), ("full", every_sample)], ids=["fast", "full"]
)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_path_is_that_of_the_publication(engine_name, algorithm, places, seed) -> None:
    """Brute force over all samples, with plain K-means, step by step."""
    X, weights = problem(seed=seed)
    model = GlobalKMeans(6, algorithm=algorithm, engine=engine_name)
    model.fit(X, sample_weight=weights)
    assert_allclose(model.inertias_, path(X, weights, 6, places), rtol=1e-9)


def test_runs(engine_name) -> None:
    """One for each step, or one for each distinct sample that is not on a centre."""
    X = np.array([[0.0], [0.0], [1.0], [2.0], [2.0], [7.0]])
    fast, full = (
        GlobalKMeans(3, algorithm=algorithm, engine=engine_name).fit(X)
        for algorithm in ("fast", "full")
    )
    assert [step.n_runs for step in fast.path_] == [1, 1, 1]
    # The mean of all is 2; with two clusters, 1 is a centre and so is 7.
    assert [step.n_runs for step in full.path_] == [1, 3, 2]


def test_full_is_at_least_as_deep_in_the_first_step() -> None:
    """Later steps start from other solutions, and nothing is guaranteed there."""
    for seed in range(10):
        X, weights = problem(seed=seed)
        fast, full = (
            GlobalKMeans(2, algorithm=algorithm).fit(X, sample_weight=weights).inertia_
            for algorithm in ("fast", "full")
        )
        assert full <= fast


def test_ties_go_to_the_first_sample(engine_name) -> None:
    """Both ends of a symmetric line promise the same; the first in the data gets the centre."""
    X = np.array([[4.0], [-4.0], [3.0], [-3.0], [0.0]])
    labels = GlobalKMeans(2, engine=engine_name).fit(X).labels_
    mirrored = GlobalKMeans(2, engine=engine_name).fit(-X).labels_
    # 0 stays with the old centre, on the side of which the new one is not.
    assert_array_equal(labels, [1, 0, 1, 0, 0])
    assert_array_equal(mirrored, [0, 1, 0, 1, 1])
