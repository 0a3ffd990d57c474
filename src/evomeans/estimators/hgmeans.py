"""HGMeans: validate, choose an engine, search, and keep the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evomeans.estimators.parameters import Parameters, explaining_kmeans_parameters
from evomeans.estimators.searching import SearchingEstimator
from evomeans.estimators.solution import Task, plain_task
from evomeans.typing import FloatArray

__all__ = ["HGMeans"]


@explaining_kmeans_parameters
@dataclass(eq=False, repr=False, kw_only=True)
class HGMeans(SearchingEstimator):
    """K-means clustering by HG-means, a hybrid genetic search for the global minimum.

    The model is that of :class:`sklearn.cluster.KMeans`: ``n_clusters`` centres that minimise the
    sum of squared distances of the samples to their closest centre. HGMeans reaches a lower sum:
    instead of restarting from random centres, it keeps and recombines a population of clusterings
    [1]_.

    Parameters
    ----------
    strategy : {"deep", "paper"} or Strategy, default="deep"
        How to search; docs/background/how-it-works.md has pictures.

        - "deep": HG-means extended by k-means++ initialisation, Hartigan's moves of single samples,
          centre swaps, two further crossovers, and independent populations that follow each other
          until they agree. Which of them are used depends on the size and the distance of the
          clusters. The engines "gpu" and "dask" have initialisation, merging and populations;
          ``missing_operators_`` names the rest.
        - "paper": HG-means as published [1]_.
        - A :class:`~evomeans.search.Strategy` has operators of your own;
          examples/gallery/inside/own_crossover.py makes one. It is not stored in model files.

    subsample : int, "auto" or None, default="auto"
        Number of rows in the subsample with which each population begins when ``X`` is large. The
        best solutions of the subsample are refined on all rows, where the search continues.
        Outlying rows are over-represented in it. With strategy "deep", "auto" takes 300 rows for
        each cluster, or 5,000 if that is more, if ``X`` has at least eight times as many. None
        searches all rows from the beginning. docs/guide/large-data.md explains it.

    engine : {"auto", "cpu", "gpu", "dask", "reference"}, default="auto"
        The implementation that holds the samples and runs K-means.

        - "auto" is "dask" if ``X`` is a Dask array or
          dataframe, or a memory map that does not fit into memory, else "cpu". If ``X`` is in
          memory and has a single feature, it solves the problem exactly, without a search. The
          parameters of the search do not matter then, and ``stop_reason_`` is "proven_optimal",
          unless that is beyond the precision of float64.
        - "cpu": compiled, multi-threaded, dense and sparse. The first fit on a machine compiles
          for some seconds; later ones read the result from a cache.
        - "gpu": batches of solutions on an NVIDIA GPU, dense only; for large data with many
          clusters or features. It needs the extra ``gpu`` and is never chosen by "auto".
        - "dask": for data larger than memory, or on a cluster. Blocks of samples stay where Dask
          has them; it runs on the current client, else on Dask's local scheduler, with the threads
          that Dask has. Takes Dask arrays and dataframes, memory maps and whatever
          ``dask.array.from_array`` takes, dense only. ``labels_``, :meth:`predict` and
          :meth:`transform` are lazy Dask arrays. Needs the extra ``dask``.
        - "reference": a slow, easily readable NumPy implementation for verification; dense only.

    Attributes
    ----------
    certificate_ : Certificate
        Result of the last call to :meth:`certify`. Defined only after such a call.

    See Also
    --------
    sklearn.cluster.KMeans : Restarts of Lloyd's algorithm; faster, with a higher inertia. Leave
        its parameters other than ``n_clusters``, ``random_state`` and ``verbose`` out; an error
        says what takes their place.

    Notes
    -----
    **What to choose.** Population sizes are those of the paper. If the search takes too long, use
    :meth:`fast` or set ``max_time``. If ``n_rediscoveries_`` is 0, raise ``max_offspring``, and on
    hard problems ``n_iter_no_change`` with it. If several runs disagree, fit with
    ``warm_start=True`` and another ``random_state``, which continues from the last fit.

    **Interruption.** Ctrl-C ends the search with the best solution so far;
    docs/guide/checkpoints.md says how to continue it.

    **Outliers.** Samples that are 1e18 times smaller than an outlier in the same column cannot be
    summed up accurately (1e25 times, if there are only a thousand). If these are many and have a
    cluster of their own, its centre would be wrong, and the fit ends with a ValueError.

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

    subsample: int | str | None = "auto"
    engine: str = "auto"

    def _pose(
        self, X: Any, sample_weight: FloatArray | None, parameters: Parameters, **constraints: Any
    ) -> Task:
        return plain_task(X, sample_weight, parameters.n_clusters, parameters)
