"""A table as k-means sees it: a matrix, its columns, and what goes with its rows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evomeans.cli.failures import CommandError, UsageError
from evomeans.cli.tables.contents import Contents
from evomeans.cli.tables.delimited import Dialect
from evomeans.cli.tables.numbers import ROWS, Defect, numbers_of
from evomeans.cli.tables.readers import read_contents
from evomeans.cli.tables.scaling import Standardization
from evomeans.cli.tables.source import open_source
from evomeans.wording import SHOWN, listed, quoted

if TYPE_CHECKING:
    from evomeans.cli.tables.contents import Column


DECIMAL_COMMA = re.compile(r"'\s*[-+]?\d*,\d+\s*'")
"""The sample of a column of numbers with decimal commas, in quotes."""


@dataclass(frozen=True)
class Choice:
    """Which columns of a table are what.

    Parameters
    ----------
    columns : tuple of str, optional
        To cluster by, in this order; None for all that are not named otherwise.
    exclude : tuple of str
        To leave out.
    id : str, optional
        Names the rows; written next to the labels.
    weights : str, optional
        How much each row counts.
    expected : tuple of str, optional
        What a model was fitted to: found by name, or by place if the table has no names.
    """

    columns: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    id: str | None = None
    weights: str | None = None
    expected: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.columns is not None and self.exclude:
            raise UsageError("--columns and --exclude cannot be given together.")
        for option, names in (("--columns", self.columns or ()), ("--exclude", self.exclude)):
            if len(set(names)) < len(names):
                raise UsageError(f"{option} names a column twice: {listed(names, 12)}.")
        if self.columns == ():
            raise UsageError("--columns names no column.")


EVERYTHING = Choice()
UNSAID = Dialect()


@dataclass(frozen=True)
class Table:
    """Numbers ready to be clustered.

    Parameters
    ----------
    name : str
        The file, or "standard input".
    format : str
        What it was read as.
    X : (n, d) array of float32 or float64
        The columns to cluster by; standardized, if they were.
    columns : tuple of str
        Their names.
    named : bool
        Whether the file has the names, or they were made up.
    ids : column, optional
        What names the rows.
    weights : (n,) array of float64, optional
        What each row counts.
    standardization : Standardization, optional
        What was done to ``X``.
    notes : tuple of str
        What the user should know about how it was read.
    """

    name: str
    format: str
    X: NDArray[Any]
    columns: tuple[str, ...]
    named: bool
    ids: Column | None = None
    id_name: str | None = None
    weights: NDArray[np.float64] | None = None
    standardization: Standardization | None = None
    notes: tuple[str, ...] = ()

    def standardized(self) -> Table:
        """Return the table with every column brought to mean 0 and deviation 1."""
        by = Standardization.of(self.X, self.weights, self.columns)
        return replace(self, X=by.apply(self.X), standardization=by)

    def in_units(self, centers: NDArray[Any]) -> NDArray[Any]:
        """Return centres of ``X`` in the units of the file."""
        return centers if self.standardization is None else self.standardization.undo(centers)


def read_table(
    name: str,
    choice: Choice = EVERYTHING,
    *,
    file_format: str | None = None,
    dialect: Dialect = UNSAID,
) -> Table:
    """Read the chosen columns of a table.

    Parameters
    ----------
    name : str
        A path; "-" for standard input; ``file.npz:name`` for one array of several.
    choice : Choice
        Which columns are what.
    file_format : str, optional
        A :data:`~evomeans.cli.options.TableFormat`; None to find out.
    dialect : Dialect
        How a delimited text is written.

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
    source = open_source(name, file_format)
    contents = read_contents(source, dialect)
    used = used_columns(choice, contents.columns, contents.named, source.name)
    numeric = list(used) if choice.weights is None else [*used, choice.weights]
    # An id is text, whatever it looks like; 00001 and 1e3 must not become numbers.
    aside = [choice.id] if choice.id is not None and choice.id not in numeric else []
    loaded = contents.load(list(dict.fromkeys([*numeric, *aside])), aside)
    n_rows = len(next(iter(loaded.values())))
    if n_rows == 0:
        raise CommandError(f"{source.name} has columns and no rows.")
    X = _matrix(used, loaded, contents, source.name)
    return Table(
        name=source.name,
        format=source.format,
        X=X,
        columns=used,
        named=contents.named,
        ids=_ids(choice.id, loaded if aside else None, contents, source.name),
        id_name=choice.id,
        weights=_weights(choice.weights, loaded, contents, source.name),
        notes=(*contents.notes, *_suspicions(X, used)),
    )


def used_columns(
    choice: Choice, columns: tuple[str, ...], named: bool, table: str
) -> tuple[str, ...]:
    """Return the columns to cluster by."""
    asked = {
        "--columns": choice.columns or (),
        "--exclude": choice.exclude,
        "--id": [choice.id] if choice.id is not None else [],
        "--weights": [choice.weights] if choice.weights is not None else [],
    }
    known = set(columns)
    for option, names in asked.items():
        if missing := [name for name in names if name not in known]:
            raise UsageError(_unknown_column(option, missing, columns, table))
    if choice.columns is not None:
        return choice.columns
    if choice.expected is not None and named:
        if missing := [name for name in choice.expected if name not in known]:
            raise CommandError(_unknown_column("The model", missing, columns, table))
        return choice.expected
    others = {*choice.exclude, choice.id, choice.weights}
    used = tuple(name for name in columns if name not in others)
    if not columns:
        raise CommandError(f"{table} has no columns.")
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


def _matrix(
    used: Sequence[str], loaded: Mapping[str, Column], contents: Contents, table: str
) -> NDArray[Any]:
    whole = contents.matrix
    if whole is not None and tuple(used) == contents.columns and _is_ready(whole):
        # As it is: column by column would take long if it is wide.
        return np.ascontiguousarray(whole)
    converted = {name: numbers_of(loaded[name]) for name in used}
    defects = {name: found for name, found in converted.items() if isinstance(found, Defect)}
    if defects:
        raise CommandError(_unusable(defects, contents, table))
    arrays = [array for array in converted.values() if not isinstance(array, Defect)]
    X = np.empty((len(arrays[0]), len(arrays)), np.result_type(*arrays))
    for j, array in enumerate(arrays):
        X[:, j] = array
    return X


def _is_ready(matrix: NDArray[Any]) -> bool:
    return matrix.dtype in (np.float32, np.float64) and bool(np.isfinite(matrix).all())


def _weights(
    name: str | None, loaded: Mapping[str, Column], contents: Contents, table: str
) -> NDArray[np.float64] | None:
    if name is None:
        return None
    weights = numbers_of(loaded[name])
    if not isinstance(weights, Defect) and weights.min() < 0:
        bad = np.flatnonzero(weights < 0)
        weights = Defect("negative weights", tuple(bad[:3].tolist()), quoted(weights[bad[0]]))
    if isinstance(weights, Defect):
        where = _described(weights, contents)
        raise CommandError(f"{table} has weights that cannot be used, {quoted(name)}: {where}.")
    return weights.astype(np.float64, copy=False)


def _ids(
    name: str | None, loaded: Mapping[str, Column] | None, contents: Contents, table: str
) -> Column | None:
    """Return what names the rows, such that it can be written."""
    if name is None:
        return None
    ids = (contents.load([name], [name]) if loaded is None else loaded)[name]
    if isinstance(ids, np.ndarray):
        wide = ids.dtype.kind == "f" and ids.dtype.itemsize not in (4, 8)
        return ids.astype(np.float64 if wide else ids.dtype.newbyteorder("="))
    if ids.dtype.is_nested() or ids.dtype in (pl.Binary, pl.Object):
        raise CommandError(
            f"{table} has ids that cannot be written, {quoted(name)}: values of type {ids.dtype}. "
            "Name the rows by text, numbers or dates."
        )
    return ids


def _unusable(defects: Mapping[str, Defect], contents: Contents, table: str) -> str:
    """Name the columns and the first rows, and what to do."""
    noun = "a column" if len(defects) == 1 else f"{len(defects):,} columns"
    lines = [f"{table} has {noun} that k-means cannot use:"]
    for name, defect in list(defects.items())[: 2 * SHOWN]:
        lines.append(f"  {quoted(name)}: {_described(defect, contents)}")
    if len(defects) > 2 * SHOWN:
        lines.append(f"  and {len(defects) - 2 * SHOWN:,} more")
    names = list(defects)
    excluded = ",".join(names) if len(names) <= 2 * SHOWN else "…"
    if any(DECIMAL_COMMA.fullmatch(defect.sample) for defect in defects.values()):
        lines.append("If 1,5 is a number in this CSV, add --decimal-comma.")
    lines.append(
        f"Leave out what is not a measurement (--exclude {quote(excluded)}), or mend the rows."
    )
    if texts := [name for name, defect in defects.items() if defect.what == "text in all rows"]:
        lines.append(
            f"If a column names the rows, --id {quote(texts[0])} keeps it next to the labels."
        )
    return "\n".join(lines)


def _described(defect: Defect, contents: Contents) -> str:
    if not defect.rows:
        return defect.what
    unit, numbers = contents.locate(defect.rows)
    plural = f"{unit}s" if len(numbers) > 1 else unit
    first = "first in" if len(defect.rows) == ROWS else "in"
    sample = f": {defect.sample}" if defect.sample else ""
    return f"{defect.what}, {first} {plural} {listed(f'{n:,}' for n in numbers)}{sample}"


def _suspicions(X: NDArray[Any], columns: Sequence[str]) -> tuple[str, ...]:
    """Point out columns that count the rows: an index that came along spoils a clustering."""
    if len(X) < 3:
        return ()
    counting = [
        name
        for j, name in enumerate(columns)
        if X[1, j] - X[0, j] == 1.0 and (np.diff(X[:, j]) == 1.0).all()
    ]
    return tuple(
        f"column {quoted(name)} counts the rows; to leave it out: --exclude {quote(name)}"
        for name in counting
    )
