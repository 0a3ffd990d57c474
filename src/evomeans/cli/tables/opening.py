"""Opening tables as the options say, in memory or piece by piece through Dask."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from evomeans.cli.failures import CommandError, UsageError, quote
from evomeans.cli.options import SampleOptions, TableOptions
from evomeans.cli.tables.numbers import MissingValues, scale_note
from evomeans.cli.tables.readers import SUFFIXES, refuse_dialect, unnamed, unreadable
from evomeans.cli.tables.table import Table, read_table, used_columns, with_id
from evomeans.cli.terminal import Terminal
from evomeans.engines import is_dask
from evomeans.engines.rules import LARGEST_VALUE
from evomeans.estimators.validation import check_sample_weight
from evomeans.wording import counted, listed, quoted


def is_dask_table(name: str) -> bool:
    """Whether a table is one that Dask reads: a folder of Parquet files, a Parquet or NPY file."""
    path = Path(name)
    return path.is_dir() or path.suffix.lower() in (*SUFFIXES["parquet"], ".npy")


def _npy(
    name: str, options: TableOptions, weights: str | None, expected: tuple[str, ...] | None
) -> Table:
    from evomeans.engines.dask.blocks import as_dask_array

    try:
        mapped = np.load(name, mmap_mode="r")
    except (ValueError, OSError) as error:
        raise unreadable(name, "npy", error) from error
    if mapped.ndim != 2 or mapped.dtype.kind not in "fiub":
        raise CommandError(
            f"{name} holds an array of shape {mapped.shape} and type {mapped.dtype}; a matrix of "
            "numbers is needed."
        )
    if options.id is not None:
        raise CommandError(f"{name} has no names: --id {quote(options.id)} cannot name its rows.")
    columns = unnamed(mapped.shape[1])
    used = used_columns(options, columns, False, name, weights, expected)
    X = as_dask_array(mapped)
    counts = None if weights is None else X[:, columns.index(weights)]
    if used != columns:
        X = X[:, [columns.index(column) for column in used]]
    return Table(name, "npy", X, used, named=False, weights=counts)


def _parquet(
    name: str,
    options: TableOptions,
    weights: str | None,
    expected: tuple[str, ...] | None,
    usual_id: str | None,
) -> Table:
    import dask.dataframe as dd

    from evomeans.engines.dask import blocks

    try:
        frame: Any = dd.read_parquet(name)
    except (ValueError, OSError, ImportError) as error:
        inside = (file.suffix.lower() in SUFFIXES["parquet"] for file in Path(name).rglob("*"))
        if Path(name).is_dir() and not any(inside):
            raise CommandError(f"{name} contains no Parquet files.") from error
        raise unreadable(name, "parquet", error) from error
    columns = tuple(map(str, frame.columns))
    options = with_id(options, usual_id, columns)
    used = used_columns(options, columns, True, name, weights, expected)
    kinds = frame[list(used)].dtypes
    text = [column for column in used if kinds[column].kind not in "fiub"]
    if text:
        raise CommandError(
            f"{name} has columns that k-means cannot use: {listed(map(quoted, text))} hold no "
            f"numbers. Leave them out: --exclude {quote(','.join(text))}."
        )
    return Table(
        name=name,
        format="parquet",
        X=blocks.counted(blocks.frame_to_array(frame[list(used)])),
        columns=used,
        named=True,
        ids=None if options.id is None else frame[options.id].compute().to_numpy(),
        id_name=options.id,
        weights=None if weights is None else frame[weights].astype(np.float64),
    )


def load_table(
    name: str,
    options: TableOptions,
    terminal: Terminal,
    samples: SampleOptions | None = None,
    *,
    expected: tuple[str, ...] | None = None,
    missing: MissingValues | None = None,
    in_dask: bool = False,
    usual_id: str | None = None,
) -> Table:
    """Read a table as the options say, and show its notes; Dask only opens it if ``in_dask``.

    ``missing`` is what another table taught about missing values, ``usual_id`` the column that
    named its rows.
    """
    samples = samples or SampleOptions()
    weights, treated = samples.weights, missing or samples.missing
    if in_dask:
        # What needs all rows at once is refused. Workers must find the file under its name too.
        refused = "{} needs the table in memory; {}, or take --engine cpu."
        if samples.standardize:
            raise UsageError(refused.format("--standardize", "write it with standardized columns"))
        if treated is not None:
            raise UsageError(refused.format("--missing", "fill or drop missing values first"))
        from evomeans.engines.dask.blocks import import_dask_array

        import_dask_array()
        refuse_dialect(name, options)
        if not Path(name).exists():
            raise CommandError(f"There is no file {name}.")
        is_npy = Path(name).suffix.lower() == ".npy"
        read = _npy if is_npy else partial(_parquet, usual_id=usual_id)
        table = read(name, options, weights, expected)
    else:
        table = read_table(
            name, options, weights=weights, expected=expected, missing=treated, usual_id=usual_id
        )
    for text in table.notes:
        terminal.note(f"note: {table.name}: {text}")
    return table.standardized() if samples.standardize else table


def check_table(table: Table, clusters: int, terminal: Terminal) -> None:
    """Refuse what a fit would refuse, while the table is clearly the reason; note what is odd."""
    if len(table.X) < clusters:
        raise CommandError(
            f"{table.name} has {counted(len(table.X), 'row')}, too few for "
            f"{counted(clusters, 'cluster')}."
        )
    if is_dask(table.X):
        return
    largest = float(np.abs(table.X).max())
    if largest > LARGEST_VALUE:
        raise CommandError(
            f"{table.name} has a value of size {largest:.3g}; sums overflow beyond "
            f"{LARGEST_VALUE:.0e}. Divide by a constant first."
        )
    try:
        check_sample_weight(table.weights, len(table.X))
    except ValueError as error:
        raise CommandError(f"{table.name}: {error}") from error
    for text in scale_notes(table):
        terminal.note(f"note: {table.name}: {text}")


def scale_notes(table: Table) -> list[str]:
    """Point out a column whose scale decides the clusters, unless columns are standardized."""
    if table.standardization is not None or is_dask(table.X):
        return []
    note = scale_note(table.X, table.weights, table.columns)
    return [] if note is None else [note]
