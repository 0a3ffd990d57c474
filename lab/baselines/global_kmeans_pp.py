"""Global k-means++ (Vardakas and Likas 2024)."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evomeans.engines.protocol import Refinement
from evomeans.estimators.parameters import check_int, check_random_source, generator_from
from evomeans.search.stopping import DeferredInterrupt
from evomeans.typing import FloatArray
from lab.baselines.base import Found
from lab.baselines.checks import check_choice
from lab.baselines.drawing import roulette, roulette_without_replacement, weighted
from lab.baselines.engine import BaselineEngine
from lab.baselines.incremental import IncrementalBaseline


@dataclass(eq=False, repr=False, kw_only=True)
class GlobalKMeansPP(IncrementalBaseline):
    """Global k-means++: add one centre at a time, at the best of a few samples drawn by D² [1]_.

    As in global K-means, the solution for k clusters is found by K-means from the solution for
    k − 1 clusters with one more centre on a sample. Only ``n_candidates`` samples are tried, which
    are drawn by their squared distance to the closest centre.

    Parameters
    ----------
    n_candidates : int, default=25
        Samples that are tried for each new centre (L).
    sampling : {"batch", "sequential"}, default="batch"
        Whether all candidates are drawn at once, or one after another, each by its squared distance
        also to the candidates before.
    random_state : int, RandomState, Generator or None, default=None
        An int makes the result reproducible.

    See Also
    --------
    GlobalKMeans : Tries all samples, or the one with the largest guaranteed reduction.
    MultiStartModifiedGlobalKMeans : Chooses several places by a function of the data.

    Notes
    -----
    Samples are drawn by their weight times the squared distance. K-means continues to its fixed
    point; the authors' program stops it earlier.

    References
    ----------
    .. [1] G. Vardakas and A. Likas, "Global k-means++: an effective relaxation of the global
       k-means clustering algorithm", Applied Intelligence 54, 8876-8888, 2024;
       `arXiv:2211.12271 <https://arxiv.org/abs/2211.12271>`_.

    Examples
    --------
    >>> from lab.baselines import GlobalKMeansPP
    >>> X = [[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]]
    >>> model = GlobalKMeansPP(n_clusters=3, random_state=0).fit(X)
    >>> model.inertias_.tolist()
    [137.5, 16.0, 10.0]
    """

    n_candidates: int = 25
    sampling: str = "batch"
    random_state: Any = None
    _rng: np.random.Generator = field(init=False)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_int("n_candidates", self.n_candidates, at_least=1)
        check_choice("sampling", self.sampling, ("batch", "sequential"))
        check_random_source(self.random_state)

    def _search(self, engine: BaselineEngine, interrupt: DeferredInterrupt) -> Found:
        # A copy has the generator, so that the estimator stays as it is.
        searching = copy.copy(self)
        searching._rng = generator_from(check_random_source(self.random_state))
        return super(GlobalKMeansPP, searching)._search(engine, interrupt)

    def _new_centers(
        self, engine: BaselineEngine, solution: Refinement, squares: FloatArray
    ) -> FloatArray:
        if self.sampling == "batch":
            chances = weighted(engine, squares)
            rows = roulette_without_replacement(chances, self.n_candidates, self._rng)
            return engine.rows(rows)
        return self._one_by_one(engine, squares)

    def _one_by_one(self, engine: BaselineEngine, squares: FloatArray) -> FloatArray:
        places = []
        for uniform in self._rng.random(self.n_candidates):
            if not squares.any():
                break
            row = roulette(weighted(engine, squares), np.array([uniform]))
            places.append(engine.rows(row)[0])
            away = engine.distances(places[-1][None, :])[:, 0] * engine.frame.scale
            squares = np.minimum(squares, away**2)
        return np.array(places)
