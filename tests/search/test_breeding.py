"""How offspring are made of two parents: crossover, mutation, and which operators have a say."""

from __future__ import annotations

import threading
from functools import partial
from itertools import repeat

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scripted_search import FOUNDERS, NONE, crossing, parts, run, small

from evomeans.engines.protocol import KMEANS, Ability, Order
from evomeans.engines.reference import ReferenceEngine
from evomeans.engines.workers import side_by_side
from evomeans.search import Crossing, Individual, Strategy
from evomeans.search.crossover import (
    Breeding,
    Child,
    cross_over,
    merging_crossover,
    squared_matching_crossover,
)
from evomeans.search.plan import SPACING_OF_A_GRID
from fakes import breeding


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


def parents_of(crossovers: tuple[Crossing, ...], count: int) -> list[Order]:
    """Draw pairs of parents with five centres in the plane."""
    rng = np.random.default_rng(0)
    members = [Individual(rng.normal(size=(5, 2)), 1.0, np.ones(5), 0.5) for _ in range(4)]
    chosen = [rng.choice(4, size=2, replace=False) for _ in range(count)]
    return [
        Order(
            parents=(members[a], members[b]),
            crossovers=crossovers,
            numbers=rng.random(5),
            removed=0,
        )
        for a, b in chosen
    ]


def test_a_round_does_not_depend_on_the_number_of_threads() -> None:
    engine = ReferenceEngine(np.zeros((5, 2)), None)
    pairs = parents_of((Crossing(merging_crossover, 0.5), Crossing(squared_matching_crossover)), 9)
    expected = cross_over(pairs, engine)
    engine.n_jobs = 3
    for order, other in zip(cross_over(pairs, engine), expected, strict=True):
        assert_array_equal(order.centers, other.centers)
        assert order.made_by == other.made_by


@pytest.mark.parametrize(("crossover", "at_once"), [(squared_matching_crossover, 2), (None, 1)])
def test_only_crossovers_of_this_package_are_called_by_several_threads(
    crossover, at_once, monkeypatch
) -> None:
    """One of the user's own need not bear it."""
    threads = []

    def own(first: Individual, second: Individual, breeding: Breeding) -> Child:
        threads.append(threading.current_thread())
        return Child(first.centers, first)

    def counted(do, items, n_jobs: int) -> list:
        assert n_jobs == at_once
        return side_by_side(do, items, n_jobs)

    monkeypatch.setattr("evomeans.search.crossover.side_by_side", counted)
    engine = ReferenceEngine(np.zeros((5, 2)), None)
    engine.n_jobs = 4
    assert len(cross_over(parents_of((Crossing(crossover or own),), 2), engine)) == 2
    assert set(threads) <= {threading.current_thread()}


def test_what_a_crossover_draws_goes_on_where_it_ended() -> None:
    breeding = Breeding(ReferenceEngine(np.zeros((5, 2)), None), np.zeros(5), 0.3)
    assert breeding.rng.random() != breeding.rng.random()
