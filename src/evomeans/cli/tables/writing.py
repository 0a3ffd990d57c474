"""Labels, centres and history as CSV or Parquet."""

from __future__ import annotations

import io
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evomeans.cli.tables.errors import import_polars
from evomeans.cli.tables.table import Table

if TYPE_CHECKING:
    import polars as pl

    from evomeans.search import History


def labels_frame(table: Table, labels: NDArray[Any]) -> pl.DataFrame:
    """One line per row: its id, or its number counted from 1, and its cluster counted from 0."""
    polars = import_polars()
    if table.ids is None:
        ids = polars.Series("row", np.arange(1, len(labels) + 1))
    else:
        ids = polars.Series(table.id_name, table.ids)
    frame: pl.DataFrame = polars.DataFrame(
        [ids, polars.Series(_free("cluster", [ids.name]), labels)]
    )
    return frame


def centers_frame(table: Table, centers: NDArray[Any]) -> pl.DataFrame:
    """One line per cluster: its number, and its centre in the units of the table."""
    polars = import_polars()
    centers = table.in_units(centers)
    numbers = polars.Series(
        _free("cluster", table.columns), np.arange(len(centers), dtype=np.int32)
    )
    parts = [polars.Series(name, centers[:, j]) for j, name in enumerate(table.columns)]
    frame: pl.DataFrame = polars.DataFrame([numbers, *parts])
    return frame


def history_frame(history: History) -> pl.DataFrame:
    """One line per solution made."""
    from evomeans.search.history import COLUMNS

    polars = import_polars()
    frame: pl.DataFrame = polars.DataFrame({name: history.column(name) for name in COLUMNS})
    return frame


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
