"""``certify``: the proof of a run, kept next to it."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import evomeans as package


def test_certify_proves_a_run_and_keeps_the_proof(evomeans, run, blobs):
    """In a file of its own, and as a sentence in model, record and report."""
    result = evomeans("certify", "out", "blobs.csv")
    assert result.code == 0, result.err
    assert "Proven optimal" in result.out
    certificate = package.load_certificate("out/certificate.evomeans")
    assert certificate.status == "optimal"
    assert certificate.verify(blobs) == certificate.lower_bound
    assert package.load("out/model.evomeans").certificate_.status == "optimal"
    record = json.loads(Path("out/run.json").read_text())
    assert record["certificate"]["status"] == "optimal"
    assert "certificate.evomeans" in record["files"]
    assert "Proven optimal" in json.loads(Path("out/report.json").read_text())["run"]["certificate"]
    assert "Proven optimal" in Path("out/report.html").read_text()
    assert evomeans("predict", "out", "blobs.csv").code == 0


def test_certify_prints_json(evomeans, run):
    result = evomeans("certify", "out", "blobs.csv", "--json", "-q")
    shown = json.loads(result.out)
    assert shown["lower_bound"] <= shown["upper_bound"]
    assert shown["gap"] <= 1e-6


def test_certify_wants_the_table_of_the_fit(evomeans, run):
    pl.read_csv("blobs.csv").head(20).write_csv("short.csv")
    result = evomeans("certify", "out", "short.csv")
    assert result.code == 1
    assert "has 20 rows and the run 60" in result.err
    assert not Path("out/certificate.evomeans").exists()


def test_certify_says_that_there_is_no_run(evomeans, blobs):
    result = evomeans("certify", "nowhere", "blobs.csv")
    assert result.code == 1
    assert "There is no folder nowhere" in result.err


@pytest.mark.parametrize("option", ["--gap=2", "--method=magic", "--max-time=-1"])
def test_certify_refuses_impossible_options(evomeans, run, option):
    assert evomeans("certify", "out", "blobs.csv", option).code == 2
