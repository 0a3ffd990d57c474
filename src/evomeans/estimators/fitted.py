"""Methods of estimators with fitted centres: the nearest of them, and the distances to all."""

from __future__ import annotations

import os
from abc import abstractmethod
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted

from evomeans.docstrings import completed, described_like
from evomeans.engines import Engine, create_engine, is_dask, nearest
from evomeans.engines.frame import Frame, is_sparse, reaching
from evomeans.estimators.certifying import certify
from evomeans.estimators.parameters import DENSE_ENGINES, check_thread_count
from evomeans.estimators.solution import (
    FinalSolution,
    canonical_solution,
    encode_centers,
)
from evomeans.estimators.validation import (
    Features,
    check_new_samples,
    check_sample_weight,
    features_of,
)
from evomeans.typing import FloatArray

if TYPE_CHECKING:
    from sklearn.cluster import KMeans

    from evomeans.exact.certificate import Certificate


class CentersMixin(ClassNamePrefixFeaturesOutMixin, TransformerMixin):  # type: ignore[misc]
    """What an estimator inherits that has centres to compare new samples with.

    Subclasses document only what they add.

    Attributes
    ----------
    n_features_in_ : int
        Number of features seen during ``fit``.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features seen during ``fit``. Defined only when `X` has feature names that are
        all strings.
    """

    engine: str
    n_jobs: int | None
    cluster_centers_: Any
    labels_: Any
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    _frame: Frame
    # Whether centres and distances are those of the space of the samples.
    _is_euclidean: ClassVar[bool] = True
    _takes_sparse: ClassVar[bool] = True

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.__doc__ = completed(cls, root=CentersMixin)

    @property
    def _centers(self) -> Any:
        """The centres that new samples are compared with, in data units."""
        return self.cluster_centers_

    @property
    def _labels(self) -> NDArray[np.int32]:
        """The labels of the samples of the fit."""
        labels: NDArray[np.int32] = self.labels_
        return labels

    @abstractmethod
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the clusters of ``X``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.
        y : Ignored
            Not used, present here for API consistency by convention.
        sample_weight : float or array-like of shape (n_samples,), default=None
            The weight of each sample: a weight of 2 counts like two equal samples. None means equal
            weights.

        Returns
        -------
        self : object
            The fitted estimator.
        """

    @described_like(fit)
    def fit_predict(
        self, X: Any, y: Any = None, sample_weight: Any = None, **fit_params: Any
    ) -> NDArray[np.int32]:
        """Find the clusters of ``X`` and return the labels of its samples.

        Parameters
        ----------
        **fit_params
            Further arguments of :meth:`fit`, for models that have any.

        Returns
        -------
        labels : ndarray of shape (n_samples,), dtype int32
            The cluster of each sample.
        """
        return self.fit(X, y, sample_weight, **fit_params)._labels

    @described_like(fit_predict)
    def fit_transform(
        self, X: Any, y: Any = None, sample_weight: Any = None, **fit_params: Any
    ) -> NDArray[Any]:
        """Find the clusters of ``X`` and return the distances of its samples to the centres.

        Returns
        -------
        X_new : ndarray of shape (n_samples, n_clusters)
            As :meth:`transform` returns it.
        """
        return self.fit(X, y, sample_weight, **fit_params).transform(X)

    def predict(self, X: Any) -> NDArray[np.int32]:
        """Find the closest cluster of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix, Dask array or dataframe} of shape (n_samples, n_features)
            New samples.

        Returns
        -------
        labels : ndarray of shape (n_samples,), dtype int32
            Index of the closest centre; the lowest one on ties. A lazy Dask array if ``X`` is a
            Dask collection, or the engine "dask".
        """
        X = self._checked(X)
        if is_dask(X):
            from evomeans.engines.dask.blocks import lazy_labels

            labels: NDArray[np.int32] = lazy_labels(X, *self._centers_and_frame())
            return labels
        if self._needs_no_engine:
            return nearest.labels(X, *self._compared(X))
        engine, centers = self._fitted_engine(X)
        return np.asarray(engine.assign(centers)[0], dtype=np.int32)

    @described_like(predict)
    def transform(self, X: Any) -> NDArray[Any]:
        """Transform samples to their distances to the centres.

        Returns
        -------
        X_new : ndarray of shape (n_samples, n_clusters)
            Euclidean distances, float32 if both ``X`` and the centres are, else float64. A lazy
            Dask array where the labels of :meth:`predict` are.
        """
        X = self._checked(X)
        if is_dask(X):
            from evomeans.engines.dask.blocks import lazy_distances

            distances: NDArray[Any] = lazy_distances(X, *self._centers_and_frame())
            return distances
        if self._needs_no_engine:
            return nearest.distances(X, *self._compared(X))
        engine, centers = self._fitted_engine(X)
        return np.asarray(engine.distances(centers), dtype=X.dtype)

    @described_like(fit)
    @described_like(predict)
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Opposite of the value of the K-means objective on ``X``.

        Returns
        -------
        score : float
            The negative weighted sum of squared distances to the closest centres.
        """
        X = self._checked(X)
        if is_dask(X):
            from evomeans.engines.dask.blocks import counted, inertia

            X = X if sample_weight is None else counted(X)
            sample_weight = check_sample_weight(sample_weight, X.shape[0], X)
            return -inertia(X, sample_weight, *self._centers_and_frame())
        sample_weight = check_sample_weight(sample_weight, X.shape[0])
        if self._needs_no_engine:
            return -nearest.inertia(X, sample_weight, *self._compared(X))
        engine, centers = self._fitted_engine(X, sample_weight)
        return -engine.assign(centers)[1]

    def report(self, X: Any, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write a report of the fit: one HTML file that needs nothing else.

        It needs the extra ``report``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples of the fit, in memory.
        path : path-like
            The file, such as "report.html"; one of this name is replaced.
        **options
            What else is known: ``title``, ``sample_weight``, ``feature_names``, ``units``,
            ``sample_names``, ``standardization`` and others, see
            :func:`evomeans.report.report_data`.

        Returns
        -------
        Path
            Where the file is.
        """
        from evomeans.report import write_report

        if is_dask(X):
            raise TypeError("report takes samples in memory; pass X.compute() if they fit into it.")
        return write_report(self, X, path, **options)

    def _keep_features(self, features: Features, frame: Frame) -> None:
        """Remember the columns of the samples, and the frame of the centres."""
        self.__dict__.pop("feature_names_in_", None)
        self.__dict__.update(features)
        self._frame = frame

    def _checked(self, X: Any) -> Any:
        check_is_fitted(self, "n_features_in_")
        return check_new_samples(self, X)

    def _centers_and_frame(self) -> tuple[FloatArray, Frame]:
        return encode_centers(self._frame, self._centers), self._frame

    @property
    def _needs_no_engine(self) -> bool:
        """Whether the labels of the CPU engine can be had without one."""
        return self._is_euclidean and self.engine in ("auto", "cpu")

    def _compared(self, X: Any) -> tuple[FloatArray, Frame, int]:
        """Return the centres in a frame, the frame, and the number of threads."""
        frame = self._frame
        if is_sparse(X) and frame.shift.any():
            frame = Frame.scaling(self._centers, self.n_features_in_)
        centers = encode_centers(frame, self._centers)
        return centers, frame, check_thread_count(self.n_jobs)

    def _fitted_engine(
        self, X: Any, sample_weight: FloatArray | None = None
    ) -> tuple[Engine, FloatArray]:
        """Return an engine that holds new samples, and the fitted centres in its frame."""
        # The engine "reference" or "gpu": dense samples, which may be far outside those of the fit.
        frame = reaching(self._frame, X.min(axis=0), X.max(axis=0))
        engine = create_engine(self.engine, X, sample_weight, frame=frame, searching=False)
        return engine, encode_centers(frame, self._centers)

    @property
    def _n_features_out(self) -> int:
        """The number of names that get_feature_names_out returns."""
        return len(self._centers)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse and self.engine not in DENSE_ENGINES
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class FittedCenters(
    CentersMixin,
    ClusterMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """A clusterer with centres, of which only ``fit`` is missing.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.

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
    """

    n_clusters: int
    cluster_centers_: NDArray[Any]
    labels_: NDArray[np.int32]
    inertia_: float
    certificate_: Certificate
    # Whether the objective is the inertia of all samples, over all clusterings or over some.
    _is_plain_kmeans: ClassVar[bool] = True
    _is_constrained: ClassVar[bool] = False
    # Whether the cluster of a sample is always the closest centre, of the samples as they are.
    _predicts_closest: ClassVar[bool] = True

    def to_kmeans(self) -> KMeans:
        """Return a fitted :class:`sklearn.cluster.KMeans` with these centres.

        It takes the place of the model where only scikit-learn's own estimators are known, as in
        exporters to ONNX.

        Returns
        -------
        kmeans : sklearn.cluster.KMeans
            ``cluster_centers_``, ``labels_``, ``inertia_``, ``n_iter_`` and names of features are
            those of the model. It predicts the same clusters, except that rounding may decide
            otherwise where two centres are equally close. ``init`` are the centres, so another fit
            of it continues from them.

        Raises
        ------
        TypeError
            If the model does not predict the closest centre.
        """
        check_is_fitted(self, "cluster_centers_")
        if not self._predicts_closest:
            raise TypeError(
                f"{type(self).__name__} has no equivalent KMeans: it does not simply give a sample "
                "the closest of its centres. Save it with save(path), or use HGMeans."
            )
        # Imported here: nothing else needs scikit-learn's clusterers.
        from sklearn.cluster import KMeans

        centers = self.cluster_centers_.copy()
        k, d = centers.shape
        # A fit sets whatever KMeans needs besides its documented attributes. This one is of k
        # distinct samples, so it is short and has nothing to warn of.
        samples = np.repeat(np.arange(k, dtype=centers.dtype)[:, None], d, axis=1)
        kmeans = KMeans(k, init=samples, n_init=1).fit(samples).set_params(init=centers)
        del kmeans.labels_
        for name in ("labels_", "inertia_", "n_iter_", "feature_names_in_"):
            # A model of samples in Dask has no labels once it was saved.
            if hasattr(self, name):
                setattr(kmeans, name, getattr(self, name))
        kmeans.cluster_centers_ = centers
        return kmeans

    @described_like(certify)
    def certify(
        self,
        X: Any,
        sample_weight: Any = None,
        *,
        max_time: float = 60.0,
        gap: float = 1e-6,
        n_jobs: int | None = None,
        method: str = "auto",
        part_size: int | None = None,
        update: bool = False,
        verbose: int = 0,
        progress: Any = None,
    ) -> Certificate:
        """Prove that the clustering of ``X`` is optimal, or bound its distance from the optimum.

        What is proven is about plain k-means, and other models are refused. Under constraints it is
        a lower bound: no clustering has a lower inertia, whether or not it satisfies them. The
        result is kept as ``certificate_`` until the next fit. See docs/guide/proof.md for what is
        proven.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples of the fit, in memory.
        sample_weight : float or array-like of shape (n_samples,), default=None
            The weights of the fit.
        update : bool, default=False
            Whether to take over a better clustering, if the proof finds one. Under constraints
            there is none, because it need not satisfy them.
        """
        self._check_certifiable()
        certificate = certify(
            X,
            self._labels_to_certify(X, sample_weight),
            sample_weight,
            constrained=self._is_constrained,
            n_clusters=len(self.cluster_centers_),
            max_time=max_time,
            gap=gap,
            n_jobs=n_jobs,
            method=method,
            part_size=part_size,
            verbose=verbose,
            progress=progress,
        )
        if update and certificate.improved and certificate.labels is not None:
            self._take(X, sample_weight, certificate.labels)
        self.certificate_ = self._in_its_objective(certificate)
        if self.certificate_.is_optimal and hasattr(self, "certainty_"):
            # A better clustering that is not adopted may be proven instead of this one.
            is_kept = update or not certificate.improved
            is_near = self.inertia_ <= 1.0001 * certificate.upper_bound
            self.certainty_ = 1.0 if is_kept or is_near else 0.0
        return self.certificate_

    def _check_certifiable(self) -> None:
        """Refuse models with another objective than the inertia of all samples."""
        if not (self._is_plain_kmeans or self._is_constrained):
            raise TypeError(
                f"{type(self).__name__} cannot be certified: proofs are about the inertia of plain "
                "k-means, which is not its objective. certify of HGMeans, ExactKMeans and "
                "ConstrainedHGMeans works, and so does evomeans.certify(X, labels) where the "
                "inertia of labels is the question."
            )

    def _labels_to_certify(self, X: Any, sample_weight: Any) -> NDArray[np.int32]:
        """Return the clustering of the samples that a certificate is about."""
        labels = self.predict(X)
        if is_dask(labels):
            raise TypeError("certify takes samples in memory; pass X.compute() and engine='auto'.")
        return labels

    def _in_its_objective(self, certificate: Certificate) -> Certificate:
        """Return a certificate that claims nothing beyond the objective of the model."""
        return certificate

    def _take(self, X: Any, sample_weight: Any, labels: NDArray[np.int32]) -> None:
        """Replace the solution by the means of clusters, and what K-means makes of them."""
        X = check_new_samples(self, X)
        sample_weight = check_sample_weight(sample_weight, X.shape[0])
        w = np.ones(X.shape[0]) if sample_weight is None else sample_weight
        indicator = np.equal.outer(np.unique(labels), labels) * w
        means = np.asarray(indicator @ X) / indicator.sum(axis=1, keepdims=True)
        with closing(create_engine(self.engine, X, sample_weight)) as engine:
            start = encode_centers(engine.frame, means)
            solution = canonical_solution(engine, start, self.cluster_centers_.dtype)
            self._keep_solution(features_of(self), engine.frame, solution)

    def _keep_solution(self, features: Features, frame: Frame, solution: FinalSolution) -> None:
        """Set the fitted attributes that all clusterers have; nothing in here can fail."""
        self._keep_features(features, frame)
        self.cluster_centers_ = solution.centers
        self.labels_ = solution.labels
        self.inertia_ = solution.inertia
        # It was one of another solution.
        if hasattr(self, "certificate_"):
            del self.certificate_
        self.__dict__.update(solution.fitted)
