"""Samples of the rows: who is in them, and what they weigh."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from evomeans.engines import create_engine
from evomeans.engines.sampling import Drawing, uniforms


def test_uniform_numbers_belong_to_rows_and_not_to_blocks() -> None:
    whole = uniforms(7, 0, 1000)
    assert_array_equal(np.concatenate([uniforms(7, 0, 137), uniforms(7, 137, 863)]), whole)
    assert not np.array_equal(uniforms(8, 0, 1000), whole)


def test_uniform_numbers_are_uniform() -> None:
    values = uniforms(2**63 + 5, 10**12, 200_000)
    counts = np.histogram(values, bins=100, range=(0.0, 1.0))[0]
    # χ² with 99 degrees of freedom exceeds 160 once in 10,000 seeds.
    assert counts.sum() == 200_000
    assert np.square(counts - 2000).sum() / 2000 < 160
    assert abs(np.corrcoef(values[1:], values[:-1])[0, 1]) < 0.01


@pytest.mark.parametrize("weighted", [False, True])
def test_weights_make_sums_over_samples_unbiased(weighted) -> None:
    rng = np.random.default_rng(0)
    values, costs = rng.normal(3.0, 1.0, 20_000), rng.gamma(0.3, size=20_000)
    weights = rng.gamma(2.0, size=20_000) if weighted else None
    w = np.ones(20_000) if weights is None else weights
    estimates = []
    for seed in range(200):
        drawing = Drawing(seed, 500, np.zeros((1, 1)), float((w * costs).sum()))
        rows, own = drawing.choose(w * costs, weights, float(w.sum()), 20_000)
        assert 350 < len(rows) < 650
        estimates.append([own.sum(), own @ values[rows], own @ costs[rows]])
    truth = np.array([w.sum(), w @ values, w @ costs])
    error = np.std(estimates, axis=0) / np.sqrt(200)
    assert_allclose(np.mean(estimates, axis=0), truth, atol=4.0 * error.max())
    assert np.all(np.abs(np.mean(estimates, axis=0) - truth) < 4.5 * error)


def test_rows_without_weight_are_never_taken_and_heavy_ones_always() -> None:
    weights = np.zeros(10_000)
    weights[::100] = 1.0
    weights[42] = 1e6
    rows, own = Drawing(0, 50).choose(None, weights, float(weights.sum()), 10_000)
    assert np.all(weights[rows] > 0.0)
    assert own[rows.tolist().index(42)] == 1e6


def rows_of(engine) -> np.ndarray:
    """Return all rows of a sample in data units, ordered."""
    quantiles = (np.arange(20_000) + 0.5) / 20_000
    return np.unique(engine.frame.decode(engine.samples_at(quantiles)), axis=0)


def test_a_sample_has_rows_of_the_data_and_their_weight(engine_name, dtype) -> None:
    X = np.random.default_rng(1).normal(100.0, 1.0, (4000, 3)).astype(dtype)
    engine = create_engine(engine_name, X, None)
    centers = engine.samples_at(np.array([0.1, 0.5]))
    cost = engine.frame.inertia_in_frame(engine.assign(centers)[1])
    for drawing in (Drawing(3, 400), Drawing(3, 400, centers, cost)):
        sample = engine.subsample(drawing)
        assert 300 < sample.n_samples < 500
        assert sample.total_weight == pytest.approx(4000, rel=0.15)
        assert sample.frame == engine.frame or np.all(sample.frame.shift == engine.frame.shift)
        known = {tuple(row) for row in X.astype(np.float64).tolist()}
        assert all(tuple(row) in known for row in rows_of(sample).tolist())


def test_all_engines_draw_the_same_rows(engine_name, dtype) -> None:
    X = np.random.default_rng(2).normal(0.0, 1.0, (3000, 4)).astype(dtype)
    weights = np.random.default_rng(3).integers(0, 4, 3000).astype(np.float64)
    oracle = create_engine("reference", X, weights)
    engine = create_engine(engine_name, X, weights, frame=oracle.frame)
    centers = oracle.samples_at(np.array([0.2, 0.6, 0.9]))
    drawing = Drawing(11, 300, centers, 5e3)
    ours, theirs = engine.subsample(drawing), oracle.subsample(drawing)
    assert_array_equal(rows_of(ours), rows_of(theirs))
    assert_allclose(ours.total_weight, theirs.total_weight, rtol=1e-6)


def test_sparse_samples_stay_sparse() -> None:
    X = np.random.default_rng(4).poisson(0.05, (3000, 50)).astype(np.float64)
    dense, sparse = create_engine("cpu", X, None), create_engine("cpu", csr_array(X), None)
    centers = sparse.samples_at(np.array([0.2, 0.7]))
    drawing = Drawing(5, 400, centers, 1e3)
    ours = sparse.subsample(drawing)
    assert (
        ours.n_samples
        == create_engine("cpu", X, None, frame=sparse.frame).subsample(drawing).n_samples
    )
    assert type(ours.samples.rows) is type(sparse.samples.rows)
    assert type(ours.samples.rows) is not type(dense.samples.rows)


def test_fifty_rows_far_out_of_a_million_are_in_the_sample() -> None:
    rng = np.random.default_rng(6)
    X = rng.normal(0.0, 1.0, (1_000_000, 2)).astype(np.float32)
    X[123_456 : 123_456 + 50] += 400.0
    engine = create_engine("cpu", X, None)
    pilot = engine.subsample(Drawing(1, 2000))
    centers = pilot.samples_at(np.array([0.1, 0.4, 0.7]))
    cost = engine.frame.inertia_in_frame(pilot.assign(centers)[1])
    sample = engine.subsample(Drawing(2, 5000, centers, cost))
    far = sample.frame.decode(sample.samples_at((np.arange(100_000) + 0.5) / 100_000))
    # Each of them costs more than the average row of the sample, so all of them are taken.
    assert sample.n_samples < 15_000
    assert np.count_nonzero(sample._source[:, 0] > 200.0) == 50
    assert np.count_nonzero(far[:, 0] > 200.0) > 0
