"""SphericalHGMeans minimises the sum of cosine distances, dense and sparse alike."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from evomeans import SphericalHGMeans
from evomeans.engines import spherical
from evomeans.engines.protocol import LocalSearch, Order
from evomeans.engines.spherical import SphericalEngine, unit_rows

QUICK = {"n_jobs": 1, "random_state": 0}


def directions(n=80, d=6, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * rng.uniform(0.1, 100.0, (n, 1))


def objective(X, weights, labels, k):
    """Σw − Σ‖s_j‖, from the sums of unit samples."""
    units = X / np.linalg.norm(X, axis=1, keepdims=True)
    sums = [(weights[labels == j, None] * units[labels == j]).sum(axis=0) for j in range(k)]
    return weights.sum() - np.linalg.norm(sums, axis=1).sum()


def test_bounds_of_the_cpu_engine_lead_to_the_same_kind_of_end(monkeypatch):
    """Large data take another way to fixed points as low; rows of zeros are not centres."""
    X, k = directions(600, 8), 12
    X[::50] = 0.0
    weights = np.random.default_rng(1).uniform(0.5, 2.0, 600)
    ends = []
    for large in (spherical.LARGE, 0):
        monkeypatch.setattr(spherical, "LARGE", large)
        engine = SphericalEngine(X, weights)
        numbers = [np.random.default_rng(seed).random((k, 3)) for seed in range(10)]
        seeds = [engine.seed(one) for one in numbers]
        assert_allclose(np.linalg.norm(seeds, axis=2), 1.0, rtol=1e-6)
        found = engine.refine([Order(one) for one in seeds])
        for one in found:
            again = engine.refine([Order(one.centers)])[0]
            assert again.inertia == pytest.approx(one.inertia, rel=1e-9)
            assert one.inertia == pytest.approx(engine.assign(one.centers)[1])
        ends.append(np.mean([one.inertia for one in found]))
    assert ends[1] == pytest.approx(ends[0], rel=0.01)


def test_swaps_of_the_cpu_engine_lead_to_lower_ends(monkeypatch):
    """Each of them is a fixed point with the cosine, and so is one after a relocation."""
    monkeypatch.setattr(spherical, "LARGE", 0)
    engine, k = SphericalEngine(directions(600, 8), None), 12
    seeds = [engine.seed(np.random.default_rng(seed).random((k, 1))) for seed in range(8)]
    swaps = LocalSearch(single_moves=True, swaps=k)
    ends = []
    for changes in ({}, {"local_search": swaps}, {"removed": 3}):
        found = engine.refine([Order(one, **changes) for one in seeds])
        again = engine.refine([Order(one.centers) for one in found])
        inertias = [one.inertia for one in found]
        assert_allclose([one.inertia for one in again], inertias, rtol=1e-9)
        ends.append(np.mean(inertias))
    assert ends[1] < 0.995 * ends[0]


@pytest.mark.parametrize("large", [spherical.LARGE, 0])
def test_descents_with_fewer_samples_than_clusters_end(large, monkeypatch):
    """Rounding moves a sample that is alone to a cluster that is empty, and back for ever."""
    monkeypatch.setattr(spherical, "LARGE", large)
    X, weights = np.random.default_rng(0).normal(size=(300, 20)), np.zeros(300)
    weights[:5] = 1.0
    engine = SphericalEngine(X, weights)
    (found,) = engine.refine([Order(engine.seed(np.random.default_rng(0).random((8, 3))))])
    assert found.inertia == 0.0
    assert found.n_iter < 100


def test_equal_directions_cost_nothing_in_matrix_products_either(monkeypatch):
    """The search ends there: nothing is better."""
    monkeypatch.setattr("evomeans.engines.base.LONG", 0)
    X = directions(7, 20)[np.arange(700) % 7] * np.linspace(0.1, 1.0, 700)[:, None]
    labels, inertia = SphericalEngine(X, None).assign(unit_rows(X[:7]))
    assert_array_equal(labels, np.arange(700) % 7)
    assert inertia == 0.0


def test_next_to_no_time_is_enough_for_centres_of_length_one():
    X = directions(3000, 40)
    with pytest.warns(ConvergenceWarning, match=r"max_time=0\.001 was up"):
        model = SphericalHGMeans(30, max_time=1e-3, **QUICK).fit(X)
    assert_array_equal(model.predict(X), model.labels_)
    assert model.score(X) == pytest.approx(-model.inertia_)


def test_an_abandoned_engine_of_large_data_ends_soon(monkeypatch):
    """Its twin as well, and each has its own work space."""
    monkeypatch.setattr(spherical, "LARGE", 0)
    X = directions(400, 5)
    one, other = SphericalEngine(X, None, n_jobs=2).workers(6, 2)
    numbers = np.random.default_rng(0).random((6, 2))
    assert_array_equal(one.seed(numbers), other.seed(numbers))
    one.abandon(True)
    assert not one.refine([Order(X[:6])])[0].is_complete
    assert other.refine([Order(X[:6])])[0].n_iter > 0
    one.abandon(False)
    assert one.refine([Order(X[:6])])[0].n_iter > 0


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
