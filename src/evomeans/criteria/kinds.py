"""The criteria: those of the path alone, of a pass over the samples, and of further searches."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from evomeans.criteria.base import (
    Counts,
    Criterion,
    Evidence,
    Verdict,
    first_at_most,
    first_within_error,
    knee,
    last_at_least,
    last_of_a_run,
    within_error_of_first_maximum,
)
from evomeans.metrics.agreement import (
    centroid_index,
    clustering_instability,
    prediction_strength,
)
from evomeans.metrics.compactness import bic, calinski_harabasz, davies_bouldin, silhouette_score
from evomeans.metrics.curves import (
    gap_statistic,
    hartigan_statistic,
    jump_statistic,
    krzanowski_lai_index,
)
from evomeans.metrics.sums import checked_weights, dense_blocks, two_distances
from evomeans.typing import FloatArray


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


@dataclass(frozen=True)
class Hartigan(Criterion):
    """Whether another cluster is worth it; see :func:`evomeans.metrics.hartigan_statistic`.

    Parameters
    ----------
    threshold : float
        Another cluster is worth it above this value.
    """

    name, title, rule = "hartigan", "Hartigan", "smallest k at or below the threshold"
    threshold: float = 10.0

    def values(self, evidence: Evidence) -> FloatArray:
        """Compute the statistic from the inertias."""
        return hartigan_statistic(evidence.inertias, evidence.k_values, evidence.n_samples)

    def choose(self, ks: Counts, values: FloatArray) -> int | None:
        """Return the smallest k at or below the threshold."""
        return first_at_most(ks, values, self.threshold)


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
        return evidence.per_k(lambda k: davies_bouldin(sums[k], np.asarray(centers[k], np.float64)))


class Elbow(Criterion):
    """The knee of the inertia itself. It has no theory behind it, and depends on the range of k.

    The k at which the curve, with both axes scaled to [0, 1], is farthest below the line between
    its ends (as in Kneedle [1]_). It is here to be compared with, not to be trusted [2]_.

    References
    ----------
    .. [1] V. Satopää, J. Albrecht, D. Irwin and B. Raghavan, "Finding a 'kneedle' in a haystack:
       Detecting knee points in system behavior", ICDCS Workshops, 166-171, 2011.
    .. [2] E. Schubert, "Stop using the elbow criterion for k-means and how to choose the number of
       clusters instead", ACM SIGKDD Explorations 25(1), 36-42, 2023.
    """

    name, title = "elbow", "Elbow (not recommended)"
    rule = "farthest below the line between the ends"

    def values(self, evidence: Evidence) -> FloatArray:
        """Return the inertias."""
        return evidence.inertias.copy()

    def choose(self, ks: Counts, values: FloatArray) -> int | None:
        """Return the knee."""
        return knee(ks, values)


@dataclass(frozen=True)
class Agreement(Criterion):
    """The share of clusters that independent populations of the search have in common.

    The two sweeps over the path are independent of each other. With the centroid index CI, the
    number of clusters that one solution has and the other one lacks, the value is the mean over
    pairs of

        1 − CI/k.

    If populations that search well find different clusters, there are more clusters than the
    samples can tell apart. So the rule takes the largest k such that it and all smaller ones reach
    the threshold. This takes a search for the global minimum, because runs of K-means differ
    even where the optimum is obvious.

    Parameters
    ----------
    threshold : float
        1 asks for the same clusters.
    """

    name, title = "agreement", "Agreement of populations"
    rule = "last k before populations disagree"
    threshold: float = 1.0

    def values(self, evidence: Evidence) -> FloatArray:
        """Compare the best solutions of the populations."""

        def share(k: int) -> float:
            pairs = list(combinations(evidence.populations.get(k, ()), 2))
            if not pairs:
                return np.nan
            return float(np.mean([1.0 - centroid_index(a, b) / k for a, b in pairs]))

        return evidence.per_k(share)

    def choose(self, ks: Counts, values: FloatArray) -> int | None:
        """Return the largest k before the first at which populations disagree."""
        return last_of_a_run(ks, values, self.threshold)


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


# Criteria that search other samples again: references, halves, or bootstrap samples.

RULES = ("tibshirani", "first_maximum")


@dataclass(frozen=True)
class SearchingCriterion(Criterion):
    """A criterion that searches other samples as often as the field called ``repeated`` says."""

    repeated: ClassVar[str]
    n_searched: ClassVar[int] = 2
    """Sets of samples each time."""

    def __post_init__(self) -> None:
        if (count := getattr(self, self.repeated)) < 1:
            raise ValueError(f"{self.repeated}={count} must be at least 1.")

    @property
    def effort(self) -> float:
        """A search for each of the other sets of samples."""
        return float(self.n_searched * getattr(self, self.repeated))


@dataclass(frozen=True)
class Gap(SearchingCriterion):
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
    repeated, n_searched = "n_references", 1
    n_references: int = 20
    choose_by: str = "tibshirani"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.choose_by not in RULES:
            raise ValueError(f"choose_by={self.choose_by!r} must be one of {', '.join(RULES)}.")

    def judge(self, evidence: Evidence, allowed: NDArray[np.int64]) -> Verdict:
        """Search the references."""
        X, weights = evidence.samples.in_memory("The gap statistic")
        box = PrincipalBox.around(X, weights)
        ks = [int(k) for k in evidence.k_values]
        rows = []
        for number in range(self.n_references):
            rng = np.random.default_rng([evidence.seed, number])
            found = evidence.search(box.draw(rng), weights, ks, number)
            rows.append([found.inertias[k] for k in ks])
        gaps, errors = gap_statistic(evidence.inertias, rows)
        is_first = self.choose_by == "tibshirani"
        choose = first_within_error if is_first else within_error_of_first_maximum
        choice = choose(allowed, *(evidence.among(one, allowed) for one in (gaps, errors)))
        return Verdict(gaps, choice, {"gap_error": errors})


@dataclass(frozen=True)
class PrincipalBox:
    """The smallest box around samples whose sides are along their principal axes."""

    mean: FloatArray
    # (d, d). One in each row.
    axes: FloatArray
    # (d,). Ends of the sides, from the mean.
    low: FloatArray
    high: FloatArray
    n_samples: int
    dtype: np.dtype[Any]

    @classmethod
    def around(cls, X: Any, sample_weight: FloatArray | None) -> PrincipalBox:
        """Return the box of dense samples; sparse ones are made dense."""
        rows = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
        weights = checked_weights(sample_weight, len(rows))
        mean = np.average(rows, axis=0, weights=weights)
        counted = rows[weights > 0.0] - mean
        roots = np.sqrt(weights[weights > 0.0])[:, None]
        # Only as many axes as there are samples can be told; along others the box is flat.
        axes = np.linalg.svd(roots * counted, full_matrices=False)[2]
        places = counted @ axes.T
        dtype = X.dtype if X.dtype in (np.float32, np.float64) else np.dtype(np.float64)
        return cls(mean, axes, places.min(axis=0), places.max(axis=0), len(rows), dtype)

    def draw(self, rng: np.random.Generator) -> FloatArray:
        """Draw as many samples as there were, uniformly."""
        places = rng.uniform(self.low, self.high, (self.n_samples, len(self.low)))
        return (places @ self.axes + self.mean).astype(self.dtype)


@dataclass(frozen=True)
class PredictionStrength(SearchingCriterion):
    """How well one half predicts the other; see :func:`evomeans.metrics.prediction_strength`.

    Parameters
    ----------
    n_divisions : int
        How often the samples are divided at random. The mean is taken.
    threshold : float
        What the mean has to reach.
    """

    name, title = "prediction_strength", "Prediction strength"
    rule, repeated = "largest k that reaches the threshold", "n_divisions"
    n_divisions: int = 10
    threshold: float = 0.8

    def judge(self, evidence: Evidence, allowed: NDArray[np.int64]) -> Verdict:
        """Search halves of the samples."""
        X, weights = evidence.samples.in_memory("Prediction strength")
        n = X.shape[0]
        ks = searchable(evidence, n // 2)
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
        return self.of_repeats(evidence, allowed, strengths)

    def choose(self, ks: Counts, values: FloatArray) -> int | None:
        """Return the largest k that reaches the threshold."""
        return last_at_least(ks, values, self.threshold)


@dataclass(frozen=True)
class Instability(SearchingCriterion):
    """How much resampling changes; see :func:`evomeans.metrics.clustering_instability`.

    Parameters
    ----------
    n_pairs : int
        Pairs of bootstrap samples. The mean over them is taken.
    normalized : bool
        Whether to divide by the value of unrelated clusterings. Otherwise the value falls as the
        number of clusters grows, whatever the samples are.
    """

    name, title, rule = "instability", "Bootstrap instability", "minimum"
    repeated = "n_pairs"
    n_pairs: int = 10
    normalized: bool = True

    def judge(self, evidence: Evidence, allowed: NDArray[np.int64]) -> Verdict:
        """Search bootstrap samples."""
        X, weights = evidence.samples.in_memory("Instability")
        n = X.shape[0]
        values = np.full((self.n_pairs, len(evidence.k_values)), np.nan)
        for number in range(self.n_pairs):
            rng = np.random.default_rng([evidence.seed, 2, number])
            # Rows that are drawn more than once are rows of more weight.
            drawn = [np.bincount(rng.integers(n, size=n), minlength=n) for _ in range(2)]
            ks = searchable(evidence, min(int(np.count_nonzero(one)) for one in drawn))
            found = []
            for place, counts in enumerate(drawn):
                rows = np.flatnonzero(counts)
                own: FloatArray = counts[rows].astype(np.float64)
                own *= 1.0 if weights is None else weights[rows]
                found.append(evidence.search(X[rows], own, ks, 2 * number + place))
            for k in ks:
                values[number, evidence.k_values == k] = clustering_instability(
                    *(closest(X, one.centers[k]) for one in found), normalized=self.normalized
                )
        return self.of_repeats(evidence, allowed, values)


def searchable(evidence: Evidence, n_samples: int) -> list[int]:
    """Return the numbers of clusters, but for 1, that fewer samples allow."""
    return [int(k) for k in evidence.k_values if 1 < k <= n_samples]


def closest(X: Any, centers: FloatArray) -> NDArray[np.intp]:
    """Return the closest centre of each sample."""
    places = np.asarray(centers, dtype=np.float64)
    labels = np.empty(X.shape[0], np.intp)
    for rows, block in dense_blocks(X, X.shape[1] + len(places)):
        labels[rows] = two_distances(block, places)[0]
    return labels
