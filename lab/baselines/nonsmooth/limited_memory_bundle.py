"""The limited memory bundle method (the solver of LMBM-Clust)."""

from __future__ import annotations

from collections import deque

import numpy as np
from scipy.linalg.lapack import dtrtrs

from evomeans.typing import FloatArray
from lab.baselines.nonsmooth.evaluation import Evaluation, Search
from lab.baselines.nonsmooth.line_search import Trial
from lab.baselines.nonsmooth.variable_metric import BundleSettings, variable_metric_bundle

# How many steps the BFGS matrix is made of, and how many corrections it may have.
MEMORY, MOST_CORRECTIONS = 15, 50
# Products of a step and a change of the subgradient below this, relatively, are not used.
FLAT = 1e-12


def limited_memory_bundle(x: FloatArray, settings: BundleSettings) -> Search:
    """Minimise a locally Lipschitz function with a limited memory metric [1]_ [2]_.

    After serious steps the metric is updated by limited memory BFGS, after null steps by symmetric
    rank-one corrections, which make it smaller and leave it positive definite.

    Parameters
    ----------
    x : (n,) array
        The start.
    settings : BundleSettings

    Notes
    -----
    The rank-one corrections start from the BFGS matrix of the last serious step, which then learns
    from the null steps as well. The publications build both matrices from the same stored steps,
    and skip corrections that would make the metric larger during null steps; here that cannot
    happen.

    References
    ----------
    .. [1] M. Haarala, K. Miettinen and M. M. Mäkelä, "New limited memory bundle method for
       large-scale nonsmooth optimization", Optimization Methods and Software 19, 673-692, 2004.
    .. [2] N. Haarala, K. Miettinen and M. M. Mäkelä, "Globally convergent limited memory bundle
       method for large-scale nonsmooth optimization", Mathematical Programming 109, 181-205, 2007.
    """
    return variable_metric_bundle(x, LimitedMemoryMetric(), settings)


class LimitedMemoryMetric:
    """An inverse Hessian from the last few steps, and rank-one corrections to it."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self._steps: deque[FloatArray] = deque(maxlen=MEMORY)
        self._changes: deque[FloatArray] = deque(maxlen=MEMORY)
        self._bfgs: CompactBFGS | None = None
        self._corrections: list[tuple[FloatArray, float]] = []
        # A null step must not change the BFGS matrix, which all corrections refer to.
        self._null_steps: deque[tuple[FloatArray, FloatArray]] = deque(maxlen=MEMORY - 1)

    def product(self, vector: FloatArray) -> FloatArray:
        """Return the BFGS matrix times a vector, with the corrections."""
        result = vector if self._bfgs is None else self._bfgs.product(vector)
        for correction, divisor in self._corrections:
            result = result - correction * (float(correction @ vector) / divisor)
        return result

    def after_serious(self, here: Evaluation, step: FloatArray, trial: Trial) -> None:
        """Take the steps into the BFGS matrix, and drop the corrections."""
        self._corrections.clear()
        for null_step, change in self._null_steps:
            self._store(null_step, change)
        self._null_steps.clear()
        self._store(step, trial.at.gradient - here.gradient)
        if self._steps:
            self._bfgs = CompactBFGS(np.array(self._steps), np.array(self._changes))

    def _store(self, step: FloatArray, change: FloatArray) -> None:
        """Take a step along which the curvature is positive."""
        square = float(step @ step) * float(change @ change)
        if float(step @ change) > FLAT * np.sqrt(square):
            self._steps.append(step)
            self._changes.append(change)

    def after_null(
        self, here: Evaluation, step: FloatArray, trial: Trial, aggregate: FloatArray
    ) -> None:
        """Correct the matrix so that it maps the change of the subgradient to the step.

        With r = Du − s, the matrix becomes D − rrᵀ/uᵀr. It is smaller than D if uᵀr > 0, and
        positive definite if rᵀg̃ < 0, since s is a multiple of −Dg̃.
        """
        change = trial.at.gradient - here.gradient
        self._null_steps.append((step, change))
        if len(self._corrections) == MOST_CORRECTIONS:
            return
        residual = self.product(change) - step
        divisor = float(change @ residual)
        tiny = FLAT * np.sqrt(float(change @ change) * float(residual @ residual))
        if divisor > tiny and float(residual @ aggregate) < 0.0:
            self._corrections.append((residual, divisor))


class CompactBFGS:
    """The limited memory BFGS matrix as a multiple of the identity plus a matrix of low rank [1]_.

    With the steps S and the changes of the gradient U in rows, R the upper triangle of SUᵀ and C
    its diagonal, the product with v is ϑv + Sᵀy − ϑUᵀx, where Rx = Sv and
    Rᵀy = (C + ϑUUᵀ)x − ϑUv.

    Parameters
    ----------
    steps, changes : (m, n) arrays
        The oldest first, with a positive scalar product of each step and its change.

    References
    ----------
    .. [1] R. H. Byrd, J. Nocedal and R. B. Schnabel, "Representations of quasi-Newton matrices and
       their use in limited memory methods", Mathematical Programming 63, 129-156, 1994.
    """

    def __init__(self, steps: FloatArray, changes: FloatArray) -> None:
        self.steps, self.changes = steps, changes
        self.products, self.squares = steps @ changes.T, changes @ changes.T
        self.scale = float(self.products[-1, -1] / self.squares[-1, -1])

    def product(self, vector: FloatArray) -> FloatArray:
        """Return the matrix times a vector."""
        scale = self.scale
        # Only the upper triangle of the products is read.
        x, _ = dtrtrs(self.products, self.steps @ vector)
        right = self.products.diagonal() * x + scale * (self.squares @ x - self.changes @ vector)
        y, _ = dtrtrs(self.products, right, trans=1)
        result: FloatArray = scale * vector + y @ self.steps - (scale * x) @ self.changes
        return result
