"""The line search of bundle methods: a serious step, or a null step that brings a subgradient."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from evomeans.typing import FloatArray
from lab.baselines.nonsmooth.evaluation import Evaluation


@dataclass(frozen=True)
class LineSettings:
    """Parameters of the line search, by default those of the published programs.

    Parameters
    ----------
    descent : float
        Share ε_L of the predicted decrease that makes a step serious.
    slope : float
        Share ε_R of it above which the slope has to lie.
    distance : float
        Factor η of the squared distance in the locality measure.
    memory : int
        A step is compared with the highest of so many values of serious steps.
    max_trials : int
        Points to try at most, in each direction.
    longest : float
        Upper limit of the length of the first step. The programs allow 1000 units of the data.
    """

    descent: float = 0.24
    slope: float = 0.48
    distance: float = 1e-4
    memory: int = 10
    max_trials: int = 20
    longest: float = 10.0


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """The end of a line search.

    Parameters
    ----------
    x : (n,) array
    at : Evaluation
        There.
    step : float
        In multiples of the direction.
    error : float
        The subgradient locality measure: the linearisation error, and not less than η times the
        squared distance.
    linearisation : float
        The linearisation error itself, negative where the function is not convex.
    is_serious, is_useful : bool
        Whether the value has fallen enough; else, whether the subgradient improves the model.
    """

    x: FloatArray
    at: Evaluation
    step: float
    error: float
    linearisation: float
    is_serious: bool
    is_useful: bool


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """A half-line to search on.

    Parameters
    ----------
    x : (n,) array
        Where it begins.
    here : Evaluation
        There.
    direction : (n,) array
    predicted : float
        The decrease to expect for a step of 1, positive.
    reference : float
        What values are compared with: that of ``here``, or a higher one of an earlier point.
    settings : LineSettings
    """

    x: FloatArray
    here: Evaluation
    direction: FloatArray
    predicted: float
    reference: float
    settings: LineSettings

    def search(self) -> Generator[FloatArray, Evaluation, Trial]:
        """Find a step t with f(x + td) ≤ reference − ε_L·t·predicted, or a null step.

        A null step has a subgradient ξ with ξᵀd − error ≥ −ε_R·predicted, by which the next
        direction is certain to be another one [1]_. A first step is made longer while the function
        keeps falling steeply, others shorter by interpolation.

        References
        ----------
        .. [1] J. Vlček and L. Lukšan, "Globally convergent variable metric method for nonconvex
           nondifferentiable unconstrained minimization", Journal of Optimization Theory and
           Applications 111, 407-430, 2001.
        """
        step = min(1.0, self.settings.longest / float(np.linalg.norm(self.direction)))
        trial = yield from self._try(step)
        if trial.is_serious:
            return (yield from self._lengthen(trial))
        for _ in range(self.settings.max_trials):
            if trial.is_serious or trial.is_useful:
                break
            trial = yield from self._try(self._shorter(trial))
        return trial

    def _lengthen(self, trial: Trial) -> Generator[FloatArray, Evaluation, Trial]:
        """Double the step while the function falls steeply there."""
        for _ in range(self.settings.max_trials):
            slope = float(self.direction @ trial.at.gradient)
            if slope >= -self.settings.slope * self.predicted:
                break
            longer = yield from self._try(2.0 * trial.step)
            if not longer.is_serious or longer.at.value >= trial.at.value:
                break
            trial = longer
        return trial

    def _try(self, step: float) -> Generator[FloatArray, Evaluation, Trial]:
        """Make a step, and decide what it is."""
        x = self.x + step * self.direction
        there = yield x
        slope = float(self.direction @ there.gradient)
        length = float(step * step * (self.direction @ self.direction))
        linearisation = self.here.value - there.value + step * slope
        error = max(abs(linearisation), self.settings.distance * length)
        enough = self.settings.descent * step * self.predicted
        is_finite = np.isfinite(linearisation)
        return Trial(
            x,
            there,
            step,
            error,
            linearisation,
            is_serious=there.value <= self.reference - enough,
            is_useful=bool(is_finite and slope - error >= -self.settings.slope * self.predicted),
        )

    def _shorter(self, trial: Trial) -> float:
        """Go to the minimum of a parabola, within limits."""
        rise = trial.at.value - self.here.value
        curvature = rise + trial.step * self.predicted
        if not np.isfinite(rise) or curvature <= 0.0:
            return 0.1 * trial.step
        share = 0.5 * trial.step * self.predicted / curvature
        return trial.step * float(np.clip(share, 0.1, 0.5))
