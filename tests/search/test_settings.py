"""Settings are validated once, and errors name the parameter, its value and what was expected."""

from __future__ import annotations

import dataclasses
import math
import re

import pytest

from evomeans.search import SearchSettings


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


@pytest.mark.parametrize(
    "values",
    [
        {"min_population": 1, "max_population": 1},
        {"min_population": 20},
        {"max_offspring": 1, "patience": 1},
        {"max_time": 1e-9},
        {"max_time": math.inf},
        {"target_inertia": 0.0},
        {"roulette_power": 1},
    ],
)
def test_values_at_the_limit_are_fine(values) -> None:
    settings = SearchSettings(**values)
    assert {name: getattr(settings, name) for name in values} == values


def test_settings_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        SearchSettings().patience = 3
