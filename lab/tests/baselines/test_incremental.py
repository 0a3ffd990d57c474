"""Common properties of the methods that add one centre at a time."""

from __future__ import annotations

import pickle
import signal

import numpy as np
import pytest
from baseline_methods import INCREMENTAL
from incremental_oracles import auxiliary
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from evomeans.engines.cpu import CpuEngine
from lab.baselines import GlobalKMeans
from lab.baselines.engines import create_engine
from lab.baselines.incremental import attracted_means, largest, settle
from oracles import squared_distances
from problems import make_samples, make_weights, paired


@pytest.fixture(params=INCREMENTAL)
def method(request):
    """Make an estimator of every kind, with parameters set."""
    return lambda **parameters: clone(INCREMENTAL[request.param]).set_params(**parameters)


def samples(n=120, d=3, dtype=np.float64, seed=0):
    return make_samples("normal", n, d, dtype, np.random.default_rng(seed))


# ---- the path ------------------------------------------------------------------------------------


@paired
def test_the_path_holds_a_solution_for_every_number_of_clusters(method, dtype, weighted) -> None:
    """Labels are nearest, inertias direct and never rising; one cluster is the mean."""
    X = samples(dtype=dtype)
    weights = make_weights(120, np.random.default_rng(1)) if weighted else np.ones(120)
    model = method(n_clusters=9).fit(X, sample_weight=weights if weighted else None)
    assert [step.n_clusters for step in model.path_] == list(range(1, 10))
    for step in model.path_:
        centers, squares = step.cluster_centers, squared_distances(X, step.cluster_centers)
        assert centers.shape == (step.n_clusters, 3)
        assert centers.dtype == dtype
        assert_array_equal(centers, centers[np.lexsort(centers.T[::-1])])
        assert_array_equal(step.labels, squares.argmin(axis=1))
        assert step.labels.dtype == np.uint8
        assert step.inertia == pytest.approx(weights @ squares.min(axis=1), rel=1e-6)
    assert (np.diff(model.inertias_) < 0.0).all()
    assert_allclose(
        model.path_[0].cluster_centers[0], np.average(X, axis=0, weights=weights), rtol=1e-4
    )
    assert model.n_iter_ == sum(step.n_runs for step in model.path_)
    assert (np.diff([step.seconds for step in model.path_]) >= 0.0).all()


def test_the_end_of_the_path_is_the_answer(method, dtype) -> None:
    """To the last bit."""
    model = method(n_clusters=6).fit(samples(dtype=dtype))
    last = model.path_[-1]
    assert_array_equal(model.cluster_centers_, last.cluster_centers)
    assert_array_equal(model.labels_, last.labels)
    assert model.inertia_ == last.inertia == model.inertias_[-1]


def test_a_point_of_the_path_is_the_fit_with_fewer_clusters(method, dtype) -> None:
    """The same bits; the estimator itself stays as it is."""
    X = samples(dtype=dtype)
    model = method(n_clusters=7).fit(X)
    for k in (1, 4, 7):
        part, fitted = model.at(k), method(n_clusters=k).fit(X)
        assert type(part) is type(fitted)
        assert part.get_params() == fitted.get_params()
        assert_array_equal(part.cluster_centers_, fitted.cluster_centers_)
        assert_array_equal(part.labels_, fitted.labels_)
        assert part.labels_.dtype == fitted.labels_.dtype
        assert part.inertia_ == fitted.inertia_
        assert_array_equal(part.inertias_, fitted.inertias_)
        assert part.n_iter_ == fitted.n_iter_
        assert_array_equal(part.predict(X), fitted.labels_)
        assert_array_equal(part.transform(X), fitted.transform(X))
    assert model.n_clusters == len(model.path_) == len(model.cluster_centers_) == 7


def test_points_beyond_the_path_are_refused() -> None:
    model = GlobalKMeans(3).fit(samples())
    with pytest.raises(ValueError, match="n_clusters=4 is beyond the path, which ends at 3"):
        model.at(4)
    with pytest.raises(ValueError, match="n_clusters=0 must be at least 1"):
        model.at(0)
    with pytest.raises(TypeError, match=r"n_clusters must be an int, got 2\.0"):
        model.at(2.0)
    with pytest.raises(NotFittedError):
        GlobalKMeans(3).at(2)


def test_labels_of_long_paths_take_two_bytes() -> None:
    """257 labels do not fit into one."""
    X = samples(n=300)
    model = GlobalKMeans(257).fit(X)
    assert [model.path_[k - 1].labels.dtype.itemsize for k in (256, 257)] == [1, 2]
    assert_array_equal(model.at(256).labels_, model.at(256).predict(X))


# ---- the same whatever the way -------------------------------------------------------------------


def test_integers_tie_alike_on_all_engines(method) -> None:
    """Samples on a grid, where reductions and distances are equal by the dozen."""
    X = make_samples("integers", 100, 2, np.float64, np.random.default_rng(5))
    one, other = (
        method(n_clusters=6, engine=engine).fit(X).inertias_ for engine in ("cpu", "reference")
    )
    assert_allclose(one, other, rtol=1e-9)


def test_weights_are_repetitions(method) -> None:
    """Weight 0 is absence, and the order of the rows does not matter."""
    X = samples(n=80)
    rng = np.random.default_rng(2)
    counts = rng.integers(0, 4, size=80)
    repeated = rng.permutation(np.repeat(X, counts, axis=0))
    weighted = method(n_clusters=8).fit(X, sample_weight=counts)
    plain = method(n_clusters=8).fit(repeated)
    assert_allclose(weighted.inertias_, plain.inertias_, rtol=1e-9)
    assert_allclose(weighted.cluster_centers_, plain.cluster_centers_, rtol=1e-9)


def test_random_numbers_of_others_are_not_touched(method) -> None:
    """Nothing here is random."""
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    method(n_clusters=3).fit(samples())
    assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    assert "random_state" not in method().get_params()


# ---- few and equal samples -----------------------------------------------------------------------


def test_duplicates_get_one_centre(method, dtype) -> None:
    """As many clusters as distinct samples leave nothing over."""
    points = samples(n=5, dtype=dtype)
    X = points[np.append(np.arange(5), np.random.default_rng(0).integers(5, size=40))]
    model = method(n_clusters=5).fit(X)
    assert model.inertia_ == pytest.approx(0.0, abs=1e-12)
    assert len(np.unique(model.labels_)) == 5


def test_more_clusters_than_distinct_samples(method) -> None:
    """The path continues at zero, with a warning."""
    X = np.repeat(samples(n=3), 4, axis=0)
    with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(3\) found smaller than"):
        model = method(n_clusters=6).fit(X)
    assert_array_equal(model.inertias_[2:], np.zeros(4))
    assert len(model.cluster_centers_) == 6


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_extreme_scales(method, scale) -> None:
    """Squares of the data are next to the ends of double precision."""
    X = samples()
    plain, scaled = method(n_clusters=5).fit(X), method(n_clusters=5).fit(X * scale)
    assert_array_equal(plain.labels_, scaled.labels_)


# ---- interruption --------------------------------------------------------------------------------


@pytest.fixture
def _usual_handler():
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


@pytest.mark.usefixtures("_usual_handler")
@pytest.mark.parametrize("k", [1, 3, 5], ids=["first", "middle", "last"])
def test_half_a_path_is_no_answer(method, monkeypatch, k) -> None:
    """Ctrl-C in any step: KeyboardInterrupt, and the estimator is what it was before."""
    model, X, original, runs = method(n_clusters=5), samples(), CpuEngine.refine, []

    def refine(engine, starts):
        runs.append(len(starts[0].centers))
        if runs.count(k) == 1 and runs[-1] == k:
            signal.raise_signal(signal.SIGINT)
        return original(engine, starts)

    monkeypatch.setattr(CpuEngine, "refine", refine)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    assert max(runs) == k
    assert not hasattr(model, "path_")
    assert not hasattr(model, "n_features_in_")

    # The signal comes in the first run with k centres alone.
    before = pickle.dumps(method(n_clusters=5).fit(X))
    model = pickle.loads(before)
    runs.clear()
    with pytest.raises(KeyboardInterrupt):
        model.fit(2.0 * X)
    assert pickle.dumps(model) == before


# ---- parts ---------------------------------------------------------------------------------------


def test_largest_counts_rounding_as_a_tie() -> None:
    """Indices in order; a share of zero is everything."""
    values = np.array([0.0, 3.0, 3.0 * (1 - 1e-14), 2.9, 1.5])
    assert_array_equal(largest(values), [1, 2])
    assert_array_equal(largest(values, 0.5), [1, 2, 3, 4])
    assert_array_equal(largest(values, 0.0), np.arange(5))


def test_samples_that_are_equally_far_stay(engine_name) -> None:
    """Up to rounding: the others decide where the mean is."""
    engine = create_engine(engine_name, np.array([[0.0], [1.0], [4.0]]), None)
    X = engine.rows(np.arange(3))
    squares = squared_distances(X, X[1:2])[:, 0] * [1.0 + 1e-14, 1.0, 1.0 + 1e-10]
    mean = attracted_means(engine, X[1:2], squares)
    assert_array_equal(mean, X[2:])


def test_the_auxiliary_function_falls_with_every_move(engine_name, weighted) -> None:
    """From every sample to a mean, and on, to a point that is the mean of what it attracts."""
    X = samples(n=200)
    weights = make_weights(200, np.random.default_rng(1)) if weighted else np.ones(200)
    engine = create_engine(engine_name, X, weights if weighted else None)
    Z = engine.rows(np.arange(200))
    squares = engine.nearest_squares(Z[:3])
    points = Z[squares > 0.0]
    values = np.array([auxiliary(Z, weights, squares, y) for y in points])
    for _ in range(4):
        points = engine.attracted_means(points, squares)
        moved = np.array([auxiliary(Z, weights, squares, y) for y in points])
        assert (moved <= values * (1.0 + 1e-12)).all()
        values = moved
    minima = settle(engine, points, squares)
    assert len(minima) < len(points)
    assert_allclose(engine.attracted_means(minima, squares), minima, rtol=0.0, atol=1e-15)
    assert len(np.unique(minima, axis=0)) == len(minima)


# ---- known values --------------------------------------------------------------------------------


def test_known_gaps_on_iris() -> None:
    """Mean gap from the best known solutions for 2 to 10 clusters, in percent.

    Table 2 of the HG-means paper prints 1.48 for GKM, 1.48 for MGKM and 0.09 for MS-MGKM.
    """
    best = [152.348, 78.8514, 57.2285, 46.4462, 39.04, 34.2982, 29.9889, 27.7861, 25.8341]
    X = load_iris().data
    gaps = {}
    for name, model in INCREMENTAL.items():
        inertias = clone(model).set_params(n_clusters=10).fit(X).inertias_[1:]
        gaps[name] = 100.0 * np.mean(inertias / best - 1.0)
    assert gaps["fast"] == pytest.approx(1.48, abs=0.005)
    assert gaps["modified"] == pytest.approx(1.48, abs=0.005)
    assert gaps["multi-start"] == pytest.approx(0.09, abs=0.01)
    assert 0.0 < gaps["full"] < 0.1
