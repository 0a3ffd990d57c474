"""How far two clusterings are apart at the level of whole clusters."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist

from evomeans.metrics.checks import checked_centers

__all__ = ["centroid_index"]


def centroid_index(centers_a: ArrayLike, centers_b: ArrayLike) -> int:
    """Count the clusters that one solution has and the other one lacks.

    Every centre of one set is mapped to the nearest centre of the other. Centres that nobody is
    mapped to are orphans: their clusters have no counterpart. The centroid index is the number of
    orphans, taken in the direction in which there are more of them (eqs. 3 to 5 of [1]_). It is
    zero exactly if the solutions have the same structure of clusters, wherever the border between
    two clusters runs.

    Parameters
    ----------
    centers_a : array-like of shape (n_clusters_a, n_features)
        Centres of one solution.
    centers_b : array-like of shape (n_clusters_b, n_features)
        Centres of the other, or of the ground truth; there may be more or fewer of them.

    Returns
    -------
    index : int
        From 0 to ``max(n_clusters_a, n_clusters_b) - 1``, the same for either order of the sets.
        It is at least the difference of the numbers of clusters.

    Notes
    -----
    Of centres at equal distances the first one is taken, so that centres that coincide within a
    set are told apart only there: all but the first of them are orphans.

    References
    ----------
    .. [1] P. Fränti, M. Rezaei and Q. Zhao, "Centroid index: cluster level similarity measure",
       Pattern Recognition 47(9), 3034-3045, 2014.

    Examples
    --------
    Two centres share the cluster at 0, and one has to serve the clusters at 10 and 12:

    >>> from evomeans.metrics import centroid_index
    >>> truth = [[0.0], [10.0], [12.0]]
    >>> centroid_index(truth, [[-0.5], [0.5], [11.0]])
    1
    >>> centroid_index(truth, [[12.1], [9.8], [0.3]])
    0
    """
    a = checked_centers("centers_a", centers_a)
    b = checked_centers("centers_b", centers_b)
    if a.shape[1] != b.shape[1]:
        raise ValueError(
            f"centers_a has {a.shape[1]} features and centers_b has {b.shape[1]}; "
            "both need the same."
        )
    # One power of two for both sets, so that squares neither overflow nor vanish.
    exponent = -int(np.frexp(max(np.abs(a).max(), np.abs(b).max()))[1])
    distances = cdist(np.ldexp(a, exponent), np.ldexp(b, exponent), "sqeuclidean")
    orphans_of_b = len(b) - len(np.unique(distances.argmin(axis=1)))
    orphans_of_a = len(a) - len(np.unique(distances.argmin(axis=0)))
    return max(orphans_of_a, orphans_of_b)
