"""The interface that all baselines have in common."""

from __future__ import annotations

import pickle
import signal
from collections.abc import Iterator

import numpy as np
import pytest
import scipy.sparse as sp
from baseline_methods import ANYTIME, METHODS, bits, inertias
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from evomeans.engines import Refinement
from lab.baselines import MultiStartKMeans
from lab.baselines.base import random_samples
from lab.baselines.engines import create_engine
from oracles import lowest_inertia
from problems import make_weights, paired

X = np.random.default_rng(0).normal(size=(56, 3)) + 4.0 * np.arange(56)[:, None] % 28.0


@pytest.fixture(params=METHODS)
def model(request: pytest.FixtureRequest):
    """Every baseline."""
    return clone(METHODS[request.param])


@pytest.fixture(params=ANYTIME)
def anytime(request: pytest.FixtureRequest):
    """Every baseline that can stop at any time."""
    return clone(ANYTIME[request.param])


# ---- the result ------------------------------------------------------------------------------


@paired
def test_fitted_attributes_agree_with_each_other(model, engine_name, dtype, weighted) -> None:
    """Labels are predictions, the score is the inertia, and no solution seen is better."""
    samples = X.astype(dtype)
    weights = make_weights(56, np.random.default_rng(1)) if weighted else None
    model.set_params(engine=engine_name).fit(samples, sample_weight=weights)
    assert model.cluster_centers_.shape == (6, 3)
    assert model.cluster_centers_.dtype == dtype
    assert_array_equal(model.labels_, model.predict(samples))
    assert_allclose(-model.score(samples, sample_weight=weights), model.inertia_, rtol=1e-13)
    assert model.inertia_ <= min(inertias(model)) * (1.0 + 1e-6)


def test_the_history_has_a_record_of_each_solution(anytime) -> None:
    anytime.fit(X)
    best = [record.best for record in anytime.history_]
    assert best == np.minimum.accumulate(inertias(anytime)).tolist()
    assert [record.number for record in anytime.history_] == list(range(1, anytime.n_iter_ + 1))
    assert anytime.stop_reason_ == "max_offspring"


@pytest.mark.parametrize("k", [3, 8])
def test_it_finds_the_optimum_of_little_data(anytime, weighted, k) -> None:
    """Proven by dynamic programming, for the best of three seeds; a breath in exceeds n = 10."""
    samples = np.random.default_rng(4).normal(size=(10, 2))
    weights = np.random.default_rng(5).uniform(0.5, 2.0, size=10) if weighted else np.ones(10)
    anytime.set_params(n_clusters=k)
    for name in {"n_runs", "n_swaps", "n_chunks"} & set(anytime.get_params()):
        anytime.set_params(**{name: 150})
    found = [
        anytime.set_params(random_state=seed).fit(samples, sample_weight=weights).inertia_
        for seed in range(3)
    ]
    assert min(found) == pytest.approx(lowest_inertia(samples, weights, k), rel=1e-9)


# ---- the same result -------------------------------------------------------------------------


def test_engines_find_the_same(model, weighted) -> None:
    """The same solutions, one after another, up to rounding.

    The samples have no groups, lest SAGA finds the same solution twice and rounding decides which
    comes first.
    """
    rng = np.random.default_rng(1)
    samples, weights = rng.normal(size=(80, 3)), make_weights(80, rng) if weighted else None
    cpu, reference = (
        clone(model).set_params(engine=engine).fit(samples, sample_weight=weights)
        for engine in ("cpu", "reference")
    )
    assert cpu.n_iter_ == reference.n_iter_
    assert getattr(cpu, "strategies_", ()) == getattr(reference, "strategies_", ())
    assert_allclose(inertias(cpu), inertias(reference), rtol=1e-9)
    assert_allclose(cpu.cluster_centers_, reference.cluster_centers_, rtol=1e-9)


@pytest.mark.usefixtures("eager_threads")
def test_neither_threads_nor_repetition_nor_memory_change_a_bit(model, monkeypatch) -> None:
    """Memory is what the engine keeps of the parents; it only saves work."""
    first = bits(model.fit(X))
    assert bits(model.fit(X)) == first
    assert bits(clone(model).set_params(n_jobs=3).fit(X)) == first
    monkeypatch.setattr("evomeans.engines.cpu.memory.Memory.lend", lambda *arguments: None)
    assert bits(clone(model).fit(X)) == first


def test_another_seed_makes_another_search(anytime) -> None:
    assert bits(clone(anytime).fit(X)) != bits(anytime.set_params(random_state=2).fit(X))


def test_solutions_can_be_watched(anytime) -> None:
    """With an engine and a generator of one's own; the estimator stays as it is."""
    parameters = dict(vars(anytime))
    stream = anytime.solutions(create_engine("cpu", X, None), np.random.default_rng(1))
    watched = [solution.inertia for solution in stream]
    assert vars(anytime) == parameters
    assert watched == inertias(anytime.fit(X))


@pytest.mark.parametrize(
    ("dtype", "weighted"),
    # Kernels for sparse samples in single precision are compiled here.
    [pytest.param(np.float32, True, marks=pytest.mark.slow), (np.float64, False)],
)
def test_sparse_samples(model, dtype, weighted) -> None:
    """The same solution as from their dense copy, up to the shift that only that gets."""
    rng = np.random.default_rng(2)
    dense = (rng.normal(size=(100, 8)) * (rng.random((100, 8)) < 0.4)).astype(dtype)
    weights = make_weights(100, rng) if weighted else None
    one = clone(model).fit(dense, sample_weight=weights)
    two = clone(model).fit(sp.csr_matrix(dense), sample_weight=weights)
    assert two.inertia_ == pytest.approx(one.inertia_, rel=1e-5)
    assert_array_equal(two.labels_, two.predict(sp.csr_matrix(dense)))


def test_a_fitted_estimator_is_small(model) -> None:
    """It holds neither samples nor an engine, and survives pickling."""
    stored = pickle.dumps(model.fit(X))
    assert len(stored) < 20_000
    assert bits(pickle.loads(stored)) == bits(model)


# ---- few, equal and weightless samples -------------------------------------------------------


def test_as_many_clusters_as_samples(model, dtype) -> None:
    """Each is a cluster of its own, which is proven to be optimal."""
    samples = X[:12].astype(dtype)
    model.set_params(n_clusters=12).fit(samples)
    assert model.inertia_ == 0.0
    assert_array_equal(model.cluster_centers_, samples[np.lexsort(samples.T[::-1])])
    assert getattr(model, "stop_reason_", "proven_optimal") == "proven_optimal"


def test_fewer_distinct_samples_than_clusters(model, engine_name) -> None:
    """The best that is possible, and a warning."""
    repeated = np.repeat(X[:3], 20, axis=0)
    with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(3\) found smaller than"):
        model.set_params(engine=engine_name).fit(repeated)
    assert model.inertia_ == 0.0
    assert model.cluster_centers_.shape == (6, 3)


def test_one_cluster_is_the_mean(model) -> None:
    model.set_params(n_clusters=1).fit(X)
    assert_allclose(model.cluster_centers_[0], X.mean(axis=0), rtol=1e-12)


def test_samples_without_weight_do_not_count(model) -> None:
    """No centre is theirs, however far away they are."""
    far = np.concatenate([X, 1000.0 + X[:10]])
    model.fit(far, sample_weight=np.append(np.ones(56), np.zeros(10)))
    assert np.abs(model.cluster_centers_).max() < 100.0


# ---- limits ----------------------------------------------------------------------------------


def test_time_and_target_end_the_search(anytime) -> None:
    """Whatever the limit, there is an answer."""
    reached = clone(anytime).set_params(target_inertia=1e9).fit(X)
    assert (reached.stop_reason_, reached.n_iter_) == ("target_inertia", 1)
    hurried = clone(anytime).set_params(max_time=1e-9).fit(X)
    assert (hurried.stop_reason_, hurried.n_iter_) == ("max_time", 1)
    assert hurried.cluster_centers_.shape == (6, 3)


class Interrupted(MultiStartKMeans):
    """Ctrl-C is pressed during the third run."""

    def solutions(self, engine, rng) -> Iterator[Refinement]:
        for number, solution in enumerate(super().solutions(engine, rng), start=1):
            if number == 3:
                signal.raise_signal(signal.SIGINT)
            yield solution


def test_an_interrupt_keeps_the_best_and_says_so() -> None:
    model = Interrupted(6, n_runs=100, random_state=0)
    with pytest.warns(RuntimeWarning, match="interrupted after 3 solutions; the best is kept"):
        model.fit(X)
    assert (model.stop_reason_, model.n_iter_) == ("interrupted", 3)
    assert_array_equal(model.labels_, model.predict(X))


# ---- errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "error", "text"),
    [
        ({"n_clusters": 0}, ValueError, "n_clusters=0 must be at least 1"),
        ({"n_clusters": 2.5}, TypeError, "n_clusters must be an int, got 2.5"),
        ({"n_clusters": 57}, ValueError, "n_samples=56 should be >= n_clusters=57"),
        ({"engine": "steam"}, ValueError, "engine='steam' is unknown"),
        ({"engine": "gpu"}, ValueError, "engine='gpu' cannot be used here; it must be one of 'a"),
        ({"n_jobs": 0}, ValueError, "n_jobs=0 must be positive"),
        ({"max_time": -1}, ValueError, "max_time=-1.0 must be positive, or None"),
        ({"max_time": 0}, ValueError, "max_time=0.0 must be positive, or None"),
        ({"target_inertia": "low"}, TypeError, "target_inertia must be a number or None"),
        ({"random_state": "dice"}, TypeError, "random_state must be None, an int"),
        ({"init": "lucky"}, ValueError, r"init='lucky' must be '.* or '.*k-means\+\+'"),
        ({"init": np.zeros((2, 2))}, TypeError, "init must be '.* or '.*, got array"),
        ({"n_runs": 0}, ValueError, "n_runs=0 must be at least 1"),
        ({"n_runs": 1e3}, TypeError, "n_runs must be an int, got 1000.0"),
        ({"n_swaps": 0}, ValueError, "n_swaps=0 must be at least 1"),
        ({"kmeans_iterations": -1}, ValueError, "kmeans_iterations=-1 must be at least"),
        ({"kmeans_iterations": True}, TypeError, "kmeans_iterations must be an int, got True"),
        ({"kmeans_iterations": None}, TypeError, "kmeans_iterations must be an int, got None"),
        ({"m": -1}, ValueError, "m=-1 must be at least 0"),
        ({"m": "deep"}, TypeError, "m must be an int, got 'deep'"),
        ({"theta": 0}, ValueError, "theta=0 must be positive, or None"),
        ({"theta": float("nan")}, ValueError, "theta=nan must be positive, or None"),
        ({"theta": "wide"}, TypeError, "theta must be a number or None, got 'wide'"),
        ({"population_size": 1}, ValueError, "population_size=1 must be at least"),
        ({"population_size": 4.0}, TypeError, "population_size must be an int, got 4.0"),
        ({"n_generations": 0}, ValueError, "n_generations=0 must be at least 1"),
        ({"n_generations": "many"}, TypeError, "n_generations must be an int, got 'many'"),
        ({"algorithm": "best"}, ValueError, "algorithm='best' is unknown; it is 'fast' or 'full'"),
        ({"algorithm": 1}, TypeError, "algorithm must be 'fast' or 'full', got 1 of type int"),
        ({"reading": "none"}, ValueError, "reading='none' must be 'roulette' or 'elitist'"),
        ({"population_size": 3, "alpha": 0.5}, ValueError, "population_size=3 must be at least 4"),
        ({"n_iter_no_change": 0}, ValueError, "n_iter_no_change=0 must be at least 1"),
        ({"n_attempts": 0}, ValueError, "n_attempts=0 must be at least 1"),
        ({"tol": -1.0}, ValueError, "tol=-1.0 must be a number at least 0"),
        ({"tol": None}, TypeError, "tol must be a number, got None"),
        ({"tol": np.inf}, ValueError, "tol=inf must be a number at least 0"),
        ({"alpha": 1.5}, ValueError, "alpha=1.5 must be a number from 0 to 1"),
        (
            {"f_range": (0.8, 0.5)},
            ValueError,
            r"f_range=\(0.8, 0.5\) must have its lower end first",
        ),
        ({"f_range": 0.5}, TypeError, "f_range must be a pair of numbers, got 0.5"),
        ({"matching": "best"}, ValueError, "matching='best' must be 'exact' or 'greedy'"),
        ({"mutation": 1}, TypeError, "mutation must be True or False, got 1"),
        ({"beta_step": -0.1}, ValueError, "beta_step=-0.1 must be a number at least 0"),
        ({"n_candidates": 0}, ValueError, "n_candidates=0 must be at least 1"),
        ({"n_neighbors": 1}, ValueError, "n_neighbors=1 must be at least 2"),
        ({"n_passes": 0}, ValueError, "n_passes=0 must be at least 1"),
        ({"threshold": 0.9}, ValueError, "threshold=0.9 must be a number at least 1"),
        ({"threshold": "high"}, TypeError, "threshold must be a number or None, got 'high'"),
        ({"sampling": "some"}, ValueError, "sampling='some' must be 'batch' or 'sequential'"),
        ({"sampling": 3}, TypeError, "sampling must be 'batch' or 'sequential', got 3 of type"),
        ({"chunk_size": 0}, ValueError, "chunk_size=0 must be at least 1"),
        ({"n_chunks": 0}, ValueError, "n_chunks=0 must be at least 1"),
        ({"gamma1": -0.1}, ValueError, r"gamma1=-0.1 must be a number in \[0, 1\], or 'auto'"),
        ({"gamma2": 1.5}, ValueError, r"gamma2=1.5 must be a number in \[0, 1\], or 'auto'"),
        ({"gamma3": 0.9}, ValueError, "gamma3=0.9 must be a number from 1 on, or 'auto'"),
        ({"gamma3": np.nan}, ValueError, "gamma3=nan must be a number from 1 on, or 'auto'"),
        ({"gamma1": "wide"}, TypeError, "gamma1 must be .* or 'auto', got 'wide' of type str"),
        ({"gamma2": True}, TypeError, "gamma2 must be .* or 'auto', got True of type bool"),
        ({"gamma3": None}, TypeError, "gamma3 must be .* or 'auto', got None of type NoneType"),
        ({"duplicates": "all"}, ValueError, "duplicates='all' is unknown; it is 'published' or"),
        ({"duplicates": 1}, TypeError, "duplicates must be 'published' or 'described', got 1 of"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else None,
)
def test_wrong_parameters_are_named(parameters, error, text) -> None:
    """By every baseline that has them, which stays unfitted."""
    models = [clone(m) for m in METHODS.values() if parameters.keys() <= m.get_params().keys()]
    assert models
    for model in models:
        with pytest.raises(error, match=text):
            model.set_params(**parameters).fit(X)
        assert not hasattr(model, "cluster_centers_")


def test_random_swap_needs_an_iteration_of_kmeans() -> None:
    """SAGA does not."""
    with pytest.raises(ValueError, match="kmeans_iterations=0 must be at least 1"):
        clone(METHODS["random swap"]).set_params(kmeans_iterations=0).fit(X)
    clone(METHODS["SAGA"]).set_params(kmeans_iterations=0).fit(X)


def test_a_failed_fit_leaves_the_last_one(model) -> None:
    before = bits(model.fit(X))
    with pytest.raises(ValueError, match="sample_weight"):
        model.fit(X, sample_weight=np.zeros(56))
    assert bits(model) == before


def test_samples_in_dask_are_refused() -> None:
    """By every engine; once fitted, a baseline labels them lazily."""
    samples = pytest.importorskip("dask.array").from_array(X, chunks=(40, X.shape[1]))
    for engine in ("auto", "cpu", "reference"):
        with pytest.raises(ValueError, match="X is a Dask collection, which only HGMeans with"):
            MultiStartKMeans(2, engine=engine).fit(samples)
    model = MultiStartKMeans(3, n_runs=2, random_state=0).fit(X)
    assert_array_equal(model.predict(samples).compute(), model.labels_)


# ---- parts -----------------------------------------------------------------------------------


def test_random_samples_are_distinct_and_follow_the_weights(engine_name) -> None:
    """None twice among equal weights; none without weight, and one that has most of it always."""
    rng = np.random.default_rng(3)
    samples = rng.normal(size=(20, 2))
    engine = create_engine(engine_name, samples, None)
    for _ in range(20):
        assert len(np.unique(random_samples(engine, 15, rng), axis=0)) == 15
    weights = np.concatenate([np.zeros(10), [40.0], np.ones(9)])
    engine = create_engine(engine_name, samples, weights)
    drawable = engine.frame.encode(samples[10:])
    for _ in range(20):
        chosen = random_samples(engine, 5, rng)
        found = (chosen[:, None] == drawable[None]).all(axis=2)
        assert found.any(axis=1).all()
        assert found[:, 0].any()
