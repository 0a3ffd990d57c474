"""The optimisers on standard nonsmooth functions, against their known optima."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from nonsmooth_problems import DC, LARGE, SMALL, SMOOTH_DC
from numpy.testing import assert_allclose

from lab.baselines.nonsmooth.dc_bundle import DCBundleSettings, dc_bundle
from lab.baselines.nonsmooth.dca import DCASettings, dca
from lab.baselines.nonsmooth.diagonal_bundle import DiagonalMetric, diagonal_bundle
from lab.baselines.nonsmooth.evaluation import (
    Ending,
    Evaluation,
    minimise,
    minimise_together,
)
from lab.baselines.nonsmooth.limited_memory_bundle import (
    LimitedMemoryMetric,
    limited_memory_bundle,
)
from lab.baselines.nonsmooth.line_search import Trial
from lab.baselines.nonsmooth.variable_metric import BundleSettings

OPTIMISERS = {
    "codifferential": partial(dc_bundle, settings=DCBundleSettings()),
    "diagonal": partial(diagonal_bundle, settings=BundleSettings()),
    "limited memory": partial(limited_memory_bundle, settings=BundleSettings()),
}
# Relative to one or to the optimum. A diagonal metric cannot follow a crooked valley to its end.
TOLERANCE = {"codifferential": 1e-5, "diagonal": 5e-3, "limited memory": 2e-4}


@pytest.mark.parametrize("problem", [*SMALL, *LARGE, *DC], ids=repr)
def test_subgradients_are_slopes(problem) -> None:
    """Almost everywhere; those of f₁ are of a convex function."""
    rng = np.random.default_rng(0)
    for _ in range(3):
        x, direction = problem.start + rng.normal(size=(2, len(problem.start))) * 0.1
        there = problem.function(x)
        step = 1e-6 * direction
        rise = problem.function(x + step).value - problem.function(x - step).value
        assert rise == pytest.approx(2.0 * step @ there.gradient, rel=1e-4, abs=1e-9)
        other = problem.function(x + direction)
        if there.convex is not None:
            assert direction @ (other.first - there.first) >= -1e-9
            assert direction @ (other.second - there.second) >= -1e-9


@pytest.mark.parametrize("name", OPTIMISERS)
@pytest.mark.parametrize("problem", [*SMALL, *LARGE, *SMOOTH_DC], ids=repr)
def test_the_optimum_is_found(name, problem) -> None:
    """CB2, CB3, QL, Rosen-Suzuki, MAXQ, chained and nonconvex functions, up to 50 variables."""
    found = minimise(OPTIMISERS[name](problem.start), problem.function)
    allowed = TOLERANCE[name] * max(1.0, abs(problem.optimum))
    assert problem.optimum - 1e-7 <= found.value <= problem.optimum + allowed
    assert problem.function(found.x).value == found.value
    assert found.ending in (Ending.STATIONARY, Ending.NO_CHANGE)


@pytest.mark.parametrize("problem", DC, ids=repr)
def test_codifferentials_find_their_way_out_of_kinks(problem) -> None:
    """Also where f₁ is not smooth, and a subgradient alone would end at a stationary point."""
    found = minimise(OPTIMISERS["codifferential"](problem.start), problem.function)
    assert found.value == pytest.approx(problem.optimum, abs=1e-5)


def recorded(function, values):
    def call(x):
        found = function(x)
        values.append(found.value)
        return found

    return call


@pytest.mark.parametrize("problem", [*SMALL, *SMOOTH_DC], ids=repr)
def test_the_result_is_not_above_the_start(problem) -> None:
    """Nonmonotone searches may rise in between, but return their best."""
    for make in OPTIMISERS.values():
        values: list[float] = []
        found = minimise(make(problem.start), recorded(problem.function, values))
        assert found.value < values[0]
        assert found.value in values


def test_dca_never_rises_and_ends_at_a_critical_point() -> None:
    """‖x‖² − ‖x‖₁: one step leads to ±½."""
    (problem,) = SMOOTH_DC
    values: list[float] = []
    search = dca(problem.start, lambda slope: 0.5 * slope, DCASettings())
    found = minimise(search, recorded(problem.function, values))
    assert found.value == problem.optimum
    assert (np.diff(values) <= 0.0).all()
    assert_allclose(np.abs(found.x), 0.5)


def test_dca_stops_by_the_length_of_its_steps() -> None:
    """f₁ = 2x², f₂ = x²: every step halves x."""

    def function(x):
        return Evaluation(float(x @ x), 2.0 * x, 4.0 * x)

    def run(**settings):
        search = dca(np.ones(1), lambda slope: slope / 4.0, DCASettings(**settings))
        return minimise(search, function)

    assert run(tolerance=0.1).x[0] == 1.0 / 16.0
    limited = run(tolerance=1e-30, max_iterations=3)
    assert (limited.x[0], limited.ending) == (1.0 / 8.0, Ending.MAX_ITERATIONS)


def test_side_by_side_or_alone_is_the_same() -> None:
    """To the last bit, and searches that have ended are asked no more."""
    problems = SMALL[:3]
    make = OPTIMISERS["limited memory"]
    sizes = []

    def together(which, points):
        sizes.append(len(which))
        return [problems[i].function(x) for i, x in zip(which, points, strict=True)]

    found = minimise_together([make(each.start) for each in problems], together)
    alone = [minimise(make(each.start), each.function) for each in problems]
    assert [each.value for each in found] == [each.value for each in alone]
    assert sizes[0] == 3
    assert sizes[-1] == 1
    assert minimise_together([], together) == []


# ---- metrics -------------------------------------------------------------------------------------


def quadratic(hessian, x):
    return Evaluation(float(0.5 * x @ hessian @ x), hessian @ x)


def trial(x, at):
    return Trial(x, at, 1.0, 0.0, 0.0, is_serious=True, is_useful=False)


def dense(metric, size):
    return np.array([metric.product(row) for row in np.eye(size)])


def test_bfgs_is_the_matrix_of_the_textbook() -> None:
    """Updates D ← (I − su'/s'u)D(I − us'/s'u) + ss'/s'u from a multiple of the identity."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(6, 6))
    hessian = root @ root.T + np.eye(6)
    metric, pairs = LimitedMemoryMetric(), []
    x = rng.normal(size=6)
    for _ in range(5):
        y = rng.normal(size=6)
        here, there = quadratic(hessian, x), quadratic(hessian, y)
        metric.after_serious(here, y - x, trial(y, there))
        pairs.append((y - x, there.gradient - here.gradient))
        x = y
    step, change = pairs[-1]
    expected = np.eye(6) * (step @ change) / (change @ change)
    for s, u in pairs:
        project = np.eye(6) - np.outer(u, s) / (s @ u)
        expected = project.T @ expected @ project + np.outer(s, s) / (s @ u)
    assert_allclose(dense(metric, 6), expected, atol=1e-10)
    assert_allclose(metric.product(change), step, atol=1e-10)


def test_null_steps_shrink_the_metric_and_leave_it_positive_definite() -> None:
    """Rank-one corrections map the change of the subgradient to the step."""
    rng = np.random.default_rng(1)
    corrected = 0
    for _ in range(30):
        metric = LimitedMemoryMetric()
        before = dense(metric, 4)
        here = Evaluation(0.0, rng.normal(size=4))
        for _ in range(4):
            aggregate = here.gradient + 0.1 * rng.normal(size=4)
            step = -0.7 * metric.product(aggregate)
            there = Evaluation(0.0, rng.normal(size=4))
            metric.after_null(here, step, trial(step, there), aggregate)
            after = dense(metric, 4)
            assert np.linalg.eigvalsh(before - after).min() >= -1e-9
            assert np.linalg.eigvalsh(after).min() > 0.0
            if not np.array_equal(before, after):
                corrected += 1
                change = there.gradient - here.gradient
                assert_allclose(metric.product(change), step, atol=1e-7)
            before = after
    assert corrected > 20


def test_a_diagonal_metric_learns_the_curvature_of_the_convex_part() -> None:
    """The inverse Hessian of f₁, whatever f₂ is."""
    curvature = np.array([0.5, 4.0, 100.0])
    metric, rng = DiagonalMetric(3), np.random.default_rng(2)
    x = rng.normal(size=3)
    for _ in range(4):
        y = rng.normal(size=3)
        here, there = (
            Evaluation(0.0, curvature * point - np.sign(point), curvature * point)
            for point in (x, y)
        )
        metric.after_serious(here, y - x, trial(y, there))
        x = y
    assert_allclose(metric.diagonal, 1.0 / curvature)
