"""The steps of a search, and populations that settle, give way, are combined, and agree."""

from __future__ import annotations

from itertools import chain, repeat

import numpy as np
import pytest
from scripted_search import ALL, FOUNDERS, NONE, crossing, inertias, parts, restarting, run, small

from evomeans.engines.protocol import Ability
from evomeans.search import StopReason, Strategy
from evomeans.search.plan import SPACING_OF_A_GRID
from fakes import refinement


@pytest.mark.parametrize("abilities", [ALL, NONE])
def test_single_moves_are_asked_for_where_the_engine_has_them(abilities) -> None:
    """From the second solution on: the first one tells how far apart clusters are."""
    strategy = Strategy("moves", single_moves=True)
    settings = small(max_offspring=3, strategy=strategy)
    engine, result = run(repeat(100 / SPACING_OF_A_GRID), settings, abilities=abilities)
    wanted = [False, *[bool(abilities)] * 6]
    assert [start.local_search.single_moves for start in engine.starts] == wanted
    assert result.missing_abilities == {Ability.SINGLE_MOVES} - abilities


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


def test_offspring_have_to_survive_where_there_is_momentum() -> None:
    """The second of 10, 20, 30 and 40 is the last that would; founders need not."""
    settings = small(max_offspring=1, strategy=Strategy("m", momentum_from=1.0))
    engine, _ = run([*FOUNDERS, 5.0], settings)
    second = refinement(20.0, FOUNDERS.index(20.0))
    least = [start.least_explained for start in engine.starts]
    assert least == [0.0] * 4 + [float(second.cluster_weights @ second.centers[:, 0] ** 2)]


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
    assert result.stop_reason is StopReason.MAX_OFFSPRING
    assert [record.population_best for record in result.history][-1] == 5.0
    assert {10.0, 11.0, 12.0} <= set(inertias(result))
    assert result.n_rediscoveries == 0


def test_one_that_found_the_best_again_is_not_combined_with_a_third() -> None:
    """Four have to agree; a population of the same rank that settled elsewhere is still there."""
    best = refinement(10.0, 0, k=2)
    strategy = Strategy("four", agreement=4)
    script = chain([best, *[30.0] * 6, 41.0, best, 42.0, best], repeat(43.0))
    _, result = run(script, restarting(strategy=strategy, max_offspring=6))
    assert [record.population for record in result.history][:11] == [1] * 7 + [2] * 2 + [3] * 2
    assert result.history[11].founder
    assert result.history[11].population == 4


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
    assert result.stop_reason is StopReason.MAX_OFFSPRING
    assert result.n_rediscoveries == 0


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
    assert result.stop_reason is StopReason.MAX_OFFSPRING
    assert result.n_rediscoveries == 1
