"""Proofs without a search: well-separated clusters, and problems that are solved directly."""

from __future__ import annotations

import numpy as np
import pytest
from proof_problems import problems, solved

from evomeans.exact.points import WeightedPoints
from evomeans.exact.proofs import direct_optimum, is_direct, separation_bound


def blobs(n: int, k: int, distance: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % k
    centres = distance * np.stack([np.arange(k), np.arange(k) ** 2 % 7], axis=1)
    return rng.normal(size=(n, 2)) + centres[labels], labels


@pytest.mark.parametrize("unit", [1e-120, 1.0, 1e120])
@pytest.mark.parametrize("weighted", [False, True])
def test_clusters_that_are_apart_are_proven_optimal(unit: float, weighted: bool) -> None:
    X, labels = blobs(20_000, 6, 30.0, 0)
    weights = np.random.default_rng(1).random(20_000) + 0.1 if weighted else None
    points = WeightedPoints.of_samples(unit * (X + 1e3), weights)
    known = points.labels_of_points(labels)
    inertia = points.inertia(known)
    assert inertia * (1 - 1e-8) <= separation_bound(points, known) <= inertia


def test_the_bound_never_exceeds_the_optimum() -> None:
    """For all clusterings, good and bad, of small problems with outliers, weights and units."""
    positive = 0
    for number, problem in enumerate(problems(50, 150)):
        rng = np.random.default_rng(number)
        for labels in (problem.labels, rng.permutation(problem.labels)):
            bound = separation_bound(problem.points, labels)
            positive += bound > 0.5 * problem.optimum
            assert bound <= problem.optimum * (1 + 1e-13)
    assert positive > 5


def test_small_separated_clusters_agree_with_brute_force() -> None:
    X, labels = blobs(9, 3, 25.0, 3)
    points = WeightedPoints.of_samples(X)
    optimum = solved(points, 3).optimum
    bound = separation_bound(points, points.labels_of_points(labels))
    assert bound == pytest.approx(optimum, rel=1e-9)


def test_clusters_that_overlap_are_not_called_optimal() -> None:
    X, labels = blobs(300, 4, 1.5, 2)
    points = WeightedPoints.of_samples(X)
    known = points.labels_of_points(labels)
    assert separation_bound(points, known) < 0.9 * points.inertia(known)


@pytest.mark.parametrize(("n", "d", "k"), [(7, 2, 1), (7, 3, 6), (7, 1, 3), (7, 1, 1), (6, 2, 5)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_the_optimum_is_that_of_brute_force(n, d, k, weighted, offset) -> None:
    rng = np.random.default_rng(n + d + k)
    X = rng.normal(size=(n, d)) + offset
    points = WeightedPoints.of_samples(X, rng.random(n) + 0.1 if weighted else None)
    assert is_direct(points, k)
    optimum = solved(points, k).optimum
    bound, labels = direct_optimum(points, k)
    assert points.inertia(labels) == pytest.approx(optimum, rel=1e-9)
    assert optimum * (1 - 1e-9) <= bound <= optimum * (1 + 1e-13)


def test_a_cluster_for_every_point_costs_nothing() -> None:
    points = WeightedPoints.of_samples(np.array([[0.0, 1.0], [2.0, 3.0], [0.0, 1.0]]))
    assert direct_optimum(points, 5)[0] == 0.0
    assert direct_optimum(points, 2)[0] == 0.0


def test_other_problems_are_left_to_others() -> None:
    points = WeightedPoints.of_samples(np.random.default_rng(0).normal(size=(9, 2)))
    assert not is_direct(points, 3)
    with pytest.raises(ValueError, match="need a search"):
        direct_optimum(points, 3)
