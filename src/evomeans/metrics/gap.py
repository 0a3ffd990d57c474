"""The gap statistic: how much lower the inertia is than that of samples without clusters."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from evomeans.metrics.checks import FloatArray


class Gap(NamedTuple):
    """The gaps, and their standard errors."""

    gaps: FloatArray
    errors: FloatArray


def gap_statistic(inertias: ArrayLike, reference_inertias: ArrayLike) -> Gap:
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
        Of the samples, for each number of clusters.
    reference_inertias : array-like of shape (n_references, n_values)
        Of the references.

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
    if (
        W.ndim != 1
        or references.ndim != 2
        or references.shape[1:] != W.shape
        or not len(references)
    ):
        raise ValueError(
            f"inertias has shape {W.shape} and reference_inertias {references.shape}; expected "
            "(n_values,) and (n_references, n_values)."
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        logarithms = np.log(references)
        gaps: FloatArray = logarithms.mean(axis=0) - np.log(W)
        errors: FloatArray = logarithms.std(axis=0) * np.sqrt(1.0 + 1.0 / len(references))
    return Gap(gaps, errors)
