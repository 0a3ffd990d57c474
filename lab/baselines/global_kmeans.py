"""Global K-means (Likas, Vlassis and Verbeek 2003)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evomeans.engines.protocol import Refinement
from evomeans.estimators.parameters import shown
from evomeans.typing import FloatArray
from lab.baselines.engine import BaselineEngine
from lab.baselines.incremental import IncrementalBaseline, promising


@dataclass(eq=False, repr=False, kw_only=True)
class GlobalKMeans(IncrementalBaseline):
    """Global K-means: add one centre at a time, each starting at the best of all samples [1]_.

    The solution for k clusters is found by K-means from the solution for k − 1 clusters with one
    more centre on a sample. Nothing is random, and the whole path from one cluster to
    ``n_clusters`` is kept.

    Parameters
    ----------
    algorithm : {"fast", "full"}, default="fast"
        At which samples the new centre starts.

        - "fast": at one, the sample xᵢ with the largest reduction of the objective that is
          guaranteed before K-means has even run, Σⱼ wⱼ·max(δⱼ − ‖xᵢ − xⱼ‖², 0). Here δⱼ is the
          squared distance of a sample to its present centre. Ties go to the first sample.
        - "full": at each sample in turn, and the best solution is kept. Every step takes
          ``n_samples`` runs of K-means.

    See Also
    --------
    ModifiedGlobalKMeans : Starts each centre between the samples.
    MultiStartModifiedGlobalKMeans : Tries several places for each centre.

    Notes
    -----
    The published bound is for equal weights. With weights it is the same sum over weighted samples,
    which equals the sum over repeated samples. Results tabulated as GKM in the literature, except
    for small data, are those of the fast variant.

    References
    ----------
    .. [1] A. Likas, N. Vlassis and J. J. Verbeek, "The global k-means clustering algorithm",
       Pattern Recognition 36, 451-461, 2003.
       `doi:10.1016/S0031-3203(02)00060-2 <https://doi.org/10.1016/S0031-3203(02)00060-2>`_

    Examples
    --------
    >>> from lab.baselines import GlobalKMeans
    >>> X = [[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]]
    >>> model = GlobalKMeans(n_clusters=3).fit(X)
    >>> model.inertias_.tolist()
    [137.5, 16.0, 10.0]
    >>> model.at(2).labels_
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    """

    algorithm: str = "fast"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not isinstance(self.algorithm, str):
            raise TypeError(f"algorithm must be 'fast' or 'full', got {shown(self.algorithm)}.")
        if self.algorithm not in ("fast", "full"):
            raise ValueError(f"algorithm={self.algorithm!r} is unknown; it is 'fast' or 'full'.")

    def _new_centers(
        self, engine: BaselineEngine, solution: Refinement, squares: FloatArray
    ) -> FloatArray:
        # A sample on its centre would not be a new place.
        samples = np.flatnonzero(squares)
        if self.algorithm == "full":
            return np.unique(engine.rows(samples), axis=0)
        return engine.rows(promising(engine, samples, squares, moved=False)[:1])
