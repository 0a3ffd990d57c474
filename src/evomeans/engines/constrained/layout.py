"""The arrays that the kernels of the constrained engine share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.bundle import bundle

FloatArray = NDArray[np.float64]
Integers = NDArray[np.int64]


@bundle
class Items(NamedTuple):
    """What is assigned to clusters: samples, or groups of samples that must stay together.

    Parameters
    ----------
    points : (n, d) array
        In the frame; of groups, the means of their samples.
    weights : (n,) array
    counts : (n,) array
        How many samples they are.
    hard_start, hard : (n + 1,) and (p,) arrays
        ``hard[hard_start[i]:hard_start[i + 1]]`` must not be in the cluster of i.
    soft_start, soft, penalties : (n + 1,), (q,) and (q,) arrays
        What it costs if these are in the cluster of i. Negative for pairs that belong together.
    """

    points: FloatArray
    weights: FloatArray
    counts: Integers
    hard_start: Integers
    hard: Integers
    soft_start: Integers
    soft: Integers
    penalties: FloatArray


@bundle
class Clusters(NamedTuple):
    """A clustering, with the means of its clusters.

    Parameters
    ----------
    labels : (n,) array
    means : (k, d) array
        Those of empty clusters are anywhere.
    weights, counts : (k,) arrays
        Total weight, and number of samples.
    low, high : (k,) arrays
        How many samples each must and may have.
    """

    labels: Integers
    means: FloatArray
    weights: FloatArray
    counts: Integers
    low: Integers
    high: Integers


@bundle
class Workspace(NamedTuple):
    """Memory of the moves.

    Parameters
    ----------
    squares, extra : (k,) arrays
        Of one item: squared distances to the means, and penalties.
    is_blocked : (k,) array
        Where an item is met by one from which it must be kept apart.
    chain : (n,) array
        Items of a chain.
    is_in_chain : (n,) array
        Always False between two moves.
    sums : (k, d) array
    shifts : (2, d) array
        How the moments of two clusters change.
    numbers : (4,) array
        Of a chain: weights that leave the first and the second cluster; the change of the
        objective; and the size of the terms that make it up.
    """

    squares: FloatArray
    extra: FloatArray
    is_blocked: NDArray[np.bool_]
    chain: Integers
    is_in_chain: NDArray[np.bool_]
    sums: FloatArray
    shifts: FloatArray
    numbers: FloatArray

    @classmethod
    def allocate(cls, n_items: int, n_clusters: int, n_features: int) -> Workspace:
        """Reserve memory."""
        return cls(
            np.empty(n_clusters),
            np.empty(n_clusters),
            np.empty(n_clusters, np.bool_),
            np.empty(n_items, np.int64),
            np.zeros(n_items, np.bool_),
            np.empty((n_clusters, n_features)),
            np.empty((2, n_features)),
            np.empty(4),
        )
