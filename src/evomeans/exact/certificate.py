"""Certificates, and their check: everything that one says is computed again."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.exact.cases import Limits
from evomeans.exact.points import (
    UNIT,
    Enclosure,
    WeightedPoints,
    inertia_of_samples,
    labels_of_samples,
)
from evomeans.exact.proofs import Finding, InvalidProofError, Proof
from evomeans.typing import FloatArray
from evomeans.wording import counted, duration_text, number_text, percent_text

OPTIMAL_GAP = 1e-6
"""The largest gap that is called optimal, whatever gap was asked for."""
TOLERANCE = 1e-9
"""Relative; what a bound may differ by on a machine with another linear algebra library."""


def closes(known: Enclosure, lower: float, gap: float) -> bool:
    """Whether a lower bound proves a clustering to be within a gap of the optimum."""
    return known.high - lower <= gap * known.high


def check_upper_bound(certificate: Certificate, points: WeightedPoints, known: Enclosure) -> None:
    """Refuse an upper bound that is not the inertia of the labels.

    Certificates of older versions have the inertia about means that were rounded to the grid of the
    coordinates, which is higher than about exact means by the square of that rounding.
    """
    n, d = len(points.places), points.values.shape[1]
    moved = 16 * UNIT * (1 + n * float(np.ptp(points.values, axis=0).max()))
    older = points.in_data_units(4 * float(points.weights.sum()) * d * moved**2)
    stated = certificate.upper_bound
    if not known.low <= stated <= known.high + older or (stated == 0) != (known.high == 0):
        raise InvalidProofError(
            f"The labels of the certificate have the inertia {known.value!r} for these samples, "
            f"not {stated!r}."
        )


def checked_samples(X: Any) -> FloatArray:
    """Return samples as float64, as `certify` sees them."""
    values = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(f"X.shape={values.shape} must be (n_samples, n_features).")
    return _finite_numbers(values, "X")


def checked_weights(sample_weight: Any, n_samples: int) -> FloatArray | None:
    """Return weights as float64, one for each sample, or None for equal ones."""
    if sample_weight is None:
        return None
    weights = _finite_numbers(np.asarray(sample_weight), "sample_weight")
    if weights.shape not in ((), (n_samples,)):
        raise ValueError(
            f"sample_weight.shape={weights.shape} must be ({n_samples},): one weight per sample."
        )
    weights = np.broadcast_to(weights, (n_samples,))
    if weights.min() < 0:
        raise ValueError(f"sample_weight must not be negative, got {weights.min()}.")
    if weights.max() == 0:
        raise ValueError("sample_weight must not be zero for all samples.")
    return weights


def _finite_numbers(values: Any, name: str) -> FloatArray:
    if values.dtype.kind not in "biufO":
        raise ValueError(f"{name} must have real numbers, got the type {values.dtype}.")
    try:
        numbers: FloatArray = np.ascontiguousarray(values, dtype=np.float64).reshape(values.shape)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must have real numbers: {error}.") from error
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} must not contain NaN or infinity.")
    return numbers


STATUSES = OPTIMAL, BOUNDED = "optimal", "bounded"
PROVEN, GAP_REACHED, EXHAUSTED = "proven_optimal", "gap_reached", "exhausted"
MAX_TIME, INTERRUPTED = "max_time", "interrupted"
STOP_REASONS = (PROVEN, GAP_REACHED, MAX_TIME, INTERRUPTED, EXHAUSTED)


@dataclass(frozen=True, repr=False)
class Certificate:
    """A lower bound for all clusterings, and the proof of it.

    Parameters
    ----------
    lower_bound : float
        No clustering of the samples into ``n_clusters`` clusters has a lower inertia.
    upper_bound : float
        Inertia of the best clustering known, about the means of its clusters.
    status : {"optimal", "bounded"}
        "optimal" if the gap is at most one millionth.
    method : {"direct", "separation", "relaxation", "plane", "parts"}
        How it was proven; docs/guide/proof.md explains them.
    reason : str
        Why this method was chosen.
    n_clusters, n_samples : int
        Size of the problem.
    n_features : int, optional
        Size of the problem. None in certificates of older versions.
    n_nodes, n_cuts : int
        Subproblems of the search tree, and inequalities with a price in the proof.
    seconds : float
        Running time of the proof.
    stop_reason : {"proven_optimal", "gap_reached", "max_time", "interrupted", "exhausted"}
        Why it ended: "gap_reached" if the gap that was asked for is larger than one millionth, and
        "exhausted" if the method cannot do better.
    labels : ndarray of shape (n_samples,), dtype int32
        The best clustering known.
    improved : bool
        Whether it is better than the one that was given.
    constrained : bool
        Whether the clustering satisfies constraints. The lower bound is that of all clusterings,
        so it holds for those that satisfy the constraints, too. Whether the labels satisfy them is
        not part of the statement.
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
    improved: bool = False
    n_features: int | None = None
    constrained: bool = False
    labels: NDArray[np.int32] | None = None
    proof: Proof | None = field(default=None, compare=False)

    @property
    def gap(self) -> float:
        """Upper bound on the relative gap, (inertia − lower bound) / inertia."""
        if self.upper_bound <= 0:
            return 0.0
        return max(0.0, (self.upper_bound - self.lower_bound) / self.upper_bound)

    @property
    def is_optimal(self) -> bool:
        """Whether the clustering is stated to be optimal; :meth:`verify` checks that."""
        return self.status == OPTIMAL and self.contradiction is None

    @property
    def contradiction(self) -> str | None:
        """A contradiction within the certificate, whatever the samples; None if there is none."""
        if not 0 <= self.lower_bound <= self.upper_bound < math.inf:
            return f"its bounds are {self.lower_bound!r} and {self.upper_bound!r}"
        if self.status not in STATUSES or self.stop_reason not in STOP_REASONS:
            return f"its status is {self.status!r}, and it ended by {self.stop_reason!r}"
        if self.status == OPTIMAL and not self.gap <= OPTIMAL_GAP + TOLERANCE:
            return f"it states that its clustering is optimal, with a gap of {self.gap!r}"
        if self.n_clusters < 1 or self.n_samples < 1:
            return f"it states {self.n_clusters!r} clusters of {self.n_samples!r} samples"
        if self.labels is None:
            return None
        if self.labels.shape != (self.n_samples,):
            return f"it has {self.labels.size} labels for {self.n_samples} samples"
        if self.labels.dtype.kind not in "iu" or not (
            0 <= self.labels.min() <= self.labels.max() < self.n_clusters
        ):
            return f"its labels are not within 0 and {self.n_clusters - 1}"
        return None

    def __repr__(self) -> str:
        parts = [
            self.status if self.contradiction is None else "not valid",
            f"lower bound {number_text(self.lower_bound, 10)}",
            f"inertia {number_text(self.upper_bound, 10)}",
            f"gap {percent_text(self.gap)}",
            counted(self.n_clusters, "cluster"),
            counted(self.n_samples, "sample"),
            f"method {self.method}",
            duration_text(self.seconds),
        ]
        return f"Certificate({', '.join(parts)})"

    def __str__(self) -> str:
        if self.contradiction is not None:
            return f"Not a valid certificate: {self.contradiction}."
        clusters = counted(self.n_clusters, "cluster")
        upper, lower = number_text(self.upper_bound, 10), number_text(self.lower_bound, 10)
        percent = f"{number_text(100 * self.gap, 2)} %"
        anyway = ", with or without constraints," if self.constrained else ""
        if self.status == OPTIMAL:
            text = (
                f"Proven optimal to within {percent}: no clustering into {clusters}{anyway} has an "
                f"inertia below {lower}."
            )
        else:
            known = "this one" if self.constrained else "the best one known"
            text = (
                f"Proven within {percent}: no clustering into {clusters}{anyway} has an inertia "
                f"below {lower}; {known} has {upper}."
            )
        work = [f"method {self.method}", duration_text(self.seconds)]
        if self.n_nodes:
            nodes, cuts = counted(self.n_nodes, "node"), counted(self.n_cuts, "cut")
            work[1:1] = [nodes, cuts]
        better = " It is better than the one that was given." if self.improved else ""
        return f"{text}{better} ({', '.join(work)})"

    def verify(self, X: Any, sample_weight: Any = None) -> float:
        """Compute everything again that the certificate says about some samples.

        The proof is evaluated, which gives the lower bound, and so is the inertia of the labels.
        Sizes, both bounds, gap, status and method must agree with them. What is not checked has no
        bearing on the statement: ``reason``, ``seconds``, ``n_nodes``, ``n_cuts``, ``improved``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.
        sample_weight : float or array-like of shape (n_samples,), optional
            Their weights.

        Returns
        -------
        lower_bound : float
            As it was recomputed.

        Raises
        ------
        InvalidProofError
            If the certificate is not true of these samples. It is a ValueError.
        ValueError
            If the samples or the weights are not finite real numbers of a matching shape.
        """
        if self.proof is None:
            raise InvalidProofError(
                "This certificate holds no proof, because it was read from a model file, which "
                "keeps the figures only. save_certificate keeps the proof."
            )
        if self.contradiction is not None:
            raise InvalidProofError(f"The certificate is not valid: {self.contradiction}.")
        values = checked_samples(X)
        n, d = values.shape
        weights = checked_weights(sample_weight, n)
        for stated, own, what in ((self.n_samples, n, "samples"), (self.n_features, d, "features")):
            if stated not in (None, own):
                text = f"The certificate is one for {stated} {what}, and X has {own}."
                raise InvalidProofError(text)
        if self.labels is None:
            raise InvalidProofError(
                "The certificate holds no labels, so its upper bound cannot be computed again."
            )
        points = WeightedPoints.of_samples(values, weights)
        known = inertia_of_samples(points, values, weights, self.labels)
        check_upper_bound(self, points, known)
        if self.method != self.proof.method:
            raise InvalidProofError(
                f"The certificate states the method {self.method!r} and holds a proof of the "
                f"method '{self.proof.method}'."
            )
        proven = points.in_data_units(self.proof.lower_bound(points, self.n_clusters))
        if not proven >= self.lower_bound * (1 - TOLERANCE):
            raise InvalidProofError(
                f"The proof proves a lower bound of {proven!r} for these samples, not "
                f"{self.lower_bound!r}."
            )
        if self.is_optimal and not closes(known, proven, OPTIMAL_GAP + 2 * TOLERANCE):
            raise InvalidProofError(
                f"The certificate states that its clustering is optimal, and {proven!r} is proven "
                f"for one of inertia {self.upper_bound!r}."
            )
        return proven


def certificate_of(
    points: WeightedPoints,
    finding: Finding,
    k: int,
    limits: Limits,
    X: FloatArray,
    sample_weight: FloatArray | None,
    labels: NDArray[np.integer],
    given: Enclosure,
    constrained: bool,
) -> Certificate:
    """Turn what was found, in the units of the points, into a certificate of the samples.

    ``given`` is the inertia of the given labels, which are kept if they satisfy constraints.
    """
    known = given
    if not constrained:
        found = labels_of_samples(points, X, finding.labels)
        other = inertia_of_samples(points, X, sample_weight, found)
        if points.is_whole or other.value <= given.value:
            labels, known = found, other
    lower = points.in_data_units(finding.lower)
    is_closed = closes(known, lower, min(limits.gap, OPTIMAL_GAP))
    status = OPTIMAL if is_closed else BOUNDED
    stop_reason = GAP_REACHED if closes(known, lower, limits.gap) else EXHAUSTED
    if status == OPTIMAL:
        stop_reason = PROVEN
    elif limits.interrupted():
        stop_reason = INTERRUPTED
    elif limits.seconds_left <= 0:
        stop_reason = MAX_TIME
    return Certificate(
        lower_bound=min(lower, known.value),
        upper_bound=known.value,
        status=status,
        method=str(finding.proof.method),
        reason=finding.reason,
        n_clusters=k,
        n_samples=len(points.places),
        n_features=points.values.shape[1],
        n_nodes=finding.n_nodes,
        n_cuts=finding.n_cuts,
        seconds=limits.seconds,
        stop_reason=stop_reason,
        improved=known.high < given.low * (1 - TOLERANCE),
        constrained=constrained,
        labels=labels.astype(np.int32),
        proof=finding.proof,
    )
