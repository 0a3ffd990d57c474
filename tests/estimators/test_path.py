"""HGMeansPath: what it finds, offers and refuses."""

from __future__ import annotations

import pickle
import signal
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import metrics as theirs
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from evomeans import CheckpointError, HGMeans, HGMeansPath, PathRecord
from evomeans.criteria import CRITERIA, Gap, Jump, PredictionStrength, Silhouette
from evomeans.exact import cluster_line

RNG = np.random.default_rng(0)
PLACES = np.array([[0, 0], [10, 0], [0, 10], [10, 10], [5, 30]])
X = np.repeat(PLACES, 30, axis=0) + RNG.normal(size=(150, 2))
CLOUD = RNG.normal(size=(120, 3))
COSTLY = (Silhouette(), Gap(n_references=3), PredictionStrength(n_divisions=2))


def quick(k_range=(2, 7), **more):
    return HGMeansPath(k_range, random_state=0, **more)


@pytest.fixture(scope="module")
def path():
    return quick().fit(X)


def test_attributes_belong_together(path):
    assert_array_equal(path.k_values_, range(2, 8))
    assert path.labels_path_.shape == (150, 6)
    assert path.labels_path_.dtype == np.int32
    assert all(b < a for a, b in pairwise(path.inertias_))
    for place, k in enumerate(path.k_values_.tolist()):
        model = path.at(k)
        assert isinstance(model, HGMeans)
        assert model.n_clusters == k
        assert_array_equal(model.labels_, path.labels_path_[:, place])
        assert_array_equal(model.predict(X), model.labels_)
        assert model.inertia_ == path.inertias_[place]
        assert -model.score(X) == pytest.approx(model.inertia_)
        assert model.n_rediscoveries_ == path.n_rediscoveries_[place]
    frame = pd.DataFrame(path.results_)
    assert list(frame["k"]) == list(path.k_values_)
    assert set(path.suggestions_) < set(frame.columns)


def test_every_k_has_a_certainty(path):
    assert_array_equal(path.results_["certainty"], path.certainty_)
    assert np.all((path.certainty_ > 0.0) & (path.certainty_ < 1.0))
    for k, certainty in zip(path.k_values_.tolist(), path.certainty_, strict=True):
        assert path.at(k).certainty_ == certainty
    assert f"each {int(100 * path.certainty_.min())} % certain or more" in path._certainty()


def test_a_k_at_which_populations_disagree_is_less_certain():
    path = quick((10, 30)).fit(CLOUD)
    agree = path.n_rediscoveries_ > 0
    assert np.any(agree)
    assert not np.all(agree)
    for k in np.flatnonzero(~agree):
        assert np.all(path.certainty_[k] < path.certainty_[:k][agree[:k]])


def test_what_is_proven_is_certain():
    line = quick((1, 4), criteria=()).fit(X[:, :1])
    assert_array_equal(line.certainty_, 1.0)
    assert line._certainty() == "one column is solved exactly for every k"
    tiny = quick((2, 3), criteria=()).fit([[0.0], [1e-140], [1.0], [1.1]])
    assert tiny._certainty().endswith("as exactly as float64 allows")
    assert tiny._is_confirmed.all()
    several = quick((1, 3), criteria=(), select=None).fit(X)
    assert several.certainty_[0] == 1.0
    assert several._is_confirmed[0]
    assert np.all(several.certainty_[1:] < 1.0)
    model = several.at(2)
    assert model.certify(X).is_optimal
    assert model.certainty_ == 1.0


def test_certainty_is_not_known_before_both_sweeps_are_done():
    path = quick((2, 7), criteria=(), select=None, observers=lambda record: record.kind == "down")
    path.fit(X)
    # The sweep down begins with the most clusters.
    assert_array_equal(np.isnan(path.certainty_), [True] * 5 + [False])
    assert "certain or more" not in path._certainty()


def test_the_strategy_of_the_paper_does_not_know_its_certainty():
    path = quick((2, 4), criteria=(), select=None, strategy="paper").fit(X)
    assert np.all(np.isnan(path.certainty_))


def test_clear_clusters_are_found_by_all_of_the_usual_criteria(path):
    for name in ("calinski_harabasz", "bic", "simplified_silhouette", "davies_bouldin", "jump"):
        assert path.suggestions_[name] == 5, name
    assert path.best_k_ == 5
    assert path.best_estimator_.n_clusters == 5
    assert_array_equal(path.predict(X), path.labels_path_[:, 3])
    assert_array_equal(path.labels_, path.best_estimator_.labels_)
    assert_array_equal(path.cluster_centers_, path.best_estimator_.cluster_centers_)
    assert path.inertia_ == path.inertias_[3]
    assert path.transform(X).shape == (150, 5)
    assert path.score(X) == pytest.approx(-path.inertias_[3])
    assert list(path.get_feature_names_out()) == [f"hgmeanspath{i}" for i in range(5)]


def test_it_answers_for_new_samples_as_its_best_model_does(path):
    best = path.best_estimator_
    assert_array_equal(path.predict(3 * X), best.predict(3 * X))
    assert_array_equal(path.transform(3 * X), best.transform(3 * X))
    assert path.score(3 * X, sample_weight=X[:, 0] ** 2) == best.score(
        3 * X, sample_weight=X[:, 0] ** 2
    )
    assert_array_equal(clone(path).fit_predict(X), best.labels_)
    assert_array_equal(clone(path).fit_transform(X), best.transform(X))
    with pytest.raises(ValueError, match="X has 3 features, but HGMeansPath is expecting 2"):
        path.predict(CLOUD)


@pytest.mark.slow
def test_it_is_as_deep_as_independent_fits():
    path = quick((2, 9)).fit(CLOUD)
    for k, inertia in zip(path.k_values_, path.inertias_, strict=True):
        assert inertia <= HGMeans(int(k), random_state=0).fit(CLOUD).inertia_ * (1 + 1e-3)


@pytest.mark.slow
def test_costly_criteria_are_computed_if_asked_for():
    path = quick((2, 6), criteria=COSTLY, select="gap").fit(X)
    assert set(path.suggestions_) == {"silhouette", "gap", "prediction_strength"}
    # The small number of references and divisions suffices for what is so clear.
    assert path.suggestions_["silhouette"] == 5
    assert path.suggestions_["gap"] == path.best_k_ == 5
    assert path.suggestions_["prediction_strength"] == 5
    assert (path.results_["gap_error"] > 0).all()
    expected = [theirs.silhouette_score(X, labels) for labels in path.labels_path_.T]
    assert_allclose(path.results_["silhouette"], expected, rtol=1e-9)


def test_references_are_uniform_in_the_box_of_principal_axes():
    """Two tilted columns: the box is as tilted, and as narrow."""
    from evomeans.criteria import uniform_like

    along = np.random.default_rng(0).uniform(-10, 10, size=500)
    across = np.random.default_rng(1).uniform(-1, 1, size=500)
    tilted = np.stack([along + across, along - across], axis=1) / np.sqrt(2) + 100.0
    drawn = uniform_like(tilted, None)(np.random.default_rng(2))
    back = (drawn - 100.0) @ np.array([[1, 1], [1, -1]]) / np.sqrt(2)
    assert drawn.shape == tilted.shape
    assert np.abs(back[:, 0]).max() < 10.5
    assert np.abs(back[:, 1]).max() < 1.5
    assert back[:, 0].std() == pytest.approx(20 / np.sqrt(12), rel=0.1)


def test_one_feature_is_proven_for_every_k():
    x = np.random.default_rng(3).normal(size=(80, 1))
    path = quick((1, 9)).fit(x)
    assert str(path.stop_reason_) == "proven_optimal"
    for k, inertia in zip(path.k_values_.tolist(), path.inertias_, strict=True):
        assert inertia == pytest.approx(cluster_line(x[:, 0], k).inertia, rel=1e-12)
        assert str(path.at(k).stop_reason_) == "proven_optimal"
    path.add_k(12)
    assert path.inertias_[-1] == pytest.approx(cluster_line(x[:, 0], 12).inertia, rel=1e-12)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((2, 4), [2, 3, 4]),
        (4, [2, 3, 4]),
        ([5, 2, 2], [2, 5]),
        (range(2, 4), [2, 3]),
        (np.array([3]), [3]),
        ((1, 2), [1, 2]),
        ((2, 5, 3), [2, 3, 5]),
    ],
)
def test_ranges(given, expected):
    path = quick(given, criteria=["bic"], select="bic").fit(X)
    assert path.k_values_.tolist() == expected


@pytest.mark.parametrize(
    ("parameters", "kind", "message"),
    [
        ({"k_range": (5, 2)}, ValueError, r"k_range=\(5, 2\) is empty"),
        ({"k_range": []}, ValueError, "k_range is empty"),
        ({"k_range": 10**12}, ValueError, "should be >= 1000000000000"),
        ({"k_range": range(2, 10**12)}, ValueError, "should be >= 999999999999"),
        ({"k_range": range(10**12)}, ValueError, "k_range has 0; every number"),
        ({"k_range": 1}, ValueError, "k_range=1 must be at least 2"),
        ({"k_range": (0, 3)}, ValueError, "k_range has 0; every number"),
        ({"k_range": "2:5"}, TypeError, "k_range must be a pair"),
        ({"k_range": [2, 2.5]}, TypeError, "every number in k_range must be an int"),
        ({"k_range": (2, 151)}, ValueError, "n_samples=150 should be >= 151"),
        ({"criteria": ["elbow"]}, ValueError, "criterion 'elbow' is unknown"),
        ({"criteria": ["bic", "bic"]}, ValueError, "criteria has 'bic' twice"),
        ({"criteria": 3}, TypeError, "criteria must be a list"),
        ({"select": "best"}, ValueError, "criterion 'best' is unknown"),
        ({"select": 3}, TypeError, "select must be the name"),
        ({"select": lambda results: 99}, ValueError, "select returned k=99"),
        ({"k_range": [1]}, ValueError, "is not defined for k=1, the only number"),
        ({"confirmations": -1}, ValueError, "confirmations=-1"),
        ({"n_iter_no_change": 0}, ValueError, "n_iter_no_change=0"),
        ({"max_time": -1.0}, ValueError, "max_time=-1.0"),
        ({"observers": 3}, TypeError, "observers must be"),
        ({"engine": "tpu"}, ValueError, "engine='tpu' is unknown"),
    ],
)
def test_errors_are_one_clear_sentence(parameters, kind, message):
    with pytest.raises(kind, match=message):
        quick(**parameters).fit(X)


def test_more_clusters_than_distinct_samples():
    """They are found as far as there are any, and a warning says where they end."""
    few = np.repeat(np.arange(8.0).reshape(4, 2), 5, axis=0)
    with pytest.warns(ConvergenceWarning, match="solution for k=5 has only 4 clusters with"):
        path = quick((2, 6)).fit(few)
    assert_allclose(path.inertias_[2:], 0.0)


def test_select_none_callable_and_rules_that_find_nothing():
    path = quick(select=None).fit(X)
    assert path.best_k_ is None
    with pytest.raises(ValueError, match="No number of clusters has been selected"):
        path.predict(X)
    assert path.at(3).predict(X).max() == 2
    path = quick(select=lambda results: results["k"][results["inertia"] < 1e4][0]).fit(X)
    assert path.best_k_ in path.k_values_
    with pytest.warns(UserWarning, match="select='krzanowski_lai' suggests no k between 2 and 2"):
        assert quick([2], select="krzanowski_lai").fit(X).best_k_ is None


def test_criteria_have_settings():
    path = quick(criteria=[Jump(power=30.0)], select="jump").fit(X)
    assert path.suggestions_ == {"jump": path.best_k_}
    assert path.best_k_ != 5


def test_adding_k(path):
    grown = clone(path).fit(X).add_k((8, 10))
    assert_array_equal(grown.k_values_, range(2, 11))
    assert_allclose(grown.inertias_[:6], path.inertias_)
    assert grown.results_["bic"].shape == (9,)
    again = pickle.loads(pickle.dumps(path))
    assert_array_equal(again.predict(X), path.predict(X))
    with pytest.raises(ValueError, match="pass X to add_k"):
        again.add_k(9)
    assert again.add_k(9, X).k_values_.tolist() == [2, 3, 4, 5, 6, 7, 9]
    with pytest.raises(ValueError, match="X has 3 features"):
        again.add_k(10, CLOUD)
    with pytest.raises(ValueError, match=r"k=20 is not on the path.*add_k\(20\)"):
        path.at(20)


def same(one, other):
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("inertias_", "labels_", "n_rediscoveries_")
    )


def test_checkpoints_continue_to_the_same_bits(tmp_path):
    whole = quick((2, 8)).fit(CLOUD)
    for stop in (2, 8, 11):
        file = tmp_path / f"{stop}.checkpoint"
        part = quick((2, 8), checkpoint=file, observers=lambda r, stop=stop: r.number == stop)
        part.fit(CLOUD)
        assert str(part.stop_reason_) == "observer"
        assert len(part.k_values_) == min(7, stop - 1)
        seen: list[PathRecord] = []
        rest = quick((2, 8), checkpoint=file, observers=seen.append).fit(CLOUD)
        assert seen[0].number == stop + 1
        assert same(whole, rest)
        assert same(whole, quick((2, 8), checkpoint=file).fit(CLOUD))
    with pytest.raises(CheckpointError, match="n_clusters is"):
        quick((2, 9), checkpoint=file).fit(CLOUD)
    # What is added is in the file as well.
    grown = quick((2, 7), checkpoint=tmp_path / "grown").fit(CLOUD).add_k(8)
    assert same(grown, quick((2, 8), checkpoint=tmp_path / "grown").fit(CLOUD))


def test_interruption_keeps_what_is_there(tmp_path):
    file = tmp_path / "path.checkpoint"

    def interrupt(record):
        if record.number == 4:
            signal.raise_signal(signal.SIGINT)

    path = quick((2, 8), checkpoint=file, observers=interrupt)
    with pytest.warns(RuntimeWarning, match="3 of 7 numbers of clusters are kept. To go on"):
        path.fit(CLOUD)
    assert_array_equal(path.k_values_, [2, 3, 4])
    assert str(path.stop_reason_) == "interrupted"
    assert path.best_k_ in (2, 3, 4)
    assert same(quick((2, 8), checkpoint=file).fit(CLOUD), quick((2, 8)).fit(CLOUD))


def test_interruption_during_a_criterion_leaves_only_that_out():
    class Late:
        name, title = "late", "Late"

        def judge(self, evidence, allowed):
            signal.raise_signal(signal.SIGINT)
            evidence.search(CLOUD, None, [2, 3], 0)

    path = quick((2, 4), criteria=["bic", Late()])
    with pytest.warns(RuntimeWarning, match="their values are missing: late"):
        path.fit(X)
    assert path.suggestions_["bic"] == 4
    assert "late" not in path.results_


def test_observers_see_every_step_and_verbose_prints(capsys):
    seen: list[PathRecord] = []
    quick((2, 4), observers=seen.append, verbose=2).fit(X)
    assert [one.number for one in seen] == list(range(1, len(seen) + 1))
    assert seen[-1].n_open == 0
    printed = capsys.readouterr().out
    assert printed.count("[HGMeansPath]") >= 4
    assert "now k = 3, " in printed
    assert "[HGMeansPath] k = 2 to 4, k = 2 chosen; independent populations agree at" in printed


@pytest.mark.parametrize("kind", ["csr", "float32", "weights", "frame"])
def test_kinds_of_samples(kind):
    samples, weights = X, None
    if kind == "csr":
        samples = sp.csr_array(np.where(np.abs(X) < 1.0, 0.0, X))
    elif kind == "float32":
        samples = X.astype(np.float32)
    elif kind == "frame":
        samples = pd.DataFrame(X, columns=["a", "b"])
    else:
        weights = np.random.default_rng(0).integers(1, 4, size=150)
    path = quick(criteria=[*CRITERIA][:3]).fit(samples, sample_weight=weights)
    assert path.best_k_ == 5
    if kind == "float32":
        assert path.cluster_centers_.dtype == np.float32
    elif kind == "frame":
        assert list(path.feature_names_in_) == list(path.best_estimator_.feature_names_in_)
    elif kind == "weights":
        repeated = quick(criteria=[*CRITERIA][:3]).fit(np.repeat(X, weights, axis=0))
        assert_allclose(path.inertias_, repeated.inertias_, rtol=1e-6)
        for name in [*CRITERIA][:3]:
            assert_allclose(path.results_[name], repeated.results_[name], rtol=1e-6)


def test_pipelines_and_a_warm_start_of_the_best_model():
    pipeline = make_pipeline(StandardScaler(), quick((2, 6)))
    assert len(np.unique(pipeline.fit_predict(X))) == 5
    assert_array_equal(pipeline.predict(X), pipeline[-1].best_estimator_.labels_)
    warm = pipeline[-1].best_estimator_.set_params(warm_start=True, max_offspring=5)
    inertia = warm.inertia_
    assert warm.fit(StandardScaler().fit_transform(X)).inertia_ <= inertia * (1 + 1e-12)


@pytest.mark.slow
def test_samples_in_dask_stay_there():
    da = pytest.importorskip("dask.array")
    lazy = da.from_array(X, chunks=(60, 2))
    path = HGMeansPath((2, 6), random_state=0).fit(lazy)
    assert isinstance(path.labels_path_, da.Array)
    assert path.labels_path_.shape == (150, 5)
    assert path.best_k_ == 5
    local = HGMeansPath((2, 6), random_state=0).fit(X)
    assert_allclose(path.inertias_, local.inertias_, rtol=1e-3)
    labels = np.asarray(path.labels_path_)
    for place in range(5):
        value = path.results_["davies_bouldin"][place]
        assert_allclose(value, theirs.davies_bouldin_score(X, labels[:, place]), rtol=1e-9)
    with pytest.raises(ValueError, match="The gap statistic needs the samples in memory"):
        HGMeansPath((2, 4), criteria=["gap"]).fit(lazy)


@pytest.mark.slow
def test_the_gpu_engine_does_it_too(gpu_device):
    """It makes rounds of offspring, and has few abilities."""
    path = quick((2, 6), engine="gpu").fit(X)
    assert path.best_k_ == 5
    assert_allclose(path.inertias_, quick((2, 6)).fit(X).inertias_, rtol=1e-2)
    assert "swaps" in path.best_estimator_.missing_operators_
