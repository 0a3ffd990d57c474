"""TrimmedHGMeans finds clusters and outliers together."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score

from constraint_oracles import inertias
from evomeans import HGMeans, TrimmedHGMeans
from evomeans.engines.protocol import LocalSearch, Order
from evomeans.engines.trimmed import TrimmedEngine

QUICK = {"n_jobs": 1, "random_state": 0}


def noisy(share, seed=0):
    """Three clusters, uniform noise around them, and the classes; −1 for noise."""
    rng = np.random.default_rng(seed)
    places = np.repeat([[0.0, 0.0], [4.0, 0.0], [2.0, 4.0]], 50, axis=0)
    clusters = places + 0.3 * rng.normal(size=(150, 2))
    count = round(150 * share / (1.0 - share))
    noise = rng.uniform(-20.0, 25.0, (count, 2))
    classes = np.concatenate([np.repeat([0, 1, 2], 50), np.full(count, -1)])
    return np.concatenate([clusters, noise]), classes


def test_distances_to_all_centres_are_never_held_together():
    """For a million samples and a thousand clusters they would take 8 GB."""
    rng = np.random.default_rng(0)
    X, centers = rng.normal(size=(40_000, 20)), rng.normal(size=(200, 20))
    engine = TrimmedEngine(X, None, 10.0)
    engine.trim(engine.frame.encode(centers[:2]))
    tracemalloc.start()
    try:
        found = engine.trim(engine.frame.encode(centers))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 0.5 * 8 * len(X) * len(centers)
    distances = engine.distances(engine.frame.encode(centers))
    assert_array_equal(found.labels, distances.argmin(axis=1))
    assert np.count_nonzero(found.kept == 0.0) == 10


@pytest.mark.parametrize("share", [0.05, 0.2])
def test_planted_clusters_are_found_in_noise(share):
    """Plain k-means spends its centres on the noise."""
    X, classes = noisy(share)
    inside = classes >= 0
    model = TrimmedHGMeans.fast(3, n_outliers=share, **QUICK).fit(X)
    assert adjusted_rand_score(classes[inside], model.predict(X)[inside]) == 1.0
    assert np.mean(model.labels_[inside] >= 0) > 0.97
    plain = HGMeans.fast(3, **QUICK).fit(X)
    if share == 0.2:
        assert adjusted_rand_score(classes[inside], plain.labels_[inside]) < 0.9


def test_without_outliers_it_is_as_deep_as_hgmeans():
    """The same objective, and the same clusters."""
    X, _ = noisy(0.05)
    ours = TrimmedHGMeans.fast(4, n_outliers=0, **QUICK).fit(X)
    assert ours.inertia_ == pytest.approx(HGMeans.fast(4, **QUICK).fit(X).inertia_)
    assert_array_equal(ours.labels_, ours.predict(X))


def test_attributes_belong_together():
    """Inertia and radius are those of the samples that count, with centres at their means."""
    X, _ = noisy(0.2)
    model = TrimmedHGMeans.fast(3, n_outliers=30, **QUICK).fit(X)
    inside = model.labels_ >= 0
    away = np.linalg.norm(X - model.cluster_centers_[model.labels_], axis=1)[inside]
    assert model.inertia_ == pytest.approx((away**2).sum())
    assert model.radius_ == pytest.approx(away.max())
    assert model.n_outliers_ == 30
    assert model.transform(X).min(axis=1)[~inside].min() >= model.radius_
    for j in range(3):
        assert_allclose(model.cluster_centers_[j], X[model.labels_ == j].mean(axis=0))


@pytest.mark.parametrize(
    ("n_outliers", "error", "text"),
    [
        (-1, ValueError, "n_outliers=-1 must not be negative"),
        (1.5, ValueError, "n_outliers=1.5 must be a share"),
        ("many", TypeError, "n_outliers must be an int or a float"),
        (True, TypeError, "n_outliers must be an int or a float"),
        (9, ValueError, "n_outliers=9 leaves 1 samples of 10, and n_clusters=2"),
    ],
)
def test_errors_name_what_came(n_outliers, error, text):
    """One sentence for each mistake."""
    with pytest.raises(error, match=text):
        TrimmedHGMeans(2, n_outliers=n_outliers).fit(np.eye(10))


@pytest.mark.parametrize("seed", range(5))
def test_an_outlier_may_be_closer_to_the_best_centre_than_to_any_sample(seed):
    """No start on a sample leads there by trimming alone; exchanges do."""
    X = [[0, 0], [1, 0], [0, 1], [0, 0], [1, 1], [1, 0]]
    model = TrimmedHGMeans(1, n_outliers=2, n_jobs=1, random_state=seed).fit(X)
    assert model.inertia_ == pytest.approx(1.0)


@given(seed=st.integers(0, 10**6))
def test_a_refinement_leaves_no_better_move_and_no_better_exchange(seed):
    """Of a sample to another cluster, or of one that is left out with one that counts."""
    rng = np.random.default_rng(seed)
    n, k, n_outliers = int(rng.integers(5, 10)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    X = rng.standard_t(2, (n, 2))
    engine = TrimmedEngine(X, None, float(n_outliers))
    order = Order(engine.rows(rng.permutation(n)[:k]), local_search=LocalSearch(single_moves=True))
    (found,) = engine.refine([order])
    (own,) = objectives(X, found.labels[None], k)
    assert found.inertia == pytest.approx(own, abs=1e-12)
    changed = []
    for i in np.flatnonzero(found.labels >= 0):
        for b in range(k):
            moved = found.labels.copy()
            moved[i] = b
            changed.append(moved.copy())
            moved[i] = -1
            for j in np.flatnonzero(found.labels < 0):
                exchanged = moved.copy()
                exchanged[j] = b
                changed.append(exchanged)
    assert objectives(X, np.array(changed), k).min() >= own - 1e-9


def objectives(X, labels, k):
    """Return sums of squares about the means, without the samples that are labelled -1."""
    return np.array(
        [
            inertias(X[one >= 0], np.ones(np.count_nonzero(one >= 0)), one[None, one >= 0], k)[0]
            for one in labels
        ]
    )


def test_founders_with_the_same_start_are_one_rediscovery():
    """Two different samples, and a mean of four has five places: at most five starts differ."""
    X = np.array([[0.0, 0.0]] * 4 + [[1.0, 1.0]] * 4)
    model = TrimmedHGMeans(1, n_outliers=1, **QUICK).fit(X)
    assert model.n_rediscoveries_ <= 4
