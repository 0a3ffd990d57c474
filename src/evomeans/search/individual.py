"""A member of the population, and what it inherits."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from evomeans.engines.protocol import FloatArray, Labels

# Sums of squares that agree to this relative difference come from the same clusters: rounding
# stays far below it, and distinct local minima this close are not worth telling apart.
CLONE_TOLERANCE = 1e-9
# A smaller relative gain is rounding, not an improvement that resets the patience. A strategy may
# have a larger tolerance.
IMPROVEMENT = 1e-10
# How far α of a child may be from the average of its parents.
ALPHA_STEP = 0.2


@dataclass(frozen=True, eq=False)
class Individual:
    """A local minimum: the paper's triplet (membership, coordinates, α).

    The membership is left out where it follows from the coordinates.

    Parameters
    ----------
    centers : (k, d) array
        The coordinate chromosome.
    inertia : float
        Its cost.
    cluster_weights : (k,) array
        Total sample weight of each cluster.
    alpha : float
        Mutation parameter in [0, 1].
    handle : object, optional
        The engine's memory of this solution.
    labels : (n,) array, optional
        The membership, of models in which samples need not belong to their closest centre.
    """

    centers: FloatArray
    inertia: float
    cluster_weights: FloatArray
    alpha: float
    handle: Any = field(default=None, repr=False)
    labels: Labels | None = field(default=None, repr=False)

    def is_as_deep_as(self, other: Individual, tolerance: float) -> bool:
        """Whether the inertia is not higher by more than a relative difference."""
        return self.inertia <= other.inertia * (1.0 + tolerance)

    @cached_property
    def explained(self) -> float:
        """Σ Wⱼ‖cⱼ‖², what the centres explain (:mod:`~evomeans.engines.outlook`)."""
        return float(self.cluster_weights @ np.sum(self.centers * self.centers, axis=1))

    @cached_property
    def weights_key(self) -> bytes:
        """The cluster weights in ascending order: the same for every numbering of the clusters."""
        return np.sort(self.cluster_weights).tobytes()

    def is_clone_of(self, other: Individual) -> bool:
        """Whether both are the same solution, up to the numbering of the clusters."""
        difference = abs(self.inertia - other.inertia)
        return (
            difference <= CLONE_TOLERANCE * other.inertia and self.weights_key == other.weights_key
        )


def inherited_alpha(first: float, second: float, uniform: float) -> float:
    """Average of the parents' α, moved by up to ±0.2 and clipped to [0, 1] (section 3.3)."""
    alpha = 0.5 * (first + second) + ALPHA_STEP * (2.0 * uniform - 1.0)
    return min(1.0, max(0.0, alpha))
