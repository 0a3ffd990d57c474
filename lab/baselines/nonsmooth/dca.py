"""The DC algorithm: replace the concave part by its linearisation, and minimise (DCA)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from evomeans.typing import FloatArray
from lab.baselines.nonsmooth.evaluation import Ending, Minimum, Search


@dataclass(frozen=True)
class DCASettings:
    """When to stop.

    Parameters
    ----------
    tolerance : float
        Stop as soon as a step is shorter, as the sum of the absolute changes of all variables.
    max_iterations : int
    """

    tolerance: float = 1e-4
    max_iterations: int = 5000


def dca(x: FloatArray, solve: Callable[[FloatArray], FloatArray], settings: DCASettings) -> Search:
    """Minimise f₁ − f₂ by x ← argmin_y f₁(y) − ⟨∇f₂(x), y⟩.

    The value never rises: f₂ lies above its linearisation.

    Parameters
    ----------
    x : (n,) array
        The start.
    solve : callable
        From ξ to the minimiser of f₁(y) − ⟨ξ, y⟩, the gradient of the conjugate of f₁.
    settings : DCASettings
    """
    here = yield x
    for iteration in range(1, settings.max_iterations + 1):
        y = solve(here.second)
        length = np.abs(y - x).sum()
        there = yield y
        if not there.value < here.value:
            return Minimum(x, here.value, iteration, Ending.NO_CHANGE)
        x, here = y, there
        if length <= settings.tolerance:
            return Minimum(x, here.value, iteration, Ending.STATIONARY)
    return Minimum(x, here.value, settings.max_iterations, Ending.MAX_ITERATIONS)
