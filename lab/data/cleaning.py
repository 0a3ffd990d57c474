"""From the files of the repositories to samples: what is dropped, what is coded how.

A cleaner takes the contents of the files that make up a data set, in their order, and returns the
samples and, if the files have one, the class of each.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.typing import FloatArray
from lab.data.errors import WrongContentsError

MISSING = "?"


@dataclass(frozen=True, eq=False)
class Cleaned:
    """Samples, and their classes.

    Parameters
    ----------
    X : ndarray of shape (n, d), float64
    y : ndarray of shape (n,) or None
        Numbers of the classes, in the order of their names.
    """

    X: FloatArray
    y: NDArray[np.int64] | None = None


Cleaner = Callable[[Sequence[bytes]], Cleaned]


def numbers(
    parts: Sequence[bytes],
    *,
    delimiter: str | None = None,
    drop: Sequence[int] = (),
    label: int | None = None,
) -> Cleaned:
    """Read tables of nothing but numbers: Shuttle, Skin, Pendigit, Isolet, Gisette and others.

    Parameters
    ----------
    parts : sequence of bytes
    delimiter : str or None
        None for blanks of any number.
    drop : sequence of int
        Columns that are no features.
    label : int or None
        The column of the class, which is no feature either; negative ones count from the end.
    """
    table = _concatenated([_table(part, delimiter) for part in parts])
    return _split(table, drop, label)


def records(
    parts: Sequence[bytes],
    *,
    width: int,
    drop: Sequence[int] = (),
    label: int | None = None,
    codes: Mapping[str, float] | None = None,
) -> Cleaned:
    """Read comma-separated tables with words among the fields: Heart, Voting, Letters and others.

    Lines before the first row of data are a head; incomplete rows, with a ``?``, are dropped.

    Parameters
    ----------
    parts : sequence of bytes
    width : int
        Number of fields of a row.
    drop : sequence of int
        Columns that are no features.
    label : int or None
        The column of the class.
    codes : mapping of str to float or None
        What words stand for: all features are such words, and rows with a ``?`` stay if it has
        a code.
    """
    classes: list[str] = []
    rows: list[list[float]] = []
    omitted = {column % width for column in (*drop, *([] if label is None else [label]))}
    kept = [column for column in range(width) if column not in omitted]
    for part in parts:
        begun = False
        for line, fields in _lines(part):
            if MISSING in fields and not (codes and MISSING in codes):
                begun = True
                continue
            try:
                if len(fields) != width:
                    raise ValueError(f"{len(fields)} fields instead of {width}")
                row = [_number(fields[column], codes) for column in kept]
            except ValueError as error:
                if not begun:
                    continue
                raise WrongContentsError(f"Line {line} is no row of data: {error}.") from error
            begun = True
            rows.append(row)
            if label is not None:
                classes.append(fields[label])
    X = np.array(rows, dtype=np.float64).reshape(len(rows), len(kept))
    return Cleaned(X, None if label is None else _numbered(classes))


def arff(parts: Sequence[bytes], *, label: int | None = None) -> Cleaned:
    """Read the numbers after ``@DATA``: EEG Eye State."""
    tables = []
    for part in parts:
        head, found, rows = _partition_line(part, b"@data")
        if not found:
            raise WrongContentsError(f"No line @DATA in an ARFF file of {len(head)} bytes.")
        tables.append(_table(rows, ","))
    return _split(_concatenated(tables), (), label)


def libsvm(parts: Sequence[bytes], *, n_features: int) -> Cleaned:
    """Read rows of ``class 1:value 2:value …``: Gas Sensor.

    The class may carry a concentration after a semicolon, which is dropped.
    """
    rows, classes = [], []
    for part in parts:
        for number, line in enumerate(part.decode("ascii").splitlines(), 1):
            if not line.strip():
                continue
            first, *pairs = line.split()
            row = np.full(n_features, np.nan)
            try:
                for pair in pairs:
                    index, _, value = pair.partition(":")
                    if not 1 <= int(index) <= n_features:
                        raise ValueError(f"feature {index} of {n_features}")
                    row[int(index) - 1] = float(value)
            except ValueError as error:
                raise WrongContentsError(f"Line {number} is no row of data: {error}.") from error
            if np.isnan(row).any():
                raise WrongContentsError(
                    f"Line {number} has {len(pairs)} features instead of {n_features}."
                )
            rows.append(row)
            classes.append(first.partition(";")[0])
    return Cleaned(np.array(rows).reshape(len(rows), n_features), _numbered(classes))


def tsplib(parts: Sequence[bytes]) -> Cleaned:
    """Read the coordinates of a TSPLIB file (``NODE_COORD_SECTION``), without the numbers."""
    (part,) = parts
    head, found, rows = _partition_line(part, b"NODE_COORD_SECTION")
    if not found:
        raise WrongContentsError("No NODE_COORD_SECTION in a TSPLIB file.")
    dimension = None
    for line in head.decode("ascii").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "DIMENSION":
            dimension = int(value)
    coordinates, _, _ = _partition_line(rows, b"EOF")
    X = _table(coordinates, None)[:, 1:]
    if len(X) != dimension:
        raise WrongContentsError(f"{len(X)} nodes in a TSPLIB file of DIMENSION {dimension}.")
    return Cleaned(np.ascontiguousarray(X))


def counted(parts: Sequence[bytes]) -> Cleaned:
    """Read a table below the numbers of samples of each class: MiniBooNE."""
    (part,) = parts
    head, _, rows = part.partition(b"\n")
    counts = [int(count) for count in head.split()]
    X = _table(rows, None)
    if len(X) != sum(counts):
        raise WrongContentsError(f"{len(X)} rows, and the first line speaks of {counts}.")
    return Cleaned(X, np.repeat(np.arange(len(counts)), counts))


def sized(parts: Sequence[bytes]) -> Cleaned:
    """Read a table below a line ``n d``: the files of the authors' repository."""
    (part,) = parts
    head, _, rows = part.partition(b"\n")
    shape = tuple(int(size) for size in head.split())
    X = _table(rows, None)
    if X.shape != shape:
        raise WrongContentsError(f"A table of {X.shape}, and the first line says {shape}.")
    return Cleaned(X)


def _table(content: bytes, delimiter: str | None) -> FloatArray:
    """Parse numbers; all rows need the same length."""
    if not content.strip():
        raise WrongContentsError("Not a table of numbers: it is empty.")
    lines = (line for line in io.BytesIO(content) if line.strip())
    try:
        return np.loadtxt(lines, delimiter=delimiter, comments=None, ndmin=2, encoding="ascii")
    except ValueError as error:
        raise WrongContentsError(f"Not a table of numbers: {error}") from error


def _concatenated(tables: Sequence[FloatArray]) -> FloatArray:
    widths = {table.shape[1] for table in tables}
    if len(widths) != 1:
        raise WrongContentsError(f"Files with different numbers of columns: {sorted(widths)}.")
    return np.concatenate(tables) if len(tables) > 1 else tables[0]


def _split(table: FloatArray, drop: Sequence[int], label: int | None) -> Cleaned:
    """Separate the class and what is dropped from the features."""
    width = table.shape[1]
    omitted = {column % width for column in (*drop, *([] if label is None else [label]))}
    if not omitted:
        return Cleaned(table)
    X = np.delete(table, sorted(omitted), axis=1)
    return Cleaned(X, None if label is None else _numbered(table[:, label]))


def _numbered(classes: Any) -> NDArray[np.int64]:
    return np.unique(np.asarray(classes), return_inverse=True)[1].astype(np.int64)


def _lines(content: bytes) -> Iterable[tuple[int, list[str]]]:
    """Yield number and fields of the lines that are not blank."""
    text = io.StringIO(content.decode("latin-1"), newline="")
    reader = csv.reader(text, skipinitialspace=True)
    for fields in reader:
        stripped = [field.strip() for field in fields]
        if any(stripped):
            yield reader.line_num, stripped


def _number(field: str, codes: Mapping[str, float] | None) -> float:
    if codes is None:
        return float(field)
    if field not in codes:
        raise ValueError(f"{field!r} is none of {', '.join(codes)}")
    return codes[field]


def _partition_line(content: bytes, keyword: bytes) -> tuple[bytes, bool, bytes]:
    """Split at the first line that begins with a keyword, whatever its case."""
    begin = 0
    while begin < len(content):
        end = content.find(b"\n", begin)
        end = len(content) if end < 0 else end + 1
        if content[begin:end].strip().lower().startswith(keyword.lower()):
            return content[:begin], True, content[end:]
        begin = end
    return content, False, b""
