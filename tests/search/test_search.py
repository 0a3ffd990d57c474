"""What the search asks of an engine for each solution, and when it lets one be given up."""

from __future__ import annotations

from itertools import repeat

import numpy as np
import pytest
from scripted_search import ALL, FOUNDERS, NONE, crossing, inertias, parts, run, small

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
