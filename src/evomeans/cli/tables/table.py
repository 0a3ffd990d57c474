"""A table as k-means sees it: a matrix, its columns, and what goes with its rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evomeans.cli.options import TableOptions
from evomeans.cli.tables.numbers import (
    DROP,
    ROWS,
    Defect,
    MissingValues,
    Standardization,
    numbers_of,
    scale_note,
    suspicions,
    unusable,
)
from evomeans.cli.tables.readers import (
    Contents,
    open_source,
    read_contents,
)
from evomeans.cli.terminal import CommandError, Terminal, UsageError
from evomeans.engines.frame import LARGEST_VALUE
from evomeans.estimators.validation import check_sample_weight
from evomeans.search import History
from evomeans.search.history import COLUMNS
from evomeans.wording import counted, listed, quoted

EVERYTHING = TableOptions()


@dataclass(frozen=True)
class Table:
    """Numbers ready to be clustered."""

    name: str
    """The file, or "standard input"."""
    format: str
    X: NDArray[Any]
    """The columns to cluster by, float32 or float64; standardized, if they were."""
    columns: tuple[str, ...]
    named: bool
    """Whether the file has the names of columns, or they were made up."""
    ids: pl.Series | None = None
    """What names the rows, under the name of its column."""
    weights: NDArray[np.float64] | None = None
    standardization: Standardization | None = None
    """What was done to ``X``."""
    missing: MissingValues | None = None
    """How many were missing and what was done about it, if that was asked for."""
    rows: NDArray[np.intp] | None = None
    """Which rows of the file these are, counted from 0, if some were left out."""
    notes: tuple[str, ...] = ()
    """What the user should know about how it was read."""

    @property
    def id_name(self) -> str | None:
        """The column that names the rows."""
        return None if self.ids is None else self.ids.name

    def standardized(self, by: Standardization) -> Table:
        """Return the table with its columns standardized."""
        return replace(self, X=by.apply(self.X), standardization=by)

    def in_units(self, centers: NDArray[Any]) -> NDArray[Any]:
        """Return centres of ``X`` in the units of the file."""
        return centers if self.standardization is None else self.standardization.undo(centers)


@dataclass(frozen=True)
class TableRequest:
    """What is to be read of a table."""

    name: str
    options: TableOptions = EVERYTHING
    weights: str | None = None
    """The column of weights."""
    expected: tuple[str, ...] | None = None
    """The columns of a model: found by name, or by place if the table has no names."""
    missing: str | MissingValues | None = None
    """What to do about missing values, or what another table taught; None refuses them."""
    usual_id: str | None = None
    """What names the rows if the options name no other column and the table has it."""

    def load(self, terminal: Terminal, *, standardize: bool = False) -> Table:
        """Read it as the options say, and show its notes."""
        table = self.table()
        for text in table.notes:
            terminal.note(f"note: {table.name}: {text}")
        if not standardize:
            return table
        return table.standardized(Standardization.of(table.X, table.weights, table.columns))

    def _used(self, contents: Contents, row_names: str | None) -> tuple[str, ...]:
        """Return the columns to cluster by."""
        options, columns, table = self.options, contents.columns, contents.source.name
        is_by_name = contents.named and options.columns is None
        asked = {
            "--columns": options.columns or (),
            "--exclude": options.exclude,
            "--id": () if row_names is None else (row_names,),
            "--weights": () if self.weights is None else (self.weights,),
            "The model": (self.expected or ()) if is_by_name else (),
        }
        for option, names in asked.items():
            if missing := [name for name in names if name not in columns]:
                error = CommandError if option == "The model" else UsageError
                raise error(_unknown_column(option, missing, columns, table))
        if not columns:
            raise CommandError(f"{table} has no columns.")
        others = {*options.exclude, row_names, self.weights}
        rest = tuple(name for name in columns if name not in others)
        used = options.columns or asked["The model"] or rest
        if not used:
            raise UsageError(f"No column of {table} is left to cluster by.")
        return used

    def table(self) -> Table:
        """Read it into memory."""
        source = open_source(self.name, self.options.format)
        contents = read_contents(source, self.options)
        has_usual = contents.named and self.usual_id in contents.columns
        row_names = self.options.id or (self.usual_id if has_usual else None)
        used = self._used(contents, row_names)
        X = contents.matrix if used == contents.columns else None
        is_odd = X is None or X.dtype not in (np.float32, np.float64)
        if is_odd or not np.isfinite(np.asarray(X)).all():
            # It needs a conversion, which takes long, column by column.
            X = None
        wanted = [*(used if X is None else ()), *filter(None, [self.weights])]
        frame = contents.load(list(dict.fromkeys(wanted)))
        if not (frame.height if X is None else len(X)):
            raise CommandError(f"{source.name} has columns and no rows.")
        if X is None:
            X = self._matrix(frame, used, contents)
        n = contents.n_blank
        blank = (f"{counted(n, 'blank line')} at the end left out",) if n else ()
        table = Table(
            name=source.name,
            format=source.format,
            X=np.ascontiguousarray(X),
            columns=used,
            named=contents.named,
            ids=None if row_names is None else _ids(row_names, contents),
            weights=None if self.weights is None else _weights(frame, self.weights, contents),
            notes=(*blank, *suspicions(X, used)),
        )
        return table if self.missing is None else _without_missing(table, self.missing)

    def _matrix(self, frame: pl.DataFrame, used: Sequence[str], contents: Contents) -> NDArray[Any]:
        keep_missing = self.missing is not None
        found = {n: numbers_of(frame.get_column(n), keep_missing=keep_missing) for n in used}
        defects = {name: one for name, one in found.items() if isinstance(one, Defect)}
        if defects:
            raise CommandError(unusable(defects, contents, is_for_model=self.expected is not None))
        return np.column_stack(list(found.values()))  # type: ignore[arg-type]


def _without_missing(table: Table, missing: str | MissingValues) -> Table:
    """Leave out the rows that have missing values, or fill them."""
    X, weights, is_missing = table.X, table.weights, np.isnan(table.X)
    if isinstance(missing, str):
        missing = MissingValues.of(missing, X, weights, table.columns)
    missing = missing.found_in(is_missing, table.columns)
    notes = (*table.notes, *filter(None, [missing.described()]))
    table = replace(table, missing=missing, notes=notes)
    if missing.how != DROP:
        return replace(table, X=missing.filled(X))
    kept = ~is_missing.any(axis=1)
    if kept.all():
        return table
    if not kept.any():
        raise CommandError(
            f"{table.name} has missing values in every row, so --missing drop leaves none. "
            "Leave out columns with --exclude, or fill them with --missing mean."
        )
    return replace(
        table,
        X=X[kept],
        ids=None if table.ids is None else table.ids.filter(pl.Series(kept)),
        weights=None if weights is None else weights[kept],
        rows=np.flatnonzero(kept),
    )


def _unknown_column(option: str, missing: Sequence[str], columns: Sequence[str], table: str) -> str:
    """Say that an option names columns that are not there, and which may be meant."""
    folded = {name.casefold(): name for name in columns}
    found = (get_close_matches(wanted.casefold(), folded, n=1) for wanted in missing)
    near = dict.fromkeys(quoted(folded[name]) for names in found for name in names)
    hint = f"It has {listed(map(quoted, columns), 12)}."
    if near:
        hint = f"Did you mean {' or '.join(near)}?"
    noun, lost = "a column" if len(missing) == 1 else "columns", listed(map(quoted, missing))
    return f"{option} names {noun} that {table} does not have: {lost}. {hint}"


def _weights(frame: pl.DataFrame, name: str, contents: Contents) -> NDArray[np.float64]:
    weights = numbers_of(frame.get_column(name))
    if not isinstance(weights, Defect) and weights.min() < 0:
        bad = np.flatnonzero(weights < 0)
        weights = Defect("negative weights", tuple(bad[:ROWS].tolist()), quoted(weights[bad[0]]))
    table = contents.source.name
    if isinstance(weights, Defect):
        where = weights.described(contents)
        raise CommandError(f"{table} has weights that cannot be used, {quoted(name)}: {where}.")
    try:
        checked: NDArray[np.float64] = check_sample_weight(weights, len(weights))
    except ValueError as error:
        raise CommandError(f"{table}: {error}") from error
    return checked


def _ids(name: str, contents: Contents) -> pl.Series:
    """Return what names the rows as it is written; 00001 and 1e3 must not become numbers."""
    ids = contents.load([name], as_text=True).to_series()
    if ids.dtype.is_nested() or ids.dtype in (pl.Binary, pl.Object):
        raise CommandError(
            f"{contents.source.name} has ids that cannot be written, {quoted(name)}: values of "
            f"type {ids.dtype}. Name the rows by text, numbers or dates."
        )
    return ids


def check_table(table: Table, clusters: int, terminal: Terminal) -> Table:
    """Refuse what a fit would refuse, while the table is clearly the reason.

    The table is returned with a note if the scale of a column decides the clusters.
    """
    if len(table.X) < clusters:
        raise CommandError(
            f"{table.name} has {counted(len(table.X), 'row')}, too few for "
            f"{counted(clusters, 'cluster')}."
        )
    largest = float(np.abs(table.X).max())
    if largest > LARGEST_VALUE:
        raise CommandError(
            f"{table.name} has a value of size {largest:.3g}; sums overflow beyond "
            f"{LARGEST_VALUE:.0e}. Divide by a constant first."
        )
    is_scaled = table.standardization is not None
    note = None if is_scaled else scale_note(table.X, table.weights, table.columns)
    if note is None:
        return table
    terminal.note(f"note: {table.name}: {note}")
    return replace(table, notes=(*table.notes, note))


def labels_frame(
    table: Table, labels: NDArray[Any], names: Sequence[str] = ("cluster",)
) -> pl.DataFrame:
    """One line per row: its id, or its number from 1, and its cluster from 0 under each name."""
    labels = np.atleast_2d(labels.T).T
    rows = np.arange(len(labels)) if table.rows is None else table.rows
    columns = [pl.Series("row", rows + 1) if table.ids is None else table.ids]
    for place, name in enumerate(names):
        free = free_name(name, [one.name for one in columns])
        columns.append(pl.Series(free, labels[:, place]))
    return pl.DataFrame(columns)


def centers_frame(table: Table, centers: NDArray[Any]) -> pl.DataFrame:
    """One line per cluster: its number, and its centre in the units of the table."""
    numbers = np.arange(len(centers), dtype=np.int32)
    columns = dict(zip(table.columns, table.in_units(centers).T, strict=True))
    return pl.DataFrame({free_name("cluster", table.columns): numbers, **columns})


def all_centers(table: Table, centers: dict[int, Any]) -> pl.DataFrame:
    """One line per cluster of every k: k, its number, and its centre in the units of the table."""
    name = free_name("k", table.columns)
    return pl.concat(
        centers_frame(table, own).insert_column(0, pl.Series(name, [k] * len(own)))
        for k, own in centers.items()
    )


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


def free_name(name: str, taken: Collection[str]) -> str:
    """Return a name for a column that no other column has."""
    while name in taken:
        name += "_"
    return name


PAIR_SEPARATORS = ",;\t "


def read_pairs(path: Path, table: Table) -> NDArray[np.float64]:
    """Read pairs of rows, one in each line, with a penalty in the third column if there is one.

    Rows are named by the ids of the table, else by their numbers, counted from 1 as in the labels
    that are written. A first line that names no rows is a header.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise CommandError(f"There is no file {path}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path} cannot be read: {error}.") from error
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise CommandError(f"{path} has no pairs.")
    separator = max(PAIR_SEPARATORS, key=lines[0].count)
    rows = [list(map(str.strip, row)) for row in csv.reader(lines, delimiter=separator)]
    places = _places_of_rows(table)
    # A first line that names no rows is a header, unless it is a pair with a mistake in it.
    is_header = not any(name in places or name.lstrip("-").isdigit() for name in rows[0][:2])
    begin = 1 if is_header and len(rows) > 1 else 0
    found = []
    for number, row in enumerate(rows[begin:], begin + 1):
        where = f"{path}, pair {number}"
        if len(row) not in (2, 3):
            raise CommandError(f"{where}: {len(row)} fields; a pair has two, and a penalty if any.")
        if lost := [name for name in row[:2] if name not in places]:
            known = "the table" + ("" if table.rows is None else " without rows that lack values")
            raise CommandError(f"{where}: there is no row {quoted(lost[0])} in {known}.")
        try:
            penalty = float(row[2]) if len(row) == 3 else np.nan
        except ValueError:
            raise CommandError(f"{where}: the penalty {quoted(row[2])} is not a number.") from None
        found.append([places[row[0]], places[row[1]], penalty])
    pairs = np.array(found, dtype=np.float64)
    is_missing = np.isnan(pairs[:, 2])
    if is_missing.any() and not is_missing.all():
        raise CommandError(f"{path} has penalties for some pairs only; give all or none.")
    return pairs[:, :2] if is_missing.any() else pairs


def _places_of_rows(table: Table) -> dict[str, int]:
    """Return the rows of a table, counted from 0, by their names."""
    if table.ids is None:
        rows = np.arange(len(table.X)) if table.rows is None else table.rows
        return {str(row): place for place, row in enumerate((rows + 1).tolist())}
    names = list(map(str, table.ids))
    places = {name: row for row, name in enumerate(names)}
    if len(places) < len(names):
        twice = next(name for row, name in enumerate(names) if places[name] != row)
        raise CommandError(
            f"{table.name} has the id {quoted(twice)} twice; pairs need ids that name one row each."
        )
    return places
