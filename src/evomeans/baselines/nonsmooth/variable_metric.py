"""Bundle methods with a variable metric and few subgradients: the loop that they share."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from evomeans.baselines.nonsmooth.aggregation import aggregation_weights
from evomeans.baselines.nonsmooth.evaluation import Ending, Evaluation, Minimum, Search
from evomeans.baselines.nonsmooth.line_search import Line, LineSettings, Trial
from evomeans.engines.protocol import FloatArray

# A direction has to make at least this cosine with the negative subgradient.
SMALL = 1e-15


class Metric(Protocol):
    """A positive definite matrix D that approximates an inverse Hessian."""

    def reset(self) -> None:
        """Begin with the identity."""
        ...

    def product(self, vector: FloatArray) -> FloatArray:
        """Return D·vector."""
        ...

    def after_serious(self, here: Evaluation, step: FloatArray, trial: Trial) -> None:
        """Learn from a serious step."""
        ...

    def after_null(
        self, here: Evaluation, step: FloatArray, trial: Trial, aggregate: FloatArray
    ) -> None:
        """Learn from a null step; D must not become larger in any direction.

        ``aggregate`` is the subgradient from which the step came.
        """
        ...


@dataclass(frozen=True)
class BundleSettings:
    """When a bundle method stops.

    Parameters
    ----------
    tolerance : float
        For g̃ᵀDg̃ + 2α̃, the decrease that the aggregate subgradient g̃ with its error α̃ promises.
    gradient_tolerance : float
        For ½‖g̃‖² + α̃.
    little_change : float
        Relative change of the value that counts as none.
    most_without_change : int
        Serious steps in a row without a change.
    max_iterations : int
    line : LineSettings
    """

    tolerance: float = 1e-10
    gradient_tolerance: float = np.inf
    little_change: float = 1e-8
    most_without_change: int = 10
    max_iterations: int = 5000
    line: LineSettings = field(default_factory=LineSettings)


def variable_metric_bundle(x: FloatArray, metric: Metric, settings: BundleSettings) -> Search:
    """Minimise a locally Lipschitz function by serious and null steps.

    The direction is −Dg̃, where g̃ is the subgradient at x, or after null steps the best convex
    combination of it, of the latest trial subgradient and of the previous combination.

    Parameters
    ----------
    x : (n,) array
        The start.
    metric : Metric
        Decides what is learned about D.
    settings : BundleSettings
    """
    here = yield x
    best = x, here.value
    past = deque([here.value], maxlen=settings.line.memory)
    aggregate, error, unchanged, has_restarted = here.gradient, 0.0, 0, True
    metric.reset()
    for iteration in range(1, settings.max_iterations + 1):
        scaled = metric.product(aggregate)
        descent = float(aggregate @ scaled)
        square = float(aggregate @ aggregate)
        predicted = descent + 2.0 * error
        if predicted <= settings.tolerance and (
            0.5 * square + error <= settings.gradient_tolerance
        ):
            return Minimum(*best, iteration, Ending.STATIONARY)
        trial = None
        if descent > SMALL * np.sqrt(square * float(scaled @ scaled)):
            line = Line(x, here, -scaled, predicted, max(past), settings.line)
            trial = yield from line.search()
        if trial is None or not (trial.is_serious or trial.is_useful):
            if has_restarted:
                return Minimum(*best, iteration, Ending.NO_DESCENT)
            metric.reset()
            aggregate, error, has_restarted = here.gradient, 0.0, True
            past.clear()
            past.append(here.value)
            continue
        has_restarted = False
        step = trial.x - x
        if trial.is_serious:
            change = abs(trial.at.value - here.value)
            is_little = change <= settings.little_change * abs(here.value)
            unchanged = unchanged + 1 if is_little else 0
            metric.after_serious(here, step, trial)
            x, here = trial.x, trial.at
            aggregate, error = here.gradient, 0.0
            past.append(here.value)
        else:
            before = aggregate
            aggregate, error = _combine(metric, here, trial, aggregate, error)
            metric.after_null(here, step, trial, before)
        if trial.at.value < best[1]:
            best = trial.x, trial.at.value
        if unchanged >= settings.most_without_change:
            return Minimum(*best, iteration, Ending.NO_CHANGE)
    return Minimum(*best, settings.max_iterations, Ending.MAX_ITERATIONS)


def _combine(
    metric: Metric, here: Evaluation, trial: Trial, aggregate: FloatArray, error: float
) -> tuple[FloatArray, float]:
    """Return the combination of three subgradients that promises the least, and its error."""
    gradients = np.array([here.gradient, trial.at.gradient, aggregate])
    errors = np.array([0.0, trial.error, error])
    scaled = np.array([metric.product(gradient) for gradient in gradients])
    weights = aggregation_weights(gradients @ scaled.T, errors)
    return weights @ gradients, float(weights @ errors)
