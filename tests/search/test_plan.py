"""One pure function decides which operators a population gets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evomeans.engines.frame import Frame
from evomeans.engines.protocol import Ability
from evomeans.search import DEEP, PAPER, Crossing, SearchSettings
from evomeans.search.crossover import merging_crossover, partition_crossover, squares_between
from evomeans.search.founding import KMeansPlusPlus
from evomeans.search.plan import (
    NOISY_FEATURES,
    SPACING_OF_A_GRID,
    Facts,
    effective_size,
    measure_spacing,
    missing_abilities,
    plan,
)
from evomeans.search.population import Individual
from evomeans.search.settings import FEW_FOR_SWAPS, SMALL_FOR_MOVES, SMALL_FOR_PARTS, VERY_NOISY

ALL, NONE = frozenset(Ability), frozenset()
GRID = SPACING_OF_A_GRID
FOUNDING = ["k-means++", "k-means++", "random samples", "random samples"]


def planned(strategy, abilities, n_clusters, per_cluster, spacing, n_features=2):
    facts = Facts(abilities, per_cluster * n_clusters, n_features)
    return plan(SearchSettings(strategy=strategy), facts, n_clusters, spacing)


def names(operators) -> tuple[list[str], list[str]]:
    return [one.name for one in operators.founding], [one.name for one in operators.crossovers]


@pytest.mark.parametrize("abilities", [ALL, NONE])
@pytest.mark.parametrize("per_cluster", [1, 10**5])
@pytest.mark.parametrize("spacing", [0.0, GRID])
def test_the_strategy_of_the_paper_needs_nothing(abilities, per_cluster, spacing) -> None:
    operators = planned(PAPER, abilities, 10, per_cluster, spacing)
    assert names(operators) == (["random samples"], ["matching"])
    assert (operators.single_moves, operators.swaps, operators.founder_swaps) == (False, 0.0, 0.0)
    assert missing_abilities(PAPER, abilities) == set()


def test_small_clusters_get_everything() -> None:
    operators = planned(DEEP, ALL, 10, min(FEW_FOR_SWAPS, SMALL_FOR_PARTS), GRID)
    assert names(operators) == (FOUNDING, ["partition", "merging", "squared matching"])
    assert operators.single_moves
    assert operators.swaps == operators.founder_swaps == pytest.approx(3.0)
    assert operators.first_swaps == 10
    assert missing_abilities(DEEP, ALL) == set()


def test_before_there_is_a_solution_there_is_nothing_but_k_means() -> None:
    operators = planned(DEEP, ALL, 10, 1.0, 0.0)
    assert not operators.single_moves
    assert operators.swaps == operators.founder_swaps == operators.first_swaps == 0.0


def test_the_larger_clusters_are_the_fewer_swaps_offspring_make() -> None:
    """Founders make all of them."""
    for factor in (1.0, 2.0, 10.0):
        operators = planned(DEEP, ALL, 10, factor * FEW_FOR_SWAPS, GRID)
        assert operators.founder_swaps == pytest.approx(3.0)
        assert operators.swaps == pytest.approx(3.0 / factor)
        assert operators.first_swaps == round(10.0 * min(1.0, 2.0 / factor))


@pytest.mark.parametrize("spacing", [1.0, GRID, 100.0])
def test_moves_and_parts_depend_on_the_effective_size(spacing) -> None:
    """Where centres are close compared with the noise, larger clusters still have them."""
    for limit, has_moves, has_parts in (
        (SMALL_FOR_PARTS, True, True),
        (SMALL_FOR_PARTS * 1.01, True, False),
        (SMALL_FOR_MOVES, True, False),
        (SMALL_FOR_MOVES * 1.01, False, False),
    ):
        operators = planned(DEEP, ALL, 10, limit * GRID / spacing * (1.0 - 1e-12), spacing)
        assert operators.single_moves == has_moves
        assert ("partition" in names(operators)[1]) == has_parts


@pytest.mark.parametrize(("n_features", "swaps"), [(1023, 0), (1024, 512)])
def test_large_noisy_clusters_have_swaps_of_the_first_solution(n_features, swaps) -> None:
    """As many as a founder, whose place it takes: from 2^29 products of an assignment on."""
    operators = planned(DEEP, ALL, 512, 2.0, VERY_NOISY, n_features)
    assert (operators.first_swaps, operators.founder_swaps) == (swaps, 512.0)


def test_noisy_clusters_get_small_populations_without_moves() -> None:
    """They have the better parts of both parents nevertheless."""
    noisy, clear = (planned(DEEP, ALL, 10, 100.0, factor * VERY_NOISY) for factor in (1.0, 1.01))
    assert (noisy.rules.n_founders, noisy.single_moves) == (5, False)
    assert (clear.rules.n_founders, clear.single_moves) == (20, True)
    assert (noisy.first_swaps, clear.first_swaps) == (0, 10)
    assert names(noisy) == names(clear)
    patiences = noisy.rules.patience, clear.rules.patience
    assert [(one.factor, one.is_shared) for one in patiences] == [(0.3, True), (1.0, False)]
    assert noisy.founder_swaps == pytest.approx(10.0)
    assert (clear.founder_swaps, noisy.swaps, clear.swaps) == (pytest.approx(3.0),) * 3
    assert (noisy.swapped_joins, clear.swapped_joins) == (True, False)
    assert planned(PAPER, ALL, 10, 100.0, 0.1).rules.n_founders == 20
    assert planned(DEEP, ALL - {Ability.SWAPS}, 10, 100.0, 0.1).rules.n_founders == 20


@pytest.mark.parametrize(("n_features", "n_founders"), [(1023, 20), (1024, 5)])
def test_where_a_founder_takes_long_there_are_few(n_features, n_founders) -> None:
    """From 2^29 products of an assignment on, before anything is known of the clusters and after.

    Not if they come from a search on a sample, nor on an engine that makes many at a time.
    """
    for spacing in (0.0, GRID):
        rules = planned(DEEP, ALL, 512, 2, spacing, n_features).rules
        sizes = rules.n_founders, rules.min_size, rules.max_size
        assert sizes == (n_founders, min(10, n_founders), min(20, 2 * n_founders))
    facts = Facts(ALL, 2**20, 10 * n_features)
    settings = SearchSettings(strategy=DEEP)
    assert plan(settings, facts, 10, GRID).rules.n_founders == 20
    assert plan(replace(settings, subsample=None), facts, 10, GRID).rules.n_founders == 5
    rounds = facts._replace(batch=8, round_size=8)
    assert plan(replace(settings, subsample=None), rounds, 10, GRID).rules.n_founders == 20
    assert planned(PAPER, ALL, 512, 2, GRID, n_features).rules.n_founders == 20


@pytest.mark.parametrize("spacing", [0.0, VERY_NOISY, GRID])
def test_thousands_of_clusters_that_take_long_have_three_founders_and_merging(spacing) -> None:
    """All begin with greedy k-means++, and the first one with swaps is the second one."""
    operators = planned(DEEP, ALL, 1024, 4, spacing, 128)
    assert operators.founding == (KMeansPlusPlus(greedy=True),)
    first = ["partition"] if spacing else []
    assert names(operators)[1] == [*first, "merging"]
    assert operators.crossovers[-1].share == 1.0
    assert (operators.rules.n_founders, operators.swapped_joins) == (3, True)
    assert operators.rules.min_size == (10 if spacing == VERY_NOISY else 5)
    # Fewer features, fewer clusters, or few founders by the user's own choice.
    for n_clusters, n_features in ((1024, 127), (512, 512), (10, 2)):
        settings = SearchSettings(2, 3, strategy=DEEP)
        facts = Facts(ALL, 4 * n_clusters, n_features)
        other = plan(settings, facts, n_clusters, spacing)
        assert names(other) == (FOUNDING, [*first, "merging", "squared matching"])
        assert other.swapped_joins == (spacing == VERY_NOISY)


def test_without_merging_thousands_of_clusters_are_matched() -> None:
    strategy = DEEP.without(merging_crossover)
    operators = planned(strategy, ALL, 1024, 4, GRID, 128)
    assert names(operators) == (FOUNDING, ["partition", "squared matching"])
    assert operators.rules.n_founders == 3


def test_an_engine_without_abilities_keeps_merging_and_new_populations() -> None:
    """And what it lacks is named."""
    operators = planned(DEEP, NONE, 10, 10.0, GRID)
    assert names(operators) == (FOUNDING, ["merging", "squared matching"])
    assert (operators.single_moves, operators.swaps, operators.founder_swaps) == (False, 0.0, 0.0)
    lacking = {Ability.SEEDING, Ability.PARTS, Ability.SINGLE_MOVES, Ability.SWAPS}
    assert missing_abilities(DEEP, NONE) == lacking


@pytest.mark.parametrize(
    "missing", [Ability.SEEDING, Ability.PARTS, Ability.SWAPS, Ability.SINGLE_MOVES]
)
def test_each_ability_is_used_or_named(missing) -> None:
    operators = planned(DEEP, ALL - {missing}, 10, 10.0, GRID)
    assert missing_abilities(DEEP, ALL - {missing}) == {missing}
    assert operators.single_moves == (missing is not Ability.SINGLE_MOVES)
    assert (operators.swaps > 0.0) == (missing is not Ability.SWAPS)
    assert all(missing not in one.needs for one in operators.crossovers)


@pytest.mark.parametrize(
    "changes",
    [
        {"founding": ()},
        {"crossovers": (Crossing(partition_crossover, needs=frozenset({Ability.PARTS})),)},
    ],
)
def test_a_strategy_without_a_usable_operator_is_an_error(changes) -> None:
    with pytest.raises(ValueError, match=r"No (founding|crossovers) of strategy 'deep'"):
        planned(replace(DEEP, **changes), NONE, 10, 10.0, GRID)


# ---- spacing -------------------------------------------------------------------------------------


def solution(centers, inertia: float) -> Individual:
    centers = np.asarray(centers, float)
    return Individual(centers, inertia, np.ones(len(centers)), 0.5)


@pytest.mark.parametrize("k", [1024, 1025, 5000])
def test_some_of_thousands_of_centers_tell_the_spacing(k) -> None:
    """Up to 1024 all of them, to the last bit."""
    centers = np.random.default_rng(0).normal(size=(k, 3))
    squares = squares_between(centers, centers)
    np.fill_diagonal(squares, np.inf)
    expected = float(np.median(squares.min(axis=1)))
    spacing = measure_spacing(solution(centers, 1.0), 1.0, float)
    assert spacing == (expected if k == 1024 else pytest.approx(expected, rel=0.1))


def test_a_grid_in_the_plane_has_its_spacing() -> None:
    """Centres of squares with sides 2, uniformly filled; also in a frame that is scaled."""
    side, n = 2.0, 36.0
    centers = [[side * i, side * j] for i in range(6) for j in range(6)]
    found = solution(centers, n * side * side / 6.0)
    assert measure_spacing(found, n, float) == pytest.approx(GRID)
    scaled = solution(np.ldexp(np.asarray(centers), 3), n * side * side / 6.0)
    assert measure_spacing(scaled, n, Frame(np.zeros(2), 3).inertia_in_data_units) == pytest.approx(
        GRID
    )
    assert effective_size(40.0, GRID) == pytest.approx(40.0)


def test_a_few_centres_far_out_do_not_count() -> None:
    centers = [*np.arange(9.0)[:, None], [1e6], [-1e6]]
    assert measure_spacing(solution(centers, 11.0), 11.0, float) == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize("found", [solution([[1.0]], 3.0), solution([[1.0], [2.0]], 0.0)])
def test_without_another_centre_or_any_distance_there_is_no_spacing(found) -> None:
    assert measure_spacing(found, 4.0, float) == 0.0
    assert effective_size(10.0, 0.0) == np.inf


def test_noisy_clusters_are_divided_where_swaps_cannot_do_it() -> None:
    noisy, clear = 0.5 * DEEP.divides_below, 2.0 * DEEP.divides_below
    many = NOISY_FEATURES
    assert planned(DEEP, NONE, 10, 100, noisy, many).divides
    assert not planned(DEEP, NONE, 10, 100, noisy, many - 1).divides
    assert not planned(DEEP, NONE, 10, 100, clear, many).divides
    assert not planned(DEEP, NONE, 10, 100, 0.0, many).divides
    assert not planned(DEEP, ALL, 10, 100, noisy, many).divides
    assert not planned(PAPER, NONE, 10, 100, noisy, many).divides


def test_an_engine_of_rounds_and_a_patience_that_is_given_have_no_small_populations() -> None:
    """Fewer founders would not save a round; a patience of the user's own is kept as it is."""
    settings = SearchSettings(strategy=DEEP, patience=7)
    rules = plan(settings, Facts(ALL, 1000, 2, batch=8, round_size=8), 10, VERY_NOISY).rules
    assert (rules.n_founders, rules.patience.after(3, n_agreeing=2)) == (20, 7)
