"""Exact trajectories of the loop: competition, survival, and when it ends."""

from __future__ import annotations

from itertools import chain, repeat

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scripted_search import FOUNDERS, inertias, run, small

from evomeans.search import SearchSettings, StopReason
from fakes import ScriptedClock, ScriptedRandom, breeding, refinement


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


def test_survivors_are_selected_when_the_population_exceeds_its_maximum() -> None:
    """4 founders; child 1 makes 5 → 2; children 2, 3 make 3, 4; child 4 makes 5 → 2; and so on."""
    script = chain(FOUNDERS, [15.0, 25.0, 35.0, 45.0, 12.0, 11.0, 50.0])
    _, result = run(script, small(max_offspring=7))
    sizes = [record.population_size for record in result.history]
    assert sizes == [1, 2, 3, 4, 2, 3, 4, 2, 3, 4, 2]
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


@pytest.mark.parametrize(
    ("script", "settings", "reason", "n_offspring", "best"),
    [
        ([], {"max_offspring": 9}, "max_offspring", 9, 10.0),
        # Improved by the third child: a patience of 5 ends after the eighth. Else by the fifth.
        ([12.0, 11.0, 9.0], {"patience": 5}, "no_improvement", 8, 9.0),
        ([], {"patience": 5}, "no_improvement", 5, 10.0),
        # Only a relative gain above 1e-10 counts as an improvement.
        ([10.0 * (1.0 - 1e-11)], {"patience": 3}, "no_improvement", 3, 10.0 * (1.0 - 1e-11)),
        ([10.0 * (1.0 - 1e-9)], {"patience": 3}, "no_improvement", 4, 10.0 * (1.0 - 1e-9)),
        # At most the target, also already in the initial population.
        ([11.0, 9.0, 8.0], {"target_inertia": 9.0}, "target_inertia", 2, 9.0),
        ([11.0, 9.0, 8.0], {"target_inertia": 8.0}, "target_inertia", 3, 8.0),
        ([11.0, 9.0, 8.0], {"target_inertia": 10.0}, "target_inertia", 0, 10.0),
        ([5.0, 0.0], {"target_inertia": 1.0}, "proven_optimal", 2, 0.0),
    ],
)
def test_what_ends_a_search(script, settings, reason, n_offspring, best) -> None:
    engine, result = run(chain(FOUNDERS, script, repeat(50.0)), small(**settings))
    assert (result.stop_reason, result.n_offspring) == (reason, n_offspring)
    assert result.best.inertia == best
    n_founders = 4 if n_offspring else 2
    assert len(engine.starts) == len(result.history) == n_founders + n_offspring


def test_a_target_missed_by_less_than_an_improvement_is_still_reached() -> None:
    """A child at the target ends the search even if it gains only 5e-11 on the best."""
    script = chain([40.0, 10.0 * (1.0 + 5e-11), 30.0, 20.0, 10.0], repeat(50.0, 3))
    _, result = run(script, small(target_inertia=10.0, max_offspring=4))
    assert result.stop_reason is StopReason.TARGET_INERTIA
    assert result.n_offspring == 1


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
        for name in ("alpha", "quantile", "removed", "parent"):
            assert getattr(a, name) == getattr(b, name)
