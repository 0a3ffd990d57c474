"""Tables that stay on disk: Parquet files and NPY arrays that Dask reads piece by piece."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np

from evomeans.cli.failures import CommandError
from evomeans.cli.tables.contents import unnamed
from evomeans.cli.tables.table import EVERYTHING, Choice, Table, used_columns
from evomeans.wording import listed, quoted

PARQUET = (".parquet", ".pq")


def is_lazy_table(name: str) -> bool:
    """Whether a table is one that Dask reads: a folder of Parquet files, a Parquet or NPY file."""
    path = Path(name)
    return path.is_dir() or path.suffix.lower() in (*PARQUET, ".npy")


def read_lazy_table(name: str, choice: Choice = EVERYTHING) -> Table:
    """Open a table without reading its rows.

    Parameters
    ----------
    name : str
        A folder of Parquet files, a Parquet file or an NPY file; workers must find it there too.
    choice : Choice
        Which columns are what.

    Returns
    -------
    Table
        With Dask arrays for samples and weights.
    """
    path = Path(name)
    if not path.exists():
        raise CommandError(f"There is no file {name}.")
    return (
        _npy(path, name, choice) if path.suffix.lower() == ".npy" else _parquet(path, name, choice)
    )


def _npy(path: Path, name: str, choice: Choice) -> Table:
    from evomeans.estimators.dask_collections import as_dask_array

    try:
        mapped = np.load(path, mmap_mode="r")
    except (ValueError, OSError) as error:
        raise CommandError(f"{name} cannot be read as NPY: {error}.") from error
    if mapped.ndim != 2 or mapped.dtype.kind not in "fiub":
        raise CommandError(
            f"{name} holds an array of shape {mapped.shape} and type {mapped.dtype}."
        )
    if choice.id is not None:
        raise CommandError(f"{name} has no names: --id {quote(choice.id)} cannot name its rows.")
    columns = unnamed(mapped.shape[1])
    X = as_dask_array(mapped)
    used = used_columns(choice, columns, False, name)
    weights = None if choice.weights is None else X[:, columns.index(choice.weights)]
    if used != columns:
        X = X[:, [columns.index(column) for column in used]]
    return Table(name, "npy", X, used, named=False, weights=weights)


def _parquet(path: Path, name: str, choice: Choice) -> Table:
    import dask.dataframe as dd

    from evomeans.estimators.dask_collections import frame_to_array

    try:
        frame: Any = dd.read_parquet(str(path))
    except (ValueError, OSError, ImportError) as error:
        raise CommandError(f"{name} cannot be read as Parquet: {error}.") from error
    columns = tuple(map(str, frame.columns))
    used = used_columns(choice, columns, True, name)
    kinds = frame[list(used)].dtypes
    text = [column for column in used if kinds[column].kind not in "fiub"]
    if text:
        raise CommandError(
            f"{name} has columns that k-means cannot use: {listed(map(quoted, text))} hold no "
            f"numbers. Leave them out: --exclude {quote(','.join(text))}."
        )
    weights = None if choice.weights is None else frame[choice.weights].astype(np.float64)
    return Table(
        name=name,
        format="parquet",
        X=frame_to_array(frame[list(used)]),
        columns=used,
        named=True,
        ids=None if choice.id is None else frame[choice.id].compute().to_numpy(),
        id_name=choice.id,
        weights=weights,
    )
