"""Words, separation, examples, labels and the comparison with KMeans, against direct sums."""

from __future__ import annotations

import csv
import io

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from reports import data_of, fitted, samples
from scipy.sparse import csr_array
from sklearn.cluster import KMeans

from evomeans import ConstrainedHGMeans, SphericalHGMeans, TrimmedHGMeans
from evomeans.report import render_report, report_data
from evomeans.report.data import (
    MOST_WORK,
    affordable_runs,
    cluster_words,
)
from evomeans.report.page import above_text, labels_csv


@pytest.mark.parametrize(
    ("telling", "words"),
    [
        ([("a", 1.6), ("b", 0.6), ("c", -0.5)], "Very high a, high b, low c."),
        ([("a", -3.0), ("b", -1.5), ("c", 0.49)], "Very low a and b."),
        ([("a", 0.4)], "Close to the average in all columns."),
        ([], "Close to the average in all columns."),
        ([("n" * 90, 2.0)], f"Very high {'n' * 39}…."),
        ([(f"c{i}", 1.0) for i in range(9)], "High c0, c1, c2, c3 and c4."),
    ],
)
def test_a_cluster_in_a_line_of_words(telling, words):
    assert cluster_words(telling) == words


@pytest.mark.parametrize("as_given", [np.asarray, csr_array])
def test_the_examples_are_the_closest_and_the_least_clear_samples(model, as_given):
    """By all distances to centres."""
    X, labels = samples(), model.labels_
    away = np.linalg.norm(X[:, None] - model.cluster_centers_, axis=2)
    near, far = np.sort(away, axis=1).T[:2]
    clear, other = 1 - near / far, np.argsort(away, axis=1)[:, 1]
    data = data_of(model, as_given(X))
    rows = iter(data["examples"]["rows"])
    for cluster, told in enumerate(data["clusters"]):
        members = np.flatnonzero(labels == cluster)
        assert told["silhouette"] == pytest.approx(clear[members].mean())
        closest, unclear = (members[np.argsort(one[members])] for one in (near, clear))
        for i in closest[:2]:
            row = next(rows)
            assert (row["kind"], row["name"], row["other"]) == ("typical", str(i), None)
            assert row["distance"] == pytest.approx(near[i], rel=1e-4)
        for i in unclear[clear[unclear] < 0.1][:2]:
            row = next(rows)
            assert (row["kind"], row["name"], row["other"]) == ("borderline", str(i), other[i])
    assert next(rows, None) is None
    assert render_report(data)
    assert data["separation"]["silhouette"] == pytest.approx(clear.mean())
    assert data["separation"]["borderline"] == pytest.approx((clear < 0.1).mean())


def test_the_closest_centres(model, data):
    away = np.linalg.norm(model.cluster_centers_[:, None] - model.cluster_centers_, axis=2)
    np.fill_diagonal(away, np.inf)
    assert [cluster["nearest"] for cluster in data["clusters"]] == away.argmin(axis=1).tolist()
    assert_allclose([cluster["gap"] for cluster in data["clusters"]], away.min(axis=1))


def test_examples_are_samples_in_the_original_units(model):
    X = samples()
    names = [f"s{i}" for i in range(200)]
    more = {"sample_names": names, "sample_label": "shop"}
    examples = data_of(model, X, standardization=([1, 2, 3, 4], [10] * 4), **more)["examples"]
    assert examples["label"] == "shop"
    columns = [int(name.removeprefix("x")) for name in examples["columns"]]
    for row in examples["rows"]:
        i = int(row["name"].removeprefix("s"))
        assert model.labels_[i] == row["cluster"]
        assert_allclose(row["values"], (X[i] * 10 + [1, 2, 3, 4])[columns], rtol=1e-4)


def test_deviations_within_clusters(model, data):
    X, profiles, told = samples(), data["profiles"], data["columns"]
    columns = [["height", "width", "depth", "cost"].index(name) for name in profiles["names"]]
    assert profiles["columns"] == columns
    for cluster, row in zip(profiles["clusters"], told["deviations"], strict=True):
        assert_allclose(row, X[model.labels_ == cluster][:, columns].std(axis=0), rtol=1e-4)
    assert_allclose(told["mean"], X.mean(axis=0)[columns], rtol=1e-4)


def test_units_belong_to_columns(model):
    data = data_of(model, samples(), ["a", "b", "c", "d"], units={"b": "cm"})
    by_name = dict(zip(data["profiles"]["names"], data["columns"]["units"], strict=True))
    assert by_name == {"a": "", "b": "cm", "c": "", "d": ""}


def test_labels_as_csv(model):
    frame = pd.DataFrame(samples(), index=[f'a "b", {i}' for i in range(200)])
    frame.index.name = "who"
    text = labels_csv(report_data(model, frame)["labels"])
    header, *rows = csv.reader(io.StringIO(text))
    assert header == ["who", "cluster"]
    assert [name for name, _ in rows] == list(frame.index)
    assert [int(cluster) for _, cluster in rows] == model.labels_.tolist()
    first, second = labels_csv(report_data(model, samples())["labels"]).splitlines()[:2]
    assert first == "index,cluster"
    assert second.startswith("0,")
    assert labels_csv(None) is None


def test_kmeans_is_really_run(model, data):
    """With its own defaults and the seeds from 0 on."""
    X, rival = samples(), data["run"]["kmeans"]
    inertias = [KMeans(5, n_init=1, random_state=seed).fit(X).inertia_ for seed in range(10)]
    assert rival["runs"] == 10
    assert rival["mean"] == pytest.approx(np.mean(inertias))
    assert (rival["best"], rival["worst"]) == pytest.approx((min(inertias), max(inertias)))
    reached = np.array(inertias) <= model.inertia_ * (1 + 1e-6)
    assert rival["as_good"] == np.count_nonzero(reached)
    assert data_of(model, X, kmeans_runs=0)["run"]["kmeans"] is None


def test_kmeans_is_not_compared_with_other_objectives():
    X = samples()
    for model in (
        TrimmedHGMeans(3, n_outliers=4, max_offspring=5, random_state=0),
        ConstrainedHGMeans(3, size_min=50, max_offspring=5, random_state=0),
    ):
        data = data_of(model.fit(X), X)
        run = data["run"]
        assert run["kmeans"] is None
        assert "certify" not in render_report(data)
        assert run["n_outliers"] == np.count_nonzero(model.labels_ < 0)


def test_large_problems_get_fewer_runs():
    shapes = ((100, 10), 5), ((10**6, 10), 5), ((MOST_WORK, 1), 2)
    assert [affordable_runs(*shape) for shape in shapes] == [10, 2, 0]


def test_models_without_centres_among_the_samples_are_refused(tmp_path):
    X = samples()
    model = SphericalHGMeans(2, max_offspring=2, random_state=0).fit(X)
    with pytest.raises(TypeError, match="SphericalHGMeans does not have"):
        model.report(X, tmp_path / "r.html")
    assert not list(tmp_path.iterdir())


def test_how_far_above():
    texts = [above_text(inertia, 100.0) for inertia in (110.0, 100.0, 100.0 + 1e-9)]
    assert texts == ["10 % above", "the same", "the same"]


def test_one_cluster_has_nothing_to_be_separated_from():
    X = samples()
    data = data_of(fitted(1, X), X)
    assert data["separation"]["silhouette"] is None
    assert data["clusters"][0]["nearest"] is None
    assert [row["kind"] for row in data["examples"]["rows"]] == ["typical", "typical"]
