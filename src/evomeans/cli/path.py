"""``evomeans path``."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

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
from evomeans.cli.progress import PathDisplay
from evomeans.cli.reading import check_table, load_table
from evomeans.cli.record import Asked, Run, run_record, where_written, with_report
from evomeans.cli.run_folder import MODEL, Content, write_run
from evomeans.cli.tables.opening import is_dask_table
from evomeans.cli.tables.table import Table, centers_frame, labels_frame, table_bytes
from evomeans.cli.terminal import Terminal
from evomeans.criteria import Agreement
from evomeans.engines import is_dask
from evomeans.estimators.path import HGMeansPath
from evomeans.estimators.path_solving import check_path_parameters
from evomeans.plotting.path_data import suggestion_text
from evomeans.search import StopReason
from evomeans.search.stopping import DeferredInterrupt
from evomeans.storage.state_file import CheckpointError
from evomeans.wording import counted, duration_text, number_text

SETTINGS = (
    *("strategy", "n_iter_no_change", "confirmations", "max_time"),
    *("engine", "n_jobs", "random_state"),
)


@dataclass(frozen=True)
class PathRun(Run):
    """A table and the path fitted to it."""

    model: HGMeansPath

    @property
    def settings(self) -> dict[str, Any]:
        """The parameters of the path, as plain JSON."""
        model = self.model
        select = getattr(model.select, "name", model.select)
        return {
            "k": [int(k) for k in model.k_range],
            "criteria": list(model.suggestions_),
            "select": select if select is None else str(select),
            **{name: getattr(model, name) for name in SETTINGS},
        }


def path_record(run: PathRun, keep: RunOptions, checkpoint: Path | None) -> dict[str, Any]:
    """Return all that the run of a path says about itself, as plain JSON."""
    model = run.model
    result = {
        "stop_reason": str(model.stop_reason_),
        "best_k": model.best_k_,
        "suggestions": model.suggestions_,
        "k": model.k_values_.tolist(),
        "inertia": model.inertias_.tolist(),
        "n_rediscoveries": model.n_rediscoveries_.tolist(),
    }
    return run_record(run, keep, checkpoint, result)


def path_files(run: PathRun, record: dict[str, Any], keep: RunOptions) -> dict[str, Content]:
    """Return the files of a run and what they hold; the record learns their names."""
    model, table = run.model, run.table
    labels = np.asarray(model.labels_)
    frames = {
        "labels": all_labels(table, labels, model.k_values_.tolist()),
        "centers": all_centers(table, model.cluster_centers_),
        "path": pl.DataFrame(model.results_),
    }
    files: dict[str, Content] = {
        f"{name}.{keep.format_out}": table_bytes(frame, keep.format_out)
        for name, frame in frames.items()
    }
    if model.best_k_ is not None:
        files[MODEL] = model.best_estimator_.save
    return with_report(run, files, record, keep)


def all_labels(table: Table, labels: Any, ks: list[int]) -> pl.DataFrame:
    """One line per row: its id, and its cluster for every k."""
    ids = labels_frame(table, labels[:, 0]).to_series(0)
    taken, columns = {ids.name}, [ids]
    for place, k in enumerate(ks):
        name = f"k{k}"
        while name in taken:
            name += "_"
        taken.add(name)
        columns.append(pl.Series(name, labels[:, place]))
    return pl.DataFrame(columns)


def all_centers(table: Table, centers: dict[int, Any]) -> pl.DataFrame:
    """One line per cluster of every k: k, its number, and its centre in the units of the table."""
    name = "k"
    while name in table.columns:
        name += "_"
    frames = []
    for k, own in centers.items():
        frame = centers_frame(table, own)
        frames.append(frame.insert_column(0, pl.Series(name, np.full(len(own), k, np.int64))))
    return pl.concat(frames)


def path_summary(run: PathRun, record: dict[str, Any]) -> str:
    """Say in a few lines what was found and where it is."""
    model, table = run.model, run.table
    first, last = int(model.k_values_[0]), int(model.k_values_[-1])
    # One cluster has one solution, which needs no second population.
    agreed = int(np.count_nonzero((model.n_rediscoveries_ > 0) | (model.k_values_ == 1)))
    found = f"{agreed} of {len(model.k_values_)} k: independent populations agree"
    if str(model.stop_reason_) == "proven_optimal":
        found = "one column is solved exactly for every k"
    chosen = "none was selected"
    if model.best_k_ is not None:
        select = getattr(model.select, "name", model.select)
        inertia = number_text(model.best_estimator_.inertia_)
        chosen = f"k = {model.best_k_} by {select}, inertia {inertia}"
    lines = [
        f"{table.name}: {counted(len(table.X), 'row')}, {counted(len(table.columns), 'column')}, "
        f"{first} to {last} clusters",
        f"  path      {found}; {duration_text(run.fit_seconds)}, seed {model.random_state}",
        f"  chosen    {chosen}",
        *_suggested(model.suggestions_, last),
        where_written(record),
    ]
    return "\n".join(lines)


TRUSTED = {
    "simplified_silhouette": "first (the closest on average)",
    "bic": "if clusters are round and of similar width",
}
"""The criteria to trust, and when; docs/guide/choosing-k.md has the measurements."""


def _suggested(suggestions: dict[str, int | None], last: int) -> list[str]:
    """List which k criteria suggest, and say which of them to trust."""
    # How far populations agree is a limit rather than advice.
    shown = {
        name: suggestion_text(name, k, last).removeprefix("k = ")
        for name, k in suggestions.items()
        if name != Agreement.name
    }
    width = max(map(len, shown), default=0)
    trusted = " and ".join(f"{name} {when}" for name, when in TRUSTED.items() if name in shown)
    trust = f"Trust {trusted}, but no k" if trusted else "Trust no k"
    return [
        "  suggested",
        *(f"    {name:<{width}}  {text}" for name, text in shown.items()),
        f"    {trust} at the end of the range.",
    ]


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
        known = len(unfinished.known & set(search.clusters))
        terminal.note(f"found {checkpoint}, with solutions for {known} numbers of k")
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
    display = PathDisplay(terminal, model.k_range, model.max_time)
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
