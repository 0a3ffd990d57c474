"""CSR samples: the same solutions as their dense copy, without a shift of the frame."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from evomeans.engines import Order, create_engine
from oracles import assert_fixed_point, assert_same_bits, assert_same_solution, in_frame
from problems import Problem, make_weights, offspring


def sparse_samples(n: int, d: int, dtype: type, seed: int, density: float = 0.3):
    """Return a CSR matrix with empty rows and an empty column, and its dense copy."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < density)
    X[:, d // 2] = 0.0
    X = X.astype(dtype)
    return sp.csr_matrix(X), X


@pytest.fixture(
    params=[(60, 3), (500, 12), (1300, 40)], ids=lambda shape: "x".join(map(str, shape))
)
def engines(request, dtype, weighted):
    """Engines over CSR samples and over their dense copy, and the problem they share."""
    n, d = request.param
    S, X = sparse_samples(n, d, dtype, seed=n)
    weights = make_weights(n, np.random.default_rng(d)) if weighted else None
    sparse = create_engine("cpu", S, weights)
    dense = create_engine("cpu", X, weights, frame=sparse.frame)
    return sparse, dense, Problem(X, weights, 6, "samples", n)


def test_the_frame_of_sparse_samples_has_no_shift(engines) -> None:
    sparse, _, problem = engines
    assert_array_equal(sparse.frame.shift, np.zeros(problem.X.shape[1]))


def test_sparse_refinements_are_fixed_points_and_equal_the_dense_ones(engines) -> None:
    """Founders and offspring, with and without a parent's handle."""
    sparse, dense, problem = engines
    rng = np.random.default_rng(0)
    starts = problem.starts(dense, 3)
    parents = sparse.refine(starts)
    for result, expected in zip(parents, dense.refine(starts), strict=True):
        assert_fixed_point(sparse, problem, result)
        assert_same_solution(result, expected)
    mother, father, _ = parents
    for _ in range(5):
        start = offspring(mother, father, rng)
        bare = replace(start, parent=None)
        (child,), (expected,) = sparse.refine([start]), dense.refine([bare])
        assert_fixed_point(sparse, problem, child)
        assert_same_bits(child, sparse.refine([bare])[0])
        assert_same_solution(child, expected)
        mother, father = child, mother


def test_sparse_samples_at_assign_and_distances_equal_the_dense_ones(engines) -> None:
    sparse, dense, problem = engines
    rng = np.random.default_rng(1)
    quantiles = rng.random(9)
    assert_array_equal(sparse.samples_at(quantiles), dense.samples_at(quantiles))
    for k in (1, 7, 70):
        centers = rng.normal(size=(k, problem.X.shape[1])) * 0.2
        centers[0] = in_frame(dense.frame, problem.X)[3]
        (one, inertia), (two, expected) = sparse.assign(centers), dense.assign(centers)
        assert_array_equal(one, two)
        assert inertia == pytest.approx(expected, rel=1e-12)
        assert_allclose(sparse.distances(centers), dense.distances(centers), rtol=1e-9, atol=1e-12)


@pytest.mark.usefixtures("eager_threads")
@pytest.mark.parametrize("n_jobs", [2, 4])
def test_sparse_results_do_not_depend_on_the_number_of_threads(dtype, n_jobs) -> None:
    S, X = sparse_samples(5000, 30, dtype, seed=3)
    problem = Problem(X, None, 8, "samples", 3)
    one, many = create_engine("cpu", S, None), create_engine("cpu", S, None, n_jobs=n_jobs)
    for start in problem.starts(one, 3):
        assert_same_bits(one.refine([start])[0], many.refine([start])[0])


def test_sparse_samples_are_not_modified(dtype) -> None:
    S, _ = sparse_samples(80, 5, dtype, seed=4)
    before = S.copy()
    engine = create_engine("cpu", S, None)
    engine.refine([Order(engine.samples_at(np.array([0.1, 0.5, 0.9])), removed=1)])
    assert_array_equal(S.data, before.data)
    assert_array_equal(S.indices, before.indices)
    assert_array_equal(S.indptr, before.indptr)


def test_all_zero_sparse_samples_end_at_once(dtype) -> None:
    """Nothing stored at all: one distinct sample."""
    engine = create_engine("cpu", sp.csr_matrix((5, 3), dtype=dtype), None)
    (result,) = engine.refine([Order(np.zeros((2, 3)))])
    assert result.inertia == 0.0
    assert sorted(result.cluster_weights) == [0.0, 5.0]


def test_a_sparse_offspring_costs_what_changed(dtype) -> None:
    """Beside a start from nothing, a parent's handle saves most of the distances of a child."""
    rng = np.random.default_rng(5)
    topics = (rng.random((12, 60)) < 0.2) * rng.uniform(3.0, 6.0, size=(12, 60))
    X = topics[rng.integers(12, size=6000)] * rng.uniform(0.9, 1.1, size=(6000, 60))
    engine = create_engine("cpu", sp.csr_matrix(X.astype(dtype)), None)
    (mother,) = engine.refine([Order(engine.samples_at((np.arange(12) + 0.5) / 12))])
    counts = []
    for parent in (None, mother.handle):
        before = engine.comparisons
        engine.refine([Order(mother.centers, 0.0, 0.4, removed=3, parent=parent)])
        counts.append(engine.comparisons - before)
    assert 0 < 2 * counts[1] < counts[0]
