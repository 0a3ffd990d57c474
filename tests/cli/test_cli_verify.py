"""``verify``: a colleague's check of a run or of a certificate file."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import evomeans as package
from evomeans.storage.archive import read_archive, write_archive
from evomeans.storage.certificate_file import FORMAT, VERSION


@pytest.fixture
def certified(evomeans, run) -> Path:
    assert evomeans("certify", "out", "blobs.csv").code == 0
    return run


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
    table = pl.read_csv("blobs.csv")
    table.with_columns(pl.col("b") * 1.001).write_csv("other.csv")
    result = evomeans("verify", "out", "other.csv")
    assert result.code == 1
    assert "out/certificate.evomeans is not true of other.csv" in result.err
    assert "Proven optimal" not in result.out
    table.head(20).write_csv("short.csv")
    assert evomeans("verify", "out", "short.csv").code == 1


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


def test_verify_says_that_there_is_nothing_to_verify(evomeans, run):
    result = evomeans("verify", "out", "blobs.csv")
    assert result.code == 1
    assert "There is no certificate out/certificate.evomeans" in result.err
    assert evomeans("verify", "nowhere", "blobs.csv").code == 1
