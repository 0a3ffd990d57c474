"""A member of the population."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

# Sums of squares that agree to this relative difference come from the same clusters: rounding
# stays far below it, and distinct local minima this close are not worth telling apart.
CLONE_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Individual:
    """A local minimum: the paper's triplet (membership, coordinates, α) without the membership.

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
    """

    centers: FloatArray
    inertia: float
    cluster_weights: FloatArray
    alpha: float
    handle: Any = field(default=None, repr=False)

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
