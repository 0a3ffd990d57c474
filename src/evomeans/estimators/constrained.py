"""``ConstrainedHGMeans``: k-means with limits of cluster sizes and with links."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from evomeans.engines.constrained import feasibility
from evomeans.engines.constrained.links import contract, group_samples
from evomeans.estimators.callbacks import with_callbacks
from evomeans.estimators.constraints import Answer, check_limits, check_links, check_penalty
from evomeans.estimators.model import Model
from evomeans.estimators.parameters import Parameters
from evomeans.estimators.solution import Task
from evomeans.estimators.validation import check_sample_weight
from evomeans.search import DEEP
from evomeans.search.founding import KMeansPlusPlus, RandomSamples
from evomeans.search.settings import MODELS
from evomeans.typing import FloatArray

if TYPE_CHECKING:
    from evomeans.exact.certificate import Certificate


CONSTRAINED = replace(
    DEEP,
    name="deep, constrained",
    founding=(KMeansPlusPlus(greedy=True), RandomSamples()),
    swaps=0.0,
)
"""The default strategy under constraints for large clusters. All samples have to be assigned anew
after a swap, so it takes as long as another founder, and brings less."""
FEW_PER_CLUSTER = 500
SAME_INERTIA = 1e-6
"""Relative; sums in another order differ by less."""


@dataclass(eq=False, repr=False, kw_only=True)
class ConstrainedHGMeans(Model):
    """K-means with limited cluster sizes, must-links and cannot-links.

    The objective is that of k-means. Clusters have at least ``size_min`` and at most ``size_max``
    samples, pairs in ``must_link`` are in the same cluster, and pairs in ``cannot_link`` in
    different ones. All constraints hold in every solution; if none exists, :meth:`fit` raises a
    ValueError that names the constraints to blame.

    Parameters
    ----------
    size_min, size_max : int, array-like of shape (n_clusters,) or "balanced", default=None
        How many samples clusters must and may have. Arrays have a limit for each cluster, and
        label j then belongs to limit j. "balanced", for one of the two, means sizes that differ by
        at most one. Sizes count samples, whatever their weights.

    penalty : float, default=None
        Cost of violating a pair, in units of the objective. None enforces all pairs.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Means of the clusters, in lexicographic order among clusters with equal limits.

    labels_ : ndarray of shape (n_samples,), dtype int32
        The cluster of each sample. It need not be the one with the closest centre, so
        ``predict(X)`` may differ.

    inertia_ : float
        Sum of the squared distances of the samples to the centres of their clusters, times their
        weights. Penalties are not included; ``history_`` has the sum of both.

    penalty_ : float
        Penalties of all violated pairs.

    n_violations_ : int
        How many pairs are violated; 0 unless there are penalties.

    Notes
    -----
    **Must-links** are exact: samples that they join are replaced by their weighted mean. Without
    other constraints this is a plain k-means problem, which the engine of HGMeans solves.

    **Sizes** are met by an exact transport of all samples in each step [1]_, followed by moves of
    single samples and exchanges of two that keep them. Memory grows with n_samples times
    n_clusters: 40 bytes for each pair of them.

    **Cannot-links** are satisfied from the first placement on. Samples are placed in the order of
    their regret; if that leaves one without a cluster, an integer program places all that are
    connected with it. Then single samples move, and where they meet one from which they must be
    kept apart, these change places, and so on.

    References
    ----------
    .. [1] Bradley, P. S., Bennett, K. P. and Demiriz, A. (2000). "Constrained k-means clustering".
       Microsoft Research, MSR-TR-2000-65.

    Examples
    --------
    >>> import numpy as np
    >>> from evomeans import ConstrainedHGMeans
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0], [10.0], [11.0]])
    >>> ConstrainedHGMeans(2, size_max="balanced", random_state=0).fit(X).labels_
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    >>> model = ConstrainedHGMeans(2, random_state=0)
    >>> model.fit(X, must_link=[(0, 4)], cannot_link=[(4, 5)]).labels_
    array([0, 0, 0, 0, 0, 1], dtype=int32)
    """

    size_min: Any = None
    size_max: Any = None
    penalty: float | None = None

    penalty_: float = field(init=False)
    n_violations_: int = field(init=False)
    _fitted_numbers: ClassVar[tuple[str, ...]] = ("penalty", "n_violations")
    _is_constrained: ClassVar[bool] = True

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        must_link: Any = None,
        cannot_link: Any = None,
    ) -> Self:
        """Find the clusters of ``X`` that satisfy all constraints.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples, dense.
        y : Ignored
            Not used, present here for API consistency by convention.
        sample_weight : float or array-like of shape (n_samples,), default=None
            The weight of each sample. None means equal weights.
        must_link, cannot_link : array-like of shape (n_pairs, 2) or (n_pairs, 3), default=None
            Pairs of samples, by their rows in ``X``, that belong to the same cluster, and to
            different ones. An optional third column gives the penalty of each pair (inf: hard
            constraint) and overrides ``penalty``.

        Returns
        -------
        self : ConstrainedHGMeans
            The fitted estimator.
        """
        return self._fit(X, y, sample_weight, must_link=must_link, cannot_link=cannot_link)

    def fit_predict(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        must_link: Any = None,
        cannot_link: Any = None,
    ) -> NDArray[np.int32]:
        """Find the clusters of ``X`` and return the labels of its samples.

        The parameters are those of :meth:`fit`.
        """
        return self.fit(X, y, sample_weight, must_link, cannot_link).labels_

    def fit_transform(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        must_link: Any = None,
        cannot_link: Any = None,
    ) -> NDArray[Any]:
        """Find the clusters of ``X`` and return the distances of its samples to the centres.

        The parameters are those of :meth:`fit`.
        """
        return self.fit(X, y, sample_weight, must_link, cannot_link).transform(X)

    def predict(self, X: Any, fill_sizes: bool = False) -> NDArray[np.int32]:
        """Find the cluster of each new sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New samples.
        fill_sizes : bool, default=False
            Whether clusters of new samples have to have sizes within ``size_min`` and ``size_max``
            as well. All of ``X`` is then assigned together, at the least total cost. By default
            each sample goes to the closest centre.

        Returns
        -------
        labels : ndarray of shape (n_samples,), dtype int32
            Index of the cluster.
        """
        if not fill_sizes:
            return super().predict(X)
        distances = self.transform(X).astype(np.float64)
        n, k = distances.shape
        # Not n_clusters, which may have been changed since the fit.
        limits = check_limits(self.size_min, self.size_max, k, n)
        feasibility.check_sizes(*limits, n)
        # Imported here: it loads Numba.
        from evomeans.engines.constrained.transport import assign_within

        # By a power of two, which changes no digit: squares must not overflow.
        shift = -math.frexp(float(distances.max()))[1]
        return assign_within(np.ldexp(distances, shift) ** 2, *limits)

    def _pose(
        self,
        X: Any,
        sample_weight: FloatArray | None,
        parameters: Parameters,
        must_link: Any = None,
        cannot_link: Any = None,
        **constraints: Any,
    ) -> Task:
        self._refuse(X)
        n, k = X.shape[0], parameters.n_clusters
        low, high = check_limits(self.size_min, self.size_max, k, n)
        links = check_links(must_link, cannot_link, check_penalty(self.penalty), n)
        feasibility.check_sizes(low, high, n)
        of_sample = group_samples(n, links.hard_must)
        groups = contract(X, sample_weight, of_sample)
        feasibility.check_links(links, of_sample, groups.counts, high)
        answer = Answer(X, sample_weight, groups, links, low, high)
        is_plain = not (low.any() or (high < n).any() or len(links.cannot))
        if is_plain and len(links.must) == len(links.hard_must) and len(groups.counts) >= k:
            return answer.of_plain_task(k, parameters)
        # Imported here: it loads Numba.
        from evomeans.engines.constrained.engine import ConstrainedEngine, kernel_calls

        return Task(
            partial(ConstrainedEngine, groups, links, low, high, n_jobs=parameters.n_threads),
            answer.of_engine,
            groups.points,
            groups.weights,
            kernel_calls=kernel_calls,
            strategy=CONSTRAINED if len(groups.counts) > FEW_PER_CLUSTER * k else MODELS,
            identity=answer.identity,
            check_labels=answer.check_labels,
            constant=answer.constant,
        )

    def _labels_to_certify(self, X: Any, sample_weight: Any) -> NDArray[np.int32]:
        """Return the labels of the fit, which need not be those of the closest centres."""
        X = self._checked(X)
        w = check_sample_weight(sample_weight, X.shape[0])
        if len(X) == len(self.labels_):
            offsets = X.astype(np.float64) - self.cluster_centers_[self.labels_]
            squares = np.square(offsets).sum(axis=1)
            inertia = float(squares.sum() if w is None else w @ squares)
            if np.isclose(inertia, self.inertia_, rtol=SAME_INERTIA, atol=0.0):
                return self.labels_
        raise ValueError(
            "X and sample_weight are not those of the fit: the labels of the fit do not have the "
            "inertia of the fit for them. Certify the samples of the fit."
        )

    def _in_its_objective(self, certificate: Certificate) -> Certificate:
        """Claim no optimum where penalties are paid: inertia and penalties together may be lower.

        The lower bound remains one of that sum, because penalties only add to the inertia.
        """
        if self.penalty_ > 0 and certificate.is_optimal:
            return replace(certificate, status="bounded", stop_reason="exhausted")
        return certificate


__all__ = ["ConstrainedHGMeans"]
