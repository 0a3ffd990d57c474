"""``verify`` refuses every claim of a certificate that is not true, and unusable samples."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import evomeans
from evomeans.exact.cases import ProofStep, StepKind
from evomeans.exact.points import WeightedPoints
from evomeans.exact.proofs import DirectProof, InvalidProofError, PartsProof, SeparationProof
from evomeans.exact.relaxation import TreeProof

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(size=(14, 3)), RNG.normal(size=(14, 3)) + 2.5])
FAR = np.concatenate([RNG.normal(size=(20, 3)), RNG.normal(size=(20, 3)) + 50])


@pytest.fixture(scope="module")
def certificate() -> evomeans.Certificate:
    return evomeans.HGMeans(3, random_state=0).fit(X).certify(X)


@pytest.fixture(scope="module")
def bounded() -> evomeans.Certificate:
    """One that claims a gap only."""
    found = evomeans.certify(X, np.arange(28) % 3, constrained=True)
    assert (found.status, found.verify(X)) == ("bounded", found.lower_bound)
    return found


def test_a_person_can_read_it() -> None:
    """In one line, without labels, proof and defaults; one that contradicts itself says so."""
    made = evomeans.Certificate(
        lower_bound=75.0,
        upper_bound=80.0,
        status="bounded",
        method="parts",
        reason="",
        n_clusters=3,
        n_samples=1500,
        seconds=2.0,
        labels=np.zeros(1500, np.int32),
    )
    assert repr(made) == (
        "Certificate(bounded, lower bound 75, inertia 80, gap 6.25 %, 3 clusters, 1,500 samples, "
        "method parts, 2.0 s)"
    )
    assert repr(replace(made, lower_bound=90.0)).startswith("Certificate(not valid, ")


CLAIMS: list[tuple[dict[str, Any], str]] = [
    ({"labels": np.arange(28, dtype=np.int32) % 3}, "have the inertia"),
    ({"labels": np.arange(27, dtype=np.int32) % 3}, "27 labels for 28 samples"),
    ({"labels": np.full(28, 99, np.int32)}, "not within 0 and 2"),
    ({"labels": np.full(28, -1, np.int32)}, "not within 0 and 2"),
    ({"labels": np.zeros(28)}, "not within 0 and 2"),
    ({"labels": None}, "holds no labels"),
    ({"upper_bound": 1e9, "status": "bounded"}, "have the inertia"),
    ({"lower_bound": 0.0}, "optimal, with a gap of 1.0"),
    ({"lower_bound": 1e9}, "its bounds are"),
    ({"lower_bound": -1.0}, "its bounds are"),
    ({"lower_bound": float("nan")}, "its bounds are"),
    ({"n_samples": 29, "labels": None}, "one for 29 samples, and X has 28"),
    ({"n_features": 2}, "one for 2 features, and X has 3"),
    ({"n_clusters": 4}, "proves a lower bound of"),
    ({"n_clusters": 2}, "not within 0 and 1"),
    ({"method": "separation"}, "states the method 'separation'"),
    ({"status": "proven"}, "its status is 'proven'"),
]


@pytest.mark.parametrize(("change", "text"), CLAIMS)
def test_a_false_claim_is_refused(certificate, change, text) -> None:
    """Only the lower bound used to be checked."""
    with pytest.raises(InvalidProofError, match=text):
        replace(certificate, **change).verify(X)


@pytest.mark.parametrize("share", [0.9, 1 - 1e-5, 1 + 1e-5, 1.1])
def test_the_upper_bound_is_that_of_the_labels(bounded, share) -> None:
    with pytest.raises(InvalidProofError, match="have the inertia"):
        replace(bounded, upper_bound=share * bounded.upper_bound).verify(X)


def test_iris_by_species_is_not_proven_optimal() -> None:
    """The labels cost 89.3, the proof is that of 78.85, and no way of putting it passes."""
    from sklearn.datasets import load_iris

    data, species = load_iris(return_X_y=True)
    proven = evomeans.HGMeans(3, random_state=0).fit(data).certify(data)
    labels = species.astype(np.int32)
    for upper in (proven.upper_bound, 89.2974):
        forged = replace(proven, labels=labels, upper_bound=upper)
        with pytest.raises(InvalidProofError):
            forged.verify(data)
    assert "Proven optimal" not in str(forged)
    assert not forged.is_optimal


def test_a_larger_gap_is_never_called_optimal() -> None:
    """Whatever was asked for: the word means one millionth."""
    found = evomeans.certify(X, np.arange(28) % 3, gap=0.5, constrained=True)
    assert found.gap > 1e-6
    assert (found.status, found.is_optimal) == ("bounded", False)
    assert "Proven within" in str(found)
    generous = evomeans.certify(X[:, :2], np.arange(28) % 27, n_clusters=27, gap=0.5)
    assert generous.is_optimal
    lucky = evomeans.certify(X, evomeans.HGMeans(3, random_state=0).fit(X).labels_, gap=0.3)
    assert lucky.stop_reason in ("gap_reached", "proven_optimal")
    assert (lucky.stop_reason == "proven_optimal") == (lucky.gap <= 1e-6)


def test_other_samples_are_refused(certificate) -> None:
    """Twice the samples, more columns and other weights used to pass."""
    for other, weights in (
        (2 * X, None),
        (np.c_[X, np.zeros(28)], None),
        (X, np.r_[2.0, np.ones(27)]),
        (X[::-1], None),
    ):
        with pytest.raises(InvalidProofError):
            certificate.verify(other, weights)


@pytest.mark.parametrize(
    ("samples", "weights", "text"),
    [
        (X * (1 + 1j), None, "real numbers"),
        (X.astype(str), None, "real numbers"),
        (X[:, 0], None, r"X.shape=\(28,\)"),
        (X[:0], None, r"X.shape=\(0, 3\)"),
        (np.where(X > 3, np.nan, X), None, "NaN or infinity"),
        (X, np.ones(3), "one weight per sample"),
        (X, -np.ones(28), "must not be negative"),
        (X, np.full(28, np.nan), "NaN or infinity"),
        (X, np.zeros(28), "zero for all samples"),
        (X, 0.0, "zero for all samples"),
    ],
)
def test_unusable_samples_get_one_clear_sentence(certificate, samples, weights, text) -> None:
    """They were converted, cut off, or ended in compiled code."""
    with pytest.raises(ValueError, match=text):
        certificate.verify(samples, weights)


def test_samples_may_be_sparse_lists_or_of_lower_precision(certificate) -> None:
    for same in (csr_matrix(X), X.tolist(), X.astype(object), np.asfortranarray(X)):
        assert certificate.verify(same) == certificate.lower_bound
    alike = evomeans.certify(X, certificate.labels, 2.0)
    assert alike.verify(X, 2.0) == alike.verify(X, np.full(28, 2)) == alike.lower_bound


@pytest.mark.parametrize("n", [13, 25, 29, 61])
def test_a_proof_in_the_plane_refuses_one_column(n: int) -> None:
    """Compiled code wrote beyond the heap."""
    Z = np.random.default_rng(n).random((n, 2))
    found = evomeans.certify(Z, np.arange(n) % 3, method="plane", max_time=0.5)
    points = WeightedPoints.of_samples(Z[:, :1])
    with pytest.raises(InvalidProofError, match="1 features instead of 2"):
        found.proof.lower_bound(points, 3)
    with pytest.raises(InvalidProofError, match="one for 2 features"):
        found.verify(Z[:, :1])
    with pytest.raises(InvalidProofError):
        replace(found, n_features=None).verify(Z[:, :1])


@pytest.mark.parametrize("method", ["auto", "separation"])
def test_a_fresh_certificate_passes_with_fewer_labels_than_clusters(method: str) -> None:
    """The bound 0 was refused by its own verify."""
    found = evomeans.certify(X, np.arange(28) % 2, n_clusters=4, method=method, max_time=1e-3)
    assert found.verify(X) == found.lower_bound
    twice = evomeans.certify(np.r_[X, X], np.arange(56) % 3, method="separation")
    assert twice.verify(np.r_[X, X]) == 0.0


def test_a_clustering_that_proves_nothing_about_k_proves_zero() -> None:
    points = WeightedPoints.of_samples(FAR)
    labels = (points.values[:, 0] > 0.2).astype(np.int64)
    assert SeparationProof(labels).lower_bound(points, 2) > 0
    assert SeparationProof(labels).lower_bound(points, 3) == 0
    assert SeparationProof(2 * labels).lower_bound(points, 2) == 0
    for wrong in (labels - 1, labels + 10**12, labels[:-1]):
        with pytest.raises(InvalidProofError):
            SeparationProof(wrong).lower_bound(points, 2)


def test_no_matrix_is_made_for_a_number_that_a_proof_only_states(monkeypatch) -> None:
    """4 GB for a number of clusters; and the like for points and cases."""
    points = WeightedPoints.of_samples(FAR)
    labels = (points.values[:, 0] > 0.2).astype(np.int64)
    assert SeparationProof(labels).lower_bound(points, 2**50) == 0
    many = WeightedPoints.of_samples(np.random.default_rng(0).random((50_000, 3)))
    with pytest.raises(InvalidProofError, match="no multipliers for 50000 distinct samples"):
        TreeProof(1.0, (ProofStep(StepKind.END),)).lower_bound(many, 2)
    split = ProofStep(StepKind.SPLIT, None, (0, 1))
    monkeypatch.setattr("evomeans.exact.cases.MOST_BYTES", 2**20)  # instead of a gigabyte
    some = WeightedPoints.of_samples(np.random.default_rng(0).random((300, 3)))
    with pytest.raises(InvalidProofError, match="more cases than memory should hold"):
        TreeProof(1.0, (split,) * 100_000).lower_bound(some, 2)
    with pytest.raises(InvalidProofError, match="41 parts of 40 distinct samples"):
        PartsProof(np.arange(40), (DirectProof(),) * 41).lower_bound(points, 2)


def test_multipliers_that_do_not_fit_are_refused(certificate) -> None:
    """Compiled code reads as many prices as there are cuts."""
    tree = certificate.proof
    first = next(step for step in tree.steps if step.multipliers is not None)
    for change in (
        {"prices": first.multipliers.prices[:-1]},
        {"cuts": first.multipliers.cuts + 28},
        {"slack": first.multipliers.slack[:-1, :-1]},
    ):
        step = replace(first, multipliers=replace(first.multipliers, **change))
        with pytest.raises(InvalidProofError, match="do not fit"):
            replace(certificate, proof=TreeProof(tree.cutoff, (step,))).verify(X)
    for cutoff in (float("inf"), float("nan"), -1.0):
        with pytest.raises(InvalidProofError, match="impossible inertia"):
            replace(certificate, proof=TreeProof(cutoff, tree.steps)).verify(X)
