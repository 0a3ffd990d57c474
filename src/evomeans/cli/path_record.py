"""What is kept and shown of a path."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from evomeans.cli.options import RunOptions
from evomeans.cli.record import Run, run_record, where_written, with_report
from evomeans.cli.run_folder import MODEL, Content
from evomeans.cli.tables.table import Table
from evomeans.cli.tables.writing import centers_frame, labels_frame, table_bytes
from evomeans.estimators.path import HGMeansPath
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
    agreed = int(np.count_nonzero(model.n_rediscoveries_))
    found = f"{agreed} of {len(model.k_values_)} k: independent populations agree"
    if str(model.stop_reason_) == "proven_optimal":
        found = "one column is solved exactly for every k"
    chosen = "none was selected"
    if model.best_k_ is not None:
        select = getattr(model.select, "name", model.select)
        inertia = number_text(model.best_estimator_.inertia_)
        chosen = f"k = {model.best_k_} by {select}, inertia {inertia}"
    width = max(map(len, model.suggestions_), default=0)
    lines = [
        f"{table.name}: {counted(len(table.X), 'row')}, {counted(len(table.columns), 'column')}, "
        f"{first} to {last} clusters",
        f"  path      {found}; {duration_text(run.fit_seconds)}, seed {model.random_state}",
        f"  chosen    {chosen}",
        "  suggested",
        *(
            f"    {name:<{width}}  {'none' if k is None else k}"
            for name, k in model.suggestions_.items()
        ),
        where_written(record),
    ]
    return "\n".join(lines)
