"""From the options of a command to a table."""

from __future__ import annotations

import csv

import numpy as np

from evomeans.cli.failures import CommandError, UsageError
from evomeans.cli.options import SampleOptions, SearchOptions, TableOptions
from evomeans.cli.tables.dask_tables import is_lazy_table, read_lazy_table
from evomeans.cli.tables.delimited import Dialect
from evomeans.cli.tables.readers import refuse_dialect
from evomeans.cli.tables.table import Choice, Table, read_table
from evomeans.cli.terminal import Terminal
from evomeans.engines import is_dask
from evomeans.engines.rules import LARGEST_VALUE
from evomeans.estimators.validation import check_sample_weight
from evomeans.wording import counted


def names_in(option: str, text: str | None) -> tuple[str, ...] | None:
    """Split "a,b"; a name with a comma is put in double quotes, as in a CSV."""
    if text is None:
        return None
    try:
        fields = next(csv.reader([text], skipinitialspace=True, strict=True), [])
    except csv.Error as error:
        raise UsageError(f"{option} {text} cannot be split into names: {error}.") from error
    return tuple(field.strip() for field in fields if field.strip())


def choice_of(options: TableOptions, samples: SampleOptions | None = None) -> Choice:
    """Return which columns are what."""
    return Choice(
        columns=names_in("--columns", options.columns),
        exclude=names_in("--exclude", options.exclude) or (),
        id=options.id,
        weights=None if samples is None else samples.weights,
    )


def dialect_of(options: TableOptions) -> Dialect:
    """Return how a delimited text is written."""
    separator = options.separator
    if separator is not None:
        separator = {"tab": "\t", "\\t": "\t", "space": " "}.get(separator, separator)
        if len(separator.encode()) != 1:
            raise UsageError(f"--separator {options.separator} must be a single character.")
    return Dialect(separator, options.header, options.decimal_comma)


def load(
    name: str,
    options: TableOptions,
    terminal: Terminal,
    samples: SampleOptions | None = None,
    choice: Choice | None = None,
) -> Table:
    """Read a table as the options say, and show its notes."""
    table = read_table(
        name,
        choice or choice_of(options, samples),
        file_format=options.format,
        dialect=dialect_of(options),
    )
    for text in table.notes:
        terminal.note(f"note: {table.name}: {text}")
    return table.standardized() if samples is not None and samples.standardize else table


def load_for(
    search: SearchOptions,
    name: str,
    options: TableOptions,
    terminal: Terminal,
    samples: SampleOptions,
) -> Table:
    """Read a table; for Dask only open it, if it can stay on disk."""
    if search.engine != "dask" or not is_lazy_table(name):
        return load(name, options, terminal, samples)
    if samples.standardize:
        raise UsageError(
            "--standardize needs the table in memory; write it with standardized columns, or take "
            "--engine cpu."
        )
    return open_lazy(name, options, choice_of(options, samples))


def open_lazy(name: str, options: TableOptions, choice: Choice) -> Table:
    """Open a table that stays on disk."""
    from evomeans.engines.dask.sources import import_dask_array

    import_dask_array()
    refuse_dialect(name, dialect_of(options))
    return read_lazy_table(name, choice)


def check_table(table: Table, clusters: int) -> None:
    """Refuse what a fit would refuse, while it is clear that the table is the reason."""
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
