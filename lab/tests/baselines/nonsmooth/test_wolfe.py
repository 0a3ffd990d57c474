"""The point of least norm in a convex hull, against an enumeration of all faces."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from lab.baselines.nonsmooth.wolfe import minimum_norm_weights


def least_norm(points: np.ndarray) -> float:
    """Try all faces: the minimum of an affine hull counts if it is in the convex hull."""
    best = np.inf
    for size in range(1, min(len(points), points.shape[1] + 1) + 1):
        for face in map(list, combinations(range(len(points)), size)):
            base, edges = points[face[0]], points[face[1:]] - points[face[0]]
            shares = np.linalg.lstsq(edges.T, -base, rcond=None)[0] if size > 1 else np.zeros(0)
            if (shares >= -1e-9).all() and shares.sum() <= 1.0 + 1e-9:
                best = min(best, float(np.linalg.norm(base + shares @ edges)))
    return best


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 7), st.integers(1, 4), st.floats(0.0, 3.0))
def test_it_is_the_least_of_all_faces(seed, count, dimension, offset) -> None:
    """With the origin inside, outside and on the boundary."""
    points = np.random.default_rng(seed).normal(size=(count, dimension)) + offset
    weights = minimum_norm_weights(points @ points.T)
    assert weights.min() >= 0.0
    assert weights.sum() == pytest.approx(1.0)
    assert np.linalg.norm(weights @ points) == pytest.approx(least_norm(points), abs=1e-6)


def test_no_point_lies_beyond_the_hyperplane_through_it() -> None:
    """Wolfe's optimality condition, with more points than a corral can hold."""
    points = np.random.default_rng(1).normal(size=(30, 8)) + 0.7
    weights = minimum_norm_weights(points @ points.T)
    nearest = weights @ points
    assert (points @ nearest).min() >= nearest @ nearest - 1e-9
    assert np.count_nonzero(weights) <= 9


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([[3.0, 4.0]], [3.0, 4.0]),
        ([[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]], [1.0, 1.0]),
        ([[1.0, -1.0], [1.0, 1.0]], [1.0, 0.0]),
        ([[1.0, 0.0], [-1.0, 0.0], [0.0, 5.0]], [0.0, 0.0]),
        ([[0.0, 0.0], [1.0, 2.0]], [0.0, 0.0]),
        ([[1e-8, 1e-8], [2e-8, 0.0]], [1e-8, 1e-8]),
    ],
)
def test_hulls_that_are_flat_or_hold_the_origin(points, expected) -> None:
    points = np.array(points)
    assert_allclose(minimum_norm_weights(points @ points.T) @ points, expected, atol=1e-12)
