"""Criteria that cost nothing once the path is there, or one pass over the samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from evomeans.criteria.base import Evidence, Verdict
from evomeans.criteria.rules import first_at_most, knee, largest, smallest
from evomeans.metrics.checks import FloatArray
from evomeans.metrics.compactness import bic, calinski_harabasz, davies_bouldin
from evomeans.metrics.curves import hartigan_statistic, jump_statistic, krzanowski_lai_index

Counts = NDArray[np.int64]


def among(evidence: Evidence, values: FloatArray, allowed: Counts) -> FloatArray:
    """Return values at the numbers of clusters that are allowed."""
    return values[np.searchsorted(evidence.k_values, allowed)]


@dataclass(frozen=True)
class CalinskiHarabasz:
    """The variance ratio; see :func:`evomeans.metrics.calinski_harabasz_score`."""

    name: ClassVar[str] = "calinski_harabasz"
    title: ClassVar[str] = "Calinski-Harabasz"
    rule: ClassVar[str] = "maximum"
    is_costly: ClassVar[bool] = False

    def judge(self, evidence: Evidence, allowed: Counts) -> Verdict:
        """Compute the index from the inertias."""
        total = float(evidence.inertias[0])
        values = np.array(
            [
                calinski_harabasz(float(inertia), total, evidence.n_samples, int(k))
                for k, inertia in zip(evidence.k_values, evidence.inertias, strict=True)
            ]
        )
        return Verdict(values, largest(allowed, among(evidence, values, allowed)), {})


@dataclass(frozen=True)
class BIC:
    """Spherical Gaussians of a common variance; see :func:`evomeans.metrics.bic_score`."""

    name: ClassVar[str] = "bic"
    title: ClassVar[str] = "BIC"
    rule: ClassVar[str] = "minimum"
    is_costly: ClassVar[bool] = False

    def judge(self, evidence: Evidence, allowed: Counts) -> Verdict:
        """Compute the criterion from inertias and sizes of clusters."""
        values = np.array(
            [
                bic(float(inertia), evidence.cluster_weights[int(k)], evidence.n_features)
                for k, inertia in zip(evidence.k_values, evidence.inertias, strict=True)
            ]
        )
        return Verdict(values, smallest(allowed, among(evidence, values, allowed)), {})


@dataclass(frozen=True)
class Jump:
    """Jumps of the distortion; see :func:`evomeans.metrics.jump_statistic`.

    Parameters
    ----------
    power : float, optional
        Y, by default half the number of features.
    """

    power: float | None = None
    name: ClassVar[str] = "jump"
    title: ClassVar[str] = "Jump"
    rule: ClassVar[str] = "maximum"
    is_costly: ClassVar[bool] = False

    def judge(self, evidence: Evidence, allowed: Counts) -> Verdict:
        """Compute the jumps from the inertias."""
        values = jump_statistic(
            evidence.inertias,
            evidence.k_values,
            evidence.n_samples,
            evidence.n_features,
            self.power,
        )
        return Verdict(values, largest(allowed, among(evidence, values, allowed)), {})


@dataclass(frozen=True)
class Hartigan:
    """Whether another cluster is worth it; see :func:`evomeans.metrics.hartigan_statistic`.

    Parameters
    ----------
    threshold : float
        Above it, it is.
    """

    threshold: float = 10.0
    name: ClassVar[str] = "hartigan"
    title: ClassVar[str] = "Hartigan"
    is_costly: ClassVar[bool] = False

    @property
    def rule(self) -> str:
        """How it chooses."""
        return f"smallest k at or below {self.threshold:g}"

    def judge(self, evidence: Evidence, allowed: Counts) -> Verdict:
        """Compute the statistic from the inertias."""
        values = hartigan_statistic(evidence.inertias, evidence.k_values, evidence.n_samples)
        chosen = first_at_most(allowed, among(evidence, values, allowed), self.threshold)
        return Verdict(values, chosen, {})


@dataclass(frozen=True)
class KrzanowskiLai:
    """Where the fall of the inertia ends; see :func:`evomeans.metrics.krzanowski_lai_index`."""

    name: ClassVar[str] = "krzanowski_lai"
    title: ClassVar[str] = "Krzanowski-Lai"
    rule: ClassVar[str] = "maximum"
    is_costly: ClassVar[bool] = False

    def judge(self, evidence: Evidence, allowed: Counts) -> Verdict:
        """Compute the index from the inertias."""
        values = krzanowski_lai_index(evidence.inertias, evidence.k_values, evidence.n_features)
        return Verdict(values, largest(allowed, among(evidence, values, allowed)), {})


@dataclass(frozen=True)
class SimplifiedSilhouette:
    """Distances to two centres; see :func:`evomeans.metrics.simplified_silhouette_score`."""

    name: ClassVar[str] = "simplified_silhouette"
    title: ClassVar[str] = "Simplified silhouette"
    rule: ClassVar[str] = "maximum"
    is_costly: ClassVar[bool] = False

    def judge(self, evidence: Evidence, allowed: Counts) -> Verdict:
        """Take the mean over the samples, in one pass."""

        def value(k: int) -> float:
            sums = evidence.sums[k]
            return float(sums.silhouettes.sum() / sums.weights.sum())

        values = evidence.per_k(value)
        return Verdict(values, largest(allowed, among(evidence, values, allowed)), {})


@dataclass(frozen=True)
class DaviesBouldin:
    """Scatter over separation; see :func:`evomeans.metrics.davies_bouldin_score`."""

    name: ClassVar[str] = "davies_bouldin"
    title: ClassVar[str] = "Davies-Bouldin"
    rule: ClassVar[str] = "minimum"
    is_costly: ClassVar[bool] = False

    def judge(self, evidence: Evidence, allowed: Counts) -> Verdict:
        """Compute the index from sums over the samples."""
        values = evidence.per_k(
            lambda k: davies_bouldin(evidence.sums[k], np.asarray(evidence.centers[k], np.float64))
        )
        return Verdict(values, smallest(allowed, among(evidence, values, allowed)), {})


@dataclass(frozen=True)
class Elbow:
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

    name: ClassVar[str] = "elbow"
    title: ClassVar[str] = "Elbow (not recommended)"
    rule: ClassVar[str] = "farthest below the line between the ends"
    is_costly: ClassVar[bool] = False

    def judge(self, evidence: Evidence, allowed: Counts) -> Verdict:
        """Look at the inertias."""
        values = evidence.inertias.copy()
        return Verdict(values, knee(allowed, among(evidence, values, allowed)), {})
