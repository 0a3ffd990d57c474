"""The errors of centres, and the cost of losing them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from lab.baselines.engines import create_engine
from oracles import in_frame, squared_distances
from problems import make_samples, make_weights, paired, problems


@paired
@settings(phases=[Phase.explicit, Phase.generate], max_examples=30)
@given(st.data())
def test_they_are_sums_over_the_samples_of_a_centre(engine_name, dtype, weighted, data) -> None:
    """Σ wδ₁ and Σ w(δ₂ − δ₁), by all distances, for any centres and both powers."""
    problem = data.draw(problems(dtype, weighted))
    engine = create_engine(engine_name, problem.X, problem.weights)
    n, d = problem.X.shape
    weights = np.ones(n) if problem.weights is None else problem.weights
    samples = in_frame(engine.frame, problem.X)
    rng = np.random.default_rng(problem.seed)
    for k in (2, 7, 70):
        centers = rng.normal(size=(k, d))
        centers[0] = samples[rng.integers(n)]
        power = int(rng.integers(1, 3))
        distances = squared_distances(samples, centers) ** (power / 2)
        labels, ordered = distances.argmin(axis=1), np.sort(distances, axis=1)
        scale = 2.0 ** -(power * engine.frame.exponent)
        errors, utilities = engine.errors_and_utilities(centers, power)
        expected = np.bincount(labels, weights * ordered[:, 0], k) * scale
        assert_allclose(errors, expected, rtol=1e-10, atol=1e-14 * expected.sum())
        expected = np.bincount(labels, weights * (ordered[:, 1] - ordered[:, 0]), k) * scale
        assert_allclose(utilities, expected, rtol=1e-10, atol=1e-12 * (expected.sum() + scale))


@paired
def test_a_utility_is_the_price_of_removal(engine_name, dtype, weighted) -> None:
    """Errors add up to the inertia; without a centre the inertia is higher by its utility."""
    rng = np.random.default_rng(1)
    X = make_samples("blobs", 300, 3, dtype, rng)
    weights = make_weights(300, rng) if weighted else None
    engine = create_engine(engine_name, X, weights)
    centers = engine.samples_at((np.arange(9) + 0.5) / 9)
    errors, utilities = engine.errors_and_utilities(centers)
    _, inertia = engine.assign(centers)
    assert errors.sum() == pytest.approx(inertia, rel=1e-12)
    for j in range(9):
        _, without = engine.assign(np.delete(centers, j, axis=0))
        assert without - inertia == pytest.approx(utilities[j], rel=1e-9, abs=1e-9 * inertia)


def test_twins_are_of_no_use(engine_name, dtype) -> None:
    """Of two equal centres the first has the samples; neither would be missed."""
    X = np.array([[0.0], [1.0], [9.0], [11.0]], dtype)
    engine = create_engine(engine_name, X, None)
    centers = in_frame(engine.frame, np.array([[0.5], [10.0], [10.0]], dtype))
    errors, utilities = engine.errors_and_utilities(centers)
    assert_allclose(errors, [0.5, 2.0, 0.0])
    assert utilities[0] > 100.0
    assert_array_equal(utilities[1:], 0.0)


def test_nobody_takes_over_from_a_single_centre(engine_name, dtype) -> None:
    """Its utility is infinite, also where samples have no weight."""
    engine = create_engine(engine_name, np.array([[1.0], [3.0]], dtype), np.array([1.0, 0.0]))
    errors, utilities = engine.errors_and_utilities(np.zeros((1, 1)))
    assert errors.shape == (1,)
    assert_array_equal(utilities, [np.inf])


@paired
def test_sparse_samples_give_the_same(dtype, weighted) -> None:
    rng = np.random.default_rng(2)
    X = (rng.normal(size=(600, 15)) * (rng.random((600, 15)) < 0.3)).astype(dtype)
    weights = make_weights(600, rng) if weighted else None
    sparse = create_engine("cpu", sp.csr_matrix(X), weights)
    dense = create_engine("cpu", X, weights, frame=sparse.frame)
    centers = dense.samples_at((np.arange(12) + 0.5) / 12) + 0.01
    for one, two in zip(
        sparse.errors_and_utilities(centers), dense.errors_and_utilities(centers), strict=True
    ):
        assert_allclose(one, two, rtol=1e-9, atol=1e-12)


@paired
@pytest.mark.usefixtures("eager_threads")
def test_threads_change_no_bit(dtype, weighted) -> None:
    rng = np.random.default_rng(3)
    X = make_samples("blobs", 3000, 4, dtype, rng)
    weights = make_weights(3000, rng) if weighted else None
    centers = rng.normal(size=(11, 4))
    answers = [
        create_engine("cpu", X, weights, n_jobs=n_jobs).errors_and_utilities(centers)
        for n_jobs in (1, 2, 3)
    ]
    for errors, utilities in answers[1:]:
        assert_array_equal(errors, answers[0][0])
        assert_array_equal(utilities, answers[0][1])
