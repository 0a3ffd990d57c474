"""The statistics that the paper uses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats


def wilcoxon(differences: Sequence[float]) -> float:
    """Two-sided p-value of the Wilcoxon signed-rank test.

    1 if all differences are zero, not a number if there are none.
    """
    if not len(differences):
        return float("nan")
    if not np.any(differences):
        return 1.0
    return float(stats.wilcoxon(differences).pvalue)


def correlation(x: Sequence[float], y: Sequence[float]) -> float:
    """Pearson's coefficient; not a number if one of both does not vary."""
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    return float(np.corrcoef(x, y)[0, 1])


def rank_correlation(x: Sequence[float], y: Sequence[float]) -> float:
    """Spearman's coefficient; not a number if one of both does not vary."""
    return correlation(stats.rankdata(x), stats.rankdata(y))


@dataclass(frozen=True)
class PowerLaw:
    """The law y ≈ factor · x₁^exponents[0] · x₂^exponents[1] and so on.

    Parameters
    ----------
    factor : float
    exponents : tuple of float
    r_squared : float
        Share of the variance of log y that the law explains.
    """

    factor: float
    exponents: tuple[float, ...]
    r_squared: float


def fit_power_law(y: Sequence[float], *x: Sequence[float]) -> PowerLaw:
    """Fit a power law by least squares on logarithms, as section 4.4 does."""
    if len(y) <= len(x):
        raise ValueError(f"{len(y)} points cannot fit a power law in {len(x)} variables.")
    target = np.log(y)
    design = np.column_stack([np.ones(len(y)), *(np.log(values) for values in x)])
    solution, *_ = np.linalg.lstsq(design, target, rcond=None)
    spread = float(np.sum((target - target.mean()) ** 2))
    left = float(np.sum((target - design @ solution) ** 2))
    return PowerLaw(
        float(np.exp(solution[0])),
        tuple(float(exponent) for exponent in solution[1:]),
        1.0 if spread == 0.0 else 1.0 - left / spread,
    )
