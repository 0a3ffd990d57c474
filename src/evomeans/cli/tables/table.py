"""A table as k-means sees it: a matrix, its columns, and what goes with its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evomeans.cli.failures import CommandError, UsageError
from evomeans.cli.options import TableOptions
from evomeans.cli.tables.advice import described, suspicions, unusable
from evomeans.cli.tables.missing import MissingFound, MissingValues
from evomeans.cli.tables.numbers import ROWS, Defect, numbers_of
from evomeans.cli.tables.readers import read_contents
from evomeans.cli.tables.scaling import Standardization
from evomeans.cli.tables.source import Contents, open_source
from evomeans.wording import listed, quoted

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
    ids: pl.Series | NDArray[Any] | None = None
    """What names the rows."""
    id_name: str | None = None
    weights: NDArray[np.float64] | None = None
    standardization: Standardization | None = None
    """What was done to ``X``."""
    missing: MissingValues | None = None
    """What was done about missing values, if that was asked for."""
    missing_found: MissingFound | None = None
    """How many there were."""
    rows: NDArray[np.intp] | None = None
    """Which rows of the file these are, counted from 0, if some were left out."""
    notes: tuple[str, ...] = ()
    """What the user should know about how it was read."""

    def standardized(self) -> Table:
        """Return the table with every column brought to mean 0 and deviation 1."""
        by = Standardization.of(self.X, self.weights, self.columns)
        return replace(self, X=by.apply(self.X), standardization=by)

    def in_units(self, centers: NDArray[Any]) -> NDArray[Any]:
        """Return centres of ``X`` in the units of the file."""
        return centers if self.standardization is None else self.standardization.undo(centers)


def read_table(
    name: str,
    options: TableOptions = EVERYTHING,
    *,
    weights: str | None = None,
    expected: tuple[str, ...] | None = None,
    missing: str | MissingValues | None = None,
) -> Table:
    """Read the chosen columns of a table.

    Parameters
    ----------
    name : str
        A path; "-" for standard input; ``file.npz:name`` for one array of several.
    options : TableOptions
        How it is written, and which columns to take.
    weights : str, optional
        The column that says how much each row counts.
    expected : tuple of str, optional
        What a model was fitted to: found by name, or by place if the table has no names.
    missing : {"drop", "mean", "median"} or MissingValues, optional
        What to do about missing values, or what was learned about it from another table. By
        default, they are refused.

    Returns
    -------
    Table

    Raises
    ------
    CommandError
        If the file cannot be read, or holds what k-means cannot use.
    UsageError
        If an option names a column that is not there.
    """
    source = open_source(name, options.format)
    contents = read_contents(source, options)
    used = used_columns(options, contents.columns, contents.named, source.name, weights, expected)
    whole = _ready(contents.matrix) if used == contents.columns else None
    wanted = [*(used if whole is None else ()), *([] if weights is None else [weights])]
    frame = contents.load(list(dict.fromkeys(wanted)), False)
    if not (frame.height if whole is None else len(whole)):
        raise CommandError(f"{source.name} has columns and no rows.")
    if whole is None:
        X = _matrix(
            frame,
            used,
            contents,
            source.name,
            keep_missing=missing is not None,
            is_for_model=expected is not None,
        )
    else:
        X = whole
    counts = None if weights is None else _weights(frame, weights, contents, source.name)
    table = Table(
        name=source.name,
        format=source.format,
        X=np.ascontiguousarray(X),
        columns=used,
        named=contents.named,
        ids=None if options.id is None else _ids(options.id, contents, source.name),
        id_name=options.id,
        weights=counts,
        notes=(*contents.notes, *suspicions(X, used)),
    )
    return table if missing is None else _without_missing(table, missing)


def _without_missing(table: Table, missing: str | MissingValues) -> Table:
    """Leave out the rows that have missing values, or fill them."""
    found = MissingFound.of(table.X, table.columns)
    if isinstance(missing, str):
        missing = MissingValues.of(missing, table.X, table.weights, table.columns)
    X, kept = missing.apply(table.X)
    if not len(X):
        raise CommandError(
            f"{table.name} has missing values in every row, so that --missing drop leaves none. "
            "Leave out columns with --exclude, or fill them with --missing mean."
        )
    text = found.described(missing.how)
    table = replace(
        table,
        X=X,
        missing=missing,
        missing_found=found,
        notes=(*table.notes, *([text] if text else [])),
    )
    if kept.all():
        return table
    return replace(
        table,
        ids=None if table.ids is None else pl.Series(table.ids).filter(pl.Series(kept)),
        weights=None if table.weights is None else table.weights[kept],
        rows=np.flatnonzero(kept),
    )


def used_columns(
    options: TableOptions,
    columns: tuple[str, ...],
    named: bool,
    table: str,
    weights: str | None,
    expected: tuple[str, ...] | None,
) -> tuple[str, ...]:
    """Return the columns to cluster by."""
    asked = {
        "--columns": options.columns or (),
        "--exclude": options.exclude,
        "--id": () if options.id is None else (options.id,),
        "--weights": () if weights is None else (weights,),
        "The model": (expected or ()) if named and options.columns is None else (),
    }
    for option, names in asked.items():
        if missing := set(names) - set(columns):
            error = CommandError if option == "The model" else UsageError
            raise error(_unknown_column(option, [n for n in names if n in missing], columns, table))
    if not columns:
        raise CommandError(f"{table} has no columns.")
    others = {*options.exclude, options.id, weights}
    used = (
        options.columns
        or asked["The model"]
        or tuple(name for name in columns if name not in others)
    )
    if not used:
        raise UsageError(f"No column of {table} is left to cluster by.")
    return used


def _unknown_column(option: str, missing: Sequence[str], columns: Sequence[str], table: str) -> str:
    """Say that an option names columns that are not there, and which may be meant."""
    near = dict.fromkeys(
        name for wanted in missing for name in get_close_matches(wanted, columns, n=1)
    )
    folded = {name.casefold(): name for name in columns}
    near |= dict.fromkeys(folded[m.casefold()] for m in missing if m.casefold() in folded)
    hint = (
        f"Did you mean {' or '.join(map(quoted, near))}?"
        if near
        else f"It has {listed(map(quoted, columns), 12)}."
    )
    noun = "a column" if len(missing) == 1 else "columns"
    return (
        f"{option} names {noun} that {table} does not have: {listed(map(quoted, missing))}. {hint}"
    )


def _ready(matrix: NDArray[Any] | None) -> NDArray[Any] | None:
    """Return a matrix that needs no conversion, which would take long column by column."""
    if matrix is None or matrix.dtype not in (np.float32, np.float64):
        return None
    return matrix if np.isfinite(matrix).all() else None


def _matrix(
    frame: pl.DataFrame,
    used: Sequence[str],
    contents: Contents,
    table: str,
    *,
    keep_missing: bool,
    is_for_model: bool,
) -> NDArray[Any]:
    converted = {
        name: numbers_of(frame.get_column(name), keep_missing=keep_missing) for name in used
    }
    defects = {name: found for name, found in converted.items() if isinstance(found, Defect)}
    if defects:
        raise CommandError(unusable(defects, contents, table, is_for_model=is_for_model))
    arrays = [array for array in converted.values() if not isinstance(array, Defect)]
    X = np.empty((len(arrays[0]), len(arrays)), np.result_type(*arrays))
    for j, array in enumerate(arrays):
        X[:, j] = array
    return X


def _weights(frame: pl.DataFrame, name: str, contents: Contents, table: str) -> NDArray[np.float64]:
    weights = numbers_of(frame.get_column(name))
    if not isinstance(weights, Defect) and weights.min() < 0:
        bad = np.flatnonzero(weights < 0)
        weights = Defect("negative weights", tuple(bad[:ROWS].tolist()), quoted(weights[bad[0]]))
    if isinstance(weights, Defect):
        where = described(weights, contents)
        raise CommandError(f"{table} has weights that cannot be used, {quoted(name)}: {where}.")
    return weights.astype(np.float64, copy=False)


def _ids(name: str, contents: Contents, table: str) -> pl.Series:
    """Return what names the rows as it is written; 00001 and 1e3 must not become numbers."""
    ids = contents.load([name], True).to_series()
    if ids.dtype.is_nested() or ids.dtype in (pl.Binary, pl.Object):
        raise CommandError(
            f"{table} has ids that cannot be written, {quoted(name)}: values of type {ids.dtype}. "
            "Name the rows by text, numbers or dates."
        )
    return ids
