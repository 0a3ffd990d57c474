"""What the methods that can stop at any time have in common, around their searches."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from evomeans.baselines import BreathingKMeans, MultiStartKMeans, RandomSwap
from evomeans.baselines.base import AnytimeBaseline, random_samples
from evomeans.engines import Refinement, create_engine
from problems import make_weights

METHODS = {
    "random": MultiStartKMeans(6, n_runs=15, random_state=1),
    "k-means++": MultiStartKMeans(6, init="k-means++", n_runs=15, random_state=1),
    "random swap": RandomSwap(6, n_swaps=40, random_state=1),
    "breathing": BreathingKMeans(6, random_state=1),
}
X = np.random.default_rng(0).normal(size=(300, 3)) + 4.0 * np.arange(300)[:, None] % 28.0


@pytest.fixture(params=list(METHODS))
def model(request: pytest.FixtureRequest) -> AnytimeBaseline:
    return clone(METHODS[request.param])


def bits(model: AnytimeBaseline) -> tuple[object, ...]:
    """Everything that was found, to the last bit, but not how long it took."""
    records = [(r.number, r.inertia, r.best, r.n_iter) for r in model.history_]
    arrays = model.cluster_centers_.tobytes(), model.labels_.tobytes()
    return *arrays, model.inertia_, model.n_iter_, model.stop_reason_, tuple(records)


@pytest.mark.parametrize("engine", ["cpu", "reference"])
def test_fitted_attributes_agree_with_each_other(model, engine, dtype, weighted) -> None:
    """Labels are predictions, the score is the inertia, and no solution seen is better."""
    samples = X.astype(dtype)
    weights = make_weights(300, np.random.default_rng(1)) if weighted else None
    model.set_params(engine=engine).fit(samples, sample_weight=weights)
    assert model.cluster_centers_.shape == (6, 3)
    assert model.cluster_centers_.dtype == dtype
    assert_array_equal(model.labels_, model.predict(samples))
    assert model.inertia_ == -model.score(samples, sample_weight=weights)
    best = [record.best for record in model.history_]
    assert best == np.minimum.accumulate([record.inertia for record in model.history_]).tolist()
    assert model.inertia_ <= best[-1] * (1.0 + 1e-6)
    assert model.n_iter_ == len(model.history_)
    assert [record.number for record in model.history_] == list(range(1, model.n_iter_ + 1))
    assert model.stop_reason_ == "max_iter"


def test_engines_find_the_same(model) -> None:
    """The same solutions, one after the other, up to rounding."""
    cpu, reference = (clone(model).set_params(engine=e).fit(X) for e in ("cpu", "reference"))
    assert_allclose(
        [record.inertia for record in cpu.history_],
        [record.inertia for record in reference.history_],
        rtol=1e-9,
    )
    assert_allclose(cpu.cluster_centers_, reference.cluster_centers_, rtol=1e-9)


@pytest.mark.usefixtures("eager_threads")
def test_neither_threads_nor_repetition_change_a_bit(model) -> None:
    """An int as random_state makes it reproducible; another one makes it another search."""
    first = bits(model.fit(X))
    assert bits(model.fit(X)) == first
    assert bits(clone(model).set_params(n_jobs=3).fit(X)) == first
    assert bits(clone(model).set_params(random_state=2).fit(X)) != first


def test_sparse_samples(model, dtype, weighted) -> None:
    """The same solution as from their dense copy, where that is not shifted."""
    rng = np.random.default_rng(2)
    dense = (rng.normal(size=(200, 8)) * (rng.random((200, 8)) < 0.4)).astype(dtype)
    weights = make_weights(200, rng) if weighted else None
    one = clone(model).fit(dense, sample_weight=weights)
    two = clone(model).fit(sp.csr_matrix(dense), sample_weight=weights)
    assert two.inertia_ == pytest.approx(one.inertia_, rel=1e-5)
    assert_array_equal(two.labels_, two.predict(sp.csr_matrix(dense)))


def test_time_and_target_end_the_search(model) -> None:
    """Whatever the limit, there is an answer."""
    model.fit(X)
    reached = clone(model).set_params(target_inertia=1e9).fit(X)
    assert (reached.stop_reason_, reached.n_iter_) == ("target_inertia", 1)
    hurried = clone(model).set_params(max_time=1e-9).fit(X)
    assert (hurried.stop_reason_, hurried.n_iter_) == ("max_time", 1)
    assert hurried.cluster_centers_.shape == (6, 3)


class Interrupted(MultiStartKMeans):
    """Somebody presses Ctrl-C during the third run."""

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


def test_as_many_clusters_as_samples_are_proven_optimal(model) -> None:
    model.set_params(n_clusters=12).fit(X[:12])
    assert model.inertia_ == 0.0
    assert model.stop_reason_ == "proven_optimal"


def test_fewer_distinct_samples_than_clusters(model) -> None:
    """All that can be done, and a warning."""
    repeated = np.repeat(X[:3], 20, axis=0)
    with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(3\) found smaller than"):
        model.fit(repeated)
    assert model.inertia_ == 0.0


def test_one_cluster_is_the_mean(model) -> None:
    model.set_params(n_clusters=1).fit(X)
    assert_allclose(model.cluster_centers_[0], X.mean(axis=0), rtol=1e-12)


@pytest.mark.parametrize(
    ("parameters", "error", "text"),
    [
        ({"n_clusters": 0}, ValueError, "n_clusters=0 must be at least 1"),
        ({"n_clusters": 2.5}, TypeError, "n_clusters must be an int, got 2.5"),
        ({"n_clusters": 301}, ValueError, "n_samples=300 should be >= n_clusters=301"),
        ({"max_time": -1}, ValueError, "max_time=-1.0 must be positive"),
        ({"target_inertia": "low"}, TypeError, "target_inertia must be a number or None"),
        ({"engine": "steam"}, ValueError, "engine='steam' is unknown"),
        ({"n_jobs": 0}, ValueError, "n_jobs=0 must be positive"),
        ({"random_state": "dice"}, TypeError, "random_state must be None, an int"),
    ],
)
def test_wrong_parameters_are_named(model, parameters, error, text) -> None:
    """And leave the estimator unfitted."""
    with pytest.raises(error, match=text):
        model.set_params(**parameters).fit(X)
    assert not hasattr(model, "cluster_centers_")


def test_a_failed_fit_leaves_the_last_one(model) -> None:
    before = bits(model.fit(X))
    with pytest.raises(ValueError, match="sample_weight"):
        model.fit(X, sample_weight=np.zeros(300))
    assert bits(model) == before


def test_random_samples_are_distinct_and_follow_the_weights(rival_engine_name) -> None:
    """None twice among equal weights; none without weight, and one that has most of it always."""
    rng = np.random.default_rng(3)
    samples = rng.normal(size=(20, 2))
    engine = create_engine(rival_engine_name, samples, None)
    for _ in range(20):
        assert len(np.unique(random_samples(engine, 15, rng), axis=0)) == 15
    weights = np.concatenate([np.zeros(10), [40.0], np.ones(9)])
    engine = create_engine(rival_engine_name, samples, weights)
    drawable = engine.frame.encode(samples[10:])
    for _ in range(20):
        chosen = random_samples(engine, 5, rng)
        found = (chosen[:, None] == drawable[None]).all(axis=2)
        assert found.any(axis=1).all()
        assert found[:, 0].any()


def test_an_engine_that_cannot_serve_rivals_is_refused():
    with pytest.raises(ValueError, match="engine='gpu' cannot be used here; it must be one of 'a"):
        MultiStartKMeans(2, engine="gpu").fit(np.eye(3))


def test_samples_in_dask_are_refused():
    """By every engine; once fitted, a rival labels them lazily."""
    samples = pytest.importorskip("dask.array").from_array(X, chunks=(100, X.shape[1]))
    for engine in ("auto", "cpu", "reference"):
        with pytest.raises(ValueError, match="X is a Dask collection, which only HGMeans with"):
            MultiStartKMeans(2, engine=engine).fit(samples)
    model = MultiStartKMeans(3, n_runs=2, random_state=0).fit(X)
    np.testing.assert_array_equal(model.predict(samples).compute(), model.labels_)
