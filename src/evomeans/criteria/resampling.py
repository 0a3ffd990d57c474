"""Criteria that search halves of the samples, or samples of them, again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from evomeans.criteria.base import Evidence, Verdict
from evomeans.criteria.free import Counts, among
from evomeans.criteria.rules import last_at_least, smallest
from evomeans.metrics.checks import FloatArray, dense_blocks
from evomeans.metrics.stability import clustering_instability, prediction_strength
from evomeans.metrics.sums import two_distances


@dataclass(frozen=True)
class PredictionStrength:
    """How well one half predicts the other; see :func:`evomeans.metrics.prediction_strength`.

    Parameters
    ----------
    n_divisions : int
        How often the samples are divided at random. The mean is taken.
    threshold : float
        What the mean has to reach.
    """

    n_divisions: int = 10
    threshold: float = 0.8
    name: ClassVar[str] = "prediction_strength"
    title: ClassVar[str] = "Prediction strength"
    is_costly: ClassVar[bool] = True

    @property
    def rule(self) -> str:
        """How it chooses."""
        return f"largest k that reaches {self.threshold:g}"

    def __post_init__(self) -> None:
        if self.n_divisions < 1:
            raise ValueError(f"n_divisions={self.n_divisions} must be at least 1.")

    def judge(self, evidence: Evidence, allowed: Counts) -> Verdict:
        """Search halves of the samples."""
        X, weights = evidence.samples.in_memory("Prediction strength")
        n = X.shape[0]
        ks = searchable(evidence, n // 2)
        strengths = np.full((self.n_divisions, len(evidence.k_values)), np.nan)
        for number in range(self.n_divisions):
            order = np.random.default_rng([evidence.seed, 1, number]).permutation(n)
            halves = [np.sort(order[: n // 2]), np.sort(order[n // 2 :])]
            train, test = (
                evidence.search(X[half], of_rows(weights, half), ks, 2 * number + place)
                for place, half in enumerate(halves)
            )
            for place, k in enumerate(evidence.k_values.tolist()):
                if k == 1:
                    strengths[number, place] = 1.0
                elif k in ks:
                    own = closest(X[halves[1]], test.centers[k])
                    predicted = closest(X[halves[1]], train.centers[k])
                    strengths[number, place] = prediction_strength(own, predicted)
        values = strengths.mean(axis=0)
        errors = strengths.std(axis=0) / np.sqrt(self.n_divisions)
        choice = last_at_least(allowed, among(evidence, values, allowed), self.threshold)
        return Verdict(values, choice, {"prediction_strength_error": errors})


@dataclass(frozen=True)
class Instability:
    """How much resampling changes; see :func:`evomeans.metrics.clustering_instability`.

    Parameters
    ----------
    n_pairs : int
        Pairs of bootstrap samples. The mean over them is taken.
    normalized : bool
        Whether what unrelated clusterings would have is divided out. Otherwise the value falls
        with the number of clusters for nothing.
    """

    n_pairs: int = 10
    normalized: bool = True
    name: ClassVar[str] = "instability"
    title: ClassVar[str] = "Bootstrap instability"
    rule: ClassVar[str] = "minimum"
    is_costly: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.n_pairs < 1:
            raise ValueError(f"n_pairs={self.n_pairs} must be at least 1.")

    def judge(self, evidence: Evidence, allowed: Counts) -> Verdict:
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
            for place, k in enumerate(evidence.k_values.tolist()):
                if k > 1 and k in ks:
                    labels = [closest(X, one.centers[k]) for one in found]
                    values[number, place] = clustering_instability(
                        *labels, normalized=self.normalized
                    )
        mean = values.mean(axis=0)
        errors = values.std(axis=0) / np.sqrt(self.n_pairs)
        choice = smallest(allowed, among(evidence, mean, allowed))
        return Verdict(mean, choice, {"instability_error": errors})


def searchable(evidence: Evidence, n_samples: int) -> list[int]:
    """Return the numbers of clusters, but for 1, that fewer samples allow."""
    return [int(k) for k in evidence.k_values if 1 < k <= n_samples]


def of_rows(weights: FloatArray | None, rows: NDArray[np.intp]) -> FloatArray | None:
    """Return the weights of some rows."""
    return None if weights is None else weights[rows]


def closest(X: Any, centers: FloatArray) -> NDArray[np.intp]:
    """Return the closest centre of each sample."""
    places = np.asarray(centers, dtype=np.float64)
    labels = np.empty(X.shape[0], np.intp)
    for rows, block in dense_blocks(X, X.shape[1] + len(places)):
        labels[rows] = two_distances(block, places)[0]
    return labels
