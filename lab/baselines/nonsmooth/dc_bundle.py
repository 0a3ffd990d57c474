"""Descent along codifferentials of a difference of convex functions (the solver of DCClust)."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from evomeans.typing import FloatArray
from lab.baselines.nonsmooth.evaluation import Ending, Evaluation, Minimum, Search
from lab.baselines.nonsmooth.wolfe import minimum_norm_weights


@dataclass(frozen=True)
class DCBundleSettings:
    """Parameters of the method, by default those of the published program.

    Parameters
    ----------
    radius, smallest_radius, shrinkage : float
        λ at first and at last, and its factor between two levels.
    growth : float
        Factor of λ after a descent.
    sufficient, sustained : float
        Shares of λ‖v‖ by which the value has to fall, at λ and for each doubling of the step.
    stationary : float
        ‖v‖ below which a point counts as stationary, also as a multiple of the mean norm of the
        bundle.
    bundle_size : int
        At most so many vectors.
    little : float
        A level ends when the value falls by less than this share in 4 descents, or by less than
        ten times this in 8.
    max_iterations : int
    """

    radius: float = 1.0
    smallest_radius: float = 1e-10
    shrinkage: float = 0.1
    growth: float = 1.2
    sufficient: float = 0.2
    sustained: float = 0.05
    stationary: float = 1e-6
    bundle_size: int = 30
    little: float = 1e-5
    max_iterations: int = 5000


Descent = tuple[FloatArray, Evaluation]


def dc_bundle(x: FloatArray, settings: DCBundleSettings) -> Search:
    """Minimise f₁ − f₂ with f₁ smooth.

    For a radius λ, the vectors ∇f₁(x + λg) − ∇f₂(x) over unit vectors g surround the codifferential
    of f at x. The shortest vector v in the convex hull of a few of them either gives a direction
    −v/‖v‖ in which f falls, or one more of them. Where v vanishes, x is stationary at the scale λ,
    and the next level has a smaller λ [1]_. The value never rises.

    Parameters
    ----------
    x : (n,) array
        The start.
    settings : DCBundleSettings

    References
    ----------
    .. [1] A. M. Bagirov and J. Ugon, "Codifferential method for minimizing nonsmooth DC functions",
       Journal of Global Optimization 50, 3-22, 2011.
    """
    here = yield x
    radius, iterations = settings.radius, 0
    while radius >= settings.smallest_radius:
        values = [here.value]
        direction = np.full(len(x), 1.0 / np.sqrt(len(x)))
        while not _hardly_falls(values, settings.little):
            if iterations == settings.max_iterations:
                return Minimum(x, here.value, iterations, Ending.MAX_ITERATIONS)
            iterations += 1
            found = yield from _descend(x, here, direction, radius, settings)
            if found is None:
                break
            direction, (x, here) = found
            values.append(here.value)
            radius *= settings.growth
        radius *= settings.shrinkage
    return Minimum(x, here.value, iterations, Ending.STATIONARY)


def _hardly_falls(values: list[float], little: float) -> bool:
    """Whether the last 4 or 8 descents of a level were not worth their time."""
    scale = abs(values[-1]) + 1.0
    return any(
        len(values) > count and (values[-1 - count] - values[-1]) / scale < share
        for count, share in ((4, little), (8, 10.0 * little))
    )


def _descend(
    x: FloatArray,
    here: Evaluation,
    direction: FloatArray,
    radius: float,
    settings: DCBundleSettings,
) -> Generator[FloatArray, Evaluation, tuple[FloatArray, Descent] | None]:
    """Find a direction of descent, and go there; None if x is stationary at this radius."""
    size = min(settings.bundle_size, len(x) + 3)
    bundle = np.empty((size, len(x)))
    products = np.empty((size, size))
    trial = yield x + radius * direction
    for count in range(1, size + 1):
        bundle[count - 1] = trial.first - here.second
        products[count - 1, :count] = products[:count, count - 1] = (
            bundle[:count] @ bundle[count - 1]
        )
        shortest = minimum_norm_weights(products[:count, :count]) @ bundle[:count]
        norm = float(np.sqrt(shortest @ shortest))
        mean = float(np.sqrt(np.diag(products)[:count]).mean())
        if norm < settings.stationary * max(1.0, mean):
            return None
        direction = shortest / -norm
        trial = yield x + radius * direction
        if trial.value - here.value < -settings.sufficient * radius * norm:
            found = yield from _double(x, here, direction, radius, norm, trial, settings.sustained)
            return direction, found
    return None


def _double(
    x: FloatArray,
    here: Evaluation,
    direction: FloatArray,
    step: float,
    norm: float,
    trial: Evaluation,
    sustained: float,
) -> Generator[FloatArray, Evaluation, Descent]:
    """Double the step up to 20 times while the value falls far enough."""
    for _ in range(20):
        longer = yield x + 2.0 * step * direction
        if longer.value >= trial.value or (
            longer.value - here.value > -sustained * 2.0 * step * norm
        ):
            break
        step, trial = 2.0 * step, longer
    return x + step * direction, trial
