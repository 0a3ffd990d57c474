"""What a report tells is true, is plain JSON, and is checked before it is used."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from reports import data_of, fitted, samples
from scipy.sparse import csr_array

from evomeans import HGMeans
from evomeans.report import render_report
from evomeans.report.schema import check_report_data

pytest_plugins = ["report_fixtures"]


def test_it_is_plain_json_that_makes_the_same_page(data):
    """Through a file and back nothing is lost, so that a run can be reported again."""
    again = json.loads(json.dumps(data, allow_nan=False))
    assert again == data
    assert render_report(again) == render_report(data)


def test_the_figures_of_the_run(model, data):
    run, X = data["run"], samples()
    assert (run["n_samples"], run["n_features"], run["n_clusters"]) == (200, 4, 5)
    assert run["inertia"] == model.inertia_
    assert run["first_inertia"] == model.history_[0].inertia
    assert run["n_offspring"] == model.n_iter_
    assert run["stop_reason"] == model.stop_reason_
    total = ((X - X.mean(axis=0)) ** 2).sum()
    assert run["explained"] == pytest.approx(1 - model.inertia_ / total)
    best = model.history_.column("best")
    first = int(np.argmax(best <= best[-1] * (1 + 1e-10)))
    assert run["last_improvement"] == model.history_[first].number


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
    X, weights = samples(), np.random.default_rng(1).integers(1, 4, 200)
    weighted = HGMeans.fast(3, random_state=0).fit(X, sample_weight=weights)
    repeated = np.repeat(X, weights, axis=0)
    twin = HGMeans.fast(3, random_state=0).fit(repeated)
    one, other = data_of(weighted, X, sample_weight=weights), data_of(twin, repeated)
    assert_allclose(one["run"]["explained"], other["run"]["explained"])
    for a, b in zip(one["clusters"], other["clusters"], strict=True):
        assert_allclose([a["inertia_share"], a["weight"]], [b["inertia_share"], b["weight"]])
        assert [t["name"] for t in a["telling"]] == [t["name"] for t in b["telling"]]


def test_centres_in_other_units(model):
    """A model of scaled samples can be told in the units of the table."""
    shown = model.cluster_centers_ * 100
    told = data_of(model, samples(), centers=shown)["clusters"][0]["telling"][0]
    column = int(told["name"].removeprefix("x"))
    assert told["center"] == pytest.approx(shown[0, column], rel=1e-4)


def test_sparse_samples():
    X = csr_array(np.maximum(samples(), 0))
    data = data_of(fitted(X=X), X)
    assert "x3" in render_report(data)


def test_settings_become_text_where_json_has_no_word_for_them(model):
    settings = {"a": np.int64(3), "b": float("nan"), "c": [1, 2], "d": np.float64(0.5), "e": True}
    told = data_of(model, samples(), settings=settings)["settings"]
    assert told == {"a": 3, "b": "nan", "c": "[1, 2]", "d": 0.5, "e": True}


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


def test_the_snippet_leaves_out_what_cannot_be_written_down():
    init = samples()[:2]
    model = fitted(2, init=init, random_state=np.random.default_rng(0), observers=[bool])
    snippet = data_of(model, samples())["python"]
    assert "init=..." in snippet
    assert "random_state=..." in snippet
    assert "engine" not in snippet


def test_other_samples_than_those_of_the_fit(model):
    with pytest.raises(ValueError, match="fitted to 200 samples, X has 100"):
        data_of(model, samples()[:100])


@pytest.mark.parametrize("k", [1, 2, 7])
@pytest.mark.parametrize("columns", [1, 2, 3])
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
    (lambda d: d.update(format="x"), "should be 'evomeans report'"),
    (lambda d: d.update(version=9), "have version 9; this evomeans reads version 1"),
    (lambda d: d.pop("title"), "data.title is missing"),
    (lambda d: d.update(title="\ud800"), "data.title should be a text without lone surrogates"),
    (lambda d: d["settings"].update(a="\ud800"), "a text without lone surrogates"),
    (lambda d: d.update(title=3), "data.title should be a text, is 3"),
    (lambda d: d["run"].update(inertia="<b>"), "data.run.inertia should be a finite number"),
    (lambda d: d["run"].update(inertia=float("inf")), "data.run.inertia should be a finite"),
    (lambda d: d["run"].update(inertia=10**400), "data.run.inertia should be a finite"),
    (lambda d: d["run"].update(n_samples=True), "data.run.n_samples should be a whole number"),
    (lambda d: d["run"].update(n_clusters=6), "the clusters should be equally many everywhere"),
    (lambda d: d["run"].update(explained=1.5), "should be a share from 0 to 1"),
    (lambda d: d["projection"].update(points=[[1.0], []]), "the points of the projection"),
    (lambda d: d["projection"]["labels"].__setitem__(0, 99), "every label should be below"),
    (lambda d: d["projection"].update(view=[[1, 1], [0, 1]]), "two ascending limits"),
    (lambda d: d["projection"].update(view=[[0, 1]]), "view should be a list of 2"),
    (lambda d: d["profiles"]["values"][0].append(1.0), "the columns of the profiles"),
    (lambda d: d["profiles"].update(columns=None), "data.profiles.columns should be a list"),
    (lambda d: d["clusters"][2].update(color=8), r"data.clusters\[2\].color should be below 8"),
    (lambda d: d["clusters"][0].update(telling=[3]), r"telling\[0\] should be an object"),
    (lambda d: d["settings"].update(a=[1]), r"data.settings\['a'\] should be a text, a number"),
    (lambda d: d["convergence"]["offspring"].update(floor=0), "floor should be a positive"),
    (lambda d: d["convergence"]["seconds"]["gap"].pop(), "the solutions of convergence.seconds"),
]


@pytest.mark.parametrize(("spoil", "text"), BROKEN)
def test_broken_data_are_refused_with_the_place(data, spoil, text):
    spoil(data)
    with pytest.raises(ValueError, match=text):
        render_report(data)


@pytest.mark.parametrize("data", [None, [], "text", 3, {}])
def test_something_else_altogether(data):
    with pytest.raises(ValueError, match="These are no data of a report"):
        check_report_data(data)


def test_large_reports_stay_small():
    """100,000 samples, 50 columns, 200 clusters: under 2 MB, with room to spare."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 50))
    settings = {"min_population": 1, "max_population": 1, "max_offspring": 1, "max_time": 1e-9}
    model = fitted(200, X, **settings)
    data = data_of(model, X, [f"measurement number {i}" for i in range(50)])
    assert len(json.dumps(data)) < 1_000_000
    assert len(render_report(data).encode()) < 1_000_000
