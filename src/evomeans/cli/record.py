"""The record of a run: what was asked for, found and measured."""

from __future__ import annotations

import json
import platform
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evomeans._version import __version__
from evomeans.cli.info import package_versions
from evomeans.cli.run_folder import FORMAT, MODEL, RECORD, REPORT, REPORT_DATA, Content, can_report
from evomeans.cli.tables.table import Table, scale_notes, table_bytes
from evomeans.cli.terminal import as_typed
from evomeans.engines import is_dask
from evomeans.wording import counted, listed

if TYPE_CHECKING:
    from evomeans.cli.command import Command


VERSION = 1
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "polars")


@dataclass(frozen=True)
class Run:
    """A command, the table it read, the model fitted to it, and how long that took."""

    command: Command
    model: Any
    table: Table
    started: datetime
    reading_seconds: float
    fit_seconds: float
    """By the clock."""
    cpu_seconds: float
    """By the processor."""

    @property
    def unit(self) -> str:
        """The unit of the inertia, if it is not that of the table."""
        return " in standardized units" if self.table.standardization is not None else ""


def run_record(run: Run, checkpoint: Path | None) -> dict[str, Any]:
    """Return all that a run says about itself, as plain JSON."""
    command, model, table = run.command, run.model, run.table
    scaling, missing = table.standardization, table.missing
    output, history = command.keep.output, getattr(model, "history_", None)
    own, searching = {}, {}
    if history is not None:
        own = {"model": type(model).__name__}
        searching = {"search_seconds": round(search_seconds(model), 3)}
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
        "missing": missing and {**asdict(missing), "n_values": sum(missing.columns.values())},
        **own,
        "settings": command.settings(model),
        "result": command.result(model),
        "times": {
            "started": run.started.astimezone(UTC).isoformat(timespec="seconds"),
            "reading_seconds": round(run.reading_seconds, 3),
            "fit_seconds": round(run.fit_seconds, 3),
            "fit_cpu_seconds": round(run.cpu_seconds, 3),
            **searching,
        },
        "versions": {"python": platform.python_version(), **package_versions(PACKAGES)},
        "output": None if output is None else str(output),
        "checkpoint": None if checkpoint is None else str(checkpoint),
        "files": [],
    }


def search_seconds(model: Any) -> float:
    """Return how long the search of a model took, without preparations."""
    return float(model.history_[-1].seconds) if model.history_ else 0.0


def run_files(run: Run, record: dict[str, Any]) -> dict[str, Content]:
    """Return the files of a run and what they hold; the record learns their names."""
    command, keep = run.command, run.command.keep
    files: dict[str, Content] = {
        f"{name}.{keep.format_out}": table_bytes(frame, keep.format_out)
        for name, frame in command.frames(run.model, run.table).items()
    }
    if (model := command.kept_model(run.model)) is not None:
        files[MODEL] = model.save
    # A report needs rows, and those in Dask stay where they are.
    if not is_dask(run.table.X) and getattr(run.model, "_is_euclidean", True):
        data = report_of(run)
        if (rival := data.get("run", {}).get("kmeans")) is not None:
            # Only the report has measured it.
            record["result"]["kmeans"] = rival
        files[REPORT_DATA] = as_json(data)
        if keep.report and can_report():
            from evomeans.report import render_report

            files[REPORT] = render_report(data).encode("utf-8", errors="backslashreplace")
    record["files"] = sorted([*files, RECORD])
    return files | {RECORD: as_json(record)}


def report_of(run: Run) -> dict[str, Any]:
    """Return the data of the report."""
    from evomeans.report import report_data

    command, table, scaling = run.command, run.table, run.table.standardization
    settings = {
        "table": table.name,
        "rows": len(table.X),
        "columns": listed(table.columns),
        "standardized": scaling is not None,
        "weighted": table.weights is not None,
        "missing values": command.samples.missing or "refused",
        **command.settings(run.model),
    }
    ids = table.ids
    if ids is None and table.rows is not None:
        ids = table.rows + 1
    return report_data(
        run.model,
        table.X,
        feature_names=list(table.columns),
        title=Path(table.name).name,
        settings=settings,
        command=as_typed(),
        sample_weight=table.weights,
        standardization=None if scaling is None else (scaling.mean, scaling.scale),
        sample_names=None if ids is None else list(map(str, ids)),
        sample_label=table.id_name or "row",
        notes=[*table.notes, *scale_notes(table)],
    )


def summary(run: Run, record: dict[str, Any]) -> str:
    """Say in a few lines what was found and where it is."""
    table, command = run.table, run.command
    written = "nothing; -o FOLDER keeps labels, centers, model and report"
    if record["output"] is not None:
        written = f"{record['output']}: {', '.join(record['files'])}"
    first, *others = command.lines(run, record)
    size = f"{counted(len(table.X), 'row')}, {counted(len(table.columns), 'column')}"
    lines = [f"{table.name}: {size}, {first}", *others, f"  written   {written}"]
    return "\n".join(filter(None, [*lines, command.closing(run.model)]))


def as_json(data: Any) -> bytes:
    """Write a record for people and programs."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, indent=1)
    # File names may hold bytes that are not text; JSON has the same escapes for them as Python.
    return text.encode("utf-8", errors="backslashreplace") + b"\n"
