"""What is kept and shown of a fit."""

from __future__ import annotations

import json
import platform
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from evomeans._version import __version__
from evomeans.cli.info import package_versions
from evomeans.cli.options import RunOptions
from evomeans.cli.report import can_report
from evomeans.cli.run_folder import FORMAT, MODEL, RECORD, REPORT, REPORT_DATA, Content
from evomeans.cli.tables.table import Table
from evomeans.cli.tables.writing import centers_frame, history_frame, labels_frame, table_bytes
from evomeans.cli.terminal import as_typed
from evomeans.engines import is_dask
from evomeans.estimators.hgmeans import HGMeans
from evomeans.estimators.persistence import PARAMETERS, stored_parameters
from evomeans.wording import (
    counted,
    duration_text,
    levels_text,
    listed,
    number_text,
    percent_text,
    stop_text,
)

VERSION = 1
# The command line neither starts warm nor lets the estimator print.
LEFT_OUT = ("warm_start", "verbose")
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "polars")
SIZES_SHOWN = 12


@dataclass(frozen=True)
class Fit:
    """A table, the model fitted to it, and how long that took."""

    model: HGMeans
    table: Table
    started: datetime
    reading_seconds: float
    fit_seconds: float
    """By the clock."""
    cpu_seconds: float
    """By the processor."""

    @property
    def settings(self) -> dict[str, Any]:
        """The parameters of the search, by their names in Python."""
        stored = stored_parameters(self.model)
        return {PARAMETERS[name]: stored[name] for name in stored if name not in LEFT_OUT}

    @property
    def gain(self) -> float | None:
        """How far the inertia lies below that of the first solution, in percent."""
        first = self.model.history_[0].inertia if self.model.history_ else 0.0
        return 100.0 * (1.0 - self.model.inertia_ / first) if first > 0 else None


def run_record(fit: Fit, keep: RunOptions, checkpoint: Path | None) -> dict[str, Any]:
    """Return all that a run says about itself, as plain JSON."""
    model, table, history = fit.model, fit.table, fit.model.history_
    scaling = table.standardization
    sizes = np.bincount(model.labels_, minlength=len(model.cluster_centers_))
    return {
        "format": FORMAT,
        "version": VERSION,
        "evomeans": __version__,
        "command": as_typed(),
        "table": {
            "name": table.name,
            "format": table.format,
            "rows": len(table.X),
            "columns": list(table.columns),
            "named": table.named,
            "dtype": str(table.X.dtype),
            "id": table.id_name,
            "weighted": table.weights is not None,
        },
        "standardization": None if scaling is None else asdict(scaling),
        "settings": fit.settings,
        "result": {
            "inertia": model.inertia_,
            "stop_reason": str(model.stop_reason_),
            "n_iter": model.n_iter_,
            "first_inertia": history[0].inertia if history else None,
            "gain_percent": fit.gain,
            "cluster_sizes": sizes.tolist(),
        },
        "times": {
            "started": fit.started.astimezone(UTC).isoformat(timespec="seconds"),
            "reading_seconds": round(fit.reading_seconds, 3),
            "fit_seconds": round(fit.fit_seconds, 3),
            "fit_cpu_seconds": round(fit.cpu_seconds, 3),
            "search_seconds": round(history[-1].seconds, 3) if history else 0.0,
        },
        "versions": {"python": platform.python_version(), **package_versions(PACKAGES)},
        "output": None if keep.output is None else str(keep.output),
        "checkpoint": None if checkpoint is None else str(checkpoint),
        "files": [],
    }


def run_files(fit: Fit, record: dict[str, Any], keep: RunOptions) -> dict[str, Content]:
    """Return the files of a run and what they hold; the record learns their names."""
    model, table = fit.model, fit.table
    frames = {
        "labels": labels_frame(table, model.labels_),
        "centers": centers_frame(table, model.cluster_centers_),
        "history": history_frame(model.history_),
    }
    files: dict[str, Content] = {
        f"{name}.{keep.format_out}": table_bytes(frame, keep.format_out)
        for name, frame in frames.items()
    }
    files[MODEL] = model.save
    # The report is made from rows, and those of a table in Dask stay where they are.
    if not is_dask(table.X):
        data = _report_data(fit)
        files[REPORT_DATA] = as_json(data)
        if keep.report and can_report():
            from evomeans.report import render_report

            files[REPORT] = render_report(data).encode("utf-8", errors="backslashreplace")
    record["files"] = sorted([*files, RECORD])
    return files | {RECORD: as_json(record)}


def as_json(data: Any) -> bytes:
    """Write a record for people and programs."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, indent=1)
    # File names may hold bytes that are not text; JSON has the same escapes for them as Python.
    return text.encode("utf-8", errors="backslashreplace") + b"\n"


def _report_data(fit: Fit) -> dict[str, Any]:
    from evomeans.report import report_data

    model, table, scaling = fit.model, fit.table, fit.table.standardization
    settings = {
        "table": table.name,
        "rows": len(table.X),
        "columns": listed(table.columns),
        "standardized": scaling is not None,
        "weighted": table.weights is not None,
        **fit.settings,
    }
    return report_data(
        model,
        table.X,
        feature_names=list(table.columns),
        title=table.name,
        settings=settings,
        command=as_typed(),
        sample_weight=table.weights,
        standardization=None if scaling is None else (scaling.mean, scaling.scale),
    )


def summary(fit: Fit, record: dict[str, Any]) -> str:
    """Say in a few lines what was found and where it is."""
    model, table, result = fit.model, fit.table, record["result"]
    unit = " in standardized units" if table.standardization is not None else ""
    lines = [
        f"{table.name}: {counted(len(table.X), 'row')}, {counted(len(table.columns), 'column')}, "
        f"{counted(len(model.cluster_centers_), 'cluster')}",
        f"  inertia   {number_text(model.inertia_)}{unit}{_gained(fit.gain)}",
        *_how_it_ended(fit, record["times"]["search_seconds"]),
        f"  sizes     {_sizes(result['cluster_sizes'])}",
    ]
    if record["output"] is None:
        lines.append("  written   nothing; -o FOLDER keeps labels, centers, model and report")
    else:
        lines.append(f"  written   {record['output']}: {', '.join(record['files'])}")
    return "\n".join(lines)


def _gained(gain: float | None) -> str:
    if gain is None:
        return ""
    if gain < 1e-4:
        return ", which the first solution reached too"
    return f", {percent_text(gain / 100)} below the first solution"


def _how_it_ended(fit: Fit, seconds: float) -> list[str]:
    model, history = fit.model, fit.model.history_
    if not history:
        return ["  search    none needed: one column is solved exactly"]
    offspring = model.n_iter_
    since = offspring - history.when_best_was_found().number
    ended = stop_text(model.stop_reason_, offspring, since, model.n_rediscoveries_)
    spent = f"{offspring:,} offspring in {duration_text(seconds)}, seed {model.random_state}"
    lines = [spent, ended, levels_text(model.levels_)]
    labels = ["search", "", ""]
    return [f"  {label:10}{line}" for label, line in zip(labels, lines, strict=True) if line]


def _sizes(sizes: list[int]) -> str:
    if len(sizes) <= SIZES_SHOWN:
        return ", ".join(f"{size:,}" for size in sizes)
    if min(sizes) == max(sizes):
        return f"{counted(sizes[0], 'row')} each"
    return f"{min(sizes):,} to {max(sizes):,} rows, {sum(sizes) / len(sizes):,.0f} on average"
