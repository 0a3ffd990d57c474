"""The mixtures of spherical Gaussians of section 4.5: drawn by our own code, as the paper says.

The paper's text leaves three things open. They are read so that its Tables 8 and 9 come out.

*Integers or reals.* "μᵢ and σᵢ² are uniformly selected in [0,5] and [1,10]" holds for both, but the
spread of the means is 35/12 for the integers 0..5 and 25/12 for reals, and only the integers give
the overlap that Table 9 shows. Adjusted Rand index of the K-means solution that starts at the true
means (20,000 samples, range over two or three mixtures), beside what the paper prints for HG-means:

=======  ==========  ==========  ==========  ==========  ==========  ==========
m, d     20, 20      50, 20      100, 20     50, 50      100, 50     200, 50
=======  ==========  ==========  ==========  ==========  ==========  ==========
paper    0.72        0.59        0.49        0.94        0.91        0.87
integer  0.64-0.73   0.60-0.63   0.46-0.51   0.93-0.96   0.91-0.93   0.87-0.88
real     0.52-0.64   0.40-0.50   0.34-0.42   0.87-0.89   0.78-0.82   0.73-0.75
=======  ==========  ==========  ==========  ==========  ==========  ==========

So does what a misplaced centre costs. In many dimensions a run that merges clusters pays about the
spread v of the means per orphan: gap ≈ CI·v/(m·mean σ²). The gaps and centroid indices that the
paper prints for one run of K-means with d=500 and m = 20, 50, 100 give v = 2.8, 3.0 and 3.0; ours
are 2.9, 2.8 and 2.7 with integers, and 2.0 with reals. Integers are the default therefore, and
``values="real"`` gives the other reading.

*Sizes of the groups.* Each sample picks its component by itself, as the formula 1/m Σ N(μᵢ, σᵢ²I)
says. Groups of exactly n/m samples would make objective/(n − m)/d a multiple of 1/20 for m=20,
d=500, up to a deviation of 0.002, but the printed objective gives 5.016. With independent picks the
deviation is 0.013.

*The test of separation.* A pair is c-separated if ‖μᵢ − μⱼ‖ ≥ c·sqrt(d·max(σᵢ², σⱼ²)) (Dasgupta
1999, for spherical Gaussians), a mixture if all its pairs are. Both readings can meet the demands
as printed: with integers, and with reals for d ≥ 50, the first draw nearly always does; with reals
and d=20 it takes 3, 4, 9 and 34 draws on average for m = 20, 50, 100 and 200. No draw was ever
1-separated.

The printed objectives, 4.8 to 6.0 per sample and dimension, fit both readings: the mean of the
variances is 5.5 either way, and overlap lowers it for d=20.

References
----------
S. Dasgupta, "Learning mixtures of Gaussians", FOCS 1999, 634-644.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist

from evomeans.typing import FloatArray

Values = Literal["integer", "real"]

N_SAMPLES = 50_000
SETUPS: tuple[tuple[int, int], ...] = tuple(product((20, 50, 100, 200), (20, 50, 100, 200, 500)))
"""The 20 pairs (m, d) of Tables 8 and 9, in their order."""

LARGEST_MEAN = 5
SMALLEST_VARIANCE, LARGEST_VARIANCE = 1, 10
HALF_SEPARATED_SHARE = 0.99
MAX_DRAWS = 1000
# Rows that are scaled and shifted at a time, so that no second array of n × d is needed.
ROWS_AT_ONCE = 4096
# Of overlapping mixtures: Gaussians, and how far their means are from the origin, in deviations.
N_OVERLAPPING, SPREAD = 1024, 0.2


@dataclass(frozen=True)
class Separation:
    """How far the Gaussians of a mixture are apart (Dasgupta 1999).

    Parameters
    ----------
    weakest : float
        The largest c for which the whole mixture is c-separated.
    half_separated, one_separated : float
        Share of the pairs that are ½-separated and 1-separated.
    """

    weakest: float
    half_separated: float
    one_separated: float

    @property
    def is_wanted(self) -> bool:
        """Not 1-separated, and at least 99 % of the pairs are ½-separated (section 4.5)."""
        return self.one_separated < 1.0 and self.half_separated >= HALF_SEPARATED_SHARE


@dataclass(frozen=True, eq=False)
class Mixture:
    """Samples of a mixture of spherical Gaussians, and the truth about them.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    labels : ndarray of shape (n,)
        Of the component that each sample was drawn from.
    means : ndarray of shape (m, d)
    variances : ndarray of shape (m,)
    separation : Separation
    n_draws : int
        How often means and variances were drawn until the separation was as wanted.
    """

    X: FloatArray
    labels: NDArray[np.int64]
    means: FloatArray
    variances: FloatArray
    separation: Separation
    n_draws: int


def gaussian_mixture(
    n: int,
    m: int,
    d: int,
    seed: int,
    *,
    values: Values = "integer",
    max_draws: int = MAX_DRAWS,
) -> Mixture:
    """Draw a mixture as section 4.5 describes it, and samples from it.

    Means and variances are drawn again until the mixture is not 1-separated and at least 99 % of
    its pairs are ½-separated.

    Parameters
    ----------
    n, m, d : int
        Numbers of samples, of Gaussians (at least 2) and of dimensions.
    seed : int
        The same seed gives the same mixture for every n, and the samples of a smaller n are the
        first ones of a larger n. Mixtures of other m or d are independent of it.
    values : {"integer", "real"}
        Whether means and variances are whole numbers; see the text of the module.
    max_draws : int
        More draws of means and variances are not tried.

    Returns
    -------
    mixture : Mixture

    Raises
    ------
    RuntimeError
        If no draw has the separation.

    Examples
    --------
    >>> mixture = gaussian_mixture(1000, m=20, d=50, seed=0)
    >>> mixture.X.shape, mixture.means.shape
    ((1000, 50), (20, 50))
    >>> mixture.separation.half_separated >= 0.99
    True
    """
    _check(n, m, d, seed, values, max_draws)
    streams = np.random.SeedSequence([seed, m, d]).spawn(3)
    of_parameters, of_labels, of_noise = map(np.random.default_rng, streams)
    means, variances, apart, n_draws = _parameters(m, d, values, max_draws, of_parameters)
    labels = of_labels.integers(m, size=n)
    X = of_noise.standard_normal((n, d))
    deviations = np.sqrt(variances)
    for begin in range(0, n, ROWS_AT_ONCE):
        own = labels[begin : begin + ROWS_AT_ONCE]
        rows = X[begin : begin + ROWS_AT_ONCE]
        rows *= deviations[own, None]
        rows += means[own]
    return Mixture(X, labels, means, variances, apart, n_draws)


def separation(means: FloatArray, variances: FloatArray) -> Separation:
    """Measure a mixture: c = ‖μᵢ − μⱼ‖ / sqrt(d·max(σᵢ², σⱼ²)) of all pairs."""
    m, d = means.shape
    first, second = np.triu_indices(m, 1)
    larger = np.maximum(variances[first], variances[second])
    c = pdist(means) / np.sqrt(d * larger)
    return Separation(
        weakest=float(c.min()),
        half_separated=float(np.mean(c >= 0.5)),
        one_separated=float(np.mean(c >= 1.0)),
    )


def _parameters(
    m: int, d: int, values: Values, max_draws: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, Separation, int]:
    """Draw means and variances until they are as wanted; also return the number of draws."""
    closest = 0.0
    for draw in range(1, max_draws + 1):
        if values == "integer":
            means = rng.integers(0, LARGEST_MEAN, (m, d), endpoint=True).astype(np.float64)
            variances = rng.integers(SMALLEST_VARIANCE, LARGEST_VARIANCE, m, endpoint=True).astype(
                np.float64
            )
        else:
            means = rng.uniform(0, LARGEST_MEAN, (m, d))
            variances = rng.uniform(SMALLEST_VARIANCE, LARGEST_VARIANCE, m)
        apart = separation(means, variances)
        if apart.is_wanted:
            return means, variances, apart, draw
        closest = max(closest, apart.half_separated)
    raise RuntimeError(
        f"None of max_draws={max_draws} draws of m={m} Gaussians in d={d} dimensions had "
        f"{HALF_SEPARATED_SHARE:.0%} of its pairs ½-separated without being 1-separated; "
        f"the highest share was {closest:.2%}. More dimensions bring more separation."
    )


def _check(n: int, m: int, d: int, seed: int, values: str, max_draws: int) -> None:
    for name, value, least in (
        ("n", n, 1),
        ("m", m, 2),
        ("d", d, 1),
        ("seed", seed, 0),
        ("max_draws", max_draws, 1),
    ):
        if value < least:
            raise ValueError(f"{name}={value} should be >= {least}.")
    if values not in ("integer", "real"):
        raise ValueError(f"values={values!r} should be 'integer' or 'real'.")


def overlapping_mixture(n: int, d: int) -> NDArray[np.float32]:
    """Draw samples of 1,024 Gaussians of equal variance that overlap much, for codebooks."""
    rng = np.random.default_rng(0)
    means = SPREAD * rng.standard_normal((N_OVERLAPPING, d), dtype=np.float32)
    X = rng.standard_normal((n, d), dtype=np.float32)
    X += means[rng.integers(N_OVERLAPPING, size=n)]
    return X
