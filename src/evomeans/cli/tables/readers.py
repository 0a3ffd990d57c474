"""One reader per format; text with separators has a file of its own."""

from __future__ import annotations

import io
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evomeans.cli.failures import CommandError, UsageError
from evomeans.cli.tables.contents import Contents, array_contents
from evomeans.cli.tables.delimited import Dialect, read_delimited
from evomeans.cli.tables.source import Source
from evomeans.wording import counted, listed


def read_contents(source: Source, dialect: Dialect) -> Contents:
    """Read a source in its format."""
    if source.format in ("csv", "tsv"):
        return read_delimited(source, dialect)
    refuse_dialect(source.name, dialect)
    readers: dict[str, Callable[[Source], Contents]] = {
        "parquet": read_parquet,
        "arrow": read_arrow,
        "npy": read_npy,
        "npz": read_npz,
        "text": read_authors_text,
    }
    return readers[source.format](source)


def refuse_dialect(name: str, dialect: Dialect) -> None:
    """Refuse options that only a delimited text has."""
    if dialect != Dialect():
        raise UsageError(
            "--separator, --header, --no-header and --decimal-comma are for CSV and TSV, which "
            f"{name} is not."
        )


# Columns in binary


def read_parquet(source: Source) -> Contents:
    """Offer the columns of a Parquet file."""
    with _refusing(source, pl.exceptions.PolarsError, OSError):
        return _lazy_contents(
            source, pl.scan_parquet(source.path or io.BytesIO(source.data), glob=False)
        )


def read_arrow(source: Source) -> Contents:
    """Offer the columns of an Arrow file or stream, which is also Feather."""
    with source.open() as file:
        read = pl.read_ipc if file.read(6) == b"ARROW1" else pl.read_ipc_stream
    with _refusing(source, pl.exceptions.PolarsError, OSError):
        return _lazy_contents(source, read(source.path or io.BytesIO(source.data)).lazy())


def _lazy_contents(source: Source, lazy: pl.LazyFrame) -> Contents:
    names = tuple(lazy.collect_schema().names())

    def load(columns: Sequence[str], _: Sequence[str]) -> Mapping[str, pl.Series]:
        # By position: polars takes some names for patterns.
        place = {name: index for index, name in enumerate(names)}
        with _refusing(source, pl.exceptions.PolarsError, OSError):
            frame = lazy.select(pl.nth([place[name] for name in columns])).collect()
        return {name: frame.to_series(i) for i, name in enumerate(columns)}

    return Contents(names, named=True, load=load)


# Arrays


def read_npy(source: Source) -> Contents:
    """Offer the columns of one NumPy array."""
    with _refusing(source, ValueError, OSError, EOFError, MemoryError), source.open() as file:
        array = np.lib.format.read_array(file, allow_pickle=False)
    return array_contents(_as_matrix(source.name, array))


def read_npz(source: Source) -> Contents:
    """Offer the columns of the array chosen, of that named X, or of the only one."""
    failures = (ValueError, OSError, EOFError, MemoryError, KeyError, zipfile.BadZipFile)
    with (
        _refusing(source, *failures, RuntimeError, NotImplementedError),
        source.open() as file,
        np.load(file, allow_pickle=False) as arrays,
    ):
        name = _array_name(source, list(arrays.files))
        array = arrays[name]
    return array_contents(_as_matrix(f"{name} in {source.name}", array))


def _array_name(source: Source, names: list[str]) -> str:
    if not names:
        raise CommandError(f"{source.name} holds no array.")
    if source.member is not None:
        if source.member in names:
            return source.member
        raise CommandError(
            f"{source.name} names no array of that file; it holds {listed(names, 12)}."
        )
    if {"data", "indices", "indptr", "shape"} <= set(names):
        raise CommandError(
            f"{source.name} holds a SciPy sparse matrix; the command line takes dense tables. "
            "HGMeans in Python takes it as it is."
        )
    if len(names) == 1:
        return names[0]
    if "X" in names:
        return "X"
    raise CommandError(
        f"{source.name} holds {listed(names, 12)}; say which, for example {source.name}:{names[0]}"
    )


def _as_matrix(name: str, array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype.names is not None:
        raise CommandError(
            f"{name} is a structured array; save its fields as the columns of a matrix."
        )
    if array.dtype.kind not in "biuf":
        raise CommandError(f"{name} is an array of {array.dtype}; numbers are needed.")
    if array.ndim == 1:
        return array[:, np.newaxis]
    if array.ndim != 2:
        raise CommandError(f"{name} has shape {array.shape}; a table has rows and columns.")
    return array


# The format of the HG-means authors


def read_authors_text(source: Source) -> Contents:
    """Offer the columns of a text that begins with "n d", rows of d numbers following."""
    with source.open() as file:
        sizes = file.readline().split()
        if len(sizes) != 2 or not all(size.isdigit() for size in sizes):
            raise CommandError(f'{source.name} should begin with a line "n d": rows and columns.')
        rows, columns = map(int, sizes)
        try:
            with warnings.catch_warnings():
                # No rows at all; the error below says so, with the number announced.
                warnings.simplefilter("ignore", UserWarning)
                matrix = np.loadtxt(file, dtype=np.float64, ndmin=2, comments=None)
        except ValueError as error:
            raise CommandError(
                f"{source.name} cannot be read after its first line: {str(error).rstrip('.')}."
            ) from error
    found = matrix.shape if matrix.size else (0, columns)
    if found != (rows, columns):
        raise CommandError(
            f"{source.name} announces {counted(rows, 'row')} of {counted(columns, 'number')} in "
            f"its first line and has {found[0]:,} of {found[1]:,}. If that line is data, name the "
            "format with --format csv --separator ' ' --no-header."
        )
    return array_contents(matrix.reshape(rows, columns))


@contextmanager
def _refusing(source: Source, *kinds: type[Exception]) -> Iterator[None]:
    """Turn errors of a library into ones about the file."""
    try:
        yield
    except CommandError:
        raise
    except kinds as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise CommandError(
            f"{source.name} cannot be read as {source.format}: {lines[0].rstrip('.')}."
        ) from error
