"""The command line fits every model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import evomeans as package

QUICK = ("--seed", 0, "--jobs", 1, "--max-offspring", 5, "--max-population", 4)
QUICK += ("--min-population", 2, "--no-report", "--exclude", "w", "-o", "out")


@pytest.fixture
def fit(evomeans, blobs):
    """Fit three clusters into the folder ``out``; return what it says, its record and labels."""

    def run(*options):
        result = evomeans("fit", "blobs.csv", "-k", 3, "--id", "name", *QUICK, *options)
        if result.code:
            return result, None, None
        record = json.loads(Path("out/run.json").read_text(encoding="utf-8"))
        return result, record, pl.read_csv("out/labels.csv")["cluster"].to_numpy()

    return run


def test_sizes(fit):
    """Balanced is one word; limits are in the record, and the model file knows them."""
    _, record, labels = fit("--size-max", "balanced")
    assert np.bincount(labels).tolist() == [20, 20, 20]
    assert record["model"] == "ConstrainedHGMeans"
    assert record["settings"]["size_max"] == "balanced"
    assert package.load("out/model.evomeans").size_max == "balanced"


def test_links_by_id(fit):
    """Pairs name rows by their ids, with or without a header."""
    Path("same.csv").write_text("one,other\nr1,r60\nr60,r2\n")
    Path("apart.csv").write_text("r4;r5\n")
    _, record, labels = fit("--must-link", "same.csv", "--cannot-link", "apart.csv")
    assert labels[0] == labels[59] == labels[1]
    assert labels[3] != labels[4]
    assert record["result"]["n_violations"] == 0


def test_links_by_number_and_with_penalties(evomeans, blobs):
    """Without ids, rows are counted from 1; a third column has penalties."""
    Path("pairs.csv").write_text("1,2,0.001\n3,4,0.001\n")
    command = ("fit", "blobs.csv", "-k", 3, *QUICK, "--exclude", "name", "--cannot-link")
    assert "2 pairs violated, penalty 0.002" in evomeans(*command, "pairs.csv").out


def test_outliers(fit):
    """They are labelled −1, and the summary counts them."""
    result, record, labels = fit("--outliers", "10%")
    assert np.count_nonzero(labels == -1) == record["result"]["n_outliers"] == 6
    assert "left out  6 rows" in result.out


def test_directions_have_no_report_and_predict(evomeans, fit):
    """A model of its own, whose labels predict gives again."""
    fit("--metric", "cosine")
    predicted = evomeans("predict", "out", "blobs.csv", "--id", "name")
    assert predicted.out == Path("out/labels.csv").read_text()
    assert not Path("out/report.json").exists()


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ("", "has no pairs"),
        ("r1,r2\nr1,r99\n", "pair 2: there is no row 'r99'"),
        ("r1\nr2\n", "1 fields; a pair has two"),
        ("r1,r2,much\n", "the penalty 'much' is not a number"),
        ("r1,r2,1\nr3,r4\n", "has penalties for some pairs only"),
    ],
)
def test_files_of_pairs_that_are_refused(fit, lines, text):
    """Mistakes are named by file and pair."""
    Path("pairs.csv").write_text(lines)
    result, _, _ = fit("--cannot-link", "pairs.csv")
    assert result.code == 1
    assert text in result.err


def test_contradictions_are_explained(fit):
    """The chain of must-links is named."""
    Path("same.csv").write_text("r2,r3\nr3,r4\n")
    Path("apart.csv").write_text("r2,r4\n")
    result, _, _ = fit("--must-link", "same.csv", "--cannot-link", "apart.csv")
    assert result.code == 1
    assert "must_link joins them: 1 - 2 - 3" in result.err
