"""Pairs of rows of a table, from a file of their own."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evomeans.cli.failures import CommandError
from evomeans.cli.tables.table import Table
from evomeans.wording import quoted

SEPARATORS = ",;\t "


def read_pairs(path: str | os.PathLike[str], table: Table) -> NDArray[np.float64]:
    """Read pairs of rows, one in each line, with a penalty in the third column if there is one.

    Rows are named by the ids of the table, else by their numbers, counted from 1 as in the labels
    that are written. A first line that names no rows is a header.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise CommandError(f"There is no file {path}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path} cannot be read: {error}.") from error
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise CommandError(f"{path} has no pairs.")
    separator = max(SEPARATORS, key=lines[0].count)
    place = _finder(table)
    rows = [[field.strip() for field in row] for row in csv.reader(lines, delimiter=separator)]
    if len(rows) > 1 and _is_header(rows[0], place):
        first, rows = 2, rows[1:]
    else:
        first = 1
    known = "the table" if table.rows is None else "the table without rows that lack values"
    pairs = np.array(
        [_pair(path, number, row, place, known) for number, row in enumerate(rows, first)]
    )
    is_missing = np.isnan(pairs[:, 2])
    if is_missing.any() and not is_missing.all():
        raise CommandError(f"{path} has penalties for some pairs only; give all or none.")
    return pairs[:, :2] if is_missing.any() else pairs


def _finder(table: Table) -> Callable[[str], int | None]:
    """Return a function from the name of a row to its number, counted from 0."""
    if table.ids is None:
        rows = range(len(table.X)) if table.rows is None else table.rows.tolist()
        places_of_rows = {str(row + 1): place for place, row in enumerate(rows)}
        # 007 is row 7.
        return lambda name: places_of_rows.get(name.lstrip("0"))
    places: dict[str, int] = {}
    for row, name in enumerate(table.ids):
        if places.setdefault(str(name), row) != row:
            raise CommandError(
                f"{table.name} has the id {quoted(str(name))} twice; pairs need ids that name one "
                "row each."
            )
    return places.get


def _is_header(row: list[str], place: Callable[[str], int | None]) -> bool:
    """Whether a line names no rows, and is not a pair with a mistake in it."""
    return all(place(name) is None and not name.lstrip("-").isdigit() for name in row[:2])


def _pair(
    path: Path, number: int, row: list[str], place: Callable[[str], int | None], rows: str
) -> tuple[float, float, float]:
    where = f"{path}, pair {number}"
    if len(row) not in (2, 3):
        raise CommandError(f"{where}: {len(row)} fields; a pair has two, and a penalty if any.")
    found = [place(name) for name in row[:2]]
    for name, one in zip(row[:2], found, strict=True):
        if one is None:
            raise CommandError(f"{where}: there is no row {quoted(name)} in {rows}.")
    try:
        penalty = float(row[2]) if len(row) == 3 else np.nan
    except ValueError:
        raise CommandError(f"{where}: the penalty {quoted(row[2])} is not a number.") from None
    assert found[0] is not None
    assert found[1] is not None
    return float(found[0]), float(found[1]), penalty
