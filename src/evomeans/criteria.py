"""Criteria that suggest a number of clusters: a value for each k, and a rule that chooses one."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from evomeans.metrics import (
    bic,
    calinski_harabasz,
    davies_bouldin,
    gap_statistic,
    jump_statistic,
    krzanowski_lai_index,
    prediction_strength,
    silhouette_score,
)
from evomeans.metrics.sums import (
    ClusterSums,
    checked_weights,
    cluster_sums,
    dense,
    dense_blocks,
    two_distances,
)
from evomeans.typing import Flags, FloatArray, Indices, Integers, Labels

__all__ = [
    "BIC",
    "CRITERIA",
    "DEFAULT_CRITERIA",
    "DEFAULT_SELECT",
    "CalinskiHarabasz",
    "Criterion",
    "DaviesBouldin",
    "Evidence",
    "Gap",
    "Jump",
    "KrzanowskiLai",
    "PredictionStrength",
    "Silhouette",
    "SimplifiedSilhouette",
    "Verdict",
    "find_criterion",
]

# However little time there is, criteria look at so many samples.
FEWEST_SAMPLES = 1024
# Makes the samples that criteria are confined to differ from all that is drawn elsewhere.
SAMPLING = 3


def largest(ks: Integers, values: FloatArray) -> int | None:
    """Return the k with the largest value, the smallest k on ties."""
    return None if np.isnan(values).all() else int(ks[np.nanargmax(values)])


def first_of(ks: Integers, chosen: Flags) -> int | None:
    """Return the first k that is chosen."""
    return int(ks[chosen.argmax()]) if chosen.any() else None


def within_error_of_next(ks: Integers, values: FloatArray, errors: FloatArray) -> int | None:
    """Return the smallest k with valueₖ ≥ valueₖ₊₁ − errorₖ₊₁ (Tibshirani, Walther, Hastie)."""
    return first_of(ks, values[:-1] >= (values - errors)[1:])


def within_error_of_first_maximum(
    ks: Integers, values: FloatArray, errors: FloatArray
) -> int | None:
    """Return the smallest k within one error of the first local maximum (R's ``firstSEmax``)."""
    top = int(np.append(np.diff(values) <= 0.0, True).argmax())
    return first_of(ks, values[: top + 1] >= (values - errors)[top : top + 1])


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

        A trial with few of them does a share of the whole. Time grows with a power of the number.
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


@dataclass(frozen=True)
class SampleSource:
    """Samples in memory, dense or sparse, or those that only ``sum_up`` can look at."""

    X: Any
    sample_weight: FloatArray | None
    sum_up: Callable[[FloatArray], ClusterSums] | None = None
    """Sums up over the samples of each cluster, wherever they are, given the centres."""

    def sums(self, centers: Mapping[int, FloatArray], budget: Budget) -> dict[int, ClusterSums]:
        """Sum up over the samples of each cluster, or over as many of them as there is time for."""
        if self.sum_up is not None:
            return {k: self.sum_up(one) for k, one in centers.items()}
        weights = checked_weights(self.sample_weight, self.X.shape[0])
        counted = np.flatnonzero(weights)

        def of_some(n_samples: int) -> dict[int, ClusterSums]:
            X, own = self.X, weights
            if n_samples < len(counted):
                rng = np.random.default_rng([SAMPLING, n_samples])
                rows = counted[np.sort(rng.choice(len(counted), n_samples, replace=False))]
                X, own = X[rows], weights[rows]
            return {k: cluster_sums(X, one, own) for k, one in centers.items()}

        return of_some(budget.affords(of_some, len(counted)))

    def in_memory(self, purpose: str) -> tuple[Any, FloatArray | None]:
        """Return the samples and their weights, or say what cannot be done without them."""
        if self.sum_up is not None:
            raise ValueError(
                f"{purpose} needs the samples in memory, and X is a Dask collection. Leave this "
                "criterion out, or pass X.compute()."
            )
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
    seed : int
        Seed of criteria that draw random numbers.
    budget : Budget
        Time for passes over all samples.
    """

    k_values: Integers
    inertias: FloatArray
    centers: Mapping[int, FloatArray]
    labels: Callable[[int], Labels]
    cluster_weights: Mapping[int, FloatArray]
    n_samples: float
    n_features: int
    samples: SampleSource
    search: SearchOthers
    seed: int = 0
    budget: Budget = field(default_factory=Budget)

    @cached_property
    def sums(self) -> dict[int, ClusterSums]:
        """The sums over the clusters of each solution, from one pass over the samples each."""
        return self.samples.sums({int(k): self.centers[int(k)] for k in self.k_values}, self.budget)

    def per_k(self, value: Callable[[int], float]) -> FloatArray:
        """Return a value for each number of clusters; NaN for 1, where most are not defined."""
        return np.array([value(int(k)) if k > 1 else np.nan for k in self.k_values])

    def among(self, values: FloatArray, allowed: Integers) -> FloatArray:
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

    def choose(self, ks: Integers, values: FloatArray) -> int | None:
        """Return the number of clusters that values suggest."""
        return largest(ks, -values if self.rule == "minimum" else values)

    def judge(self, evidence: Evidence, allowed: Integers) -> Verdict:
        """Compute the values, and choose among the numbers of clusters that are allowed."""
        values = self.values(evidence)
        return Verdict(values, self.choose(allowed, evidence.among(values, allowed)), {})


class CalinskiHarabasz(Criterion):
    """The variance ratio; see :func:`evomeans.metrics.calinski_harabasz_score`."""

    name, title = "calinski_harabasz", "Calinski-Harabasz"

    def values(self, evidence: Evidence) -> FloatArray:
        """Compute the index from the inertias."""
        total, n = float(evidence.inertias[0]), evidence.n_samples
        pairs = zip(evidence.k_values, evidence.inertias, strict=True)
        return np.array([calinski_harabasz(float(one), total, n, int(k)) for k, one in pairs])


class BIC(Criterion):
    """Spherical Gaussians of a common variance; see :func:`evomeans.metrics.bic_score`."""

    name, title, rule = "bic", "BIC", "minimum"

    def values(self, evidence: Evidence) -> FloatArray:
        """Compute the criterion from inertias and sizes of clusters."""
        sizes, d = evidence.cluster_weights, evidence.n_features
        pairs = zip(evidence.k_values, evidence.inertias, strict=True)
        return np.array([bic(float(one), sizes[int(k)], d) for k, one in pairs])


@dataclass(frozen=True)
class Jump(Criterion):
    """Jumps of the distortion; see :func:`evomeans.metrics.jump_statistic`.

    Parameters
    ----------
    power : float, optional
        Y, by default half the number of features.
    """

    name, title = "jump", "Jump"
    power: float | None = None

    def values(self, evidence: Evidence) -> FloatArray:
        """Compute the jumps from the inertias."""
        n, d = evidence.n_samples, evidence.n_features
        return jump_statistic(evidence.inertias, evidence.k_values, n, d, self.power)


class KrzanowskiLai(Criterion):
    """Where the fall of the inertia ends; see :func:`evomeans.metrics.krzanowski_lai_index`."""

    name, title = "krzanowski_lai", "Krzanowski-Lai"

    def values(self, evidence: Evidence) -> FloatArray:
        """Compute the index from the inertias."""
        return krzanowski_lai_index(evidence.inertias, evidence.k_values, evidence.n_features)


class SimplifiedSilhouette(Criterion):
    """Distances to two centres; see :func:`evomeans.metrics.simplified_silhouette_score`."""

    name, title = "simplified_silhouette", "Simplified silhouette"

    # A pass over the samples for each k.
    effort = 0.05

    def values(self, evidence: Evidence) -> FloatArray:
        """Take the mean over the samples."""
        sums = evidence.sums
        return evidence.per_k(lambda k: float(sums[k].silhouettes.sum() / sums[k].weights.sum()))


class DaviesBouldin(Criterion):
    """Scatter over separation; see :func:`evomeans.metrics.davies_bouldin_score`."""

    name, title, rule = "davies_bouldin", "Davies-Bouldin", "minimum"

    # A pass over the samples for each k.
    effort = 0.05

    def values(self, evidence: Evidence) -> FloatArray:
        """Compute the index from sums over the samples."""
        sums, centers = evidence.sums, evidence.centers
        return evidence.per_k(lambda k: davies_bouldin(sums[k], centers[k]))


@dataclass(frozen=True)
class Silhouette(Criterion):
    """The mean silhouette; see :func:`evomeans.metrics.silhouette_score`.

    Parameters
    ----------
    sample_size : int, optional
        How many samples to take, if there are more; None takes all of them. The time grows with
        its square.
    """

    name, title = "silhouette", "Silhouette"
    sample_size: int | None = 10_000

    def __post_init__(self) -> None:
        if self.sample_size is not None and self.sample_size < 2:
            raise ValueError(f"sample_size={self.sample_size} must be at least 2, or None.")

    # All distances between the samples taken, for each k.
    effort = 0.25

    def values(self, evidence: Evidence) -> FloatArray:
        """Compute all distances between the samples taken."""
        X, weights = evidence.samples.in_memory("The silhouette")

        def mean(k: int, sample_size: int) -> float:
            labels = np.asarray(evidence.labels(k))
            if len(np.unique(labels)) < 2:
                return np.nan
            return silhouette_score(
                X, labels, weights, sample_size=sample_size, random_state=evidence.seed
            )

        last, share = int(evidence.k_values[-1]), 1.0 / len(evidence.k_values)
        wanted = min(X.shape[0], self.sample_size or X.shape[0])
        size = evidence.budget.affords(partial(mean, last), wanted, power=2, share=share)
        return evidence.per_k(lambda k: mean(k, size))


RULES = {"tibshirani": within_error_of_next, "first_maximum": within_error_of_first_maximum}


@dataclass(frozen=True)
class Gap(Criterion):
    """The gap to samples without clusters; see :func:`evomeans.metrics.gap_statistic`.

    References are drawn uniformly from the box around the samples in their principal axes, and a
    path of its own is searched for each, with the same effort as that of the samples.

    Parameters
    ----------
    n_references : int
        B, the number of references.
    choose_by : {"tibshirani", "first_maximum"}
        The smallest k with Gapₖ ≥ Gapₖ₊₁ − sₖ₊₁; or the smallest k within one standard error of the
        first local maximum.
    """

    name, title, rule = "gap", "Gap statistic", "smallest k within one standard error"
    n_references: int = 20
    choose_by: str = "tibshirani"

    def __post_init__(self) -> None:
        if self.n_references < 1:
            raise ValueError(f"n_references={self.n_references} must be at least 1.")
        if self.choose_by not in RULES:
            raise ValueError(f"choose_by={self.choose_by!r} must be one of {', '.join(RULES)}.")

    @property
    def effort(self) -> float:
        """A search for each reference."""
        return float(self.n_references)

    def judge(self, evidence: Evidence, allowed: Integers) -> Verdict:
        """Search the references."""
        X, weights = evidence.samples.in_memory("The gap statistic")
        draw = uniform_like(X, weights)
        ks = [int(k) for k in evidence.k_values]
        rows = []
        for number in range(self.n_references):
            rng = np.random.default_rng([evidence.seed, number])
            found = evidence.search(draw(rng), weights, ks, number)
            rows.append([found.inertias[k] for k in ks])
        gaps, errors = gap_statistic(evidence.inertias, rows)
        known = (evidence.among(one, allowed) for one in (gaps, errors))
        choice = RULES[self.choose_by](allowed, *known)
        return Verdict(gaps, choice, {"gap_error": errors})


def uniform_like(
    X: Any, sample_weight: FloatArray | None
) -> Callable[[np.random.Generator], FloatArray]:
    """Return what draws as many samples, uniformly in the box of their principal axes."""
    rows = dense(X)
    weights = checked_weights(sample_weight, len(rows))
    mean = np.average(rows, axis=0, weights=weights)
    counted = rows[weights > 0.0] - mean
    roots = np.sqrt(weights[weights > 0.0])[:, None]
    # Only as many axes as there are samples can be told; along others the box is flat.
    axes = np.linalg.svd(roots * counted, full_matrices=False)[2]
    places = counted @ axes.T
    low, high, shape = places.min(axis=0), places.max(axis=0), (len(rows), len(axes))
    dtype = X.dtype if X.dtype in (np.float32, np.float64) else np.dtype(np.float64)
    return lambda rng: (rng.uniform(low, high, shape) @ axes + mean).astype(dtype)


@dataclass(frozen=True)
class PredictionStrength(Criterion):
    """How well one half predicts the other; see :func:`evomeans.metrics.prediction_strength`.

    Parameters
    ----------
    n_divisions : int
        How often the samples are divided at random. The mean is taken.
    threshold : float
        What the mean has to reach.
    """

    name, title = "prediction_strength", "Prediction strength"
    rule = "largest k that reaches the threshold"
    n_divisions: int = 10
    threshold: float = 0.8

    def __post_init__(self) -> None:
        if self.n_divisions < 1:
            raise ValueError(f"n_divisions={self.n_divisions} must be at least 1.")

    @property
    def effort(self) -> float:
        """A search for each half."""
        return 2.0 * self.n_divisions

    def judge(self, evidence: Evidence, allowed: Integers) -> Verdict:
        """Search halves of the samples; the standard errors are those of the mean."""
        X, weights = evidence.samples.in_memory("Prediction strength")
        n = X.shape[0]
        ks = [int(k) for k in evidence.k_values if 1 < k <= n // 2]
        strengths = np.full((self.n_divisions, len(evidence.k_values)), np.nan)
        strengths[:, evidence.k_values == 1] = 1.0
        for number in range(self.n_divisions):
            order = np.random.default_rng([evidence.seed, 1, number]).permutation(n)
            halves = [np.sort(order[: n // 2]), np.sort(order[n // 2 :])]
            train, test = (
                evidence.search(
                    X[half], None if weights is None else weights[half], ks, 2 * number + place
                )
                for place, half in enumerate(halves)
            )
            for k in ks:
                own, predicted = (closest(X[halves[1]], one.centers[k]) for one in (test, train))
                strengths[number, evidence.k_values == k] = prediction_strength(own, predicted)
        values = strengths.mean(axis=0)
        errors = strengths.std(axis=0) / np.sqrt(self.n_divisions)
        choice = self.choose(allowed, evidence.among(values, allowed))
        return Verdict(values, choice, {"prediction_strength_error": errors})

    def choose(self, ks: Integers, values: FloatArray) -> int | None:
        """Return the largest k that reaches the threshold."""
        return first_of(ks[::-1], values[::-1] >= self.threshold)


def closest(X: Any, centers: FloatArray) -> Indices:
    """Return the closest centre of each sample."""
    places = np.asarray(centers, dtype=np.float64)
    blocks = dense_blocks(X, X.shape[1] + len(places))
    return np.concatenate([two_distances(block, places)[0] for _, block in blocks])


CRITERIA: Mapping[str, type[Criterion]] = {
    kind.name: kind
    for kind in (
        *(CalinskiHarabasz, BIC, SimplifiedSilhouette, Silhouette, DaviesBouldin, Jump),
        *(KrzanowskiLai, Gap, PredictionStrength),
    )
}
"""All criteria, in the order in which they are shown."""

DEFAULT_CRITERIA = (
    *("calinski_harabasz", "bic", "simplified_silhouette", "davies_bouldin"),
    *("jump", "krzanowski_lai"),
)
"""Those that cost next to nothing."""

DEFAULT_SELECT = "simplified_silhouette"
"""docs/laboratory/criteria.md has the measurement behind this choice."""


def find_criterion(name: object) -> Criterion:
    """Return the criterion of this name, or the one that was passed in."""
    if isinstance(name, str):
        if name in CRITERIA:
            return CRITERIA[name]()
        raise ValueError(f"criterion {name!r} is unknown; it must be one of {', '.join(CRITERIA)}.")
    if callable(getattr(name, "judge", None)) and isinstance(getattr(name, "name", None), str):
        found: Criterion = name  # type: ignore[assignment]
        return found
    raise TypeError(
        f"a criterion must be one of {', '.join(CRITERIA)}, or an object with name, title and "
        f"judge; got {type(name).__name__}."
    )
