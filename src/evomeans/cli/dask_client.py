"""Tables and searches in Dask, for ``--engine dask``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from evomeans.cli.failures import CommandError, UsageError
from evomeans.cli.options import SampleOptions, SearchOptions, TableOptions
from evomeans.cli.reading import choice_of, dialect_of, load
from evomeans.cli.tables.dask_tables import is_lazy_table, read_lazy_table
from evomeans.cli.tables.readers import refuse_dialect
from evomeans.cli.tables.table import Choice, Table
from evomeans.cli.terminal import Terminal
from evomeans.engines.dask.sources import import_dask_array


@contextmanager
def cluster_of(search: SearchOptions) -> Iterator[None]:
    """Work on the cluster that the options name, else on threads of this machine."""
    if search.scheduler is None:
        yield
        return
    if search.engine != "dask":
        raise UsageError("--scheduler is for --engine dask.")
    import_dask_array()
    from distributed import Client

    try:
        client = Client(search.scheduler)
    except (OSError, TimeoutError, ValueError) as error:
        raise CommandError(
            f"There is no Dask scheduler at {search.scheduler}: {error}. Start one with: "
            "dask scheduler"
        ) from error
    with client:
        yield


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
    import_dask_array()
    refuse_dialect(name, dialect_of(options))
    return read_lazy_table(name, choice)
