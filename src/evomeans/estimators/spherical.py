"""SphericalHGMeans: clusters of directions, compared by their cosine."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from evomeans.engines import Engine
from evomeans.estimators.parameters import Parameters
from evomeans.estimators.searching import Model
from evomeans.estimators.solution import FinalSolution, Task, canonical_solution, encode_centers
from evomeans.search import Individual
from evomeans.search.settings import MODELS
from evomeans.typing import FloatArray


@dataclass(eq=False, repr=False, kw_only=True)
class SphericalHGMeans(Model):
    """Spherical k-means: clusters by cosine similarity, with the search of HGMeans.

    Samples count by their direction alone. Centres have length one, and the objective is the sum of
    the cosine distances, 1 − cos, of the samples to the centres of their clusters [1]_. This is not
    k-means on normalised samples, whose centres are shorter than one.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The centres, of length one, in lexicographic order.

    labels_ : ndarray of shape (n_samples,), dtype int32
        The centre with the largest cosine for each sample; always equal to ``predict(X)``. Samples
        of zeros have no direction: they cost 1 anywhere, and get label 0.

    inertia_ : float
        Sum of the cosine distances of the samples to their centres, times their weights.

    References
    ----------
    .. [1] Dhillon, I. S. and Modha, D. S. (2001). "Concept decompositions for large sparse text
       data using clustering". Machine Learning 42, 143-175.

    Examples
    --------
    >>> import numpy as np
    >>> from evomeans import SphericalHGMeans
    >>> X = np.array([[1.0, 0.1], [5.0, 0.0], [0.0, 2.0], [0.2, 9.0]])
    >>> model = SphericalHGMeans(2, random_state=0).fit(X)
    >>> model.labels_
    array([1, 1, 0, 0], dtype=int32)
    >>> model.predict([[100.0, 3.0]])
    array([1], dtype=int32)
    """

    _is_euclidean: ClassVar[bool] = False
    _takes_sparse: ClassVar[bool] = True

    def _pose(
        self, X: Any, sample_weight: FloatArray | None, parameters: Parameters, **constraints: Any
    ) -> Task:
        self._refuse(X)
        from evomeans.engines.spherical import SphericalEngine, kernel_calls_for

        def settle(engine: Engine, best: Individual, is_final: bool) -> FinalSolution:
            return canonical_solution(engine, best.centers, X.dtype, is_final=is_final)

        return Task(
            partial(SphericalEngine, X, sample_weight, n_jobs=parameters.n_threads),
            settle,
            X,
            sample_weight,
            kernel_calls=partial(kernel_calls_for, X, parameters.n_clusters),
            strategy=MODELS,
            identity={"model": "spherical"},
        )

    def _fitted_engine(
        self, X: Any, sample_weight: FloatArray | None = None
    ) -> tuple[Engine, FloatArray]:
        """Return an engine that holds new samples, and the fitted centres."""
        from evomeans.engines.spherical import SphericalEngine

        self._refuse(X)
        return SphericalEngine(X, sample_weight), encode_centers(self._frame, self.cluster_centers_)
