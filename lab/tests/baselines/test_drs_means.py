"""DRS-means: which centre moves, and where to."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from lab.baselines import DRSMeans
from lab.baselines.drs_means import center_chances, densities, neighbour_distances
from lab.baselines.engines import create_engine


def test_centres_close_to_others_have_the_larger_chances() -> None:
    """One over the distances, summed up."""
    chances = center_chances(np.array([[0.0], [1.0], [3.0]]))
    assert_allclose(chances, [1 + 1 / 3, 1 + 1 / 2, 1 / 3 + 1 / 2])


def test_centres_in_the_same_place() -> None:
    assert_allclose(center_chances(np.array([[0.0], [0.0], [2.0]])), [1.0, 1.0, 1.0])
    assert_array_equal(center_chances(np.zeros((3, 2))), [2.0, 2.0, 2.0])


@pytest.mark.parametrize("n_features", [2, 40])
@pytest.mark.parametrize("number", [1, 2, 7, 150])
def test_distances_to_neighbours(n_features, number, monkeypatch) -> None:
    """By a tree, by blocks of distances, and from sparse rows: as all distances say."""
    monkeypatch.setattr("lab.baselines.drs_means.BLOCK", 150 * 64)
    X = np.random.default_rng(0).normal(size=(150, n_features))
    apart = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=2))
    expected = np.sort(apart, axis=1)[:, number - 1]
    for samples in (X, sp.csr_array(X)):
        engine = create_engine("cpu", samples, None)
        found = neighbour_distances(engine, number)
        assert_allclose(found / engine.frame.scale, expected, rtol=1e-9, atol=1e-7)


def test_samples_with_many_copies_are_as_dense_as_the_densest_other() -> None:
    X = np.repeat([[0.0], [1.0], [3.0], [3.5]], [5, 1, 1, 1], axis=0)
    density = densities(create_engine("reference", X, None), 2)
    assert np.isfinite(density).all()
    assert_allclose(density[:5], density[6])
    assert density[5] < density[6]


def test_one_in_a_hundred_neighbours_and_two(monkeypatch) -> None:
    seen = []
    monkeypatch.setattr(
        "lab.baselines.drs_means.neighbour_distances",
        lambda engine, number: (seen.append(number), np.ones(engine.n_samples))[1],
    )
    X = np.random.default_rng(0).normal(size=(420, 2))
    densities(create_engine("reference", X, None))
    densities(create_engine("reference", X[:3], None), 9)
    assert seen == [6, 3]


def test_trials_begin_at_the_best_so_far_and_follow_the_chances() -> None:
    """By hand: the centre is drawn by its neighbours, the sample by D² times density."""
    X = np.random.default_rng(6).normal(size=(150, 2))
    engine, rng = create_engine("reference", X, None), np.random.default_rng(7)
    solutions = DRSMeans(5, n_swaps=15).solutions(engine, rng)
    best = next(solutions)
    other = np.random.default_rng(7)
    other.choice(150, 5, replace=False), other.random()
    density = densities(engine)
    points = engine.rows(np.arange(150))
    improved = 0
    for trial in solutions:
        first, second, _ = other.random(3)
        chances = np.cumsum(center_chances(best.centers))
        removed = int(np.searchsorted(chances, first * chances[-1], side="right"))
        rest = np.delete(best.centers, removed, axis=0)
        squares = ((points[:, None] - rest) ** 2).sum(axis=2).min(axis=1)
        wheel = np.cumsum(squares * density)
        row = int(np.searchsorted(wheel, second * wheel[-1], side="right"))
        centers = best.centers.copy()
        centers[removed] = points[row]
        for _ in range(2):
            labels = ((points[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
            centers = np.array([points[labels == j].mean(axis=0) for j in range(5)])
        assert_allclose(trial.centers, centers, atol=1e-9)
        if trial.inertia < best.inertia:
            best, improved = trial, improved + 1
    assert improved > 0
