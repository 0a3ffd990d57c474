"""SAGA as an estimator: depth, parameters that adapt, parity, weights, limits and errors."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_blobs

from evomeans.baselines import SAGA, MultiStartKMeans
from evomeans.baselines.saga import Strategy
from evomeans.baselines.saga.crossovers import CROSSOVERS
from evomeans.engines import create_engine
from oracles import lowest_inertia
from problems import make_samples, make_weights

SMALL = {"population_size": 10, "n_generations": 6, "random_state": 0}
X = np.random.default_rng(0).normal(size=(300, 3)) + 4.0 * np.arange(300)[:, None] % 28.0


def found(model: SAGA) -> tuple[object, ...]:
    """Everything that was found, to the last bit, but not how long it took."""
    records = [(r.number, r.inertia, r.best, r.n_iter) for r in model.history_]
    arrays = model.cluster_centers_.tobytes(), model.labels_.tobytes()
    return *arrays, model.inertia_, model.strategies_, tuple(records)


# ---- the search ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k", [2, 3, 4])
def test_tiny_problems_are_solved_to_optimality(rival_engine_name, weighted, k, seed) -> None:
    """The lowest inertia over all partitions of nine samples."""
    rng = np.random.default_rng(seed)
    samples = make_samples("normal", 9, 2, np.float64, rng)
    weights = make_weights(9, rng) + 0.1 if weighted else None
    model = SAGA(
        k, population_size=15, n_generations=15, engine=rival_engine_name, random_state=seed
    )
    model.fit(samples, sample_weight=weights)
    counted = np.ones(9) if weights is None else weights
    assert model.inertia_ == pytest.approx(lowest_inertia(samples, counted, k), rel=1e-9)


def test_it_is_deeper_than_many_runs_of_kmeans() -> None:
    """Of 40 blobs in the plane, of which 100 runs of k-means++ miss some."""
    blobs, _ = make_blobs(1000, centers=40, cluster_std=0.3, random_state=3)
    runs = MultiStartKMeans(40, init="k-means++", n_runs=100, random_state=0).fit(blobs)
    model = SAGA(40, population_size=20, n_generations=30, random_state=0).fit(blobs)
    assert model.inertia_ < 0.95 * runs.inertia_


def test_every_solution_is_written_down_and_the_best_never_gets_worse() -> None:
    """The first generation, eight children in each of six, and the best, refined."""
    model = SAGA(6, **SMALL).fit(X)
    assert len(model.history_) == model.n_iter_ == 10 + 6 * 8 + 1
    inertias = np.array([record.inertia for record in model.history_])
    best = np.array([record.best for record in model.history_])
    assert_array_equal(best, np.minimum.accumulate(inertias))
    assert inertias[-1] == best[-1]
    assert model.inertia_ == pytest.approx(best[-1], rel=1e-12)
    assert [record.number for record in model.history_] == list(range(1, model.n_iter_ + 1))
    assert model.stop_reason_ == "max_iter"


def test_children_get_the_steps_that_were_asked_for() -> None:
    """More of them make the first children better."""
    means = []
    for steps in (0, 1, 5):
        model = SAGA(6, kmeans_iterations=steps, **SMALL).fit(X)
        means.append(np.mean([record.inertia for record in model.history_[10:18]]))
    assert means[0] > means[1] > means[2]


def test_solutions_can_be_watched() -> None:
    """With an engine and a source of randomness of one's own; the estimator is not fitted then."""
    model = SAGA(6, **SMALL)
    engine = create_engine("cpu", X, None)
    stream = [s.inertia for s in model.solutions(engine, np.random.default_rng(0))]
    assert not hasattr(model, "strategies_")
    assert stream == [record.inertia for record in model.fit(X).history_]


# ---- strategy parameters ---------------------------------------------------------------------


def test_the_parameters_of_the_last_generation_are_shown() -> None:
    """One for each individual, all within their ranges."""
    model = SAGA(6, **SMALL).fit(X)
    assert len(model.strategies_) == 10
    for strategy in model.strategies_:
        assert isinstance(strategy, Strategy)
        assert strategy.crossover in CROSSOVERS
        assert 0.0 <= strategy.mutation_probability <= 1.0
        assert 0.0 <= strategy.noise_range <= 1.0


def test_a_crossover_that_spoils_children_dies_out(monkeypatch) -> None:
    """Parameters adapt: what makes good children is passed on with them."""

    def spoiled(couple, uniforms):
        return np.full_like(couple.first, 0.9), 0

    monkeypatch.setitem(CROSSOVERS, "PNN", spoiled)
    monkeypatch.setitem(CROSSOVERS, "random multipoint", spoiled)
    share = []
    for seed in range(5):
        model = SAGA(6, population_size=30, n_generations=20, random_state=seed).fit(X)
        share += [s.crossover in ("PNN", "random multipoint") for s in model.strategies_[:15]]
    assert np.mean(share) < 0.1


# ---- samples of all kinds --------------------------------------------------------------------


def test_engines_agree(weighted) -> None:
    """The same solutions up to rounding, made by the same strategies."""
    weights = make_weights(300, np.random.default_rng(5)) if weighted else None
    cpu, reference = (
        SAGA(6, engine=engine, **SMALL).fit(X, sample_weight=weights)
        for engine in ("cpu", "reference")
    )
    assert cpu.strategies_ == reference.strategies_
    assert_allclose(
        [record.inertia for record in cpu.history_],
        [record.inertia for record in reference.history_],
        rtol=1e-9,
    )
    assert_array_equal(cpu.labels_, reference.labels_)


def test_the_result_depends_on_the_seed_alone(eager_threads, monkeypatch) -> None:
    """Not on the number of threads, nor on what the engine remembers of the parents."""
    model = SAGA(6, **SMALL).fit(X)
    assert found(SAGA(6, **SMALL).fit(X)) == found(model)
    assert found(SAGA(6, n_jobs=2, **SMALL).fit(X)) == found(model)
    assert found(SAGA(6, **{**SMALL, "random_state": 1}).fit(X)) != found(model)
    monkeypatch.setattr("evomeans.engines.cpu.memory.Memory.recall", lambda *arguments: None)
    assert found(SAGA(6, **SMALL).fit(X)) == found(model)


def test_sparse_samples_give_the_same_solution() -> None:
    sparse = np.where(np.abs(X) < 6.0, 0.0, X)
    dense = SAGA(6, **SMALL).fit(sparse)
    model = SAGA(6, **SMALL).fit(sp.csr_array(sparse))
    assert_allclose(model.inertia_, dense.inertia_, rtol=1e-9)
    assert_array_equal(model.labels_, dense.labels_)


def test_single_precision_stays_single(rival_engine_name) -> None:
    model = SAGA(6, engine=rival_engine_name, **SMALL).fit(X.astype(np.float32))
    assert model.cluster_centers_.dtype == np.float32
    assert model.inertia_ == pytest.approx(SAGA(6, **SMALL).fit(X).inertia_, rel=1e-3)


def test_samples_without_weight_do_not_count() -> None:
    """No centre is theirs, however far away they are."""
    far = np.concatenate([X, 1000.0 + X[:10]])
    weights = np.append(np.ones(300), np.zeros(10))
    model = SAGA(6, **SMALL).fit(far, sample_weight=weights)
    assert np.abs(model.cluster_centers_).max() < 100.0


@pytest.mark.parametrize("k", [1, 2])
def test_few_clusters(rival_engine_name, k) -> None:
    model = SAGA(k, engine=rival_engine_name, **SMALL).fit(X)
    runs = MultiStartKMeans(k, n_runs=20, random_state=0).fit(X)
    assert model.inertia_ == pytest.approx(runs.inertia_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("k", [3, 5])
def test_as_many_clusters_as_distinct_samples_or_more(rival_engine_name, k) -> None:
    """There is nothing left to gain, and the search says so."""
    few = np.array([[0.0, 0.0], [5.0, 1.0], [9.0, 9.0]])[np.arange(30) % 3]
    model = SAGA(k, engine=rival_engine_name, **SMALL).fit(few)
    assert model.inertia_ == 0.0
    assert model.stop_reason_ == "proven_optimal"


# ---- limits ----------------------------------------------------------------------------------


def test_a_target_ends_the_search() -> None:
    model = SAGA(6, **SMALL).fit(X)
    target = model.history_[20].best
    stopped = SAGA(6, target_inertia=target, **SMALL).fit(X)
    assert stopped.stop_reason_ == "target_inertia"
    assert stopped.n_iter_ <= 21
    assert stopped.inertia_ <= target


def test_a_time_limit_ends_the_search() -> None:
    """Even before the first generation is complete; there is a solution all the same."""
    model = SAGA(6, population_size=10, n_generations=10**6, max_time=1e-9).fit(X)
    assert model.stop_reason_ == "max_time"
    assert model.n_iter_ == 1
    assert model.strategies_ == ()
    later = SAGA(6, population_size=10, n_generations=10**6, max_time=0.2).fit(X)
    assert later.stop_reason_ == "max_time"
    assert len(later.strategies_) == 10


def test_a_fitted_estimator_is_small() -> None:
    """It holds no samples and no engine, whether the search went well or not."""
    model = SAGA(6, **SMALL).fit(X)
    assert len(pickle.dumps(model)) < 20_000
    assert found(pickle.loads(pickle.dumps(model))) == found(model)


def test_a_failure_in_the_search_is_not_hidden(monkeypatch) -> None:
    def fail(*arguments):
        raise MemoryError("no room")

    monkeypatch.setattr("evomeans.baselines.saga.evolution.Evolution.__init__", fail)
    model = SAGA(6)
    with pytest.raises(MemoryError, match="no room"):
        model.fit(X)
    assert vars(model) == vars(SAGA(6))


@pytest.mark.parametrize(
    ("parameters", "error", "text"),
    [
        ({"population_size": 1}, ValueError, "population_size=1 must be at least 2"),
        ({"population_size": 4.0}, TypeError, "population_size must be an int, got 4.0"),
        ({"n_generations": 0}, ValueError, "n_generations=0 must be at least 1"),
        ({"n_generations": "many"}, TypeError, "n_generations must be an int, got 'many'"),
        ({"kmeans_iterations": -1}, ValueError, "kmeans_iterations=-1 must be at least 0"),
        ({"kmeans_iterations": None}, TypeError, "kmeans_iterations must be an int, got None"),
        ({"max_time": 0}, ValueError, "max_time=0.0 must be positive"),
        ({"n_clusters": 0}, ValueError, "n_clusters=0 must be at least 1"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_wrong_parameters_are_named(parameters, error, text) -> None:
    with pytest.raises(error, match=text):
        SAGA(**parameters).fit(X)
