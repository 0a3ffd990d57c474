"""The data of a report is true and plain JSON; broken data gives one clear error."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from reports import data_of, fitted, samples
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

from evomeans import HGMeans
from evomeans.report import render_report, report_data


def test_it_is_plain_json_that_makes_the_same_page(data, page):
    """Through a file and back nothing is lost, so that a run can be reported again."""
    again = json.loads(json.dumps(data, allow_nan=False))
    assert again == data
    assert render_report(again) == page


def test_the_figures_of_the_run(model, data):
    X, best = samples(), model.history_.column("best")
    first = int(np.argmax(best <= best[-1] * (1 + 1e-10)))
    expected = {
        "n_samples": 200,
        "n_features": 4,
        "n_clusters": 5,
        "inertia": model.inertia_,
        "first_inertia": model.history_[0].inertia,
        "n_offspring": model.n_iter_,
        "stop_reason": model.stop_reason_,
        "n_rediscoveries": model.n_rediscoveries_,
        "last_improvement": model.history_[first].number,
        "explained": pytest.approx(1 - model.inertia_ / ((X - X.mean(axis=0)) ** 2).sum()),
    }
    assert {name: data["run"][name] for name in expected} == expected


def test_the_clusters_in_figures(model, data):
    """Sizes, shares of the inertia, and the columns in which each cluster stands out."""
    X, clusters = samples(), data["clusters"]
    assert [c["size"] for c in clusters] == np.bincount(model.labels_).tolist()
    away = ((X - model.cluster_centers_[model.labels_]) ** 2).sum(axis=1)
    shares = np.bincount(model.labels_, away) / model.inertia_
    assert_allclose([c["inertia_share"] for c in clusters], shares)
    z = (model.cluster_centers_ - X.mean(axis=0)) / X.std(axis=0)
    names = ["height", "width", "depth", "cost"]
    for cluster, row, center in zip(clusters, z, model.cluster_centers_, strict=True):
        order = np.argsort(-np.abs(row))
        for told, i in zip(cluster["telling"], order, strict=False):
            assert told["name"] == names[i]
            assert told["value"] == pytest.approx(row[i], abs=0.006)
            assert told["center"] == pytest.approx(center[i], rel=1e-4)


def test_weights_count():
    """A report of weighted samples is that of repeated ones."""
    X, weights = samples(), np.random.default_rng(1).integers(0, 4, 200)
    weighted = HGMeans.fast(3, random_state=0).fit(X, sample_weight=weights)
    twin = copy.copy(weighted)
    twin.labels_ = np.repeat(weighted.labels_, weights)
    one = data_of(weighted, X, sample_weight=weights)
    other = data_of(twin, np.repeat(X, weights, axis=0))
    figures = ("silhouette", "borderline")
    assert_allclose(*([each["separation"][name] for name in figures] for each in (one, other)))
    assert_allclose(one["run"]["explained"], other["run"]["explained"])
    figures = ("inertia_share", "weight", "silhouette")
    for a, b in zip(one["clusters"], other["clusters"], strict=True):
        assert_allclose(*([each[name] for name in figures] for each in (a, b)))
        assert [t["name"] for t in a["telling"]] == [t["name"] for t in b["telling"]]


def test_centres_of_standardized_samples_are_shown_in_the_original_units(model):
    data = data_of(model, samples(), standardization=([1, 2, 3, 4], [100] * 4))
    shown = model.cluster_centers_ * 100 + [1, 2, 3, 4]
    told, profiles = data["clusters"][0]["telling"][0], data["profiles"]
    column = int(told["name"].removeprefix("x"))
    assert told["center"] == pytest.approx(shown[0, column], rel=1e-4)
    columns = profiles["columns"]
    assert profiles["names"] == [f"x{i}" for i in columns]
    assert_allclose(profiles["centers"], shown[profiles["clusters"]][:, columns], rtol=1e-4)


def test_only_model_and_samples_must_be_given(model):
    data = report_data(model, samples())
    assert data["title"] == "HGMeans"
    assert data["settings"]["n_clusters"] == 5
    assert "At a terminal" not in render_report(data)


def test_settings_are_only_what_shapes_the_fit(tmp_path):
    model = fitted(2, observers=[bool], checkpoint=tmp_path / "c")
    data = report_data(model, samples(), title="mine")
    assert data["settings"]["max_offspring"] == 25
    for name in ("observers", "checkpoint"):
        assert name not in data["settings"]
        assert name not in data["python"]


def test_settings_become_text_where_json_has_no_word_for_them(model):
    settings = {"a": np.int64(3), "b": float("nan"), "c": [1, 2], "d": np.float64(0.5), "e": True}
    told = data_of(model, samples(), settings=settings)["settings"]
    assert told == {"a": 3, "b": "nan", "c": "1, 2", "d": 0.5, "e": True}


def test_names_that_are_no_utf8_can_be_written(model):
    """Names of files on Linux are bytes; Python hands them over with lone surrogates."""
    data = data_of(model, samples(), ["\udce9", "b", "c", "d"], title="caf\udce9.csv")
    assert data["title"] == "caf?.csv"
    assert "caf?.csv" in render_report(data).encode("utf-8").decode("utf-8")


def test_the_snippet_repeats_the_fit(model):
    """Executed on the same samples it finds the same centres."""
    snippet = data_of(model, samples())["python"].replace("X = ...", "X = given")
    space = {"given": samples()}
    exec(snippet, space)
    assert space["model"].get_params() == model.get_params()
    np.testing.assert_array_equal(space["model"].cluster_centers_, model.cluster_centers_)


def test_the_snippet_standardizes_and_weighs():
    """What was done to the samples at the command line is part of the recipe."""
    X, weights = samples() * [1, 10, 100, 1000], np.arange(200) % 3 + 1.0
    scaler = StandardScaler().fit(X, sample_weight=weights)
    scaled = scaler.transform(X)
    model = HGMeans.fast(3, random_state=0, max_offspring=5).fit(scaled, sample_weight=weights)
    scaling = (scaler.mean_, scaler.scale_)
    snippet = data_of(model, scaled, sample_weight=weights, standardization=scaling)["python"]
    space = {"given": X, "given_weights": weights}
    snippet = snippet.replace("X = ...", "X = given")
    exec(snippet.replace("weights = ...", "weights = given_weights"), space)
    np.testing.assert_array_equal(space["model"].cluster_centers_, model.cluster_centers_)


def test_the_snippet_leaves_out_what_cannot_be_written_down():
    init = samples()[:2]
    model = fitted(2, init=init, random_state=np.random.default_rng(0), observers=[bool])
    snippet = data_of(model, samples())["python"]
    assert "init=..." in snippet
    assert "random_state=..." in snippet
    assert "engine" not in snippet


@pytest.mark.parametrize(
    ("X", "given", "text"),
    [
        (samples()[:100], {}, "fitted to 200 samples, X has 100"),
        (samples()[:, :3], {}, r"X must have 4 features, .* shape \(200, 3\)"),
        (samples(), {"sample_names": list("abc")}, "sample_names has 3 names for 200 samples"),
        (samples(), {"sample_weight": [1, 2, 3]}, "sample_weight has 3 values for 200 samples"),
        (samples(), {"units": {"e": "cm"}}, "units names a column 'e'"),
    ],
)
def test_what_does_not_fit_the_samples_is_refused(model, X, given, text):
    with pytest.raises(ValueError, match=text):
        report_data(model, X, **given)
    with pytest.raises(NotFittedError):
        report_data(HGMeans(2), X)


@pytest.mark.parametrize(("k", "columns"), [(1, 1), (1, 3), (2, 1), (2, 2), (7, 1), (7, 3)])
def test_small_problems(k, columns):
    """Exact answers without a history, one cluster, every sample a cluster."""
    X = np.random.default_rng(0).normal(size=(7, columns))
    page = render_report(data_of(fitted(k, X), X))
    assert "NaN" not in page.replace("isNaN", "")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_empty_clusters_and_constant_columns():
    X = np.repeat([[1.0, 5.0], [2.0, 5.0]], 10, axis=0)
    data = data_of(fitted(4, X), X)
    assert [c["size"] for c in data["clusters"]] == [10, 10, 0, 0]
    assert render_report(data)


BROKEN = [
    (lambda d: d.pop("title"), "title"),
    (lambda d: d["run"].update(inertia="<b>"), "str"),
    (lambda d: d["run"].pop("n_rediscoveries"), "n_rediscoveries"),
    (lambda d: d["projection"].update(points=[[1.0], []]), "inhomogeneous"),
    (lambda d: d["projection"]["labels"].__setitem__(0, 99), "out of bounds"),
    (lambda d: d["projection"]["centers"][0].__setitem__(0, float("nan")), "NaN"),
    (lambda d: d["profiles"].update(names=None), "NoneType"),
    (lambda d: d.update(title="\ud800"), "surrogates"),
    (lambda d: d["clusters"].clear(), ""),
    (lambda d: d["clusters"][2].update(color=8), "out of bounds"),
    (lambda d: d["projection"]["sizes"].__setitem__(2, "<b>"), "<b>"),
    (lambda d: d["projection"].update(colour="red"), "colour"),
    (lambda d: d["convergence"]["offspring"].update(floor="x"), "float64"),
    (lambda d: d["convergence"]["seconds"]["gap"].pop(), "shape"),
]


@pytest.mark.parametrize(("spoil", "text"), BROKEN)
def test_broken_data_gives_one_kind_of_error(data, spoil, text):
    spoil(data)
    with pytest.raises(ValueError, match=f"No report can be made from this data: .*{text}"):
        render_report(data)


def test_other_data_and_versions_are_refused(data):
    for other in (None, [], "text", 3, {}, {"format": "x"}):
        with pytest.raises(ValueError, match="This is not the data of a report"):
            render_report(other)
    with pytest.raises(ValueError, match="has version 9; this evomeans reads version 4"):
        render_report({**data, "version": 9})


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:max_time")
def test_large_reports_stay_small():
    """20,000 samples, 50 columns, 200 clusters: under 1 MB, and the page with tables 1.3 MB."""
    X = np.random.default_rng(0).normal(size=(20_000, 50))
    settings = {"min_population": 1, "max_population": 1, "max_offspring": 1, "max_time": 1e-9}
    model = fitted(200, X, strategy="paper", **settings)
    data = data_of(model, X, [f"measurement number {i}" for i in range(50)])
    assert len(json.dumps(data)) < 1_000_000
    assert len(render_report(data).encode()) < 1_300_000
