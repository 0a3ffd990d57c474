"""Everything that a report shows, as plain JSON."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evomeans._version import __version__
from evomeans.plotting.cluster_data import (
    column_names,
    profile_data,
    projection_data,
    standardized,
)
from evomeans.plotting.palette import cluster_colors
from evomeans.plotting.samples import Moments, fitted_rows, sample_moments
from evomeans.plotting.search_data import convergence_data

FORMAT = "evomeans report"
VERSION = 2

POINTS = 5000
SOLUTIONS = 1500
COLUMNS = 24
TELLING = 5
# Where a search is kept and who watches it: its result does not depend on them.
NOT_SETTINGS = ("checkpoint", "observers")


def report_data(
    model: Any,
    X: Any,
    *,
    title: str = "HGMeans",
    feature_names: Sequence[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    command: str = "",
    sample_weight: Any = None,
    standardization: tuple[ArrayLike, ArrayLike] | None = None,
) -> dict[str, Any]:
    """Gather what the report of a fit shows.

    Parameters
    ----------
    model : HGMeans
        Fitted.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The samples it was fitted to.
    title : str, default="HGMeans"
        What was clustered, e.g. the name of a file.
    feature_names : sequence of str, optional
        Names of the columns; by default those of the fit, or x0, x1 and so on.
    settings : mapping, optional
        How it was run, shown as it is; by default the parameters of the model.
    command : str, optional
        The command line that repeats the run.
    sample_weight : float or array-like of shape (n_samples,), optional
        The weights it was fitted with.
    standardization : (mean, scale), optional
        What was subtracted from the columns, and what they were divided by, before the fit. The
        report then shows the centres in the original units.

    Returns
    -------
    dict
        Plain JSON of a few hundred kilobytes at most, for :func:`~evomeans.report.render_report`.
    """
    X = fitted_rows(model, X)
    if X.shape[0] != len(model.labels_):
        raise ValueError(
            f"The model was fitted to {len(model.labels_)} samples, X has {X.shape[0]}; "
            "a report needs the samples of the fit."
        )
    names = [as_text(name) for name in column_names(model, feature_names, X.shape[1])]
    moments = sample_moments(X, model.labels_, model.cluster_centers_, sample_weight)
    shown = np.asarray(model.cluster_centers_, dtype=np.float64)
    if standardization is not None:
        mean, scale = map(np.asarray, standardization)
        shown = shown * scale + mean
    settings = parameters_of(model) if settings is None else settings
    return {
        "format": FORMAT,
        "version": VERSION,
        "evomeans": __version__,
        "created": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "title": as_text(title),
        "command": as_text(command),
        "python": python_snippet(
            model, X.shape, sample_weight is not None, standardization is not None
        ),
        "settings": {as_text(name): as_plain(value) for name, value in settings.items()},
        "run": _run(model, moments, X.shape),
        "convergence": {x: _convergence(model, x) for x in ("offspring", "seconds")},
        "projection": projection_part(model, X, names),
        "profiles": profiles_part(model, moments, names, shown),
        "clusters": clusters_part(model, moments, names, shown),
    }


def parameters_of(model: Any) -> dict[str, Any]:
    """Return the parameters that shape a fit, by their present names."""
    parameters = {
        name: value
        for name, value in model.get_params(deep=False).items()
        # This is how scikit-learn marks old names.
        if name not in NOT_SETTINGS and not (isinstance(value, str) and value == "deprecated")
    }
    if "max_offspring" in parameters and "max_iter" in parameters:
        # Its old name was used.
        parameters["max_offspring"] = parameters.pop("max_iter")
    return parameters


def as_plain(value: Any) -> str | int | float | bool | None:
    """Keep what JSON can hold; write the rest, NaN and infinity included, as text."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return as_text(value) if isinstance(value, str) else value
    return value if isinstance(value, float) and np.isfinite(value) else as_text(value)


def as_text(value: Any) -> str:
    """Return text that can be written as UTF-8; names of files need not be."""
    return str(value).encode("utf-8", "replace").decode("utf-8")


def _run(model: Any, moments: Moments, shape: tuple[int, int]) -> dict[str, Any]:
    """Describe the search in figures."""
    history = model.history_
    reached = history.when_best_was_found() if history else None
    founders = [record.best for record in history if record.founder and record.population == 1]
    total = float(moments.weights.sum() * np.square(moments.spread).sum())
    return {
        "n_samples": int(shape[0]),
        "n_features": int(shape[1]),
        "n_clusters": len(model.cluster_centers_),
        "n_offspring": int(model.n_iter_),
        "seconds": float(history[-1].seconds) if len(history) else 0.0,
        "inertia": float(model.inertia_),
        "first_inertia": float(history[0].inertia) if len(history) else None,
        "founders_inertia": float(founders[-1]) if founders else None,
        "n_founders": len(founders),
        "explained": max(0.0, 1.0 - float(model.inertia_) / total) if total > 0 else None,
        "last_improvement": int(reached.number) if reached else 0,
        "last_improvement_seconds": float(reached.seconds) if reached else 0.0,
        "stop_reason": str(model.stop_reason_),
        "n_rediscoveries": int(model.n_rediscoveries_),
        "levels": [int(rows) for rows in model.levels_],
    }


def _convergence(model: Any, x: Any) -> dict[str, Any]:
    data = vars(convergence_data(model.history_, x, limit=SOLUTIONS))
    return {
        name: short(value) if isinstance(value, np.ndarray) else value
        for name, value in data.items()
    }


def projection_part(model: Any, X: Any, names: list[str], limit: int = POINTS) -> dict[str, Any]:
    """Return some of the samples in the plane."""
    data = projection_data(X, model.labels_, model.cluster_centers_, names=names, limit=limit)
    return {
        "points": short(data.points.T),
        "labels": data.labels.tolist(),
        "centers": short(data.centers.T),
        "axis_names": list(data.axis_names),
    }


def profiles_part(
    model: Any, moments: Moments, names: list[str], shown: NDArray[np.float64]
) -> dict[str, Any]:
    """Return the centres, and how far they are from the mean."""
    data = profile_data(
        model.cluster_centers_,
        moments.weights,
        names,
        shown=shown,
        mean=moments.mean,
        spread=moments.spread,
        limit=COLUMNS,
    )
    return {
        "columns": data.names,
        "clusters": data.clusters.tolist(),
        "values": data.values.round(2).tolist(),
        "centers": short(data.centers),
    }


def clusters_part(
    model: Any, moments: Moments, names: list[str], shown: NDArray[np.float64]
) -> list[dict[str, Any]]:
    """Describe each cluster: how large and loose it is, and in which columns it stands out."""
    middles = np.asarray(model.cluster_centers_, dtype=np.float64)
    values = standardized(middles, moments.mean, moments.spread)
    sizes = np.bincount(model.labels_, minlength=len(middles))
    shares = moments.inertia / (moments.inertia.sum() or 1.0)
    spreads = np.sqrt(moments.inertia / np.where(moments.weights > 0, moments.weights, 1.0))
    colors = cluster_colors(middles)
    telling = np.argsort(-np.abs(values), axis=1, kind="stable")[:, :TELLING]
    return [
        {
            "color": int(colors[cluster]),
            "size": int(sizes[cluster]),
            "weight": float(moments.weights[cluster]),
            "inertia_share": float(shares[cluster]),
            "spread": float(spreads[cluster]),
            "telling": [
                {
                    "name": names[column],
                    "value": round(float(values[cluster, column]), 2),
                    "center": float(f"{shown[cluster, column]:.5g}"),
                }
                for column in telling[cluster]
                if abs(values[cluster, column]) >= 0.05
            ],
        }
        for cluster in range(len(middles))
    ]


def short(values: NDArray[np.float64]) -> list[Any]:
    """Five digits are finer than any screen, and keep the page small."""
    if values.ndim > 1:
        return [short(row) for row in values]
    return [float(f"{value:.5g}") for value in values.tolist()]


def python_snippet(model: Any, shape: tuple[int, int], weighted: bool, scaled: bool) -> str:
    """Write the Python code that repeats a fit; what cannot be written down becomes ``...``."""
    defaults = inspect.signature(type(model)).parameters
    changed = [f"n_clusters={model.n_clusters!r}"]
    for name, value in parameters_of(model).items():
        default, is_literal = defaults[name].default, _is_literal(value)
        # Only literals are compared: arrays would answer with an array.
        if name != "n_clusters" and value is not default and not (is_literal and value == default):
            changed.append(f"{name}={value!r}" if is_literal else f"{name}=...")
    name, weights = type(model).__name__, ", sample_weight=weights" if weighted else ""
    call = f"{name}({', '.join(changed)})"
    if len(call) > 80:
        call = f"{name}(\n    " + ",\n    ".join(changed) + ",\n)"
    lines = [
        f"from evomeans import {name}",
        "from sklearn.preprocessing import StandardScaler" if scaled else "",
        f"X = ...  # the samples: {shape[0]:,} rows, {shape[1]:,} columns",
        "weights = ...  # one for each sample" if weighted else "",
        f"X = StandardScaler().fit_transform(X{weights})" if scaled else "",
        f"model = {call}.fit(X{weights})",
        "print(model.inertia_)",
    ]
    return "\n".join(filter(None, lines)).replace("\nX = ...", "\n\nX = ...") + "\n"


def _is_literal(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)
