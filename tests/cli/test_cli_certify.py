"""``certify``: the proof of a run, kept next to it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from blobs import contents

import evomeans as package
from evomeans.storage.archive import read_archive, write_archive
from evomeans.storage.certificate_file import FORMAT, VERSION


@pytest.fixture
def certified(evomeans, run) -> Path:
    assert evomeans("certify", "out", "blobs.csv").code == 0
    return run


def test_certify_proves_a_run_and_keeps_the_proof(evomeans, run, blobs):
    """In a file of its own, and as a sentence in model, record and report."""
    result = evomeans("certify", "out", "blobs.csv", "--json")
    assert result.code == 0, result.err
    assert "Proven optimal" in result.err
    shown = json.loads(result.out)
    assert shown["lower_bound"] <= shown["upper_bound"]
    assert shown["gap"] <= 1e-6
    certificate = package.load_certificate("out/certificate.evomeans")
    assert certificate.status == "optimal"
    assert certificate.verify(blobs) == certificate.lower_bound
    assert package.load("out/model.evomeans").certificate_.status == "optimal"
    record = json.loads(Path("out/run.json").read_text())
    assert record["certificate"]["status"] == "optimal"
    assert "certificate.evomeans" in record["files"]
    report = json.loads(Path("out/report.json").read_text())["run"]
    assert "Proven optimal" in report["certificate"]
    found = package.load("out/model.evomeans").certainty_
    assert found == report["certainty"] == record["result"]["certainty"] == 1.0
    assert "It is 100\N{NO-BREAK SPACE}% certain" in Path("out/report.html").read_text()
    assert "Proven optimal" in Path("out/report.html").read_text()
    assert evomeans("predict", "out", "blobs.csv").code == 0


@pytest.mark.parametrize("command", ["certify", "verify"])
def test_both_want_the_table_of_the_fit(evomeans, certified, command):
    pl.read_csv("blobs.csv").head(20).write_csv("short.csv")
    before = contents("out")
    result = evomeans(command, "out", "short.csv")
    assert result.code == 1
    assert "has 20 rows and the run 60" in result.err
    assert contents("out") == before


MODELS = {
    "SphericalHGMeans": ("--metric", "cosine"),
    "TrimmedHGMeans": ("--outliers", "3"),
}


@pytest.mark.parametrize("name", MODELS)
def test_certify_refuses_other_models_and_writes_nothing(evomeans, blobs, name):
    """It wrote "Proven optimal" into model, record and report."""
    fit = ("fit", "blobs.csv", "-k", 3, "--exclude", "name,w", "--seed", 1, "-o", "out")
    assert evomeans(*fit, *MODELS[name]).code == 0
    before = contents("out")
    result = evomeans("certify", "out", "blobs.csv")
    assert result.code == 1
    assert f"{name} cannot be certified" in result.err
    assert contents("out") == before


def test_certify_gives_a_constrained_run_a_bound(evomeans, blobs):
    """The proof was one of another clustering than that of the run."""
    fit = ("fit", "blobs.csv", "-k", 3, "--exclude", "name,w", "--seed", 1, "-o", "out")
    assert evomeans(*fit, "--size-max", "20").code == 0
    inertia = json.loads(Path("out/run.json").read_text())["result"]["inertia"]
    result = evomeans("certify", "out", "blobs.csv")
    assert result.code == 0
    assert "with or without constraints" in result.out
    stated = json.loads(Path("out/run.json").read_text())["certificate"]
    assert stated["upper_bound"] == pytest.approx(inertia, rel=1e-9)
    assert stated["constrained"]
    assert evomeans("verify", "out", "blobs.csv").code == 0


PATH = ("path", "blobs.csv", "-k", "2:4", "--exclude", "name,w", "--seed", 1, "-o", "out")


def test_certify_proves_the_selected_model_of_a_path(evomeans, blobs):
    """It ended in a KeyError after half of the files."""
    assert evomeans(*PATH, "--select", "bic").code == 0
    result = evomeans("certify", "out", "blobs.csv")
    assert result.code == 0, result.err
    assert "no clustering into 3 clusters" in result.out
    assert "no clustering into 3 clusters" in Path("out/report.html").read_text()
    record = json.loads(Path("out/run.json").read_text())
    assert record["certificate"]["n_clusters"] == record["result"]["best_k"] == 3
    assert [one == 1.0 for one in record["result"]["certainty"]] == [False, True, False]
    assert evomeans("verify", "out", "blobs.csv").code == 0
    assert evomeans("report", "out").code == 0
    assert "no clustering into 3 clusters" in Path("out/report.html").read_text()


def test_certify_says_what_to_do_with_a_path_without_a_model(evomeans, blobs):
    assert evomeans(*PATH, "--select", "none").code == 0
    before = contents("out")
    result = evomeans("certify", "out", "blobs.csv")
    assert result.code == 1
    assert "has selected no number of clusters" in result.err
    assert contents("out") == before


@pytest.mark.parametrize("report", ["[]", "{}", '{"run": 1}', '{"models": {}}', "not json"])
def test_certify_writes_all_files_or_none(evomeans, run, report):
    """A report that cannot be made leaves the model without a statement, too."""
    Path("out/report.json").write_text(report)
    before = contents("out")
    result = evomeans("certify", "out", "blobs.csv")
    assert result.code == 1
    assert "report.json is damaged" in result.err
    assert contents("out") == before


def test_certify_leaves_the_run_alone_if_the_disk_is_full(evomeans, run, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("evomeans.estimators.searching.SearchingEstimator.save", full)
    before = contents("out")
    result = evomeans("certify", "out", "blobs.csv")
    assert result.code == 1
    assert "out could not be written" in result.err
    assert contents("out") == before


def test_verify_says_that_a_run_is_what_it_says(evomeans, certified):
    result = evomeans("verify", "out", "blobs.csv")
    assert result.code == 0, result.err
    assert result.out.startswith(
        "Verified: what out/certificate.evomeans says is true of blobs.csv"
    )
    assert "Proven optimal" in result.out
    shown = json.loads(evomeans("verify", "out", "blobs.csv", "--json", "-q").out)
    assert (shown["verified"], shown["status"]) == (True, "optimal")


def test_verify_takes_the_table_as_the_run_took_it(evomeans, blobs):
    """Weights, standardized columns and rows without missing values."""
    table = pl.read_csv("blobs.csv")
    table = table.with_columns(pl.when(pl.arange(pl.len()) > 2).then(pl.col("b")).alias("b"))
    table.write_csv("gaps.csv")
    options = ("--weights", "w", "--standardize", "--missing", "drop", "--exclude", "name")
    assert evomeans("fit", "gaps.csv", "-k", 3, *options, "--seed", 1, "-o", "out").code == 0
    assert evomeans("certify", "out", "gaps.csv", "--weights", "w").code == 0
    result = evomeans("verify", "out", "gaps.csv", "--weights", "w")
    assert result.code == 0, result.err
    result = evomeans("verify", "out", "gaps.csv")
    assert result.code == 1
    assert "name the column with --weights" in result.err


def test_verify_takes_a_certificate_file(evomeans, certified):
    shutil.copy("out/certificate.evomeans", "proof.evomeans")
    columns = ("--exclude", "name,w")
    assert evomeans("verify", "proof.evomeans", "blobs.csv", *columns).code == 0
    assert evomeans("verify", "out/certificate.evomeans", "blobs.csv").code == 0
    result = evomeans("verify", "proof.evomeans", "blobs.csv", "--exclude", "name")
    assert result.code == 1
    assert "one for 2 features, and X has 3" in result.err


def test_verify_refuses_another_table(evomeans, certified):
    pl.read_csv("blobs.csv").with_columns(pl.col("b") * 1.001).write_csv("other.csv")
    result = evomeans("verify", "out", "other.csv")
    assert result.code == 1
    assert "out/certificate.evomeans is not true of other.csv" in result.err
    assert "Proven optimal" not in result.out


def test_verify_refuses_a_forged_certificate(evomeans, certified):
    """Other labels at the price of the optimum."""
    path = Path("out/certificate.evomeans")
    archive = read_archive(path, FORMAT, VERSION)
    meta = {
        name: archive.meta[name]
        for name in archive.meta
        if name not in ("format", "version", "evomeans")
    }
    labels = np.roll(archive.arrays["labels"], 7)
    write_archive(path, FORMAT, VERSION, meta, {**archive.arrays, "labels": labels})
    result = evomeans("verify", "out", "blobs.csv")
    assert result.code == 1
    assert "is not true of blobs.csv: The labels of the certificate" in result.err
    path.write_bytes(path.read_bytes()[:100])
    result = evomeans("verify", "out", "blobs.csv")
    assert result.code == 1
    assert "is not a valid certificate" in result.err


def test_verify_refuses_a_run_that_says_something_else(evomeans, certified):
    """The record claims more than the certificate proves."""
    record = json.loads(Path("out/run.json").read_text())
    record["certificate"]["lower_bound"] *= 1 - 1e-8
    Path("out/run.json").write_text(json.dumps(record))
    result = evomeans("verify", "out", "blobs.csv")
    assert result.code == 1
    assert "run.json does not state what certificate.evomeans does" in result.err


def test_verify_says_if_the_run_has_a_worse_clustering(evomeans, run, blobs):
    """Its own labels are not what is proven to be optimal."""
    model = package.load("out/model.evomeans")
    model.cluster_centers_ = blobs[:3].copy()
    model.save("out/model.evomeans")
    result = evomeans("certify", "out", "blobs.csv")
    assert "the better clustering is in the certificate" in result.out
    result = evomeans("verify", "out", "blobs.csv")
    assert result.code == 0
    assert "the run has the inertia" in result.out
