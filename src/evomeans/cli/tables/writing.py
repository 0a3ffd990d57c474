"""Labels, centres and history as CSV or Parquet."""

from __future__ import annotations

import io
from collections.abc import Collection
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evomeans.cli.tables.table import Table
from evomeans.search import History
from evomeans.search.history import COLUMNS


def labels_frame(table: Table, labels: NDArray[Any]) -> pl.DataFrame:
    """One line per row: its id, or its number counted from 1, and its cluster counted from 0."""
    if table.ids is None:
        rows = np.arange(len(labels)) if table.rows is None else table.rows
        ids = pl.Series("row", rows + 1)
    else:
        ids = pl.Series(table.id_name, table.ids)
    return pl.DataFrame([ids, pl.Series(_free("cluster", [ids.name]), labels)])


def centers_frame(table: Table, centers: NDArray[Any]) -> pl.DataFrame:
    """One line per cluster: its number, and its centre in the units of the table."""
    centers = table.in_units(centers)
    numbers = pl.Series(_free("cluster", table.columns), np.arange(len(centers), dtype=np.int32))
    parts = [pl.Series(name, centers[:, j]) for j, name in enumerate(table.columns)]
    return pl.DataFrame([numbers, *parts])


def history_frame(history: History) -> pl.DataFrame:
    """One line per solution made."""
    return pl.DataFrame({name: history.column(name) for name in COLUMNS})


def table_bytes(frame: pl.DataFrame, file_format: str) -> bytes:
    """Write a frame as "csv" or "parquet"; numbers keep all their digits."""
    buffer = io.BytesIO()
    if file_format == "parquet":
        frame.write_parquet(buffer)
    else:
        frame.write_csv(buffer)
    return buffer.getvalue()


def _free(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "_"
    return name
