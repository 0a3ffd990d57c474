"""Where a table comes from, and in which format it is."""

from __future__ import annotations

import gzip
import io
import re
import sys
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from evomeans.cli.failures import CommandError, UsageError

STANDARD_INPUT = "-"
HEAD = 4096

# What binary formats begin with. Parquet and Arrow files also end with it.
MAGIC = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow",
    b"\x93NUMPY": "npy",
    b"PK\x03\x04": "npz",
    b"PK\x05\x06": "npz",
}
SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".npy": "npy",
    ".npz": "npz",
}
FOREIGN = {
    b"FEA1": "a Feather file of version 1; write it again as version 2 (Arrow IPC)",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook; save the sheet as CSV",
    b"\x28\xb5\x2f\xfd": "compressed with zstd; decompress it first",
    b"BZh": "compressed with bzip2; decompress it first",
    b"\xfd7zXZ": "compressed with xz; decompress it first",
    b"\x89HDF": "an HDF5 file; save the table as Parquet or CSV",
    b"\xff\xfe": "UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "UTF-16 text; save it as UTF-8",
}
SIZES_LINE = re.compile(rb"\s*\d+[ \t]+\d+[ \t]*\r?\n")


@dataclass(frozen=True)
class Source:
    """A table before it is read.

    Parameters
    ----------
    name : str
        What to call it in messages.
    format : str
        A :data:`~evomeans.cli.options.TableFormat`.
    path : Path, optional
        Where it lies; None if it came from standard input or was compressed.
    data : bytes
        Its content, if there is no path.
    member : str, optional
        The array wanted of an NPZ file.
    """

    name: str
    format: str
    path: Path | None
    data: bytes = field(default=b"", repr=False)
    member: str | None = None

    def open(self) -> BinaryIO:
        """Return the content as a new stream."""
        return io.BytesIO(self.data) if self.path is None else self.path.open("rb")


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
    if name == STANDARD_INPUT:
        return _described("standard input", "", None, sys.stdin.buffer.read(), None, file_format)
    path, member = _split_member(name)
    try:
        with path.open("rb") as file:
            head = file.read(HEAD)
            # What is compressed, a pipe that can be read but once, or has a name that polars cannot
            # open is kept in memory.
            whole = head.startswith(b"\x1f\x8b") or not path.is_file() or not _is_unicode(name)
            data = head + file.read() if whole else None
    except FileNotFoundError:
        raise CommandError(f"There is no file {name}.") from None
    except IsADirectoryError:
        raise CommandError(
            f"{name} is a folder; a table is a single file. Only predict, and fit with --engine "
            "dask, read a folder of Parquet files."
        ) from None
    except OSError as error:
        raise CommandError(f"{name} cannot be read: {error.strerror or error}.") from error
    if data is None:
        suffix = path.suffix.lower()
        return _described(name, suffix, path, head, member, file_format)
    suffix = Path(path.stem).suffix.lower() if path.suffix.lower() == ".gz" else path.suffix.lower()
    return _described(name, suffix, None, data, member, file_format)


def _is_unicode(name: str) -> bool:
    """Return whether a file name is text; other bytes in it are surrogates in Python."""
    return not any("\ud800" <= character <= "\udfff" for character in name)


def _split_member(name: str) -> tuple[Path, str | None]:
    path = Path(name)
    file, colon, member = name.rpartition(":")
    if colon and file.lower().endswith(".npz") and not path.exists():
        return Path(file), member
    return path, None


def _described(
    name: str, suffix: str, path: Path | None, data: bytes, member: str | None, asked: str | None
) -> Source:
    """Build a source from its first bytes, or all of them if there is no path."""
    if path is None:
        data = _decompressed(name, data)
    if not data:
        raise CommandError(f"{name} is empty.")
    found = asked or _sniffed(name, suffix, data[:HEAD])
    if member is not None and found != "npz":
        raise UsageError(f"{name} asks for one array of an NPZ file, but it is {found}.")
    return Source(name, found, path, b"" if path else data, member)


def _decompressed(name: str, data: bytes) -> bytes:
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise CommandError(f"{name} cannot be decompressed: {error}.") from error


def _sniffed(name: str, suffix: str, head: bytes) -> str:
    for magic, description in FOREIGN.items():
        if head.startswith(magic):
            raise CommandError(f"{name} is {description}.")
    for magic, found in MAGIC.items():
        if head.startswith(magic):
            if found == "npz" and suffix in (".xlsx", ".ods", ".zip"):
                raise CommandError(f"{name} is not a table; unpack it, or save a sheet as CSV.")
            return found
    by_suffix = SUFFIXES.get(suffix)
    if by_suffix in ("csv", "tsv"):
        return by_suffix
    if by_suffix is not None:
        raise CommandError(
            f"{name} does not look like {by_suffix}, as its name says: it begins with "
            f"{head[:8]!r}. If it is another format, name it with --format."
        )
    return "text" if SIZES_LINE.match(head) else "csv"
