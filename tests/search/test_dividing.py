"""Where samples are noisy, relocation divides a cluster instead of using a sample as a centre."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.cluster import KMeans

from evomeans.engines.reference import ReferenceEngine
from evomeans.metrics import centroid_index
from evomeans.search import DEEP, Crossing, SearchSettings, solve
from evomeans.search.crossover import DRAWN_TO_DIVIDE, HALF_STEP, Child, divide, squares_between

COORDINATES = st.floats(-100.0, 100.0, width=32)


class KMeansOnly(ReferenceEngine):
    """An engine that can do no more than K-means, as those of large data."""

    abilities = frozenset()


@given(
    arrays(np.float64, (6, 3), elements=COORDINATES),
    arrays(np.float64, 3, elements=COORDINATES),
    st.integers(0, 2**32),
)
def test_two_centres_move_and_the_others_stay(centers, row, seed) -> None:
    before = centers.copy()
    moved = divide(centers, row[None], np.random.default_rng(seed))
    assert np.array_equal(centers, before)
    changed = np.flatnonzero(np.any(moved != centers, axis=1))
    assert len(changed) <= 2
    if len(changed) == 2:
        pair = moved[changed]
        # They are on both sides of a centre, on the line to the sample.
        away = np.linalg.norm(centers[changed] - pair.mean(axis=0), axis=1)
        divided = changed[away.argmin()]
        assert pair.mean(axis=0) == pytest.approx(centers[divided], abs=1e-9)
        assert np.ptp(pair, axis=0) == pytest.approx(2 * HALF_STEP * np.abs(row - centers[divided]))


def test_of_two_centres_in_one_place_one_is_given_up() -> None:
    """Unless neither of them is among the two that are drawn: in 3 of 10 cases."""
    centers = np.array([[0.0, 0.0], [50.0, 0.0], [50.0, 1.0], [0.0, 50.0], [90.0, 90.0]])
    row = np.array([0.0, 52.0])
    moved = [divide(centers, row[None], np.random.default_rng(seed)) for seed in range(40)]
    given_up = sum(np.any(one[1:3] != centers[1:3]) for one in moved)
    assert 20 <= given_up <= 36


def test_the_cluster_of_the_farthest_sample_is_divided() -> None:
    centers = np.array([[0.0, 0.0], [50.0, 0.0], [50.0, 1.0]])
    rows = np.array([[50.0, 3.0], [-9.0, 0.0], [1.0, 0.0]])
    for seed in range(10):
        moved = divide(centers, rows, np.random.default_rng(seed))
        halves = moved[moved[:, 0] < 25.0]
        assert sorted(halves[:, 0]) == pytest.approx([-9.0 * HALF_STEP, 9.0 * HALF_STEP])


def test_a_single_centre_has_nowhere_to_go() -> None:
    centers = np.array([[1.0, 2.0]])
    assert np.array_equal(divide(centers, np.zeros((1, 2)), np.random.default_rng(0)), centers)


def test_distances_between_centres_far_from_the_origin() -> None:
    rng = np.random.default_rng(0)
    some, others = rng.normal(size=(4, 3)) + 1e6, rng.normal(size=(5, 3)) + 1e6
    expected = ((some[:, None] - others) ** 2).sum(axis=2)
    assert squares_between(some, others) == pytest.approx(expected, rel=1e-8)


def planted(seed: int, k: int, n: int = 60, d: int = 200, noise: float = 1.2):
    """Draw clouds of n samples each, closer to each other than samples to their mean."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(k, d))
    return np.repeat(centers, n, axis=0) + noise * rng.normal(size=(k * n, d)), centers


def test_k_means_finds_two_clouds_after_a_division_and_not_from_a_sample() -> None:
    """One centre is between two clouds, and another cloud has two."""
    found = {"divided": 0, "sample": 0}
    for seed in range(10):
        X, truth = planted(seed, 3, noise=2.0)
        rng = np.random.default_rng(seed)
        third = X[120:]
        centers = np.array(
            [truth[:2].mean(axis=0), third[:30].mean(axis=0), third[30:].mean(axis=0)]
        )
        row = X[rng.integers(120)]
        on_sample = centers.copy()
        on_sample[2] = row
        for name, start in (("divided", divide(centers, row[None], rng)), ("sample", on_sample)):
            # A centre next to the third cloud is given up in two of three draws.
            if name == "sample" or np.any(start[1:] != centers[1:]):
                reached = KMeans(3, init=start, n_init=1).fit(X).cluster_centers_
                found[name] += centroid_index(reached, truth) == 0
    assert found["divided"] >= 5
    assert found["divided"] > found["sample"]


def test_a_crossover_draws_other_numbers_than_those_that_divide() -> None:
    """Its own samples would be those whose clusters are divided."""
    X, _ = planted(0, 8, n=25)
    engine, drawn = KMeansOnly(X, None), []
    looked_up = []
    samples_at = engine.samples_at

    def crossover(first, second, breeding):
        drawn.extend(breeding.rng.random(DRAWN_TO_DIVIDE))
        return Child(first.centers.copy(), first)

    engine.samples_at = lambda quantiles: looked_up.extend(quantiles) or samples_at(quantiles)
    strategy = replace(DEEP, crossovers=(Crossing(crossover),))
    settings = SearchSettings(2, 4, max_offspring=5, strategy=strategy)
    solve(engine, 8, settings, np.random.default_rng(0))
    assert len(looked_up) >= 5 * DRAWN_TO_DIVIDE
    assert not set(drawn) & set(looked_up)


def test_a_search_without_swaps_finds_all_noisy_clouds() -> None:
    X, truth = planted(0, 8, n=25)
    engine = KMeansOnly(X, None)
    result = solve(engine, 8, SearchSettings(strategy=DEEP), np.random.default_rng(0))
    assert centroid_index(engine.frame.decode(result.best.centers), truth) == 0
