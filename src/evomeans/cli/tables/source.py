"""Where a table comes from, in which format it is, and what a reader offers of it."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl
from numpy.typing import NDArray

from evomeans.cli.failures import CommandError, UsageError

STANDARD_INPUT = "-"
HEAD = 4096
GZIP = b"\x1f\x8b"

# What binary formats begin with.
MAGIC = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow",
    b"\x93NUMPY": "npy",
    b"PK\x03\x04": "npz",
    b"PK\x05\x06": "npz",
}
SUFFIXES = {
    "csv": (".csv",),
    "tsv": (".tsv", ".tab"),
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".arrows", ".feather", ".ipc"),
    "npy": (".npy",),
    "npz": (".npz",),
}


@dataclass(frozen=True)
class Source:
    """A table before it is read."""

    name: str
    format: str
    path: Path | None
    """None if it came from standard input or was compressed."""
    data: bytes = field(default=b"", repr=False)
    """Its content, if there is no path."""
    member: str | None = None
    """The array wanted of an NPZ file."""

    @property
    def input(self) -> Path | BinaryIO:
        """What polars reads."""
        return self.path or io.BytesIO(self.data)

    def open(self) -> BinaryIO:
        """Return the content as a new stream."""
        return io.BytesIO(self.data) if self.path is None else self.path.open("rb")


@dataclass(frozen=True)
class Contents:
    """The columns of a table and how to get at them."""

    columns: tuple[str, ...]
    named: bool
    """Whether the file has the names, or they were made up (x0, x1, …)."""
    load: Callable[[Sequence[str], bool], pl.DataFrame]
    """Read columns; those of a text file as they are written, if the second argument is true."""
    lines: Callable[[Sequence[int]], list[int]] | None = None
    """From row indices to the lines of a text file."""
    matrix: NDArray[Any] | None = None
    """All columns together, if the file holds them so."""
    notes: tuple[str, ...] = ()


def unnamed(count: int) -> tuple[str, ...]:
    """Names for columns that have none, those that scikit-learn gives them."""
    return tuple(f"x{index}" for index in range(count))


def unreadable(name: str, file_format: str, error: Exception, advice: str = "") -> CommandError:
    """Return the error that says why a library cannot read a file."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return CommandError(f"{name} cannot be read as {file_format}: {lines[0].rstrip('.')}.{advice}")


def open_source(name: str, file_format: str | None = None) -> Source:
    """Find a table and its format.

    Parameters
    ----------
    name : str
        A path; "-" for standard input; ``file.npz:name`` for one array of several.
    file_format : str, optional
        A :data:`~evomeans.cli.options.TableFormat`, or None to find out: by how the content begins,
        then by the suffix.

    Returns
    -------
    Source
    """
    path: Path | None = None
    member, suffix = None, ""
    if name == STANDARD_INPUT:
        name, data = "standard input", sys.stdin.buffer.read()
    else:
        path = Path(name)
        file, colon, array = name.rpartition(":")
        if colon and file.lower().endswith(".npz") and not path.exists():
            path, member = Path(file), array
        suffix = Path(path.name.lower().removesuffix(".gz")).suffix
        data, is_whole = _read(path, name)
        path = None if is_whole else path
    if data.startswith(GZIP):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise CommandError(f"{name} cannot be decompressed: {error}.") from error
    if not data:
        raise CommandError(f"{name} is empty.")
    found = file_format or _sniffed(name, suffix, data[:HEAD])
    if member is not None and found != "npz":
        raise UsageError(f"{name} asks for one array of an NPZ file, but it is {found}.")
    return Source(name, found, path, b"" if path else data, member)


def _read(path: Path, name: str) -> tuple[bytes, bool]:
    """Return how a file begins, or all of it if polars cannot read it from its path."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD)
            # What is compressed, a pipe that can be read but once, or a name with bytes that are
            # not text (surrogates in Python).
            is_text = not any("\ud800" <= character <= "\udfff" for character in name)
            if path.is_file() and is_text and not head.startswith(GZIP):
                return head, False
            return head + file.read(), True
    except FileNotFoundError:
        raise CommandError(f"There is no file {name}.") from None
    except (IsADirectoryError, PermissionError) as error:
        # Windows says that it has no permission to read a folder.
        if not path.is_dir():
            raise CommandError(f"{name} cannot be read: {error.strerror}.") from error
        raise CommandError(
            f"{name} is a folder; a table is a single file. Only predict, and fit with --engine "
            "dask, read a folder of Parquet files."
        ) from None
    except OSError as error:
        raise CommandError(f"{name} cannot be read: {error.strerror or error}.") from error


def _sniffed(name: str, suffix: str, head: bytes) -> str:
    found = next((kind for magic, kind in MAGIC.items() if head.startswith(magic)), None)
    if found == "npz" and suffix in (".xlsx", ".ods", ".zip"):
        advice = "unpack it" if suffix == ".zip" else "save a sheet as CSV"
        raise CommandError(f"{name} is not a table; {advice}.")
    if found is not None:
        return found
    named = next((kind for kind, endings in SUFFIXES.items() if suffix in endings), "csv")
    if named not in ("csv", "tsv"):
        raise CommandError(
            f"{name} does not look like {named}, as its name says: it begins with "
            f"{head[:8]!r}. If it is another format, name it with --format."
        )
    if suffix in (".json", ".jsonl", ".ndjson"):
        raise CommandError(
            f"{name} is JSON; save it as CSV or Parquet first, for example with pandas: "
            "pandas.read_json(...).to_parquet(...)."
        )
    if b"\0" in head:
        raise CommandError(
            f"{name} is binary or UTF-16 text, in no format that can be read: it begins with "
            f"{head[:8]!r}. Save it as CSV in UTF-8, or as Parquet."
        )
    return named
