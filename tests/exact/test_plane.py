"""Prices in the plane: valid for any prices, and good ones where there is a solver."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from proof_problems import brute_force

from evomeans.exact.limits import Limits
from evomeans.exact.plane_pricing import least_value, plane_bound
from evomeans.exact.points import WeightedPoints


def plane_points(rng: np.random.Generator, n: int) -> WeightedPoints:
    X = rng.normal(size=(n, 2))
    if rng.random() < 0.3:
        X = np.round(2 * X)
    weights = rng.random(n) + 0.05 if rng.random() < 0.5 else None
    return WeightedPoints.of_samples(X, weights)


@given(seed=st.integers(0, 10**6), scale=st.sampled_from([0.0, 0.03, 0.3, 3.0]))
def test_any_prices_give_a_valid_bound(seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    points = plane_points(rng, 7)
    k = int(rng.integers(2, 4))
    if points.n <= k:
        return
    optimum, _ = brute_force(points, k)
    prices = scale * rng.random(points.n) ** 2 * points.weights
    assert plane_bound(points, k, prices) <= optimum * (1 + 1e-13)


def test_the_least_value_is_that_of_all_subsets() -> None:
    """The least cost minus prices over all subsets, each about its own mean."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        points = plane_points(rng, 8)
        prices = 0.5 * rng.random(points.n) * points.weights
        best = 0.0
        for size in range(1, points.n + 1):
            for chosen in itertools.combinations(range(points.n), size):
                part = points.restricted(np.array(chosen))
                cost = part.inertia(np.zeros(size, np.int64))
                best = min(best, cost - prices[list(chosen)].sum())
        found, _ = least_value(points, prices, 1e-9, -np.inf)
        assert best - 1e-8 <= found <= best + 1e-12


def test_the_solver_closes_the_gap() -> None:
    pytest.importorskip("highspy")
    from evomeans.exact.plane import by_columns

    rng = np.random.default_rng(2)
    points = WeightedPoints.of_samples(rng.normal(size=(9, 2)))
    optimum, labels = brute_force(points, 4)
    found = by_columns(points, 4, labels, Limits(max_time=20))
    assert optimum * (1 - 0.05) <= found.lower <= optimum * (1 + 1e-13)


def test_without_the_solver_the_error_names_the_extra(monkeypatch) -> None:
    import sys

    from evomeans.exact.plane import import_highspy

    monkeypatch.setitem(sys.modules, "highspy", None)
    with pytest.raises(ImportError, match=r"evomeans\[plane\]"):
        import_highspy()
