"""The base class of criteria, and rules that choose a number of clusters."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from evomeans.metrics.sums import ClusterSums, checked_weights, cluster_sums
from evomeans.typing import FloatArray

Counts = NDArray[np.int64] | Sequence[int]

# However little time there is, criteria look at so many samples.
FEWEST_SAMPLES = 1024
# Makes the samples that criteria are confined to differ from all that is drawn elsewhere.
SAMPLING = 3


def largest(ks: Counts, values: FloatArray) -> int | None:
    """Return the k with the largest value, the smallest k on ties."""
    known = ~np.isnan(values)
    if not known.any():
        return None
    return int(ks[int(np.argmax(np.where(known, values, -np.inf)))])


def smallest(ks: Counts, values: FloatArray) -> int | None:
    """Return the k with the smallest value, the smallest k on ties."""
    return largest(ks, -values)


def first_at_most(ks: Counts, values: FloatArray, limit: float) -> int | None:
    """Return the smallest k whose value does not exceed a limit."""
    return next((int(k) for k, value in zip(ks, values, strict=True) if value <= limit), None)


def last_at_least(ks: Counts, values: FloatArray, limit: float) -> int | None:
    """Return the largest k whose value reaches a limit."""
    reached = [int(k) for k, value in zip(ks, values, strict=True) if value >= limit]
    return max(reached, default=None)


def last_of_a_run(ks: Counts, values: FloatArray, limit: float) -> int | None:
    """Return the largest k such that it and all smaller ones reach a limit."""
    choice = None
    for k, value in zip(ks, values, strict=True):
        if np.isnan(value):
            continue
        if value < limit:
            break
        choice = int(k)
    return choice


def first_within_error(ks: Counts, values: FloatArray, errors: FloatArray) -> int | None:
    """Return the smallest k with valueₖ ≥ valueₖ₊₁ − errorₖ₊₁ (Tibshirani, Walther, Hastie)."""
    for place in range(len(ks) - 1):
        if values[place] >= values[place + 1] - errors[place + 1]:
            return int(ks[place])
    return None


def within_error_of_first_maximum(ks: Counts, values: FloatArray, errors: FloatArray) -> int | None:
    """Return the smallest k within one error of the first local maximum (R's ``firstSEmax``)."""
    if not len(ks) or np.isnan(values).all():
        return None
    falls = np.flatnonzero(np.diff(values) <= 0.0)
    top = int(falls[0]) if falls.size else len(values) - 1
    reached = np.flatnonzero(values[: top + 1] >= values[top] - errors[top])
    return int(ks[int(reached[0])])


def knee(ks: Counts, values: FloatArray) -> int | None:
    """Return the k of a falling curve that is farthest below the line between its ends."""
    known = ~np.isnan(values)
    if np.count_nonzero(known) < 3:
        return None
    x, y = np.asarray(ks, dtype=np.float64)[known], values[known]
    height = y[0] - y[-1]
    if height <= 0.0:
        return None
    below = 1.0 - (x - x[0]) / (x[-1] - x[0]) - (y - y[-1]) / height
    return int(x[int(np.argmax(below))])


@dataclass
class Budget:
    """The time that criteria may take: until the ``clock`` shows the ``deadline``, in seconds."""

    deadline: float | None = None
    clock: Callable[[], float] = time.perf_counter
    n_taken: int | None = field(default=None, init=False)
    """To how many samples a criterion was confined, the fewest of all; None if none was."""

    def affords(
        self, compute: Callable[[int], object], n_samples: int, power: int = 1, share: float = 1.0
    ) -> int:
        """Return how many samples a computation may look at; all of them without a deadline.

        It is tried with few of them, and does some share of the whole computation. Its time is
        proportional to a power of their number.
        """
        if self.deadline is None or n_samples <= FEWEST_SAMPLES:
            return n_samples
        began = self.clock()
        compute(FEWEST_SAMPLES)
        now = self.clock()
        affordable = max(self.deadline - now, 0.0) / max((now - began) / share, 1e-9)
        n_taken = int(FEWEST_SAMPLES * max(affordable, 1.0) ** (1.0 / power))
        if n_taken >= n_samples:
            return n_samples
        self.n_taken = min(n_taken, self.n_taken or n_taken)
        return n_taken


class SampleSource(Protocol):
    """Samples with their weights, wherever they are."""

    def sums(self, centers: Mapping[int, FloatArray], budget: Budget) -> dict[int, ClusterSums]:
        """Sum up over the samples of each cluster, for all numbers of clusters."""
        ...

    def in_memory(self, purpose: str) -> tuple[Any, FloatArray | None]:
        """Return the samples and their weights, or say that they are too many for a purpose."""
        ...


@dataclass(frozen=True)
class InMemory:
    """Samples in memory, dense or sparse."""

    X: Any
    sample_weight: FloatArray | None

    def sums(self, centers: Mapping[int, FloatArray], budget: Budget) -> dict[int, ClusterSums]:
        """Sum up over the samples of each cluster, or over as many of them as there is time for."""
        weights = checked_weights(self.sample_weight, self.X.shape[0])
        counted = np.flatnonzero(weights)

        def of_some(n_samples: int) -> dict[int, ClusterSums]:
            X, own = self.X, weights
            if n_samples < len(counted):
                rng = np.random.default_rng([SAMPLING, n_samples])
                rows = counted[np.sort(rng.choice(len(counted), n_samples, replace=False))]
                X, own = X[rows], weights[rows]
            return {
                k: cluster_sums(X, np.asarray(one, np.float64), own) for k, one in centers.items()
            }

        return of_some(budget.affords(of_some, len(counted)))

    def in_memory(self, purpose: str) -> tuple[Any, FloatArray | None]:
        """Return them."""
        return self.X, self.sample_weight


class Searched(NamedTuple):
    """What a search of other samples found, by number of clusters."""

    inertias: Mapping[int, float]
    centers: Mapping[int, FloatArray]


SearchOthers = Callable[[Any, FloatArray | None, Sequence[int], int], Searched]
"""Searches other samples with the same effort: samples, weights, numbers of clusters, seed."""


@dataclass(frozen=True)
class Evidence:
    """The data from which criteria compute their values.

    Parameters
    ----------
    k_values : (q,) array of int
        The numbers of clusters of the path, 1 included, ascending.
    inertias : (q,) array
        The lowest inertia for each of them.
    centers : mapping of int to (k, d) array
        The centres, in data units.
    labels : callable
        Returns the labels of all samples for a number of clusters.
    cluster_weights : mapping of int to (k,) array
    n_samples : float
        Their number, or their total weight.
    n_features : int
    samples : SampleSource
    search : callable
        See :data:`SearchOthers`.
    populations : mapping of int to sequence of (k, d) arrays
        The best centres of each independent population.
    seed : int
        Seed of criteria that draw random numbers.
    budget : Budget
        Time for passes over all samples.
    """

    k_values: NDArray[np.int64]
    inertias: FloatArray
    centers: Mapping[int, FloatArray]
    labels: Callable[[int], NDArray[np.int32]]
    cluster_weights: Mapping[int, FloatArray]
    n_samples: float
    n_features: int
    samples: SampleSource
    search: SearchOthers
    populations: Mapping[int, Sequence[FloatArray]] = field(default_factory=dict)
    seed: int = 0
    budget: Budget = field(default_factory=Budget)

    @cached_property
    def sums(self) -> dict[int, ClusterSums]:
        """The sums over the clusters of each solution, from one pass over the samples each."""
        return self.samples.sums({int(k): self.centers[int(k)] for k in self.k_values}, self.budget)

    def per_k(self, value: Callable[[int], float]) -> FloatArray:
        """Return a value for each number of clusters; NaN for 1, where most are not defined."""
        return np.array([value(int(k)) if k > 1 else np.nan for k in self.k_values])

    def among(self, values: FloatArray, allowed: NDArray[np.int64]) -> FloatArray:
        """Return values at the numbers of clusters that are allowed."""
        return values[np.searchsorted(self.k_values, allowed)]


class Verdict(NamedTuple):
    """The values of a criterion, and the number of clusters that it suggests.

    Parameters
    ----------
    values : (q,) array
        One for each number of clusters, NaN where it is not defined.
    choice : int or None
        The number of clusters it suggests; None if its rule finds none.
    extra : dict of str to (q,) array
        Further columns, such as standard errors.
    """

    values: FloatArray
    choice: int | None
    extra: dict[str, FloatArray]


@dataclass(frozen=True)
class Criterion:
    """A value for each number of clusters, and the rule that chooses one of them.

    Subclasses say what they are called and compute ``values``. A criterion of your own may also be
    any other object with ``name``, ``title`` and ``judge``.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    rule: ClassVar[str] = "maximum"
    """How ``choose`` chooses, in words."""

    @property
    def effort(self) -> float:
        """The share of ``max_time`` that it gets, where the search of the path gets 1."""
        return 0.0

    def values(self, evidence: Evidence) -> FloatArray:
        """Return a value for each number of clusters of the path, NaN where it is not defined."""
        raise NotImplementedError

    def choose(self, ks: Counts, values: FloatArray) -> int | None:
        """Return the number of clusters that values suggest."""
        return smallest(ks, values) if self.rule == "minimum" else largest(ks, values)

    def judge(self, evidence: Evidence, allowed: NDArray[np.int64]) -> Verdict:
        """Compute the values, and choose among the numbers of clusters that are allowed."""
        values = self.values(evidence)
        return Verdict(values, self.choose(allowed, evidence.among(values, allowed)), {})

    def of_repeats(
        self, evidence: Evidence, allowed: NDArray[np.int64], repeats: FloatArray
    ) -> Verdict:
        """Judge by the means of repeated measurements, one in each row, with standard errors."""
        values = repeats.mean(axis=0)
        errors = repeats.std(axis=0) / np.sqrt(len(repeats))
        choice = self.choose(allowed, evidence.among(values, allowed))
        return Verdict(values, choice, {f"{self.name}_error": errors})
