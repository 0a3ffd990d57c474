"""``evomeans fit --engine dask``: tables that stay on disk."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from blobs import names

import evomeans as package
from evomeans import HGMeans
from evomeans.cli.run_folder import NO_ROWS

pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.usefixtures("small_blocks"),
    # Of Dask itself, which calls what pandas 4 will do otherwise.
    pytest.mark.filterwarnings("ignore::DeprecationWarning:dask"),
]
FILES = {"labels.csv", "centers.csv", "history.csv", "model.evomeans", "run.json"}


@pytest.fixture
def table(tmp_path) -> pl.DataFrame:
    """Put a folder of three Parquet files and the array ``X.npy`` into the current folder."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2)) + 10.0 * rng.integers(0, 3, size=(90, 1))
    frame = pl.DataFrame(
        {"name": [f"r{i}" for i in range(90)], "a": X[:, 0], "b": X[:, 1], "w": rng.random(90)}
    )
    (tmp_path / "folder").mkdir()
    for part in range(3):
        frame[30 * part : 30 * part + 30].write_parquet(tmp_path / f"folder/{part}.parquet")
    np.save(tmp_path / "X.npy", X)
    return frame


def test_a_folder_of_parquet_files(evomeans, table):
    """The run is that of Python, but for the report; ids are those of the table."""
    command = ("fit", "folder", "-k", 3, "--engine", "dask", "--id", "name", "--weights", "w")
    result = evomeans(*command, "--seed", 1, "--fast", "-o", "out")
    assert result.code == 0
    assert names("out") == FILES
    assert NO_ROWS in result.err
    report = evomeans("report", "out")
    assert (report.code, report.out) == (1, "")
    assert f"out has no report.json. {NO_ROWS}" in " ".join(report.err.split())
    X, weights = table.select("a", "b").to_numpy(), table["w"].to_numpy()
    expected = HGMeans.fast(3, random_state=1).fit(X, sample_weight=weights)
    labels = pl.read_csv("out/labels.csv")
    assert labels["name"].to_list() == table["name"].to_list()
    np.testing.assert_array_equal(labels["cluster"].to_numpy(), expected.labels_)
    record = json.loads(Path("out/run.json").read_text())
    assert record["table"]["rows"] == 90
    assert record["settings"]["engine"] == "dask"
    assert set(record["files"]) == FILES
    assert list(package.load("out/model.evomeans").feature_names_in_) == ["a", "b"]
    written = Path("out/labels.csv").read_text()
    assert evomeans("predict", "out", "folder").out == written
    part = evomeans("predict", "out", "folder/0.parquet").out.splitlines()
    assert part == written.splitlines()[:31]


def test_predict_standardizes_a_folder_as_the_fit_did(evomeans, table):
    """A run fitted to a table in memory labels the same rows in a folder."""
    table.write_csv("table.csv")
    command = ("--exclude", "w", "--id", "name", "--seed", 1, "--fast", "--standardize")
    assert evomeans("fit", "table.csv", "-k", 3, *command, "-o", "out").code == 0
    result = evomeans("predict", "out", "folder", "--id", "name")
    assert result.out == Path("out/labels.csv").read_text()


def test_an_array_on_disk_and_a_table_in_memory(evomeans, table):
    table.select("a", "b").write_csv("table.csv")
    for name in ("X.npy", "table.csv"):
        result = evomeans("fit", name, "-k", 3, "--engine", "dask", "--seed", 1, "--fast", "--json")
        assert result.code == 0
        assert json.loads(result.out)["table"]["rows"] == 90
    weighted = evomeans("fit", "X.npy", "-k", 2, "--engine", "dask", "--weights", "x1", "--json")
    assert weighted.code == 1
    assert "X.npy: sample_weight has -" in weighted.err


@pytest.mark.slow
def test_a_folder_on_a_cluster(evomeans, table):
    """The same run as without one. Threads here; processes in tests/engines/dask_engine."""
    command = ("fit", Path("folder").absolute(), "-k", 3, "--engine", "dask", "--exclude", "name,w",
               "--seed", 1, "--fast", "-o")  # fmt: skip
    assert evomeans(*command, "here").code == 0
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address=":0"
    ) as cluster:
        assert evomeans(*command, "there", "--scheduler", cluster.scheduler_address).code == 0
    for name in ("labels.csv", "centers.csv"):
        assert Path("here", name).read_bytes() == Path("there", name).read_bytes()


@pytest.mark.parametrize(
    ("command", "code", "text"),
    [
        ("predict m.evomeans folder --separator ;", 2, "for CSV and TSV, which folder is not"),
        ("predict m.evomeans renamed", 1, "does not have: 'b'"),
        ("predict m.evomeans gaps", 1, "gaps: X has nan"),
        ("predict m.evomeans empty", 1, "empty contains no Parquet files."),
        ("predict m.evomeans damaged", 1, "damaged cannot be read as parquet"),
        ("fit folder -k 3", 1, "fit with --engine dask, read a folder of Parquet files"),
        ("fit folder -k 3 --engine dask", 1, "'name' hold no numbers"),
        ("fit nothing.parquet -k 3 --engine dask", 1, "There is no file"),
        ("fit folder -k 3 --engine dask --columns c", 2, "does not have: 'c'"),
        ("fit X.npy -k 91 --engine dask", 1, "90 rows, too few for 91 clusters"),
        ("fit X.npy -k 3 --engine dask --standardize", 2, "in memory"),
        ("fit X.npy -k 3 --engine dask --scheduler no://x", 1, "no Dask scheduler at no://x"),
    ],
)
def test_refusals(evomeans, table, command, code, text):
    HGMeans.fast(3, random_state=0).fit(table.select("a", "b").to_pandas()).save("m.evomeans")
    for name in ("renamed", "gaps", "empty", "damaged"):
        Path(name).mkdir()
    Path("damaged/0.parquet").write_text("not Parquet")
    table.rename({"b": "c"}).write_parquet("renamed/0.parquet")
    table.with_columns(b=pl.lit(float("nan"))).write_parquet("gaps/0.parquet")
    result = evomeans(*command.split())
    assert result.code == code
    assert text in result.err
