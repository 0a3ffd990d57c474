"""``evomeans path``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from evomeans.cli.command import Command
from evomeans.cli.options import PathOptions
from evomeans.cli.tables.table import Table, all_centers, labels_frame
from evomeans.estimators.path import HGMeansPath
from evomeans.estimators.path_solving import check_path_parameters
from evomeans.plotting.path_plots import suggestion_text, trust_text
from evomeans.progress import PathDisplay
from evomeans.wording import duration_text, number_text

PASSED_ON = ("strategy", "max_time", "n_iter_no_change", "confirmations", "engine")
"""Options that are parameters of the estimator."""
SETTINGS = ("select", *PASSED_ON, "n_jobs", "random_state")


@dataclass(frozen=True)
class PathCommand(Command):
    """Finds the clusters of a table for a range of k."""

    search: PathOptions
    is_path = True

    def make(self, seed: int | None) -> HGMeansPath:
        """Return the estimator that the options describe, or refuse them."""
        search = self.search
        given: dict[str, Any] = {name: getattr(search, name) for name in PASSED_ON}
        if search.criteria is not None:
            given["criteria"] = list(search.criteria)
        if search.select is not None:
            given["select"] = None if search.select == "none" else search.select
        model = HGMeansPath(search.clusters, n_jobs=search.jobs, random_state=seed, **given)
        check_path_parameters(model)
        return model

    def display(self, model: HGMeansPath) -> PathDisplay:
        """Return the observer that shows the path."""
        return PathDisplay(self.terminal, self.search.clusters, self.search.max_time)

    def found(self, model: HGMeansPath) -> dict[str, Any]:
        """Return the settings of the path and its result, as plain JSON."""
        settings = {
            "k": [int(k) for k in model.k_range],
            "criteria": list(model.suggestions_),
            **{name: getattr(model, name) for name in SETTINGS},
        }
        result = {
            "stop_reason": str(model.stop_reason_),
            "best_k": model.best_k_,
            "suggestions": model.suggestions_,
            "k": model.k_values_.tolist(),
            "inertia": model.inertias_.tolist(),
            "n_rediscoveries": model.n_rediscoveries_.tolist(),
            "certainty": [None if math.isnan(one) else one for one in model.certainty_.tolist()],
        }
        return {"settings": settings, "result": result}

    def frames(self, model: HGMeansPath, table: Table) -> dict[str, pl.DataFrame]:
        """Return labels and centres of every k, and the criteria."""
        return {
            "labels": labels_frame(
                table, np.asarray(model.labels_path_), [f"k{k}" for k in model.k_values_]
            ),
            "centers": all_centers(
                table, {int(k): model.at(int(k)).cluster_centers_ for k in model.k_values_}
            ),
            "path": pl.DataFrame(model.results_),
        }

    def lines(self, model: HGMeansPath, record: dict[str, Any], written: str) -> list[str]:
        """Say what was found, what was ``written``, and which suggestions to trust."""
        first, last = int(model.k_values_[0]), int(model.k_values_[-1])
        spent = f"{duration_text(record['times']['fit_seconds'])}, seed {model.random_state}"
        chosen = "none was selected"
        if model.best_k_ is not None:
            inertia = number_text(model.best_estimator_.inertia_)
            unit = " in standardized units" if record["standardization"] else ""
            chosen = f"k = {model.best_k_} by {model.select}, inertia {inertia}{unit}"
        return [
            f"{first} to {last} clusters",
            f"  path      {model._certainty()}; {spent}",
            f"  chosen    {chosen}",
            "  suggested",
            *_suggested(model._suggested, last),
            f"  written   {written}",
            trust_text(model._suggested, last),
        ]


def _suggested(suggestions: dict[str, int | None], last: int) -> list[str]:
    """List which k criteria suggest."""
    width = max(map(len, suggestions), default=0)
    return [
        f"    {name:<{width}}  {suggestion_text(name, k, last).removeprefix('k = ')}"
        for name, k in suggestions.items()
    ]
