"""Bounds against rational numbers where float64 is at its limits: offsets, weights, underflow."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from evomeans import Certificate, ExactKMeans, HGMeans, HGMeansPath, certify
from evomeans.exact.line import cluster_line
from evomeans.exact.points import (
    WeightedPoints,
    distinct_rows,
    exact_inertia,
    inertia_of_samples,
    labelled_inertia,
)
from tests.fuzz.certificates import Problem, Rationals, case, check_certificate


def checked(
    X: Any, labels: Sequence[int], weights: Any = None, k: int | None = None, **options: Any
) -> tuple[Certificate, Fraction]:
    """Certify labels, and compare all that is said with the rational optimum, which is returned."""
    X = np.array(X, float)
    weights = None if weights is None else np.array(weights, float)
    k = k or len(set(labels))
    problem = Problem("", "", X, weights, k)
    found, exact = (
        certify(X, np.array(labels), weights, n_clusters=k, **options),
        Rationals(problem),
    )
    check_certificate(found, problem, exact, options.get("gap", 1e-6), Fraction(1, 10**12))
    return found, exact.optimum


SECONDS = np.array([[0.0], [1e-6], [3e-6], [1e-3], [1.002e-3], [1.003e-3]])


@pytest.mark.parametrize(
    ("X", "labels"),
    [
        ([[1.0], [1.0 + 2**-52]], [0, 0]),
        (1.7e9 + SECONDS, [0, 0, 0, 1, 1, 1]),
        (1.7e9 + SECONDS, [0] * 6),
        (1e8 + np.array([[0, 0], [1, 0], [0, 3], [2, 5]]) * 2.0**-26, [0] * 4),
        (1e11 + np.array([[0.3], [-1.2], [2.1], [0.7]]), [0, 1, 2, 0]),
    ],
)
def test_an_offset_does_not_raise_a_direct_bound(X: Any, labels: list[int]) -> None:
    """The mean of samples far from the origin is no float64 number; the inertia is about it."""
    found, optimum = checked(X, labels)
    assert found.method == "direct"
    assert found.status == "optimal"
    assert Fraction(found.lower_bound) >= optimum * (1 - Fraction(1e-12))


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("offset", [0.0, 1e9, -1e11])
def test_plain_data_with_an_offset_is_proven_as_without(d: int, offset: float) -> None:
    rng = np.random.default_rng(d)
    labels = np.arange(40) % 3
    X = rng.normal(size=(40, d)) + 4 * np.eye(3)[labels][:, :d] + offset
    fitted = HGMeans(3, random_state=0).fit(X)
    assert certify(X, fitted.labels_).status == "optimal"


LINE = np.array([[0.0], [100], [101], [101.95]])
WEIGHTS = [
    np.exp([0.0, -55, -55, -53]),
    np.array([1, 1e-25, 1e-25, 8e-25]),
    np.array([1, 1e-22, 1e-22, 8e-22]),
]


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("labels", [[0, 1, 2, 2], [0, 1, 1, 2]])
def test_weights_that_are_clamped_prove_nothing(weights: Any, labels: list[int]) -> None:
    """One column whose weights have a ratio above 2**70, and the same points in a plane."""
    checked(LINE, labels, weights, gap=0.01)
    checked(np.c_[LINE, 0 * LINE], labels, weights, gap=0.01)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_a_fit_of_weights_that_are_clamped_is_not_proven(weights: Any) -> None:
    optimum = Rationals(Problem("", "", LINE, weights, 3)).optimum
    model = HGMeans(3).fit(LINE, sample_weight=weights)
    assert model.stop_reason_ == "precision"
    assert HGMeansPath(k_range=(3, 3)).fit(LINE, sample_weight=weights).stop_reason_ == "precision"
    assert not cluster_line(LINE[:, 0], 3, weights).is_proven
    exact = ExactKMeans(3, random_state=0).fit(LINE, sample_weight=weights)
    assert Fraction(exact.lower_bound_) <= optimum
    assert exact.stop_reason_ != "proven_optimal"


def test_light_samples_that_do_not_matter_leave_a_proof_in_place() -> None:
    """Without them the optimum is lower by next to nothing."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(7, 2))
    weights = np.array([1, 2, 1, 1, 3, 1e-30, 1e-200])
    labels = HGMeans(2, random_state=0).fit(X[:5], sample_weight=weights[:5]).predict(X)
    found, _ = checked(X, labels.tolist(), weights)
    assert found.status == "optimal"
    assert HGMeans(2).fit(X[:, :1], sample_weight=weights).stop_reason_ == "proven_optimal"


@pytest.mark.parametrize(
    ("X", "labels"),
    [
        ([[0, 0], [1e-10, 0], [0, 2.5e-10], [0, 1e150]], [0, 0, 1, 2]),
        ([[0, 0], [3e-12, 0], [0, 2.5e-12], [0, 1e150]], [0, 0, 0, 1]),
        ([[0], [1e-8], [2.5e-8], [1e150]], [0, 0, 0, 1]),
        ([[0, 0, 0], [1e-80, 0, 0], [3e-80, 0, 0], [0, 5e-80, 1], [7e-80, 0, 0]], [0, 0, 0, 1, 0]),
    ],
)
@pytest.mark.parametrize("method", ["auto", "separation", "relaxation"])
def test_inertias_next_to_an_outlier_are_not_proven_by_underflow(
    X: Any, labels: list[int], method: str
) -> None:
    found, _ = checked(X, labels, method=method)
    assert found.status == "bounded"
    if method == "auto":
        assert "orders of magnitude" in found.reason


def test_a_column_next_to_an_outlier_is_clustered() -> None:
    """All starts of the program were pruned by an inertia that had underflown."""
    model = HGMeans(2).fit([[0], [1e-8], [2.5e-8], [1e150]])
    assert model.labels_.tolist() == [0, 0, 0, 1]


def test_better_labels_whose_inertia_underflows_are_not_called_optimal() -> None:
    X = [[0, 0], [1e-170, 0], [0, 2e-170], [1, 1], [1.5, 2], [2, 5]]
    for method in ("auto", "relaxation", "plane", "separation"):
        found, _ = checked(X, [0, 0, 0, 1, 1, 2], k=4, method=method)
        assert found.upper_bound > 0


@pytest.mark.parametrize("number", [3753, 9508, 12773])
def test_a_part_whose_inertia_underflows_counts_as_nothing(number: int) -> None:
    """Random problems in which one of the parts is next to a far outlier."""
    assert "parts" in case(np.random.default_rng([3, number]))


def test_weights_that_vanish_beside_others_still_cost() -> None:
    found, _ = checked([[0.0, 0], [1e6, 1], [2e6, 5]], [0, 1, 1], [1e300, 1e-300, 1e-300])
    assert found.upper_bound > 0
    assert found.status == "bounded"


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("smallest", [1e-20, 1e-30, 1e-40, 1e-200])
@pytest.mark.parametrize("method", ["auto", "relaxation", "separation"])
def test_weights_out_of_proportion_never_end_in_an_internal_error(
    d: int, smallest: float, method: str
) -> None:
    X = np.random.default_rng(0).random((6, d))
    light = [1, *[smallest] * 5]
    checked(X, [0, 1, 1, 1, 1, 1], light, method=method, max_time=1.0)
    mixed = [1, 1, 1, 1, smallest, smallest]
    checked(X, [0, 1, 1, 0, 1, 0], mixed, method=method, max_time=1.0)


def test_zero_by_underflow_is_not_said_to_be_proven() -> None:
    X = np.array([[0.0, 0], [1e-170, 0], [1, 1], [1, 1]])
    model = HGMeans(2, random_state=0, engine="reference").fit(X)
    assert model.inertia_ == 0.0
    assert model.stop_reason_ == "precision"
    same = HGMeans(2, random_state=0).fit(np.array([[0.0, 0], [0, 0], [1, 1], [1, 1]]))
    assert same.stop_reason_ == "proven_optimal"


def test_labels_of_a_column_that_differ_where_inertias_underflow_are_not_said_to_be_proven() -> (
    None
):
    X = np.array([[7e-34], [-1e152], [-4e-62], [2e8], [-1e-65], [2e-142], [3e-37]])
    with pytest.warns(ConvergenceWarning, match="smaller than n_clusters"):
        model = HGMeans(6, random_state=0).fit(X, sample_weight=np.full(7, 5e-301))
    assert model.inertia_ == 0.0
    assert model.stop_reason_ == "precision"


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e12])
@pytest.mark.parametrize("spread", [0, 8, 20])
def test_inertias_are_those_of_rational_numbers(offset: float, spread: int) -> None:
    """To a share of some units in the last place, whatever the offset and the weights."""
    rng = np.random.default_rng(spread)
    X = rng.normal(size=(50, 3)) + offset
    weights = 10.0 ** -rng.uniform(0, spread, 50)
    labels = rng.integers(0, 4, 50)
    points = WeightedPoints.of_samples(X, weights)
    found = points.in_data_units(points.inertia(points.labels_of_points(labels)))
    assert found == pytest.approx(exact_inertia(X, weights, labels), rel=1e-14, abs=0)


# ---- the inertia of labels -----------------------------------------------------------------------


def in_rationals(values: np.ndarray, weights: np.ndarray, labels: np.ndarray) -> Fraction:
    return Rationals(Problem("", "", values, weights, 1)).of_labels(labels)


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
        exact = in_rationals(values, weights, labels)
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
    found, exact = labelled_inertia(values, weights, labels), in_rationals(values, weights, labels)
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
