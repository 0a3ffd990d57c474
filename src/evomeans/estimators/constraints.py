"""Constraints as users state them, checked; and from clusters of groups back to samples."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.engines import Engine
from evomeans.engines.constrained.links import Groups, Links, contract
from evomeans.engines.protocol import Order
from evomeans.estimators.model import renumbered
from evomeans.estimators.parameters import Parameters, shown
from evomeans.estimators.solution import FinalSolution, Task, plain_task
from evomeans.search import Individual
from evomeans.storage.state_file import digest
from evomeans.typing import FloatArray, Integers

BALANCED = "balanced"


def check_limits(
    size_min: Any, size_max: Any, n_clusters: int, n_samples: int
) -> tuple[Integers, Integers]:
    """Return how many samples each cluster must and may have."""
    if BALANCED in (_text(size_min), _text(size_max)):
        for name, value in (("size_min", size_min), ("size_max", size_max)):
            if value is not None and _text(value) != BALANCED:
                raise ValueError(
                    f"{name}={value!r} contradicts 'balanced', which sets both limits. Leave one "
                    "of them out."
                )
        low = np.full(n_clusters, n_samples // n_clusters)
        return low, np.full(n_clusters, -(-n_samples // n_clusters))
    low = _sizes("size_min", size_min, n_clusters, default=0)
    high = _sizes("size_max", size_max, n_clusters, default=n_samples)
    return low, np.minimum(high, n_samples)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _sizes(name: str, value: Any, n_clusters: int, default: int) -> Integers:
    if value is None:
        return np.full(n_clusters, default)
    expected = f"None, 'balanced', an int, or {n_clusters} ints, one for each cluster"
    if isinstance(value, str | bool):
        raise TypeError(f"{name} must be {expected}, got {shown(value)}.")
    if isinstance(value, Real) and not isinstance(value, Integral):
        raise TypeError(f"{name} must be {expected}, got {shown(value)}.")
    try:
        sizes = np.asarray(value)
    except ValueError:
        raise TypeError(f"{name} must be {expected}, got {shown(value)}.") from None
    if sizes.dtype.kind not in "iu":
        raise TypeError(f"{name} must be {expected}, got {shown(value)}.")
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
    if penalty is None:
        return np.inf
    if isinstance(penalty, bool) or not isinstance(penalty, Real):
        raise TypeError(f"penalty must be a number or None, got {shown(penalty)}.")
    if not float(penalty) > 0.0:
        raise ValueError(
            f"penalty={penalty} must be positive, or None for links without exception."
        )
    return float(penalty)


def check_links(must_link: Any, cannot_link: Any, penalty: float, n_samples: int) -> Links:
    """Return pairs of samples and their penalties."""
    must, must_penalties = _pairs("must_link", must_link, penalty, n_samples)
    cannot, cannot_penalties = _pairs("cannot_link", cannot_link, penalty, n_samples)
    # A sample is always together with itself.
    differ = must[:, 0] != must[:, 1]
    return Links(must[differ], must_penalties[differ], cannot, cannot_penalties)


def _pairs(name: str, given: Any, penalty: float, n_samples: int) -> tuple[Integers, FloatArray]:
    if given is None:
        return np.empty((0, 2), np.int64), np.empty(0)
    try:
        table = np.asarray(given, dtype=np.float64)
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
    pairs = _sample_numbers(name, table[:, :2], n_samples)
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


def _sample_numbers(name: str, numbers: NDArray[Any], n_samples: int) -> Integers:
    is_number = (numbers >= 0) & (numbers < n_samples) & (numbers == np.floor(numbers))
    if not is_number.all():
        row, column = np.argwhere(~is_number)[0]
        raise ValueError(
            f"{name} names the sample {numbers[row, column]:g} in row {row}; samples are the rows "
            f"0 to {n_samples - 1} of X."
        )
    return numbers.astype(np.int64)


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

    @property
    def constant(self) -> float:
        """What the samples of groups cost around their means, whatever the clusters."""
        if len(self.groups.counts) == len(self.X):
            return 0.0
        return self._squares(self.groups.points[self.groups.of_sample])

    @property
    def identity(self) -> dict[str, int | str | None]:
        """What a checkpoint compares."""
        links = self.links
        pairs = links.must, links.must_penalties, links.cannot, links.cannot_penalties
        return {
            "model": "constrained",
            "links": digest(*pairs),
            "sizes": digest(self.low, self.high),
        }

    def _squares(self, centers: NDArray[Any]) -> float:
        """Sum up weighted squared distances of samples to points of their own."""
        squares = ((self.X.astype(np.float64) - centers) ** 2).sum(axis=1)
        return float(squares.sum() if self.sample_weight is None else self.sample_weight @ squares)

    def of_plain_task(self, n_clusters: int, parameters: Parameters) -> Task:
        """Return the task of k-means on the groups, which no other constraint concerns."""
        groups = self.groups
        is_contracted = len(groups.counts) < len(self.X)
        weights = groups.weights if is_contracted else self.sample_weight
        is_line = groups.points.shape[1] == 1
        task = plain_task(groups.points, weights, n_clusters, parameters, is_line=is_line)

        def settle(engine: Engine, best: Individual, is_final: bool) -> FinalSolution:
            solution = task.settle(engine, best, is_final)
            labels = solution.labels[groups.of_sample]
            centers = solution.centers.astype(self.X.dtype)
            inertia = self._squares(centers[labels]) if is_contracted else solution.inertia
            fitted = {"penalty_": 0.0, "n_violations_": 0}
            return replace(solution, centers=centers, labels=labels, inertia=inertia, fitted=fitted)

        return replace(task, settle=settle, identity=self.identity, constant=self.constant)

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
            given, _ = engine.assign(best.centers)
        if given is None:
            best_again = engine.refine([Order(best.centers)])[0]
            given = best_again.labels
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
        rounded, labels = renumbered(rounded, labels, order)
        violations, penalty = self.links.count_violations(labels)
        fitted = {"penalty_": penalty, "n_violations_": violations}
        inertia = self._squares(rounded[labels])
        return FinalSolution(rounded, labels, inertia, len(present), fitted)


def order_within_limits(centers: NDArray[Any], low: Integers, high: Integers) -> NDArray[np.intp]:
    """Return the lexicographic order of centres; each keeps a place with its own limits."""
    order = np.empty(len(centers), np.intp)
    kinds = np.unique(np.column_stack([low, high]), axis=0, return_inverse=True)[1].reshape(-1)
    for kind in range(int(kinds.max()) + 1):
        places = np.flatnonzero(kinds == kind)
        order[places] = places[np.lexsort(centers[places].T[::-1])]
    return order
