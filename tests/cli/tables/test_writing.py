"""What is written can be read again, digit by digit."""

from __future__ import annotations

import io

import numpy as np
import polars as pl
import pytest

from evomeans.cli.tables.numbers import Standardization
from evomeans.cli.tables.table import Table, centers_frame, history_frame, labels_frame, table_bytes
from evomeans.search import History, OffspringRecord
from evomeans.search.history import COLUMNS


def read_back(frame: pl.DataFrame, file_format: str) -> pl.DataFrame:
    data = io.BytesIO(table_bytes(frame, file_format))
    return pl.read_csv(data) if file_format == "csv" else pl.read_parquet(data)


def table(columns=("a", "b"), **more) -> Table:
    return Table("t.csv", "csv", np.ones((3, len(columns))), tuple(columns), True, **more)


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_all_digits_are_kept(file_format):
    rng = np.random.default_rng(0)
    centers = rng.random((50, 2)) * 10.0 ** rng.integers(-200, 200, (50, 2))
    frame = read_back(centers_frame(table(), centers), file_format)
    assert frame.columns == ["cluster", "a", "b"]
    np.testing.assert_array_equal(frame.select("a", "b").to_numpy(), centers)


def test_labels_have_row_numbers_or_ids():
    labels = np.array([1, 0, 1], dtype=np.int32)
    assert labels_frame(table(), labels).rows() == [(1, 1), (2, 0), (3, 1)]
    named = table(ids=pl.Series("who", ["x", 'y"', "z,"]), id_name="who")
    frame = read_back(labels_frame(named, labels), "csv")
    assert frame.columns == ["who", "cluster"]
    assert frame.rows() == [("x", 1), ('y"', 0), ("z,", 1)]


def test_names_that_are_taken():
    """A column of the table may be called cluster."""
    assert centers_frame(table(["cluster"]), np.ones((1, 1))).columns == ["cluster_", "cluster"]
    ids = table(ids=np.arange(3), id_name="cluster")
    assert labels_frame(ids, np.zeros(3, np.int32)).columns == ["cluster", "cluster_"]


def test_centers_are_in_the_units_of_the_table():
    scaled = table(standardization=Standardization((10.0, 0.0), (2.0, 5.0)))
    frame = centers_frame(scaled, np.array([[0.0, 1.0], [1.0, -1.0]]))
    assert frame.rows() == [(0, 10.0, 5.0), (1, 12.0, -5.0)]


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_history(file_format):
    record = OffspringRecord(1, 0.1 + 0.2, 0.3, 0.5, 7, 1.25, 3, True, False)
    frame = read_back(history_frame(History([record])), file_format)
    assert frame.row(0)[:9] == (1, 0.1 + 0.2, 0.3, 0.5, 7, 1.25, 3, True, False)
    # An empty text comes back from a CSV as a missing value.
    assert [value or "" for value in frame.row(0)] == [
        getattr(record, name) or "" for name in COLUMNS
    ]
    assert read_back(history_frame(History()), file_format).height == 0
