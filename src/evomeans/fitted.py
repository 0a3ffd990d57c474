"""What follows from fitted centres: the nearest of them, and the distances to all."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted

from evomeans.engines import Engine, create_engine
from evomeans.engines.frame import Frame
from evomeans.solution import FloatArray, encode_centers, frame_for
from evomeans.validation import (
    DENSE_ENGINES,
    check_engine,
    check_new_samples,
    check_sample_weight,
    check_thread_count,
)


class FittedCenters(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """A clusterer with centres, of which only ``fit`` is missing.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        In data units.
    """

    engine: str
    n_jobs: int | None
    cluster_centers_: NDArray[Any]
    _frame: Frame

    def predict(self, X: Any) -> NDArray[np.int32]:
        """Find the closest cluster of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            New samples.

        Returns
        -------
        labels : ndarray of shape (n_samples,), dtype int32
            Index of the closest centre; the lowest one on ties.
        """
        engine, centers = self._fitted_engine(self._checked(X))
        return np.asarray(engine.assign(centers)[0], dtype=np.int32)

    def transform(self, X: Any) -> NDArray[Any]:
        """Transform samples to their distances to the centres.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            New samples.

        Returns
        -------
        X_new : ndarray of shape (n_samples, n_clusters)
            Euclidean distances, float32 if both ``X`` and the centres are, else float64.
        """
        X = self._checked(X)
        engine, centers = self._fitted_engine(X)
        return np.asarray(engine.distances(centers), dtype=X.dtype)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Opposite of the value of the K-means objective on ``X``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            New samples.
        y : Ignored
            Not used, present here for API consistency by convention.
        sample_weight : float or array-like of shape (n_samples,), default=None
            The weight of each sample. None means equal weights.

        Returns
        -------
        score : float
            The negative weighted sum of squared distances to the closest centres.
        """
        X = self._checked(X)
        sample_weight = check_sample_weight(sample_weight, X.shape[0])
        engine, centers = self._fitted_engine(X, sample_weight)
        return -engine.assign(centers)[1]

    def _checked(self, X: Any) -> Any:
        check_is_fitted(self, "cluster_centers_")
        return check_new_samples(self, X)

    def _fitted_engine(
        self, X: Any, sample_weight: FloatArray | None = None
    ) -> tuple[Engine, FloatArray]:
        """Return an engine that holds new samples, and the fitted centres in its frame."""
        frame = frame_for(X, self._frame, self.cluster_centers_)
        engine = self._engine_over(X, sample_weight, frame, searching=False)
        return engine, encode_centers(frame, self.cluster_centers_)

    def _engine_over(
        self,
        X: Any,
        sample_weight: FloatArray | None,
        frame: Frame | None = None,
        searching: bool = True,
    ) -> Engine:
        return create_engine(
            check_engine(self.engine, X),
            X,
            sample_weight,
            n_jobs=check_thread_count(self.n_jobs),
            frame=frame,
            searching=searching,
        )

    @property
    def _n_features_out(self) -> int:
        """What get_feature_names_out counts up to."""
        return len(self.cluster_centers_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.engine not in DENSE_ENGINES
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
