"""What is kept and shown of every run, a fit or a path."""

from __future__ import annotations

import json
import platform
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evomeans._version import __version__
from evomeans.cli.info import package_versions
from evomeans.cli.options import ModelOptions, RunOptions, SampleOptions, TableOptions
from evomeans.cli.reading import scale_notes
from evomeans.cli.report import can_report
from evomeans.cli.run_folder import FORMAT, RECORD, REPORT, REPORT_DATA, Content
from evomeans.cli.snippet import sample_code
from evomeans.cli.tables.table import Table
from evomeans.cli.terminal import as_typed
from evomeans.engines import is_dask
from evomeans.wording import listed

VERSION = 1
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "polars")


@dataclass(frozen=True)
class Asked:
    """The table that a command names, and what it says about it."""

    name: str
    read: TableOptions
    samples: SampleOptions
    model: ModelOptions


@dataclass(frozen=True)
class Run(ABC):
    """A table, the model fitted to it, and how long that took."""

    model: Any
    table: Table
    asked: Asked
    started: datetime
    reading_seconds: float
    fit_seconds: float
    """By the clock."""
    cpu_seconds: float
    """By the processor."""

    @property
    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """The parameters of the search, as plain JSON."""

    @property
    def has_report(self) -> bool:
        """Whether a report can be made: from rows, and those in Dask stay where they are."""
        return not is_dask(self.table.X) and getattr(self.model, "_is_euclidean", True)


def run_record(
    run: Run, keep: RunOptions, checkpoint: Path | None, result: dict[str, Any], **own: Any
) -> dict[str, Any]:
    """Return all that a run says about itself, as plain JSON; ``own`` is what only some say."""
    table, scaling, missing = run.table, run.table.standardization, run.table.missing
    found = table.missing_found
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
        "missing": None
        if missing is None or found is None
        else {**asdict(missing), "n_values": found.n_values, **asdict(found)},
        **own,
        "settings": run.settings,
        "result": result,
        "times": {
            "started": run.started.astimezone(UTC).isoformat(timespec="seconds"),
            "reading_seconds": round(run.reading_seconds, 3),
            "fit_seconds": round(run.fit_seconds, 3),
            "fit_cpu_seconds": round(run.cpu_seconds, 3),
        },
        "versions": {"python": platform.python_version(), **package_versions(PACKAGES)},
        "output": None if keep.output is None else str(keep.output),
        "checkpoint": None if checkpoint is None else str(checkpoint),
        "files": [],
    }


def with_report(
    run: Run, files: dict[str, Content], record: dict[str, Any], keep: RunOptions
) -> dict[str, Content]:
    """Return the files of a run with report and record; the record learns their names."""
    if run.has_report:
        data = report_of(run)
        record["result"] |= _measured(data)
        files[REPORT_DATA] = as_json(data)
        if keep.report and can_report():
            from evomeans.report import render_report

            files[REPORT] = render_report(data).encode("utf-8", errors="backslashreplace")
    record["files"] = sorted([*files, RECORD])
    return files | {RECORD: as_json(record)}


def report_of(run: Run) -> dict[str, Any]:
    """Return the data of the report."""
    from evomeans.report import report_data

    table, scaling = run.table, run.table.standardization
    settings = {
        "table": table.name,
        "rows": len(table.X),
        "columns": listed(table.columns),
        "standardized": scaling is not None,
        "weighted": table.weights is not None,
        "missing values": run.asked.samples.missing or "refused",
        **run.settings,
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
        code=sample_code(run.asked.name, run.asked.read, run.asked.samples, run.asked.model),
    )


def _measured(data: dict[str, Any]) -> dict[str, Any]:
    """Return results that only the report has measured."""
    rival = data.get("run", {}).get("kmeans")
    return {} if rival is None else {"kmeans": rival}


def where_written(record: dict[str, Any]) -> str:
    """Say where the run is, in the last line of a summary."""
    if record["output"] is None:
        return "  written   nothing; -o FOLDER keeps labels, centers, model and report"
    return f"  written   {record['output']}: {', '.join(record['files'])}"


def as_json(data: Any) -> bytes:
    """Write a record for people and programs."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, indent=1)
    # File names may hold bytes that are not text; JSON has the same escapes for them as Python.
    return text.encode("utf-8", errors="backslashreplace") + b"\n"
