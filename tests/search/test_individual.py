"""The mutation parameter α."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evomeans.search.population import inherited_alpha

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
