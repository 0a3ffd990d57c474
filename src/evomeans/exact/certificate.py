"""What has been proven about a clustering, in figures and in words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.exact.certify import Finding
from evomeans.exact.limits import Limits
from evomeans.exact.points import Floats, WeightedPoints
from evomeans.exact.proofs import Proof, check_proof
from evomeans.exact.tree_proof import InvalidProofError
from evomeans.wording import counted, duration_text, number_text

OPTIMAL, BOUNDED, STATISTICAL = "optimal", "bounded", "statistical"
STATUSES = (OPTIMAL, BOUNDED, STATISTICAL)
PROVEN, MAX_TIME, INTERRUPTED, EXHAUSTED = (
    "proven_optimal",
    "max_time",
    "interrupted",
    "exhausted",
)
STOP_REASONS = (PROVEN, MAX_TIME, INTERRUPTED, EXHAUSTED)
TOLERANCE = 1e-9
"""Relative; what a bound may differ by on a machine with another linear algebra library."""


@dataclass(frozen=True)
class Certificate:
    """How far a clustering can be from the optimum at most, and why.

    Parameters
    ----------
    lower_bound : float
        No clustering of the samples into ``n_clusters`` clusters has a lower inertia.
    upper_bound : float
        Inertia of the best clustering known, about the means of its clusters.
    status : {"optimal", "bounded", "statistical"}
        "optimal" if the gap is at most the one that was asked for. "statistical" if the lower bound
        was estimated from a sample and holds with the ``confidence``; that is not a proof.
    method : {"direct", "separation", "relaxation", "plane", "parts"}
        How it was proven; docs/guide/proof.md explains them.
    reason : str
        Why this method was chosen.
    n_clusters, n_samples : int
        Of the problem.
    n_nodes, n_cuts : int
        Subproblems of the search tree, and inequalities with a price in the proof.
    seconds : float
        That the proof took.
    stop_reason : {"proven_optimal", "max_time", "interrupted", "exhausted"}
        Why it ended; "exhausted" if the method cannot do better.
    confidence : float, optional
        Of a statistical bound, such as 0.99.
    labels : ndarray of shape (n_samples,), dtype int32
        The best clustering known.
    improved : bool
        Whether it is better than the one that was given.
    proof : object, optional
        What :meth:`verify` evaluates. None if the certificate comes from a model file.
    """

    lower_bound: float
    upper_bound: float
    status: str
    method: str
    reason: str
    n_clusters: int
    n_samples: int
    n_nodes: int = 0
    n_cuts: int = 0
    seconds: float = 0.0
    stop_reason: str = PROVEN
    confidence: float | None = None
    improved: bool = False
    labels: NDArray[np.int32] | None = field(default=None, repr=False)
    proof: Proof | None = field(default=None, repr=False, compare=False)

    @property
    def gap(self) -> float:
        """The share of the inertia by which the optimum can be lower at most."""
        if self.upper_bound <= 0:
            return 0.0
        return max(0.0, (self.upper_bound - self.lower_bound) / self.upper_bound)

    @property
    def is_optimal(self) -> bool:
        """Whether the clustering is proven to be optimal, within the gap that was asked for."""
        return self.status == OPTIMAL

    def __str__(self) -> str:
        clusters = counted(self.n_clusters, "cluster")
        upper, lower = number_text(self.upper_bound, 10), number_text(self.lower_bound, 10)
        percent = f"{number_text(100 * self.gap, 2)} %"
        if self.status == OPTIMAL:
            text = (
                f"Proven optimal: no clustering into {clusters} has a lower inertia than {upper}, "
                f"but for {percent} at most."
            )
        elif self.status == STATISTICAL:
            share = f"{100 * (self.confidence or 0):g} %"
            text = (
                f"Statistical, not proven: with a confidence of {share}, no clustering into "
                f"{clusters} has an inertia below {lower}, {percent} below {upper}."
            )
        else:
            text = (
                f"Proven within {percent}: no clustering into {clusters} has an inertia below "
                f"{lower}; the best one known has {upper}."
            )
        work = [f"method {self.method}", duration_text(self.seconds)]
        if self.n_nodes:
            nodes, cuts = counted(self.n_nodes, "node"), counted(self.n_cuts, "cut")
            work[1:1] = [nodes, cuts]
        better = " It is better than the one that was given." if self.improved else ""
        return f"{text}{better} ({', '.join(work)})"

    def verify(self, X: NDArray[Any], sample_weight: Floats | None = None) -> float:
        """Evaluate the final inequalities of the proof again, and nothing else.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.
        sample_weight : array-like of shape (n_samples,), optional
            Their weights.

        Returns
        -------
        lower_bound : float
            As it was recomputed.

        Raises
        ------
        InvalidProofError
            If the proof does not prove ``lower_bound`` for these samples. It is a ValueError.
        """
        if self.proof is None or self.status == STATISTICAL:
            raise InvalidProofError(
                "This certificate holds no proof: it is statistical, or was read from a model "
                "file, which keeps the figures only. save_certificate keeps the proof."
            )
        points = WeightedPoints.of_samples(np.asarray(X), sample_weight)
        bound = points.in_data_units(check_proof(points, self.n_clusters, self.proof))
        if bound < self.lower_bound * (1 - TOLERANCE):
            raise InvalidProofError(
                f"The proof proves a lower bound of {bound!r} for these samples, not "
                f"{self.lower_bound!r}."
            )
        return bound


def certificate_of(
    points: WeightedPoints,
    finding: Finding,
    k: int,
    given: float,
    upper: float,
    *,
    gap: float,
    reason: str,
    limits: Limits,
    labels: NDArray[np.int32],
) -> Certificate:
    """Turn what was found, in the units of the points, into a certificate.

    ``given`` and ``upper`` are the inertias of the given and of the best clustering of all samples,
    in the units of the data. They are zero only if the exact inertia is.
    """
    lower = min(points.in_data_units(finding.lower), upper)
    closed = upper - lower <= gap * upper
    status = STATISTICAL if finding.confidence else OPTIMAL if closed else BOUNDED
    return Certificate(
        lower_bound=lower,
        upper_bound=upper,
        status=status,
        method=str(finding.method),
        reason=reason,
        n_clusters=k,
        n_samples=len(points.places),
        n_nodes=finding.n_nodes,
        n_cuts=finding.n_cuts,
        seconds=limits.seconds,
        stop_reason=PROVEN if status == OPTIMAL else _early_end(limits),
        confidence=finding.confidence,
        improved=upper < given * (1 - TOLERANCE),
        labels=labels,
        proof=finding.proof,
    )


def _early_end(limits: Limits) -> str:
    """Say why a proof ended before the bounds met."""
    if limits.interrupted():
        return INTERRUPTED
    return MAX_TIME if limits.seconds_left <= 0 else EXHAUSTED
