"""The command line fits every model, and says in a sentence what it cannot do."""

from __future__ import annotations

import json

import numpy as np
import pytest

import evomeans
from evomeans.cli import main

QUICK = ["--seed", "0", "--jobs", "1", "--max-offspring", "5", "--max-population", "4"]
QUICK += ["--min-population", "2", "--no-report"]


@pytest.fixture
def table(tmp_path):
    """Write a CSV with names, sixty rows in three clusters of unequal size."""
    rng = np.random.default_rng(0)
    places = np.repeat([[0.0, 0.0], [9.0, 9.0], [0.0, 9.0]], [10, 20, 30], axis=0)
    rows = places + rng.normal(size=(60, 2))
    lines = [f"row{i},{x:.4f},{y:.4f}" for i, (x, y) in enumerate(rows)]
    path = tmp_path / "table.csv"
    path.write_text("name,x,y\n" + "\n".join(lines) + "\n")
    return path


def fit(table, *options):
    """Fit three clusters into a folder; return the exit code, the record and the labels."""
    folder = table.parent / "run"
    code = main(["fit", str(table), "-k", "3", "--id", "name", "-o", str(folder), *QUICK, *options])
    if code:
        return code, None, None
    record = json.loads((folder / "run.json").read_text())
    lines = (folder / "labels.csv").read_text().splitlines()[1:]
    return code, record, np.array([int(line.split(",")[1]) for line in lines])


def test_sizes(table):
    """Balanced is one word; limits are in the record, and the model file knows them."""
    code, record, labels = fit(table, "--size-max", "balanced")
    assert code == 0
    assert np.bincount(labels).tolist() == [20, 20, 20]
    assert record["model"] == "ConstrainedHGMeans"
    assert record["settings"]["size_max"] == "balanced"
    assert evomeans.load(table.parent / "run" / "model.evomeans").size_max == "balanced"


def test_links_by_id(table):
    """Pairs name rows by their ids, with or without a header."""
    same, apart = table.parent / "same.csv", table.parent / "apart.csv"
    same.write_text("one,other\nrow0,row59\nrow59,row1\n")
    apart.write_text("row3;row4\n")
    code, record, labels = fit(table, "--must-link", str(same), "--cannot-link", str(apart))
    assert code == 0
    assert labels[0] == labels[59] == labels[1]
    assert labels[3] != labels[4]
    assert record["result"]["n_violations"] == 0


def test_links_by_number_and_with_penalties(table, capsys):
    """Without ids, rows are counted from 1; a third column has penalties."""
    pairs = table.parent / "pairs.csv"
    pairs.write_text("1,2,0.001\n3,4,0.001\n")
    code = main(
        ["fit", str(table), "-k", "3", "--exclude", "name", "--cannot-link", str(pairs), *QUICK]
    )
    assert code == 0
    assert "2 pairs violated, penalty 0.002" in capsys.readouterr().out


def test_outliers(table, capsys):
    """They are labelled −1, and the summary counts them."""
    code, record, labels = fit(table, "--outliers", "10%")
    assert code == 0
    assert np.count_nonzero(labels == -1) == 6
    assert record["result"]["n_outliers"] == 6
    assert "left out  6 rows" in capsys.readouterr().out


@pytest.mark.parametrize("options", [["--metric", "cosine"], ["--kernel", "rbf", "--gamma", "0.1"]])
def test_other_geometries_have_no_report_and_predict(table, capsys, options):
    """A model of its own, whose labels predict gives again."""
    code, _, labels = fit(table, *options)
    assert code == 0
    capsys.readouterr()
    assert main(["predict", str(table.parent / "run"), str(table), "--id", "name"]) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [int(line.split(",")[1]) for line in lines] == labels.tolist()


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ("", "has no pairs"),
        ("row1,row2\nrow1,row99\n", "pair 2: there is no row 'row99'"),
        ("row1\nrow2\n", "1 fields; a pair has two"),
        ("row1,row2,much\n", "the penalty 'much' is not a number"),
        ("row1,row2,1\nrow3,row4\n", "has penalties for some pairs only"),
        ("row1,row2\nrow2,row1\n", None),
    ],
)
def test_files_of_pairs(table, capsys, lines, text):
    """Mistakes are named by file and pair."""
    pairs = table.parent / "pairs.csv"
    pairs.write_text(lines)
    code, _, _ = fit(table, "--cannot-link", str(pairs))
    assert code == (1 if text else 0)
    assert text is None or text in capsys.readouterr().err


def test_contradictions_are_explained(table, capsys):
    """The chain of must-links is named."""
    pairs = table.parent / "pairs.csv"
    pairs.write_text("row1,row2\nrow2,row3\n")
    apart = table.parent / "apart.csv"
    apart.write_text("row1,row3\n")
    assert fit(table, "--must-link", str(pairs), "--cannot-link", str(apart))[0] == 1
    assert "must_link joins them: 1 - 2 - 3" in capsys.readouterr().err
