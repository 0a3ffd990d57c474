"""``evomeans fit`` and ``evomeans path``."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import polars as pl

from evomeans.cli.command import Command, search_seconds
from evomeans.cli.options import ModelOptions, PathOptions, SearchOptions
from evomeans.cli.tables.table import (
    Table,
    all_centers,
    centers_frame,
    history_frame,
    labels_frame,
    read_pairs,
)
from evomeans.cli.terminal import UsageError
from evomeans.estimators.hgmeans import HGMeans
from evomeans.estimators.parameters import check_parameters, check_search_settings
from evomeans.estimators.path import HGMeansPath
from evomeans.estimators.path_solving import check_path_parameters
from evomeans.estimators.persistence import model_class, stored_parameters
from evomeans.estimators.searching import SearchingEstimator
from evomeans.plotting.path_plots import suggestion_text, trust_text
from evomeans.progress import PathDisplay, SearchDisplay
from evomeans.wording import (
    counted,
    duration_text,
    levels_text,
    number_text,
    percent_text,
    probability_text,
    stop_text,
)

PASSED_ON = (
    *("strategy", "max_time", "max_offspring", "n_iter_no_change", "target_inertia"),
    *("certainty", "min_population", "max_population", "subsample"),
)
"""Options that are parameters of the estimator, which has its own defaults for them."""
LEFT_OUT = ("warm_start", "verbose")
"""Parameters without an option: the command line neither starts warm nor lets models print."""
SIZES_SHOWN = 12
NEGLIGIBLE = 1e-6
"""A share of the inertia; less is rounding."""


@dataclass(frozen=True)
class FitCommand(Command):
    """Finds the clusters of a table."""

    search: SearchOptions
    model: ModelOptions
    is_path = False

    def make(self, seed: int | None) -> SearchingEstimator:
        """Return the estimator that the options describe, or refuse them."""
        search = self.search
        kind, own = chosen_model(self.model)
        given = ((name, getattr(search, name)) for name in PASSED_ON)
        chosen: dict[str, Any] = {name: value for name, value in given if value is not None}
        if kind is HGMeans:
            own["engine"] = search.engine
            if search.subsample == "all":
                chosen["subsample"] = None
        elif search.engine not in ("auto", "cpu"):
            raise UsageError(f"--engine {search.engine} is for plain k-means; leave it out.")
        elif search.subsample is not None:
            raise UsageError("--subsample is for plain k-means; leave it out.")
        make = kind.fast if search.fast else kind
        parameters = {"n_jobs": search.jobs, "random_state": seed, **chosen, **own}
        model: SearchingEstimator = make(search.clusters, **parameters)
        check_parameters(model)
        return model

    def arguments(self, table: Table) -> dict[str, Any]:
        """Read the pairs of rows that the options name."""
        files = {"must_link": self.model.must_link, "cannot_link": self.model.cannot_link}
        return {name: read_pairs(path, table) for name, path in files.items() if path is not None}

    def display(self, model: SearchingEstimator) -> SearchDisplay:
        """Return the observer that shows the search."""
        return SearchDisplay(self.terminal, check_search_settings(model), model.n_clusters)

    def found(self, model: SearchingEstimator) -> dict[str, Any]:
        """Return the settings of the search and its result, as plain JSON."""
        stored = stored_parameters(model)
        labels, first = np.asarray(model.labels_), None
        sizes = np.bincount(labels[labels >= 0], minlength=len(model.cluster_centers_))
        if model.history_:
            first = model.history_[0].inertia
        result = {
            "inertia": model.inertia_,
            "stop_reason": str(model.stop_reason_),
            "n_iter": model.n_iter_,
            "n_rediscoveries": model.n_rediscoveries_,
            "certainty": None if math.isnan(model.certainty_) else model.certainty_,
            "first_inertia": first,
            "gain_percent": 100.0 * (1.0 - model.inertia_ / first) if first else None,
            "cluster_sizes": sizes.tolist(),
            **{name: getattr(model, f"{name}_") for name in type(model)._fitted_numbers},
        }
        settings = {name: value for name, value in stored.items() if name not in LEFT_OUT}
        return {"settings": settings, "result": result}

    def frames(self, model: SearchingEstimator, table: Table) -> dict[str, pl.DataFrame]:
        """Return labels, history and centres."""
        return {
            "labels": labels_frame(table, np.asarray(model.labels_)),
            "history": history_frame(model.history_),
            "centers": centers_frame(table, model.cluster_centers_),
        }

    def lines(self, model: SearchingEstimator, record: dict[str, Any], written: str) -> list[str]:
        """Say what was found, and what was ``written``."""
        result = record["result"]
        unit = " in standardized units" if record["standardization"] else ""
        gain, gained = result["gain_percent"], ""
        if gain is not None:
            gained = f", {percent_text(gain / 100)} below the first solution"
            gained = " (the first solution was already this good)" if gain < 1e-4 else gained
        return [
            counted(len(model.cluster_centers_), "cluster"),
            f"  inertia   {number_text(model.inertia_)}{unit}{gained}",
            *_beside_kmeans(result),
            *_how_it_ended(model),
            f"  sizes     {_sizes(result['cluster_sizes'])}",
            *_of_model(result),
            f"  written   {written}",
        ]


MODELS = {
    "ConstrainedHGMeans": ("size_min", "size_max", "penalty", "must_link", "cannot_link"),
    "TrimmedHGMeans": ("outliers",),
    "SphericalHGMeans": ("metric",),
}
"""Models other than plain k-means, and their options."""
NO_PARAMETERS = ("must_link", "cannot_link", "metric")


def chosen_model(options: ModelOptions) -> tuple[Any, dict[str, Any]]:
    """Return the class that the options ask for, and the parameters that only it has."""
    given = [one.name for one in fields(options) if getattr(options, one.name) != one.default]
    asked = {model: [name for name in given if name in own] for model, own in MODELS.items()}
    wanted = [model for model, names in asked.items() if names]
    if len(wanted) > 1:
        first, second = (f"--{asked[model][0].replace('_', '-')}" for model in wanted[:2])
        raise UsageError(
            f"{first} and {second} cannot be given together, because each makes another model."
        )
    if not wanted:
        return HGMeans, {}
    if options.penalty is not None and options.must_link is None and options.cannot_link is None:
        raise UsageError("--penalty is for pairs; give --must-link or --cannot-link too.")
    (model,) = wanted
    own = [name for name in MODELS[model] if name not in NO_PARAMETERS]
    named = {"n_outliers" if name == "outliers" else name: getattr(options, name) for name in own}
    return model_class(model), named


def _of_model(result: dict[str, Any]) -> list[str]:
    """Say what only some models have to say."""
    lines = []
    if "n_outliers" in result:
        lines.append(f"  left out  {result['n_outliers']:,g} rows, labelled -1")
    if result.get("n_violations"):
        pairs = counted(result["n_violations"], "pair")
        lines.append(f"  links     {pairs} violated, penalty {number_text(result['penalty'])}")
    return lines


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


def _how_it_ended(model: SearchingEstimator) -> list[str]:
    history, seconds = model.history_, search_seconds(model)
    if not history:
        return ["  search    none needed: one column is solved exactly"]
    offspring = model.n_iter_
    since = offspring - history.when_best_was_found().number
    ended = stop_text(model.stop_reason_, offspring, since, model.n_rediscoveries_)
    spent = f"{offspring:,} offspring in {duration_text(seconds)}, seed {model.random_state}"
    lines = [spent, ended, probability_text(model.certainty_), levels_text(model.levels_)]
    labels = ["search", "", "", ""]
    return [f"  {label:10}{line}" for label, line in zip(labels, lines, strict=True) if line]


def _sizes(sizes: list[int]) -> str:
    if len(sizes) <= SIZES_SHOWN:
        return ", ".join(f"{size:,}" for size in sorted(sizes))
    if min(sizes) == max(sizes):
        return f"{counted(sizes[0], 'row')} each"
    return f"{min(sizes):,} to {max(sizes):,} rows, {sum(sizes) / len(sizes):,.0f} on average"


PATH_PARAMETERS = ("strategy", "max_time", "n_iter_no_change", "confirmations", "engine")
"""Options that are parameters of the estimator of a path."""
SETTINGS = ("select", *PATH_PARAMETERS, "n_jobs", "random_state")


@dataclass(frozen=True)
class PathCommand(Command):
    """Finds the clusters of a table for a range of k."""

    search: PathOptions
    is_path = True

    def make(self, seed: int | None) -> HGMeansPath:
        """Return the estimator that the options describe, or refuse them."""
        search = self.search
        given: dict[str, Any] = {name: getattr(search, name) for name in PATH_PARAMETERS}
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
            *_suggested(model.suggestions_, last),
            f"  written   {written}",
            trust_text(model.suggestions_, last),
        ]


def _suggested(suggestions: dict[str, int | None], last: int) -> list[str]:
    """List which k criteria suggest."""
    width = max(map(len, suggestions), default=0)
    return [
        f"    {name:<{width}}  {suggestion_text(k, last).removeprefix('k = ')}"
        for name, k in suggestions.items()
    ]
