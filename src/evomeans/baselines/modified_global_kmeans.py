"""Modified global K-means (Bagirov 2008)."""

from __future__ import annotations

import numpy as np

from evomeans.baselines.incremental import (
    IncrementalBaseline,
    IncrementalEngine,
    largest,
    sample_reductions,
    settle,
)
from evomeans.engines.protocol import Refinement
from evomeans.estimators.solution import FloatArray


class ModifiedGlobalKMeans(IncrementalBaseline):
    """Modified global K-means: an auxiliary function chooses where each centre begins [1]_.

    As :class:`GlobalKMeans` it solves for 1, 2, …, ``n_clusters`` clusters, one after the other,
    and is not random. The new centre begins at a minimum of the auxiliary cluster function

        f̄(y) = Σⱼ wⱼ·min(δⱼ, ‖y − xⱼ‖²),

    the objective as a function of one more centre y alone, δⱼ being the squared distance of a
    sample to its present centre. The minimum is sought from every sample: the centre moves from
    there to the mean of the samples that it attracts. From the lowest of these means it moves on,
    until no sample comes or goes. K-means then starts from all centres.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters with which the path ends. The publication also stops when the
        objective falls by less than a given part of that with one cluster; ``inertias_`` tells.

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
        Runs of K-means made on the whole path, one for each number of clusters.

    n_features_in_ : int
        Number of features seen during :term:`fit`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features seen during :term:`fit`. Defined only when `X` has feature names that are
        all strings.

    See Also
    --------
    GlobalKMeans : Begins each centre on a sample.
    MultiStartModifiedGlobalKMeans : Tries several places for each centre.

    Notes
    -----
    Interrupting :meth:`fit` raises KeyboardInterrupt between two steps and leaves the estimator as
    it was: half a path is no answer.

    References
    ----------
    .. [1] A. M. Bagirov, "Modified global k-means algorithm for minimum sum-of-squares clustering
       problems", Pattern Recognition 41, 3192-3199, 2008.
       `doi:10.1016/j.patcog.2008.04.004 <https://doi.org/10.1016/j.patcog.2008.04.004>`_

    Examples
    --------
    >>> import numpy as np
    >>> from evomeans.baselines import ModifiedGlobalKMeans
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> model = ModifiedGlobalKMeans(n_clusters=3).fit(X)
    >>> model.inertias_.tolist()
    [137.5, 16.0, 10.0]
    >>> model.at(2).predict([[0, 0], [12, 3]])
    array([0, 1], dtype=int32)
    """

    def __init__(
        self, n_clusters: int = 8, *, engine: str = "auto", n_jobs: int | None = None
    ) -> None:
        self.n_clusters = n_clusters
        self.engine = engine
        self.n_jobs = n_jobs

    def _check_parameters(self) -> None:
        """There are none of its own."""

    def _new_centers(
        self, engine: IncrementalEngine, solution: Refinement, squares: FloatArray
    ) -> FloatArray:
        samples = np.flatnonzero(squares)
        reductions = sample_reductions(engine, samples, squares, moved=True)
        return settle(engine, engine.rows(samples[largest(reductions)[:1]]), squares)
