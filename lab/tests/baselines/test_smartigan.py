"""Smartigan: passes of single moves under a threshold that falls to Hartigan's rule."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from evomeans.engines import Order
from evomeans.engines.protocol import LocalSearch
from lab.baselines import Smartigan
from lab.baselines.engines import create_engine
from lab.baselines.smartigan import factor, threshold_accepting

X = np.random.default_rng(0).normal(size=(200, 3))


def test_the_threshold_falls_linearly_to_one() -> None:
    """1.5 − 0.5·t/T, as published."""
    factors = [factor(t, 10, 1.5) for t in range(1, 11)]
    assert_allclose(factors, [1.5 - 0.05 * t for t in range(1, 11)])
    assert factors[-1] == 1.0
    assert {factor(t, 7, 1.0) for t in range(1, 8)} == {1.0}


def test_passes_follow_each_other(engine_name) -> None:
    """Each with its own order and threshold, from the labels of the one before."""
    engine = create_engine(engine_name, X, None)
    rng = np.random.default_rng(1)
    start = engine.rows(rng.choice(200, 6, replace=False))
    orders = [rng.permutation(200) for _ in range(3)]
    labels = engine.assign(start)[0]
    for order, allowed in zip(orders, (1.4, 1.2, 1.0), strict=True):
        labels, means = engine.threshold_moves(labels, 6, order, allowed)
    assert_array_equal(threshold_accepting(engine, start, orders, 1.6), means)


def test_a_run_ends_where_no_single_move_pays() -> None:
    model = Smartigan(8, n_runs=1, random_state=2).fit(X)
    engine = create_engine("cpu", X, None)
    centers = engine.frame.encode(model.cluster_centers_)
    (again,) = engine.refine([Order(centers, local_search=LocalSearch(single_moves=True))])
    assert again.inertia == pytest.approx(model.history_[0].inertia, rel=1e-9)


def test_with_a_threshold_of_one_it_is_hartigans_method() -> None:
    """By hand: the same start, the same orders, and moves that pay."""
    engine = create_engine("reference", X[:60], None)
    model = Smartigan(4, n_runs=1, n_passes=3, threshold=1.0, init="random")
    (found,) = model.solutions(engine, np.random.default_rng(5))
    rng = np.random.default_rng(5)
    rng.random(4), rng.random()
    labels = engine.assign(engine.samples_at((rng.choice(60, 4, replace=False) + 0.5) / 60))[0]
    points = engine.rows(np.arange(60))

    def cost(own) -> float:
        means = np.array([points[own == j].mean(axis=0) for j in range(4)])
        return float(((points - means[own]) ** 2).sum())

    for _ in range(3):
        for i in rng.permutation(60):
            if np.count_nonzero(labels == labels[i]) > 1:
                options = []
                for j in range(4):
                    moved = labels.copy()
                    moved[i] = j
                    options.append(cost(moved))
                if min(options) < options[labels[i]] * (1 - 1e-9):
                    labels[i] = int(np.argmin(options))
    complete = LocalSearch(single_moves=True)
    means = np.array([points[labels == j].mean(axis=0) for j in range(4)])
    (expected,) = engine.refine([Order(means, local_search=complete)])
    assert found.inertia == pytest.approx(expected.inertia, rel=1e-9)


def test_a_threshold_helps_on_data_with_many_clusters() -> None:
    """Compared with Hartigan's method from the same starts, on average over many runs."""
    values = {}
    for threshold in (1.0, 1.5):
        model = Smartigan(25, n_runs=40, threshold=threshold, random_state=0).fit(X)
        values[threshold] = np.mean([record.inertia for record in model.history_])
    assert values[1.5] < values[1.0]
