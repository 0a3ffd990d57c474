"""Multi-start modified global K-means (Ordin and Bagirov 2015)."""

from __future__ import annotations

from numbers import Real

import numpy as np

from evomeans.baselines.incremental import (
    ROUNDING,
    IncrementalBaseline,
    IncrementalEngine,
    largest,
    sample_reductions,
    settle,
)
from evomeans.engines.protocol import Refinement
from evomeans.estimators.solution import FloatArray

# For data of up to SMALL samples, and for more.
WIDE, NARROW = (0.3, 0.3, 3.0), (0.5, 0.8, 1.5)
SMALL = 5000
RANGES = {"gamma1": (0.0, 1.0), "gamma2": (0.0, 1.0), "gamma3": (1.0, np.inf)}


class MultiStartModifiedGlobalKMeans(IncrementalBaseline):
    """Multi-start modified global K-means: several places are tried for each new centre [1]_.

    As :class:`ModifiedGlobalKMeans` it solves for 1, 2, …, ``n_clusters`` clusters, one after the
    other, is not random, and finds places for the new centre by the auxiliary cluster function

        f̄(y) = Σⱼ wⱼ·min(δⱼ, ‖y − xⱼ‖²),

    the objective as a function of one more centre y alone, δⱼ being the squared distance of a
    sample to its present centre. It does not stop at one place:

    1. Of all samples, those remain at which a centre would lower the objective by at least
       ``gamma1`` times the most that any sample reaches.
    2. From each of them the centre moves to the mean of the samples it attracts. Those remain
       whose mean lowers the objective by at least ``gamma2`` times the most that any mean reaches.
    3. From these it moves on to local minima of f̄. Those remain, each once, whose value is at most
       ``gamma3`` times the lowest.
    4. K-means runs from each of them with all present centres. The best solution is kept.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters with which the path ends.

    gamma1, gamma2 : float in [0, 1] or "auto", default="auto"
        Parts of the largest reduction, for samples and for means; with lower ones more places are
        tried. "auto" is 0.3 and 0.3 for up to 5000 samples, and 0.5 and 0.8 for more.

    gamma3 : float, at least 1, or "auto", default="auto"
        Multiple of the lowest value of f̄; with a higher one more places are tried. "auto" is 3 for
        up to 5000 samples, and 1.5 for more.

    engine : {"auto", "cpu", "reference"}, default="auto"
        What holds the samples and runs K-means, see :class:`~evomeans.HGMeans`.

    n_jobs : int, default=None
        Threads to use; None means 1 and -1 all cores. The result does not depend on it.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The centres, in the precision of ``X`` and in lexicographic order.

    labels_ : ndarray of shape (n_samples,), dtype int32
        The cluster of each sample.

    inertia_ : float
        Sum of the squared distances of the samples to their closest centre, times their weights.

    path_ : tuple of PathStep
        The solutions for 1, 2, …, ``n_clusters`` clusters, with their ``inertia``,
        ``cluster_centers``, ``labels``, ``n_runs`` and ``seconds``. :meth:`at` makes a fitted
        estimator of any of them.

    inertias_ : ndarray of shape (n_clusters,)
        The inertias on the path; they never rise.

    n_iter_ : int
        Runs of K-means made on the whole path.

    n_features_in_ : int
        Number of features seen during :term:`fit`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features seen during :term:`fit`. Defined only when `X` has feature names that are
        all strings.

    See Also
    --------
    ModifiedGlobalKMeans : Tries one place for each centre, and takes less time.
    GlobalKMeans : With ``algorithm="full"`` it tries all samples.

    Notes
    -----
    With 0.3, 0.3 and 3, the gaps to HG-means on the small data sets of its paper are about those
    that it prints for this method (docs/paper.md).
    The narrower values for larger data are our choice: with them a step takes dozens of runs of
    K-means instead of hundreds.

    Interrupting :meth:`fit` raises KeyboardInterrupt after the current run of K-means and leaves
    the estimator as it was: half a path is no answer.

    References
    ----------
    .. [1] B. Ordin and A. M. Bagirov, "A heuristic algorithm for solving the minimum sum-of-squares
       clustering problems", Journal of Global Optimization 61, 341-361, 2015.
       `doi:10.1007/s10898-014-0171-5 <https://doi.org/10.1007/s10898-014-0171-5>`_

    Examples
    --------
    >>> import numpy as np
    >>> from evomeans.baselines import MultiStartModifiedGlobalKMeans
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> model = MultiStartModifiedGlobalKMeans(n_clusters=3).fit(X)
    >>> model.inertias_.tolist()
    [137.5, 16.0, 10.0]
    >>> [step.n_runs for step in model.path_]
    [1, 2, 4]
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        gamma1: float | str = "auto",
        gamma2: float | str = "auto",
        gamma3: float | str = "auto",
        engine: str = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.gamma1 = gamma1
        self.gamma2 = gamma2
        self.gamma3 = gamma3
        self.engine = engine
        self.n_jobs = n_jobs

    def _check_parameters(self) -> None:
        self._gammas(n_samples=1)

    def _gammas(self, n_samples: int) -> list[float]:
        """Return the three parameters as numbers."""
        defaults = WIDE if n_samples <= SMALL else NARROW
        return [
            default if is_auto(value := getattr(self, name)) else check_gamma(name, value)
            for name, default in zip(RANGES, defaults, strict=True)
        ]

    def _new_centers(
        self, engine: IncrementalEngine, solution: Refinement, squares: FloatArray
    ) -> FloatArray:
        gamma1, gamma2, gamma3 = self._gammas(engine.n_samples)
        samples = np.flatnonzero(squares)
        reductions = sample_reductions(engine, samples, squares, moved=False)
        samples = samples[largest(reductions, gamma1)]
        reductions = sample_reductions(engine, samples, squares, moved=True)
        samples = samples[largest(reductions, gamma2)]
        minima = settle(engine, engine.rows(samples), squares)
        # Not below zero by rounding: a multiple of the lowest has to be above it.
        values = np.maximum(solution.inertia - engine.reductions(minima, squares), 0.0)
        low: FloatArray = minima[values <= gamma3 * (1.0 + ROUNDING) * values.min()]
        return low


def is_auto(value: object) -> bool:
    """Whether a parameter is left to us; arrays are not compared with a text."""
    return isinstance(value, str) and value == "auto"


def check_gamma(name: str, value: object) -> float:
    """Return a parameter that is not "auto" as a float within its range."""
    low, high = RANGES[name]
    expected = f"a number in [{low:g}, {high:g}]" if high < np.inf else f"a number from {low:g} on"
    if isinstance(value, bool) or not isinstance(value, Real):
        kind = type(value).__name__
        raise TypeError(f"{name} must be {expected} or 'auto', got {value!r} of type {kind}.")
    number = float(value)
    if not low <= number <= high:
        raise ValueError(f"{name}={value} must be {expected}, or 'auto'.")
    return number
