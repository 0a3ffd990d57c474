"""K-means with momentum: the same on every engine, to fixed points, in fewer iterations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array

from evomeans.engines import Order, create_engine
from evomeans.engines.course import (
    PLAIN_STEPS,
    Assign,
    Begin,
    ClusterMeans,
    Descend,
    Lead,
    Level,
    Momentum,
    course,
)
from evomeans.engines.protocol import Ability, LocalSearch
from oracles import assert_fixed_point, assert_same_bits, assert_same_solution
from problems import MOMENTUM, Problem, offspring, overlapping, with_momentum


def test_refinements_are_fixed_points_of_k_means(engine_name, weighted) -> None:
    X, weights = overlapping(900, 0, weighted)
    engine, problem = with_momentum(engine_name, X, weights), Problem(X, weights, 6, "samples", 0)
    for start in problem.starts(engine, 3):
        (result,) = engine.refine([replace(start, local_search=MOMENTUM)])
        assert_fixed_point(engine, problem, result)
        (again,) = engine.refine([Order(result.centers)])
        assert_array_equal(again.centers, result.centers)


def test_founders_and_offspring_equal_the_references(fast_engine_name, weighted) -> None:
    """With relocated centres, and with and without a parent's handle."""
    X, weights = overlapping(500, 1, weighted)
    engine, reference = (
        with_momentum(fast_engine_name, X, weights),
        create_engine("reference", X, weights),
    )
    problem, rng = Problem(X, weights, 5, "samples", 1), np.random.default_rng(1)
    starts = [replace(one, local_search=MOMENTUM) for one in problem.starts(engine, 2)]
    mother, father = engine.refine(starts)
    for result, expected in zip((mother, father), reference.refine(starts), strict=True):
        assert_same_solution(result, expected)
    for _ in range(3):
        start = replace(offspring(mother, father, rng), local_search=MOMENTUM)
        (expected,) = reference.refine([start])
        for result in engine.refine([start, replace(start, parent=None)]):
            assert_same_solution(result, expected)
        mother, father = result, mother


def test_empty_clusters_are_refilled(engine_name) -> None:
    """All centres but one begin empty; none drifts away with its momentum."""
    X, _ = overlapping(400, 2)
    engine = with_momentum(engine_name, X)
    centers = np.tile(engine.samples_at(np.array([0.5])), (5, 1))
    (result,) = engine.refine([Order(centers, 0.5, 0.3, local_search=MOMENTUM)])
    assert (result.cluster_weights > 0).all()
    assert_fixed_point(engine, Problem(X, None, 5, "samples", 2), result)


def test_a_batch_gives_the_same_bits_as_one_by_one(engine_name) -> None:
    X, weights = overlapping(600, 3, weighted=True)
    engine, problem = with_momentum(engine_name, X, weights), Problem(X, weights, 5, "samples", 3)
    # One of them without: it waits for none of the others.
    starts = [replace(one, local_search=MOMENTUM) for one in problem.starts(engine, 3)]
    starts[1] = replace(starts[1], local_search=LocalSearch())
    for start, result in zip(starts, engine.refine(starts), strict=True):
        assert_same_bits(engine.refine([start])[0], result)


@pytest.mark.usefixtures("_compiled_kernels")
def test_far_fewer_iterations_where_clusters_overlap() -> None:
    """And solutions that are as deep, on average."""
    X, _ = overlapping(30_000, 5)
    engine, problem = create_engine("cpu", X, None), Problem(X, None, 10, "samples", 5)
    starts = problem.starts(engine, 6)
    plain = engine.refine(starts)
    fast = engine.refine([replace(one, local_search=MOMENTUM) for one in starts])
    assert sum(one.n_iter for one in fast) < 0.6 * sum(one.n_iter for one in plain)
    assert np.mean([one.inertia for one in fast]) < 1.001 * np.mean([one.inertia for one in plain])


@pytest.mark.usefixtures("_compiled_kernels")
def test_single_moves_follow() -> None:
    X, _ = overlapping(300, 6)
    engine, problem = create_engine("cpu", X, None), Problem(X, None, 12, "samples", 6)
    (start,) = problem.starts(engine)
    both = LocalSearch(momentum=True, single_moves=True)
    (result,) = engine.refine([replace(start, local_search=both)])
    (again,) = engine.refine([Order(result.centers, local_search=LocalSearch(single_moves=True))])
    assert_array_equal(again.centers, result.centers)


def test_sparse_samples_have_none() -> None:
    engine = create_engine("cpu", csr_array(np.eye(4)), None)
    assert Ability.MOMENTUM not in engine.abilities
    with pytest.raises(NotImplementedError, match="cannot do momentum"):
        engine.refine([Order(np.eye(4)[:2], local_search=MOMENTUM)])


# ---- the rule itself -------------------------------------------------------------------------


def test_a_quadratic_valley_takes_the_square_root_of_the_iterations() -> None:
    """Means that close a hundredth of the distance each: 0.99ⁿ without momentum."""
    momentum, y, n_steps = Momentum(), np.ones((1, 1)), 0
    while abs(y[0, 0]) > 1e-4:
        y = momentum.next(y, 0.99 * y, np.ones(1))
        n_steps += 1
    assert n_steps < 0.25 * np.log(1e-4) / np.log(0.99)


def test_it_begins_without_and_ends_at_a_fixed_point() -> None:
    momentum = Momentum()
    for step in range(PLAIN_STEPS):
        centers, means = np.full((2, 1), float(step)), np.full((2, 1), step + 1.0)
        assert_array_equal(momentum.next(centers, means, np.ones(2)), means)
    beyond = momentum.next(means, means + 1.0, np.ones(2))
    beyond = momentum.next(beyond, means + 2.0, np.ones(2))
    assert (beyond > means + 2.0).all()
    # Nothing has changed: next are the means themselves, and if these are their own means, the end.
    assert_array_equal(momentum.next(beyond, means + 2.0, np.ones(2)), means + 2.0)
    assert momentum.next(means + 2.0, means + 2.0, np.ones(2)) is None


def test_an_empty_cluster_stays() -> None:
    momentum, weights = Momentum(), np.array([1.0, 0.0])
    centers = np.zeros((2, 1))
    for step in range(PLAIN_STEPS + 5):
        centers = momentum.next(centers, np.array([[step + 1.0], centers[1]]), weights)
        assert centers[1] == 0.0


def test_the_course_asks_for_assignments_before_k_means() -> None:
    steps = course(Order(np.zeros((1, 1)), local_search=MOMENTUM), total_weight=1.0)
    assert next(steps) == Begin()
    assert steps.send(None) == Assign(None)
    asked = steps.send(ClusterMeans(np.zeros((1, 1)), np.ones((1, 1)), np.ones(1)))
    assert isinstance(asked, Assign)
    assert_array_equal(asked.centers, np.ones((1, 1)))
    assert steps.send(ClusterMeans(np.ones((1, 1)), np.ones((1, 1)), np.ones(1))) == Descend()
    with pytest.raises(StopIteration):
        steps.send(Level(5.0, np.ones(1)))


def test_an_engine_that_leads_by_itself_is_asked_once() -> None:
    start = Order(np.zeros((1, 1)), local_search=MOMENTUM, least_explained=3.0)
    steps = course(start, total_weight=1.0, leads=True)
    assert [next(steps), steps.send(None), steps.send(None)] == [Begin(), Lead(3.0), Descend()]
    steps = course(start, total_weight=1.0, leads=True)
    assert [next(steps), steps.send(None)] == [Begin(), Lead(3.0)]
    with pytest.raises(StopIteration) as end:
        steps.send(np.ones(1))
    assert end.value.value.inertia == np.inf


def test_there_is_none_with_a_limit_of_steps() -> None:
    limited = LocalSearch(momentum=True, max_iter=3)
    steps = course(Order(np.zeros((1, 1)), local_search=limited), total_weight=1.0)
    assert [next(steps), steps.send(None)] == [Begin(), Descend()]
