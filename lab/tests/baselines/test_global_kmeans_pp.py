"""Global k-means++: one centre at a time, at the best of a few samples drawn by D²."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from lab.baselines import GlobalKMeans, GlobalKMeansPP
from lab.baselines.engines import create_engine

X = np.random.default_rng(0).normal(size=(60, 2))


def test_with_all_samples_as_candidates_it_is_global_kmeans() -> None:
    """In any order they are drawn."""
    model = GlobalKMeansPP(6, n_candidates=60, random_state=0).fit(X)
    full = GlobalKMeans(6, algorithm="full").fit(X)
    assert_allclose(model.inertias_, full.inertias_, rtol=1e-9)


@pytest.mark.parametrize("sampling", ["batch", "sequential"])
def test_the_path_never_rises_and_repeats(sampling) -> None:
    model = GlobalKMeansPP(8, n_candidates=4, sampling=sampling, random_state=1).fit(X)
    assert (np.diff(model.inertias_) < 0.0).all()
    again = GlobalKMeansPP(8, n_candidates=4, sampling=sampling, random_state=1).fit(X)
    assert_array_equal(model.inertias_, again.inertias_)
    assert [step.n_runs for step in model.path_] == [1] + [4] * 7
    assert model.at(3).inertia_ == model.inertias_[2]
    other = GlobalKMeansPP(8, n_candidates=1, sampling=sampling, random_state=2).fit(X)
    assert other.inertia_ != model.inertia_


def candidates(sampling: str, count: int, squares, seed: int = 0) -> np.ndarray:
    """Return the indices of the samples that are drawn."""
    samples = np.arange(6.0)[:, None]
    engine = create_engine("reference", samples, None)
    model = GlobalKMeansPP(2, n_candidates=count, sampling=sampling)
    model._rng = np.random.default_rng(seed)
    places = engine.frame.decode(model._new_centers(engine, None, np.array(squares)))
    return np.rint(places[:, 0]).astype(int)


@pytest.mark.parametrize("sampling", ["batch", "sequential"])
def test_candidates_are_different_and_drawn_by_their_squares(sampling) -> None:
    squares = [0.0, 0.1, 0.1, 0.1, 0.7, 0.0]
    first = [candidates(sampling, 1, squares, seed)[0] for seed in range(600)]
    assert abs(np.mean(np.array(first) == 4) - 0.7) < 0.06
    drawn = candidates(sampling, 4, squares)
    assert len(set(drawn.tolist())) == len(drawn)
    assert not {0, 5} & set(drawn.tolist())


def test_fewer_candidates_than_asked_for() -> None:
    """Where few samples are not on a centre."""
    for sampling in ("batch", "sequential"):
        assert sorted(candidates(sampling, 9, [0, 0, 2e-3, 0, 1e-3, 0])) in ([2, 4], [4], [2])
    assert sorted(candidates("batch", 9, [0, 0, 2e-3, 0, 1e-3, 0])) == [2, 4]


def test_later_candidates_avoid_the_earlier_ones() -> None:
    """One after another, they are drawn by the distance to those before as well."""
    rng = np.random.default_rng(1)
    groups = np.repeat([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0]], 20, axis=0)
    samples = groups + rng.normal(size=(60, 2))
    engine = create_engine("reference", samples, None)
    squares = engine.nearest_squares(engine.rows(np.array([0])))
    hits = {}
    for sampling in ("batch", "sequential"):
        model = GlobalKMeansPP(2, n_candidates=2, sampling=sampling)
        model._rng = np.random.default_rng(2)
        both = 0
        for _ in range(100):
            places = engine.frame.decode(model._new_centers(engine, None, squares))
            both += np.abs(places[0] - places[1]).max() > 25.0
        hits[sampling] = both
    assert hits["sequential"] > 95
    assert hits["batch"] < 80
