"""MDEClust: differences of matched solutions, one child for each member in turn."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from evomeans.engines.protocol import Refinement
from fakes import ScriptedEngine
from lab.baselines import MDEClust
from lab.baselines.mdeclust import (
    difference_child,
    different_parents,
    exact_match,
    is_same,
    spread,
)


def member(inertia: float, weights=(1.0, 2.0)) -> Refinement:
    return Refinement(np.zeros((2, 1)), inertia, np.array(weights), 1)


@pytest.fixture
def parents() -> list[np.ndarray]:
    """Return the centres of one solution, moved a little and in another order each time."""
    rng = np.random.default_rng(0)
    centers = 10.0 * rng.normal(size=(5, 3))
    return [centers[rng.permutation(5)] + 0.1 * rng.normal(size=(5, 3)) for _ in range(4)]


def test_centres_are_matched_at_the_least_total(parents) -> None:
    """By brute force over all permutations."""
    rng = np.random.default_rng(1)
    for _ in range(10):
        first, second = rng.normal(size=(2, 5, 2))
        totals = {
            order: ((first - second[list(order)]) ** 2).sum() for order in permutations(range(5))
        }
        assert tuple(exact_match(first, second).tolist()) == min(totals, key=totals.__getitem__)


@pytest.mark.parametrize("greedy", [False, True])
def test_a_child_is_one_parent_plus_a_difference_of_two(parents, greedy) -> None:
    """Centre by centre, whatever the order of the centres of each parent is."""
    first, second, third, best = parents
    reference = best if greedy else third
    child = difference_child(first, second, third, 0.7, best if greedy else None)
    for place, own in enumerate(reference):
        a, b, c = (one[((one - own) ** 2).sum(axis=1).argmin()] for one in (first, second, third))
        assert_allclose(child[place], a + 0.7 * (b - c))


def test_the_spread_is_the_sum_of_all_differences() -> None:
    inertias = np.random.default_rng(2).uniform(5.0, 9.0, size=12)
    expected = sum(abs(a - b) for a, b in combinations(inertias, 2))
    assert spread([member(value) for value in inertias]) == pytest.approx(expected)
    assert spread([member(1e15 / 3.0)] * 150) == 0.0


def test_parents_are_different_solutions_if_possible() -> None:
    rng = np.random.default_rng(3)
    population = [member(float(value)) for value in (1, 1, 1, 2, 3, 4)]
    for turn in range(6):
        drawn = different_parents(population, turn, 200, rng)
        assert not any(is_same(a, b) for a, b in combinations([population[turn], *drawn], 2))
    # Hopeless: any three others will do.
    others = different_parents([member(1.0)] * 5, 0, 3, rng)
    assert len(others) == 3


def test_solutions_are_told_apart_by_inertia_and_weights() -> None:
    assert is_same(member(2.0), member(2.0 * (1 + 1e-12), weights=(2.0, 1.0)))
    assert not is_same(member(2.0), member(2.0001))
    assert not is_same(member(2.0), member(2.0, weights=(1.5, 1.5)))


def test_a_child_replaces_the_member_whose_turn_it_is() -> None:
    """If it is better; the search ends after so many children that do not improve the best."""
    founders, children = [9.0, 8.0, 7.0, 6.0], [8.5, 5.0, 7.5, 5.5, 5.2]
    engine = ScriptedEngine(founders + children)
    model = MDEClust(2, population_size=4, n_iter_no_change=3)
    found = [one.inertia for one in model.solutions(engine, np.random.default_rng(0))]
    # The second child is the best so far; three more follow.
    assert found == founders + children
    assert [start.removed for start in engine.starts] == [-1] * 9


def test_the_search_ends_when_all_members_agree() -> None:
    engine = ScriptedEngine([3.0] * 5)
    assert (
        len(list(MDEClust(2, population_size=5).solutions(engine, np.random.default_rng(0)))) == 5
    )


def test_mutation_relocates_a_centre() -> None:
    """With the chances of HG-means: α, and distances that are not squared."""
    engine = ScriptedEngine([*range(9, 3, -1), *[20.0] * 150])
    model = MDEClust(4, population_size=6, n_iter_no_change=150, mutation=True, alpha=0.3)
    list(model.solutions(engine, np.random.default_rng(0)))
    children = engine.starts[6:]
    assert {(start.alpha, start.power) for start in children} == {(0.3, 1)}
    assert {start.removed for start in children} == {0, 1, 2, 3}


def test_the_factor_comes_from_its_interval() -> None:
    """Two parents agree; so the child differs from the first by nothing else."""
    model = MDEClust(2, population_size=4, f_range=(2.0, 2.0))
    population = [
        Refinement(np.array([[value], [value + 100.0]]), value, np.ones(2), 1)
        for value in (1.0, 2.0, 4.0, 8.0)
    ]
    rng = np.random.default_rng(0)
    for _ in range(20):
        child = model._breed(population, 0, rng).centers[:, 0]
        values = {(a + 2.0 * (b - c)) for a, b, c in permutations((2.0, 4.0, 8.0))}
        assert child[0] in values
        assert_array_equal(child[1], child[0] + 100.0)
