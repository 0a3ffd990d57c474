"""Bundle methods with a variable metric and few subgradients: the loop that they share."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from evomeans.typing import FloatArray
from lab.baselines.nonsmooth.aggregation import aggregation_weights
from lab.baselines.nonsmooth.evaluation import Ending, Evaluation, Minimum, Search
from lab.baselines.nonsmooth.line_search import Line, LineSettings, Trial

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
    metric.reset()
    at = _Position(x, (yield x), settings.line.memory)
    has_restarted = True
    for iteration in range(1, settings.max_iterations + 1):
        scaled = metric.product(at.aggregate)
        predicted = float(at.aggregate @ scaled) + 2.0 * at.error
        if predicted <= settings.tolerance and at.gap <= settings.gradient_tolerance:
            return at.minimum(iteration, Ending.STATIONARY)
        trial = None
        if is_downhill(at.aggregate, scaled):
            line = Line(at.x, at.here, -scaled, predicted, max(at.past), settings.line)
            trial = yield from line.search()
        if trial is not None and trial.is_serious:
            metric.after_serious(at.here, trial.x - at.x, trial)
            at.move(trial, settings.little_change)
            if at.unchanged >= settings.most_without_change:
                return at.minimum(iteration, Ending.NO_CHANGE)
        elif trial is not None and trial.is_useful:
            before = at.aggregate
            at.combine(trial, metric)
            metric.after_null(at.here, trial.x - at.x, trial, before)
        elif has_restarted:
            return at.minimum(iteration, Ending.NO_DESCENT)
        else:
            metric.reset()
            at.forget()
        has_restarted = trial is None or not (trial.is_serious or trial.is_useful)
    return at.minimum(settings.max_iterations, Ending.MAX_ITERATIONS)


def is_downhill(gradient: FloatArray, scaled: FloatArray) -> bool:
    """Whether the metric has left a direction of descent, up to rounding."""
    lengths = np.sqrt(float(gradient @ gradient) * float(scaled @ scaled))
    return bool(gradient @ scaled > SMALL * lengths)


class _Position:
    """Where a bundle method is, and what it knows there.

    Parameters
    ----------
    x : (n,) array
    here : Evaluation
    memory : int
        Values of serious steps to remember.
    """

    def __init__(self, x: FloatArray, here: Evaluation, memory: int) -> None:
        self.x = x
        self.here = here
        self.aggregate = here.gradient
        self.error = 0.0
        self.past = deque([here.value], maxlen=memory)
        self.unchanged = 0
        self._best = x, here.value

    @property
    def gap(self) -> float:
        """½‖g̃‖² + α̃."""
        return 0.5 * float(self.aggregate @ self.aggregate) + self.error

    def move(self, trial: Trial, little_change: float) -> None:
        """Make a serious step."""
        change = abs(trial.at.value - self.here.value)
        is_little = change <= little_change * abs(self.here.value)
        self.unchanged = self.unchanged + 1 if is_little else 0
        self.x, self.here = trial.x, trial.at
        self.aggregate, self.error = self.here.gradient, 0.0
        self.past.append(self.here.value)
        if self.here.value < self._best[1]:
            self._best = self.x, self.here.value

    def combine(self, trial: Trial, metric: Metric) -> None:
        """Take the subgradient of a null step into the aggregate, such that it promises least."""
        gradients = np.array([self.here.gradient, trial.at.gradient, self.aggregate])
        errors = np.array([0.0, trial.error, self.error])
        scaled = np.array([metric.product(gradient) for gradient in gradients])
        weights = aggregation_weights(gradients @ scaled.T, errors)
        self.aggregate, self.error = weights @ gradients, float(weights @ errors)

    def forget(self) -> None:
        """Begin again with the subgradient here."""
        self.aggregate, self.error = self.here.gradient, 0.0
        self.past.clear()
        self.past.append(self.here.value)

    def minimum(self, iteration: int, ending: Ending) -> Minimum:
        """Return the best point."""
        return Minimum(*self._best, iteration, ending)
