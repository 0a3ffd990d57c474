"""The two closest centres of samples, found by matrix products where there are many features."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist

from evomeans.metrics.sums import MANY_CENTERS, MANY_FEATURES, two_distances


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("is_labelled", [False, True])
@pytest.mark.parametrize("k", [MANY_CENTERS, 20])
def test_many_features_have_the_distances_of_few(offset, is_labelled, k) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, MANY_FEATURES)) + offset
    centers = rows[:k] + 0.1
    labels = rng.integers(k, size=len(rows)) if is_labelled else None
    own, near, far, other = two_distances(rows, centers, labels)
    distances = cdist(rows, centers)
    places = np.arange(len(rows))
    expected = distances.argmin(axis=1) if labels is None else labels
    assert_array_equal(own, expected)
    assert_allclose(near, distances[places, expected], rtol=1e-12)
    distances[places, expected] = np.inf
    assert_array_equal(other, distances.argmin(axis=1))
    assert_allclose(far, distances.min(axis=1), rtol=1e-12)


def test_twins_among_the_centres_are_as_near_as_each_other() -> None:
    rows = np.random.default_rng(0).normal(size=(50, MANY_FEATURES))
    own, near, far, other = two_distances(rows, np.repeat(rows[:3], 2, axis=0))
    assert (near[:3] == 0.0).all()
    assert_array_equal(near, far)
    assert (own != other).all()
    assert_array_equal(own // 2, other // 2)
