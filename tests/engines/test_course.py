"""The course of a refinement, step by step; momentum, and refinements that are abandoned."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array

from evomeans.engines import create_engine
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
from problems import MOMENTUM, Problem, made, offspring, with_momentum, with_search

SWAPS = {"local_search": LocalSearch(single_moves=True, swaps=5)}
LIMITED = {"local_search": LocalSearch(max_iter=2, swaps=5, momentum=True)}
BEGIN, KMEANS, FIRST = Begin(), Descend(), Relocate(2, 0.25, 0.125)


def level(inertia: float = 9.0, weights=(1, 1, 1)) -> Level:
    return Level(inertia, np.asarray(weights, dtype=float))


def repaired(cluster: int, repair: int) -> Relocate:
    return Relocate(cluster, *repair_draw(0.25, 0.125, repair))


# What differs from a plain start, the answers to all but Begin and Relocate, and the steps. The
# last answer that is a level is the end.
COURSES = {
    "K-means alone": ({}, [level(7.0)], [BEGIN, KMEANS]),
    "a relocation comes first": ({"removed": 2}, [level()], [BEGIN, FIRST, KMEANS]),
    "empty clusters are refilled one by one, with draws counted over the whole refinement": (
        {},
        [level(9.0, [1, 0, 0]), level(8.0, [2, 1, 0]), level(7.0)],
        [BEGIN, KMEANS, repaired(1, 1), repaired(2, 2), KMEANS, repaired(2, 3), KMEANS],
    ),
    "refilling ends after a fixed number of repairs": (
        {},
        [level(9.0, [1, 1, 0])] * (MAX_REPAIRS * 3 + 1),
        [BEGIN, KMEANS]
        + [step for n in range(MAX_REPAIRS * 3) for step in (repaired(2, n + 1), KMEANS)],
    ),
    "centres are snapped where all samples sit on them": (
        {},
        [level(0.0), True, level(0.0, [3, 0, 0])],
        [BEGIN, KMEANS, IsOnSamples(), Snap()],
    ),
    "empty clusters cannot be helped there": (
        {},
        [level(0.0, [1, 2, 0]), True, True, level(0.0, [3, 0, 0])],
        [BEGIN, KMEANS, IsOnSamples(), IsOnSamples(), Snap()],
    ),
    "a small inertia that is no rounding is left alone": (
        {},
        [level(1e-21), False],
        [BEGIN, KMEANS, IsOnSamples()],
    ),
    "after swaps, K-means goes over all samples": (
        SWAPS,
        [level(9.0), True, level(8.0)],
        [BEGIN, KMEANS, Swap(), KMEANS],
    ),
    "without a success, swaps change nothing": (
        SWAPS,
        [level(9.0), False],
        [BEGIN, KMEANS, Swap()],
    ),
    "if rounding made swaps worse, the start is refined again without them": (
        {"removed": 2, **SWAPS},
        [level(9.0), True, level(9.5), level(9.0)],
        [BEGIN, FIRST, KMEANS, Swap(), KMEANS, BEGIN, FIRST, KMEANS],
    ),
    "limited steps have neither swaps nor momentum": (LIMITED, [level()], [BEGIN, KMEANS]),
}


@pytest.mark.parametrize("name", COURSES)
def test_the_steps_of_a_course(name) -> None:
    changes, answers, expected = COURSES[name]
    start = Order(np.zeros((3, 1)), alpha=0.25, quantile=0.125, **changes)
    asking = course(start, total_weight=3.0)
    given, steps, answer = iter(answers), [], None
    while True:
        try:
            steps.append(asking.send(answer))
        except StopIteration as stop:
            end = stop.value
            break
        answer = None if isinstance(steps[-1], Begin | Relocate) else next(given)
    assert steps == expected
    assert next(given, None) is None, "not all answers were asked for"
    assert end is [one for one in answers if isinstance(one, Level)][-1]


# ---- momentum ------------------------------------------------------------------------------------


def overlapping(n: int, seed: int, k: int = 6, weighted: bool = False) -> Problem:
    """Return a problem in which K-means takes many iterations: there are no clusters."""
    return made(n, 3, k, weighted=weighted, seed=seed)


def test_refinements_are_fixed_points_of_k_means(engine_name, weighted) -> None:
    problem = overlapping(900, 0, weighted=weighted)
    engine = with_momentum(engine_name, problem)
    for result in engine.refine(with_search(problem.starts(engine, 3), MOMENTUM)):
        assert_fixed_point(engine, problem, result)
        (again,) = engine.refine([Order(result.centers)])
        assert_array_equal(again.centers, result.centers)


def test_founders_and_offspring_equal_the_references(fast_engine_name, weighted) -> None:
    """With relocated centres, and with and without a parent's handle."""
    problem, rng = overlapping(500, 1, 5, weighted), np.random.default_rng(1)
    engine, reference = with_momentum(fast_engine_name, problem), problem.engine("reference")
    starts = with_search(problem.starts(engine, 2), MOMENTUM)
    mother, father = engine.refine(starts)
    for result, expected in zip((mother, father), reference.refine(starts), strict=True):
        assert_same_solution(result, expected)
    for _ in range(3):
        start = offspring(mother, father, rng, local_search=MOMENTUM)
        (expected,) = reference.refine([start])
        for result in engine.refine([start, replace(start, parent=None)]):
            assert_same_solution(result, expected)
        mother, father = result, mother


def test_empty_clusters_are_refilled(engine_name) -> None:
    """All centres but one begin empty; none drifts away with its momentum."""
    problem = replace(overlapping(400, 2, 5), start="one point")
    engine = with_momentum(engine_name, problem)
    (result,) = engine.refine(with_search(problem.starts(engine), MOMENTUM))
    assert (result.cluster_weights > 0).all()
    assert_fixed_point(engine, problem, result)


def test_a_batch_gives_the_same_bits_as_one_by_one(engine_name) -> None:
    problem = overlapping(600, 3, 5, weighted=True)
    engine = with_momentum(engine_name, problem)
    # One of them without: it waits for none of the others.
    starts = with_search(problem.starts(engine, 3), MOMENTUM)
    starts[1] = replace(starts[1], local_search=LocalSearch())
    for start, result in zip(starts, engine.refine(starts), strict=True):
        assert_same_bits(engine.refine([start])[0], result)


@pytest.mark.usefixtures("eager_threads", "_compiled_kernels")
def test_any_number_of_threads_gives_the_same_bits() -> None:
    problem = overlapping(20_000, 4, weighted=True)
    engines = [problem.engine("cpu", n_jobs=n_jobs) for n_jobs in (1, 3)]
    starts = with_search(problem.starts(engines[0]), MOMENTUM)
    assert_same_bits(*(engine.refine(starts)[0] for engine in engines))


@pytest.mark.usefixtures("_compiled_kernels")
def test_far_fewer_iterations_where_clusters_overlap() -> None:
    """And solutions that are as deep, on average."""
    problem = overlapping(30_000, 5, 10)
    engine = problem.engine("cpu")
    starts = problem.starts(engine, 6)
    plain, fast = engine.refine(starts), engine.refine(with_search(starts, MOMENTUM))
    assert sum(one.n_iter for one in fast) < 0.6 * sum(one.n_iter for one in plain)
    assert np.mean([one.inertia for one in fast]) < 1.001 * np.mean([one.inertia for one in plain])


@pytest.mark.usefixtures("_compiled_kernels")
def test_single_moves_follow() -> None:
    problem, moves = overlapping(300, 6, 12), LocalSearch(single_moves=True)
    engine = problem.engine("cpu")
    (result,) = engine.refine(with_search(problem.starts(engine), replace(moves, momentum=True)))
    (again,) = engine.refine([Order(result.centers, local_search=moves)])
    assert_array_equal(again.centers, result.centers)


def test_sparse_samples_have_none() -> None:
    engine = create_engine("cpu", csr_array(np.eye(4)), None)
    assert Ability.MOMENTUM not in engine.abilities
    with pytest.raises(NotImplementedError, match="cannot do momentum"):
        engine.refine([Order(np.eye(4)[:2], local_search=MOMENTUM)])


# ---- when a refinement is abandoned --------------------------------------------------------------


def explained(result: Refinement) -> float:
    return float(result.cluster_weights @ np.sum(result.centers**2, axis=1))


def test_what_centres_explain_and_the_inertia_make_a_constant(weighted) -> None:
    """Whatever the number of clusters."""
    problem = overlapping(300, 7, weighted=weighted)
    engine = problem.engine("reference")
    totals = []
    for k in (2, 9):
        (result,) = engine.refine(replace(problem, k=k).starts(engine))
        totals.append(explained(result) + engine.frame.inertia_in_frame(result.inertia))
    assert totals[0] == pytest.approx(totals[1], rel=1e-12)


def test_one_that_is_low_enough_is_never_abandoned(engine_name, weighted) -> None:
    """Its bits are those of one that need not get anywhere."""
    problem = overlapping(900, 0, weighted=weighted)
    engine = with_momentum(engine_name, problem)
    (start,) = with_search(problem.starts(engine), MOMENTUM)
    (free,) = engine.refine([start])
    (bound,) = engine.refine([replace(start, least_explained=0.5 * explained(free))])
    assert not bound.is_given_up
    assert_same_bits(bound, free)


def test_a_hopeless_one_is_abandoned_after_as_many_steps_on_every_engine(engine_name) -> None:
    """And takes none of the others of its batch with it."""
    problem = overlapping(900, 0)
    engine, reference = with_momentum(engine_name, problem), problem.engine("reference")
    (start,) = with_search(problem.starts(engine), MOMENTUM)
    hopeless = replace(start, least_explained=2.0 * explained(engine.refine([start])[0]))
    ended, given_up = engine.refine([start, hopeless])
    assert not ended.is_given_up
    assert given_up.is_given_up
    assert math.isinf(given_up.inertia)
    assert given_up.n_iter == reference.refine([hopeless])[0].n_iter < ended.n_iter


@pytest.mark.usefixtures("eager_threads", "_compiled_kernels")
def test_threads_do_not_matter_to_one_that_is_abandoned() -> None:
    problem, answers = overlapping(20_000, 4), []
    for n_jobs in (1, 3):
        engine = problem.engine("cpu", n_jobs=n_jobs)
        (start,) = with_search(problem.starts(engine), MOMENTUM)
        least = 1.05 * explained(engine.refine([start])[0])
        answers += engine.refine([replace(start, least_explained=least)])
    assert answers[0].is_given_up
    assert answers[0].n_iter == answers[1].n_iter


@pytest.mark.usefixtures("_compiled_kernels")
@pytest.mark.parametrize("local_search", [LocalSearch(), LocalSearch(momentum=True, swaps=2)])
def test_swaps_and_plain_k_means_continue(local_search) -> None:
    problem = overlapping(500, 1)
    engine = problem.engine("cpu")
    (start,) = with_search(problem.starts(engine), local_search)
    assert not engine.refine([replace(start, least_explained=1e300)])[0].is_given_up


def judged(values: list[float], least: float) -> list[bool]:
    """Return what is said of one centre whose clusters explain these values."""
    rule, one = AbandonRule(least), np.ones(1)
    # With the centre at 1 and the mean at m, 2m − 1 is explained.
    return [rule.is_hopeless(one[:, None], np.full((1, 1), (v + 1) / 2), one) for v in values]


def test_there_is_hope_in_the_beginning_and_as_long_as_it_gains_much() -> None:
    """After ten steps of one each, the last five have gained five, and may twice do so again.

    A step uphill is no gain.
    """
    assert judged([1.0] * EARLIEST, 2.0) == [False] * (EARLIEST - 1) + [True]
    gains = [1.0 + step for step in range(20)]
    assert not any(judged(gains, 20.0))
    assert judged(gains, 20.5)[EARLIEST - 1]
    uphill = [5.0] * (EARLIEST - 1) + [4.0]
    assert not judged(uphill, 4.0)[-1]
    assert judged(uphill, 4.5)[-1]


# ---- the rule of momentum ----------------------------------------------------------------------


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
