"""The proof in closed form: right where clusters are apart, and never above the optimum."""

from __future__ import annotations

import numpy as np
import pytest
from proof_problems import brute_force, problems

from evomeans.exact.points import WeightedPoints
from evomeans.exact.separation import separation_bound


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
    optimum, _ = brute_force(points, 3)
    bound = separation_bound(points, points.labels_of_points(labels))
    assert bound == pytest.approx(optimum, rel=1e-9)


def test_clusters_that_overlap_are_not_called_optimal() -> None:
    X, labels = blobs(300, 4, 1.5, 2)
    points = WeightedPoints.of_samples(X)
    known = points.labels_of_points(labels)
    assert separation_bound(points, known) < 0.9 * points.inertia(known)
