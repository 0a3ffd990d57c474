"""Steps of the newer baselines on the CPU engine: the same as slow and obvious ones."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from evomeans.engines import Order
from evomeans.engines.protocol import LocalSearch
from lab.baselines.engines import create_engine
from problems import make_weights, paired

N, D = 120, 4


def make_problem(seed: int, weighted: bool, dtype=np.float64):
    """Make samples with many zeros, some of them equal, and weights, some of them zero."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.7)
    X[-10:] = X[:10]
    return X.astype(dtype), make_weights(N, rng) if weighted else None, rng


def both_engines(X, weights):
    """Return the engine under test, and its oracle."""
    return create_engine("cpu", X, weights), create_engine("reference", X, weights)


def sum_of_squares(X, labels, weights=None) -> float:
    """Return that of clusters around their means."""
    weights = np.ones(len(X)) if weights is None else weights
    total = 0.0
    for j in np.unique(labels[weights > 0]):
        members = (labels == j) & (weights > 0)
        mean = np.average(X[members], axis=0, weights=weights[members])
        total += float(weights[members] @ ((X[members] - mean) ** 2).sum(axis=1))
    return total


@paired
@pytest.mark.parametrize("k", [1, 2, 7, 25])
def test_two_closest(k, weighted, dtype) -> None:
    X, weights, rng = make_problem(k, weighted, dtype)
    cpu, reference = both_engines(X, weights)
    centers = cpu.rows(rng.choice(N, k, replace=False)) + 1e-3
    for found, expected in zip(
        cpu.two_closest(centers), reference.two_closest(centers), strict=True
    ):
        assert_allclose(found, expected, rtol=1e-9)


@paired
@pytest.mark.parametrize("k", [1, 2, 7, 25])
def test_gains_of_swaps(k, weighted, dtype) -> None:
    X, weights, rng = make_problem(10 + k, weighted, dtype)
    cpu, reference = both_engines(X, weights)
    centers = cpu.rows(rng.choice(N, k, replace=False)) + 1e-3
    for quantile in (0.0, 0.3, 0.999):
        row, gains = cpu.swap_gains(centers, quantile)
        expected_row, expected = reference.swap_gains(centers, quantile)
        assert row == expected_row
        assert_allclose(gains, expected, rtol=1e-6, atol=1e-8)


def test_gains_are_those_of_a_step_of_kmeans() -> None:
    """By brute force, from the labels and the means alone."""
    X, _, rng = make_problem(3, weighted=False)
    engine = create_engine("cpu", X, None)
    centers = X[rng.choice(N, 6, replace=False)] + 0.01
    row, gains = engine.swap_gains(engine.frame.encode(centers), 0.4)

    def after_a_step(places) -> float:
        return sum_of_squares(X, ((X[:, None] - places) ** 2).sum(axis=2).argmin(axis=1))

    for j in range(6):
        swapped = centers.copy()
        swapped[j] = X[row]
        assert gains[j] == pytest.approx(after_a_step(centers) - after_a_step(swapped), abs=1e-9)


@paired
@pytest.mark.parametrize("factor", [1.0, 1.2, 1.5])
@pytest.mark.parametrize("k", [1, 2, 9])
def test_moves_by_a_threshold(k, factor, weighted, dtype) -> None:
    """Labels exactly, and means up to rounding."""
    X, weights, rng = make_problem(20 + k, weighted, dtype)
    cpu, reference = both_engines(X, weights)
    labels = rng.integers(k, size=N).astype(np.int32)
    order = rng.permutation(N)
    (own, means), (expected, centers) = (
        engine.threshold_moves(labels, k, order, factor) for engine in (cpu, reference)
    )
    assert_array_equal(own, expected)
    assert_allclose(means, centers, atol=1e-9)
    assert k == 1 or (own != labels).any()


def test_moves_without_a_threshold_are_hartigans(weighted) -> None:
    """Every pass lowers the sum of squares until none moves a sample: then no single move pays."""
    X, weights, rng = make_problem(5, weighted)
    engine = create_engine("cpu", X, weights)
    labels = rng.integers(6, size=N).astype(np.int32)
    values = [sum_of_squares(X, labels, weights)]
    for _ in range(50):
        before = labels
        labels, centers = engine.threshold_moves(labels, 6, rng.permutation(N), 1.0)
        if (labels == before).all():
            break
        values.append(sum_of_squares(X, labels, weights))
    assert (labels == before).all()
    assert len(values) > 2
    assert (np.diff(values) < 0.0).all()
    for i, j in product(range(N), range(6)):
        moved = labels.copy()
        moved[i] = j
        assert sum_of_squares(X, moved, weights) >= values[-1] * (1.0 - 1e-9)
    # The engine's own single moves find nothing either.
    (refined,) = engine.refine([Order(centers, local_search=LocalSearch(single_moves=True))])
    assert refined.inertia == pytest.approx(values[-1], rel=1e-9)


def test_a_threshold_accepts_worse_moves() -> None:
    """Between one and one and a half times the saving."""
    X = np.array([[0.0], [1.0], [1.95], [3.1], [4.0]])
    engine = create_engine("cpu", X, None)
    labels, order = np.array([0, 0, 0, 1, 1], np.int32), np.array([2])
    stays, _ = engine.threshold_moves(labels, 2, order, 1.0)
    moves, _ = engine.threshold_moves(labels, 2, order, 1.5)
    assert_array_equal(stays, labels)
    assert_array_equal(moves, [0, 0, 1, 1, 1])
    assert sum_of_squares(X, moves) > sum_of_squares(X, labels)


@paired
@pytest.mark.parametrize("k", [1, 2, 12])
def test_draws_from_a_pool(k, weighted, dtype) -> None:
    """The same points, also where the pool has copies, and points without a chance."""
    X, weights, rng = make_problem(30 + k, weighted, dtype)
    cpu, reference = both_engines(X, weights)
    pool = 0.3 * rng.normal(size=(40, D))
    pool[30:] = pool[:10]
    chances = rng.random(40) * (rng.random(40) < 0.8)
    for _ in range(5):
        uniforms = rng.random((k, 3))
        drawn = cpu.seed_from(pool, chances, uniforms)
        assert_array_equal(drawn, reference.seed_from(pool, chances, uniforms))
        assert chances[drawn].all()
        assert len(np.unique(pool[drawn], axis=0)) == k


def test_a_pool_with_too_few_points() -> None:
    X, _, rng = make_problem(7, weighted=False)
    engine = create_engine("cpu", X, None)
    drawn = engine.seed_from(np.zeros((3, D)), np.ones(3), rng.random((5, 2)))
    assert len(drawn) == 5


def test_sparse_rows_do_the_same(weighted) -> None:
    """As dense ones; the frames differ by a shift, so that centres are the same in data units."""
    X, weights, rng = make_problem(8, weighted)
    dense, sparse = create_engine("cpu", X, weights), create_engine("cpu", sp.csr_array(X), weights)
    centers = X[rng.choice(N, 6, replace=False)] + 0.01
    (row, gains), (other_row, other_gains) = (
        engine.swap_gains(engine.frame.encode(centers), 0.7) for engine in (dense, sparse)
    )
    assert row == other_row
    assert_allclose(gains, other_gains, atol=1e-9)
    labels, order = dense.assign(dense.frame.encode(centers))[0], rng.permutation(N)
    (own, means), (other, other_means) = (
        engine.threshold_moves(labels, 6, order, 1.3) for engine in (dense, sparse)
    )
    assert_array_equal(own, other)
    assert_allclose(dense.frame.decode(means), sparse.frame.decode(other_means), atol=1e-9)
    pool, uniforms = rng.normal(size=(30, D)), rng.random((6, 3))
    drawn = [
        engine.seed_from(engine.frame.encode(pool), np.ones(30), uniforms)
        for engine in (dense, sparse)
    ]
    assert_array_equal(*drawn)
