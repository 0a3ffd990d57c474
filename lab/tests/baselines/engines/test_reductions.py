"""Gains of one more centre: every engine against brute force over all pairs."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from evomeans.engines import Order
from lab.baselines.engines import create_engine
from oracles import in_frame, squared_distances
from problems import make_samples, make_weights, paired, problems

without_shrinking = settings(phases=[Phase.explicit, Phase.generate], max_examples=20)


def places(samples, rng):
    """Points of all kinds: samples, between them, beside them and far away."""
    n = len(samples)
    pairs = samples[rng.integers(n, size=40)], samples[rng.integers(n, size=40)]
    beside = samples[rng.integers(n, size=40)] + 1e-3 * rng.normal(size=(40, samples.shape[1]))
    return np.concatenate([samples[:60], (pairs[0] + pairs[1]) / 2, beside, 100.0 + beside])


@paired
@without_shrinking
@given(st.data())
def test_reductions_are_sums_over_all_samples(engine_name, dtype, weighted, data) -> None:
    """Also where most pairs are passed over: samples of all kinds, from one to several tiles."""
    problem = data.draw(problems(dtype, weighted))
    engine = create_engine(engine_name, problem.X, problem.weights)
    samples = in_frame(engine.frame, problem.X)
    weights = np.ones(len(samples)) if problem.weights is None else problem.weights
    (start,) = problem.starts(engine)
    squares = engine.nearest_squares(start.centers)
    points = places(samples, np.random.default_rng(problem.seed))
    # Seen from centres far away, the largest samples cost more than a number holds.
    with np.errstate(over="ignore"):
        assume(np.isfinite(np.ldexp(weights @ squares, -2 * engine.frame.exponent)))

    found = np.ldexp(engine.reductions(points, squares), 2 * engine.frame.exponent)
    gains = np.maximum(squares[:, None] - squared_distances(samples, points), 0.0)
    # A difference of two squares is as exact as they are.
    rounding = 1e-12 * (weights @ squares)
    assert_allclose(found, weights @ gains, rtol=1e-9, atol=rounding)


@paired
@without_shrinking
@given(st.data())
def test_means_are_those_of_the_samples_attracted(engine_name, dtype, weighted, data) -> None:
    """A point that attracts none stays; samples that are equally far, but for rounding, may go."""
    problem = data.draw(problems(dtype, weighted))
    engine = create_engine(engine_name, problem.X, problem.weights)
    samples = in_frame(engine.frame, problem.X)
    weights = np.ones(len(samples)) if problem.weights is None else problem.weights
    (start,) = problem.starts(engine)
    squares = engine.nearest_squares(start.centers)
    points = places(samples, np.random.default_rng(problem.seed))

    found = engine.attracted_means(points, squares)
    assert found.shape == points.shape
    away = squared_distances(points, samples)
    clear = (np.abs(away - squares) > 1e-9 * (away + squares)) | (squares == 0.0)
    for point, mean, distances in zip(points, found, np.where(clear, away, -1.0), strict=True):
        if (distances < 0.0).any():
            continue
        attracted = distances < squares
        if not attracted.any():
            assert_array_equal(mean, point)
        else:
            expected = np.average(samples[attracted], axis=0, weights=weights[attracted])
            assert_allclose(mean, expected, rtol=1e-9, atol=1e-12)


@paired
def test_reductions_weights_and_means_come_together(engine_name, dtype, weighted) -> None:
    """In the frame; the same as one by one."""
    rng = np.random.default_rng(6)
    X = make_samples("normal", 300, 3, dtype, rng)
    weights = make_weights(300, rng) if weighted else None
    engine = create_engine(engine_name, X, weights)
    samples = in_frame(engine.frame, X)
    squares = engine.nearest_squares(samples[:4])
    points = places(samples, rng)
    found = engine.attracted(points, squares)
    reductions = np.ldexp(engine.reductions(points, squares), 2 * engine.frame.exponent)
    assert_allclose(found.reductions, reductions, rtol=1e-12)
    assert_array_equal(found.means, engine.attracted_means(points, squares))
    nearer = squared_distances(points, samples) * (1.0 + 1e-12) < squares
    expected = nearer @ (np.ones(300) if weights is None else weights)
    # Samples that are equally far may or may not be attracted.
    assert_allclose(found.weights[60:], expected[60:], rtol=1e-12)


@paired
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_sums_are_those_of_the_clusters(engine_name, dtype, weighted, kind) -> None:
    """From nothing, from the sums of near and far centres and from a refinement; also of none."""
    if kind == "sparse" and engine_name == "reference":
        pytest.skip("dense samples only")
    rng = np.random.default_rng(7)
    X = make_samples("normal", 300, 4, dtype, rng)
    weights = make_weights(300, rng) if weighted else None
    engine = create_engine(engine_name, sp.csr_array(X) if kind == "sparse" else X, weights)
    samples = engine.rows(np.arange(300))
    given_weights = np.ones(300) if weights is None else weights
    centers = samples[:6].copy()
    (refinement,) = engine.refine([Order(centers)])
    for handle in (None, refinement.handle):
        parent = handle
        for step in (0.0, 1e-3, 0.3, 50.0):
            moved = centers.copy()
            moved[0] += step
            found = engine.cluster_sums(moved, parent)
            parent = found.handle
            away = squared_distances(samples, moved)
            owned = np.eye(6)[away.argmin(axis=1)] * given_weights[:, None]
            assert_allclose(found.weights, owned.sum(axis=0), rtol=1e-12)
            assert_allclose(found.sums, owned.T @ samples, rtol=1e-9, atol=1e-9)
            assert found.inertia == pytest.approx(given_weights @ away.min(axis=1), rel=1e-9)


@paired
def test_squares_are_those_of_the_nearest_centre(engine_name, dtype, weighted) -> None:
    """In the user's order, and zero for samples without weight."""
    rng = np.random.default_rng(4)
    X = make_samples("blobs", 500, 3, dtype, rng)
    weights = make_weights(500, rng) if weighted else None
    engine = create_engine(engine_name, X, weights)
    samples = in_frame(engine.frame, X)
    centers = samples[:7] + 0.01
    expected = squared_distances(samples, centers).min(axis=1)
    if weights is not None:
        expected[weights == 0.0] = 0.0
        assert (expected == 0.0).any()
    assert_allclose(engine.nearest_squares(centers), expected, rtol=1e-12)


def test_rows_are_samples_in_the_frame(engine_name, dtype) -> None:
    X = make_samples("offset", 200, 3, dtype, np.random.default_rng(0))
    engine = create_engine(engine_name, X, None)
    chosen = np.array([7, 0, 199, 7])
    assert_array_equal(engine.rows(chosen), in_frame(engine.frame, X)[chosen])
    assert engine.dtype == dtype


# ---- the cpu engine ------------------------------------------------------------------------------


def answers(engine, centers, points):
    squares = engine.nearest_squares(centers)
    # Centres are among the points: samples that are equally far from them must not be torn.
    means = engine.attracted_means(points, squares * (1.0 - 1e-12))
    return engine.reductions(points, squares), means


@paired
@pytest.mark.usefixtures("eager_threads", "_compiled_kernels")
@pytest.mark.parametrize("n_jobs", [2, 5])
def test_answers_do_not_depend_on_the_number_of_threads(dtype, weighted, n_jobs) -> None:
    """More threads than tiles of points, and fewer."""
    rng = np.random.default_rng(1)
    X = make_samples("normal", 700, 4, dtype, rng)
    weights = make_weights(700, rng) if weighted else None
    alone, together = (create_engine("cpu", X, weights, n_jobs=jobs) for jobs in (1, n_jobs))
    samples = in_frame(alone.frame, X)
    for points in (samples, samples[:3]):
        for one, other in zip(
            answers(alone, samples[:5], points), answers(together, samples[:5], points), strict=True
        ):
            assert one.tobytes() == other.tobytes()


@paired
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_a_point_gets_the_same_answer_in_any_company(kind, dtype, weighted) -> None:
    """To the last bit, so that a point that has arrived is known by its mean."""
    rng = np.random.default_rng(2)
    X = make_samples("normal", 400, 5, dtype, rng) * (rng.random((400, 5)) < 0.6)
    weights = make_weights(400, rng) if weighted else None
    engine = create_engine("cpu", sp.csr_array(X) if kind == "sparse" else X, weights)
    samples = engine.rows(np.arange(400))
    squares = engine.nearest_squares(samples[:4])
    points = places(samples, rng)
    means = engine.attracted_means(points, squares)
    for i in rng.integers(len(points), size=30):
        assert engine.attracted_means(points[i : i + 1], squares).tobytes() == means[i].tobytes()


@paired
def test_sparse_samples_answer_as_dense_ones(dtype, weighted) -> None:
    rng = np.random.default_rng(3)
    X = (make_samples("normal", 300, 20, dtype, rng)) * (rng.random((300, 20)) < 0.3)
    weights = make_weights(300, rng) if weighted else None
    sparse = create_engine("cpu", sp.csr_array(X), weights)
    dense = create_engine("cpu", X, weights, frame=sparse.frame)
    points = places(dense.rows(np.arange(300)), rng)
    assert_array_equal(sparse.rows(np.arange(300)), dense.rows(np.arange(300)))
    for one, other in zip(
        answers(sparse, points[:6], points), answers(dense, points[:6], points), strict=True
    ):
        assert_allclose(one, other, rtol=1e-9, atol=1e-12)
