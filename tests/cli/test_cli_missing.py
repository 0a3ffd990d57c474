"""Missing values are treated by every command as the fit treated them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

ROWS = 45
SEEDED = ("--seed", 3, "--jobs", 1, "--max-offspring", 30)


@pytest.fixture
def tables(evomeans, tmp_path):
    """Write a table with gaps into the folder in which commands run."""
    rng = np.random.default_rng(1)
    means = np.repeat([[0.0, 0.0, 5.0], [8.0, 0.0, 5.0], [0.0, 8.0, 5.0]], ROWS // 3, axis=0)
    X = np.round(means + rng.normal(scale=2.5, size=(ROWS, 3)), 2) * [1.0, 30.0, 1.0]
    frame = pl.DataFrame(
        {
            "name": [f"r{i}" for i in range(ROWS)],
            "a": X[:, 0],
            "b": X[:, 1],
            "c": X[:, 2],
            "w": 1.0 + np.arange(ROWS) % 4,
        }
    )
    frame.write_csv("full.csv")
    text = Path("full.csv").read_text().splitlines()
    gaps = [
        line.replace(line.split(",")[2], "n/a") if i % 7 == 3 else line
        for i, line in enumerate(text)
    ]
    Path("gaps.csv").write_text("\n".join(gaps) + "\n")
    return evomeans


NAMED = ("--id", "name", "--exclude", "w")


@pytest.mark.parametrize("how", ["drop", "mean", "median"])
def test_predictions_treat_missing_values_as_the_fit_did(tables, how):
    """The table of the fit gets its own labels back, row by row, and the record says how."""
    done = tables("fit", "gaps.csv", *NAMED, "-k", 3, "--missing", how, *SEEDED, "-o", "run")
    assert "missing values in" in done.err
    again = tables("predict", "run", "gaps.csv", "--id", "name")
    assert again.code == 0, again.err
    assert again.out == Path("run/labels.csv").read_text()
    record = json.loads(Path("run/run.json").read_text())
    assert record["missing"]["how"] == how
    assert record["missing"]["n_rows"] == record["missing"]["n_values"] == 7
    assert len(record["missing"]["values"]) == (0 if how == "drop" else 3)
    assert "missing values in" in Path("run/report.html").read_text()
    proof = tables("certify", "run", "gaps.csv", "--exclude", "name,w", "--max-time", "1s")
    assert proof.code == 0, proof.err


def test_a_damaged_record_of_missing_values(tables):
    tables("fit", "gaps.csv", *NAMED, "-k", 3, "--missing", "mean", *SEEDED, "-o", "run")
    record = json.loads(Path("run/run.json").read_text())
    record["missing"]["values"].pop()
    Path("run/run.json").write_text(json.dumps(record))
    done = tables("predict", "run", "gaps.csv", "--id", "name")
    assert done.code == 1
    assert "is not the record of that model" in done.err


@pytest.mark.filterwarnings("ignore::DeprecationWarning:dask")
def test_a_folder_of_parquet_files_is_filled_too(tables):
    pytest.importorskip("dask.dataframe")
    tables("fit", "gaps.csv", *NAMED, "-k", 3, "--missing", "mean", *SEEDED, "-o", "run")
    columns = pl.read_csv("gaps.csv", null_values="n/a").select("a", "b", "c")
    Path("parts").mkdir()
    columns[:20].write_parquet("parts/0.parquet")
    columns[20:].write_parquet("parts/1.parquet")
    done = tables("predict", "run", "parts")
    assert done.code == 0, done.err
    found = [line.split(",")[1] for line in done.out.splitlines()[1:]]
    assert found == pl.read_csv("run/labels.csv").to_series(1).cast(str).to_list()
    refused = tables("fit", "parts", "--engine", "dask", "--missing", "mean", "-k", 3)
    assert refused.code == 2
    assert "--missing needs the table in memory" in refused.err
