"""How far two clusterings are apart, and how stable clusterings are."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist

from evomeans.metrics.sums import checked_centers, checked_labels
from evomeans.typing import FloatArray

__all__ = ["centroid_index"]


def centroid_index(centers_a: ArrayLike, centers_b: ArrayLike) -> int:
    """Count the clusters that one solution has and the other one lacks.

    Every centre of one set is mapped to the nearest centre of the other. Centres to which none is
    mapped are orphans: their clusters have no counterpart. The centroid index is the number of
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


def contingency(labels_a: ArrayLike, labels_b: ArrayLike) -> FloatArray:
    """Return how many samples each pair of clusters has in common."""
    a = checked_labels("labels_a", labels_a)
    b = checked_labels("labels_b", labels_b, len(a))
    table = np.bincount(a * (int(b.max()) + 1) + b, minlength=(int(a.max()) + 1) * (b.max() + 1))
    return table.reshape(int(a.max()) + 1, -1).astype(np.float64)


def prediction_strength(labels: ArrayLike, predicted: ArrayLike) -> float:
    """Return how well clusters predict those of other samples, by Tibshirani and Walther [1]_.

    For each cluster j of n_j test samples it is the share of their pairs that centres fitted to
    other samples put together, too; the strength is the lowest of these:

        ps = minⱼ Σ_c n_jc(n_jc − 1) / (n_j(n_j − 1)).

    Take the largest k whose mean over several divisions of the samples is at least 0.8. The table
    of the sizes n_jc is all that it takes, never the n² pairs.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        Clusters of the test samples.
    predicted : array-like of shape (n_samples,)
        The same samples by the centres of the training samples.

    Returns
    -------
    strength : float
        Between 0 and 1. Clusters of a single sample have no pairs and are left out; 0 if there are
        no others.

    References
    ----------
    .. [1] R. Tibshirani and G. Walther, "Cluster validation by prediction strength", Journal of
       Computational and Graphical Statistics 14, 511-528, 2005.

    Examples
    --------
    >>> from evomeans.metrics import prediction_strength
    >>> prediction_strength([0, 0, 0, 1, 1], [5, 5, 5, 5, 7])
    0.0
    >>> prediction_strength([0, 0, 0, 1, 1], [5, 5, 7, 7, 7])
    0.3333333333333333
    """
    counts = contingency(labels, predicted)
    sizes = counts.sum(axis=1)
    pairs = sizes * (sizes - 1.0)
    kept = (counts * (counts - 1.0)).sum(axis=1)
    return float((kept[pairs > 0.0] / pairs[pairs > 0.0]).min(initial=1.0)) if pairs.any() else 0.0


def clustering_instability(
    labels_a: ArrayLike, labels_b: ArrayLike, *, normalized: bool = True
) -> float:
    """Return how much two clusterings of the same samples disagree, by Fang and Wang [1]_.

    It is the share of all pairs of samples that one of them puts together and the other does not:

        d = Σ_ij |1{aᵢ = aⱼ} − 1{bᵢ = bⱼ}| / n².

    The share falls with the number of clusters even for random labels. So it is divided by what
    unrelated clusterings with clusters of these sizes would have, p_a(1 − p_b) + p_b(1 − p_a) with
    p the share of pairs that are together [2]_. Take the k for which the mean over pairs of
    clusterings of resampled data is smallest.

    Parameters
    ----------
    labels_a, labels_b : array-like of shape (n_samples,)
        The clusters of the same samples in both.
    normalized : bool, default=True
        Whether to divide.

    Returns
    -------
    instability : float
        0 if both are the same. Normalised, 1 is what unrelated clusterings have on average.

    References
    ----------
    .. [1] Y. Fang and J. Wang, "Selection of the number of clusters via the bootstrap method",
       Computational Statistics & Data Analysis 56, 468-477, 2012.
    .. [2] J. M. B. Haslbeck and D. U. Wulff, "Estimating the number of clusters via a corrected
       clustering instability", Computational Statistics 35, 1879-1894, 2020.

    Examples
    --------
    >>> from evomeans.metrics import clustering_instability
    >>> clustering_instability([0, 0, 1, 1], [7, 7, 3, 3])
    0.0
    >>> clustering_instability([0, 0, 1, 1], [0, 1, 0, 1], normalized=False)
    0.5
    """
    counts = contingency(labels_a, labels_b)
    n = float(counts.sum())
    together_a = float((counts.sum(axis=1) ** 2).sum()) / n**2
    together_b = float((counts.sum(axis=0) ** 2).sum()) / n**2
    both = float((counts**2).sum()) / n**2
    apart = together_a + together_b - 2.0 * both
    if not normalized:
        return apart
    expected = together_a * (1.0 - together_b) + together_b * (1.0 - together_a)
    return apart / expected if expected > 0.0 else 0.0
