"""How tight clusters are compared with how far they are apart, and with how many they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from scipy.spatial.distance import cdist

from evomeans.docstrings import described_like
from evomeans.metrics.sums import (
    ClusterSums,
    checked_centers,
    checked_labels,
    checked_samples,
    checked_weights,
    cluster_sums,
    dense_blocks,
    means_by_label,
    simplified,
    two_distances,
)
from evomeans.typing import FloatArray


def calinski_harabasz_score(
    X: Any, labels: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    """Return the index of Calinski and Harabasz, the variance ratio criterion [1]_.

    With W the sum of squared distances to the means of clusters, T that to the mean of all
    samples, n the number of samples (or their total weight) and k that of clusters it is

        CH = ((T − W)/(k − 1)) / (W/(n − k)).

    Take the k for which it is largest. It is not defined for k = 1.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    labels : array-like of shape (n_samples,)
        The cluster of each sample.
    sample_weight : array-like of shape (n_samples,), optional
        A weight of 2 counts like two equal samples.

    Returns
    -------
    score : float

    References
    ----------
    .. [1] T. Caliński and J. Harabasz, "A dendrite method for cluster analysis", Communications in
       Statistics 3, 1-27, 1974.

    Examples
    --------
    >>> from evomeans.metrics import calinski_harabasz_score
    >>> calinski_harabasz_score([[0.0], [1.0], [5.0], [6.0]], [0, 0, 1, 1])
    50.0
    """
    sums, _, total = _by_label(X, labels, sample_weight)
    return calinski_harabasz(
        float(sums.squares.sum()), total, float(sums.weights.sum()), len(sums.weights)
    )


def calinski_harabasz(inertia: float, total: float, n_samples: float, k: int) -> float:
    """Return the index from inertias: that of k clusters, and that of one."""
    if k < 2 or n_samples <= k:
        return np.nan
    within = inertia / (n_samples - k)
    if within == 0.0:
        return np.inf if total > 0.0 else np.nan
    return ((total - inertia) / (k - 1)) / within


@described_like(calinski_harabasz_score)
def bic_score(X: Any, labels: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
    """Return the Bayesian information criterion of spherical Gaussians with a common variance.

    Every sample belongs to one Gaussian. With n samples in d dimensions, nⱼ of them in cluster j,
    and the variance at its maximum likelihood, σ² = W/(nd), it is

        BIC = −2·L + p·ln n,    L = Σ nⱼ ln(nⱼ/n) − (nd/2)(ln(2πσ²) + 1),    p = (k − 1) + kd + 1.

    Take the k for which it is smallest. This is the criterion of X-means [1]_ with the factor d in
    the variance, which is missing in print, and with the biased estimate of σ².

    Returns
    -------
    score : float
        −inf if all samples lie on the means of their clusters.

    References
    ----------
    .. [1] D. Pelleg and A. Moore, "X-means: Extending k-means with efficient estimation of the
       number of clusters", ICML, 727-734, 2000.

    Examples
    --------
    >>> from evomeans.metrics import bic_score
    >>> X = [[0.0], [1.0], [5.0], [6.0]]
    >>> bic_score(X, [0, 0, 1, 1]) < bic_score(X, [0, 0, 0, 0])
    True
    """
    samples = checked_samples(X)
    sums, _, _ = _by_label(samples, labels, sample_weight)
    return bic(float(sums.squares.sum()), sums.weights, samples.shape[1])


def bic(inertia: float, cluster_weights: FloatArray, n_features: int) -> float:
    """Return the criterion from the inertia and the sizes of clusters."""
    sizes = cluster_weights[cluster_weights > 0.0]
    n, k = float(sizes.sum()), len(cluster_weights)
    if inertia == 0.0:
        return -np.inf
    if n == 0.0:
        # Weights so small that their sums vanish leave no likelihood.
        return np.nan
    variance = inertia / (n * n_features)
    likelihood = float((sizes * np.log(sizes / n)).sum())
    likelihood -= 0.5 * n * n_features * (np.log(2.0 * np.pi * variance) + 1.0)
    parameters = (k - 1) + k * n_features + 1
    return float(-2.0 * likelihood + parameters * np.log(n))


@described_like(calinski_harabasz_score)
def davies_bouldin_score(
    X: Any, labels: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    """Return the index of Davies and Bouldin [1]_.

    With Sᵢ the mean distance of the samples of cluster i to their mean cᵢ it is

        DB = (1/k) Σᵢ maxⱼ (Sᵢ + Sⱼ)/‖cᵢ − cⱼ‖.

    Take the k for which it is smallest. It is not defined for k = 1.

    References
    ----------
    .. [1] D. L. Davies and D. W. Bouldin, "A cluster separation measure", IEEE Transactions on
       Pattern Analysis and Machine Intelligence 1, 224-227, 1979.

    Examples
    --------
    >>> from evomeans.metrics import davies_bouldin_score
    >>> davies_bouldin_score([[0.0], [1.0], [5.0], [6.0]], [0, 0, 1, 1])
    0.2
    """
    sums, means, _ = _by_label(X, labels, sample_weight)
    return davies_bouldin(sums, means)


def davies_bouldin(sums: ClusterSums, centers: FloatArray) -> float:
    """Return the index from sums over clusters; clusters without samples do not count."""
    owns = sums.weights > 0.0
    if np.count_nonzero(owns) < 2:
        return np.nan
    scatter = sums.distances[owns] / sums.weights[owns]
    apart = cdist(centers[owns], centers[owns])
    np.fill_diagonal(apart, np.inf)
    if not scatter.any():
        return 0.0
    with np.errstate(divide="ignore"):
        ratios = (scatter[:, None] + scatter[None, :]) / apart
    return float(ratios.max(axis=1).mean())


def _by_label(
    X: Any, labels: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[ClusterSums, FloatArray, float]:
    """Return sums around the means of clusters, the means, and the inertia of one cluster."""
    samples = checked_samples(X)
    codes = checked_labels("labels", labels, samples.shape[0])
    weights = checked_weights(sample_weight, samples.shape[0])
    means = means_by_label(samples, codes, weights)
    sums = cluster_sums(samples, means, weights, codes)
    whole = np.zeros_like(codes)
    mean = means_by_label(samples, whole, weights)
    total = float(cluster_sums(samples, mean, weights, whole).squares.sum())
    return sums, means, total


@described_like(calinski_harabasz_score)
def simplified_silhouette_samples(X: Any, centers: ArrayLike) -> FloatArray:
    """Return the simplified silhouette of each sample [1]_.

    With a the distance of a sample to its closest centre and b that to the second closest it is

        s = (b − a)/max(a, b),

    between 0 and 1, and 0 where both distances are 0. It takes one pass, O(nkd), instead of all
    distances between samples.

    Parameters
    ----------
    centers : array-like of shape (n_clusters, n_features)
        At least two.

    Returns
    -------
    silhouettes : ndarray of shape (n_samples,)

    References
    ----------
    .. [1] E. R. Hruschka, L. N. de Castro and R. J. G. B. Campello, "Evolutionary algorithms for
       clustering gene-expression data", IEEE ICDM, 403-406, 2004.

    Examples
    --------
    >>> from evomeans.metrics import simplified_silhouette_samples
    >>> simplified_silhouette_samples([[0.0], [2.0], [6.0]], [[1.0], [6.0]])
    array([0.83333333, 0.75      , 1.        ])
    """
    samples, places = checked_samples(X), checked_centers("centers", centers)
    if len(places) < 2:
        raise ValueError(f"centers has {len(places)} row; a silhouette needs at least 2 clusters.")
    if places.shape[1] != samples.shape[1]:
        raise ValueError(
            f"centers has {places.shape[1]} features and X has {samples.shape[1]}; both need the "
            "same."
        )
    values = np.empty(samples.shape[0])
    for rows, block in dense_blocks(samples, samples.shape[1] + len(places)):
        _, near, far, _ = two_distances(block, places)
        values[rows] = simplified(near, far)
    return values


@described_like(calinski_harabasz_score)
def simplified_silhouette_score(
    X: Any, centers: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    """Return the mean of :func:`simplified_silhouette_samples`, weighted if that is asked for.

    Take the k for which it is largest.

    Parameters
    ----------
    centers : array-like of shape (n_clusters, n_features)
        At least two.
    """
    values = simplified_silhouette_samples(X, centers)
    return float(np.average(values, weights=checked_weights(sample_weight, len(values))))


@described_like(calinski_harabasz_score)
def silhouette_samples(
    X: Any, labels: ArrayLike, sample_weight: ArrayLike | None = None
) -> FloatArray:
    """Return the silhouette of each sample [1]_.

    With a the mean distance to the other samples of its cluster, and b the lowest mean distance to
    the samples of another cluster, it is

        s = (b − a)/max(a, b),

    and 0 for a sample that is alone in its cluster. All distances between samples are computed,
    some rows at a time: O(n²d) time, O(n) memory.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        The cluster of each sample; at least two clusters.

    Returns
    -------
    silhouettes : ndarray of shape (n_samples,)

    References
    ----------
    .. [1] P. J. Rousseeuw, "Silhouettes: A graphical aid to the interpretation and validation of
       cluster analysis", Journal of Computational and Applied Mathematics 20, 53-65, 1987.

    Examples
    --------
    >>> from evomeans.metrics import silhouette_samples
    >>> silhouette_samples([[0.0], [2.0], [6.0]], [0, 0, 1])
    array([0.66666667, 0.5       , 0.        ])
    """
    samples = checked_samples(X)
    codes = checked_labels("labels", labels, samples.shape[0])
    weights = checked_weights(sample_weight, samples.shape[0])
    k = int(codes.max()) + 1
    if k < 2:
        raise ValueError("labels has 1 cluster; a silhouette needs at least 2.")
    whole: Any = samples
    rows_of = np.asarray(whole.toarray() if issparse(samples) else whole, dtype=np.float64)
    totals = np.bincount(codes, weights, k)
    membership = np.zeros((len(codes), k))
    membership[np.arange(len(codes)), codes] = weights
    values = np.empty(len(codes))
    for rows, block in dense_blocks(rows_of, len(codes)):
        sums = cdist(block, rows_of) @ membership
        own, places = codes[rows], np.arange(len(block))
        # A sample is not compared with itself; it counts as one, whatever its weight.
        others = totals[own] - 1.0
        inner = sums[places, own]
        with np.errstate(divide="ignore", invalid="ignore"):
            means = sums / totals
        means[places, own] = np.inf
        means[:, totals == 0.0] = np.inf
        a = np.divide(inner, others, out=np.zeros_like(inner), where=others > 0.0)
        s = simplified(a, means.min(axis=1))
        values[rows] = np.where(others > 0.0, s, 0.0)
    return values


@described_like(calinski_harabasz_score)
def silhouette_score(
    X: Any,
    labels: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    sample_size: int | None = None,
    random_state: int = 0,
) -> float:
    """Return the mean of :func:`silhouette_samples`, of all samples or of some.

    Take the k for which it is largest.

    Parameters
    ----------
    sample_size : int, optional
        If there are more samples, so many are drawn without replacement, and all others are left
        out. None takes all of them.
    random_state : int, default=0
        Seed of the draw.
    """
    samples = checked_samples(X)
    codes = checked_labels("labels", labels, samples.shape[0])
    weights = checked_weights(sample_weight, samples.shape[0])
    if sample_size is not None and sample_size < samples.shape[0]:
        rng = np.random.default_rng(random_state)
        chosen = np.sort(rng.choice(samples.shape[0], sample_size, replace=False))
        samples, codes, weights = samples[chosen], codes[chosen], weights[chosen]
    return float(np.average(silhouette_samples(samples, codes, weights), weights=weights))
