"""Missing values are treated by every command as the fit treated them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

SEEDED = ("--seed", 3, "--jobs", 1, "--max-offspring", 30)
FIT = ("fit", "gaps.csv", "-k", 3, "--id", "name", "--exclude", "w", *SEEDED, "-o", "run")


@pytest.fixture
def gaps(blobs) -> pl.DataFrame:
    """Put ``gaps.csv`` into the current folder: nine rows lack a value, between two clusters."""
    b = pl.Series(np.random.default_rng(1).normal(50, 9, 60).round(2)).cast(pl.String)
    is_missing = pl.int_range(pl.len()) % 7 == 3
    frame = pl.read_csv("blobs.csv").with_columns(
        b=pl.when(is_missing).then(pl.lit("n/a")).otherwise(b)
    )
    frame.write_csv("gaps.csv")
    return frame


@pytest.mark.parametrize("how", ["drop", "mean", "median"])
def test_predictions_treat_missing_values_as_the_fit_did(evomeans, gaps, how):
    """The table of the fit gets its own labels back, row by row, and the record says how."""
    done = evomeans(*FIT, "--missing", how)
    assert "missing values in" in done.err
    again = evomeans("predict", "run", "gaps.csv", "--id", "name")
    assert again.code == 0, again.err
    assert again.out == Path("run/labels.csv").read_text()
    record = json.loads(Path("run/run.json").read_text())
    assert record["missing"]["how"] == how
    assert record["missing"]["n_rows"] == record["missing"]["n_values"] == 9
    assert len(record["missing"]["values"]) == (0 if how == "drop" else 2)
    assert "missing values in" in Path("run/report.html").read_text()
    proof = evomeans("certify", "run", "gaps.csv", "--exclude", "name,w", "--max-time", "1s")
    assert proof.code == 0, proof.err


def test_a_damaged_record_of_missing_values(evomeans, gaps):
    evomeans(*FIT, "--missing", "mean")
    record = json.loads(Path("run/run.json").read_text())
    record["missing"]["values"].pop()
    Path("run/run.json").write_text(json.dumps(record))
    done = evomeans("predict", "run", "gaps.csv", "--id", "name")
    assert done.code == 1
    assert "is not the record of that model" in done.err
