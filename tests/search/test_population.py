"""Individuals and populations: parents, clones, survivors, and when a population has settled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evomeans.search.population import (
    CLONE_TOLERANCE,
    Individual,
    Patience,
    Population,
    PopulationRules,
    clone_groups,
    different_parents,
    independent_parents,
    inherited_alpha,
    last_survivor,
    survivors,
    tournament,
)


def member(inertia: float, weights=(5.0, 3.0)) -> Individual:
    return Individual(np.zeros((len(weights), 1)), inertia, np.array(weights, float), 0.5)


# Few different values, so that clones and ties of cost without being clones are common.
members = st.builds(
    member,
    st.sampled_from([0.0, 1.0, 1.0 + 1e-12, 1.0 + 3e-9, 2.0, 3.0, 1e300]),
    st.sampled_from([(5.0, 3.0), (3.0, 5.0), (4.0, 4.0)]),
)
populations = st.lists(members, min_size=1, max_size=15)
counts = st.integers(1, 8)
seeds = st.integers(0, 100)


def test_a_person_can_read_it() -> None:
    """One line, whatever the number of clusters."""
    assert repr(member(78.5)) == "Individual(inertia=78.5, alpha=0.5)"


# ---- clones ----------------------------------------------------------------------------------


def test_clones_have_the_same_inertia_and_sizes_in_any_order() -> None:
    assert member(1.0, (5.0, 3.0)).is_clone_of(member(1.0, (3.0, 5.0)))
    assert member(1.0 + 1e-10).is_clone_of(member(1.0))
    assert member(0.0).is_clone_of(member(0.0))


def test_another_inertia_or_other_sizes_are_no_clone() -> None:
    assert not member(1.0, (5.0, 3.0)).is_clone_of(member(1.0, (4.0, 4.0)))
    assert not member(1.0 + 1e-8).is_clone_of(member(1.0))
    assert not member(1e-300).is_clone_of(member(0.0))


@given(populations)
def test_clone_groups_split_the_population_by_clones_best_first(population) -> None:
    """Every member in one group, clones together, different groups no clones, in order of cost."""
    groups = clone_groups(population)
    assert sorted(id(m) for group in groups for m in group) == sorted(map(id, population))
    heads = [group[0] for group in groups]
    assert [head.inertia for head in heads] == sorted(head.inertia for head in heads)
    for group in groups:
        assert all(m.is_clone_of(group[0]) for m in group)
        assert all(not head.is_clone_of(group[0]) for head in heads if head is not group[0])


# ---- tournaments -----------------------------------------------------------------------------


def test_a_tournament_takes_the_better_of_the_two_named() -> None:
    population = [member(4.0), member(1.0), member(3.0), member(2.0)]
    assert tournament(population, 0.0, 0.3) is population[1]
    assert tournament(population, 0.3, 0.0) is population[1]
    assert tournament(population, 0.6, 0.6) is population[2]
    assert tournament(population, 0.0, 1.0 - 2.0**-53) is population[3]
    clones = [member(1.0), member(1.0)]
    assert tournament(clones, 0.0, 0.9) is clones[0], "the first drawn wins a draw"


@given(st.integers(1, 100))
def test_the_largest_uniform_number_names_the_last_member(size) -> None:
    largest = 1.0 - 2.0**-53
    population = [member(float(i)) for i in range(size)]
    assert tournament(population, largest, largest) is population[-1]


# ---- survivors -------------------------------------------------------------------------------


@given(populations, counts, seeds)
def test_survivors_are_members_sorted_and_never_more_than_count(population, count, seed) -> None:
    kept = survivors(population, count, np.random.default_rng(seed))
    assert len(kept) == min(count, len(population))
    assert len({id(m) for m in kept}) == len(kept)
    assert {id(m) for m in kept} <= set(map(id, population))
    assert [m.inertia for m in kept] == sorted(m.inertia for m in kept)


@given(populations, counts, seeds)
def test_the_best_solution_always_survives(population, count, seed) -> None:
    """The best or a clone of it, whichever the coin keeps."""
    kept = survivors(population, count, np.random.default_rng(seed))
    best = min(m.inertia for m in population)
    assert kept[0].inertia <= best * (1.0 + CLONE_TOLERANCE)


@given(populations, counts, seeds)
def test_clones_go_before_worse_originals(population, count, seed) -> None:
    """No solution dies out while another has two copies, and none before a worse one."""
    kept = {id(m) for m in survivors(population, count, np.random.default_rng(seed))}
    copies = [sum(id(m) in kept for m in group) for group in clone_groups(population)]
    assert copies.count(0) == max(0, len(copies) - count)
    if 0 in copies:
        assert copies == sorted(copies, reverse=True)
        assert max(copies) == 1


def test_the_last_survivor_is_no_clone_and_the_worst_if_there_are_few() -> None:
    population = [member(one) for one in (3.0, 1.0, 1.0 + 1e-12, 2.0, 5.0)]
    assert [last_survivor(population, count).inertia for count in (1, 2, 3, 9)] == [1, 2, 3, 5]


def test_the_best_clones_fill_the_places_that_are_left() -> None:
    """Two solutions, five members, four places: a copy of the best goes on, not of the worse."""
    population = [member(1.0), member(2.0), member(1.0), member(2.0), member(1.0)]
    kept = survivors(population, 4, np.random.default_rng(0))
    assert [m.inertia for m in kept] == [1.0, 1.0, 1.0, 2.0]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_which_clone_stays_is_left_to_chance(seed) -> None:
    """Each of three copies stays in about a third of 600 selections."""
    population = [member(1.0), member(1.0), member(1.0), member(5.0)]
    rng = np.random.default_rng(seed)
    stayed = [population.index(survivors(population, 2, rng)[0]) for _ in range(600)]
    counts = np.bincount(stayed, minlength=4)
    assert counts[3] == 0
    assert np.sum((counts[:3] - 200) ** 2 / 200) < 13.8  # χ²(2), p = 0.001


# ---- parents ---------------------------------------------------------------------------------

quarters = st.tuples(*[st.floats(0.0, 1.0, exclude_max=True)] * 4)


@given(populations, quarters)
def test_independent_parents_are_the_winners_of_two_tournaments(population, uniforms) -> None:
    first, second = independent_parents(population, uniforms)
    assert first is tournament(population, *uniforms[:2])
    assert second is tournament(population, *uniforms[2:])


@given(populations, quarters)
def test_the_second_parent_is_another_solution_if_there_is_one(population, uniforms) -> None:
    first, second = different_parents(population, uniforms)
    assert first is tournament(population, *uniforms[:2])
    if len(clone_groups(population)) > 1 and any(not m.is_clone_of(first) for m in population):
        assert not second.is_clone_of(first)


def test_a_population_of_clones_still_has_parents() -> None:
    clones = [member(1.0), member(1.0)]
    assert different_parents(clones, (0.0, 0.0, 0.9, 0.9)) == (clones[0], clones[1])


# ---- populations -----------------------------------------------------------------------------


def population(**changes) -> Population:
    """Π_min = 2, Π_max = 3, two founders, and a patience of four offspring."""
    rules = PopulationRules(2, 3, 2, independent_parents, survivors, 1e-3, Patience(4))
    return Population(replace(rules, **changes), rules.n_founders)


def add(own: Population, *inertias: float, is_independent: bool = True) -> Population:
    for inertia in inertias:
        own.add(member(inertia), is_independent=is_independent)
    return own


def test_founders_come_first_and_offspring_after_them() -> None:
    own = add(population(), 5.0, 4.0, 3.0)
    assert (own.founders_due, own.n_offspring, own.last_improvement) == (0, 1, 1)


def test_survivors_are_selected_when_all_founders_are_there_and_members_too_many() -> None:
    own, rng = add(population(), 5.0, 4.0, 3.0), np.random.default_rng(0)
    own.survive(rng)
    assert len(own) == 3
    add(own, 2.0).survive(rng)
    assert [one.inertia for one in own.members] == [2.0, 3.0]


def test_it_has_settled_after_its_patience() -> None:
    own = add(population(), 5.0, 4.0, 9.0, 9.0, 9.0)
    assert not own.is_settled
    assert add(own, 9.0).is_settled
    assert not add(own, 3.0).is_settled


def test_patience_grows_with_the_last_improvement_and_is_shared_by_founders_that_agree() -> None:
    patience = Patience(40, first=0.25, factor=0.5, is_shared=True)
    assert [patience.after(n) for n in (0, 3, 100)] == [5, 8, 40]
    assert [patience.after(0, n_agreeing) for n_agreeing in (0, 1, 5, 99)] == [5, 5, 1, 1]


def test_a_population_from_a_sample_waits_longer() -> None:
    own = add(population(patience=Patience(1, after_sample=2)), 5.0, 4.0, 9.0)
    assert own.is_settled
    own.sample_size = 100
    assert not own.is_settled
    assert add(own, 9.0).is_settled


def test_two_agree_whose_leaders_are_within_the_tolerance() -> None:
    own, other, worse = add(population(), 1.0), add(population(), 1.0005), add(population(), 1.01)
    assert own.agrees_with(other)
    assert other.agrees_with(own)
    assert not own.agrees_with(worse)
    assert not worse.agrees_with(own)


def test_a_frozen_population_takes_no_members_and_keeps_no_handles() -> None:
    own = population()
    own.add(replace(member(1.0), handle="memory"), is_independent=True)
    frozen = own.frozen()
    assert frozen.members[0].handle is None
    assert own.members[0].handle == "memory"
    with pytest.raises(AssertionError, match="takes no members"):
        add(frozen, 2.0)


def test_two_united_are_a_rank_above_with_the_best_of_both() -> None:
    own, other = add(population(), 1.0, 4.0), add(population(), 2.0, 3.0)
    united = own.frozen().combined_with(other.frozen(), np.random.default_rng(0))
    assert [one.inertia for one in united.members] == [1.0, 2.0, 3.0]
    assert (united.number, united.rank, united.is_inherited) == (2, 1, True)
    assert (united.founders_due, united.since_improvement) == (0, 0)
    assert not add(united, 0.5).is_inherited


unit = st.floats(0.0, 1.0)


@pytest.mark.parametrize(
    ("first", "second", "uniform", "alpha"),
    [
        (0.2, 0.6, 0.5, 0.4),
        (0.2, 0.6, 0.0, 0.2),
        (0.2, 0.6, 1.0, 0.6),
        (0.2, 0.6, 0.75, 0.5),
        (0.1, 0.1, 0.0, 0.0),
        (0.9, 1.0, 0.9, 1.0),
    ],
)
def test_alpha_is_the_mean_moved_by_up_to_a_fifth_and_clipped(first, second, uniform, alpha):
    assert inherited_alpha(first, second, uniform) == pytest.approx(alpha, abs=1e-15)


@given(unit, unit, unit)
def test_alpha_stays_in_the_unit_interval_and_near_the_mean(first, second, uniform) -> None:
    alpha = inherited_alpha(first, second, uniform)
    assert 0.0 <= alpha <= 1.0
    assert alpha == inherited_alpha(second, first, uniform)
    assert abs(alpha - (first + second) / 2) <= 0.2 + 1e-15
