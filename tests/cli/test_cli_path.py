"""``evomeans path``: what it finds, writes, and tells."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import numpy as np
import polars as pl
from blobs import names

import evomeans as package
from evomeans import HGMeansPath
from evomeans.progress import PathDisplay

FILES = {
    *("labels.csv", "centers.csv", "path.csv", "model.evomeans"),
    *("run.json", "report.json", "report.html"),
}
PATH = ("path", "blobs.csv", "-k", "2:5", "--id", "name", "--exclude", "w", "--seed", 1)


def test_the_run_is_what_python_would_find(evomeans, blobs):
    """Labels and centres of every k, the results, the model of the chosen k and the record."""
    result = evomeans(*PATH, "--select", "bic", "-o", "out")
    assert result.code == 0
    assert names("out") == FILES
    assert names() == {"blobs.csv", "out"}
    path = HGMeansPath((2, 5), select="bic", random_state=1).fit(blobs)
    labels = pl.read_csv("out/labels.csv")
    assert labels.columns == ["name", "k2", "k3", "k4", "k5"]
    np.testing.assert_array_equal(labels.drop("name").to_numpy(), path.labels_path_)
    centers = pl.read_csv("out/centers.csv")
    assert centers["k"].to_list() == [2] * 2 + [3] * 3 + [4] * 4 + [5] * 5
    three = centers.filter(pl.col("k") == 3).to_numpy()[:, 2:]
    np.testing.assert_array_equal(three, path.at(3).cluster_centers_)
    results = pl.read_csv("out/path.csv")
    np.testing.assert_array_equal(results["inertia"].to_numpy(), path.inertias_)
    assert set(path.suggestions_) <= set(results.columns)
    model = package.load("out/model.evomeans")
    assert model.n_clusters == path.best_k_ == 3
    assert list(model.feature_names_in_) == ["größe (m)", "b"]
    record = json.loads(Path("out/run.json").read_text(encoding="utf-8"))
    assert record["result"]["suggestions"] == path.suggestions_
    assert set(record["files"]) == FILES
    assert "chosen    k = 3 by bic" in result.out
    report = Path("out/report.html").read_text(encoding="utf-8")
    Path("out/report.html").unlink()
    assert evomeans("report", "out").code == 0
    assert Path("out/report.html").read_text(encoding="utf-8") == report
    predicted = evomeans("predict", "out", "blobs.csv", "--id", "name")
    assert predicted.code == 0
    assert predicted.out.count("\n") == 61


def test_only_numbers_that_were_asked_for_are_counted(evomeans, blobs, monkeypatch):
    """Every path has k = 1, which is neither shown if it was not asked for, nor ever open."""
    counts = []
    take = PathDisplay.take

    def watch(self, record, seconds, **more):
        counts.append(self.counts(record))
        take(self, record, seconds, **more)

    monkeypatch.setattr(PathDisplay, "take", watch)
    result = evomeans(*PATH)
    assert counts[0] == (0, 0, 4)
    assert counts[-1] == (4, 4, 4)
    assert "independent populations agree at 4 of 4 k, each 9" in result.out
    result = evomeans(*PATH[:3], "1:3", *PATH[4:])
    assert counts[-1] == (3, 3, 3)
    assert "independent populations agree at 3 of 3 k" in result.out


def test_a_suggestion_at_the_end_of_the_range_is_marked(evomeans, blobs):
    """The last line says which suggestions to trust."""
    result = evomeans(*PATH[:3], "2:3", *PATH[4:])
    lines = [line.split(None, 1) for line in result.out.splitlines()]
    assert ["simplified_silhouette", "3 (end of the range)"] in lines
    assert result.out.endswith("\nTrust no k at the end of the range.\n")
    result = evomeans(*PATH[:3], "2:6", *PATH[4:], "--select", "simplified_silhouette")
    assert (
        "\nTrust k = 3 (simplified_silhouette) first, or k = 3 (bic) if clusters are round and of "
        "similar width; trust no k at the end of the range.\n"
    ) in result.out
    result = evomeans(*PATH, "--criteria", "jump", "--select", "jump")
    assert result.out.endswith("\nTrust no k at the end of the range.\n")


def test_ranges_criteria_and_no_choice(evomeans, blobs):
    result = evomeans(*PATH[:3], "2,4", *PATH[4:], "--criteria", "bic,jump", "--select", "none")
    assert result.code == 0
    assert "none was selected" in result.out
    assert "written   nothing" in result.out
    result = evomeans(*PATH, "--select", "none", "-o", "out", "--no-report", "--json")
    assert names("out") == FILES - {"model.evomeans", "report.html"}
    assert json.loads(result.out)["result"]["best_k"] is None


def test_an_interrupted_path_is_kept_and_continues_to_the_same_bits(evomeans, blobs, monkeypatch):
    quiet = (*PATH, "--no-report")
    assert evomeans(*quiet, "-o", "whole").code == 0

    def interrupt(self, record):
        if record.number == 3:
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(PathDisplay, "__call__", interrupt)
        result = evomeans(*quiet, "-o", "out")
    assert result.code == 130
    assert "--resume" in result.err
    assert pl.read_csv("out/path.csv")["k"].to_list() == [2, 3]
    assert "out.checkpoint" in names()
    assert evomeans(*quiet, "-o", "out").code == 1
    result = evomeans(*quiet, "-o", "out", "--resume")
    assert result.code == 0
    assert "found out.checkpoint, with solutions for 2 numbers of k" in result.err
    assert "out.checkpoint" not in names()
    for file in ("labels.csv", "centers.csv", "path.csv"):
        assert Path("out", file).read_bytes() == Path("whole", file).read_bytes()
