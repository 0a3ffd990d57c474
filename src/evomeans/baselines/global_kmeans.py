"""Global K-means (Likas, Vlassis and Verbeek 2003)."""

from __future__ import annotations

import numpy as np

from evomeans.baselines.incremental import (
    IncrementalBaseline,
    IncrementalEngine,
    largest,
    sample_reductions,
)
from evomeans.engines.protocol import Refinement
from evomeans.estimators.solution import FloatArray

ALGORITHMS = ("fast", "full")


class GlobalKMeans(IncrementalBaseline):
    """Global K-means: one more centre at a time, each begun at the best of all samples [1]_.

    The solution for k clusters is sought by K-means from the solution for k − 1 with one more
    centre on a sample. There is nothing random in it, and the whole path from one cluster to
    ``n_clusters`` is kept.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters with which the path ends.

    algorithm : {"fast", "full"}, default="fast"
        Which samples the new centre is begun at.

        - "fast": one, the sample xᵢ with the largest reduction of the objective that is guaranteed
          before K-means has even run, Σⱼ wⱼ·max(δⱼ − ‖xᵢ − xⱼ‖², 0), δⱼ being the squared distance
          of a sample to its present centre. Samples with equal reductions: the first of them.
        - "full": each in turn, and the best solution is kept. That is ``n_samples`` runs of
          K-means for every step.

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
    ModifiedGlobalKMeans : Begins each centre between the samples.
    MultiStartModifiedGlobalKMeans : Tries several places for each centre.

    Notes
    -----
    The published bound is for equal weights; with weights it is the same sum over weighted samples,
    and equal to that over repeated ones. What the literature tabulates as GKM on data of some size
    is the fast variant.

    Interrupting :meth:`fit` raises KeyboardInterrupt after the current run of K-means and leaves
    the estimator as it was: half a path is no answer.

    References
    ----------
    .. [1] A. Likas, N. Vlassis and J. J. Verbeek, "The global k-means clustering algorithm",
       Pattern Recognition 36, 451-461, 2003.
       `doi:10.1016/S0031-3203(02)00060-2 <https://doi.org/10.1016/S0031-3203(02)00060-2>`_

    Examples
    --------
    >>> import numpy as np
    >>> from evomeans.baselines import GlobalKMeans
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> model = GlobalKMeans(n_clusters=3).fit(X)
    >>> model.inertias_.tolist()
    [137.5, 16.0, 10.0]
    >>> model.at(2).labels_
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        algorithm: str = "fast",
        engine: str = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.algorithm = algorithm
        self.engine = engine
        self.n_jobs = n_jobs

    def _check_parameters(self) -> None:
        if not isinstance(self.algorithm, str):
            kind = type(self.algorithm).__name__
            raise TypeError(f"algorithm must be 'fast' or 'full', got a value of type {kind}.")
        if self.algorithm not in ALGORITHMS:
            raise ValueError(f"algorithm={self.algorithm!r} is unknown; it is 'fast' or 'full'.")

    def _new_centers(
        self, engine: IncrementalEngine, solution: Refinement, squares: FloatArray
    ) -> FloatArray:
        # A sample on its centre would be no new place.
        samples = np.flatnonzero(squares)
        if self.algorithm == "full":
            return np.unique(engine.rows(samples), axis=0)
        reductions = sample_reductions(engine, samples, squares, moved=False)
        return engine.rows(samples[largest(reductions)[:1]])
