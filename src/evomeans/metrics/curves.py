"""Criteria that need nothing but the inertias over the number of clusters."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from evomeans.docstrings import described_like
from evomeans.typing import FloatArray


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
def hartigan_statistic(inertias: ArrayLike, k_values: ArrayLike, n_samples: float) -> FloatArray:
    """Return Hartigan's statistic [1]_.

        Hₖ = (Wₖ/Wₖ₊₁ − 1)(n − k − 1)

    Take the smallest k with Hₖ ≤ 10: another cluster is worth it only above.

    Returns
    -------
    statistics : ndarray of shape (n_values,)
        NaN where the inertia for k + 1 is not given.

    References
    ----------
    .. [1] J. A. Hartigan, "Clustering algorithms", Wiley, 1975.

    Examples
    --------
    >>> from evomeans.metrics import hartigan_statistic
    >>> hartigan_statistic([100.0, 4.0, 3.5], [1, 2, 3], n_samples=50)
    array([1152.        ,    6.71428571,           nan])
    """
    W, ks = _curve(inertias, k_values)
    after = _at(W, ks, ks + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        values: FloatArray = (W / after - 1.0) * (n_samples - ks - 1.0)
    return values


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
