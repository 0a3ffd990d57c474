"""Standardized columns, and centres in the units of the table."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from evomeans.cli.failures import CommandError
from evomeans.cli.tables.numbers import Standardization


@given(
    arrays(np.float64, (7, 3), elements=st.floats(-1e6, 1e6)),
    arrays(np.float64, 7, elements=st.integers(1, 4).map(float)),
)
def test_mean_zero_and_deviation_one(X, weights):
    """Whole weights count like repeated rows; going back gives the samples again."""
    scaling = Standardization.of(X, weights, "abc")
    repeated = np.repeat(scaling.apply(X), weights.astype(int), axis=0)
    np.testing.assert_allclose(repeated.mean(axis=0), 0.0, atol=1e-9)
    deviation = repeated.std(axis=0)
    constant = np.ptp(X, axis=0) == 0
    np.testing.assert_allclose(deviation[constant], 0.0, atol=1e-9)
    assert (np.array(scaling.scale) > 0).all()
    np.testing.assert_allclose(scaling.undo(scaling.apply(X)), X, atol=1e-9, rtol=1e-12)


@pytest.mark.parametrize("value", [0.1, 1e300, -3.7e-5, 123456789.123])
def test_constant_columns_stay_finite(value):
    """The rounding of a mean is no deviation."""
    scaling = Standardization.of(np.full((1001, 1), value), None, "a")
    assert scaling.scale == (1.0,)
    np.testing.assert_allclose(scaling.apply(np.full((3, 1), value)), 0.0, atol=abs(value) * 1e-12)


def test_precision_is_kept():
    X = np.array([[1.0], [2.0], [5.0]], dtype=np.float32)
    assert Standardization.of(X, None, "a").apply(X).dtype == np.float32


def test_what_cannot_be_standardized():
    with pytest.raises(CommandError, match="too large to standardize in 'big'"):
        Standardization.of(np.array([[1e308, 1], [-1e308, 2]]), None, ["big", "b"])
    with pytest.raises(CommandError, match="weights are all zero"):
        Standardization.of(np.ones((2, 1)), np.zeros(2), "a")
