"""The mutation parameter α."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evomeans.search.mutation import inherited_alpha, least_useful, tournament_size

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
    assert abs(alpha - (first + second) / 2) <= 0.2 + 1e-15


@given(unit, unit, unit)
def test_alpha_does_not_depend_on_the_order_of_the_parents(first, second, uniform) -> None:
    assert inherited_alpha(first, second, uniform) == inherited_alpha(second, first, uniform)


# ---- the centre that is relocated ------------------------------------------------------------

CENTERS = np.array([[0.0], [10.0], [10.5], [30.0]])


@pytest.mark.parametrize(
    ("weights", "drawn", "expected"),
    [
        ([5.0, 5.0, 1.0, 5.0], [0.1, 0.3, 0.6, 0.9], 1),  # 1 and 2 cost the same: the first drawn
        ([5.0, 5.0, 1.0, 5.0], [0.6, 0.3], 2),
        ([5.0, 5.0, 1.0, 5.0], [0.1, 0.9], 0),
        ([5.0, 5.0, 1.0, 5.0], [0.9, 0.99], 3),
        ([5.0, 5.0, 0.0, 5.0], [0.3, 0.6], 2),  # an empty cluster is worth nothing
    ],
)
def test_the_centre_with_the_cheapest_merger_is_the_least_useful(weights, drawn, expected) -> None:
    assert least_useful(CENTERS, np.array(weights), np.array(drawn)) == expected


def test_a_single_centre_can_be_named() -> None:
    assert least_useful(np.zeros((1, 2)), np.ones(1), np.array([0.0, 0.99])) == 0


def test_a_quarter_of_the_centres_is_compared_and_at_least_two() -> None:
    assert [tournament_size(k) for k in (1, 2, 8, 12, 100)] == [2, 2, 2, 3, 25]
