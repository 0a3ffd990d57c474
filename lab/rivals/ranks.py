"""Ranks of methods over many problems: Friedman's test and Nemenyi's critical difference [1]_.

References
----------
.. [1] J. Demšar, "Statistical comparisons of classifiers over multiple data sets", Journal of
   Machine Learning Research 7, 1-30, 2006.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from evomeans.typing import FloatArray


@dataclass(frozen=True)
class Ranking:
    """Average ranks, and how far apart two of them must be.

    Parameters
    ----------
    ranks : (k,) array
        The average rank of every method; 1 is best.
    critical_difference : float
        Methods whose ranks differ by less are not told apart.
    p_value : float
        Of Friedman's test that all methods are equally good, in the form of Iman and Davenport.
    setups : int
    """

    ranks: FloatArray
    critical_difference: float
    p_value: float
    setups: int

    def groups(self) -> list[tuple[float, float]]:
        """Return the lowest and highest rank of the largest groups that are not told apart.

        A group within another one is left out.
        """
        ordered = np.sort(self.ranks)
        found: list[tuple[float, float]] = []
        for low in ordered:
            high = ordered[ordered <= low + self.critical_difference].max()
            if high > low and (not found or high > found[-1][1]):
                found.append((float(low), float(high)))
        return found


def ranked(values: FloatArray, level: float = 0.05) -> Ranking:
    """Rank methods by their values on several problems; the lowest is best.

    Parameters
    ----------
    values : (setups, methods) array
        At least two of both. Equal values share their ranks; infinite ones come last.
    level : float
        Of significance.
    """
    n, k = values.shape
    if n < 2 or k < 2:
        raise ValueError(f"ranks need two problems and two methods at least, got {n} and {k}.")
    ranks = stats.rankdata(values, axis=1).mean(axis=0)
    # Friedman's statistic without a correction for ties, which makes it smaller, never larger.
    chi_squared = 12.0 * n / (k * (k + 1)) * (np.sum(ranks**2) - k * (k + 1) ** 2 / 4.0)
    rest = n * (k - 1) - chi_squared
    statistic = math.inf if rest <= 0.0 else (n - 1) * chi_squared / rest
    p_value = float(stats.f.sf(statistic, k - 1, (k - 1) * (n - 1)))
    quantile = stats.studentized_range.ppf(1.0 - level, k, math.inf) / math.sqrt(2.0)
    difference = float(quantile * math.sqrt(k * (k + 1) / (6.0 * n)))
    return Ranking(ranks, difference, p_value, n)
