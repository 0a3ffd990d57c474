"""SphericalHGMeans minimises the sum of cosine distances, dense and sparse alike."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from evomeans import SphericalHGMeans
from evomeans.engines.cpu import CpuEngine
from evomeans.engines.protocol import LocalSearch, Order, Way
from evomeans.engines.spherical import (
    DirectionsEngine,
    SphericalEngine,
    spherical_engine,
    unit_rows,
)
from evomeans.search import Individual
from evomeans.search.crossover import Breeding, merging_crossover
from evomeans.search.plan import measure_spacing

QUICK = {"n_jobs": 1, "random_state": 0}


def directions(n=80, d=6, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * rng.uniform(0.1, 100.0, (n, 1))


def objective(X, weights, labels, k):
    """Σw − Σ‖s_j‖, from the sums of unit samples."""
    units = X / np.linalg.norm(X, axis=1, keepdims=True)
    sums = [(weights[labels == j, None] * units[labels == j]).sum(axis=0) for j in range(k)]
    return weights.sum() - np.linalg.norm(sums, axis=1).sum()


def drawn(engine, k, n_starts, n_trials=3):
    return [engine.seed(np.random.default_rng(i).random((k, n_trials))) for i in range(n_starts)]


@pytest.mark.parametrize("n_threads", [1, 2])
def test_the_cpu_engine_ends_where_no_sample_and_no_sum_says_otherwise(n_threads):
    """Its ends are fixed points with the cosine, in double precision; zeros are not centres."""
    X, k = directions(600, 8), 12
    X[::50] = 0.0
    weights = np.random.default_rng(1).uniform(0.5, 2.0, 600)
    engine, units = DirectionsEngine(X, weights, n_jobs=n_threads), unit_rows(X)
    for one in engine.refine([Order(start) for start in drawn(engine, k, 5)]):
        labels, inertia = engine.assign(one.centers)
        # Ties aside, and samples of zeros are all ties.
        assert_array_equal(labels, (units @ one.centers.T).argmax(axis=1))
        sums = np.zeros((k, 8))
        np.add.at(sums, labels, weights[:, None] * units)
        lengths = np.linalg.norm(sums, axis=1)
        assert_allclose(one.centers, sums / lengths[:, None], atol=1e-14)
        assert one.inertia == pytest.approx(weights.sum() - lengths.sum(), rel=1e-13)
        assert one.inertia == pytest.approx(inertia, rel=1e-14)


@pytest.mark.parametrize("is_weighted", [False, True])
def test_single_moves_of_the_cpu_engine_leave_no_better_place(is_weighted):
    """By the lengths of all sums with and without every sample."""
    X, k = directions(200, 4), 30
    weights = np.random.default_rng(2).uniform(0.3, 3.0, 200) if is_weighted else None
    engine, units = DirectionsEngine(X, weights), unit_rows(X)
    own = np.ones(200) if weights is None else weights
    starts = drawn(engine, k, 4)
    for start in starts:
        (found,) = engine.refine([Order(start, local_search=LocalSearch(single_moves=True))])
        assert found.inertia < engine.refine([Order(start)])[0].inertia
        labels = engine.labels(found.centers)
        sums = np.zeros((k, 4))
        np.add.at(sums, labels, own[:, None] * units)
        lengths = np.linalg.norm(sums, axis=1)
        for i, a in enumerate(labels):
            if np.count_nonzero(labels == a) > 1:
                lost = lengths[a] - np.linalg.norm(sums[a] - own[i] * units[i])
                gains = np.linalg.norm(sums + own[i] * units[i], axis=1) - lengths
                assert np.delete(gains, a).max() < lost + 1e-9


def test_swaps_of_the_cpu_engine_lead_to_lower_ends():
    """Each of them is a fixed point with the cosine, and so is one after a relocation."""
    engine, k = DirectionsEngine(directions(600, 8), None), 12
    seeds, ends = drawn(engine, k, 8, 1), []
    swaps = LocalSearch(single_moves=True, swaps=k)
    for changes in ({}, {"local_search": swaps}, {"removed": 3}):
        found = engine.refine([Order(one, **changes) for one in seeds])
        again = engine.refine([Order(one.centers) for one in found])
        inertias = [one.inertia for one in found]
        assert_allclose([one.inertia for one in again], inertias, rtol=1e-12)
        ends.append(np.mean(inertias))
    assert ends[1] < 0.995 * ends[0]


def test_a_search_of_large_data_makes_offspring_like_that_of_hgmeans():
    """In one go, from what is known of the parents, with the better parts of both."""
    X, k = directions(2000, 3), 60
    model = SphericalHGMeans(k, max_offspring=60, **QUICK).fit(X)
    made_by = {one.made_by for one in model.history_}
    assert {"partition", "merging", "squared matching"} <= made_by
    assert model.missing_operators_ == ()
    engine = spherical_engine(X, None, k)
    found = engine.refine([Order(start) for start in drawn(engine, k, 2)])
    first, second = (Individual.of(one, 1.0) for one in found)
    order = Order(parents=(first, second), numbers=np.linspace(0.0, 0.9, k))
    made = engine.offspring(order, [Way.MERGING])
    child = merging_crossover(first, second, Breeding(engine, order.numbers, 0.5))
    (expected,) = engine.refine([order.placed(child.centers, "merging")])
    assert_array_equal(made.centers, expected.centers)
    assert_allclose(np.linalg.norm(made.centers, axis=1), 1.0, rtol=1e-12)


def test_spacing_is_that_of_the_means():
    """Centres of length one are farther apart, and would seem to be less noisy."""
    X = directions(2000, 50)
    engine, plain = DirectionsEngine(X, None), CpuEngine(unit_rows(X))
    start = drawn(plain, 8, 1)[0]
    found = [Individual.of(one.refine([Order(start)])[0], 1.0) for one in (engine, plain)]
    spacing = [
        measure_spacing(one, 2000.0, of.frame.inertia_in_data_units, on_sphere=of.on_sphere)
        for one, of in zip(found, (engine, plain), strict=True)
    ]
    assert spacing[0] == pytest.approx(spacing[1], rel=0.1)


@pytest.mark.parametrize("kind", [SphericalEngine, DirectionsEngine])
def test_descents_with_fewer_samples_than_clusters_end(kind):
    """Rounding moves a sample that is alone to a cluster that is empty, and back for ever."""
    X, weights = np.random.default_rng(0).normal(size=(300, 20)), np.zeros(300)
    weights[:5] = 1.0
    engine = kind(X, weights)
    (found,) = engine.refine([Order(engine.seed(np.random.default_rng(0).random((8, 3))))])
    assert found.inertia == 0.0
    assert found.n_iter < 100


def test_equal_directions_cost_nothing_on_the_cpu_engine_either():
    """The search ends there: nothing is better."""
    X = directions(7, 20)[np.arange(700) % 7] * np.linspace(0.1, 1.0, 700)[:, None]
    labels, inertia = DirectionsEngine(X, None).assign(unit_rows(X[:7]))
    assert_array_equal(labels, np.arange(700) % 7)
    assert inertia == 0.0
    X = np.repeat(X, 30, axis=0)
    model = SphericalHGMeans(7, **QUICK).fit(X)
    assert (model.inertia_, model.stop_reason_) == (0.0, "proven_optimal")


def test_next_to_no_time_is_enough_for_centres_of_length_one():
    X = directions(3000, 40)
    with pytest.warns(ConvergenceWarning, match=r"max_time=0\.001 was up"):
        model = SphericalHGMeans(30, max_time=1e-3, **QUICK).fit(X)
    assert_array_equal(model.predict(X), model.labels_)
    assert model.score(X) == pytest.approx(-model.inertia_)


def test_single_moves_leave_no_better_place_for_any_sample():
    """Every sample is tried in every cluster, from scratch."""
    X, k = directions(60, 4), 5
    engine = SphericalEngine(X, None)
    start = Order(X[:k].copy(), local_search=LocalSearch(single_moves=True))
    found = engine.refine([start])[0]
    lowest = objective(X, np.ones(60), found.labels, k)
    assert found.inertia == pytest.approx(lowest)
    for i in range(60):
        for j in range(k):
            labels = found.labels.copy()
            labels[i] = j
            assert objective(X, np.ones(60), labels, k) > lowest - 1e-9


def test_sparse_samples_give_the_same_clusters_and_stay_sparse(monkeypatch):
    """CSR is never made dense as a whole."""
    X = directions() * (np.random.default_rng(1).random((80, 6)) < 0.5)
    dense = SphericalHGMeans.fast(4, **QUICK).fit(X)
    widest = 0
    toarray = sp.csr_array.toarray

    def watched(self, *arguments, **named):
        nonlocal widest
        widest = max(widest, self.shape[0])
        return toarray(self, *arguments, **named)

    monkeypatch.setattr(sp.csr_array, "toarray", watched)
    sparse = SphericalHGMeans.fast(4, **QUICK).fit(sp.csr_array(X))
    assert widest <= 8
    assert sparse.inertia_ == pytest.approx(dense.inertia_, rel=1e-12)
    assert_array_equal(sparse.labels_, dense.labels_)
    assert_array_equal(sparse.predict(sp.csr_array(X)), sparse.labels_)
    assert_allclose(sparse.transform(sp.csr_array(X)), dense.transform(X), atol=1e-12)


def test_lengths_do_not_matter_and_centres_have_length_one():
    """Only directions do, down to denormal and up to huge samples."""
    X = directions()
    model = SphericalHGMeans.fast(4, **QUICK).fit(X)
    # By powers of two, which change no digit.
    scaled = X * 2.0 ** np.random.default_rng(2).integers(-300, 300, (80, 1))
    assert_array_equal(SphericalHGMeans.fast(4, **QUICK).fit(scaled).labels_, model.labels_)
    assert_allclose(np.linalg.norm(model.cluster_centers_, axis=1), 1.0)
    assert_array_equal(model.predict(X), model.labels_)
    assert model.score(X) == -model.inertia_
    assert_allclose(model.transform(X), 1.0 - unit_rows(X) @ model.cluster_centers_.T, atol=1e-12)


def test_samples_of_zeros_cost_one():
    """They have no direction, and no cluster is better than another."""
    X = np.vstack([directions(20), np.zeros((3, 6))])
    model = SphericalHGMeans.fast(3, **QUICK).fit(X)
    without = SphericalHGMeans.fast(3, **QUICK).fit(X[:20])
    assert model.inertia_ == pytest.approx(without.inertia_ + 3.0)
    X, weights = directions(3000, 20), np.linspace(0.5, 1.5, 3000)
    X[:40] = 0.0
    model = SphericalHGMeans(8, max_offspring=2, **QUICK).fit(X, sample_weight=weights)
    rest = SphericalHGMeans(8, max_offspring=2, **QUICK).fit(X[40:], sample_weight=weights[40:])
    assert model.inertia_ == pytest.approx(rest.inertia_ + weights[:40].sum(), rel=0.01)
    assert model.inertia_ == pytest.approx(min(one.inertia for one in model.history_))
    assert not model.labels_[:40].any()
    assert -model.score(X, sample_weight=weights) == pytest.approx(model.inertia_)


def test_dask_is_refused():
    """In one sentence."""
    array = pytest.importorskip("dask.array")
    model = SphericalHGMeans.fast(3, **QUICK).fit(directions())
    for use in (SphericalHGMeans(3).fit, model.predict, model.transform, model.score):
        with pytest.raises(ValueError, match="SphericalHGMeans cannot hold a Dask collection"):
            use(array.from_array(directions()))


def test_samples_of_zeros_are_not_drawn_as_centres():
    """However heavy they are; they have no direction, and cost the same anywhere."""
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    engine = SphericalEngine(X, np.array([1e6, 1.0, 1.0, 1e6]))
    assert engine.samples_at(np.linspace(0.0, 0.999, 20)).any(axis=1).all()
    for seed in range(10):
        drawn = engine.seed(np.random.default_rng(seed).random((2, 2)))
        assert {tuple(row) for row in drawn} == {(1.0, 0.0), (0.0, 1.0)}


def test_clusters_of_equal_directions_cost_nothing():
    """Remainders of rounding are no objective to search on."""
    X = np.outer([1.0, 2.0, 3.0, 5.0, 7.0], [0.3, 0.7, 0.1])
    X = np.concatenate([X, X[:, ::-1]])
    model = SphericalHGMeans(2, n_jobs=1, random_state=0).fit(X)
    assert model.inertia_ == 0.0
    assert model.stop_reason_ == "proven_optimal"
