"""Problems that are solved without a search."""

from __future__ import annotations

import numpy as np
import pytest
from proof_problems import brute_force

from evomeans.exact.points import WeightedPoints
from evomeans.exact.proofs import direct_optimum, is_direct


@pytest.mark.parametrize(("n", "d", "k"), [(7, 2, 1), (7, 3, 6), (7, 1, 3), (7, 1, 1), (6, 2, 5)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_the_optimum_is_that_of_brute_force(n, d, k, weighted, offset) -> None:
    rng = np.random.default_rng(n + d + k)
    X = rng.normal(size=(n, d)) + offset
    points = WeightedPoints.of_samples(X, rng.random(n) + 0.1 if weighted else None)
    assert is_direct(points, k)
    optimum, _ = brute_force(points, k)
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
