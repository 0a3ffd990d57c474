"""The course of a refinement, step by step; momentum, and refinements that are given up."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array

from evomeans.engines import Engine, create_engine
from evomeans.engines.course import (
    EARLIEST,
    PLAIN_STEPS,
    AbandonRule,
    Assign,
    Begin,
    ClusterMeans,
    Descend,
    IsOnSamples,
    Lead,
    Level,
    Momentum,
    Relocate,
    Snap,
    Swap,
    course,
)
from evomeans.engines.protocol import Ability, LocalSearch, Order, Refinement
from evomeans.engines.rules import MAX_REPAIRS, repair_draw
from oracles import assert_fixed_point, assert_same_bits, assert_same_solution
from problems import MOMENTUM, Problem, offspring, overlapping, with_momentum

FULL = np.ones(3)
SWAPS = LocalSearch(single_moves=True, swaps=5)


def level(inertia: float = 9.0, weights=FULL) -> Level:
    return Level(inertia, np.asarray(weights, dtype=float))


def follow(start: Order, *answers, reached=None):
    """Return the steps of a course and its end, given the answers to all but Begin and Relocate."""
    steps, given = [], iter(answers)
    asking = course(start, total_weight=3.0, reached=reached)
    answer = None
    while True:
        try:
            step = asking.send(answer)
        except StopIteration as end:
            assert next(given, None) is None, "not all answers were asked for"
            return steps, end.value
        steps.append(step)
        answer = None if isinstance(step, Begin | Relocate) else next(given)


def start(**changes) -> Order:
    return Order(np.zeros((3, 1)), alpha=0.25, quantile=0.125, **changes)


def test_k_means_alone() -> None:
    steps, end = follow(start(), level(7.0))
    assert steps == [Begin(), Descend()]
    assert end.inertia == 7.0


def test_a_relocation_comes_before_k_means() -> None:
    steps, _ = follow(start(removed=2), level())
    assert steps == [Begin(), Relocate(2, 0.25, 0.125), Descend()]


def test_an_engine_may_run_k_means_before_it_asks() -> None:
    """Then the course continues from there."""
    steps, end = follow(start(removed=2, local_search=SWAPS), False, reached=level(7.0))
    assert steps == [Swap()]
    assert end.inertia == 7.0
    steps, end = follow(start(), level(6.0), reached=level(7.0, [1, 0, 1]))
    assert steps == [Relocate(1, *repair_draw(0.25, 0.125, 1)), Descend()]
    assert end.inertia == 6.0


def test_empty_clusters_are_refilled_one_by_one_and_k_means_follows() -> None:
    """The draws are those of the rule, counted over the whole refinement."""
    steps, end = follow(
        start(), level(9.0, [1, 0, 0]), level(8.0, [2, 1, 0]), level(7.0, [1, 1, 1])
    )
    draws = [repair_draw(0.25, 0.125, repair) for repair in (1, 2, 3)]
    assert steps == [
        Begin(),
        Descend(),
        Relocate(1, *draws[0]),
        Relocate(2, *draws[1]),
        Descend(),
        Relocate(2, *draws[2]),
        Descend(),
    ]
    assert end.inertia == 7.0


def test_refilling_ends_after_a_fixed_number_of_repairs() -> None:
    always_empty = [level(9.0, [1, 1, 0])] * (MAX_REPAIRS * 3 + 1)
    steps, _ = follow(start(), *always_empty)
    assert sum(isinstance(step, Relocate) for step in steps) == MAX_REPAIRS * 3


@pytest.mark.parametrize("weights", [FULL, [1, 2, 0]])
def test_centres_are_snapped_where_all_samples_sit_on_them(weights) -> None:
    """Then empty clusters cannot be helped; the last answer is the end."""
    asked = [True, True] if not np.all(weights) else [True]
    steps, end = follow(start(), level(0.0, weights), *asked, level(0.0, [3, 0, 0]))
    assert steps == [Begin(), Descend(), *[IsOnSamples() for _ in asked], Snap()]
    assert end.weights.tolist() == [3, 0, 0]


def test_a_small_inertia_that_is_no_rounding_is_left_alone() -> None:
    steps, _ = follow(start(), level(1e-21), False)
    assert steps == [Begin(), Descend(), IsOnSamples()]


def test_swaps_follow_and_k_means_goes_over_all_samples_after_them() -> None:
    steps, end = follow(start(local_search=SWAPS), level(9.0), True, level(8.0))
    assert steps == [Begin(), Descend(), Swap(), Descend()]
    assert end.inertia == 8.0


def test_without_a_success_swaps_change_nothing() -> None:
    steps, end = follow(start(local_search=SWAPS), level(9.0), False)
    assert steps == [Begin(), Descend(), Swap()]
    assert end.inertia == 9.0


def test_if_rounding_made_swaps_worse_the_start_is_refined_again_without_them() -> None:
    answers = level(9.0), True, level(9.5), level(9.0)
    steps, end = follow(start(removed=1, local_search=SWAPS), *answers)
    assert steps == [
        Begin(),
        Relocate(1, 0.25, 0.125),
        Descend(),
        Swap(),
        Descend(),
        Begin(),
        Relocate(1, 0.25, 0.125),
        Descend(),
    ]
    assert end.inertia == 9.0


def test_limited_steps_have_no_swaps() -> None:
    steps, _ = follow(start(local_search=LocalSearch(max_iter=2, swaps=5)), level())
    assert steps == [Begin(), Descend()]


# ---- momentum ------------------------------------------------------------------------------------


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


@pytest.mark.usefixtures("eager_threads", "_compiled_kernels")
def test_any_number_of_threads_gives_the_same_bits() -> None:
    X, weights = overlapping(20_000, 4, weighted=True)
    problem, answers = Problem(X, weights, 6, "samples", 4), []
    for n_jobs in (1, 3):
        engine = create_engine("cpu", X, weights, n_jobs=n_jobs)
        (start,) = problem.starts(engine)
        answers += engine.refine([replace(start, local_search=MOMENTUM)])
    assert_same_bits(*answers)
    assert answers[0].n_iter == answers[1].n_iter


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


# ---- refinements that are given up ---------------------------------------------------------------


def explained(result: Refinement) -> float:
    return float(result.cluster_weights @ np.sum(result.centers**2, axis=1))


def started(engine: Engine, X, weights=None) -> Order:
    (start,) = Problem(X, weights, 6, "samples", 0).starts(engine)
    return replace(start, local_search=MOMENTUM)


def test_what_centres_explain_and_the_inertia_make_a_constant(weighted) -> None:
    """Whatever the number of clusters."""
    X, weights = overlapping(300, 7, weighted)
    engine = create_engine("reference", X, weights)
    solutions = [Problem(X, weights, k, "samples", 0).starts(engine)[0] for k in (2, 9)]
    totals = [
        explained(one) + engine.frame.inertia_in_frame(one.inertia)
        for one in engine.refine(solutions)
    ]
    assert totals[0] == pytest.approx(totals[1], rel=1e-12)


def test_one_that_is_deep_enough_is_never_given_up(engine_name, weighted) -> None:
    """Its bits are those of one that need not get anywhere."""
    X, weights = overlapping(900, 0, weighted)
    engine = with_momentum(engine_name, X, weights)
    start = started(engine, X, weights)
    (free,) = engine.refine([start])
    (bound,) = engine.refine([replace(start, least_explained=0.5 * explained(free))])
    assert not bound.is_given_up
    assert_same_bits(bound, free)


def test_a_hopeless_one_is_given_up_after_as_many_steps_on_every_engine(engine_name) -> None:
    """And takes none of the others of its batch with it."""
    X, _ = overlapping(900, 0)
    engine, reference = with_momentum(engine_name, X), create_engine("reference", X, None)
    start = started(engine, X)
    hopeless = replace(start, least_explained=2.0 * explained(engine.refine([start])[0]))
    ended, given_up = engine.refine([start, hopeless])
    assert not ended.is_given_up
    assert given_up.is_given_up
    assert math.isinf(given_up.inertia)
    assert given_up.n_iter == reference.refine([hopeless])[0].n_iter < ended.n_iter


@pytest.mark.usefixtures("eager_threads", "_compiled_kernels")
def test_threads_do_not_matter() -> None:
    X, _ = overlapping(20_000, 4)
    answers = []
    for n_jobs in (1, 3):
        engine = create_engine("cpu", X, None, n_jobs=n_jobs)
        start = started(engine, X)
        least = 1.05 * explained(engine.refine([start])[0])
        answers += engine.refine([replace(start, least_explained=least)])
    assert answers[0].is_given_up
    assert answers[0].n_iter == answers[1].n_iter


@pytest.mark.usefixtures("_compiled_kernels")
def test_swaps_and_plain_k_means_go_on() -> None:
    X, _ = overlapping(500, 1)
    engine = create_engine("cpu", X, None)
    start = replace(started(engine, X), least_explained=1e300)
    for local_search in (LocalSearch(), LocalSearch(momentum=True, swaps=2)):
        (result,) = engine.refine([replace(start, local_search=local_search)])
        assert not result.is_given_up


# ---- the rule itself -------------------------------------------------------------------------


def judged(values: list[float], least: float) -> list[bool]:
    """Return what is said of one centre whose clusters explain these values."""
    rule, one = AbandonRule(least), np.ones(1)
    # With the centre at 1 and the mean at m, 2m − 1 is explained.
    return [rule.is_hopeless(one[:, None], np.full((1, 1), (v + 1) / 2), one) for v in values]


def test_nothing_is_said_in_the_beginning() -> None:
    assert judged([1.0] * EARLIEST, 2.0) == [False] * (EARLIEST - 1) + [True]


def test_as_long_as_it_gains_much_there_is_hope() -> None:
    """After ten steps of one each, the last five have gained five, and may twice do so again."""
    gains = [1.0 + step for step in range(20)]
    assert not any(judged(gains, 20.0))
    assert judged(gains, 20.5)[EARLIEST - 1]


def test_a_step_uphill_is_no_gain() -> None:
    values = [5.0] * (EARLIEST - 1) + [4.0]
    assert not judged(values, 4.0)[-1]
    assert judged(values, 4.5)[-1]
