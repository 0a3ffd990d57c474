"""The check of a certificate: everything that it says is computed again from the samples.

Nothing in a certificate is believed. The proof is evaluated again, which gives a lower bound, and
so are the labels, which give an inertia. What the certificate states must agree with both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from evomeans.exact.inertia import Enclosure, inertia_of_samples
from evomeans.exact.plane_proof import PlaneProof
from evomeans.exact.points import UNIT, Floats, WeightedPoints
from evomeans.exact.proofs import (
    DirectProof,
    Method,
    PartsProof,
    Proof,
    SeparationProof,
    check_proof,
)
from evomeans.exact.tree_proof import InvalidProofError, TreeProof

if TYPE_CHECKING:
    from evomeans.exact.certificate import Certificate

OPTIMAL_GAP = 1e-6
"""The largest gap that is called optimal, whatever gap was asked for."""
TOLERANCE = 1e-9
"""Relative; what a bound may differ by on a machine with another linear algebra library."""
METHODS: dict[type, Method] = {
    DirectProof: Method.DIRECT,
    SeparationProof: Method.SEPARATION,
    TreeProof: Method.RELAXATION,
    PlaneProof: Method.PLANE,
    PartsProof: Method.PARTS,
}


def verified_bound(
    certificate: Certificate, proof: Proof, X: Any, sample_weight: Any = None
) -> float:
    """Return the lower bound that a certificate proves; refuse one that states anything else."""
    values = checked_samples(X)
    weights = checked_weights(sample_weight, len(values))
    check_shape(certificate, values)
    points = WeightedPoints.of_samples(values, weights)
    known = inertia_of_samples(points, values, weights, checked_labels(certificate))
    check_upper_bound(certificate, points, known)
    if certificate.method != METHODS[type(proof)]:
        raise InvalidProofError(
            f"The certificate states the method {certificate.method!r} and holds a proof of the "
            f"method '{METHODS[type(proof)]}'."
        )
    proven = points.in_data_units(check_proof(points, certificate.n_clusters, proof))
    if not proven >= certificate.lower_bound * (1 - TOLERANCE):
        raise InvalidProofError(
            f"The proof proves a lower bound of {proven!r} for these samples, not "
            f"{certificate.lower_bound!r}."
        )
    if certificate.is_optimal and not closes(known, proven, OPTIMAL_GAP + 2 * TOLERANCE):
        raise InvalidProofError(
            f"The certificate states that its clustering is optimal, and {proven!r} is proven for "
            f"one of inertia {certificate.upper_bound!r}."
        )
    return proven


def closes(known: Enclosure, lower: float, gap: float) -> bool:
    """Whether a lower bound proves a clustering to be within a gap of the optimum."""
    return known.high - lower <= gap * known.high


def check_shape(certificate: Certificate, values: Floats) -> None:
    """Refuse a certificate of samples with another shape."""
    n, d = values.shape
    if n != certificate.n_samples:
        raise InvalidProofError(
            f"The certificate is one for {certificate.n_samples} samples, and X has {n}."
        )
    if certificate.n_features not in (None, d):
        raise InvalidProofError(
            f"The certificate is one for {certificate.n_features} features, and X has {d}."
        )


def checked_labels(certificate: Certificate) -> Any:
    """Return the labels of a certificate, without which its upper bound would be hearsay."""
    if certificate.labels is None:
        raise InvalidProofError(
            "The certificate holds no labels, so its upper bound cannot be computed again."
        )
    return certificate.labels


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


def checked_samples(X: Any) -> Floats:
    """Return samples as float64, as `certify` sees them."""
    values = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(f"X.shape={values.shape} must be (n_samples, n_features).")
    return _finite_numbers(values, "X")


def checked_weights(sample_weight: Any, n_samples: int) -> Floats | None:
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


def _finite_numbers(values: Any, name: str) -> Floats:
    if values.dtype.kind not in "biufO":
        raise ValueError(f"{name} must have real numbers, got the type {values.dtype}.")
    try:
        numbers: Floats = np.ascontiguousarray(values, dtype=np.float64).reshape(values.shape)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must have real numbers: {error}.") from error
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} must not contain NaN or infinity.")
    return numbers
