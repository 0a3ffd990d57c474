"""Models other than plain k-means: what they share, directions, and outliers that are left out."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from evomeans.engines import Engine, is_dask
from evomeans.engines.frame import is_sparse
from evomeans.estimators.parameters import Parameters, check_thread_count, shown
from evomeans.estimators.searching import SearchingEstimator
from evomeans.estimators.solution import (
    FinalSolution,
    Task,
    canonical_solution,
    encode_centers,
    lexicographic,
)
from evomeans.estimators.validation import Features
from evomeans.search import Individual
from evomeans.search.settings import MODELS
from evomeans.typing import FloatArray


@dataclass(eq=False, repr=False, kw_only=True)
class Model(SearchingEstimator):
    """A model other than plain k-means, with the search of HGMeans."""

    # Its objective is not the inertia that KMeans minimises, or not over all clusterings.
    _is_plain_kmeans: ClassVar[bool] = False
    _takes_sparse: ClassVar[bool] = False
    _predicts_closest: ClassVar[bool] = False
    # Of HGMeans, these are parameters.
    engine = "auto"
    subsample = None

    def _check_data(self, X: Any, sample_weight: Any) -> tuple[Any, Any, Features]:
        X, sample_weight, features = super()._check_data(X, sample_weight)
        self._refuse(X)
        return X, sample_weight, features

    def _refuse(self, X: Any) -> None:
        """Refuse samples that only others can hold: those in Dask, and most often sparse ones."""
        name = type(self).__name__
        if is_dask(X):
            raise ValueError(
                f"{name} cannot hold a Dask collection, only HGMeans can. Pass X.compute() if it "
                "fits into memory."
            )
        if is_sparse(X) and not self._takes_sparse:
            raise ValueError(
                f"{name} takes dense X only, got a sparse matrix. Pass X.toarray() if it fits into "
                "memory."
            )


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
        from evomeans.engines.spherical import kernel_calls_for, spherical_engine

        def settle(engine: Engine, best: Individual, is_final: bool) -> FinalSolution:
            return canonical_solution(engine, best.centers, X.dtype, is_final=is_final)

        k = parameters.n_clusters
        return Task(
            partial(spherical_engine, X, sample_weight, k, n_jobs=parameters.n_threads),
            settle,
            X,
            sample_weight,
            kernel_calls=partial(kernel_calls_for, X, sample_weight, k),
            strategy=MODELS,
            identity={"model": "spherical"},
        )

    def _checked(self, X: Any) -> Any:
        X = super()._checked(X)
        self._refuse(X)
        return X

    def _fitted_engine(
        self, X: Any, sample_weight: FloatArray | None = None
    ) -> tuple[Engine, FloatArray]:
        """Return an engine that holds new samples, and the fitted centres."""
        from evomeans.engines.spherical import spherical_engine

        centers = encode_centers(self._frame, self.cluster_centers_)
        n_jobs = check_thread_count(self.n_jobs)
        return spherical_engine(X, sample_weight, len(centers), n_jobs=n_jobs), centers


@dataclass(eq=False, repr=False, kw_only=True)
class TrimmedHGMeans(Model):
    """Trimmed k-means: outliers are left out of the objective, with the search of HGMeans.

    The ``n_outliers`` samples that are farthest from their centres are excluded from the objective
    and do not influence the centres [1]_, [2]_. They are not known beforehand: the search
    finds the centres and the samples to leave out together.

    Parameters
    ----------
    n_outliers : int or float, default=0.05
        How many samples to leave out: an int is a number of samples, a float below 1 a share of
        them. With weights, a sample of weight 2 counts like two samples, and one may be left out in
        part.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Cluster means without the outliers, in lexicographic order.

    labels_ : ndarray of shape (n_samples,), dtype int32
        The closest centre of each sample, and -1 for outliers. :meth:`predict` returns the closest
        centre of every sample.

    inertia_ : float
        Sum of the squared distances of all but the outliers to their closest centre, times their
        weights.

    n_outliers_ : float
        The weight that was left out; without weights, the number of samples.

    radius_ : float
        The largest distance of a sample that counts to its centre.

    References
    ----------
    .. [1] Cuesta-Albertos, J. A., Gordaliza, A. and Matrán, C. (1997). "Trimmed k-means: an attempt
       to robustify quantizers". The Annals of Statistics 25, 553-576.
    .. [2] Chawla, S. and Gionis, A. (2013). "k-means--: A unified approach to clustering and
       outlier detection". SIAM International Conference on Data Mining, 189-197.

    Examples
    --------
    >>> import numpy as np
    >>> from evomeans import TrimmedHGMeans
    >>> X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [500.0]])
    >>> model = TrimmedHGMeans(2, n_outliers=1, random_state=0).fit(X)
    >>> model.labels_
    array([ 0,  0,  0,  1,  1, -1], dtype=int32)
    >>> model.cluster_centers_.ravel(), model.inertia_
    (array([ 1. , 10.5]), 2.5)
    """

    n_outliers: float = 0.05
    n_outliers_: float = field(init=False)
    radius_: float = field(init=False)
    _fitted_numbers: ClassVar[tuple[str, ...]] = ("n_outliers", "radius")
    _predicts_closest: ClassVar[bool] = True

    def _pose(
        self, X: Any, sample_weight: FloatArray | None, parameters: Parameters, **constraints: Any
    ) -> Task:
        trimmed = check_outliers(self.n_outliers, X.shape[0], sample_weight, parameters.n_clusters)
        from evomeans.engines.trimmed import TrimmedEngine, kernel_calls

        return Task(
            partial(TrimmedEngine, X, sample_weight, trimmed, n_jobs=parameters.n_threads),
            partial(settled, X.dtype),
            X,
            sample_weight,
            kernel_calls=kernel_calls,
            strategy=MODELS,
            identity={"model": "trimmed", "n_outliers": repr(trimmed)},
        )


def check_outliers(
    n_outliers: Any, n_samples: int, sample_weight: FloatArray | None, n_clusters: int
) -> float:
    """Return the weight to leave out."""
    if isinstance(n_outliers, bool) or not isinstance(n_outliers, Real):
        raise TypeError(f"n_outliers must be an int or a float, got {shown(n_outliers)}.")
    total = float(n_samples if sample_weight is None else sample_weight.sum())
    if not isinstance(n_outliers, Integral):
        if not 0.0 <= float(n_outliers) < 1.0:
            raise ValueError(
                f"n_outliers={n_outliers} must be a share of at least 0 and below 1, or an int, "
                "which is a number of samples."
            )
        trimmed = float(n_outliers) * total
        is_whole = sample_weight is None or bool((sample_weight == np.floor(sample_weight)).all())
        # 0.29 * 100 is a little less than 29.
        trimmed = float(np.floor(trimmed * (1.0 + 1e-12))) if is_whole else trimmed
    elif n_outliers < 0:
        raise ValueError(f"n_outliers={n_outliers} must not be negative.")
    else:
        trimmed = float(n_outliers)
    if sample_weight is None and n_samples - trimmed < n_clusters:
        raise ValueError(
            f"n_outliers={n_outliers} leaves {n_samples - trimmed:g} samples of {n_samples}, and "
            f"n_clusters={n_clusters}. Lower one of the two."
        )
    if trimmed >= total:
        raise ValueError(
            f"n_outliers={n_outliers} must be below the total weight of the samples, {total:g}."
        )
    return trimmed


def settled(dtype: Any, engine: Any, best: Individual, is_final: bool) -> FinalSolution:
    """Round and order the centres; label the samples by them, and trim once more."""
    rounded = lexicographic(engine.frame.decode(best.centers).astype(dtype))
    found = engine.trim(encode_centers(engine.frame, rounded))
    labels = found.labels_with_outliers(engine.weights)
    sizes = np.bincount(found.labels, found.kept, len(rounded))
    counted = found.squares[found.kept > 0.0]
    fitted = {
        "n_outliers_": float(engine.trimmed),
        "radius_": float(np.ldexp(np.sqrt(counted.max()), -engine.frame.exponent)),
    }
    inertia = engine.frame.inertia_in_data_units(found.objective)
    return FinalSolution(rounded, labels, inertia, int(np.count_nonzero(sizes)), fitted)
