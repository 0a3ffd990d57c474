"""Modified global K-means (Bagirov 2008)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evomeans.baselines.engine import BaselineEngine
from evomeans.baselines.incremental import IncrementalBaseline, promising, settle
from evomeans.engines.protocol import FloatArray, Refinement


@dataclass(eq=False, repr=False, kw_only=True)
class ModifiedGlobalKMeans(IncrementalBaseline):
    """Modified global K-means: an auxiliary function chooses where each centre starts [1]_.

    Like :class:`GlobalKMeans`, it solves for 1, 2, …, ``n_clusters`` clusters, one after another,
    and is not random. The new centre starts at a minimum of the auxiliary cluster function

        f̄(y) = Σⱼ wⱼ·min(δⱼ, ‖y − xⱼ‖²),

    the objective as a function of one more centre y alone, where δⱼ is the squared distance of a
    sample to its present centre. To find the minimum, the centre is put onto every sample in turn
    and moves to the mean of the samples that it attracts there. From the lowest of these means it
    moves further until no sample comes or goes. K-means then starts from all centres.

    See Also
    --------
    GlobalKMeans : Starts each centre on a sample.
    MultiStartModifiedGlobalKMeans : Tries several places for each centre.

    Notes
    -----
    The publication also stops when the objective falls by less than a given fraction of its value
    for one cluster. This can be read from ``inertias_``.

    References
    ----------
    .. [1] A. M. Bagirov, "Modified global k-means algorithm for minimum sum-of-squares clustering
       problems", Pattern Recognition 41, 3192-3199, 2008.
       `doi:10.1016/j.patcog.2008.04.004 <https://doi.org/10.1016/j.patcog.2008.04.004>`_

    Examples
    --------
    >>> from evomeans.baselines import ModifiedGlobalKMeans
    >>> X = [[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]]
    >>> model = ModifiedGlobalKMeans(n_clusters=3).fit(X)
    >>> model.inertias_.tolist()
    [137.5, 16.0, 10.0]
    >>> model.at(2).predict([[0, 0], [12, 3]])
    array([0, 1], dtype=int32)
    """

    def _new_centers(
        self, engine: BaselineEngine, solution: Refinement, squares: FloatArray
    ) -> FloatArray:
        best = promising(engine, np.flatnonzero(squares), squares, moved=True)[:1]
        return settle(engine, engine.rows(best), squares)
