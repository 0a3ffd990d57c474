"""Criteria that need nothing but the path, or one pass over the samples for each k."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np

from evomeans.criteria.base import Counts, Criterion, Evidence, first_at_most, knee, last_of_a_run
from evomeans.metrics.agreement import centroid_index
from evomeans.metrics.compactness import bic, calinski_harabasz, davies_bouldin, silhouette_score
from evomeans.metrics.curves import hartigan_statistic, jump_statistic, krzanowski_lai_index
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
    the threshold. Only a search for the global minimum can be asked this: K-means differs from run
    to run where the optimum is plain.

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
    """The mean silhouette; see :func:`evomeans.metrics.compactness_score`.

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
