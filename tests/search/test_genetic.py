"""Exact trajectories of the loop, with an engine, a clock and uniform numbers that are scripted."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from functools import partial
from itertools import chain, repeat

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from evomeans.engines.cpu import CpuEngine
from evomeans.engines.protocol import KMEANS, Ability
from evomeans.search import DEEP, PAPER, Crossing, SearchSettings, StopReason, Strategy, evolve
from evomeans.search.crossover import (
    Child,
    matching_crossover,
    merging_crossover,
    partition_crossover,
)
from evomeans.search.founding import KMeansPlusPlus, RandomSamples
from evomeans.search.plan import SPACING_OF_A_GRID
from evomeans.search.population import different_parents
from evomeans.search.strategy import FIRST_LAG, SMALL_FOR_PARTS
from fakes import ScriptedClock, ScriptedEngine, ScriptedRandom, breeding, refinement

FOUNDERS = [40.0, 10.0, 30.0, 20.0]
FOUNDER_UNIFORMS = [[0.1, 0.15], [0.2, 0.25], [0.3, 0.35], [0.4, 0.45]]


def small(**changes) -> SearchSettings:
    """Π_min = 2, Π_max = 4: four founders."""
    return SearchSettings(**{"min_population": 2, "max_population": 4, **changes})


def run(script, settings=None, *, k=2, uniforms=(), rng=None, initial=(), observers=(), **engine):
    """Evolve on a scripted engine; return the engine and the result."""
    fake = ScriptedEngine(script, **engine)
    rng = ScriptedRandom([*FOUNDER_UNIFORMS, *uniforms]) if rng is None else rng
    result = evolve(
        fake,
        k,
        small() if settings is None else settings,
        rng,
        initial=initial,
        observers=observers,
        clock=fake.clock or ScriptedClock(),
    )
    return fake, result


def inertias(result) -> list[float]:
    return [member.inertia for member in result.population]


# ---- the initial population ------------------------------------------------------------------


def test_the_initial_population_has_max_population_members_from_distinct_random_samples() -> None:
    """Π_max K-means runs from k different samples, α uniform, nothing relocated, no parent."""
    engine, result = run([*FOUNDERS, 5.0], small(max_offspring=1), k=3, n_samples=7)
    founders = engine.starts[:4]
    for start, (alpha, quantile) in zip(founders, FOUNDER_UNIFORMS, strict=True):
        assert (start.alpha, start.quantile) == (alpha, quantile)
        assert (start.removed, start.parent, start.power) == (-1, None, 2)
        slots = start.centers[:, 0] * 7 - 0.5
        np.testing.assert_allclose(slots, np.round(slots), atol=1e-12)
        assert len(set(np.round(slots))) == 3
        assert set(np.round(slots)) <= set(range(7))
    assert len({start.centers.tobytes() for start in founders}) > 1
    assert [record.number for record in result.history] == [0, 0, 0, 0, 1]
    assert [record.population_size for record in result.history][:4] == [1, 2, 3, 4]


def test_founders_can_use_every_sample_when_k_is_n() -> None:
    engine, _ = run([*FOUNDERS, 5.0], small(max_offspring=1), k=5, n_samples=5)
    for start in engine.starts[:4]:
        assert_array_equal(np.sort(start.centers[:, 0]), (np.arange(5) + 0.5) / 5)


def test_all_samples_found_the_population_equally_often() -> None:
    """First centres are uniform over the samples (chi-square, 4·500 draws of 10)."""
    engine, _ = run(
        repeat(1.0),
        SearchSettings(1, 500, max_offspring=1),
        k=4,
        n_samples=10,
        rng=np.random.default_rng(5),
    )
    slots = np.concatenate(engine.sampled)[:, None] * 10 - 0.5
    counts = np.bincount(np.round(slots[:, 0]).astype(int), minlength=10)
    expected = 500 * 4 / 10
    assert len(counts) == 10
    assert np.sum((counts - expected) ** 2 / expected) < 27.9  # χ²(9), p = 0.001


def test_given_solutions_come_first_and_random_ones_fill_up() -> None:
    given = [np.array([[1.0], [2.0]]), np.array([[3.0], [4.0]])]
    engine, result = run([*FOUNDERS, 5.0], small(max_offspring=1), initial=given)
    assert_array_equal(engine.starts[0].centers, given[0])
    assert_array_equal(engine.starts[1].centers, given[1])
    assert len(engine.sampled) == 2
    assert [start.removed for start in engine.starts[:4]] == [-1] * 4
    assert [record.number for record in result.history] == [0, 0, 0, 0, 1]
    made_by = ["given", "given", "random samples", "random samples", "matching"]
    assert [record.made_by for record in result.history] == made_by
    assert [record.founder for record in result.history] == [True] * 4 + [False]


def test_more_given_solutions_than_places_are_all_tried_then_survivors_are_selected() -> None:
    """Six solutions for four places: all refined, the best two go on."""
    given = [np.full((2, 1), float(i)) for i in range(6)]
    engine, result = run([6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.5], small(max_offspring=1), initial=given)
    for i in range(6):
        assert_array_equal(engine.starts[i].centers, given[i])
    assert engine.sampled == []
    assert [record.number for record in result.history] == [0] * 6 + [1]
    assert [record.population_size for record in result.history] == [1, 2, 3, 4, 5, 2, 3]
    assert inertias(result) == [0.5, 1.0, 2.0]


def test_exactly_max_population_given_solutions_all_stay() -> None:
    given = [np.full((2, 1), float(i)) for i in range(4)]
    engine, result = run([*FOUNDERS, 5.0], small(max_offspring=1), initial=given)
    assert engine.sampled == []
    assert [record.population_size for record in result.history] == [1, 2, 3, 4, 2]


def test_the_sequence_of_given_solutions_is_left_as_it_was() -> None:
    given = [np.zeros((2, 1)), np.ones((2, 1))]
    run([*FOUNDERS, 5.0], small(max_offspring=1), initial=given)
    assert len(given) == 2


# ---- offspring -------------------------------------------------------------------------------


def test_an_offspring_is_bred_as_its_uniform_numbers_say() -> None:
    """Tournaments 0|1 → 1 and 2|3 → 3; α = (0.2 + 0.4)/2 + 0.2·(2·0.75 − 1); third centre goes."""
    numbers = breeding(
        coins=[0.9, 0.9, 0.1],
        first=(0.1, 0.3),
        second=(0.6, 0.8),
        step=0.75,
        removed=0.7,
        quantile=0.123,
    )
    settings = small(max_offspring=1, roulette_power=1)
    engine, result = run([*FOUNDERS, 5.0], settings, k=3, uniforms=[numbers])
    start = engine.starts[4]
    # Founder 1 has the centres 10, 11, 12, founder 3 has 30, 31, 32: matched in this order or
    # another of the same cost, so that the third centre is any of founder 3's.
    assert_array_equal(start.centers[:2], [[10.0], [11.0]])
    assert start.centers[2, 0] in (30.0, 31.0, 32.0)
    assert start.parent == "handle 1"
    assert start.alpha == pytest.approx(0.4)
    assert start.removed == 2
    assert start.quantile == 0.123
    assert start.power == 1
    assert result.best.alpha == start.alpha


def test_the_parent_handle_is_of_the_parent_that_gave_more() -> None:
    """With two of three centres from the second parent, its handle and positions are taken."""
    numbers = breeding(coins=[0.1, 0.1, 0.9], first=(0.1, 0.3), second=(0.6, 0.8))
    engine, _ = run([*FOUNDERS, 5.0], small(max_offspring=1), k=3, uniforms=[numbers])
    start = engine.starts[4]
    assert start.parent == "handle 3"
    kept = start.centers == engine.answers[3].centers
    assert np.count_nonzero(kept) == 2
    assert start.centers[~kept] in (10.0, 11.0, 12.0)


@pytest.mark.parametrize(
    ("first", "winner"),
    [
        ((0.0, 0.0), 0),
        ((0.0, 0.25), 1),
        ((0.25, 0.0), 1),
        ((0.5, 0.999), 3),
        ((0.749, 0.0), 2),
        ((0.999, 0.25), 1),
    ],
)
def test_a_tournament_takes_the_better_of_the_two_that_the_numbers_name(first, winner) -> None:
    """With all coins for the first parent the child is the winner itself."""
    numbers = breeding(coins=[0.9, 0.9], first=first, second=first)
    engine, _ = run([*FOUNDERS, 5.0], small(max_offspring=1), uniforms=[numbers])
    assert_array_equal(engine.starts[4].centers, engine.answers[winner].centers)
    assert engine.starts[4].parent == f"handle {winner}"


@pytest.mark.parametrize(
    ("parents", "step", "alpha"),
    [(0.05, 0.0, 0.0), (0.05, 0.25, 0.0), (0.95, 1 - 1e-9, 1.0), (0.95, 0.5, 0.95)],
)
def test_the_child_alpha_is_clipped_to_the_unit_interval(parents, step, alpha) -> None:
    founders = [[parents, 0.0]] * 4
    numbers = breeding(coins=[0.9, 0.9], first=(0.0, 0.0), second=(0.0, 0.0), step=step)
    engine, _ = run(
        [*FOUNDERS, 5.0], small(max_offspring=1), rng=ScriptedRandom([*founders, numbers])
    )
    assert engine.starts[4].alpha == pytest.approx(alpha, abs=1e-12)


def test_the_relocated_centre_is_uniform() -> None:
    """Every one of k centres is chosen equally often (chi-square over 4000 offspring)."""
    settings = SearchSettings(1, 2, max_offspring=4000, patience=4000)
    engine, _ = run(repeat(1.0), settings, k=5, rng=np.random.default_rng(11))
    counts = np.bincount([start.removed for start in engine.starts[2:]], minlength=5)
    assert len(counts) == 5
    assert np.sum((counts - 800) ** 2 / 800) < 18.5  # χ²(4), p = 0.001


def test_offspring_compete_at_once() -> None:
    """The child joins the population before the next tournament, whatever its inertia."""
    settings = SearchSettings(2, 6, max_offspring=2)
    rng = ScriptedRandom(
        [
            *([[0.5, 0.5]] * 6),
            breeding(coins=[0.9, 0.9]),
            breeding(coins=[0.9, 0.9], first=(0.0, 0.0), second=(0.6, 0.6)),
        ]
    )
    engine, _ = run([6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 99.0, 1.0], settings, rng=rng)
    # Seven members exceed six: after the selection the two best (1 and 2) are members 0 and 1.
    assert engine.starts[7].parent == "handle 5"
    settings = SearchSettings(2, 3, max_offspring=3)
    rng = ScriptedRandom(
        [
            *([[0.5, 0.5]] * 3),
            breeding(coins=[0.9, 0.9]),
            breeding(coins=[0.9, 0.9]),
            breeding(coins=[0.9, 0.9], first=(0.99, 0.99), second=(0.99, 0.99)),
        ]
    )
    engine, _ = run([3.0, 2.0, 1.0, 9.0, 50.0, 9.0], settings, rng=rng)
    assert engine.starts[5].parent == "handle 4"


# ---- survivors -------------------------------------------------------------------------------


def test_survivors_are_selected_when_the_population_exceeds_its_maximum() -> None:
    """4 founders; child 1 makes 5 → 2; children 2, 3 make 3, 4; child 4 makes 5 → 2; and so on."""
    script = chain(FOUNDERS, [15.0, 25.0, 35.0, 45.0, 12.0, 11.0, 50.0])
    _, result = run(script, small(max_offspring=7))
    assert [record.population_size for record in result.history] == [
        1,
        2,
        3,
        4,
        2,
        3,
        4,
        2,
        3,
        4,
        2,
    ]
    assert [record.number for record in result.history] == [0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7]
    accepted = [record.accepted for record in result.history]
    assert accepted == [True] * 7 + [False] + [True] * 2 + [False]
    assert inertias(result) == [10.0, 11.0]


def test_clones_leave_before_worse_originals() -> None:
    """Three copies of the best and three others, five too many: one copy and the next best stay."""
    weights = [60.0, 40.0]
    script = [refinement(10.0, i, weights=weights[:: 1 if i % 2 else -1]) for i in range(3)]
    script += [refinement(30.0, 3), refinement(20.0, 4)]
    _, result = run(script, small(max_offspring=1))
    assert inertias(result) == [10.0, 20.0]
    assert [record.clone for record in result.history] == [False, True, True, False, False]


def test_a_record_says_clone_and_accepted_of_the_solution_it_is_about() -> None:
    """A clone may be the copy that stays; it is marked as a clone all the same."""
    stayed = set()
    for seed in range(20):
        script = [40.0, refinement(10.0, 1, weights=[1.0, 2.0]), 30.0, 20.0]
        script += [refinement(10.0, 4, weights=[2.0, 1.0])]
        engine, result = run(script, small(max_offspring=1), rng=ScriptedRandom(seed=seed))
        last = result.history[-1]
        assert last.clone
        assert last.accepted == any(m.handle == "handle 4" for m in result.population)
        assert len(engine.starts) == 5
        stayed.add(last.accepted)
    assert stayed == {True, False}


def test_population_of_one() -> None:
    """Π_min = Π_max = 1 is a (1+1) search: the better of parent and child stays."""
    settings = SearchSettings(1, 1, max_offspring=3)
    _, result = run([5.0, 7.0, 3.0, 4.0], settings, rng=np.random.default_rng(0))
    assert [record.population_size for record in result.history] == [1, 1, 1, 1]
    assert [record.accepted for record in result.history] == [True, False, True, False]
    assert inertias(result) == [3.0]


def test_the_best_is_kept_and_the_population_is_sorted() -> None:
    _, result = run([*FOUNDERS, 5.0, 60.0, 50.0], small(max_offspring=3))
    assert result.best.inertia == 5.0
    assert inertias(result) == [5.0, 10.0, 50.0, 60.0]
    assert result.population[0] is result.best


# ---- stopping --------------------------------------------------------------------------------


def test_stops_after_max_offspring() -> None:
    engine, result = run(repeat(1.0), small(max_offspring=9))
    assert result.stop_reason is StopReason.MAX_ITER
    assert result.n_offspring == 9
    assert len(engine.starts) == 4 + 9
    assert len(result.history) == 4 + 9


def test_stops_after_patience_offspring_without_improvement() -> None:
    """Improved by the third child: patience of 5 ends after the eighth."""
    script = chain(FOUNDERS, [12.0, 11.0, 9.0], repeat(9.5))
    _, result = run(script, small(patience=5))
    assert result.stop_reason is StopReason.NO_IMPROVEMENT
    assert result.n_offspring == 8
    assert result.best.inertia == 9.0


def test_patience_counts_from_the_first_child_if_no_child_improves() -> None:
    _, result = run(chain(FOUNDERS, repeat(10.0)), small(patience=5))
    assert result.n_offspring == 5
    assert result.stop_reason == "no_improvement"


@pytest.mark.parametrize(("gain", "offspring"), [(1e-11, 3), (1e-9, 4)])
def test_a_gain_within_rounding_does_not_reset_the_patience(gain, offspring) -> None:
    """Only a relative gain above 1e-10 counts as an improvement."""
    script = chain(FOUNDERS, [10.0 * (1.0 - gain)], repeat(20.0))
    _, result = run(script, small(patience=3))
    assert result.n_offspring == offspring


def test_the_best_is_the_lowest_inertia_even_if_the_gain_is_within_rounding() -> None:
    """`best` of records and result is never above any inertia seen."""
    slightly = 10.0 * (1.0 - 1e-11)
    _, result = run([*FOUNDERS, slightly], small(max_offspring=1))
    assert result.best.inertia == slightly
    assert all(record.best <= record.inertia for record in result.history)


def test_stops_at_max_time() -> None:
    """Each K-means takes 2 s: after 4 founders and 3 children 14 s have passed, over 13."""
    clock = ScriptedClock(now=1000.0)
    _, result = run(repeat(1.0), small(max_time=13.0), clock=clock, seconds=2.0)
    assert result.stop_reason is StopReason.MAX_TIME
    assert result.n_offspring == 3
    assert [record.seconds for record in result.history] == [2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0]


def test_max_time_can_end_the_initial_population_with_a_complete_answer() -> None:
    """There are three solutions if that takes a tenth longer at most, and one in any case."""
    for max_time, count in ((1e-9, 1), (0.17, 2), (0.19, 3), (0.35, 4)):
        settings = small(max_time=max_time)
        _, result = run(FOUNDERS, settings, clock=ScriptedClock(), seconds=0.1)
        assert result.stop_reason == StopReason.MAX_TIME
        assert [record.inertia for record in result.history] == FOUNDERS[:count]


def test_no_more_than_one_solution_is_waited_for_if_it_takes_long() -> None:
    clock = ScriptedClock()
    _, result = run(FOUNDERS, small(max_time=2.0), clock=clock, seconds=5.0)
    assert inertias(result) == [40.0]
    assert result.stop_reason == StopReason.MAX_TIME


@pytest.mark.parametrize(("target", "number", "total"), [(9.0, 2, 6), (8.0, 3, 7), (10.0, 0, 2)])
def test_stops_as_soon_as_the_target_is_reached(target, number, total) -> None:
    """At most the target, also already in the initial population."""
    _, result = run([*FOUNDERS, 11.0, 9.0, 8.0], small(target_inertia=target))
    assert result.stop_reason is StopReason.TARGET_INERTIA
    assert result.n_offspring == number
    assert len(result.history) == total
    assert result.best.inertia <= target


def test_a_target_missed_by_less_than_an_improvement_is_still_reached() -> None:
    """A child at the target ends the search even if it gains only 5e-11 on the best."""
    script = chain([40.0, 10.0 * (1.0 + 5e-11), 30.0, 20.0, 10.0], repeat(50.0, 3))
    _, result = run(script, small(target_inertia=10.0, max_offspring=4))
    assert result.stop_reason is StopReason.TARGET_INERTIA
    assert result.n_offspring == 1


def test_zero_inertia_is_proven_optimal() -> None:
    _, result = run([*FOUNDERS, 5.0, 0.0], small(target_inertia=1.0))
    assert result.stop_reason is StopReason.PROVEN_OPTIMAL
    assert result.n_offspring == 2
    assert result.best.inertia == 0.0


# ---- observers -------------------------------------------------------------------------------


def test_an_observer_sees_every_record_and_stops_with_true() -> None:
    seen = []

    def stop_at_third(record):
        seen.append(record)
        return record.number == 3

    _, result = run(repeat(1.0), observers=[stop_at_third])
    assert result.stop_reason is StopReason.OBSERVER
    assert result.n_offspring == 3
    assert seen == list(result.history)


def test_an_observer_can_stop_in_the_initial_population() -> None:
    _, result = run(repeat(1.0), observers=[lambda record: True])
    assert result.stop_reason is StopReason.OBSERVER
    assert result.n_offspring == 0
    assert len(result.population) == 1


@pytest.mark.parametrize("answer", [None, False, np.False_, 1, "stop", [True]])
def test_only_true_stops(answer) -> None:
    """What an observer returns by accident, such as the length of something, is no order."""
    _, result = run(repeat(1.0), small(max_offspring=3), observers=[lambda record: answer])
    assert result.stop_reason is StopReason.MAX_ITER


def test_the_true_of_numpy_stops_too() -> None:
    """Comparing the NumPy scalars of an own computation gives one."""
    _, result = run(repeat(1.0), observers=[lambda record: np.float64(record.inertia) < 2.0])
    assert result.stop_reason is StopReason.OBSERVER


def test_observers_see_the_centres_in_data_units_and_the_history_does_not_keep_them() -> None:
    seen = []
    engine, result = run([*FOUNDERS, 5.0], small(max_offspring=1), observers=[seen.append])
    for record, answer in zip(seen, engine.answers, strict=True):
        assert_array_equal(record.centers, engine.frame.decode(answer.centers))
    assert all(record.centers is None for record in result.history)


def test_all_observers_see_the_record_at_which_one_of_them_stops() -> None:
    seen = []
    observers = [lambda record: True, seen.append]
    run(repeat(1.0), observers=observers)
    assert len(seen) == 1


def test_an_error_in_an_observer_is_not_swallowed() -> None:
    def broken(record):
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        run(repeat(1.0), observers=[broken])


# ---- rounds of several offspring -------------------------------------------------------------


def test_founders_and_offspring_come_in_rounds_of_batch() -> None:
    """With batch 3, four founders are 3 + 1; then rounds of three."""
    engine, result = run(repeat(1.0), small(max_offspring=6), batch=3)
    assert engine.calls == [3, 1, 3, 3]
    assert result.n_offspring == 6


def test_a_round_is_bred_from_the_same_population_and_inserted_in_order() -> None:
    """Both children of the round have founders as parents, though the first already joined."""
    best_of_all = breeding(coins=[0.9, 0.9], first=(0.25, 0.25), second=(0.25, 0.25))
    fourth = breeding(coins=[0.9, 0.9], first=(0.99, 0.99), second=(0.99, 0.99))
    engine, result = run(
        [*FOUNDERS, 1.0, 2.0], small(max_offspring=2), batch=2, uniforms=[best_of_all, fourth]
    )
    assert [start.parent for start in engine.starts[4:]] == ["handle 1", "handle 3"]
    assert [record.inertia for record in result.history] == [*FOUNDERS, 1.0, 2.0]
    assert [record.population_size for record in result.history] == [1, 2, 3, 4, 2, 3]


def test_a_stop_inside_a_round_drops_the_rest_of_it() -> None:
    """The target is met by the second of four: the other two are refined, but never counted."""
    engine, result = run([*FOUNDERS, 15.0, 5.0, 1.0, 2.0], small(target_inertia=6.0), batch=4)
    assert engine.calls == [4, 4]
    assert result.stop_reason is StopReason.TARGET_INERTIA
    assert result.n_offspring == 2
    assert result.best.inertia == 5.0
    assert [record.inertia for record in result.history] == [*FOUNDERS, 15.0, 5.0]


def test_max_offspring_need_not_be_a_multiple_of_batch() -> None:
    _, result = run(repeat(1.0), small(max_offspring=5), batch=4)
    assert result.n_offspring == 5
    assert result.stop_reason is StopReason.MAX_ITER


def test_patience_may_run_out_inside_a_round() -> None:
    _, result = run(repeat(1.0), small(patience=5), batch=4)
    assert result.n_offspring == 5
    assert result.stop_reason is StopReason.NO_IMPROVEMENT


def test_an_observer_may_stop_inside_a_round() -> None:
    """The word of the observer is kept even if the round has more records to show."""
    seen = []

    def stop(record):
        seen.append(record.number)
        return record.number == 2

    _, result = run(repeat(1.0), batch=4, observers=[stop])
    assert result.stop_reason is StopReason.OBSERVER
    assert seen == [0, 0, 0, 0, 1, 2]


# ---- determinism -----------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_search() -> None:
    """Starts and records are equal to the last bit."""
    rng = np.random.default_rng(3)
    script = (100 * rng.random(60)).tolist()
    runs = [
        run(script, small(max_offspring=50), k=4, rng=np.random.default_rng(8)) for _ in range(2)
    ]
    (one, first), (two, second) = runs
    assert first.history == second.history
    for a, b in zip(one.starts, two.starts, strict=True):
        assert_array_equal(a.centers, b.centers)
        assert (a.alpha, a.quantile, a.removed, a.parent) == (
            b.alpha,
            b.quantile,
            b.removed,
            b.parent,
        )


def test_another_seed_gives_another_search() -> None:
    script = [*FOUNDERS, *[50.0] * 10]
    one, _ = run(script, small(max_offspring=10), rng=np.random.default_rng(1))
    two, _ = run(script, small(max_offspring=10), rng=np.random.default_rng(2))
    assert [start.quantile for start in one.starts] != [start.quantile for start in two.starts]


# ---- strategies ------------------------------------------------------------------------------

AGREEING = Strategy("two populations", agreement=2)
MATCHING = Crossing(matching_crossover)
ALL, NONE = frozenset(Ability), frozenset()


def parts(share: float = 1.0) -> Crossing:
    return Crossing(partition_crossover, share, frozenset({Ability.PARTS}), SMALL_FOR_PARTS)


def crossing(*crossovers: Crossing, **others) -> Strategy:
    """Return a strategy with these crossovers before the matching one."""
    return Strategy("crossing", crossovers=(*crossovers, MATCHING), **others)


def restarting(**changes) -> SearchSettings:
    """Begin anew after three offspring without improvement; two populations have to agree."""
    return small(**{"patience": 3, "strategy": AGREEING, **changes})


def test_the_papers_strategy_is_the_default_and_has_no_other_operator() -> None:
    assert SearchSettings().strategy == PAPER == Strategy("paper")
    engine, _ = run(repeat(1.0), small(max_offspring=20), k=6)
    assert all(start.local_search == KMEANS for start in engine.starts)
    assert engine.compared == []


def test_the_papers_strategy_draws_the_numbers_of_its_offspring_and_no_others() -> None:
    """Two offspring in a row, on an engine that could do more."""
    numbers = [breeding(coins=[0.9, 0.9], quantile=quantile) for quantile in (0.125, 0.25)]
    engine, _ = run([*FOUNDERS, 50.0, 60.0], small(max_offspring=2), uniforms=numbers)
    assert [start.quantile for start in engine.starts[4:]] == [0.125, 0.25]


def test_a_population_that_stops_improving_gives_way_to_a_new_one() -> None:
    """Founders from random samples without a parent; the best of all is kept."""
    script = [*FOUNDERS, 11.0, 12.0, 13.0, *[44.0, 33.0, 22.0, 11.0], 9.0, 8.0, *[50.0] * 3]
    engine, result = run(script, restarting(max_offspring=8), k=2)
    founders = engine.starts[:4] + engine.starts[7:11]
    assert all((start.removed, start.parent) == (-1, None) for start in founders)
    assert all(start.removed >= 0 for start in engine.starts[4:7] + engine.starts[11:])
    numbers = [record.number for record in result.history]
    assert numbers == [0, 0, 0, 0, 1, 2, 3, 3, 3, 3, 3, 4, 5, 6, 7, 8]
    assert [record.best for record in result.history][6:12] == [10.0] * 5 + [9.0]
    assert [record.population for record in result.history] == [1] * 7 + [2] * 9
    assert [record.founder for record in result.history] == [True] * 4 + [False] * 3 + [
        True
    ] * 4 + [False] * 5
    since = [record.since_improvement for record in result.history]
    assert since == [0, 0, 0, 0, 1, 2, 3, 0, 0, 0, 0, 0, 0, 1, 2, 3]
    assert result.best.inertia == 8.0
    assert result.n_rediscoveries == 0


def test_the_search_ends_as_soon_as_enough_populations_have_found_the_best() -> None:
    """The second ends elsewhere and is united with the first. The third finds the best again."""
    best = refinement(10.0, 0, k=2)
    script = [40.0, best, *[30.0] * 5, *[25.0] * 7, *[26.0] * 3, 41.0, best]
    engine, result = run(script, restarting())
    assert result.stop_reason is StopReason.AGREEMENT
    assert result.n_offspring == 9
    assert len(engine.starts) == len(script)
    assert result.n_rediscoveries == 1
    assert result.best.inertia == 10.0


def test_two_that_differ_are_united() -> None:
    """The third of three offspring in vain unites them; no founder begins that population."""
    good, better = refinement(10.0, 0, k=2), refinement(5.0, 1, k=2)
    strategy = Strategy("two", agreement=2)
    populations = [[good, *[30.0] * 6], [better, *[31.0] * 6], [33.0] * 3, [better]]
    _, result = run(chain(*populations), restarting(strategy=strategy))
    assert [record.population for record in result.history] == [1] * 7 + [2] * 7 + [3] * 3 + [4]
    founders = [True] * 4 + [False] * 3
    assert [record.founder for record in result.history] == [*founders * 2, *[False] * 3, True]
    assert result.stop_reason is StopReason.AGREEMENT
    assert (result.n_offspring, result.n_rediscoveries, result.best.inertia) == (9, 1, 5.0)


def test_a_united_population_has_the_best_of_both() -> None:
    """What it inherits counts as a rediscovery only after it has searched in vain."""
    first = [refinement(10.0 + i, i, k=2) for i in range(4)]
    second = [refinement(20.0 + i, 10 + i, k=2) for i in range(4)]
    script = [*first, *[90.0] * 3, *second, *[91.0] * 3, 5.0]
    _, result = run(script, restarting(max_offspring=7, min_population=4))
    assert result.stop_reason is StopReason.MAX_ITER
    assert [record.population_best for record in result.history][-1] == 5.0
    assert {10.0, 11.0, 12.0} <= set(inertias(result))
    assert result.n_rediscoveries == 0


def test_one_that_found_the_best_again_is_not_united_with_a_third() -> None:
    """Four have to agree; a population of the same rank that settled elsewhere is still there."""
    best = refinement(10.0, 0, k=2)
    strategy = Strategy("four", agreement=4)
    script = chain([best, *[30.0] * 6, 41.0, best, 42.0, best], repeat(43.0))
    _, result = run(script, restarting(strategy=strategy, max_offspring=6))
    assert [record.population for record in result.history][:11] == [1] * 7 + [2] * 2 + [3] * 2
    assert result.history[11].founder
    assert result.history[11].population == 4


@pytest.mark.parametrize("changes", [{"agreement": 0}, {"lag": 0}, {"patience": 0}])
def test_a_strategy_that_could_not_end_is_refused(changes) -> None:
    with pytest.raises(ValueError, match="must be at least 1"):
        Strategy("endless", **changes)


def test_founders_that_agree_are_enough_if_offspring_find_nothing_deeper() -> None:
    """They do not depend on each other. Three have to agree, of founders and populations."""
    strategy = Strategy("three", agreement=3)
    for last, populations in ((10.0, [1] * 7), (11.0, [1] * 7 + [2])):
        script = [10.0, 12.0, 10.0, last, *[30.0] * 3, 10.0]
        _, result = run(script, restarting(strategy=strategy))
        assert result.stop_reason is StopReason.AGREEMENT
        assert (result.n_offspring, result.n_rediscoveries) == (3, 2)
        assert [record.population for record in result.history] == populations


@pytest.mark.parametrize("script", [[10.0, 10.0, 10.0, 9.0], [10.0, 10.0, 10.0, 10.0, 30.0, 9.0]])
def test_a_deeper_solution_makes_those_that_agreed_count_for_nothing(script) -> None:
    """A founder, or an offspring."""
    settings = restarting(strategy=Strategy("three", agreement=3), max_offspring=5)
    _, result = run(chain(script, repeat(30.0, 9)), settings)
    assert (result.best.inertia, result.n_rediscoveries) == (9.0, 0)


def test_given_solutions_are_no_independent_evidence() -> None:
    given = [np.array([[0.1], [0.9]])] * 4
    settings = restarting(strategy=Strategy("two", agreement=2), max_offspring=2)
    _, result = run([*[10.0] * 4, 30.0, 30.0], settings, initial=given)
    assert result.stop_reason is StopReason.MAX_ITER
    assert result.n_rediscoveries == 0


def test_patience_grows_with_the_offspring_up_to_the_last_improvement() -> None:
    """From its share after the founders to the whole."""
    strategy = Strategy("growing", patience=10, first_patience=0.2)
    for improvements, expected in (([], 2), ([1], 1 + 3), ([1, 4], 4 + 6), ([1, 4, 10], 10 + 10)):
        script = [100.0, 101.0, 102.0, 103.0]
        script += [50.0 - number if number in improvements else 200.0 for number in range(1, 40)]
        _, result = run(script, small(strategy=strategy))
        assert result.stop_reason is StopReason.NO_IMPROVEMENT
        assert result.n_offspring == expected


def test_the_second_solution_is_the_first_one_with_many_swaps() -> None:
    """It is an answer, but neither in the population nor an independent start."""
    strategy = Strategy("first", first_swaps=3.0, agreement=2, tolerance=1e-5)
    settings = restarting(strategy=strategy, max_offspring=3)
    script = [20.0, 10.0, *[30.0] * 20]
    engine, result = run(script, settings, rng=np.random.default_rng(0))
    first, second, third = engine.starts[:3]
    assert (first.local_search.swaps, second.local_search.swaps) == (0, 6)
    assert third.local_search.swaps == 0
    names = [record.made_by for record in result.history]
    assert names[:3] == ["random samples", "swaps of the first", "random samples"]
    assert names.count("swaps of the first") == 1
    assert [record.founder for record in result.history][:6] == [True] * 5 + [False]
    assert [record.accepted for record in result.history][:3] == [True, False, True]
    assert [record.best for record in result.history][:3] == [20.0, 10.0, 10.0]
    assert result.history[1].population_size == 1
    assert (result.best.inertia, result.n_rediscoveries) == (10.0, 0)


def test_given_solutions_come_before_swaps_of_the_first() -> None:
    given = [np.array([[0.1], [0.9]])] * 4
    settings = small(strategy=Strategy("first", first_swaps=3.0), max_offspring=1)
    _, result = run(map(float, range(10, 30)), settings, initial=given)
    assert [record.made_by for record in result.history][:4] == ["given"] * 4


@pytest.mark.parametrize(("batch", "founders"), [(1, 2), (4, 4)])
def test_noisy_clusters_have_few_founders_and_a_short_patience(batch, founders) -> None:
    """In every population; but all of them where an engine refines many together."""
    strategy = Strategy(
        "noisy", noisy_up_to=1e12, noisy_founders=2, noisy_patience=0.5, patience=8, agreement=2
    )
    settings = small(strategy=strategy, max_offspring=6)
    rng = np.random.default_rng(0)
    _, result = run(map(float, range(10, 60)), settings, rng=rng, batch=batch)
    for population in (1, 2):
        made = [record for record in result.history if record.population == population]
        assert [record.founder for record in made].count(True) == founders
    made = [record for record in result.history if record.population == 1 and not record.founder]
    assert len(made) == 4


@pytest.mark.parametrize(("agreeing", "waits"), [(1, 6), (2, 3), (3, 2)])
def test_noisy_founders_that_agree_share_the_patience(agreeing, waits) -> None:
    strategy = Strategy(
        "noisy", noisy_up_to=1e12, noisy_founders=4, noisy_patience=0.5, patience=12, agreement=9
    )
    settings = small(strategy=strategy, max_offspring=20)
    script = [10.0] * agreeing + [float(11 + i) for i in range(60)]
    _, result = run(script, settings, rng=np.random.default_rng(0))
    made = [record for record in result.history if record.population == 1 and not record.founder]
    assert len(made) == waits


def test_the_lag_grows_with_the_offspring_of_a_population() -> None:
    """Early parents are the latest there are; the number of threads is not asked."""
    assert [PAPER.lag_after(made) for made in (0, 10, 1000)] == [1, 1, 1]
    lags = [DEEP.lag_after(made) for made in range(200)]
    assert lags == sorted(lags)
    assert (lags[0], lags[-1]) == (FIRST_LAG, DEEP.lag)


def test_two_that_agree_are_not_united() -> None:
    """Three have to agree: after the second has found the best again, a third begins at once."""
    best = refinement(10.0, 0, k=2)
    strategy = Strategy("three", agreement=3)
    script = [best, *[30.0] * 6, 41.0, best, 42.0, best]
    _, result = run(script, restarting(strategy=strategy))
    assert [record.population for record in result.history] == [1] * 7 + [2] * 2 + [3] * 2
    assert (result.n_offspring, result.n_rediscoveries) == (3, 2)
    assert result.stop_reason is StopReason.AGREEMENT


@pytest.mark.parametrize(("tolerance", "is_enough"), [(1e-5, True), (1e-7, False)])
def test_as_deep_is_deep_enough(tolerance, is_enough) -> None:
    """Also with other clusters: large data has many solutions of nearly the same depth."""
    strategy = Strategy("two", agreement=2, tolerance=tolerance)
    script = [10.0, *[30.0] * 6, 10.0 * (1.0 + 1e-6), *[31.0] * 6, 32.0]
    _, result = run(script, restarting(max_offspring=7, strategy=strategy))
    assert (result.stop_reason is StopReason.AGREEMENT) == is_enough
    assert result.n_rediscoveries == is_enough
    assert result.best.inertia == 10.0


def test_gains_that_are_not_worthwhile_do_not_prolong_a_population() -> None:
    """Unless they add up."""
    strategy = Strategy("coarse", tolerance=0.01)
    steps = [100.0, 100.0, 100.0, 100.0, 99.6, 99.2, 98.8, 98.7, 98.6, 98.5]
    _, result = run(steps, small(patience=3, strategy=strategy, max_offspring=50))
    since = [record.since_improvement for record in result.history]
    assert since == [0, 0, 0, 0, 1, 2, 0, 1, 2, 3]
    assert result.stop_reason is StopReason.NO_IMPROVEMENT
    assert result.best.inertia == 98.5


def test_one_more_population_begins_where_two_are_not_enough() -> None:
    """A limit comes between: the rediscovery counts all the same."""
    best = refinement(10.0, 0, k=2)
    script = [best, *[30.0] * 6, best, *[31.0] * 5]
    settings = restarting(max_offspring=4, strategy=Strategy("three", agreement=3))
    _, result = run(script, settings)
    assert result.stop_reason is StopReason.MAX_ITER
    assert result.n_rediscoveries == 1


def test_a_round_is_added_before_the_population_gives_way() -> None:
    """Also the part of it that comes after the patience has run out."""
    falling = [1.0 / number for number in range(2, 60)]
    script = [1.0, 1.1, 1.2, 1.3, *[1.0] * 8, *falling]
    engine, result = run(script, restarting(max_offspring=10, patience=5), batch=4)
    assert engine.calls == [4, 4, 4, 4, 4]
    numbers = [record.number for record in result.history]
    assert numbers == [0] * 4 + list(range(1, 9)) + [8] * 4 + [9, 10]


def test_given_solutions_join_the_first_population_only() -> None:
    given = [np.array([[0.1], [0.9]])]
    engine, _ = run([*FOUNDERS, *[50.0] * 9], restarting(max_offspring=5), initial=given)
    assert_array_equal(engine.starts[0].centers, given[0])
    assert not any((start.centers == given[0]).all() for start in engine.starts[7:11])


@pytest.mark.parametrize("abilities", [ALL, NONE])
def test_single_moves_are_asked_for_where_the_engine_has_them(abilities) -> None:
    """From the second solution on: the first one tells how far apart clusters are."""
    strategy = Strategy("moves", single_moves=True)
    settings = small(max_offspring=3, strategy=strategy)
    engine, result = run(repeat(100 / SPACING_OF_A_GRID), settings, abilities=abilities)
    wanted = [False, *[bool(abilities)] * 6]
    assert [start.local_search.single_moves for start in engine.starts] == wanted
    assert result.missing_abilities == {Ability.SINGLE_MOVES} - abilities


# ---- offspring that are given up -------------------------------------------------------------


def test_offspring_have_to_survive_where_there_is_momentum() -> None:
    """The second of 10, 20, 30 and 40 is the last that would; founders need not."""
    settings = small(max_offspring=1, strategy=Strategy("m", momentum_from=1.0))
    engine, _ = run([*FOUNDERS, 5.0], settings)
    second = refinement(20.0, FOUNDERS.index(20.0))
    least = [start.least_explained for start in engine.starts]
    assert least == [0.0] * 4 + [float(second.cluster_weights @ second.centers[:, 0] ** 2)]


def test_without_momentum_nothing_is_given_up() -> None:
    engine, _ = run([*FOUNDERS, 5.0], small(max_offspring=1))
    assert {start.least_explained for start in engine.starts} == {0.0}


@pytest.mark.parametrize("batch", [1, 2])
def test_what_is_given_up_is_counted_and_never_seen(batch) -> None:
    seen = []
    settings = small(max_offspring=4, strategy=Strategy("m", momentum_from=1.0))
    script = [*FOUNDERS, np.inf, 35.0, np.inf, np.inf, 1.0]
    _, result = run(script, settings, batch=batch, observers=[lambda one: seen.append(one.number)])
    assert (result.n_offspring, result.n_given_up) == (4, 3)
    assert seen == [one.number for one in result.history] == [0, 0, 0, 0, 2]
    assert inertias(result) == [10.0, 20.0]
    assert np.isfinite([one.inertia for one in result.history]).all()


def test_what_is_given_up_takes_patience() -> None:
    settings = small(patience=3, strategy=Strategy("m", momentum_from=1.0))
    _, result = run([*FOUNDERS, *[np.inf] * 3], settings)
    assert result.stop_reason == StopReason.NO_IMPROVEMENT
    assert result.n_offspring == result.n_given_up == 3


@pytest.mark.parametrize(("per_cluster", "k"), [(1.0, 3), (0.7, 4), (0.3, 4), (0.1, 4), (2.5, 5)])
def test_swaps_are_asked_for_by_the_number_of_clusters(per_cluster, k) -> None:
    """Of founders and offspring, where the engine can; if the number is not whole, on average.

    Not of the very first solution: there is an answer as soon as possible.
    """
    strategy = Strategy("swaps", swaps=per_cluster, patience=1000)
    settings = small(max_offspring=400, strategy=strategy)
    for abilities in (ALL, NONE):
        rng = np.random.default_rng(0)
        engine, _ = run(repeat(1.0), settings, k=k, abilities=abilities, rng=rng)
        first, *others = [start.local_search.swaps for start in engine.starts]
        assert first == 0
        expected = per_cluster * k if abilities else 0.0
        assert {int(expected), -int(-expected // 1)} >= set(others)
        assert np.mean(others) == pytest.approx(expected, abs=0.08)


@pytest.mark.parametrize(
    ("n_samples", "moves", "swaps", "compared"),
    [(256, True, 2, True), (258, True, 2, False), (512, True, 1, False), (514, False, 1, False)],
)
def test_what_follows_k_means_depends_on_the_size_of_clusters(
    n_samples, moves, swaps, compared
) -> None:
    """Two clusters, as far apart as in a grid.

    Up to 128 samples in each there are parts and all swaps, then fewer, except for founders; up to
    256 there are single moves.
    """
    strategy = crossing(parts(), single_moves=True, swaps=1.0)
    settings = small(max_offspring=3, strategy=strategy)
    grid = repeat(n_samples / SPACING_OF_A_GRID)
    engine, _ = run(grid, settings, n_samples=n_samples, rng=np.random.default_rng(0))
    assert {start.local_search.single_moves for start in engine.starts[1:]} == {moves}
    assert {start.local_search.swaps for start in engine.starts[1:4]} == {2}
    assert max(start.local_search.swaps for start in engine.starts[4:]) in (swaps, 2)
    assert bool(engine.compared) == compared


# Tournaments 0|1 → 1 and 2|3 → 3, and all coins for the first parent.
PARENTS = breeding(
    coins=[0.9, 0.9, 0.9], first=(0.1, 0.3), second=(0.6, 0.8), step=0.75, removed=0.7, quantile=0.2
)
PARTITION = crossing(parts(0.5))


def last_of_first_for_first_of_second(first, second):
    return np.array([False, False, True]), np.array([True, False, False])


def two_of_first_for_two_of_second(first, second):
    return np.array([True, False, True]), np.array([False, True, True])


@pytest.mark.parametrize(
    ("parts", "centers", "parent"),
    [
        (last_of_first_for_first_of_second, [10.0, 11.0, 30.0], "handle 1"),
        (two_of_first_for_two_of_second, [11.0, 31.0, 32.0], "handle 3"),
    ],
)
def test_better_parts_are_put_together_and_nothing_is_relocated(parts, centers, parent) -> None:
    """At the positions, and with the handle, of the parent that gave more; α is inherited."""
    settings = small(max_offspring=1, strategy=PARTITION)
    engine, _ = run([*FOUNDERS, 5.0], settings, k=3, uniforms=[[*PARENTS, 0.49]], parts=parts)
    start = engine.starts[4]
    assert engine.compared == [("handle 1", "handle 3")]
    assert start.centers[:, 0].tolist() == centers
    assert (start.removed, start.parent) == (-1, parent)
    assert start.alpha == pytest.approx(0.4)
    assert start.quantile == 0.2


@pytest.mark.parametrize(("coin", "compared"), [(0.49, 1), (0.5, 0)])
def test_parents_are_matched_if_no_parts_are_better_or_wanted(coin, compared) -> None:
    """The child is that of the paper's strategy; if the coin says no, nobody asks for parts."""
    settings = small(max_offspring=1, strategy=PARTITION)
    found = last_of_first_for_first_of_second if coin >= 0.5 else lambda *_: None
    engine, _ = run([*FOUNDERS, 5.0], settings, k=3, uniforms=[[*PARENTS, coin]], parts=found)
    start = engine.starts[4]
    assert len(engine.compared) == compared
    assert_array_equal(start.centers, engine.answers[1].centers)
    assert (start.removed, start.parent, start.quantile) == (2, "handle 1", 0.2)


def test_parents_are_merged_only_if_no_parts_are_better() -> None:
    """Both have coins of their own."""
    strategy = crossing(parts(0.9), Crossing(merging_crossover, 0.9))
    settings = small(max_offspring=1, strategy=strategy)
    uniforms = [[*PARENTS, 0.5, 0.5]]
    engine, _ = run([*FOUNDERS, 5.0], settings, k=3, uniforms=uniforms)
    answers = np.concatenate([answer.centers for answer in engine.answers[:4]])
    assert not np.isin(engine.starts[4].centers, answers).all()
    assert engine.starts[4].removed == 2
    found = last_of_first_for_first_of_second
    engine, _ = run([*FOUNDERS, 5.0], settings, k=3, uniforms=uniforms, parts=found)
    assert engine.starts[4].removed == -1


def test_partition_is_tried_as_often_as_the_strategy_says() -> None:
    settings = small(max_offspring=300, patience=1000, strategy=crossing(parts(0.25)))
    rng = np.random.default_rng(0)
    grid = repeat(100 / SPACING_OF_A_GRID)
    engine, _ = run(grid, settings, k=3, rng=rng, parts=last_of_first_for_first_of_second)
    assert 0.15 < len(engine.compared) / 300 < 0.35
    offspring = engine.starts[4:]
    assert sum(start.removed < 0 for start in offspring) == len(engine.compared)


def test_an_engine_without_parts_is_not_asked_for_them_and_costs_no_random_number() -> None:
    """Two offspring in a row have the numbers that the paper's strategy draws for them."""
    strategy = crossing(parts(0.9), swaps=2.0, single_moves=True)
    numbers = [breeding(coins=[0.9, 0.9], quantile=quantile) for quantile in (0.125, 0.25)]
    settings = small(max_offspring=2, strategy=strategy)
    engine, result = run([*FOUNDERS, 50.0, 60.0], settings, uniforms=numbers, abilities=NONE)
    assert engine.compared == []
    assert [start.quantile for start in engine.starts[4:]] == [0.125, 0.25]
    assert all(start.local_search == KMEANS for start in engine.starts)
    assert result.missing_abilities == {Ability.PARTS, Ability.SINGLE_MOVES, Ability.SWAPS}


@pytest.mark.parametrize("batch", [1, 3])
def test_every_other_founder_is_seeded(batch) -> None:
    """In all populations, beginning with the first; given solutions take the first places."""
    strategy = Strategy("seeds", founding=(KMeansPlusPlus(), RandomSamples()), agreement=2)
    given = [np.array([[0.1], [0.9]])]
    settings = restarting(max_offspring=5, strategy=strategy)
    falling = (1.0 / number for number in range(2, 99))
    script, rng = chain(range(1, 8), falling), np.random.default_rng(0)
    engine, _ = run(script, settings, initial=given, abilities=ALL, batch=batch, rng=rng)
    assert_array_equal(engine.starts[0].centers, given[0])
    again = 4 + 3
    founders = engine.starts[1:4] + engine.starts[again : again + 4]
    seeded = [bool((start.centers < 0.0).all()) for start in founders]
    assert seeded == [False, True, False, True, False, True, False]


def test_an_engine_that_cannot_seed_hands_out_samples_to_seed_among() -> None:
    """As many distinct ones as there are centres, far from each other."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(10.0 * i, 0.1, size=(50, 2)) for i in range(5)])
    founding = KMeansPlusPlus(greedy=True)
    engine = CpuEngine(X)
    engine.abilities = NONE
    draws = [founding.draw(len(X), 5, rng) for _ in range(3)]
    placed = founding.place(engine, draws)
    for centers in map(engine.frame.decode, placed):
        assert sorted(np.round(centers[:, 0] / 10.0)) == [0.0, 1.0, 2.0, 3.0, 4.0]
    again = founding.place(engine, draws)
    assert_array_equal(placed, again)


def test_parents_are_merged_as_often_as_the_strategy_says() -> None:
    """A child of merging has means of both parents' centres; of matching, one of each pair."""
    strategy = crossing(Crossing(merging_crossover, 0.25))
    strategy = replace(strategy, selection=different_parents)
    settings = small(max_offspring=200, patience=1000, strategy=strategy)
    engine, _ = run(repeat(1.0), settings, k=3, rng=np.random.default_rng(0))
    answers = {row.tobytes() for answer in engine.answers for row in answer.centers}
    inherited = [
        all(row.tobytes() in answers for row in start.centers) for start in engine.starts[4:]
    ]
    assert 0.15 < 1.0 - np.mean(inherited) < 0.35


# ---- operators of one's own ------------------------------------------------------------------


def test_a_crossover_of_ones_own_takes_the_place_of_the_others() -> None:
    """One function in a strategy, with its name in the record; no relocation if it says so."""

    def halfway_crossover(first, second, breeding):
        assert breeding.coins.shape == (2,)
        return Child(0.5 * (first.centers + second.centers), first, is_complete=True)

    strategy = Strategy("halfway", crossovers=(Crossing(halfway_crossover),))
    uniforms = [breeding(coins=[0.9, 0.9], first=(0.1, 0.3), second=(0.6, 0.8))]
    settings = small(max_offspring=1, strategy=strategy)
    engine, result = run([*FOUNDERS, 5.0], settings, uniforms=uniforms)
    assert engine.starts[4].centers[:, 0].tolist() == [20.0, 21.0]
    assert (engine.starts[4].removed, engine.starts[4].parent) == (-1, "handle 1")
    assert result.history[-1].made_by == "halfway"


def test_a_strategy_whose_crossovers_make_no_child_is_an_error() -> None:
    strategy = Strategy("barren", crossovers=(Crossing(lambda *_: None),))
    with pytest.raises(ValueError, match="No crossover of the strategy made a child"):
        run(repeat(1.0), small(strategy=strategy))


def test_selection_founding_and_survival_are_operators_too() -> None:
    """The worst two become parents, founders begin at zero, and the newest survive."""

    class Zero(RandomSamples):
        name = "zero"

        def place(self, engine, draws):
            return [np.zeros((2, 1)) for _ in draws]

    strategy = Strategy(
        "own",
        founding=(Zero(),),
        selection=lambda population, chances: (population[0], population[2]),
        survival=lambda population, count, rng: population[-count:],
    )
    engine, result = run([*FOUNDERS, 50.0], small(max_offspring=1, strategy=strategy))
    assert all((start.centers == 0.0).all() for start in engine.starts[:4])
    assert {record.made_by for record in result.history[:4]} == {"zero"}
    assert engine.starts[4].parent in ("handle 0", "handle 2")
    assert inertias(result) == [10.0, 20.0, 50.0]


@pytest.mark.parametrize(
    ("made", "error", "text"),
    [
        (np.zeros((2, 1)), TypeError, "must return a Child or None"),
        (Child(np.zeros((3, 1)), None), ValueError, r"must return centres of shape \(2, 1\)"),
        (Child(np.full((2, 1), np.nan), None), ValueError, "must return finite centres"),
    ],
)
def test_what_a_crossover_must_not_return(made, error, text) -> None:
    """Also if it has no name of its own, such as a partial function."""
    strategy = Strategy("odd", crossovers=(Crossing(partial(lambda *_: made)),))
    with pytest.raises(error, match=f"Crossover 'partial' {text}"):
        run(repeat(1.0), small(strategy=strategy))


# ---- offspring side by side --------------------------------------------------------------------


def spying(seen: list[set[float]], **changes) -> Strategy:
    """Return a strategy that notes the inertias from which parents are selected."""

    def selection(population, uniforms):
        seen.append({member.inertia for member in population})
        return different_parents(population, uniforms)

    return Strategy("spying", selection=selection, **changes)


@pytest.mark.parametrize("lag", [1, 2, 3])
def test_an_offspring_knows_all_but_the_last_before_it(lag) -> None:
    """Number i is bred when i − lag has been inserted; here nobody dies."""
    seen: list[set[float]] = []
    strategy = spying(seen, lag=lag, survival=lambda population, count, rng: list(population))
    script = [float(99 - i) for i in range(12)]
    run(script, small(max_offspring=8, strategy=strategy))
    for number, known in enumerate(seen[:8], start=1):
        assert known == set(script[: 4 + number - lag])


def test_offspring_are_bred_when_half_of_the_founders_are_there() -> None:
    """Not before there are ``min_population`` of them, however long the lag."""
    seen: list[set[float]] = []
    settings = small(max_offspring=4, strategy=spying(seen, lag=16))
    run(repeat(1.0), settings)
    assert len(seen) >= 4
    seen.clear()
    run([4.0, 3.0, 2.0, 1.0, *[5.0] * 40], settings)
    assert seen[0] == {4.0, 3.0}


def test_offspring_beyond_the_limit_are_not_refined() -> None:
    engine, result = run(repeat(1.0), small(max_offspring=5, strategy=Strategy("wide", lag=8)))
    assert result.n_offspring == 5
    assert len(engine.starts) == 4 + 5


def test_a_new_population_drops_what_the_old_one_was_making() -> None:
    """Of lag 3, two are in the making when patience ends; the next to be refined is a founder."""
    strategy = Strategy("dropping", agreement=2, lag=3)
    script = chain(range(1, 8), range(2, 99))
    engine, result = run(script, restarting(max_offspring=6, strategy=strategy))
    founders = [record.founder for record in result.history]
    assert founders == ([True] * 4 + [False] * 3) * 2
    assert len(engine.starts) == len(founders)


@pytest.mark.usefixtures("eager_threads")
@pytest.mark.parametrize("strategy", [DEEP, PAPER])
def test_the_number_of_threads_changes_no_bit(strategy) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)) + rng.integers(4, size=(300, 1))
    settings = SearchSettings(4, 8, max_offspring=90, patience=30, strategy=strategy)
    results = [
        evolve(CpuEngine(X, n_jobs=n_jobs), 12, settings, np.random.default_rng(1))
        for n_jobs in (1, 2, 5)
    ]
    for result in results[1:]:
        assert_array_equal(result.best.centers, results[0].best.centers)
        for one, other in zip(result.history, results[0].history, strict=True):
            assert replace(one, seconds=0.0) == replace(other, seconds=0.0)


@pytest.mark.usefixtures("eager_threads")
def test_an_error_of_a_worker_ends_the_search_and_all_threads() -> None:
    def failing(first, second, breeding):
        raise ZeroDivisionError("no child")

    strategy = Strategy("failing", crossovers=(Crossing(failing),), lag=4)
    X = np.random.default_rng(0).normal(size=(100, 2))
    settings = SearchSettings(2, 4, strategy=strategy)
    with pytest.raises(ZeroDivisionError, match="no child"):
        evolve(CpuEngine(X, n_jobs=3), 3, settings, np.random.default_rng(0))
    assert not any(thread.name.startswith("evomeans worker") for thread in threading.enumerate())


@pytest.mark.usefixtures("eager_threads")
def test_time_that_is_up_ends_what_workers_are_doing(monkeypatch) -> None:
    """The first solution is there; the others would take a minute each."""
    abandoned = threading.Event()
    refine, abandon = CpuEngine.refine, CpuEngine.abandon

    def slow(engine, starts):
        if threading.current_thread().name.startswith("evomeans worker"):
            abandoned.wait(60.0)
        return refine(engine, starts)

    def note(engine, is_abandoned):
        if is_abandoned:
            abandoned.set()
        abandon(engine, is_abandoned)

    monkeypatch.setattr(CpuEngine, "refine", slow)
    monkeypatch.setattr(CpuEngine, "abandon", note)
    X = np.random.default_rng(0).normal(size=(100, 2))
    settings = SearchSettings(2, 4, max_time=0.2)
    began = time.perf_counter()
    result = evolve(CpuEngine(X, n_jobs=3), 3, settings, np.random.default_rng(0))
    assert time.perf_counter() - began < 30.0
    assert result.stop_reason is StopReason.MAX_TIME
    assert len(result.history) == 1
