"""HGMeans from outside: how a fit begins, how it ends, and what it leaves behind."""

from __future__ import annotations

import copy
import inspect
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from evomeans import HGMeans, History, Individual, OffspringRecord, StopReason
from evomeans.engines import create_engine
from evomeans.search import PAPER, SearchSettings, solve

X = np.random.default_rng(0).normal(size=(60, 3))
QUICK = {"min_population": 3, "max_population": 6, "max_offspring": 30, "random_state": 0}


@pytest.fixture(params=["reference", "cpu"])
def engine(request):
    return request.param


def quick(n_clusters=4, **parameters):
    """Make an estimator; swaps in plain NumPy take their time, and tests/engines has them."""
    swift = {"strategy": "paper"} if parameters.get("engine") == "reference" else {}
    return HGMeans(n_clusters, **{**QUICK, **swift, **parameters})


def n_founders(engine, single=True):
    """Six, and on an engine with swaps what these make of the first, unless others are given."""
    return 6 + (engine == "cpu" and single)


def test_the_signature_is_the_agreed_one():
    """Names, order and defaults of the parameters, and which are keyword-only."""
    parameters = inspect.signature(HGMeans).parameters
    assert {name: p.default for name, p in parameters.items()} == {
        "n_clusters": 8,
        "strategy": "deep",
        "min_population": 10,
        "max_population": 20,
        "max_offspring": 5000,
        "n_iter_no_change": None,
        "max_time": None,
        "target_inertia": None,
        "certainty": 0.95,
        "subsample": "auto",
        "init": None,
        "engine": "auto",
        "n_jobs": None,
        "random_state": None,
        "warm_start": False,
        "checkpoint": None,
        "observers": None,
        "verbose": 0,
    }
    first, *others = (p.kind for p in parameters.values())
    assert first is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert set(others) == {inspect.Parameter.KEYWORD_ONLY}


@pytest.mark.parametrize(
    ("strategy", "limits"), [("deep", (None, 75)), ("paper", (50, 500)), (PAPER, (50, 500))]
)
def test_fast_has_small_populations_and_few_offspring(strategy, limits):
    """That of the paper is (Π_min, Π_max, N₁, N₂) = (5, 10, 50, 500); all can be overridden."""
    fast = HGMeans.fast(7, random_state=3, strategy=strategy)
    assert (fast.n_clusters, fast.random_state, fast.strategy) == (7, 3, strategy)
    assert (fast.min_population, fast.max_population) == (5, 10)
    assert (fast.n_iter_no_change, fast.max_offspring) == limits
    assert HGMeans.fast(7, strategy=strategy, max_offspring=9).max_offspring == 9


@pytest.mark.parametrize("n_clusters", ["seven", -100, None, 2.5])
def test_fast_leaves_complaints_to_fit(n_clusters):
    with pytest.raises((TypeError, ValueError), match="n_clusters"):
        HGMeans.fast(n_clusters).fit([[0.0, 1.0], [2.0, 3.0]])


@pytest.mark.parametrize("method", ["fit", "score", "fit_predict", "fit_transform", "predict"])
def test_methods_take_what_those_of_kmeans_take(method):
    """The same names in the same order as in KMeans; fit_predict passes further ones to fit."""
    ours = inspect.signature(getattr(HGMeans, method)).parameters
    theirs = inspect.signature(getattr(KMeans, method)).parameters
    assert [name for name in ours if name != "fit_params"] == list(theirs)


def test_fitted_attributes(engine):
    """Types, shapes and meaning of everything that fit leaves behind."""
    model = quick(engine=engine)
    assert model.fit(X) is model
    assert model.cluster_centers_.shape == (4, 3)
    assert model.cluster_centers_.dtype == np.float64
    assert model.labels_.shape == (60,)
    assert model.labels_.dtype == np.int32
    assert type(model.inertia_) is float
    assert type(model.n_iter_) is int
    assert model.n_iter_ == model.history_[-1].number == 30
    assert isinstance(model.history_, History)
    assert len(model.history_) == 30 + n_founders(engine)
    assert all(isinstance(record, OffspringRecord) for record in model.history_)
    assert isinstance(model.stop_reason_, StopReason)
    assert model.stop_reason_ == "max_offspring"
    assert model.n_features_in_ == 3
    assert not hasattr(model, "feature_names_in_")


def test_population_is_independent_of_the_engine(engine):
    """The final individuals, best first, with centres in data units and nothing of the engine."""
    model = quick(engine=engine).fit(X + 100.0)
    assert isinstance(model.population_, tuple)
    assert 3 <= len(model.population_) <= 6
    inertias = [member.inertia for member in model.population_]
    assert inertias == sorted(inertias)
    assert_allclose(inertias[0], model.inertia_, rtol=1e-9)
    for member in model.population_:
        assert isinstance(member, Individual)
        assert member.handle is None
        assert member.centers.shape == (4, 3)
        assert member.cluster_weights.sum() == 60
        assert np.all(np.abs(member.centers - 100.0) < 5.0)
    best = model.population_[0].centers
    assert_allclose(best[np.lexsort(best.T[::-1])], model.cluster_centers_, rtol=1e-9)


def test_it_is_at_least_as_deep_as_kmeans(engine):
    """Ten starts of KMeans never beat a short search on the same data."""
    for k in (2, 5, 9):
        theirs = KMeans(k, n_init=10, random_state=0).fit(X).inertia_
        ours = quick(k, engine=engine, max_offspring=100).fit(X).inertia_
        assert ours <= theirs * (1 + 1e-9)


def test_equal_seeds_give_equal_bits_and_other_seeds_other_searches(engine):
    """random_state decides everything, and is not advanced when it is an int."""

    def trajectory(seed):
        model = quick(8, engine=engine, random_state=seed).fit(X)
        return model.history_.column("inertia"), model.cluster_centers_

    first, again, other = trajectory(0), trajectory(0), trajectory(1)
    assert_array_equal(first[0], again[0])
    assert_array_equal(first[1], again[1])
    assert not np.array_equal(first[0], other[0])


@pytest.mark.usefixtures("eager_threads")
@pytest.mark.parametrize("n_jobs", [2, 4, -1])
def test_the_number_of_threads_changes_no_bit(n_jobs):
    """Same search, same centres, same labels for every n_jobs."""
    samples = np.random.default_rng(1).normal(size=(5000, 4))
    one = quick(6, engine="cpu").fit(samples)
    many = quick(6, engine="cpu", n_jobs=n_jobs).fit(samples)
    assert_array_equal(one.history_.column("inertia"), many.history_.column("inertia"))
    assert_array_equal(one.cluster_centers_, many.cluster_centers_)
    assert_array_equal(one.labels_, many.labels_)
    assert one.inertia_ == many.inertia_
    assert_array_equal(one.transform(samples), many.transform(samples))


# Stopping


def test_it_stops_without_improvement(engine):
    """n_iter_no_change offspring in vain end the search."""
    limits = {"max_offspring": 5000, "n_iter_no_change": 15, "strategy": "paper"}
    model = quick(2, engine=engine, **limits).fit(X)
    assert model.stop_reason_ is StopReason.NO_IMPROVEMENT
    assert model.n_iter_ >= 15
    assert len(np.unique(model.history_.column("best")[-15:])) == 1


def test_it_stops_at_the_target(engine):
    """The search ends with the first solution that is good enough."""
    good = HGMeans.fast(5, engine="cpu", random_state=0).fit(X).inertia_ * 1.02
    model = quick(5, engine=engine, max_offspring=5000, target_inertia=good).fit(X)
    assert model.stop_reason_ is StopReason.TARGET_INERTIA
    assert model.inertia_ <= good
    assert np.all(model.history_.column("best")[:-1] > good)


def test_it_stops_in_time_with_a_complete_answer(engine):
    """Even with no time at all, a solution is made and everything is fitted; a warning says so."""
    with pytest.warns(ConvergenceWarning, match="max_time=1e-09 was up before the first"):
        model = quick(engine=engine, max_time=1e-9).fit(X)
    assert model.stop_reason_ is StopReason.MAX_TIME
    assert model.n_iter_ == 0
    assert len(model.history_) == 1
    assert_array_equal(model.predict(X), model.labels_)


def test_observers_see_every_record_and_can_stop(engine):
    """One callable or several; the first True ends the search."""
    seen = []
    quick(engine=engine, observers=seen.append).fit(X)
    assert [record.number for record in seen] == [0] * n_founders(engine) + list(range(1, 31))

    model = quick(engine=engine, observers=[print_nothing, lambda record: record.number == 3])
    model.fit(X)
    assert model.stop_reason_ is StopReason.OBSERVER
    assert model.n_iter_ == 3


def print_nothing(record):
    """Observer that has nothing to say."""


def test_verbose_prints_progress_and_the_end(engine, capsys):
    """Silent by default; with verbose=3 a line per record and one about how it ended."""
    quick(engine=engine).fit(X)
    assert capsys.readouterr().out == ""
    model = quick(engine=engine, verbose=3, n_iter_no_change=500).fit(X)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 30 + n_founders(engine) + 1
    assert lines[-1].startswith("[HGMeans] Inertia ")
    assert " after 30 offspring. The search ended because it had made all 30 " in lines[-1]
    assert lines[-1].endswith("find a lower inertia.") == (model.n_rediscoveries_ == 0)


def test_a_number_is_the_weight_of_every_sample():
    samples = np.random.default_rng(1).normal(size=(60, 2))
    one = quick(4).fit(samples, sample_weight=2.0)
    many = quick(4).fit(samples, sample_weight=np.full(60, 2.0))
    assert_array_equal(one.cluster_centers_, many.cluster_centers_)
    assert one.inertia_ == many.inertia_


# Beginnings


@pytest.mark.parametrize("kind", ["single", "stack", "list"])
def test_init_joins_the_initial_population(engine, kind):
    """The first founders are K-means from the given centres; random ones follow."""
    good = HGMeans.fast(6, engine="cpu", random_state=1).fit(X)
    centers = good.cluster_centers_
    poor = X[:6]
    init = {"single": centers, "stack": np.stack([poor, centers]), "list": centers.tolist()}[kind]
    model = quick(6, engine=engine, init=init, max_offspring=1).fit(X)
    founder = model.history_[1 if kind == "stack" else 0]
    assert_allclose(founder.inertia, good.inertia_, rtol=1e-12)
    assert len(model.history_) == n_founders(engine, single=kind != "stack") + 1
    assert model.inertia_ <= good.inertia_ * (1 + 1e-12)


def test_init_is_in_data_units_and_left_alone(engine):
    """An offset and a scale of the data apply to init as well; the array is not modified."""
    init = 1e3 + 1e-3 * X[:4]
    before = init.copy()
    model = quick(4, engine=engine, init=init).fit(1e3 + 1e-3 * X)
    kmeans = KMeans(4, init=init, n_init=1, tol=0, max_iter=1000).fit(1e3 + 1e-3 * X)
    assert_allclose(model.history_[0].inertia, kmeans.inertia_, rtol=1e-6)
    assert_array_equal(init, before)


@pytest.mark.parametrize("far", [1e10, 1e30, 1e200])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_init_may_be_absurdly_far_away(engine, dtype, far):
    """A centre that no sample is near to is repaired, wherever it is."""
    samples, near = X.astype(dtype), X[:4].copy()
    near[0] = 1e5
    expected = quick(4, engine=engine, init=near).fit(samples)
    near[0] = far
    model = quick(4, engine=engine, init=near).fit(samples)
    assert_array_equal(model.history_.column("inertia"), expected.history_.column("inertia"))


def test_more_given_solutions_than_max_population_all_count(engine):
    """None of a large stack is ignored."""
    stack = np.stack([X[i : i + 4] for i in range(9)])
    model = quick(4, engine=engine, init=stack, max_offspring=1).fit(X)
    assert sum(record.number == 0 for record in model.history_) == 9


@pytest.mark.parametrize("strategy", ["deep", "paper"])
def test_warm_start_goes_on_where_the_last_fit_ended(engine, strategy):
    """Its first founders are the previous population, then come init and random samples."""
    model = quick(9, strategy=strategy, engine=engine, warm_start=True, max_offspring=10).fit(X)
    previous = model.population_
    inertias = [member.inertia for member in previous]
    model.set_params(random_state=1, init=X[:9], max_population=10).fit(X)
    founders = [record.inertia for record in model.history_ if record.number == 0]
    assert len(founders) == 10
    # Swaps may find something better in each of them.
    again = np.maximum(founders[: len(previous)], inertias if strategy == "deep" else 0.0)
    assert_allclose(again, inertias, rtol=1e-9)
    kmeans = KMeans(9, init=X[:9], n_init=1, tol=0, max_iter=1000).fit(X)
    assert founders[len(previous)] <= kmeans.inertia_ * (1 + 1e-9)
    assert model.inertia_ <= inertias[0] * (1 + 1e-9)


def test_a_warm_start_on_other_samples(engine):
    """The shape must agree, the samples need not."""
    model = quick(engine=engine, warm_start=True).fit(X[:30]).fit(X[30:] + 10.0)
    assert_array_equal(model.predict(X[30:] + 10.0), model.labels_)
    assert np.all(model.cluster_centers_ > 5.0)


# Strategies


def test_the_papers_strategy_is_one_word_away(engine):
    """Its fit is that of the search with its default settings, to the last bit."""
    model = quick(strategy="paper", engine=engine).fit(X)
    settings = SearchSettings(3, 6, max_offspring=30)
    expected = solve(create_engine(engine, X, None), 4, settings, np.random.default_rng(0))
    assert model.history_.column("inertia").tolist() == [r.inertia for r in expected.history]
    assert model.n_rediscoveries_ == 0


def test_the_deep_strategy_is_the_default_and_deeper(engine):
    """Every solution is a fixed point of K-means, and most are deeper than the paper's founders."""
    few = {**QUICK, "max_offspring": 5, "engine": engine}
    deep = HGMeans(9, **few).fit(X)
    assert_array_equal(
        deep.history_.column("inertia"),
        HGMeans(9, **few, strategy="deep").fit(X).history_.column("inertia"),
    )
    paper = HGMeans(9, **few, strategy="paper").fit(X)
    founders = [
        np.mean([record.inertia for record in model.history_ if record.number == 0])
        for model in (deep, paper)
    ]
    assert founders[0] < founders[1]


def test_rediscoveries_are_counted_and_end_the_search(engine):
    """On easy data every founder finds the same, and offspring find nothing better."""
    blobs = np.repeat(np.eye(4), 8, axis=0) + 0.01 * X[:32, :1]
    model = HGMeans(4, random_state=0, engine=engine).fit(blobs)
    assert model.stop_reason_ == "agreement"
    assert model.n_rediscoveries_ == model.max_population - 1
    assert model.n_iter_ == 50
    short = HGMeans(4, random_state=0, engine=engine, max_offspring=10).fit(blobs)
    assert (short.stop_reason_, short.n_rediscoveries_) == ("max_offspring", 0)


# Special data


def test_as_many_clusters_as_samples(engine):
    """With k = n every sample is its own cluster, nothing is left to search."""
    model = quick(60, engine=engine).fit(X)
    assert_array_equal(np.sort(model.labels_), np.arange(60))
    assert model.inertia_ <= 1e-25
    assert model.stop_reason_ is StopReason.PROVEN_OPTIMAL


def test_fewer_distinct_samples_than_clusters(engine):
    """A ConvergenceWarning with both numbers, a valid result, labels without gaps."""
    samples = np.repeat([[1.0, 5.0], [-3.0, 2.0], [0.0, 0.0]], 7, axis=0)
    text = r"Number of distinct clusters \(3\) found smaller than n_clusters \(5\)"
    model = quick(5, engine=engine)
    with pytest.warns(ConvergenceWarning, match=text):
        model.fit(samples)
    assert model.inertia_ <= 1e-25
    assert model.cluster_centers_.shape == (5, 2)
    assert np.all(np.isfinite(model.cluster_centers_))
    expected = [[-3.0, 2.0], [0.0, 0.0], [1.0, 5.0]]
    assert_allclose(model.cluster_centers_[:3], expected, atol=1e-12)
    assert_array_equal(model.labels_, np.repeat([2, 0, 1], 7))
    assert_array_equal(model.predict(samples), model.labels_)


def test_copies_whose_means_are_not_exact(engine):
    """No hang where rounding keeps the inertia of perfect clusters above zero."""
    rng = np.random.default_rng(0)
    for _ in range(30):
        distinct, copies = int(rng.integers(1, 5)), int(rng.integers(2, 120))
        points = rng.normal(size=(distinct, 2)) * 10.0 ** rng.integers(-3, 9)
        samples = np.repeat(points, copies, axis=0)
        weights = rng.random(len(samples)) if rng.random() < 0.5 else None
        k = min(len(samples), distinct + int(rng.integers(1, 4)))
        if k == distinct:
            continue
        with pytest.warns(ConvergenceWarning, match=rf"clusters \({distinct}\)"):
            model = quick(k, engine=engine, max_offspring=3).fit(samples, sample_weight=weights)
        assert model.inertia_ <= 1e-25 * np.square(samples).sum()
        assert_array_equal(model.labels_.reshape(distinct, copies).std(axis=1), np.zeros(distinct))


def test_samples_without_weight_are_no_distinct_samples(engine):
    """Others still get labels, and the warning points at the caller of fit."""
    samples = np.array([[0.0, 0.0], [9.0, 9.0], [1.0, 0.0], [0.0, 8.0]])
    with pytest.warns(ConvergenceWarning, match=r"clusters \(2\) .* n_clusters \(3\)") as caught:
        model = quick(3, engine=engine).fit(samples, sample_weight=[1, 2, 0, 0])
    assert [warning.filename for warning in caught] == [__file__]
    assert_allclose(model.cluster_centers_[:2], [[0.0, 0.0], [9.0, 9.0]], atol=1e-12)
    assert_array_equal(model.labels_, [0, 1, 0, 0])


@pytest.mark.parametrize("constant", [0.0, 7.0, -1e8])
def test_constant_columns(engine, constant):
    """A constant column changes nothing; all columns constant is one distinct sample."""
    padded = np.column_stack([np.full(60, constant), X])
    model, plain = quick(engine=engine).fit(padded), quick(engine=engine).fit(X)
    assert_array_equal(model.labels_, plain.labels_)
    assert_array_equal(model.cluster_centers_[:, 0], np.full(4, constant))
    with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(1\)"):
        model = quick(4, engine=engine).fit(np.full((60, 3), constant))
    assert model.inertia_ == 0.0
    assert_array_equal(model.cluster_centers_[0], np.full(3, constant))


# One feature


@pytest.mark.parametrize("weighted", [False, True])
def test_one_feature_is_solved_exactly(weighted):
    """engine="auto" returns a proven optimum, not worse than any search, and says so."""
    x = np.random.default_rng(3).lognormal(size=(200, 1))
    weights = np.random.default_rng(4).integers(0, 5, 200) if weighted else None
    model = HGMeans(12).fit(x, sample_weight=weights)
    assert model.stop_reason_ is StopReason.PROVEN_OPTIMAL
    assert model.n_iter_ == 0
    assert model.history_ == History()
    assert len(model.population_) == 1
    assert_allclose(model.population_[0].centers, model.cluster_centers_, rtol=1e-12)
    assert_array_equal(model.predict(x), model.labels_)
    searched = HGMeans.fast(12, strategy="paper", engine="reference", random_state=0)
    searched.fit(x, sample_weight=weights)
    assert searched.stop_reason_ != "proven_optimal"
    assert model.inertia_ <= searched.inertia_ * (1 + 1e-12)


def test_one_feature_repeated_fits_and_warm_starts():
    """The exact answer needs no beginning: warm_start, init and seeds change nothing."""
    x = np.random.default_rng(5).normal(size=(50, 1)).astype(np.float32)
    first = HGMeans(4).fit(x)
    again = HGMeans(4, warm_start=True, init=x[:4], random_state=1).fit(x).fit(x)
    assert_array_equal(first.cluster_centers_, again.cluster_centers_)
    assert first.cluster_centers_.dtype == np.float32


def test_one_feature_with_fewer_distinct_values_than_clusters():
    """The same warning and the same order as with several features."""
    with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(2\)"):
        model = HGMeans(4).fit([[3.0], [1.0], [3.0], [1.0], [1.0]])
    assert_array_equal(model.labels_, [1, 0, 1, 0, 0])
    assert_array_equal(model.cluster_centers_[:2], [[1.0], [3.0]])
    assert model.inertia_ == 0.0


# Copies


def test_pickle_copy_and_clone(engine):
    """A copy answers as the original; a clone has the parameters and nothing fitted."""
    model = quick(engine=engine, observers=[print_nothing]).fit(X)
    for twin in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), copy.copy(model)):
        assert_array_equal(twin.predict(X), model.labels_)
        assert_array_equal(twin.transform(X), model.transform(X))
        assert twin.history_ == model.history_
        assert twin.stop_reason_ is model.stop_reason_
        assert [a.inertia for a in twin.population_] == [b.inertia for b in model.population_]
    bare = clone(model)
    assert bare.get_params()["observers"] == [print_nothing]
    assert not any(name.endswith("_") for name in vars(bare))


def test_a_pickled_estimator_is_small():
    """It keeps centres, labels and records, not the samples or the engine's memory of them."""
    samples = np.random.default_rng(0).normal(size=(3000, 30))
    model = quick(engine="cpu").fit(samples)
    assert len(pickle.dumps(model)) < samples.nbytes / 5
