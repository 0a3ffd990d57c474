"""From the options of a command to a table."""

from __future__ import annotations

import numpy as np

from evomeans.cli.failures import CommandError, UsageError
from evomeans.cli.options import SampleOptions, TableOptions
from evomeans.cli.tables.numbers import scale_note
from evomeans.cli.tables.opening import read_dask_table
from evomeans.cli.tables.preparation import MissingValues
from evomeans.cli.tables.table import Table, read_table
from evomeans.cli.terminal import Terminal
from evomeans.engines import is_dask
from evomeans.engines.rules import LARGEST_VALUE
from evomeans.estimators.validation import check_sample_weight
from evomeans.wording import counted


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
    if in_dask:
        _check_for_dask(samples, missing)
        table = read_dask_table(
            name, options, weights=samples.weights, expected=expected, usual_id=usual_id
        )
    else:
        table = read_table(
            name,
            options,
            weights=samples.weights,
            expected=expected,
            missing=missing or samples.missing,
            usual_id=usual_id,
        )
    for text in table.notes:
        terminal.note(f"note: {table.name}: {text}")
    return table.standardized() if samples.standardize else table


def _check_for_dask(samples: SampleOptions, missing: MissingValues | None) -> None:
    """Refuse what needs all rows at once."""
    if samples.standardize:
        raise UsageError(
            "--standardize needs the table in memory; write it with standardized columns, or take "
            "--engine cpu."
        )
    if samples.missing is not None or missing is not None:
        raise UsageError(
            "--missing needs the table in memory; fill or drop missing values first, or take "
            "--engine cpu."
        )


def check_table(table: Table, clusters: int, terminal: Terminal) -> None:
    """Refuse what a fit would refuse, while it is clear that the table is the reason.

    What a fit takes but may not be meant is noted.
    """
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
