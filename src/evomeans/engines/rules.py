"""Small rules that every engine follows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evomeans.typing import FloatArray, Labels

GOLDEN_RATIO = 0.6180339887498949

# From this many rows on, the CPU engine puts dense samples into buckets first.
MANY_ROWS = 2**18

# Lloyd's iterations cannot cycle in exact arithmetic. Rounding could make two labels change places
# for ever; nothing real ever took a tenth of this.
MAX_ITERATIONS = 20_000

# A mean of equal samples is off by a few units of 2⁻⁵³ of their size, squared.
SQUARED_ROUNDING = 2.0**-100
# A sample changes its cluster against K-means only if it costs less than this share of what it did,
# and that for distances off by so much per root of the features: means are rounded, and samples
# must not move back and forth for nothing.
WORTHWHILE = 1.0 - 1e-10
MEAN_ROUNDING = 2.0**-52
# In the frame no sample is longer than √d; a mean squared distance above this is no rounding.
CERTAINLY_NO_ROUNDING = 1e-20
# Repairs of one start, per cluster. A repair that does its job is not repeated; the limit only
# matters for samples so close to each other that rounding puts them into one place.
MAX_REPAIRS = 4

# Of solutions put together from the parts of two: what is less than this share of the better one
# is better. And how many clusters more or less than k may be passed through on the way.
BETTER = 1.0 - 1e-9
MOST_SPARE = 8


def split_mixture(alpha: float, quantile: float) -> tuple[bool, float]:
    """Return whether a sample is drawn by wᵢδᵢ instead of wᵢ, and the uniform number left for that.

    The mixture (1−α)·wᵢ/Σw + α·wᵢδᵢ/Σwδ is drawn part by part: the first needs no distances.
    """
    uniform_part = 1.0 - alpha
    if quantile < uniform_part:
        return False, quantile / uniform_part
    return True, (quantile - uniform_part) / alpha


def repair_draw(alpha: float, quantile: float, repair: int) -> tuple[float, float]:
    """Return α and the uniform number for the ``repair``-th (1, 2, …) empty cluster of a start.

    The uniform numbers advance by the golden ratio: each is uniform if the first is, and clusters
    repaired together land apart. The first repair draws from the mixture as the paper says; later
    ones only by distance, which surely fills the cluster, so repairs come to an end.
    """
    return (alpha if repair == 1 else 1.0), (quantile + repair * GOLDEN_RATIO) % 1.0


def sits_on_centers(squares: NDArray[np.float64], norms: NDArray[np.float64]) -> bool:
    """Whether every sample equals its centre up to the rounding of a mean.

    Then an empty cluster cannot be helped: there are fewer distinct samples than clusters. The
    ``norms`` are squared lengths of the samples, the ``squares`` their squared distances.
    """
    return bool(np.all(squares <= SQUARED_ROUNDING * norms))


def total_weights(labels: Labels, weights: FloatArray | None, n_clusters: int) -> FloatArray:
    """Return the total weight of the samples of each cluster; those labelled −1 are in none."""
    totals = np.bincount(labels + 1, weights, n_clusters + 1)
    return totals[1:].astype(np.float64)
