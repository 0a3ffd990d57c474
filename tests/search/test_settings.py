"""Settings and strategies, and which of them are refused."""

from __future__ import annotations

import math
import re
from dataclasses import fields, replace
from itertools import repeat

import numpy as np
import pytest
from scripted_search import FOUNDERS, inertias, run, small

from evomeans.engines.protocol import KMEANS
from evomeans.search import DEEP, PAPER, SearchSettings, StopReason, Strategy
from evomeans.search.founding import RandomSamples
from evomeans.search.settings import FIRST_LAG


def test_the_defaults_are_the_papers_standard_setting() -> None:
    """(Π_min, Π_max, N₁, N₂) = (10, 20, 500, 5000)."""
    s = SearchSettings()
    assert (s.min_population, s.max_population, s.max_offspring) == (10, 20, 5000)
    assert s.longest_wait(100) == 500
    assert s.max_time is None
    assert s.target_inertia is None


@pytest.mark.parametrize(
    ("name", "value", "expectation"),
    [
        ("min_population", 0, "at least 1"),
        ("min_population", -3, "at least 1"),
        ("max_population", 9, "at least min_population=10"),
        ("max_offspring", 0, "at least 1"),
        ("patience", 0, "at least 1"),
        ("patience", math.nan, "at least 1"),
        ("max_time", 0, "positive, or None"),
        ("max_time", -1.5, "positive, or None"),
        ("max_time", math.nan, "positive, or None"),
        ("target_inertia", -1.0, "finite and not negative, or None"),
        ("target_inertia", math.inf, "finite and not negative, or None"),
        ("target_inertia", math.nan, "finite and not negative, or None"),
        ("roulette_power", 3, "1 or 2"),
        ("roulette_power", 0, "1 or 2"),
    ],
)
def test_a_bad_value_is_named_with_what_was_expected(name, value, expectation) -> None:
    message = re.escape(f"{name}={value!r} must be {expectation}.")
    with pytest.raises(ValueError, match=f"^{message}$"):
        SearchSettings(**{name: value})


def test_values_at_the_limit_are_fine() -> None:
    SearchSettings(1, 1, max_offspring=1, patience=1, max_time=1e-9, target_inertia=0.0)
    SearchSettings(20, 20, max_time=math.inf, roulette_power=1)


def test_the_papers_strategy_is_the_default_and_has_no_other_operator() -> None:
    assert SearchSettings().strategy == PAPER == Strategy("paper")
    engine, _ = run(repeat(1.0), small(max_offspring=20), k=6)
    assert all(start.local_search == KMEANS for start in engine.starts)
    assert engine.compared == []


@pytest.mark.parametrize("changes", [{"agreement": 0}, {"lag": 0}, {"patience": 0}])
def test_a_strategy_that_could_not_end_is_refused(changes) -> None:
    with pytest.raises(ValueError, match="must be at least 1"):
        Strategy("endless", **changes)


@pytest.mark.parametrize("name", [one.name for one in fields(Strategy)])
def test_a_checkpoint_tells_strategies_apart_by_every_parameter(name) -> None:
    """Those of the same name too, if they are not built in."""
    own, paper = replace(DEEP, name="own"), replace(PAPER, name="own", survival=sorted)
    value = getattr(own, name)
    other = not value if isinstance(value, bool) else getattr(paper, name)
    if other == value:
        other = value / 2 + 0.1 if isinstance(value, int | float) else "other"
    assert replace(own, **{name: other}).identity != own.identity


def test_patience_grows_with_the_offspring_up_to_the_last_improvement() -> None:
    """From its share after the founders to the whole."""
    strategy = Strategy("growing", patience=10, first_patience=0.2)
    for improvements, expected in (([], 2), ([1], 1 + 3), ([1, 4], 4 + 6), ([1, 4, 10], 10 + 10)):
        script = [100.0, 101.0, 102.0, 103.0]
        script += [50.0 - number if number in improvements else 200.0 for number in range(1, 40)]
        _, result = run(script, small(strategy=strategy))
        assert result.stop_reason is StopReason.NO_IMPROVEMENT
        assert result.n_offspring == expected


def test_the_lag_grows_with_the_offspring_of_a_population() -> None:
    """Early parents are the latest there are; the number of threads is not asked."""
    assert [PAPER.lag_after(made) for made in (0, 10, 1000)] == [1, 1, 1]
    lags = [DEEP.lag_after(made) for made in range(200)]
    assert lags == sorted(lags)
    assert (lags[0], lags[-1]) == (FIRST_LAG, DEEP.lag)


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
