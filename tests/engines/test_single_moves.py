"""Hartigan's moves: no single sample can change its cluster for the better, on every engine."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array

from evomeans.engines import Order, create_engine
from evomeans.engines.protocol import LocalSearch
from limits import time_limit
from oracles import assert_fixed_point, assert_true_state, largest_gain
from problems import Problem, offspring, paired, problems, without_shrinking

MOVES = LocalSearch(single_moves=True)
MOVING = pytest.mark.parametrize("moving_engine", ["reference", "cpu"])


# Compiled before the time limits of single examples begin to count.
pytestmark = pytest.mark.usefixtures("_compiled_kernels")


def moving(starts: list[Order]) -> list[Order]:
    return [replace(start, local_search=MOVES) for start in starts]


@paired
@MOVING
@settings(without_shrinking, max_examples=15)
@given(st.data())
def test_no_single_move_is_left_and_it_is_a_fixed_point_of_kmeans(
    moving_engine, dtype, weighted, data
) -> None:
    """By brute force over all moves, on all kinds of samples."""
    problem = data.draw(problems(dtype, weighted))
    with time_limit(20):
        engine = create_engine(moving_engine, problem.X, problem.weights)
        (start,) = moving(problem.starts(engine))
        (result,) = engine.refine([start])
        assert_fixed_point(engine, problem, result)
        if len(problem.X) <= 60 and (result.cluster_weights > 0).all():
            assert largest_gain(engine, problem, result.centers) <= 1e-9


@pytest.mark.parametrize("d", [2, 6])
def test_no_single_move_is_left_among_samples_of_many_tiles(d, weighted) -> None:
    """Also after children have inherited what was known of their parents."""
    rng = np.random.default_rng(d)
    X = rng.normal(size=(200, d))
    weights = rng.integers(0, 4, size=200).astype(float) if weighted else None
    problem = Problem(X, weights, 15, "samples", 0)
    engine = create_engine("cpu", X, weights)
    mother, father = engine.refine(moving(problem.starts(engine, 2)))
    for _ in range(3):
        (child,) = engine.refine(moving([offspring(mother, father, rng)]))
        assert largest_gain(engine, problem, child.centers) <= 1e-9
        assert_true_state(engine, X, child.handle.solution.state, child.centers)
        father, mother = mother, child


@paired
@settings(without_shrinking, max_examples=30)
@given(st.data())
def test_the_cpu_engine_makes_the_moves_of_the_reference_engine(dtype, weighted, data) -> None:
    problem = data.draw(problems(dtype, weighted))
    with time_limit(20):
        engines = [create_engine(name, problem.X, problem.weights) for name in ("cpu", "reference")]
        starts = moving(problem.starts(engines[0], 2))
        for result, expected in zip(*(one.refine(starts) for one in engines), strict=True):
            assert result.inertia == pytest.approx(expected.inertia, rel=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_sparse_samples_move_as_dense_ones_do(weighted) -> None:
    rng = np.random.default_rng(3)
    X = rng.poisson(0.5, size=(150, 12)).astype(float)
    weights = rng.integers(1, 5, size=150).astype(float) if weighted else None
    dense = create_engine("reference", X, weights)
    sparse = create_engine("cpu", csr_array(X), weights)
    for seed in range(5):
        chosen = X[np.random.default_rng(seed).choice(150, 10, replace=False)]
        results = [
            engine.refine([Order(engine.frame.encode(chosen), local_search=MOVES)])[0]
            for engine in (sparse, dense)
        ]
        assert results[0].inertia == pytest.approx(results[1].inertia, rel=1e-9)
        plain = sparse.refine([Order(sparse.frame.encode(chosen))])[0]
        assert results[0].inertia <= plain.inertia


@MOVING
@pytest.mark.parametrize(("weight", "expected", "sizes"), [(1.0, 4.5, [1, 2]), (9.0, 8.0, [2, 9])])
def test_a_fixed_point_of_kmeans_that_is_none_of_hartigans(
    moving_engine, weight, expected, sizes
) -> None:
    """0, 4 | 7 is one of K-means; 4 leaves 0 for 7, unless the sample there is heavy."""
    X, weights = np.array([[0.0], [4.0], [7.0]]), np.array([1.0, 1.0, weight])
    engine = create_engine(moving_engine, X, weights)
    centers = engine.frame.encode(np.array([[2.0], [7.0]]))
    (plain,) = engine.refine([Order(centers)])
    (moved,) = engine.refine([Order(centers, local_search=MOVES)])
    assert plain.inertia == pytest.approx(8.0)
    assert moved.inertia == pytest.approx(expected)
    assert_array_equal(np.sort(moved.cluster_weights), sizes)


@pytest.mark.parametrize("exponent", [-1000, -300, -130, 130, 300, 900])
def test_the_size_of_weights_does_not_matter(exponent) -> None:
    """Far outside of single precision, too."""
    rng = np.random.default_rng(5)
    X, weights = rng.normal(size=(300, 3)), rng.integers(1, 5, size=300).astype(float)
    inertias = []
    for factor in (1.0, 2.0**exponent):
        engine = create_engine("cpu", X, factor * weights)
        (result,) = engine.refine([Order(engine.frame.encode(X[:25]), local_search=MOVES)])
        inertias.append(result.inertia / factor)
    assert inertias[0] == pytest.approx(inertias[1], rel=1e-12)


@MOVING
def test_rounding_moves_nobody_back_and_forth(moving_engine) -> None:
    """Near-duplicates, some of which weigh nearly all: distances as small as means are exact."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(60, 2)), 3, axis=0) + 1e-6 * rng.normal(size=(180, 2))
    weights = np.where(rng.random(180) < 0.05, 1e12, rng.random(180))
    engine = create_engine(moving_engine, X, weights)
    for seed in range(30 if moving_engine == "cpu" else 2):
        chosen = X[np.random.default_rng(seed).choice(180, 40, replace=False)]
        (result,) = engine.refine([Order(engine.frame.encode(chosen), local_search=MOVES)])
        assert result.n_iter < 1000


@MOVING
def test_moves_only_ever_lower_the_inertia(moving_engine) -> None:
    X, lower = np.random.default_rng(0).normal(size=(120, 3)), 0
    engine = create_engine(moving_engine, X, None)
    for start in Problem(X, None, 12, "samples", 0).starts(engine, 5):
        (plain,), (moved,) = engine.refine([start]), engine.refine(moving([start]))
        assert moved.inertia <= plain.inertia
        lower += moved.inertia < 0.999 * plain.inertia
    assert lower >= 3
