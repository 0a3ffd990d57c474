"""Criteria that search other samples again: references, halves, or bootstrap samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from evomeans.criteria.base import (
    Counts,
    Criterion,
    Evidence,
    Verdict,
    first_within_error,
    last_at_least,
    within_error_of_first_maximum,
)
from evomeans.metrics.agreement import clustering_instability, prediction_strength
from evomeans.metrics.curves import gap_statistic
from evomeans.metrics.sums import checked_weights, dense_blocks, two_distances
from evomeans.typing import FloatArray

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
