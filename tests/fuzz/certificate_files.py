"""Certificates that were tampered with: no crash, no false claim that passes verify.

A case certifies a tiny problem, changes figures, arrays, proof or samples, and loads and verifies
what came of it. Only the documented errors may be raised. What passes must be true, by exact
arithmetic over all clusterings.
"""

from __future__ import annotations

import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import evomeans
from evomeans.exact.proofs import InvalidProofError
from evomeans.storage.certificate_file import VERSION
from tests.fuzz.certificates import Floats, Problem, Rationals, Rng
from tests.fuzz.tampering import contents, rewrite, tamper

CASE_SECONDS = 60.0
# Libraries take half of it; a file of a tiny problem must not make its reader take the rest.
MEMORY = 3 * 2**30
METHODS = ("auto", "relaxation", "plane", "separation", "parts", "direct")

Samples = tuple[Floats, Floats | None]


def case(rng: Rng) -> str:
    """Tamper with a certificate once or several times; return what came of it."""
    problem = drawn_problem(rng)
    samples: Samples = problem.X, problem.weights
    try:
        certificate = evomeans.certify(
            problem.X,
            rng.integers(0, problem.k, len(problem.X)),
            problem.weights,
            n_clusters=problem.k,
            method=str(rng.choice(METHODS)),
            max_time=2.0,
            part_size=2,
            constrained=bool(rng.random() < 0.2),
        )
    except ValueError:
        return "not certified"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "proof.evomeans"
        evomeans.save_certificate(certificate, path)
        for _ in range(int(rng.integers(1, 4))):
            samples = changed(rng, path, samples)
        return judged(path, samples)


def drawn_problem(rng: Rng) -> Problem:
    """Draw a problem whose sums have exact results in moderately long rational numbers."""
    n, d = int(rng.integers(3, 8)), int(rng.integers(1, 4))
    X = np.round(rng.normal(size=(n, d)), int(rng.integers(0, 4)))
    X = X + rng.choice([0.0, 0.0, 50.0, 1e6])
    weights = rng.random(n).round(2) + 0.01 if rng.random() < 0.3 else None
    return Problem("", "", X, weights, int(rng.integers(1, n + 1)))


# Judging


def judged(path: Path, samples: Samples) -> str:
    """Load and verify a file; raise if what passes is false."""
    try:
        certificate = evomeans.load_certificate(path)
    except evomeans.CertificateFileError:
        return "file refused"
    said = str(certificate)
    try:
        bound = certificate.verify(*samples)
    except InvalidProofError:
        return "refused by verify"
    except ValueError:
        return "samples refused"
    check_truth(certificate, bound, *samples)
    assert ("Proven optimal" in said) == certificate.is_optimal, said
    return "true"


def check_truth(
    certificate: evomeans.Certificate, bound: float, X: Floats, weights: Floats | None
) -> None:
    """Compare the claims of a verified certificate with exact arithmetic."""
    X, k = np.asarray(X, np.float64), certificate.n_clusters
    exact = Rationals(Problem("", "", X, weights, min(k, len(X))))
    assert certificate.n_samples == len(X)
    assert certificate.n_features in (None, X.shape[1])
    # A bound may differ by a share of 1e-9 on another machine.
    most = exact.optimum * (1 + Fraction(3, 10**9))
    assert Fraction(certificate.lower_bound) <= most, ("lower bound", float(exact.optimum))
    assert Fraction(bound) <= most, ("recomputed bound", bound, float(exact.optimum))
    labels = np.asarray(certificate.labels)
    assert labels.shape == (len(X),)
    assert 0 <= labels.min() <= labels.max() < k
    own = exact.of_labels(labels)
    # Means of older versions were rounded to the grid of the values.
    grid = Fraction(64) / 2**53 * Fraction(float(np.abs(X).max()))
    total = Fraction(len(X) if weights is None else float(np.sum(weights)))
    slack = own / 10**9 + total * X.shape[1] * grid**2 * len(X) ** 2
    assert abs(Fraction(certificate.upper_bound) - own) <= slack, float(own)
    if certificate.is_optimal:
        limit = exact.optimum * (1 + Fraction(2, 10**6))
        assert own <= limit, (float(own), float(exact.optimum))


# Tampering


def changed(rng: Rng, path: Path, samples: Samples) -> Samples:
    """Change the file, or return other samples or weights than those of the proof."""
    match rng.integers(12):
        case 0 | 1:
            rewrite(path, **claim_of_the_optimum(rng, path))
        case 2:
            # Parts, of which most proofs have none, or steps.
            n = len(samples[0])
            arrays = {
                "parts": rng.integers(0, int(rng.integers(1, 4)), n),
                "kinds": rng.integers(0, 5, int(rng.integers(1, 5))),
                "separated_labels": rng.integers(0, 3, 2 * n),
            }
            rewrite(path, arrays=arrays)
        case 3:
            # As if an older version had written it.
            rewrite(path, {"version": int(rng.integers(1, VERSION + 1))})
        case 4 | 5:
            return other_samples(rng, *samples)
        case _:
            with np.errstate(all="ignore"):
                tamper(path, rng)
    return samples


def claim_of_the_optimum(rng: Rng, path: Path) -> dict[str, Any]:
    """State that the clustering is optimal, in one of the ways that might look consistent."""
    stored, arrays = contents(path)
    meta = {"status": "optimal", "stop_reason": "proven_optimal"}
    match rng.integers(4):
        case 0:
            meta["upper_bound"] = stored.get("lower_bound")
        case 1:
            meta["lower_bound"] = stored.get("upper_bound")
        case 2 if "labels" in arrays:
            return {"meta": meta, "arrays": {"labels": rng.permutation(arrays["labels"])}}
        case _:
            meta["n_clusters"] = int(rng.integers(1, 9))
    return {"meta": meta}


def other_samples(rng: Rng, X: Floats, weights: Floats | None) -> Samples:
    """Return samples or weights that are nearly, or not at all, those of the proof."""
    n, d = X.shape
    match rng.integers(8):
        case 0:
            return 2 * X, weights
        case 1:
            return X[:, :1], weights
        case 2:
            return np.c_[X, rng.integers(0, 2, n)], weights
        case 3:
            return rng.permutation(X), weights
        case 4:
            return X + rng.choice([1e-9, 1e-3, 1.0]) * rng.normal(size=(n, d)), weights
        case 5 if n > 2:
            return X[:-1], None
        case 6:
            return X, rng.random(n)
        case _:
            return np.round(rng.normal(size=(n, d)), 1), weights
