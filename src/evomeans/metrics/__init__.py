"""How good clusterings are, how far two are apart, and how many clusters there are.

All functions also accept labels, centres or inertias from other software. docs/guide/choosing-k.md
says how to read them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist

from evomeans.docstrings import described_like
from evomeans.metrics.sums import (
    ClusterSums,
    checked_centers,
    checked_labels,
    checked_samples,
    checked_weights,
    cluster_sums,
    dense,
    dense_blocks,
    means_by_label,
    simplified,
    two_distances,
)
from evomeans.typing import FloatArray, Indices

__all__ = [
    "bic_score",
    "calinski_harabasz_score",
    "centroid_index",
    "davies_bouldin_score",
    "gap_statistic",
    "jump_statistic",
    "krzanowski_lai_index",
    "prediction_strength",
    "silhouette_samples",
    "silhouette_score",
    "simplified_silhouette_samples",
    "simplified_silhouette_score",
]


# How tight clusters are, compared with how far apart and how many they are


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
    sums, means = _by_label(X, labels, sample_weight)
    within, n_samples = float(sums.squares.sum()), float(sums.weights.sum())
    mean = sums.weights @ (means - means[0]) / n_samples + means[0]
    total = within + float(sums.weights @ np.square(means - mean).sum(axis=1))
    return calinski_harabasz(within, total, n_samples, len(sums.weights))


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
    sums, means = _by_label(X, labels, sample_weight)
    return bic(float(sums.squares.sum()), sums.weights, means.shape[1])


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
    return davies_bouldin(*_by_label(X, labels, sample_weight))


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


def _checked(
    X: Any, labels: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[Any, Indices, FloatArray]:
    """Return samples, their labels as 0, 1, …, and their weights."""
    samples = checked_samples(X)
    n = samples.shape[0]
    return samples, checked_labels("labels", labels, n), checked_weights(sample_weight, n)


def _by_label(
    X: Any, labels: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[ClusterSums, FloatArray]:
    """Return sums around the means of clusters, and the means."""
    samples, codes, weights = _checked(X, labels, sample_weight)
    means = means_by_label(samples, codes, weights)
    return cluster_sums(samples, means, weights, codes), means


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
    blocks = dense_blocks(samples, samples.shape[1] + len(places))
    return np.concatenate([simplified(*two_distances(block, places)[1:3]) for _, block in blocks])


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
    samples, codes, weights = _checked(X, labels, sample_weight)
    k = int(codes.max()) + 1
    if k < 2:
        raise ValueError("labels has 1 cluster; a silhouette needs at least 2.")
    every = dense(samples)
    totals = np.bincount(codes, weights, k)
    membership = np.zeros((len(codes), k))
    membership[np.arange(len(codes)), codes] = weights
    values = np.empty(len(codes))
    for rows, block in dense_blocks(every, len(codes)):
        sums = cdist(block, every) @ membership
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
    samples, codes, weights = _checked(X, labels, sample_weight)
    if sample_size is not None and sample_size < samples.shape[0]:
        rng = np.random.default_rng(random_state)
        chosen = np.sort(rng.choice(samples.shape[0], sample_size, replace=False))
        samples, codes, weights = samples[chosen], codes[chosen], weights[chosen]
    return float(np.average(silhouette_samples(samples, codes, weights), weights=weights))


# How far two clusterings are apart


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
    own = checked_labels("labels", labels)
    others = checked_labels("predicted", predicted, len(own))
    k = int(others.max()) + 1
    counts = np.bincount(own * k + others, minlength=(int(own.max()) + 1) * k).reshape(-1, k)
    sizes = counts.sum(axis=1)
    pairs = sizes * (sizes - 1.0)
    kept = (counts * (counts - 1.0)).sum(axis=1)
    return float((kept[pairs > 0.0] / pairs[pairs > 0.0]).min(initial=1.0)) if pairs.any() else 0.0


# What the inertias over the number of clusters say


def jump_statistic(
    inertias: ArrayLike,
    k_values: ArrayLike,
    n_samples: float,
    n_features: int,
    power: float | None = None,
) -> FloatArray:
    """Return the jumps of the transformed distortion, by Sugar and James [1]_.

    The distortion is dₖ = Wₖ/(n·d), the inertia per sample and feature. With the power Y it is

        Jₖ = dₖ^(−Y) − dₖ₋₁^(−Y),    d₀^(−Y) = 0.

    Take the k with the largest jump. Clusters are supposed to be spherical with equal variances:
    standardise or whiten the samples first. For many features dₖ^(−Y) overflows; so all values are
    divided by that of the largest k, which does not change which of them is the largest.

    Parameters
    ----------
    inertias : array-like of shape (n_values,)
        The lowest inertia for each number of clusters.
    k_values : array-like of shape (n_values,)
        Ascending.
    n_samples : float
        Number of samples, or their total weight.
    n_features : int
    power : float, optional
        Y; half the number of features by default. With correlated features, half of their
        effective number is better.

    Returns
    -------
    jumps : ndarray of shape (n_values,)
        NaN where the inertia for k − 1 is not given, or the inertia is 0.

    References
    ----------
    .. [1] C. A. Sugar and G. M. James, "Finding the number of clusters in a dataset: An
       information-theoretic approach", Journal of the American Statistical Association 98,
       750-763, 2003.

    Examples
    --------
    >>> from evomeans.metrics import jump_statistic
    >>> jump_statistic([100.0, 4.0, 3.0], [1, 2, 3], n_samples=50, n_features=2).round(3)
    array([0.03, 0.72, 0.25])
    """
    W, ks = _curve(inertias, k_values)
    power = n_features / 2.0 if power is None else power
    if not power > 0.0:
        raise ValueError(f"power={power} must be positive.")
    with np.errstate(divide="ignore"):
        logarithms = np.log(W / (n_samples * n_features))
    finite = np.isfinite(logarithms)
    if not finite.any():
        return np.full(len(W), np.nan)
    transformed = np.exp(-power * (logarithms - logarithms[finite].min()))
    transformed[~finite] = np.nan
    before = np.where(ks == 1, 0.0, _at(transformed, ks, ks - 1))
    jumps: FloatArray = transformed - before
    return jumps


@described_like(jump_statistic)
def krzanowski_lai_index(inertias: ArrayLike, k_values: ArrayLike, n_features: int) -> FloatArray:
    """Return the index of Krzanowski and Lai [1]_.

        DIFFₖ = (k − 1)^(2/d) Wₖ₋₁ − k^(2/d) Wₖ,    KLₖ = |DIFFₖ/DIFFₖ₊₁|

    Take the k for which it is largest.

    Returns
    -------
    indices : ndarray of shape (n_values,)
        NaN where the inertia for k − 1 or k + 1 is not given.

    References
    ----------
    .. [1] W. J. Krzanowski and Y. T. Lai, "A criterion for determining the number of groups in a
       data set using sum-of-squares clustering", Biometrics 44, 23-34, 1988.

    Examples
    --------
    >>> from evomeans.metrics import krzanowski_lai_index
    >>> krzanowski_lai_index([100.0, 4.0, 2.0], [1, 2, 3], n_features=2)
    array([nan, 46., nan])
    """
    W, ks = _curve(inertias, k_values)
    scaled = ks ** (2.0 / n_features) * W
    differences = _at(scaled, ks, ks - 1) - scaled
    with np.errstate(divide="ignore", invalid="ignore"):
        values: FloatArray = np.abs(differences / _at(differences, ks, ks + 1))
    return values


def _curve(inertias: ArrayLike, k_values: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return inertias and numbers of clusters as arrays of the same length."""
    W, ks = np.asarray(inertias, dtype=np.float64), np.asarray(k_values, dtype=np.float64)
    if W.ndim != 1 or W.shape != ks.shape:
        raise ValueError(
            f"inertias has shape {W.shape} and k_values {ks.shape}; expected one inertia for each "
            "number of clusters."
        )
    if len(ks) and (ks[0] < 1 or (np.diff(ks) <= 0).any()):
        raise ValueError("k_values must ascend and begin with at least 1.")
    return W, ks


def _at(values: FloatArray, ks: FloatArray, wanted: FloatArray) -> FloatArray:
    """Return the values at other numbers of clusters, NaN where there are none."""
    places = np.minimum(np.searchsorted(ks, wanted), len(ks) - 1)
    return np.where(ks[places] == wanted, values[places], np.nan)


class GapStatistic(NamedTuple):
    """The gaps, and their standard errors."""

    gaps: FloatArray
    errors: FloatArray


def gap_statistic(inertias: ArrayLike, reference_inertias: ArrayLike) -> GapStatistic:
    """Return the gap statistic of Tibshirani, Walther and Hastie [1]_.

        Gapₖ = mean(ln W*ₖ) − ln Wₖ,    sₖ = sd(ln W*ₖ)·√(1 + 1/B)

    with the inertias W* of B samples without clusters, and their standard deviation sd, in which
    the sum of squares is divided by B. Both have to be searched with equal effort: if only the
    samples themselves are clustered well, the gap grows for nothing.

    Take the smallest k with Gapₖ ≥ Gapₖ₊₁ − sₖ₊₁, or the smallest that is within one standard
    error of the first local maximum.

    Parameters
    ----------
    inertias : array-like of shape (n_values,)
        Inertias of the samples, for each number of clusters.
    reference_inertias : array-like of shape (n_references, n_values)
        Inertias of the references.

    Returns
    -------
    gaps, errors : ndarrays of shape (n_values,)

    References
    ----------
    .. [1] R. Tibshirani, G. Walther and T. Hastie, "Estimating the number of clusters in a data
       set via the gap statistic", Journal of the Royal Statistical Society B 63, 411-423, 2001.

    Examples
    --------
    >>> from evomeans.metrics import gap_statistic
    >>> gaps, errors = gap_statistic([100.0, 10.0], [[100.0, 50.0], [100.0, 50.0]])
    >>> gaps.round(3), errors
    (array([0.   , 1.609]), array([0., 0.]))
    """
    W = np.asarray(inertias, dtype=np.float64)
    references = np.asarray(reference_inertias, dtype=np.float64)
    is_table = references.ndim == 2 and references.shape[1:] == W.shape
    if W.ndim != 1 or not is_table or not len(references):
        raise ValueError(
            f"inertias has shape {W.shape} and reference_inertias {references.shape}; expected "
            "(n_values,) and (n_references, n_values)."
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        logarithms = np.log(references)
        gaps: FloatArray = logarithms.mean(axis=0) - np.log(W)
        errors: FloatArray = logarithms.std(axis=0) * np.sqrt(1.0 + 1.0 / len(references))
    return GapStatistic(gaps, errors)
