"""Where new centres may start."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from evomeans.engines import Order
from lab.baselines.engines import create_engine
from lab.baselines.nonsmooth.candidates import (
    apart,
    far_candidates,
    farthest_candidates,
    lowest_apart,
    lowest_tenths,
    together,
)
from oracles import squared_distances
from problems import make_samples

LINE = np.array([[0.0], [1.0], [1.5], [4.0], [4.1]])


def test_near_places_are_one() -> None:
    """The tolerance is a squared distance, and counts as near."""
    assert_array_equal(apart(LINE, 1.0), LINE[[0, 2, 3]])
    assert_array_equal(apart(LINE, 0.0), LINE)
    assert_array_equal(apart(LINE[:0], 1.0), LINE[:0])


def test_the_published_comparison_drops_what_differs() -> None:
    """All that is left is near the first."""
    assert_array_equal(together(LINE, 1.0), LINE[:2])
    assert_array_equal(together(LINE, 0.0), LINE[:1])


def test_the_lowest_of_near_places_stays() -> None:
    values = np.array([3.0, 2.0, 1.0, 5.0, 4.0])
    assert_array_equal(lowest_apart(LINE, values, 1.0), LINE[[2, 0, 4]])


def test_tenths_are_at_least_one_and_the_order_decides_within_a_percent() -> None:
    values = np.array([1.5, 1.004, 1.0, 1.02, 2.0])
    assert_array_equal(lowest_tenths(LINE, values, 6), [1, 2, 3])
    assert_array_equal(lowest_tenths(LINE, values, 1), [1])


@pytest.fixture
def solved(engine_name):
    X = make_samples("normal", 200, 2, np.float64, np.random.default_rng(0))
    engine = create_engine(engine_name, X, None)
    Z = engine.rows(np.arange(200))
    (solution,) = engine.refine([Order(Z[:3])])
    return engine, Z, solution, engine.nearest_squares(solution.centers)


def test_starts_of_dcclust_by_the_book(solved) -> None:
    """Far samples, their reductions, the means of what they attract, and their reductions."""
    engine, Z, solution, squares = solved
    labels = squared_distances(Z, solution.centers).argmin(axis=1)
    means = np.array([squares[labels == j].mean() for j in range(3)])
    far = np.flatnonzero(squares > 0.75 * means[labels])
    away = squared_distances(Z, Z)
    gains = np.maximum(squares - away[far], 0.0).sum(axis=1)
    far = far[gains >= 0.5 * gains.max()]
    points = np.unique([Z[away[i] < squares].mean(axis=0).round(12) for i in far], axis=0)
    gains = np.maximum(squares - squared_distances(points, Z), 0.0).sum(axis=1)
    expected = points[gains >= 0.8 * gains.max()]
    found = far_candidates(engine, solution, squares, (0.5, 0.8), 0.0)
    found = np.unique(found.round(12), axis=0)
    assert_array_equal(found, np.unique(expected, axis=0))
    assert len(found) > 1


def test_starts_of_lmbm_are_the_farthest_of_every_cluster(solved) -> None:
    """As many as the cluster's share, and of all these those with the largest reductions."""
    engine, Z, solution, squares = solved
    labels = squared_distances(Z, solution.centers).argmin(axis=1)
    chosen = []
    for j in range(3):
        own = np.flatnonzero(labels == j)
        # So few that bands of a thousandth do not matter.
        ordered = own[np.argsort(-squares[own])][: max(1, len(own) * 20 // 200)]
        chosen += [i for i in ordered if squares[i] >= squares[own].mean()]
    away = squared_distances(Z, Z)
    means = np.unique([Z[away[i] < squares].mean(axis=0).round(12) for i in chosen], axis=0)
    found = farthest_candidates(engine, solution, squares, 20, 10)
    assert_array_equal(np.unique(found.round(12), axis=0), means)
    few = farthest_candidates(engine, solution, squares, 20, 1)
    gains = np.maximum(squares - away[chosen], 0.0).sum(axis=1)
    best = Z[away[chosen[gains.argmax()]] < squares].mean(axis=0)
    assert len(few) <= 2
    assert np.abs(few - best).max(axis=1).min() < 1e-12


def test_weights_count_as_repetitions() -> None:
    """The same places, whatever the order of the rows."""
    X = make_samples("normal", 100, 2, np.float64, np.random.default_rng(4))
    counts = np.random.default_rng(5).integers(1, 4, size=100)
    found = []
    for samples, weights in ((X, counts.astype(float)), (np.repeat(X, counts, axis=0)[::-1], None)):
        engine = create_engine("cpu", np.ascontiguousarray(samples), weights)
        (solution,) = engine.refine([Order(engine.frame.encode(X[:3]))])
        squares = engine.nearest_squares(solution.centers)
        places = farthest_candidates(engine, solution, squares, 60, 5)
        found.append(engine.frame.decode(places).round(9))
    assert_array_equal(*found)
