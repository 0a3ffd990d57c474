"""Tables and searches in Dask, for ``--engine dask``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from evomeans.cli.failures import CommandError, UsageError
from evomeans.cli.options import SampleOptions, SearchOptions, TableOptions
from evomeans.cli.reading import choice_of, load
from evomeans.cli.tables import Table
from evomeans.cli.terminal import Terminal
from evomeans.engines import is_dask
from evomeans.estimators.hgmeans import HGMeans
from evomeans.storage.checkpoint import CheckpointError


@contextmanager
def cluster_of(search: SearchOptions) -> Iterator[None]:
    """Work on the cluster that the options name, else on threads of this machine."""
    if search.scheduler is None:
        yield
        return
    if search.engine != "dask":
        raise UsageError("--scheduler is for --engine dask.")
    from evomeans.engines.dask.sources import import_dask_array

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
    if search.engine != "dask":
        return load(name, options, terminal, samples)
    from evomeans.cli.tables.dask_tables import is_lazy_table, read_lazy_table

    if not is_lazy_table(name):
        return load(name, options, terminal, samples)
    from evomeans.engines.dask.sources import import_dask_array

    import_dask_array()
    if samples.standardize:
        raise UsageError(
            "--standardize needs the table in memory; write it with standardized columns, or take "
            "--engine cpu."
        )
    return read_lazy_table(name, choice_of(options, samples))


def fit_to(model: HGMeans, table: Table) -> None:
    """Fit a model, and bring the labels here."""
    try:
        model.fit(table.X, sample_weight=table.weights)
    except CheckpointError as error:
        raise CommandError(str(error)) from error
    except ValueError as error:
        # Rows that stay on disk are looked at only now.
        if not is_dask(table.X):
            raise
        raise CommandError(f"{table.name}: {error}") from error
    model.labels_ = np.asarray(model.labels_)
