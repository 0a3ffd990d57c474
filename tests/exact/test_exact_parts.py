"""Parts: their bounds add up, and the useless is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from proof_problems import random_problem, solved

from evomeans.exact import parts as module
from evomeans.exact.cases import Limits
from evomeans.exact.certify import attempt
from evomeans.exact.parts import UselessError, anticlusters, by_parts, count_parts, prove_part
from evomeans.exact.points import WeightedPoints
from evomeans.exact.proofs import DirectProof, Method, PartsProof


def problem(n: int, seed: int = 0) -> tuple[WeightedPoints, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 2
    points = WeightedPoints.of_samples(rng.normal(size=(n, 2)) + 6 * labels[:, None])
    return points, points.labels_of_points((points.values[:, 0] > points.values[:, 0].mean()) * 1)


def test_parts_have_nearly_the_means_of_the_whole() -> None:
    """Much nearer than parts that are dealt at random."""
    points, labels = problem(400)
    parts = anticlusters(points, labels, 8)
    shuffled = np.random.default_rng(0).permutation(np.arange(400) % 8)
    assert np.bincount(parts).min() >= 48

    def spread(of: np.ndarray) -> float:
        means = [points.restricted(np.flatnonzero(of == q)) for q in range(8)]
        middle = np.array([one.values.mean(axis=0) for one in means])
        return float(middle.std(axis=0).sum())

    assert spread(parts) < 0.2 * spread(shuffled)


def test_without_time_parts_are_dealt_and_not_balanced(monkeypatch) -> None:
    """Their bounds are valid, and the proof is that of the separation."""
    points, labels = problem(400)
    monkeypatch.setattr(module, "exchange", lambda *_: pytest.fail("there is no time for this"))
    parts = anticlusters(points, labels, 8, Limits(max_time=0.0))
    assert np.bincount(parts).min() >= 48
    found = attempt(points, 2, labels, Limits(max_time=0.0), method=Method.PARTS)
    assert found.proof.method == Method.SEPARATION
    assert 0.0 <= found.lower <= points.inertia(labels)


def test_cells_of_a_cluster_are_spread_evenly_too() -> None:
    """Every part has as many points of each quarter of the plane as any other, but for a few."""
    points, labels = problem(800)
    parts = anticlusters(points, labels, 4)
    quarters = 2 * (points.values[:, 0] > np.median(points.values[:, 0])) + (
        points.values[:, 1] > np.median(points.values[:, 1])
    )
    counts = np.zeros((4, 4), int)
    np.add.at(counts, (parts, quarters), 1)
    assert np.ptp(counts, axis=0).max() <= 12
    assert np.array_equal(parts, anticlusters(points, labels, 4))


def test_more_time_means_larger_parts() -> None:
    """As long as they are neither tiny nor more than the relaxation can take."""
    rng = np.random.default_rng(0)
    points = WeightedPoints.of_samples(rng.normal(size=(9000, 2)))
    labels = np.arange(9000) % 3
    counts = [count_parts(points, labels, seconds) for seconds in (1, 100, 300, 900, 1e6)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] == 36
    assert counts[-1] == 11
    assert count_parts(points, labels, 1, part_size=600) == 15
    assert count_parts(points, labels, 1, part_size=5000) == 8


def test_the_sum_is_below_the_optimum(monkeypatch) -> None:
    """Two parts of a problem that brute force can solve."""
    monkeypatch.setattr(module, "PART_SIZES", (5, 5))
    points, _ = problem(11, seed=4)
    whole = solved(points, 2)
    optimum = whole.optimum
    found = by_parts(points, 2, whole.labels, Limits(max_time=20))
    assert isinstance(found.proof, PartsProof)
    assert 0.3 * optimum < found.lower <= optimum * (1 + 1e-13)
    assert found.proof.lower_bound(points, 2) == found.lower


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6))
def test_any_parts_have_bounds_that_add_up_to_a_true_one(seed) -> None:
    """However unlike the parts are, and if some have fewer points than clusters."""
    rng = np.random.default_rng(seed)
    found = random_problem(rng)
    parts = (rng.random(found.points.n) < rng.random()).astype(np.int64)
    proofs = []
    for number in range(2):
        own = np.flatnonzero(parts == number)
        few = len(own) == 0 or rng.random() < 0.1
        labels = found.labels[own]
        restricted = found.points.restricted(own)
        proofs.append(None if few else prove_part(restricted, found.k, labels, 2.0))
    bound = PartsProof(parts, tuple(proofs)).lower_bound(found.points, found.k)
    assert 0.0 <= bound <= found.optimum * (1 + 1e-13)


def test_clusters_smaller_than_the_number_of_parts_are_refused(monkeypatch) -> None:
    monkeypatch.setattr(module, "MOST_POINTS", 10)
    points, labels = problem(100)
    labels = np.where(np.arange(points.n) < 3, 2, labels)
    with pytest.raises(UselessError, match="3 distinct samples, fewer than the 10 parts"):
        by_parts(points, 3, labels, Limits())


def test_a_part_without_a_proof_counts_as_nothing() -> None:
    points, _ = problem(12)
    parts = np.arange(12) % 2
    whole = PartsProof(parts, (DirectProof(), None))
    first = points.restricted(np.flatnonzero(parts == 0))
    expected = DirectProof().lower_bound(first, 1)
    assert whole.lower_bound(points, 1) == pytest.approx(expected, rel=1e-12)
