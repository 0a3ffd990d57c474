"""The inertia of labels: within its stated error of exact arithmetic, whatever the offsets."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from evomeans.exact.points import (
    WeightedPoints,
    distinct_rows,
    inertia_of_samples,
    labelled_inertia,
)
from tests.fuzz.certificates import Problem, Rationals


def exact_inertia(values: np.ndarray, weights: np.ndarray, labels: np.ndarray) -> Fraction:
    exact = Rationals(Problem("", "", values, weights, 1))
    return exact.of_labels(labels)


@pytest.mark.parametrize("spread", [1.0, 1e-6, 1e-12, 2.0**-52, 1e-200])
def test_the_exact_inertia_is_within_the_error(spread: float) -> None:
    """Also of values that differ in their last digits only, or whose squares underflow."""
    rng = np.random.default_rng(int(-np.log10(spread)))
    for _ in range(60):
        n, d, k = int(rng.integers(2, 9)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
        offset = rng.random(d) / 2 if rng.random() < 0.7 else 0.0
        values = offset + spread * np.round(rng.random((n, d)), 2) / 2
        weights = rng.random(n) ** 4 + 1e-12
        labels = rng.integers(0, k, n)
        found = labelled_inertia(values, weights, labels)
        exact = exact_inertia(values, weights, labels)
        assert abs(Fraction(found.value) - exact) <= Fraction(found.error)
        if exact > 1e-250:
            assert found.error <= 1e-12 * (exact + 1e-30)


def test_the_mean_that_rounding_moves_does_not_count() -> None:
    """Two neighbours among the floating-point numbers: half of the squared distance."""
    found = labelled_inertia(np.array([[0.5], [0.5 + 2.0**-53]]), np.ones(2), np.zeros(2, int))
    assert found.value == 2.0**-107


def test_light_samples_keep_their_digits() -> None:
    """The heavy one would hide them, if the mean were rounded to the grid of the values."""
    values, weights = np.array([[0.1], [0.7], [0.3]]), np.array([1e-40, 1.0, 2e-40])
    labels = np.zeros(3, int)
    found, exact = labelled_inertia(values, weights, labels), exact_inertia(values, weights, labels)
    assert abs(Fraction(found.value) - exact) <= Fraction(found.error) < exact / 10**13


def test_equal_samples_may_have_different_labels_and_no_weight() -> None:
    X, w = np.array([[1.0], [1.0], [3.0], [9.0]]), np.array([1.0, 2.0, 3.0, 0.0])
    labels = np.array([0, 1, 1, 0])
    points = WeightedPoints.of_samples(X, w)
    found = inertia_of_samples(points, X, w, labels).value
    assert found == pytest.approx(2 * 3 / 5 * 4, rel=1e-15)
    assert inertia_of_samples(points, X, w, np.array([0, 0, 1, 2])) == (0.0, 0.0)


def test_weights_that_underflow_do_not_make_an_inertia_zero() -> None:
    X, w = np.array([[0.0], [1.0], [2.0]]), np.array([1e300, 1e-300, 1e-300])
    points = WeightedPoints.of_samples(X, w)
    found = inertia_of_samples(points, X, w, np.array([0, 1, 1]))
    assert found.value == pytest.approx(5e-301, rel=1e-15)
    assert found.low <= 5e-301 <= found.high


def test_a_cluster_of_copies_that_are_far_too_light_has_a_mean() -> None:
    """Beside the others, the weights of its samples underflow to nothing."""
    X, w = np.array([[0.0], [1.0], [1.0], [0.0]]), np.array([1e300, 1e300, 1e-300, 1e-300])
    points = WeightedPoints.of_samples(X, w)
    assert points.is_whole
    found = inertia_of_samples(points, X, w, np.array([0, 0, 1, 1]))
    assert found.low <= 0.5e300 <= found.high
    assert found.error < 1e285


def test_distinct_rows_are_those_of_numpy() -> None:
    rng = np.random.default_rng(0)
    for n, d in rng.integers([1, 1], [30, 5], (300, 2)):
        rows = rng.integers(-2, 3, (n, d)) + 0.0
        values, places = np.unique(rows, axis=0, return_inverse=True)
        found = distinct_rows(rows)
        assert np.array_equal(found[0], values)
        assert np.array_equal(found[1], places.ravel())
