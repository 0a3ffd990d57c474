"""HGMeans: validate, choose an engine, search, and keep the answer."""

from __future__ import annotations

import os
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

from evomeans.estimators.callbacks import with_callbacks
from evomeans.estimators.parameters import (
    DEFAULT_CERTAINTY,
    DEFAULT_MAX_OFFSPRING,
    Parameters,
    explaining_kmeans_parameters,
)
from evomeans.estimators.searching import SearchingEstimator
from evomeans.estimators.solution import Task, is_line, plain_task
from evomeans.search import Strategy
from evomeans.typing import FloatArray

__all__ = ["HGMeans"]


@explaining_kmeans_parameters
@dataclass(eq=False, repr=False)
class HGMeans(SearchingEstimator):
    """K-means clustering by HG-means, a hybrid genetic search for the global minimum.

    The model is that of :class:`sklearn.cluster.KMeans`: ``n_clusters`` centres that minimise the
    sum of squared distances of the samples to their closest centre. HGMeans reaches a lower sum:
    instead of restarting from random centres, it keeps and recombines a population of clusterings
    [1]_.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.

    strategy : {"deep", "paper"} or Strategy, default="deep"
        How to search; docs/background/how-it-works.md has pictures.

        - "deep": HG-means extended by k-means++ initialisation, Hartigan's moves of single samples,
          centre swaps, two further crossovers, and independent populations that follow each other
          until they agree. Which of them are used depends on the size and the distance of the
          clusters. The engines "gpu" and "dask" have initialisation, merging and populations;
          ``missing_abilities_`` names the rest.
        - "paper": HG-means as published [1]_.
        - A :class:`~evomeans.search.Strategy` has operators of your own;
          examples/gallery/inside/own_crossover.py makes one. It is not stored in model files.

    min_population : int, default=10
        Solutions that survive when the population is cut down (Π_min in the paper).

    max_population : int, default=20
        Solutions with which a population begins, and the size beyond which it is cut down (Π_max).
        Larger populations explore more but converge more slowly.

    max_offspring : int, default=5000
        Stop after this many offspring (N₂). Each is one run of K-means.

    n_iter_no_change : int, default=None
        Number of offspring without an improvement after which a population has converged (N₁).
        With "paper", 500 by default, and the search ends. With "deep", 150 by default, or three
        times ``n_clusters`` if that is more, and less if the last improvement came early. A new
        population is then started, until independent populations agree.

    max_time : float, default=None
        Stop after this many seconds, counted from the call of ``fit`` and including the labels of
        the samples, but not compilation. A fit takes at least as long as labelling every sample
        once. The result then depends on the speed of the machine.

    target_inertia : float, default=None
        Stop as soon as a solution is at least this good.

    certainty : float, default=0.95
        Stop as soon as ``certainty_`` reaches this value. With 0, the search stops as soon as two
        independent starts agree; with 1, only at another limit, or when 50 starts agree. "paper"
        does not use it.

    subsample : int, "auto" or None, default="auto"
        Number of rows in the subsample with which each population begins when ``X`` is large. The
        best solutions of the subsample are refined on all rows, where the search continues.
        Outlying rows are over-represented in it. With strategy "deep", "auto" takes 300 rows for
        each cluster, or 5,000 if that is more, if ``X`` has at least eight times as many. None
        searches all rows from the beginning. docs/guide/large-data.md explains it.

    init : array-like of shape (n_clusters, n_features) or \
            (n_solutions, n_clusters, n_features), default=None
        Centres, or several sets of centres, that join the first population. The rest of the
        population is random, and the result is never worse than ``init``.

    engine : {"auto", "cpu", "gpu", "dask", "reference"}, default="auto"
        The implementation that holds the samples and runs K-means.

        - "auto" is "dask" if ``X`` is a Dask array or
          dataframe, or a memory map that does not fit into memory, else "cpu". If ``X`` is in
          memory and has a single feature, it solves the problem exactly, without a search. The
          parameters of the search do not matter then, and ``stop_reason_`` is "proven_optimal",
          unless that is beyond the precision of float64.
        - "cpu": compiled, multi-threaded, dense and sparse. The first fit on a machine compiles
          for some seconds; later ones read the result from a cache.
        - "gpu": batches of 32 solutions on an NVIDIA GPU, dense only; for large data with many
          clusters or features. It needs the extra ``gpu`` and is never chosen by "auto". Without
          PyTorch or a GPU the fit fails and says what is missing.
        - "dask": for data larger than memory, or on a cluster. Blocks of samples stay where Dask
          has them; it runs on the current client, else on Dask's local scheduler. Takes Dask
          arrays and dataframes, memory maps and whatever ``dask.array.from_array`` takes, dense
          only. ``labels_``, :meth:`predict` and :meth:`transform` are lazy Dask arrays. It makes
          25 offspring at a time, or 5 if ``X`` has more than 2²⁸ values. Needs the extra ``dask``.
        - "reference": a slow, easily readable NumPy implementation for verification; dense only.

    n_jobs : int, default=None
        Number of threads. None uses as many as KMeans, respecting ``OMP_NUM_THREADS``, cgroup
        limits and joblib workers; -1 uses all cores. The result does not depend on it, to the last
        bit. The engine "dask" uses the threads that Dask has.

    random_state : int, RandomState, Generator or None, default=None
        An int makes the result reproducible. None draws from NumPy's global random state; an
        instance is advanced by every fit.

    warm_start : bool, default=False
        Begin with ``population_`` of the previous fit, together with ``init`` if it is given.
        ``n_clusters`` and the number of features must be those of that fit; the samples may be
        others.

    checkpoint : path-like, default=None
        A file in which the search keeps its state: every half minute, at its end, and when it is
        interrupted. If the file exists, :meth:`fit` continues from it, and ends with the same bits
        as if it had never stopped. A search that had already ended returns at once, unless
        ``max_offspring``, ``max_time``, ``target_inertia`` or, with "paper", ``n_iter_no_change``
        now allow more. A file of other samples or other parameters is refused with a
        :class:`~evomeans.CheckpointError`.

    observers : callable or list of callables, default=None
        Each is called with the :class:`~evomeans.OffspringRecord` of every solution made. One that
        returns ``True`` ends the search.

    verbose : int, default=0
        1 prints a line now and then, 2 one for each improvement as well, 3 one for each
        offspring. The last line says how the fit ended.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The centres, in the precision of ``X`` and in lexicographic order, so equal clusterings
        have equal labels. If there are fewer distinct samples than clusters, centres
        without samples come last.

    labels_ : ndarray of shape (n_samples,), dtype int32
        The cluster of each sample, always equal to ``predict(X)``. A lazy Dask array if ``X`` is a
        Dask collection.

    inertia_ : float
        Sum of the squared distances of the samples to their closest centre, times their weights.

    n_iter_ : int
        Number of offspring made. The initial members of populations do not count.

    n_rediscoveries_ : int
        Number of additional independent starts that reached the best inertia, to within 0.001 %.
        A start is a population, or a founder if several founders of one population reached it by
        themselves. At least 1 if ``stop_reason_`` is "agreement".

    certainty_ : float
        Estimated probability that no clustering within reach of the search is better by more than
        0.01 %, computed from how many populations found the best one, and how many did not. It is
        1 if the clustering is proven to be optimal, also by :meth:`certify`, and not a number with
        strategy "paper". docs/guide/how-sure.md says how often it was right.

    levels_ : tuple of int
        Number of rows, followed by the sizes of the subsamples with which populations began, if
        any.

    missing_abilities_ : tuple of str
        Operators of the strategy that the engine does not have, such as "swaps". Empty if it has
        all of them.

    history_ : History
        One :class:`~evomeans.OffspringRecord` for each solution made; ``history_.to_csv(path)``
        saves them, and ``history_.to_pandas()`` returns a data frame. Empty if the answer was
        computed exactly.

    stop_reason_ : StopReason
        Why the search ended, a str: "agreement" (of independent starts), "no_improvement"
        (with "paper"), "max_offspring", "max_time", "target_inertia", "observer", "interrupted",
        "proven_optimal" (up to a millionth of the inertia), or "precision" if samples or weights
        span so many orders of magnitude that nothing better can be told from rounding.

    population_ : tuple of Individual
        The last population and the best solution, sorted by inertia: other good clusterings to
        look at. Their ``centers`` are float64, in units of the data and in no
        particular order.

    certificate_ : Certificate
        Result of the last call to :meth:`certify`. Defined only after such a call.

    n_features_in_ : int
        Number of features seen during ``fit``.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features seen during ``fit``. Defined only when `X` has feature names that are
        all strings.

    See Also
    --------
    sklearn.cluster.KMeans : Restarts of Lloyd's algorithm; faster, with a higher inertia.

    Notes
    -----
    **What to choose.** Population sizes are those of the paper. If the search takes too long, use
    :meth:`fast` or set ``max_time``. If ``n_rediscoveries_`` is 0, raise ``max_offspring``, and on
    hard problems ``n_iter_no_change`` with it. If several runs disagree, fit with
    ``warm_start=True`` and another ``random_state``, which continues from the last fit.

    **Coming from KMeans.** Methods, fitted attributes, ``n_clusters``, ``random_state`` and
    ``verbose`` are used in the same way. The other parameters:

    ============= ================================================================================
    KMeans        HGMeans
    ============= ================================================================================
    ``init``      Leave it out, or pass an array of centres. Half of the founders begin with
                  k-means++ with the default strategy.
    ``n_init``    Leave it out. A population takes the place of restarts; to shorten the search,
                  use :meth:`fast` or ``max_time``.
    ``max_iter``  Leave it out. Every run of K-means continues until nothing changes.
                  ``max_offspring`` counts runs, not steps.
    ``tol``       Leave it out, for the same reason.
    ``copy_x``    Leave it out. ``X`` is never changed.
    ``algorithm`` Leave it out. All engines compute exact K-means.
    ============= ================================================================================

    **Interruption.** Ctrl-C during :meth:`fit` ends what the search is doing, except a crossover of
    thousands of centres. The samples are labelled once, the estimator is fitted with the best
    solution so far, and a RuntimeWarning says so. A second Ctrl-C raises KeyboardInterrupt as
    usual. With a ``checkpoint``, the next fit continues the search.

    **Outliers.** Samples that are 1e18 times smaller than an outlier in the same column cannot be
    summed up accurately (1e25 times, if there are only a thousand). If these are many and have a
    cluster of their own, its centre would be wrong, and the fit ends with a ValueError.

    **Callbacks.** scikit-learn 1.9 and later have callbacks such as
    :class:`sklearn.callback.ProgressBar`; ``set_callbacks`` sets them. Each solution made is a
    sub-task of the fit, or several in a row where there may be more than 2000.

    **Empty clusters.** All clusters own samples whenever ``X`` has at least ``n_clusters`` distinct
    rows of positive weight. Otherwise a ConvergenceWarning is issued.

    References
    ----------
    .. [1] D. Gribel and T. Vidal, "HG-means: A scalable hybrid genetic algorithm for minimum
       sum-of-squares clustering", Pattern Recognition 88, 569-583, 2019.
       `doi:10.1016/j.patcog.2018.12.022 <https://doi.org/10.1016/j.patcog.2018.12.022>`_

    Examples
    --------
    >>> import numpy as np
    >>> from evomeans import HGMeans
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> model = HGMeans(n_clusters=2, random_state=0).fit(X)
    >>> model.labels_
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    >>> model.cluster_centers_
    array([[ 1.,  2.],
           [10.,  2.]])
    >>> model.inertia_
    16.0
    >>> str(model.stop_reason_), model.n_iter_, model.n_rediscoveries_
    ('agreement', 50, 19)
    >>> model.predict([[0, 0], [12, 3]])
    array([0, 1], dtype=int32)

    One feature is solved to proven optimality:

    >>> model = HGMeans(n_clusters=2).fit([[0.0], [1.0], [5.0], [6.0], [7.0]])
    >>> model.cluster_centers_.ravel(), str(model.stop_reason_)
    (array([0.5, 6. ]), 'proven_optimal')
    """

    n_clusters: int = 8
    _: KW_ONLY
    strategy: str | Strategy = "deep"
    min_population: int = 10
    max_population: int = 20
    max_offspring: int = DEFAULT_MAX_OFFSPRING
    n_iter_no_change: int | None = None
    max_time: float | None = None
    target_inertia: float | None = None
    certainty: float = DEFAULT_CERTAINTY
    subsample: int | str | None = "auto"
    init: Any = None
    engine: str = "auto"
    n_jobs: int | None = None
    random_state: Any = None
    warm_start: bool = False
    checkpoint: str | os.PathLike[str] | None = None
    observers: Any = None
    verbose: int = 0

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the clusters of ``X``.

        Parameters
        ----------
        X : {array-like, sparse matrix, Dask array or dataframe} of shape (n_samples, n_features)
            The samples. float32 and float64 are kept as they are, all else becomes float64. Sparse
            matrices become CSR and are never made dense. Tensors of PyTorch, on any device, are
            read like arrays; what is returned are NumPy arrays. What Dask holds stays with Dask.
        y : Ignored
            Not used, present here for API consistency by convention.
        sample_weight : float or array-like of shape (n_samples,), default=None
            The weight of each sample: a weight of 2 counts like two equal samples. None means equal
            weights.

        Returns
        -------
        self : HGMeans
            The fitted estimator.
        """
        return self._fit(X, y, sample_weight)

    def _pose(
        self, X: Any, sample_weight: FloatArray | None, parameters: Parameters, **constraints: Any
    ) -> Task:
        """K-means on the samples as they are; one feature is solved exactly."""
        on_line = is_line(self.engine, X)
        return plain_task(X, sample_weight, parameters.n_clusters, parameters, is_line=on_line)
