"""Draws by chances."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from lab.baselines.drawing import roulette, roulette_without_replacement, weighted
from lab.baselines.engines import create_engine

CHANCES = np.array([0.0, 3.0, 1.0, 0.0, 4.0, 0.0])


def test_the_wheel_gives_each_its_share() -> None:
    drawn = roulette(CHANCES, (np.arange(800) + 0.5) / 800)
    assert_array_equal(np.bincount(drawn, minlength=6), 100 * CHANCES)


def test_the_wheel_never_stops_where_there_is_no_chance() -> None:
    """Not even at its ends, unless there is none at all."""
    assert_array_equal(roulette(CHANCES, np.array([0.0, np.nextafter(1.0, 0.0)])), [1, 4])
    assert_array_equal(roulette(np.zeros(3), np.array([0.1, 0.9])), [0, 2])


def test_draws_without_replacement_follow_the_chances() -> None:
    """All are different, and the first is drawn as by a wheel."""
    rng = np.random.default_rng(0)
    drawn = np.array([roulette_without_replacement(CHANCES, 2, rng) for _ in range(8000)])
    assert (drawn[:, 0] != drawn[:, 1]).all()
    assert_allclose(np.bincount(drawn[:, 0], minlength=6) / 1000, CHANCES, atol=0.15)
    # Given that the last one came first, the others share what is left.
    second = drawn[drawn[:, 0] == 4, 1]
    assert abs(np.mean(second == 1) - 0.75) < 0.03


def test_fewer_are_drawn_if_fewer_have_a_chance() -> None:
    drawn = roulette_without_replacement(CHANCES, 5, np.random.default_rng(0))
    assert_array_equal(np.sort(drawn), [1, 2, 4])


def test_values_are_weighted() -> None:
    X, values = np.arange(4.0)[:, None], np.ones(4)
    weights = np.array([1.0, 0.0, 2.0, 3.0])
    assert_array_equal(weighted(create_engine("reference", X, weights), values), weights)
    assert_array_equal(weighted(create_engine("reference", X, None), values), values)
