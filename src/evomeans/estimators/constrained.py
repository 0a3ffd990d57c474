"""``ConstrainedHGMeans``: k-means with limits of cluster sizes and with links."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from evomeans.docstrings import described_like
from evomeans.engines import Engine
from evomeans.engines.constrained import feasibility
from evomeans.engines.constrained.links import Groups, Links, contract, group_samples
from evomeans.engines.protocol import Order
from evomeans.estimators.models import Model
from evomeans.estimators.parameters import Parameters, check_real, shown
from evomeans.estimators.solution import FinalSolution, Task, plain_task
from evomeans.estimators.validation import check_sample_weight
from evomeans.search import DEEP, Individual
from evomeans.search.founding import KMeansPlusPlus, RandomSamples
from evomeans.search.settings import MODELS
from evomeans.storage.checkpoint import digest
from evomeans.typing import FloatArray, Integers

if TYPE_CHECKING:
    from evomeans.exact.certificate import Certificate


BALANCED = "balanced"


def check_limits(
    size_min: Any, size_max: Any, n_clusters: int, n_samples: int
) -> tuple[Integers, Integers]:
    """Return how many samples each cluster must and may have."""
    limits = {"size_min": size_min, "size_max": size_max}
    balanced = [isinstance(one, str) and one == BALANCED for one in limits.values()]
    if any(balanced):
        for (name, value), is_balanced in zip(limits.items(), balanced, strict=True):
            if not (is_balanced or value is None):
                raise ValueError(
                    f"{name}={value!r} contradicts 'balanced', which sets both limits. Leave one "
                    "of them out."
                )
        low = np.full(n_clusters, n_samples // n_clusters)
        return low, np.full(n_clusters, -(-n_samples // n_clusters))
    low = _sizes("size_min", size_min, n_clusters, default=0)
    high = _sizes("size_max", size_max, n_clusters, default=n_samples)
    return low, np.minimum(high, n_samples)


def _sizes(name: str, value: Any, n_clusters: int, default: int) -> Integers:
    if value is None:
        return np.full(n_clusters, default)
    try:
        sizes = np.asarray(value)
    except ValueError:
        sizes = np.empty(0)
    if sizes.dtype.kind not in "iu":
        raise TypeError(
            f"{name} must be None, 'balanced', an int, or {n_clusters} ints, one for each cluster, "
            f"got {shown(value)}."
        )
    if sizes.shape not in ((), (n_clusters,)):
        raise ValueError(
            f"{name} has the shape {sizes.shape}, but must be an int or have {n_clusters} values, "
            "one for each cluster."
        )
    if (sizes < 0).any():
        raise ValueError(f"{name}={sizes.min()} must not be negative.")
    # Unsigned numbers beyond the range of int64 would become negative.
    largest = np.iinfo(np.int64).max
    return np.array([min(int(size), largest) for size in np.broadcast_to(sizes, n_clusters)])


def check_penalty(penalty: Any) -> float:
    """Return what a violated pair costs; infinite if no pair may be violated."""
    cost = check_real("penalty", penalty)
    if cost is None:
        return np.inf
    if not cost > 0.0:
        raise ValueError(
            f"penalty={penalty} must be positive, or None for links without exception."
        )
    return cost


def check_links(must_link: Any, cannot_link: Any, penalty: float, n_samples: int) -> Links:
    """Return pairs of samples and their penalties."""
    must, must_penalties = _pairs("must_link", must_link, penalty, n_samples)
    cannot, cannot_penalties = _pairs("cannot_link", cannot_link, penalty, n_samples)
    # A sample is always together with itself.
    differ = must[:, 0] != must[:, 1]
    return Links(must[differ], must_penalties[differ], cannot, cannot_penalties)


def _pairs(name: str, given: Any, penalty: float, n_samples: int) -> tuple[Integers, FloatArray]:
    try:
        table = np.asarray(() if given is None else given, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name} must be pairs of sample numbers, an array of shape (n_pairs, 2), got "
            f"{shown(given)}."
        ) from None
    if table.size == 0:
        return np.empty((0, 2), np.int64), np.empty(0)
    if table.ndim != 2 or table.shape[1] not in (2, 3):
        raise ValueError(
            f"{name} has the shape {table.shape}, but must have (n_pairs, 2), or (n_pairs, 3) with "
            "a penalty for each pair."
        )
    numbers = table[:, :2]
    is_number = (numbers >= 0) & (numbers < n_samples) & (numbers == np.floor(numbers))
    if not is_number.all():
        row, column = np.argwhere(~is_number)[0]
        raise ValueError(
            f"{name} names the sample {numbers[row, column]:g} in row {row}; samples are the rows "
            f"0 to {n_samples - 1} of X."
        )
    pairs = numbers.astype(np.int64)
    if table.shape[1] == 2:
        return pairs, np.full(len(pairs), penalty)
    penalties = table[:, 2]
    if not (penalties > 0).all():
        wrong = int(np.argmin(penalties > 0))
        raise ValueError(
            f"{name} has the penalty {penalties[wrong]} in row {wrong}; penalties must be "
            "positive, or inf for a pair without exception."
        )
    return pairs, penalties


@dataclass(frozen=True)
class Answer:
    """From solutions for groups of samples to solutions for samples."""

    # The samples.
    X: NDArray[Any]
    sample_weight: FloatArray | None
    # The constraints on them.
    groups: Groups
    links: Links
    low: Integers
    high: Integers

    def squares_to(self, centers: NDArray[Any]) -> float:
        """Sum up weighted squared distances of samples to points of their own."""
        squares = ((self.X.astype(np.float64) - centers) ** 2).sum(axis=1)
        return float(squares.sum() if self.sample_weight is None else self.sample_weight @ squares)

    def of_plain_task(self, n_clusters: int, parameters: Parameters) -> Task:
        """Return the task of k-means on the groups, which no other constraint concerns."""
        groups = self.groups
        is_contracted = len(groups.counts) < len(self.X)
        weights = groups.weights if is_contracted else self.sample_weight
        task = plain_task(groups.points, weights, n_clusters, parameters)

        def settle(engine: Engine, best: Individual, is_final: bool) -> FinalSolution:
            solution = task.settle(engine, best, is_final)
            labels = solution.labels[groups.of_sample]
            centers = solution.centers.astype(self.X.dtype)
            inertia = self.squares_to(centers[labels]) if is_contracted else solution.inertia
            fitted = {"penalty_": 0.0, "n_violations_": 0}
            return replace(solution, centers=centers, labels=labels, inertia=inertia, fitted=fitted)

        return replace(task, settle=settle)

    def check_labels(self, labels: NDArray[Any]) -> None:
        """Raise ValueError if a clustering of the groups does not satisfy every constraint."""
        if labels.min() < 0:
            raise ValueError(f"sample {int(labels.argmin())} has no cluster")
        labels = labels[self.groups.of_sample]
        sizes = np.bincount(labels, minlength=len(self.low))
        is_wrong = (sizes < self.low) | (sizes > self.high)
        if is_wrong.any():
            j = int(is_wrong.argmax())
            raise ValueError(
                f"cluster {j} has {sizes[j]} samples, not {self.low[j]} to {self.high[j]}"
            )
        if np.isinf(self.links.count_violations(labels)[1]):
            raise ValueError("a pair of must_link is apart, or one of cannot_link together")

    def of_engine(self, engine: Engine, best: Individual, is_final: bool) -> FinalSolution:
        """Return the answer from the labels of the groups, checked once more."""
        given = best.labels
        if given is None and is_final:
            given = engine.assign(best.centers)[0]
        elif given is None:
            given = engine.refine([Order(best.centers)])[0].labels
        assert given is not None
        try:
            self.check_labels(given)
        except ValueError as error:
            raise RuntimeError(
                f"The search ended with a clustering that violates the constraints: {error}. This "
                "is a bug in evomeans; please report it. The estimator is as it was."
            ) from error
        labels = given[self.groups.of_sample]
        centers = engine.frame.decode(best.centers)
        present, compact = np.unique(labels, return_inverse=True)
        centers[present] = contract(self.X, self.sample_weight, compact.reshape(-1)).points
        rounded = centers.astype(self.X.dtype)
        order = order_within_limits(rounded, self.low, self.high)
        rounded, labels = rounded[order], np.argsort(order).astype(np.int32)[labels]
        violations, penalty = self.links.count_violations(labels)
        fitted = {"penalty_": penalty, "n_violations_": violations}
        inertia = self.squares_to(rounded[labels])
        return FinalSolution(rounded, labels, inertia, len(present), fitted)


def order_within_limits(centers: NDArray[Any], low: Integers, high: Integers) -> NDArray[np.intp]:
    """Return the lexicographic order of centres; each keeps a place with its own limits."""
    order = np.empty(len(centers), np.intp)
    kinds = np.unique(np.column_stack([low, high]), axis=0, return_inverse=True)[1].reshape(-1)
    for kind in range(int(kinds.max()) + 1):
        places = np.flatnonzero(kinds == kind)
        order[places] = places[np.lexsort(centers[places].T[::-1])]
    return order


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
    Sizes are met by an exact transport of all samples in each step [1]_. docs/guide/models.md
    explains it, the links, and the memory they need.

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

    @described_like(Model.fit)
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
        must_link, cannot_link : array-like of shape (n_pairs, 2) or (n_pairs, 3), default=None
            Pairs of samples, by their rows in ``X``, that belong to the same cluster, and to
            different ones. An optional third column gives the penalty of each pair (inf: hard
            constraint) and overrides ``penalty``.
        """
        return self._fit(X, sample_weight, must_link=must_link, cannot_link=cannot_link)

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
        n, k = X.shape[0], parameters.n_clusters
        low, high = check_limits(self.size_min, self.size_max, k, n)
        links = check_links(must_link, cannot_link, check_penalty(self.penalty), n)
        feasibility.check_sizes(low, high, n)
        of_sample = group_samples(n, links.hard_must)
        groups = contract(X, sample_weight, of_sample)
        feasibility.check_links(links, of_sample, groups.counts, high)
        answer = Answer(X, sample_weight, groups, links, low, high)
        is_contracted = len(groups.counts) < n
        pairs = links.must, links.must_penalties, links.cannot, links.cannot_penalties
        return replace(
            self._task_of(answer, parameters),
            identity={"model": "constrained", "links": digest(*pairs), "sizes": digest(low, high)},
            # What the samples of groups cost around their means, whatever the clusters.
            constant=answer.squares_to(groups.points[of_sample]) if is_contracted else 0.0,
        )

    def _task_of(self, answer: Answer, parameters: Parameters) -> Task:
        groups, links, low, high = answer.groups, answer.links, answer.low, answer.high
        k, n_groups = parameters.n_clusters, len(groups.counts)
        is_sized = low.any() or (high < len(answer.X)).any()
        is_soft = len(links.must) > len(links.hard_must)
        if not (is_sized or len(links.cannot) or is_soft or n_groups < k):
            return answer.of_plain_task(k, parameters)
        from evomeans.engines.constrained.engine import ConstrainedEngine, kernel_calls

        return Task(
            partial(ConstrainedEngine, groups, links, low, high, n_jobs=parameters.n_threads),
            answer.of_engine,
            groups.points,
            groups.weights,
            kernel_calls=kernel_calls,
            strategy=CONSTRAINED if n_groups > FEW_PER_CLUSTER * k else MODELS,
            check_labels=answer.check_labels,
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
