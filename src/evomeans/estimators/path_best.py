"""Using a path as the model of the number of clusters that was chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from evomeans.estimators.hgmeans import HGMeans


class BestModelMixin(ClassNamePrefixFeaturesOutMixin, TransformerMixin):  # type: ignore[misc]
    """Predicts, transforms and scores with ``best_estimator_``."""

    best_k_: int | None
    best_estimator_: HGMeans

    def predict(self, X: Any) -> NDArray[np.int32]:
        """Find the closest cluster of each sample, of the model for ``best_k_``.

        Parameters
        ----------
        X : {array-like, sparse matrix, Dask array or dataframe} of shape (n_samples, n_features)
            New samples.

        Returns
        -------
        labels : ndarray of shape (n_samples,), dtype int32
        """
        return self._best().predict(X)

    def transform(self, X: Any) -> NDArray[Any]:
        """Transform samples to their distances to the centres of the model for ``best_k_``.

        Parameters
        ----------
        X : {array-like, sparse matrix, Dask array or dataframe} of shape (n_samples, n_features)
            New samples.

        Returns
        -------
        X_new : ndarray of shape (n_samples, best_k_)
        """
        return self._best().transform(X)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Opposite of the value of the K-means objective of the model for ``best_k_``.

        Parameters
        ----------
        X : {array-like, sparse matrix, Dask array or dataframe} of shape (n_samples, n_features)
            New samples.
        y : Ignored
            Not used, present here for API consistency by convention.
        sample_weight : float or array-like of shape (n_samples,), default=None
            The weight of each sample. None means equal weights.

        Returns
        -------
        score : float
        """
        return self._best().score(X, sample_weight=sample_weight)

    def _best(self) -> HGMeans:
        check_is_fitted(self, "k_values_")
        if self.best_k_ is None:
            raise ValueError(
                "No number of clusters has been selected; at(k) returns the model for any k."
            )
        best: HGMeans = self.best_estimator_
        return best

    @property
    def _n_features_out(self) -> int:
        """What get_feature_names_out counts up to."""
        return len(self._best().cluster_centers_)
