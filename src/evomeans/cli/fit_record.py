"""What is kept and shown of a fit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evomeans.cli.options import RunOptions
from evomeans.cli.record import Run, run_record, where_written, with_report
from evomeans.cli.run_folder import MODEL, Content
from evomeans.cli.tables.writing import centers_frame, history_frame, labels_frame, table_bytes
from evomeans.estimators.persistence import parameter_names, stored_parameters
from evomeans.estimators.searching import SearchingEstimator
from evomeans.wording import (
    counted,
    duration_text,
    levels_text,
    number_text,
    percent_text,
    stop_text,
)

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
        return ", which the first solution reached too"
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
        return ", ".join(f"{size:,}" for size in sizes)
    if min(sizes) == max(sizes):
        return f"{counted(sizes[0], 'row')} each"
    return f"{min(sizes):,} to {max(sizes):,} rows, {sum(sizes) / len(sizes):,.0f} on average"
