"""The best convex combination of three subgradients, by its optimality conditions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from lab.baselines.nonsmooth.aggregation import aggregation_weights


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 5), st.floats(0.0, 3.0))
def test_no_combination_is_better(seed, dimension, size) -> None:
    """The derivative is least, and equal, for all subgradients that are used."""
    rng = np.random.default_rng(seed)
    gradients, errors = rng.normal(size=(3, dimension)), size * rng.random(3)
    products = gradients @ gradients.T
    weights = aggregation_weights(products, errors)
    assert weights.min() >= 0.0
    assert weights.sum() == pytest.approx(1.0)
    slopes = products @ weights + errors
    assert_allclose(slopes[weights > 1e-9], slopes.min(), atol=1e-7)


def test_equal_subgradients_leave_the_least_error() -> None:
    """As in the first null step, where the aggregate is the subgradient itself."""
    gradients = np.array([[1.0, 2.0], [-1.0, 0.0], [1.0, 2.0]])
    errors = np.array([0.0, 0.1, 0.0])
    weights = aggregation_weights(gradients @ gradients.T, errors)
    combined = weights @ gradients
    shares = np.linspace(0.0, 1.0, 1001)[:, None]
    candidates = (1.0 - shares) * gradients[0] + shares * gradients[1]
    values = np.square(candidates).sum(axis=1) + 0.2 * shares[:, 0]
    assert combined @ combined + 2.0 * weights @ errors <= values.min() + 1e-12
