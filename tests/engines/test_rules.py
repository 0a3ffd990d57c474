"""The small rules that all engines share."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evomeans.engines.rules import GOLDEN_RATIO, repair_draw, split_mixture

LARGEST = 1.0 - 2.0**-53
alphas = st.floats(0.0, 1.0)
quantiles = st.floats(0.0, LARGEST)


@given(alphas, quantiles)
@example(1.0, LARGEST)
@example(0.0, LARGEST)
@example(1.7e-16, LARGEST)
@example(0.1, LARGEST)
@example(2.0**-53, LARGEST)
def test_what_is_left_of_the_uniform_number_is_one_again(alpha, quantile) -> None:
    """Always in [0, 1), also where 1 − α rounds."""
    _, left = split_mixture(alpha, quantile)
    assert 0.0 <= left < 1.0


@given(quantiles)
def test_alpha_one_draws_only_by_distance_and_zero_never(quantile) -> None:
    assert split_mixture(1.0, quantile) == (True, quantile)
    assert split_mixture(0.0, quantile) == (False, quantile)


@pytest.mark.parametrize("alpha", [0.2, 0.5, 0.8])
def test_the_parts_have_their_shares_and_stay_uniform(alpha) -> None:
    """On an even grid, α of it goes to the distances, and either part is an even grid again."""
    grid = (np.arange(1000) + 0.5) / 1000
    by_distance, left = map(np.array, zip(*[split_mixture(alpha, q) for q in grid], strict=True))
    assert by_distance.mean() == pytest.approx(alpha)
    for part in (left[by_distance], left[~by_distance]):
        even = (np.arange(len(part)) + 0.5) / len(part)
        np.testing.assert_allclose(np.sort(part), even, atol=1e-12)


@given(alphas, quantiles, st.integers(1, 10_000))
def test_repairs_draw_in_the_unit_interval(alpha, quantile, repair) -> None:
    """The first from the mixture, later ones by distance only, so that repairs come to an end."""
    used_alpha, used_quantile = repair_draw(alpha, quantile, repair)
    assert used_alpha == (alpha if repair == 1 else 1.0)
    assert 0.0 <= used_quantile < 1.0
    shift = (used_quantile - quantile - repair * GOLDEN_RATIO) % 1.0
    assert min(shift, 1.0 - shift) < 1e-9


def test_repairs_made_together_land_apart() -> None:
    """The first ten numbers of any start differ by more than 1/20."""
    numbers = np.sort([repair_draw(0.5, 0.37, repair)[1] for repair in range(1, 11)])
    gaps = np.diff(np.append(numbers, numbers[0] + 1.0))
    assert gaps.min() > 0.05
