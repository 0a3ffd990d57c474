"""Strategy parameters: where they come from, and the ranges that they stay in."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from lab.baselines.saga.crossovers import CROSSOVERS
from lab.baselines.saga.parameters import RENEWAL, ParameterSet, inherited_parameters

FIRST = ParameterSet("PNN", 0.25, 0.75)
SECOND = ParameterSet("centroid distance", 0.125, 0.5)
NEVER = [0.99, 0.99, 0.99]


def test_there_are_six_crossovers() -> None:
    assert list(CROSSOVERS) == [
        "random multipoint",
        "centroid distance",
        "largest partitions",
        "multipoint pairwise",
        "one-point pairwise",
        "PNN",
    ]


@pytest.mark.parametrize(
    ("uniforms", "expected"),
    [
        ([0.0, 0.0, 0.0], ParameterSet("random multipoint", 0.0, 0.0)),
        ([0.5, 0.25, 0.75], ParameterSet("multipoint pairwise", 0.25, 0.75)),
        ([0.999, 0.5, 1.0 - 2.0**-53], ParameterSet("PNN", 0.5, 1.0 - 2.0**-53)),
    ],
)
def test_random_parameters_are_uniform_over_their_ranges(uniforms, expected) -> None:
    assert ParameterSet.drawn(np.array(uniforms)) == expected


@pytest.mark.parametrize(
    ("coins", "expected"),
    [
        ([0.0, 0.49, 0.2], FIRST),
        ([0.5, 0.9, 0.7], SECOND),
        ([0.1, 0.9, 0.1], ParameterSet("PNN", 0.125, 0.75)),
        ([0.9, 0.1, 0.9], ParameterSet("centroid distance", 0.25, 0.5)),
    ],
    ids=["first", "second", "mixed", "mixed otherwise"],
)
def test_each_parameter_comes_from_a_parent_of_its_own(coins, expected) -> None:
    uniforms = np.array([coins, NEVER, [0.0, 0.0, 0.0]])
    assert inherited_parameters(FIRST, SECOND, uniforms) == expected


@pytest.mark.parametrize("which", range(3))
def test_now_and_then_one_parameter_is_drawn_anew(which) -> None:
    """That one alone; the others are inherited as ever."""
    chances = np.full(3, RENEWAL)
    chances[which] = np.nextafter(RENEWAL, 0.0)
    uniforms = np.array([[0.0, 0.0, 0.0], chances, [0.6, 0.1, 0.9]])
    expected = ["PNN", 0.25, 0.75]
    expected[which] = ["multipoint pairwise", 0.1, 0.9][which]
    assert inherited_parameters(FIRST, SECOND, uniforms) == ParameterSet(*expected)


def test_parameters_stay_within_their_ranges_over_many_generations() -> None:
    """And all crossovers come up again and again: none is lost for ever."""
    rng = np.random.default_rng(0)
    seen = Counter()
    first, second = FIRST, FIRST
    for _ in range(3000):
        first, second = second, inherited_parameters(first, second, rng.random((3, 3)))
        seen[second.crossover] += 1
        assert 0.0 <= second.mutation_probability <= 1.0
        assert 0.0 <= second.noise_range <= 1.0
    assert set(seen) == set(CROSSOVERS)
