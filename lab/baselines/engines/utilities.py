"""Utilities and errors of centres, from the two closest ones of every sample."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def sum_by_center(
    labels: NDArray[np.integer[Any]],
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    weights: NDArray[np.float64] | None,
    n_clusters: int,
    power: int,
) -> NDArray[np.float64]:
    """Sum up what centres are responsible for.

    Parameters
    ----------
    labels : (n,) array
        The closest centre of every sample.
    first, second : (n,) arrays
        Squared distances to the closest and the second closest centre, infinite if there is none.
    weights : (n,) array, optional
        None for equal weights.
    n_clusters : int
        The number of centres.
    power : {1, 2}
        Distances or squared distances in the sums.

    Returns
    -------
    errors_and_utilities : (2, k) array
        Σ wδ₁ and Σ w(δ₂ − δ₁) over the samples of each cluster, δ being distances to the power.
    """
    if power == 1:
        first, second = np.sqrt(first), np.sqrt(second)
    saved = second - first
    if weights is not None:
        # Not even an infinite distance counts for a sample that does not.
        first = weights * first
        saved = np.multiply(weights, saved, out=np.zeros_like(saved), where=weights > 0.0)
    return np.array([np.bincount(labels, values, n_clusters) for values in (first, saved)])
