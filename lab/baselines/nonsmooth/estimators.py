"""DCClust, MS-DCA, DCD-Bundle and LMBM-Clust as estimators."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from evomeans.engines.protocol import Refinement
from evomeans.estimators.parameters import shown
from evomeans.typing import FloatArray
from lab.baselines.engine import BaselineEngine
from lab.baselines.gammas import check_gammas
from lab.baselines.incremental import ROUNDING
from lab.baselines.nonsmooth.candidates import (
    apart,
    far_candidates,
    farthest_candidates,
    lowest_apart,
    lowest_tenths,
    together,
)
from lab.baselines.nonsmooth.dc_bundle import DCBundleSettings, dc_bundle
from lab.baselines.nonsmooth.dca import DCASettings, dca
from lab.baselines.nonsmooth.diagonal_bundle import diagonal_bundle
from lab.baselines.nonsmooth.evaluation import Search
from lab.baselines.nonsmooth.frame import Conjugate, NonsmoothBaseline
from lab.baselines.nonsmooth.limited_memory_bundle import limited_memory_bundle
from lab.baselines.nonsmooth.variable_metric import BundleSettings

# Filters of the published programs by the number of samples: the limits, and what holds up to each
# of them and beyond the last.
GAMMA_LIMITS = 4999, 49_999, 99_999
GAMMAS = (0.1, 0.9), (0.9, 0.95), (0.95, 0.99), (0.975, 0.995)
GAMMA3_LIMITS = 1000, 5000, 9999, 50_000
GAMMAS3 = 2.0, 1.25, 1.1, 1.05, 1.025
LMBM_LIMITS = 1000, 10_000, 50_000, 100_000
LMBM_FILTERS = (500, 8, 9), (500, 3, 6), (500, 3, 4), (300, 1, 2), (200, 1, 2)

DUPLICATES = ("published", "described")


@dataclass(eq=False, repr=False, kw_only=True)
class DCBaseline(NonsmoothBaseline):
    """A nonsmooth method with the starts of DCClust.

    Parameters
    ----------
    gamma1, gamma2 : float in [0, 1] or "auto", default="auto"
        Fractions of the largest reduction of the objective that a sample, and the mean of the
        samples it attracts, must reach to be a start. "auto" is 0.1 and 0.9 below 5,000 samples,
        0.9 and 0.95 below 50,000, 0.95 and 0.99 below 100,000, and 0.975 and 0.995 for more.
    gamma3 : float, at least 1, or "auto", default="auto"
        Multiple of the lowest local minimum of the auxiliary function up to which minima are kept.
        "auto" is 2 for up to 1,000 samples, 1.25 for up to 5,000, 1.1 below 10,000, 1.05 for up to
        50,000, and 1.025 for more.
    """

    gamma1: float | str = "auto"
    gamma2: float | str = "auto"
    gamma3: float | str = "auto"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._gammas(n_samples=1)

    def _gammas(self, n_samples: int) -> list[float]:
        """Return the three parameters as numbers within their ranges."""
        first, second = GAMMAS[bisect_left(GAMMA_LIMITS, n_samples)]
        third = GAMMAS3[bisect_left(GAMMA3_LIMITS, n_samples)]
        return check_gammas(self, (first, second, third))

    def _starts(
        self,
        engine: BaselineEngine,
        solution: Refinement,
        squares: FloatArray,
        tolerance: float,
    ) -> FloatArray:
        gamma1, gamma2, _ = self._gammas(engine.n_samples)
        return far_candidates(engine, solution, squares, (gamma1, gamma2), tolerance)

    def _chosen(
        self, engine: BaselineEngine, minima: FloatArray, values: FloatArray, tolerance: float
    ) -> FloatArray:
        gamma3 = self._gammas(engine.n_samples)[2]
        values = np.maximum(values, 0.0)
        low = values <= gamma3 * (1.0 + ROUNDING) * values.min()
        return lowest_apart(minima[low], values[low], 0.1 * tolerance)


@dataclass(eq=False, repr=False, kw_only=True)
class DCClust(DCBaseline):
    """DCClust: add one centre at a time by descent along codifferentials [1]_.

    Like :class:`MultiStartModifiedGlobalKMeans`, it solves for 1, 2, …, ``n_clusters`` clusters and
    starts each new centre at several local minima of the auxiliary function. Local minima and
    solutions are found by an optimiser for differences of convex functions instead of K-means: it
    takes the shortest vector in a set of gradients around the present point (Wolfe's algorithm),
    and so can tell in which direction a kink of the objective falls.

    See Also
    --------
    MSDCA : The same starts, with the DC algorithm.
    DCDBundle : The same starts, with the diagonal bundle method.
    MultiStartModifiedGlobalKMeans : The same idea with K-means.

    Notes
    -----
    Parameters are those of the authors' program. Its tolerances are absolute; here they are
    relative to the scatter of the data. Each solution ends with K-means, which can only lower it.

    References
    ----------
    .. [1] A. M. Bagirov, S. Taheri and J. Ugon, "Nonsmooth DC programming approach to the minimum
       sum-of-squares clustering problems", Pattern Recognition 53, 12-24, 2016.
       `doi:10.1016/j.patcog.2015.11.011 <https://doi.org/10.1016/j.patcog.2015.11.011>`_

    Examples
    --------
    >>> from lab.baselines import DCClust
    >>> X = [[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]]
    >>> DCClust(n_clusters=3).fit(X).inertias_.tolist()
    [137.5, 16.0, 10.0]
    """

    # Beyond a millionth of the distances between samples and centres, K-means takes over.
    settings: ClassVar[DCBundleSettings] = DCBundleSettings(smallest_radius=1e-6)

    def _optimise(self, x: FloatArray, conjugate: Conjugate) -> Search:
        return dc_bundle(x, self.settings)


@dataclass(eq=False, repr=False, kw_only=True)
class MSDCA(DCBaseline):
    """MS-DCA: add one centre at a time by the DC algorithm from several starts [1]_.

    It has the starts of :class:`DCClust`. A step of the DC algorithm moves every centre towards the
    mean of its cluster by the cluster's share of all samples: K-means, damped. It never raises the
    objective, and takes many more steps than K-means.

    See Also
    --------
    DCClust : The same starts, with descent along codifferentials.
    MultiStartModifiedGlobalKMeans : The same idea with K-means.

    Notes
    -----
    No program of the authors is public. The starts are those of DCClust, from the same publication.
    Each solution ends with K-means, which can only lower it.

    References
    ----------
    .. [1] A. M. Bagirov, S. Taheri and J. Ugon, "Nonsmooth DC programming approach to the minimum
       sum-of-squares clustering problems", Pattern Recognition 53, 12-24, 2016.
       `doi:10.1016/j.patcog.2015.11.011 <https://doi.org/10.1016/j.patcog.2015.11.011>`_

    Examples
    --------
    >>> from lab.baselines import MSDCA
    >>> X = [[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]]
    >>> MSDCA(n_clusters=3).fit(X).inertias_.tolist()
    [137.5, 16.0, 10.0]
    """

    settings: ClassVar[DCASettings] = DCASettings()

    def _optimise(self, x: FloatArray, conjugate: Conjugate) -> Search:
        return dca(x, conjugate, self.settings)


@dataclass(eq=False, repr=False, kw_only=True)
class DCDBundle(DCBaseline):
    """DCD-Bundle: add one centre at a time by the diagonal bundle method [1]_.

    It has the starts of :class:`DCClust`. Its optimiser scales the variables by the curvature of
    the convex part of the objective, and steps are tried by a nonmonotone line search. For
    clustering, that makes every serious step one of :class:`MSDCA`, but longer.

    See Also
    --------
    MSDCA : The same directions without a line search.
    LMBMClust : The same authors' method for larger data.

    Notes
    -----
    Parameters are those of the authors' program. Its tolerances are absolute; here they are
    relative to the scatter of the data. Each solution ends with K-means, which can only lower it.

    References
    ----------
    .. [1] N. Karmitsa, A. M. Bagirov and S. Taheri, "New diagonal bundle method for clustering
       problems in large data sets", European Journal of Operational Research 263, 367-379, 2017.
       `doi:10.1016/j.ejor.2017.06.010 <https://doi.org/10.1016/j.ejor.2017.06.010>`_

    Examples
    --------
    >>> from lab.baselines import DCDBundle
    >>> X = [[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]]
    >>> DCDBundle(n_clusters=3).fit(X).inertias_.tolist()
    [137.5, 16.0, 10.0]
    """

    settings: ClassVar[BundleSettings] = BundleSettings()

    def _optimise(self, x: FloatArray, conjugate: Conjugate) -> Search:
        return diagonal_bundle(x, self.settings)


@dataclass(eq=False, repr=False, kw_only=True)
class LMBMClust(NonsmoothBaseline):
    """LMBM-Clust: add one centre at a time by the limited memory bundle method [1]_.

    It solves for 1, 2, …, ``n_clusters`` clusters, one after another. New centres start near the
    samples that are farthest from their centres: a few hundred samples are tried, so that a step
    takes time in proportion to the number of samples, not to its square.

    Parameters
    ----------
    duplicates : {"published", "described"}, default="published"
        Which starts are dropped.

        - "published": those that differ from the first, as in the authors' programs (versions 2.1
          and 3.0), where a comparison is the wrong way round. Nearly always one start is left.
        - "described": those that nearly equal another one, as the publication says.

    See Also
    --------
    DCDBundle : The same authors' method for smaller data.
    ModifiedGlobalKMeans : One start for each new centre, with K-means.

    Notes
    -----
    Parameters are those of the authors' program. Its tolerances are absolute; here they are
    relative to the scatter of the data. Each solution ends with K-means, which can only lower it.
    Sample weights count as repetitions when samples are chosen.

    References
    ----------
    .. [1] N. Karmitsa, A. M. Bagirov and S. Taheri, "Clustering in large data sets with the limited
       memory bundle method", Pattern Recognition 83, 245-259, 2018.
       `doi:10.1016/j.patcog.2018.05.028 <https://doi.org/10.1016/j.patcog.2018.05.028>`_

    Examples
    --------
    >>> from lab.baselines import LMBMClust
    >>> X = [[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]]
    >>> LMBMClust(n_clusters=3).fit(X).inertias_.tolist()
    [137.5, 16.0, 10.0]
    """

    duplicates: str = "published"

    settings: ClassVar[BundleSettings] = BundleSettings(max_iterations=500)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not isinstance(self.duplicates, str):
            expected = "'published' or 'described'"
            raise TypeError(f"duplicates must be {expected}, got {shown(self.duplicates)}.")
        if self.duplicates not in DUPLICATES:
            raise ValueError(
                f"duplicates={self.duplicates!r} is unknown; it is 'published' or 'described'."
            )

    def _starts(
        self,
        engine: BaselineEngine,
        solution: Refinement,
        squares: FloatArray,
        tolerance: float,
    ) -> FloatArray:
        most_samples, tenths, _ = self._filters(engine)
        points = farthest_candidates(engine, solution, squares, most_samples, tenths)
        keep = together if self.duplicates == "published" else apart
        return keep(points, 0.1 * tolerance)

    def _chosen(
        self, engine: BaselineEngine, minima: FloatArray, values: FloatArray, tolerance: float
    ) -> FloatArray:
        values = np.maximum(values, 0.0)
        low = lowest_tenths(minima, values, self._filters(engine)[2])
        return lowest_apart(minima[low], values[low], 0.1 * tolerance)

    def _filters(self, engine: BaselineEngine) -> tuple[int, int, int]:
        """Return how many samples are tried, and tenths of starts and of minima that are kept."""
        return LMBM_FILTERS[bisect_left(LMBM_LIMITS, engine.n_samples)]

    def _optimise(self, x: FloatArray, conjugate: Conjugate) -> Search:
        return limited_memory_bundle(x, self.settings)
