"""Reading tables: where one comes from, in which format it is, and which columns it has."""

from __future__ import annotations

import csv
import gzip
import io
import sys
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evomeans.cli.options import TableOptions
from evomeans.cli.terminal import CommandError, UsageError
from evomeans.wording import counted, listed, quoted

HEAD = 4096
GZIP = b"\x1f\x8b"
FORMATS = {
    **dict.fromkeys((".tsv", ".tab"), "tsv"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".arrow", ".arrows", ".feather", ".ipc"), "arrow"),
    ".npy": "npy",
    ".npz": "npz",
}
"""What suffixes say; all others are CSV."""
BEGINNINGS: dict[str, tuple[bytes, ...]] = {
    "parquet": (b"PAR1",),
    "arrow": (b"ARROW1", b"\xff\xff\xff\xff"),
    "npy": (b"\x93NUMPY",),
    "npz": (b"PK\x03\x04", b"PK\x05\x06"),
}
NOT_TABLES = (".xls", ".xlsx", ".ods", ".zip", ".json", ".jsonl", ".ndjson")


FAILURES = (
    *(pl.exceptions.PolarsError, zipfile.BadZipFile, OSError, EOFError, MemoryError),
    *(ValueError, KeyError, RuntimeError, NotImplementedError),
)
"""What polars and NumPy raise if a file is not what it seems."""


@dataclass(frozen=True)
class Source:
    """A table before it is read."""

    name: str
    format: str
    content: Path | bytes
    """The file, or its bytes if it came from standard input or was compressed."""
    member: str | None = None
    """The array wanted of an NPZ file."""

    def open(self) -> BinaryIO:
        """Return the content as a new stream."""
        content = self.content
        return io.BytesIO(content) if isinstance(content, bytes) else content.open("rb")


@dataclass(frozen=True)
class Contents:
    """The columns of a table and how to get at them."""

    source: Source
    columns: tuple[str, ...]
    named: bool
    """Whether the file has the names, or they were made up (x0, x1, …)."""
    scan: Callable[[bool], pl.LazyFrame]
    """Offer all columns; those of a text file as they are written, if the argument is true."""
    matrix: NDArray[Any] | None = None
    """All columns together, if the file holds them so."""
    separator: str | None = None
    """Of a text file."""
    n_blank: int = 0
    """Lines at the end of it that hold nothing."""

    def where(self, rows: Sequence[int]) -> str:
        """Name rows: "row 1", or of a text file "lines 2 and 3"."""
        unit, numbers = "row", [row + 1 for row in rows]
        if self.separator is not None:
            wanted = {row + self.named for row in rows}
            records = islice(_records(self.source, self.separator), max(wanted) + 1)
            unit, numbers = "line", [at for place, (at, _) in enumerate(records) if place in wanted]
        return f"{unit}{'s' * (len(numbers) > 1)} {listed(f'{number:,}' for number in numbers)}"

    def load(self, columns: Sequence[str], *, as_text: bool = False) -> pl.DataFrame:
        """Read columns by their places.

        polars takes some names for patterns, and gives columns without a name, or with a padded
        one, names of its own.
        """
        place = {name: index for index, name in enumerate(self.columns)}
        try:
            frame = self.scan(as_text).select(pl.nth([place[name] for name in columns])).collect()
        except FAILURES as error:
            advice = ""
            if self.separator is not None:
                _refuse_ragged(self.source, self.separator, len(self.columns))
                advice = " Look for a quote that is not closed, or name the format with --format."
            raise unreadable(self.source.name, self.source.format, error, advice) from error
        frame.columns = list(columns)
        return frame.head(max(0, frame.height - self.n_blank))


def unnamed(count: int) -> tuple[str, ...]:
    """Names for columns that have none, those that scikit-learn gives them."""
    return tuple(f"x{index}" for index in range(count))


def unreadable(name: str, file_format: str, error: Exception, advice: str = "") -> CommandError:
    """Return the error that says why a library cannot read a file."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return CommandError(f"{name} cannot be read as {file_format}: {lines[0].rstrip('.')}.{advice}")


def open_source(name: str, file_format: str | None = None) -> Source:
    """Find a table. Its format is the one given, else that of its suffix, else CSV."""
    member, suffix = None, ""
    content: Path | bytes
    if name == "-":
        name, content = "standard input", sys.stdin.buffer.read()
        head = content
    else:
        path = Path(name)
        file, colon, array = name.rpartition(":")
        if colon and file.lower().endswith(".npz") and not path.exists():
            path, member = Path(file), array
        suffix = Path(path.name.lower().removesuffix(".gz")).suffix
        content, head = _read(path, name)
    if head.startswith(GZIP):
        try:
            content = head = gzip.decompress(head)
        except (OSError, EOFError, zlib.error) as error:
            raise CommandError(f"{name} cannot be decompressed: {error}.") from error
    if not head:
        raise CommandError(f"{name} is empty.")
    if file_format is None and suffix in NOT_TABLES:
        raise CommandError(f"{name} cannot be read as a table; save it as CSV or Parquet first.")
    found = file_format or FORMATS.get(suffix, "csv")
    if not head.startswith(BEGINNINGS.get(found, (b"",))):
        raise CommandError(
            f"{name} does not look like {found}: it begins with {head[:8]!r}. If it is another "
            "format, name it with --format."
        )
    if found in ("csv", "tsv") and b"\0" in head[:HEAD]:
        raise CommandError(
            f"{name} is binary or UTF-16 text, not {found.upper()}: it begins with {head[:8]!r}. "
            "Name its format with --format, or save it as CSV in UTF-8."
        )
    return Source(name, found, content, member)


def _read(path: Path, name: str) -> tuple[Path | bytes, bytes]:
    """Return what polars reads, and how it begins: all of it if polars cannot read the path."""
    if path.is_dir():
        raise CommandError(
            f"{name} is a folder; the command line reads single files, and Python reads folders of "
            "Parquet files with Dask (docs/guide/dask-engine.md)."
        )
    try:
        with path.open("rb") as file:
            head = file.read(HEAD)
            # What is compressed, a pipe that can be read but once, or a name with bytes that are
            # not text (surrogates in Python).
            is_text = not any("\ud800" <= character <= "\udfff" for character in name)
            if path.is_file() and is_text and not head.startswith(GZIP):
                return path, head
            content = head + file.read()
            return content, content
    except FileNotFoundError:
        raise CommandError(f"There is no file {name}.") from None
    except OSError as error:
        raise CommandError(f"{name} cannot be read: {error.strerror or error}.") from error


SEPARATORS = ",;\t|"
TAIL = 65536


def read_delimited(source: Source, options: TableOptions) -> Contents:
    """Offer the columns of a delimited text; only those loaded are ever kept in memory."""
    with source.open() as file:
        head = file.read(HEAD)
    if b"\r" in head and b"\n" not in head:
        raise CommandError(
            f"{source.name} has line ends of old Macs (CR alone); convert them to LF."
        )
    separator = options.separator or _separator(source)
    first = _first_record(source, separator)
    header = _has_header(source, first, options)
    names = _column_names(source, first) if header else unnamed(len(first))

    def scan(as_text: bool) -> pl.LazyFrame:
        lazy = pl.scan_csv(
            source.content,
            separator=separator,
            has_header=header,
            decimal_comma=options.decimal_comma,
            glob=False,
            infer_schema_length=0 if as_text else None,
        )
        if len(lazy.collect_schema()) != len(names):
            raise pl.exceptions.ComputeError("the first line cannot be split into names")
        return lazy

    n_blank = _blank_lines_at_end(source, separator)
    return Contents(source, names, header, scan, separator=separator, n_blank=n_blank)


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
        raise unreadable(source.name, source.format, error) from error


def _separator(source: Source) -> str:
    if source.format == "tsv":
        return "\t"
    with source.open() as file:
        line = file.readline(TAIL).decode("utf-8", errors="replace")
    return max(SEPARATORS, key=line.count)


def _first_record(source: Source, separator: str) -> list[str]:
    _, first = next(_records(source, separator), (1, []))
    if not any(field.strip() for field in first):
        raise CommandError(
            f"{source.name} has nothing in its first line; the header belongs there."
        )
    return first


def _has_header(source: Source, first: list[str], options: TableOptions) -> bool:
    if options.header is not None:
        return options.header
    try:
        for field in first:
            float(field.replace(",", ".") if options.decimal_comma else field)
    except ValueError:
        return True
    raise CommandError(
        f"{source.name} begins with a line of numbers: {listed(map(str.strip, first))}. If they "
        "are data, say --no-header; if they are the names of columns, say --header."
    )


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
        lines = file.read().decode("utf-8", errors="replace").removesuffix("\n").split("\n")
    is_blank = (not line.replace(separator, "").strip() for line in reversed(lines))
    return sum(takewhile(bool, is_blank))


def _refuse_ragged(source: Source, separator: str, width: int) -> None:
    for line, record in _records(source, separator):
        if len(record) > width:
            raise CommandError(
                f"{source.name} has {counted(len(record), 'field')} in line {line} and {width} in "
                "its first line. Mend that line, or name the separator with --separator."
            )


def read_contents(source: Source, options: TableOptions) -> Contents:
    """Offer the columns of a source."""
    if source.format in ("csv", "tsv"):
        return read_delimited(source, options)
    _refuse_dialect(source.name, options)
    read = _read_columns if source.format in ("parquet", "arrow") else _read_array
    try:
        return read(source)
    except FAILURES as error:
        raise unreadable(source.name, source.format, error) from error


def _refuse_dialect(name: str, options: TableOptions) -> None:
    """Refuse options that only a delimited text has."""
    if options.separator is not None or options.header is not None or options.decimal_comma:
        raise UsageError(
            "--separator, --header, --no-header and --decimal-comma are for CSV and TSV, which "
            f"{name} is not."
        )


def _read_columns(source: Source) -> Contents:
    """Offer the columns of a Parquet file, or of an Arrow file or stream."""
    if source.format == "parquet":
        lazy = pl.scan_parquet(source.content, glob=False)
    else:
        with source.open() as file:
            read = pl.read_ipc if file.read(6) == b"ARROW1" else pl.read_ipc_stream
        lazy = read(source.content).lazy()
    names = tuple(lazy.collect_schema().names())
    return Contents(source, names, True, lambda _: lazy)


def _read_array(source: Source) -> Contents:
    """Offer the columns of a NumPy array: the one chosen of several, that named X, or the only."""
    name = source.name
    with source.open() as file:
        array: Any = np.load(file, allow_pickle=False)
        if isinstance(array, np.lib.npyio.NpzFile):
            chosen = _array_name(source, list(array.files))
            name, array = f"{chosen} in {name}", np.asarray(array[chosen])
    if array.dtype.kind not in "biuf":
        raise CommandError(f"{name} is an array of {array.dtype}; numbers are needed.")
    if array.ndim not in (1, 2):
        raise CommandError(f"{name} has shape {array.shape}; a table has rows and columns.")
    # Of what NumPy knows, polars takes native numbers of up to 64 bits.
    is_odd = array.dtype.kind == "f" and array.dtype != np.float32
    dtype = np.dtype(np.float64) if is_odd else array.dtype.newbyteorder("=")
    matrix: NDArray[Any] = array[:, np.newaxis] if array.ndim == 1 else array
    with np.errstate(over="ignore"):
        matrix = matrix.astype(dtype, copy=False)
    names = unnamed(matrix.shape[1])

    def scan(_: bool) -> pl.LazyFrame:
        return pl.LazyFrame({name: matrix[:, j] for j, name in enumerate(names)})

    return Contents(source, names, False, scan, matrix=matrix)


def _array_name(source: Source, names: list[str]) -> str:
    if not names:
        raise CommandError(f"{source.name} holds no array.")
    if source.member in names:
        return source.member
    if source.member is not None:
        raise CommandError(
            f"{source.name} names no array of that file; it holds {listed(names, 12)}."
        )
    if {"data", "indices", "indptr", "shape"} <= set(names):
        raise CommandError(
            f"{source.name} holds a SciPy sparse matrix; the command line takes dense tables. "
            "HGMeans in Python takes it as it is."
        )
    if len(names) == 1 or "X" in names:
        return names[0] if len(names) == 1 else "X"
    raise CommandError(
        f"{source.name} holds {listed(names, 12)}; say which, for example {source.name}:{names[0]}"
    )
