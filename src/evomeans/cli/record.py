"""The record of a run: what was asked for, found and measured, and code that repeats it."""

from __future__ import annotations

import json
import platform
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evomeans._version import __version__
from evomeans.cli.info import package_versions
from evomeans.cli.options import ModelOptions, RunOptions, SampleOptions, TableOptions
from evomeans.cli.reading import scale_notes
from evomeans.cli.run_folder import FORMAT, MODEL, RECORD, REPORT, REPORT_DATA, Content, can_report
from evomeans.cli.tables.table import Table, centers_frame, history_frame, labels_frame, table_bytes
from evomeans.cli.terminal import as_typed
from evomeans.engines import is_dask
from evomeans.estimators.persistence import parameter_names, stored_parameters
from evomeans.estimators.searching import SearchingEstimator
from evomeans.wording import (
    counted,
    duration_text,
    levels_text,
    listed,
    number_text,
    percent_text,
    stop_text,
)

if TYPE_CHECKING:
    from evomeans.report.snippet import SampleCode


def sample_code(
    name: str, read: TableOptions, samples: SampleOptions, model: ModelOptions
) -> SampleCode:
    """Return the lines that read the table, and the arguments of a fit to it."""
    from evomeans.report.snippet import SampleCode

    options = {**_changed(read), **_changed(samples)}
    given = [f"{option}={value!r}" for option, value in options.items()]
    call = f"table = open_table({', '.join([repr(name), *given])})"
    if len(call) > 80:
        call = "table = open_table(\n    " + ",\n    ".join([repr(name), *given]) + ",\n)"
    arguments = ["table.X"]
    if samples.weights is not None:
        arguments.append("sample_weight=table.weights")
    links = {name: getattr(model, name) for name in ("must_link", "cannot_link")}
    links = {name: str(path) for name, path in links.items() if path is not None}
    lines = [call, *(f"{name} = read_pairs({path!r}, table)" for name, path in links.items())]
    arguments += [f"{name}={name}" for name in links]
    tools = "open_table, read_pairs" if links else "open_table"
    return SampleCode(
        imports=(f"from evomeans.cli.tables import {tools}",),
        lines=tuple(lines),
        arguments=", ".join(arguments),
    )


def _changed(options: Any) -> dict[str, Any]:
    """Return the options that differ from their defaults."""
    given = {one.name: (getattr(options, one.name), one.default) for one in fields(options)}
    return {name: value for name, (value, default) in given.items() if value != default}


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


# The command line neither starts warm nor lets the estimator print.
LEFT_OUT = ("warm_start", "verbose")
SIZES_SHOWN = 12
NEGLIGIBLE = 1e-6
"""A share of the inertia; less is rounding."""


@dataclass(frozen=True)
class Fit(Run):
    """A table and the model fitted to it."""

    model: SearchingEstimator

    @property
    def settings(self) -> dict[str, Any]:
        """The parameters of the search, by their names in Python."""
        stored = stored_parameters(self.model)
        names = parameter_names(type(self.model))
        return {names[name]: stored[name] for name in stored if name not in LEFT_OUT}

    @property
    def gain(self) -> float | None:
        """How far the inertia lies below that of the first solution, in percent."""
        first = self.model.history_[0].inertia if self.model.history_ else 0.0
        return 100.0 * (1.0 - self.model.inertia_ / first) if first > 0 else None


def fit_record(fit: Fit, keep: RunOptions, checkpoint: Path | None) -> dict[str, Any]:
    """Return all that a fit says about itself, as plain JSON."""
    model, history = fit.model, fit.model.history_
    sizes = np.bincount(model.labels_[model.labels_ >= 0], minlength=len(model.cluster_centers_))
    result = {
        "inertia": model.inertia_,
        "stop_reason": str(model.stop_reason_),
        "n_iter": model.n_iter_,
        "n_rediscoveries": model.n_rediscoveries_,
        "first_inertia": history[0].inertia if history else None,
        "gain_percent": fit.gain,
        "cluster_sizes": sizes.tolist(),
        **{name: getattr(model, f"{name}_") for name in type(model)._fitted_numbers},
    }
    record = run_record(fit, keep, checkpoint, result, model=type(model).__name__)
    record["times"]["search_seconds"] = round(history[-1].seconds, 3) if history else 0.0
    return record


def fit_files(fit: Fit, record: dict[str, Any], keep: RunOptions) -> dict[str, Content]:
    """Return the files of a fit and what they hold; the record learns their names."""
    model, table = fit.model, fit.table
    frames = {
        "labels": labels_frame(table, model.labels_),
        "history": history_frame(model.history_),
    }
    # Of a kernel, they are not in the columns of the table.
    if model.cluster_centers_.shape[1] == len(table.columns):
        frames["centers"] = centers_frame(table, model.cluster_centers_)
    files: dict[str, Content] = {
        f"{name}.{keep.format_out}": table_bytes(frame, keep.format_out)
        for name, frame in frames.items()
    }
    files[MODEL] = model.save
    return with_report(fit, files, record, keep)


def summary(fit: Fit, record: dict[str, Any]) -> str:
    """Say in a few lines what was found and where it is."""
    model, table, result = fit.model, fit.table, record["result"]
    unit = " in standardized units" if table.standardization is not None else ""
    lines = [
        f"{table.name}: {counted(len(table.X), 'row')}, {counted(len(table.columns), 'column')}, "
        f"{counted(len(model.cluster_centers_), 'cluster')}",
        f"  inertia   {number_text(model.inertia_)}{unit}{_gained(fit.gain)}",
        *_beside_kmeans(result),
        *_how_it_ended(fit, record["times"]["search_seconds"]),
        f"  sizes     {_sizes(result['cluster_sizes'])}",
        *_of_model(result),
        where_written(record),
    ]
    return "\n".join(lines)


def _of_model(result: dict[str, Any]) -> list[str]:
    """Say what only some models have to say."""
    lines = []
    if "n_outliers" in result:
        lines.append(f"  left out  {result['n_outliers']:,g} rows, labelled -1")
    if result.get("n_violations"):
        pairs = counted(result["n_violations"], "pair")
        lines.append(f"  links     {pairs} not heeded, penalty {number_text(result['penalty'])}")
    return lines


def _gained(gain: float | None) -> str:
    if gain is None:
        return ""
    if gain < 1e-4:
        return " (the first solution was already this good)"
    return f", {percent_text(gain / 100)} below the first solution"


def _beside_kmeans(result: dict[str, Any]) -> list[str]:
    """Say how scikit-learn's KMeans does on the same samples, if that was measured."""
    rival = result.get("kmeans")
    if rival is None or not result["inertia"] > 0:
        return []
    mean, best = (max(0.0, rival[name] / result["inertia"] - 1.0) for name in ("mean", "best"))
    runs = counted(rival["runs"], "run")
    if best < NEGLIGIBLE:
        few = "" if rival["as_good"] == rival["runs"] else f"{rival['as_good']} of "
        text = f"as low in {few}{runs} of scikit-learn"
    else:
        text = f"{percent_text(best)} higher in the best of {runs} of scikit-learn"
    average = f", {percent_text(mean)} higher on average" if mean >= NEGLIGIBLE else ""
    return [f"  KMeans    {text}{average}"]


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
        return ", ".join(f"{size:,}" for size in sorted(sizes))
    if min(sizes) == max(sizes):
        return f"{counted(sizes[0], 'row')} each"
    return f"{min(sizes):,} to {max(sizes):,} rows, {sum(sizes) / len(sizes):,.0f} on average"
