"""The cluster function and the auxiliary one: values, gradients, and steps of the DC algorithm."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from evomeans.engines import Order
from lab.baselines.engines import create_engine
from lab.baselines.nonsmooth.objective import AuxiliaryFunction, ClusterFunction, Scale
from oracles import squared_distances
from problems import make_samples, make_weights


@pytest.fixture
def problem(engine_name, weighted):
    """Return an engine, its samples and weights, and a solution with four clusters."""
    rng = np.random.default_rng(3)
    X = make_samples("normal", 90, 3, np.float64, rng)
    weights = make_weights(90, rng) if weighted else None
    engine = create_engine(engine_name, X, weights)
    Z = engine.rows(np.arange(90))
    (solution,) = engine.refine([Order(Z[:4])])
    return engine, Z, np.ones(90) if weights is None else weights, solution


def test_the_scale_is_that_of_the_samples(problem) -> None:
    """Read off a solution, without a look at them."""
    engine, Z, weights, solution = problem
    scale = Scale.of(engine, solution)
    mean = np.average(Z, axis=0, weights=weights)
    assert_allclose(scale.mean, mean, atol=1e-12)
    assert scale.spread == pytest.approx(weights @ squared_distances(Z, mean[None])[:, 0])
    nearest = squared_distances(Z, solution.centers).min(axis=1)
    assert scale.unit == pytest.approx(np.sqrt(weights @ nearest / weights.sum()))


def test_the_cluster_function_and_its_gradients(problem) -> None:
    """Against the definition, and against finite differences."""
    engine, Z, weights, solution = problem
    rng = np.random.default_rng(0)
    function = ClusterFunction.around(engine, solution.centers + 0.01)
    assert function(np.zeros(12)).value == pytest.approx(1.0)
    for _ in range(3):
        x = rng.normal(size=12) * 0.2
        found = function(x)
        nearest = squared_distances(Z, function.centers(x)).min(axis=1)
        assert found.value == pytest.approx(weights @ nearest / (weights.sum() * function.unit**2))
        step = 1e-6 * rng.normal(size=12)
        rise = function(x + step).value - function(x - step).value
        assert rise == pytest.approx(2.0 * step @ found.gradient, rel=1e-4, abs=1e-12)
        # The Hessian of f₁ is twice the identity.
        assert_allclose(function(x + step).first - found.first, 2.0 * step, atol=1e-12)
        assert_allclose(found.first - found.second, found.gradient)


def test_a_step_of_the_dc_algorithm_is_kmeans_damped_by_the_cluster_sizes(problem) -> None:
    """x_j ← (1 − p_j)·x_j + p_j·mean_j with p_j the share of the samples in cluster j."""
    engine, Z, weights, solution = problem
    function = ClusterFunction.around(engine, solution.centers + 0.02)
    found = function(np.zeros(12))
    moved = function.centers(function.conjugate(found.second))
    labels = squared_distances(Z, function.origin).argmin(axis=1)
    for j, center in enumerate(function.origin):
        own = labels == j
        share = weights[own].sum() / weights.sum()
        mean = np.average(Z[own], axis=0, weights=weights[own])
        assert_allclose(moved[j], (1.0 - share) * center + share * mean, atol=1e-12)


def test_the_auxiliary_function_and_its_gradients(problem) -> None:
    """Of several points at once, each relative to its own origin."""
    engine, Z, weights, solution = problem
    rng = np.random.default_rng(1)
    squares = engine.nearest_squares(solution.centers)
    scale = Scale.of(engine, solution)
    function = AuxiliaryFunction(engine, squares, scale, Z[weights > 0.0][:5])
    offsets, which = 0.3 * rng.normal(size=(3, 3)), [0, 2, 4]
    steps = 1e-6 * rng.normal(size=(3, 3))
    found = function(which, offsets)
    above, below = function(which, offsets + steps), function(which, offsets - steps)
    points = function.points(which, offsets)
    for i in range(3):
        direct = weights @ np.minimum(squares, squared_distances(Z, points[i : i + 1])[:, 0])
        assert found[i].value == pytest.approx(direct / (weights.sum() * scale.unit**2))
        rise = above[i].value - below[i].value
        assert rise == pytest.approx(2.0 * steps[i] @ found[i].gradient, rel=1e-4, abs=1e-12)
        assert_allclose(above[i].first - found[i].first, 2.0 * steps[i], atol=1e-12)
        # A step of the DC algorithm: towards the mean of what is attracted, by its share.
        nearer = squared_distances(Z, points[i : i + 1])[:, 0] < squares
        share = weights[nearer].sum() / weights.sum()
        mean = np.average(Z[nearer], axis=0, weights=weights[nearer])
        moved = function.origins[which[i]] + scale.unit * function.conjugate(
            which[i], found[i].second
        )
        assert_allclose(moved, (1.0 - share) * points[i] + share * mean, atol=1e-12)


def test_centres_out_of_this_world_own_nothing(problem) -> None:
    """A line search may go anywhere; the others keep all samples."""
    engine, Z, weights, solution = problem
    function = ClusterFunction.around(engine, solution.centers)
    far = np.zeros((4, 3))
    far[0] = 1e12
    found = function(far.ravel())
    nearest = squared_distances(Z, solution.centers[1:]).min(axis=1)
    assert found.value == pytest.approx(weights @ nearest / (weights.sum() * function.unit**2))
    assert_allclose(found.gradient[:3], 0.0)
