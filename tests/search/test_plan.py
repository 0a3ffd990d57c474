"""One pure function decides which operators a population gets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evomeans.engines.protocol import KMEANS, Ability, LocalSearch
from evomeans.search import DEEP, PAPER
from evomeans.search.founding import KMeansPlusPlus
from evomeans.search.plan import missing_abilities, plan
from evomeans.search.strategy import FEW_FOR_MOVES, FEW_FOR_SWAPS

ALL, NONE = frozenset(Ability), frozenset()


def names(operators) -> tuple[list[str], list[str]]:
    return [one.name for one in operators.founding], [one.name for one in operators.crossovers]


@pytest.mark.parametrize("abilities", [ALL, NONE])
@pytest.mark.parametrize("n_samples", [10, 10**6])
@pytest.mark.parametrize("population", [1, 2])
def test_the_strategy_of_the_paper_needs_nothing(abilities, n_samples, population) -> None:
    operators = plan(PAPER, abilities, n_samples, 10, population)
    assert names(operators) == (["random samples"], ["matching"])
    assert operators.local_search == KMEANS
    assert missing_abilities(PAPER, abilities, n_samples, 10) == set()


def test_small_clusters_get_everything() -> None:
    operators = plan(DEEP, ALL, 10 * FEW_FOR_SWAPS, 10, 1)
    assert names(operators) == (
        ["k-means++", "random samples"],
        ["partition", "merging", "matching"],
    )
    assert operators.local_search == LocalSearch(single_moves=True, swaps=10)
    assert missing_abilities(DEEP, ALL, 640, 10) == set()


@pytest.mark.parametrize("population", [1, 2])
def test_clusters_of_medium_size_have_moves_and_no_swaps(population) -> None:
    for per_cluster in (FEW_FOR_SWAPS + 1, FEW_FOR_MOVES):
        operators = plan(DEEP, ALL, 10 * per_cluster, 10, population)
        assert names(operators)[1] == ["merging", "matching"]
        assert operators.local_search == LocalSearch(single_moves=True)


def test_where_clusters_are_large_the_first_population_is_that_of_the_paper() -> None:
    large = 10 * FEW_FOR_MOVES + 1
    assert plan(DEEP, ALL, large, 10, 1) == plan(PAPER, ALL, large, 10, 1)
    later = plan(DEEP, ALL, large, 10, 2)
    assert names(later) == (["k-means++", "random samples"], ["merging", "matching"])
    assert later.local_search == KMEANS


@pytest.mark.parametrize("population", [1, 2])
@pytest.mark.parametrize("n_samples", [100, 10**6])
def test_an_engine_without_abilities_keeps_merging_and_new_populations(
    population, n_samples
) -> None:
    """And what it lacks is named."""
    operators = plan(DEEP, NONE, n_samples, 10, population)
    assert names(operators) == (["random samples"], ["merging", "matching"])
    assert operators.local_search == KMEANS
    small = {Ability.SEEDING, Ability.PARTS, Ability.SINGLE_MOVES, Ability.SWAPS}
    lacking = small if n_samples == 100 else {Ability.SEEDING}
    assert missing_abilities(DEEP, NONE, n_samples, 10) == lacking


@pytest.mark.parametrize("missing", [Ability.SEEDING, Ability.PARTS, Ability.SWAPS])
def test_each_ability_is_used_or_named(missing) -> None:
    operators = plan(DEEP, ALL - {missing}, 100, 10, 1)
    assert missing_abilities(DEEP, ALL - {missing}, 100, 10) == {missing}
    assert missing_abilities(DEEP, ALL - {missing}, 10**5, 10) == {missing} & {Ability.SEEDING}
    assert missing not in operators.local_search.needs
    used = [one.needs for one in (*operators.founding, *operators.crossovers)]
    assert all(missing not in needs for needs in used)


def test_limits_of_the_local_search_belong_to_the_strategy() -> None:
    wide = replace(DEEP, moves_up_to=10**4, swaps_up_to=10**4)
    operators = plan(wide, ALL, 10**4, 10, 1)
    assert operators.local_search == LocalSearch(single_moves=True, swaps=10)


@pytest.mark.parametrize("changes", [{"founding": (KMeansPlusPlus(),)}, {"crossovers": ()}])
def test_a_strategy_without_a_usable_operator_is_an_error(changes) -> None:
    with pytest.raises(ValueError, match=r"No (founding|crossovers) of strategy 'deep'"):
        plan(replace(DEEP, **changes), NONE, 100, 10, 1)
