"""Bad input ends in one clear error that names parameter, expectation and value."""

import os
import subprocess
import sys
from dataclasses import replace
from functools import partial

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError
from threadpoolctl import threadpool_limits

import evomeans
from evomeans import HGMeans
from evomeans.estimators.parameters import (
    KMEANS_PARAMETERS,
    check_parameters,
    check_random_source,
    check_thread_count,
    generator_from,
)
from evomeans.search import DEEP

X = np.random.default_rng(0).normal(size=(20, 3))


def model(**parameters):
    small = {"max_population": 4, "min_population": 2, "max_offspring": 5, "random_state": 0}
    return HGMeans(**{"n_clusters": 3, "engine": "reference", **small, **parameters})


BAD_PARAMETERS = [
    ({"n_clusters": 0}, ValueError, r"n_clusters=0 must be at least 1"),
    ({"n_clusters": -2}, ValueError, r"n_clusters=-2 must be at least 1"),
    ({"n_clusters": 3.0}, TypeError, r"n_clusters must be an int, got 3.0 of type float"),
    ({"n_clusters": True}, TypeError, r"n_clusters must be an int, got True of type bool"),
    ({"n_clusters": "3"}, TypeError, r"n_clusters must be an int, got '3' of type str"),
    ({"n_clusters": None}, TypeError, r"n_clusters must be an int, got None"),
    ({"n_clusters": 21}, ValueError, r"n_samples=20 should be >= n_clusters=21"),
    ({"min_population": 0}, ValueError, r"min_population=0 must be at least 1"),
    ({"min_population": 2.5}, TypeError, r"min_population must be an int, got 2.5"),
    ({"max_population": 1}, ValueError, r"max_population=1 must be at least min_population=2"),
    (
        {"min_population": 8, "max_population": 7},
        ValueError,
        r"max_population=7 must be at least min_population=8",
    ),
    ({"max_offspring": 0}, ValueError, r"max_offspring=0 must be at least 1"),
    ({"max_offspring": 1e3}, TypeError, r"max_offspring must be an int, got 1000.0"),
    ({"n_iter_no_change": 0}, ValueError, r"n_iter_no_change=0 must be at least 1"),
    ({"n_iter_no_change": 2.5}, TypeError, r"n_iter_no_change must be an int, got 2.5"),
    ({"max_time": 0}, ValueError, r"max_time=0.0 must be positive, or None"),
    ({"max_time": -1.5}, ValueError, r"max_time=-1.5 must be positive"),
    ({"max_time": float("nan")}, ValueError, r"max_time=nan must be positive"),
    ({"max_time": "1h"}, TypeError, r"max_time must be a number or None, got '1h'"),
    ({"target_inertia": -1}, ValueError, r"target_inertia=-1.0 must be finite and not negative"),
    ({"target_inertia": np.inf}, ValueError, r"target_inertia=inf must be finite"),
    ({"target_inertia": [1.0]}, TypeError, r"target_inertia must be a number or None, got \[1.0\]"),
    ({"certainty": -0.1}, ValueError, "certainty=-0.1 must be between 0 and 1"),
    ({"certainty": 1.1}, ValueError, "certainty=1.1 must be between 0 and 1"),
    ({"certainty": float("nan")}, ValueError, "certainty=nan must be between 0 and 1"),
    ({"certainty": None}, TypeError, "certainty must be a number between 0 and 1, got None"),
    ({"certainty": "high"}, TypeError, "certainty must be a number or None, got 'high'"),
    ({"certainty": True}, TypeError, "certainty must be a number or None, got True"),
    ({"strategy": "fast"}, ValueError, r"strategy='fast' must be one of.*HGMeans.fast\("),
    ({"strategy": "deeper"}, ValueError, r"strategy='deeper' must be one of 'deep', 'paper'\.$"),
    (
        {"strategy": ["deep"]},
        TypeError,
        r"strategy must be a Strategy or one of 'deep', .*'deep'\]",
    ),
    ({"strategy": None}, TypeError, r"strategy must be a Strategy or one of .* got None"),
    ({"strategy": replace(DEEP, swaps=2.0)}, ValueError, "has the name 'deep'; choose a name of"),
    ({"engine": "fpga"}, ValueError, r"engine='fpga' is unknown.*'cpu', 'gpu', 'dask', 'ref"),
    ({"engine": None}, TypeError, r"engine must be one of 'auto', 'cpu', 'gpu', .*, got None"),
    ({"n_jobs": 0}, ValueError, r"n_jobs=0 must be positive, -1 for all cores, or None"),
    ({"n_jobs": 5000}, ValueError, r"n_jobs=5000 must not exceed 4096"),
    ({"n_jobs": 2.0}, TypeError, r"n_jobs must be an int or None, got 2.0"),
    ({"n_jobs": True}, TypeError, r"n_jobs must be an int or None, got True"),
    ({"random_state": -1}, ValueError, r"random_state=-1 must not be negative"),
    ({"random_state": "seed"}, TypeError, r"random_state must be None, an int.*got 'seed'"),
    ({"random_state": 1.5}, TypeError, r"random_state must be None, an int.*got 1.5"),
    ({"random_state": True}, TypeError, r"random_state must be None, an int.*got True"),
    ({"warm_start": "yes"}, TypeError, r"warm_start must be True or False, got 'yes'"),
    ({"observers": 5}, TypeError, r"observers must be None, a callable or a list.*got 5"),
    ({"observers": [print, 5]}, TypeError, r"observers must be None, a callable or a list"),
    ({"verbose": -1}, ValueError, r"verbose=-1 must be at least 0"),
    ({"verbose": "loud"}, TypeError, r"verbose must be an int, got 'loud'"),
    ({"init": "k-means++"}, TypeError, r"init must be .*got 'k-means\+\+'.* half of the first"),
    ({"init": "random"}, TypeError, r"init must be None or an array.*got 'random'"),
    ({"init": np.sum}, TypeError, r"init must be None or an array of centres"),
    ({"init": X[:2]}, ValueError, r"init.shape=\(2, 3\) must be .*=\(3, 3\), or .*=\(p, 3, 3\)"),
    ({"init": X[:3, :2]}, ValueError, r"init.shape=\(3, 2\) must be .*=\(3, 3\)"),
    ({"init": X[0]}, ValueError, r"init.shape=\(3,\) must be"),
    ({"init": X[:4].reshape(2, 2, 3)}, ValueError, r"init.shape=\(2, 2, 3\) must be"),
    ({"init": np.empty((0, 3, 3))}, ValueError, r"init.shape=\(0, 3, 3\) must be"),
    ({"init": np.zeros((1, 1, 3, 3))}, ValueError, r"init.shape=\(1, 1, 3, 3\) must be"),
    ({"init": np.full((3, 3), np.nan)}, ValueError, r"Input init contains NaN"),
    ({"init": np.full((3, 3), np.inf)}, ValueError, r"Input init contains infinity"),
    ({"init": [["a"] * 3] * 3}, ValueError, "Invalid init: could not convert string"),
]


@pytest.mark.parametrize(("parameters", "error", "text"), BAD_PARAMETERS)
def test_a_bad_parameter_is_named_and_nothing_is_fitted(parameters, error, text):
    """One error with name, expectation and value; the estimator stays unfitted."""
    estimator = model(**parameters)
    before = vars(estimator).copy()
    with pytest.raises(error, match=text):
        estimator.fit(X)
    assert vars(estimator).keys() == before.keys()


BAD_SAMPLES = [
    (np.where(np.eye(20, 3) > 0, np.nan, X), ValueError, "Input X contains NaN"),
    (np.where(np.eye(20, 3) > 0, np.inf, X), ValueError, "Input X contains infinity"),
    (np.where(np.eye(20, 3) > 0, -np.inf, X), ValueError, "Input X contains infinity"),
    (np.empty((0, 3)), ValueError, r"Found array with 0 sample\(s\)"),
    (np.empty((20, 0)), ValueError, r"Found array with 0 feature\(s\)"),
    ([], ValueError, "Expected 2D array"),
    (X[:, 0], ValueError, "Invalid X: Expected 2D array, got 1D array"),
    (X[None], ValueError, "Found array with dim 3"),
    (5.0, ValueError, "Invalid X: Expected 2D array, got scalar"),
    ([["a", "b"], ["c", "d"]], ValueError, "Invalid X: could not convert string"),
    (X + 1j, ValueError, "Invalid X: Complex data not supported"),
    (sp.csr_array(X + 1j), ValueError, "Invalid X: Complex data not supported"),
    (sp.csr_array(np.where(np.eye(20, 3) > 0, np.nan, X)), ValueError, "Input X contains NaN"),
    (
        X * 1e301,
        ValueError,
        r"X contains a value of size 2\.\d+e\+301; sums overflow beyond 1e\+300",
    ),
    (X[:2], ValueError, r"n_samples=2 should be >= n_clusters=3"),
    (None, ValueError, "Expected 2D array"),
]


@pytest.mark.parametrize(("samples", "error", "text"), BAD_SAMPLES)
def test_bad_samples_are_refused_and_nothing_is_fitted(samples, error, text):
    """One clear error; the estimator stays unfitted."""
    estimator = model(engine="cpu" if sp.issparse(samples) else "reference")
    before = vars(estimator).copy()
    with pytest.raises(error, match=text):
        estimator.fit(samples)
    assert vars(estimator).keys() == before.keys()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_are_refused_in_the_words_of_scikit_learn(value):
    samples = X.copy()
    samples[7, 1] = value
    with pytest.raises(ValueError, match="Input X contains") as refused:
        model().fit(samples)
    with pytest.raises(ValueError, match="Input X contains") as expected:
        KMeans(2).fit(samples)
    assert str(refused.value) == str(expected.value).replace("KMeans", "HGMeans")


BAD_WEIGHTS = [
    (-np.ones(20), ValueError, "sample_weight must not be negative, got -1.0"),
    (np.zeros(20), ValueError, "sample_weight must not be all zero"),
    (
        np.ones(19),
        ValueError,
        r"sample_weight.shape=\(19,\) must be \(20,\): one weight per sample",
    ),
    (np.ones((20, 1)), ValueError, r"sample_weight.shape=\(20, 1\) must be \(20,\)"),
    (np.float64(-2.0), ValueError, r"sample_weight must not be negative, got -2.0"),
    ([], ValueError, r"sample_weight.shape=\(0,\) must be \(20,\)"),
    (np.full(20, np.nan), ValueError, "Input sample_weight contains NaN"),
    (np.full(20, np.inf), ValueError, "Input sample_weight contains infinity"),
    (np.full(20, 1e308), ValueError, "sample_weight sums to infinity"),
    (["a"] * 20, ValueError, "Invalid sample_weight: could not convert string"),
    (np.full(20, 1j), ValueError, "Invalid sample_weight: Complex data not supported"),
]


@pytest.mark.parametrize(("weights", "error", "text"), BAD_WEIGHTS)
@pytest.mark.parametrize("method", ["fit", "fit_predict", "fit_transform", "score"])
def test_bad_weights_are_refused_wherever_weights_are_taken(method, weights, error, text):
    """Every method with sample_weight checks it in the same way."""
    estimator = model()
    if method == "score":
        estimator.fit(X)
    with pytest.raises(error, match=text):
        getattr(estimator, method)(X, sample_weight=weights)
    assert hasattr(estimator, "cluster_centers_") == (method == "score")


@pytest.mark.parametrize("method", ["predict", "transform", "score"])
def test_an_estimator_that_is_not_fitted_says_so(method):
    """predict, transform and score before fit raise NotFittedError."""
    with pytest.raises(NotFittedError, match="This HGMeans instance is not fitted yet"):
        getattr(model(), method)(X)


@pytest.mark.parametrize("method", ["predict", "transform", "score"])
def test_another_number_of_features_is_refused(method):
    """The message has both numbers."""
    with pytest.raises(ValueError, match="X has 2 features, but HGMeans is expecting 3 features"):
        getattr(model().fit(X), method)(X[:, :2])


def test_a_failing_fit_leaves_the_previous_one_whole():
    """Whatever is wrong with the second fit, the estimator still answers as after the first."""
    estimator = model().fit(X)
    fitted = {name: value for name, value in vars(estimator).items() if name.endswith("_")}
    labels = estimator.predict(X)
    for samples, weights, parameters in [
        (X[:, :2], -np.ones(20), {}),
        (X[:2], None, {}),
        (X[:, :2] * np.nan, None, {}),
        (X[:, :2], None, {"init": X[:3]}),
        (X[:, :2], None, {"warm_start": True}),
        (X[:, :2], None, {"random_state": "x"}),
        (X[:, :2], None, {"n_jobs": 0}),
        (sp.csr_array(X[:, :2]), None, {}),
    ]:
        original = {name: getattr(estimator, name) for name in parameters}
        with pytest.raises((ValueError, TypeError)):
            estimator.set_params(**parameters).fit(samples, sample_weight=weights)
        estimator.set_params(**original)
        assert all(getattr(estimator, name) is value for name, value in fitted.items())
        np.testing.assert_array_equal(estimator.predict(X), labels)


def test_the_reference_engine_refuses_sparse_samples():
    """It is dense only, and names the engines that are not."""
    with pytest.raises(ValueError, match=r"engine='reference' takes dense X only.*engine='cpu'"):
        model().fit(sp.csr_array(X))
    with pytest.raises(ValueError, match="engine='reference' takes dense X only"):
        model().fit(X).predict(sp.csr_array(X))


def test_warm_start_refuses_solutions_of_another_shape():
    """Another n_clusters or another number of features is an error that shows both."""
    estimator = model(warm_start=True).fit(X)
    text = r"n_clusters=3 centres with n_features=3, but n_clusters={} and n_features={} are asked"
    with pytest.raises(ValueError, match=text.format(4, 3)):
        estimator.set_params(n_clusters=4).fit(X)
    with pytest.raises(ValueError, match=text.format(3, 2)):
        estimator.set_params(n_clusters=3).fit(X[:, :2])


def test_numpy_scalars_are_as_good_as_pythons():
    """Parameters that come out of NumPy computations work, and give the same result."""
    ours = model(max_time=100, target_inertia=0, n_jobs=1, verbose=0).fit(X)
    theirs = model(
        n_clusters=np.int64(3),
        min_population=np.int32(2),
        max_population=np.uint8(4),
        max_offspring=np.int16(5),
        max_time=np.float32(100),
        target_inertia=np.float64(0),
        n_jobs=np.int64(1),
        random_state=np.int64(0),
        warm_start=np.bool_(False),
    ).fit(X)
    np.testing.assert_array_equal(ours.cluster_centers_, theirs.cluster_centers_)


@pytest.mark.parametrize(
    "make",
    [
        evomeans.HGMeans,
        partial(evomeans.HGMeans, subsample=300),
        evomeans.SphericalHGMeans,
        partial(evomeans.TrimmedHGMeans, n_outliers=2),
        partial(evomeans.ConstrainedHGMeans, size_max=5),
        evomeans.ExactKMeans,
    ],
)
def test_small_integers_do_not_overflow(make):
    """Twice a hundred clusters, and their number times that of the features, exceed 127."""
    samples = np.random.default_rng(0).normal(size=(310, 3))
    search = {"max_offspring": 2, "random_state": 0}
    if make is evomeans.ExactKMeans:
        samples, search = samples[:, :1], {}
    ours, theirs = (make(k, **search).fit(samples) for k in (100, np.int8(100)))
    np.testing.assert_array_equal(ours.labels_, theirs.labels_)
    assert ours.inertia_ == theirs.inertia_


def test_small_integers_of_a_path_do_not_overflow():
    samples = np.random.default_rng(0).normal(size=(310, 2))
    search = {"max_offspring": 5, "random_state": 0}
    ours, theirs = (
        evomeans.HGMeansPath(ks, **search).fit(samples)
        for ks in ([100, 120], [np.int8(100), np.int8(120)])
    )
    np.testing.assert_array_equal(ours.inertias_, theirs.inertias_)


def test_thread_counts_follow_scikit_learn():
    """−1 is all cores, −2 all but one but never none."""
    assert check_thread_count(3) == 3
    assert check_thread_count(-1) == joblib.cpu_count()
    assert check_thread_count(-2) == max(1, joblib.cpu_count() - 1)
    assert check_thread_count(-1000) == 1


@pytest.mark.parametrize("limit", [1, 2])
def test_by_default_there_are_as_many_threads_as_kmeans_would_use(limit):
    with threadpool_limits(limit, user_api="openmp"):
        assert check_thread_count(None) == min(limit, joblib.cpu_count(only_physical_cores=True))


@pytest.mark.slow
def test_environment_variables_and_joblib_limit_the_default():
    command = "from evomeans.estimators.parameters import check_thread_count as c; print(c(None))"
    environment = {**os.environ, "OMP_NUM_THREADS": "3"}
    run = [sys.executable, "-c", command]
    assert subprocess.check_output(run, env=environment, text=True).strip() == "3"
    cores = joblib.cpu_count()
    workers = joblib.Parallel(n_jobs=cores)(
        joblib.delayed(check_thread_count)(None) for _ in range(cores)
    )
    assert max(workers) == 1


def test_generators_come_from_every_kind_of_random_state():
    """Ints repeat, instances advance, None follows the global seed as in scikit-learn."""

    def draw(random_state):
        return generator_from(check_random_source(random_state)).random()

    assert draw(5) == draw(5) != draw(6)
    legacy = np.random.RandomState(0)
    assert draw(legacy) != draw(legacy)
    assert draw(np.random.RandomState(1)) == draw(np.random.RandomState(1))
    generator = np.random.default_rng(0)
    assert draw(generator) != draw(generator)
    assert draw(np.random.default_rng(1)) == draw(np.random.default_rng(1))
    state = np.random.get_state()  # noqa: NPY002
    try:
        np.random.seed(0)  # noqa: NPY002
        first, second = draw(None), draw(np.random)
        np.random.seed(0)  # noqa: NPY002
        assert first == draw(None) != second
    finally:
        np.random.set_state(state)  # noqa: NPY002


def test_checking_does_not_draw():
    """A look at the parameters leaves generators and the global state as they were."""
    legacy, modern = np.random.RandomState(0), np.random.default_rng(0)
    for source in (legacy, modern, None):
        check_parameters(model(random_state=source))
    assert legacy.random_sample() == np.random.RandomState(0).random_sample()
    assert modern.random() == np.random.default_rng(0).random()


@pytest.mark.parametrize("name", sorted(KMEANS_PARAMETERS))
def test_a_parameter_of_kmeans_says_what_to_do_instead(name):
    """Every one that KMeans has and HGMeans has not."""
    with pytest.raises(TypeError, match=f"HGMeans does not have KMeans' {name}. .*eave it out"):
        HGMeans(3, **{name: 1})


def test_no_parameter_of_kmeans_is_forgotten():
    """All of them are either taken or explained, also those of later versions."""
    assert KMeans().get_params().keys() <= HGMeans().get_params().keys() | KMEANS_PARAMETERS.keys()


def test_an_unknown_parameter_is_refused_as_usual():
    """With the words of Python itself."""
    text = r"^HGMeans.__init__\(\) got an unexpected keyword argument 'n_cluster'$"
    with pytest.raises(TypeError, match=text):
        HGMeans(n_cluster=3)
