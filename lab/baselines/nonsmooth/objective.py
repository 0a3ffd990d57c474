"""The cluster function and the auxiliary cluster function, for optimisers.

Both are measured in units in which the tolerances of the optimisers make sense for any data: a
point is an offset from the start in multiples of the root mean square distance of the samples from
their centres, and a value is a multiple of the sum of squares. They are differences f₁ − f₂ of
convex functions, where f₁ is the mean squared distance of all samples from all centres, so that
its Hessian is 2I [1]_.

References
----------
.. [1] A. M. Bagirov, S. Taheri and J. Ugon, "Nonsmooth DC programming approach to the minimum
   sum-of-squares clustering problems", Pattern Recognition 53, 12-24, 2016.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from evomeans.engines.protocol import Handle, Refinement
from evomeans.typing import FloatArray
from lab.baselines.engine import BaselineEngine
from lab.baselines.incremental import ROUNDING
from lab.baselines.nonsmooth.evaluation import Evaluation

# Centres farther away own no sample; engines need coordinates below a million.
RIM = 1e5


@dataclass(frozen=True, eq=False)
class Scale:
    """What a solution says about the data, all in the frame.

    Parameters
    ----------
    mean : (d,) array
        Of all samples.
    unit : float
        Root mean square distance of the samples from their centres; not zero.
    total_weight : float
    spread : float
        Sum of squares around the mean: the objective for one cluster.
    """

    mean: FloatArray
    unit: float
    total_weight: float
    spread: float

    @classmethod
    def of(cls, engine: BaselineEngine, solution: Refinement) -> Scale:
        """Read it off a fixed point of K-means."""
        inertia = engine.frame.inertia_in_frame(solution.inertia)
        weights, centers = solution.cluster_weights, solution.centers
        mean = weights @ centers / engine.total_weight
        between = float(weights @ np.square(centers - mean).sum(axis=1))
        unit = float(np.sqrt(inertia / engine.total_weight))
        return cls(mean, unit, engine.total_weight, inertia + between)


class AuxiliaryFunction:
    """f̄(y) = Σ w·min(δ, ‖y − x‖²), the objective as a function of one more centre.

    Parameters
    ----------
    engine : BaselineEngine
    squares : (n,) array
        δ, the squared distances of the samples to their present centres.
    scale : Scale
    origins : (m, d) array
        Where searches start; their variables are offsets from there.
    """

    def __init__(
        self, engine: BaselineEngine, squares: FloatArray, scale: Scale, origins: FloatArray
    ) -> None:
        self.engine = engine
        # Samples that are equally far, up to rounding, are not attracted.
        self.squares = squares * (1.0 - ROUNDING)
        self.scale = scale
        self.origins = origins

    def points(self, which: Sequence[int], offsets: FloatArray) -> FloatArray:
        """Return the places that offsets stand for."""
        return _within_rim(self.origins[which] + self.scale.unit * offsets)

    def __call__(self, which: Sequence[int], offsets: FloatArray) -> list[Evaluation]:
        """Evaluate it for several searches; see ``minimise_together``."""
        scale = self.scale
        points = self.points(which, offsets)
        attracted = self.engine.attracted(points, self.squares)
        values = 1.0 - attracted.reductions / (scale.total_weight * scale.unit**2)
        pulls = 2.0 * attracted.weights / (scale.total_weight * scale.unit)
        gradients = pulls[:, None] * (points - attracted.means)
        convex = 2.0 * (points - scale.mean) / scale.unit
        return list(map(Evaluation, values.tolist(), gradients, convex))

    def conjugate(self, number: int, slope: FloatArray) -> FloatArray:
        """Return the offset at which the gradient of f₁ is ``slope``, for one of the searches."""
        offset: FloatArray = (self.scale.mean - self.origins[number]) / self.scale.unit
        return offset + 0.5 * slope


class ClusterFunction:
    """f(x₁, …, x_k) = Σ w·min_j ‖x_j − x‖², the objective as a function of all centres.

    Parameters
    ----------
    engine : BaselineEngine
    origin : (k, d) array
        The start; the variables are offsets from there.
    mean : (d,) array
        Of all samples.
    unit : float
        Of the offsets, in the frame.
    parent : handle, optional
        Of a solution near the start.

    Attributes
    ----------
    handle : handle or None
        Of the last centres; the next ones are likely to be near them.
    """

    def __init__(
        self,
        engine: BaselineEngine,
        origin: FloatArray,
        mean: FloatArray,
        unit: float,
        parent: Handle | None = None,
    ) -> None:
        self.engine = engine
        self.origin = origin
        self.mean = mean
        self.unit = unit
        self.handle = parent

    @classmethod
    def around(
        cls, engine: BaselineEngine, origin: FloatArray, parent: Handle | None = None
    ) -> Self:
        """Choose mean and unit by the samples, such that the value at the start is 1."""
        found = engine.cluster_sums(origin, parent)
        mean = found.sums.sum(axis=0) / engine.total_weight
        unit = float(np.sqrt(found.inertia / engine.total_weight))
        return cls(engine, origin, mean, unit, found.handle)

    def centers(self, offsets: FloatArray) -> FloatArray:
        """Return the centres that offsets stand for."""
        moved = self.origin + self.unit * offsets.reshape(self.origin.shape)
        return _within_rim(moved)

    def __call__(self, offsets: FloatArray) -> Evaluation:
        """Evaluate it at offsets of all centres, one after another in a vector."""
        centers = self.centers(offsets)
        found = self.engine.cluster_sums(centers, self.handle)
        self.handle = found.handle
        total = self.engine.total_weight
        value = found.inertia / (total * self.unit**2)
        gradient = (found.weights[:, None] * centers - found.sums) * (2.0 / (total * self.unit))
        convex = 2.0 * (centers - self.mean) / self.unit
        return Evaluation(value, gradient.ravel(), convex.ravel())

    def conjugate(self, slope: FloatArray) -> FloatArray:
        """Return the offsets at which the gradient of f₁ is ``slope``."""
        return ((self.mean - self.origin) / self.unit).ravel() + 0.5 * slope


def _within_rim(points: FloatArray) -> FloatArray:
    """Bring back what is too far away for an engine; it owns no sample there either."""
    limited: FloatArray = np.minimum(np.maximum(points, -RIM), RIM)
    return limited
