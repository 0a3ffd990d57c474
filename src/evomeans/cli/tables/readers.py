"""One reader per format; text with separators has a file of its own."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evomeans.cli.failures import CommandError, UsageError
from evomeans.cli.options import TableOptions
from evomeans.cli.tables.delimited import read_delimited
from evomeans.cli.tables.source import Contents, Source, unnamed, unreadable
from evomeans.wording import listed

FAILURES = (
    *(pl.exceptions.PolarsError, zipfile.BadZipFile, OSError, EOFError, MemoryError),
    *(ValueError, KeyError, RuntimeError, NotImplementedError),
)
"""What polars and NumPy raise if a file is not what it seems."""


def read_contents(source: Source, options: TableOptions) -> Contents:
    """Offer the columns of a source."""
    if source.format in ("csv", "tsv"):
        return read_delimited(source, options)
    refuse_dialect(source.name, options)
    read = _read_columns if source.format in ("parquet", "arrow") else _read_array
    try:
        return read(source)
    except FAILURES as error:
        raise unreadable(source.name, source.format, error) from error


def refuse_dialect(name: str, options: TableOptions) -> None:
    """Refuse options that only a delimited text has."""
    if options.separator is not None or options.header is not None or options.decimal_comma:
        raise UsageError(
            "--separator, --header, --no-header and --decimal-comma are for CSV and TSV, which "
            f"{name} is not."
        )


def _read_columns(source: Source) -> Contents:
    """Offer the columns of a Parquet file, or of an Arrow file or stream."""
    if source.format == "parquet":
        lazy = pl.scan_parquet(source.input, glob=False)
    else:
        with source.open() as file:
            read = pl.read_ipc if file.read(6) == b"ARROW1" else pl.read_ipc_stream
        lazy = read(source.input).lazy()
    names = tuple(lazy.collect_schema().names())

    def load(columns: Sequence[str], _: bool) -> pl.DataFrame:
        place = {name: index for index, name in enumerate(names)}
        try:
            # By position: polars takes some names for patterns.
            return lazy.select(pl.nth([place[name] for name in columns])).collect()
        except FAILURES as error:
            raise unreadable(source.name, source.format, error) from error

    return Contents(names, named=True, load=load)


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

    def load(columns: Sequence[str], _: bool) -> pl.DataFrame:
        return pl.DataFrame({name: matrix[:, names.index(name)] for name in columns})

    return Contents(names, named=False, load=load, matrix=matrix)


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
