"""Comma- and tab-separated text."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from evomeans.cli.failures import CommandError
from evomeans.cli.tables.contents import Contents, unnamed
from evomeans.cli.tables.source import Source
from evomeans.wording import counted, listed, quoted

SEPARATORS = ",;\t|"
TAIL = 65536


@dataclass(frozen=True)
class Dialect:
    """How a delimited text is written, as far as the user says.

    Parameters
    ----------
    separator : str, optional
        One character; None takes that of the four usual ones that is most frequent in line 1.
    header : bool, optional
        Whether line 1 holds the names; None takes it for names unless they are all numbers.
    decimal_comma : bool
        Whether 1,5 is a number.
    """

    separator: str | None = None
    header: bool | None = None
    decimal_comma: bool = False


def read_delimited(source: Source, dialect: Dialect) -> Contents:
    """Offer the columns of a delimited text; only those loaded are ever kept in memory."""
    separator = dialect.separator or _separator(source)
    first = _first_record(source, separator)
    header = _has_header(source, first, dialect)
    names = _column_names(source, first) if header else unnamed(len(first))
    blank = _blank_lines_at_end(source, separator)

    def scan(**options: Any) -> pl.LazyFrame:
        return pl.scan_csv(
            source.path or io.BytesIO(source.data),
            separator=separator,
            has_header=header,
            decimal_comma=dialect.decimal_comma,
            glob=False,
            **options,
        )

    def load(columns: Sequence[str], as_text: Sequence[str]) -> Mapping[str, pl.Series]:
        # By position: polars gives columns without a name, or with a padded one, names of its own,
        # and takes some names for patterns.
        place = {name: index for index, name in enumerate(names)}
        try:
            found = scan(infer_schema_length=0).collect_schema().names()
            wanted = {place[name] for name in as_text}
            types = {name: pl.String for index, name in enumerate(found) if index in wanted}
            lazy = scan(infer_schema_length=None, schema_overrides=types)
            if len(lazy.collect_schema()) != len(names):
                raise pl.exceptions.ComputeError("the first line cannot be split into names")
            frame = lazy.select(pl.nth([place[name] for name in columns])).collect()
        except pl.exceptions.PolarsError as error:
            _refuse_ragged(source, separator, len(names))
            reason = str(error).strip().splitlines()[0].rstrip(".")
            raise CommandError(
                f"{source.name} cannot be read as {source.format.upper()}: {reason}. Look for a "
                "quote that is not closed, or name the format with --format."
            ) from error
        frame = frame.head(max(0, frame.height - blank))
        return {name: frame.to_series(i).alias(name) for i, name in enumerate(columns)}

    def locate(rows: Sequence[int]) -> tuple[str, list[int]]:
        return "line", _line_numbers(source, separator, rows, header)

    notes = (f"{counted(blank, 'blank line')} at the end left out",) if blank else ()
    return Contents(names, named=header, load=load, locate=locate, notes=notes)


def _records(source: Source, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Split the text as Python's csv does; each record comes with the line it begins on."""
    try:
        with io.TextIOWrapper(source.open(), encoding="utf-8-sig", newline="") as text:
            reader = csv.reader(text, delimiter=separator)
            line = 1
            for record in reader:
                yield line, record
                line = reader.line_num + 1
    except UnicodeDecodeError as error:
        raise CommandError(
            f"{source.name} is not UTF-8 text: it has the byte {error.object[error.start]:#04x}. "
            "Convert it first, for example with iconv -f latin1 -t utf-8."
        ) from error
    except csv.Error as error:
        raise CommandError(
            f"{source.name} cannot be read as {source.format.upper()}: {error}."
        ) from error


def _separator(source: Source) -> str:
    if source.format == "tsv":
        return "\t"
    with source.open() as file:
        line = file.readline(TAIL)
    counts = Counter(line.decode("utf-8", errors="replace"))
    return max(SEPARATORS, key=lambda separator: counts[separator])


def _first_record(source: Source, separator: str) -> list[str]:
    with source.open() as file:
        head = file.read(TAIL)
    if b"\r" in head and b"\n" not in head:
        raise CommandError(
            f"{source.name} has line ends of old Macs (CR alone); convert them to LF."
        )
    _, first = next(_records(source, separator), (1, []))
    if not any(field.strip() for field in first):
        raise CommandError(
            f"{source.name} has nothing in its first line; the header belongs there."
        )
    return first


def _has_header(source: Source, first: list[str], dialect: Dialect) -> bool:
    if dialect.header is not None:
        return dialect.header
    if any(not is_number(field, dialect.decimal_comma) for field in first):
        return True
    raise CommandError(
        f"{source.name} begins with a line of numbers: {listed(map(str.strip, first))}. If they "
        "are data, say --no-header; if they are the names of columns, say --header."
    )


def is_number(text: str, decimal_comma: bool = False) -> bool:
    """Return whether a cell reads as a number."""
    try:
        float(text.replace(",", ".") if decimal_comma else text)
    except ValueError:
        return False
    return True


def _column_names(source: Source, first: list[str]) -> tuple[str, ...]:
    names = tuple(name.strip() or f"column_{place}" for place, name in enumerate(first, 1))
    repeated = [quoted(name) for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise CommandError(
            f"{source.name} has several columns of the same name: {listed(repeated)}. Give every "
            "column a name of its own."
        )
    return names


def _blank_lines_at_end(source: Source, separator: str) -> int:
    """Count lines at the end that hold nothing, or nothing but separators."""
    with source.open() as file:
        file.seek(0, io.SEEK_END)
        file.seek(max(0, file.tell() - TAIL))
        lines = file.read().decode("utf-8", errors="replace").split("\n")
    if lines[-1] == "":
        lines.pop()
    count = 0
    while count < len(lines) and not lines[-1 - count].replace(separator, "").strip():
        count += 1
    return count


def _line_numbers(source: Source, separator: str, rows: Sequence[int], header: bool) -> list[int]:
    wanted = {row + header for row in rows}
    last = max(wanted, default=-1)
    found = []
    for index, (line, _) in enumerate(_records(source, separator)):
        if index in wanted:
            found.append(line)
        if index >= last:
            break
    return found


def _refuse_ragged(source: Source, separator: str, width: int) -> None:
    for line, record in _records(source, separator):
        if len(record) > width:
            raise CommandError(
                f"{source.name} has {counted(len(record), 'field')} in line {line} and {width} in "
                "its first line. Mend that line, or name the separator with --separator."
            )
