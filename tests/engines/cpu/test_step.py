"""Single assignments, one call each: what a search on blocks is made of."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from evomeans.engines import Order
from evomeans.engines.cpu.engine import CpuEngine
from evomeans.engines.cpu.layout import State
from evomeans.engines.cpu.workspace import Workspace
from oracles import assert_true_state, in_frame, squared_distances
from problems import make_samples, make_weights


@pytest.fixture
def engine(dtype, weighted):
    rng = np.random.default_rng(21)
    X = make_samples("normal", 700, 3, dtype, rng)
    engine = CpuEngine(X, make_weights(700, rng) if weighted else None)
    engine.X = X
    return engine


def room_of(engine, k=6):
    workspace = Workspace(engine.samples, k, engine.n_features, 1)
    return workspace, State.allocate(engine.n_samples, k)


def test_steps_from_outside_are_the_iterations_of_kmeans(engine) -> None:
    """Means taken after every step, until nothing moves: the same centres and as many steps."""
    start = engine.samples_at((np.arange(6) + 0.5) / 6)
    (expected,) = engine.refine([Order(start)])
    workspace, state = room_of(engine)
    target, steps = start, 0
    while True:
        workspace.step(state, target, fresh=steps == 0)
        assert_true_state(engine, engine.X, state, target)
        steps += 1
        sums = workspace.sums
        totals = sums[:, 0] + sums[:, 1] / engine.samples.limb
        weights = totals[:, -1] / engine.samples.scales[-1]
        means = totals[:, :-1] / (engine.samples.scales[:-1] * weights[:, None])
        if np.array_equal(means, target):
            break
        target = means
    assert_array_equal(target, expected.centers)
    assert_array_equal(weights, expected.cluster_weights)
    assert steps == expected.n_iter
    inertia = engine.frame.inertia_in_data_units(workspace.measure(state, 2))
    assert inertia == expected.inertia


@pytest.mark.parametrize("power", [1, 2])
def test_a_centre_that_is_gone_wins_nobody_and_comes_back(engine, power) -> None:
    """Distances are those to the remaining centres; the draw follows their cumulated sum."""
    centers = engine.samples_at((np.arange(6) + 0.5) / 6)
    workspace, state = room_of(engine)
    workspace.step(state, centers, fresh=True)
    workspace.step(state, centers, fresh=False, gone=2)
    samples = in_frame(engine.frame, engine.X)
    nearest = squared_distances(samples, np.delete(centers, 2, axis=0)).min(axis=1)
    weights = np.ones(700) if engine.weights is None else engine.weights
    shares = weights * nearest ** (power / 2)
    total = workspace.measure(state, power)
    assert_allclose(total, shares.sum(), rtol=1e-12)
    for target in np.linspace(0.0, 0.999, 20) * total:
        row = engine.samples.order[workspace.draw(target)]
        assert row == np.searchsorted(np.cumsum(shares), target, side="right")
    workspace.step(state, centers, fresh=False)
    assert_true_state(engine, engine.X, state, centers)
