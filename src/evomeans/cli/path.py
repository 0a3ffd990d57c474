"""``evomeans path``."""

from __future__ import annotations

import secrets
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evomeans.cli.checkpoints import (
    UnfinishedPath,
    checkpoint_path,
    find_unfinished_path,
    how_to_resume,
    where_it_is_kept,
)
from evomeans.cli.failures import CommandError, ExitCode, UsageError, reason_of
from evomeans.cli.fit import check_gpu, check_output, cluster_of, name_features
from evomeans.cli.options import ModelOptions, PathOptions, RunOptions, SampleOptions, TableOptions
from evomeans.cli.path_progress import PathDisplay
from evomeans.cli.path_record import PathRun, path_files, path_record, path_summary
from evomeans.cli.reading import check_table, load_table
from evomeans.cli.record import Asked
from evomeans.cli.run_folder import write_run
from evomeans.cli.tables.dask_tables import is_dask_table
from evomeans.cli.tables.table import Table
from evomeans.cli.terminal import Terminal
from evomeans.engines import is_dask
from evomeans.estimators.path import HGMeansPath
from evomeans.estimators.path_parameters import check_path_parameters
from evomeans.search import StopReason
from evomeans.search.interrupts import DeferredInterrupt
from evomeans.storage.state_file import CheckpointError

PASSED_ON = ("strategy", "max_time", "n_iter_no_change", "confirmations", "engine")
"""Options that are parameters of the estimator."""


def path_of_table(
    name: str,
    search: PathOptions,
    read: TableOptions,
    samples: SampleOptions,
    keep: RunOptions,
    terminal: Terminal,
) -> int:
    """Read a table, search the path, write the run, show it, and return the exit code."""
    # Whatever can be refused is refused before the search, which may take hours.
    checkpoint = checkpoint_path(keep)
    unfinished = find_unfinished_path(checkpoint, keep)
    check_output(keep, unfinished)
    model = make_path(search, unfinished)
    if unfinished is not None:
        terminal.note(f"found {checkpoint}, with solutions for {unfinished.n_known} numbers of k")
    elif keep.resume:
        terminal.note(f"note: there is no checkpoint {checkpoint}; a new path begins")
    in_dask = search.engine == "dask" and is_dask_table(name)
    with cluster_of(search):
        began = time.perf_counter()
        table = load_table(name, read, terminal, samples, in_dask=in_dask)
        check_table(table, search.clusters[-1], terminal)
        # Only now is it known that there are not more of them than rows.
        model.set_params(k_range=list(search.clusters))
        reading_seconds = time.perf_counter() - began
        started = datetime.now(UTC)
        times = _search(model, table, checkpoint, unfinished, terminal)
    asked = Asked(name, read, samples, ModelOptions())
    run = PathRun(model, table, asked, started, reading_seconds, *times)
    interrupted = model.stop_reason_ == StopReason.INTERRUPTED
    # A checkpoint without --checkpoint is kept only as long as it is needed.
    needed = checkpoint is not None and (keep.checkpoint is not None or interrupted)
    record = path_record(run, keep, checkpoint if needed else None)
    if keep.output is not None:
        _write(keep.output, run, record, keep, checkpoint)
    if checkpoint is not None and not needed:
        checkpoint.unlink(missing_ok=True)
    terminal.result(record, path_summary(run, record))
    if interrupted:
        terminal.warn(how_to_resume(checkpoint, name, model))
    return ExitCode.INTERRUPTED if interrupted else ExitCode.DONE


def make_path(search: PathOptions, unfinished: UnfinishedPath | None = None) -> HGMeansPath:
    """Return the estimator that the options describe."""
    if search.engine == "gpu":
        check_gpu()
    seed = search.seed
    if seed is None:
        seed = secrets.randbelow(2**32) if unfinished is None else unfinished.seed
    given: dict[str, Any] = {name: getattr(search, name) for name in PASSED_ON}
    if search.criteria is not None:
        given["criteria"] = list(search.criteria)
    if search.select is not None:
        given["select"] = None if search.select == "none" else search.select
    model = HGMeansPath(search.clusters, n_jobs=search.jobs, random_state=seed, **given)
    try:
        check_path_parameters(model)
    except (TypeError, ValueError) as error:
        raise UsageError(str(error)) from error
    return model


def _search(
    model: HGMeansPath,
    table: Table,
    checkpoint: Path | None,
    unfinished: UnfinishedPath | None,
    terminal: Terminal,
) -> tuple[float, float]:
    """Fit the path; return the time that took, by the clock and by the processor."""
    if checkpoint is not None:
        checkpoint.parent.mkdir(parents=True, exist_ok=True)
        if unfinished is None:
            checkpoint.unlink(missing_ok=True)
    display = PathDisplay(terminal, model.max_time)
    model.set_params(checkpoint=checkpoint, observers=[display])
    began = time.perf_counter(), time.process_time()
    with terminal.noting_warnings("fit was interrupted"), display.shown():
        try:
            model.fit(table.X, sample_weight=table.weights)
        except CheckpointError as error:
            raise CommandError(str(error)) from error
        except ValueError as error:
            # Rows that stay on disk are looked at only now.
            if not is_dask(table.X):
                raise
            raise CommandError(f"{table.name}: {error}") from error
    times = time.perf_counter() - began[0], time.process_time() - began[1]
    model.set_params(checkpoint=None, observers=None)
    return times


def _write(
    folder: Path,
    run: PathRun,
    record: dict[str, Any],
    keep: RunOptions,
    checkpoint: Path | None,
) -> None:
    # A first signal is ignored in here: the search is over, and its result must not be lost.
    with DeferredInterrupt():
        if run.model.best_k_ is not None:
            name_features(run.model.best_estimator_, run.table)
        try:
            write_run(folder, path_files(run, record, keep))
        except OSError as error:
            text = f"{folder} could not be written: {reason_of(error)}."
            text += where_it_is_kept(checkpoint, run.model)
            raise CommandError(text) from error
