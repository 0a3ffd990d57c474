"""The diagonal bundle method for differences of convex functions (the solver of DCD-Bundle)."""

from __future__ import annotations

from collections import deque

import numpy as np

from evomeans.typing import FloatArray
from lab.baselines.nonsmooth.evaluation import Evaluation, Search
from lab.baselines.nonsmooth.line_search import Trial
from lab.baselines.nonsmooth.variable_metric import BundleSettings, variable_metric_bundle

# The limits of the diagonal entries, and how many steps they are fitted to.
SMALLEST, LARGEST = 1e-10, 1e6
MEMORY = 7


def diagonal_bundle(x: FloatArray, settings: BundleSettings) -> Search:
    """Minimise f₁ − f₂, or any locally Lipschitz function, with a diagonal metric [1]_ [2]_.

    The metric after a serious step is fitted to the curvature of f₁ alone. Where f₁ is quadratic
    with the Hessian cI, it is I/c, and the direction is that of the DC algorithm.

    Parameters
    ----------
    x : (n,) array
        The start.
    settings : BundleSettings

    References
    ----------
    .. [1] N. Karmitsa, "Diagonal bundle method for nonsmooth sparse optimization", Journal of
       Optimization Theory and Applications 166, 889-905, 2015.
    .. [2] N. Karmitsa, A. M. Bagirov and S. Taheri, "New diagonal bundle method for clustering
       problems in large data sets", European Journal of Operational Research 263, 367-379, 2017.
    """
    return variable_metric_bundle(x, DiagonalMetric(len(x)), settings)


class DiagonalMetric:
    """Diagonal matrices fitted to the last steps s and changes of subgradients u.

    An entry of the matrix is Σs²/Σsu over these steps: the inverse of the curvature that fits them
    best, from the subgradients of f₁ ("convex") or of f₂ ("concave").

    Parameters
    ----------
    size : int
        The number of variables.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.diagonal = np.ones(self.size)
        self._steps: deque[FloatArray] = deque(maxlen=MEMORY)
        self._convex: deque[FloatArray] = deque(maxlen=MEMORY)
        self._concave: deque[FloatArray] = deque(maxlen=MEMORY)

    def product(self, vector: FloatArray) -> FloatArray:
        """Scale every entry."""
        return self.diagonal * vector

    def after_serious(self, here: Evaluation, step: FloatArray, trial: Trial) -> None:
        """Take the convex matrix."""
        self._remember(here, step, trial)
        self.diagonal = self._fitted(self._convex)

    def after_null(
        self, here: Evaluation, step: FloatArray, trial: Trial, aggregate: FloatArray
    ) -> None:
        """Take the convex matrix, or a mixture where the function is not convex."""
        self._remember(here, step, trial)
        convex = self._fitted(self._convex)
        if trial.linearisation < 0.0 and here.convex is not None:
            concave = self._fitted(self._concave)
            # The largest share of the concave part that leaves the mixture positive definite.
            share = min(1.0, float(((1.0 + concave) / (concave + convex)).max()))
            convex = np.maximum(share * convex - (1.0 - share) * concave, SMALLEST)
        self.diagonal = np.minimum(self.diagonal, convex)

    def _remember(self, here: Evaluation, step: FloatArray, trial: Trial) -> None:
        self._steps.append(step * step)
        self._convex.append(step * (trial.at.first - here.first))
        self._concave.append(step * (trial.at.second - here.second))

    def _fitted(self, curvatures: deque[FloatArray]) -> FloatArray:
        squares = np.sum(self._steps, axis=0)
        curvature = np.sum(curvatures, axis=0)
        # A variable along which the subgradient does not grow tells nothing about its scale.
        is_known = curvature > 1e-300
        fitted = np.divide(squares, curvature, out=self.diagonal.copy(), where=is_known)
        limited: FloatArray = np.clip(fitted, SMALLEST, LARGEST)
        return limited
