"""All that a report tells, gathered as plain JSON."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans._version import __version__
from evomeans.plotting.cluster_data import (
    column_names,
    profile_data,
    projection_data,
    standardized,
)
from evomeans.plotting.palette import cluster_colors
from evomeans.plotting.samples import Moments, as_rows, sample_moments
from evomeans.plotting.search_data import convergence_data

FORMAT = "evomeans report"
VERSION = 1

POINTS = 5000
SOLUTIONS = 1500
COLUMNS = 24
TELLING = 5


def report_data(
    model: Any,
    X: Any,
    *,
    feature_names: Sequence[str] | None,
    title: str,
    settings: Mapping[str, Any],
    command: str,
    sample_weight: Any = None,
    centers: Any = None,
    python: str | None = None,
) -> dict[str, Any]:
    """Gather what the report of a fit tells.

    Parameters
    ----------
    model : HGMeans
        Fitted.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The samples it was fitted to.
    feature_names : sequence of str or None
        Names of the columns; None means those of the fit, or x0, x1 and so on.
    title : str
        What was clustered, e.g. the name of a file.
    settings : mapping
        What the reader should know about how it was run; shown as it is. Values that are no
        numbers, truth values or None become text.
    command : str
        The command line that repeats the run; empty if there is none.
    sample_weight : float or array-like of shape (n_samples,), optional
        The weights it was fitted with.
    centers : array of shape (n_clusters, n_features), optional
        The centres in the units to be shown, if the model was fitted to scaled samples.
    python : str, optional
        Python code that repeats the run; by default it is made from the model's parameters.

    Returns
    -------
    dict
        Plain JSON of a few hundred kilobytes at most, for :func:`~evomeans.report.render_report`.
    """
    X = as_rows(X)
    if X.shape[0] != len(model.labels_):
        raise ValueError(
            f"The model was fitted to {len(model.labels_)} samples, X has {X.shape[0]}; "
            "a report needs the samples of the fit."
        )
    names = [_text(name) for name in column_names(model, feature_names, X.shape[1])]
    moments = sample_moments(X, model.labels_, model.cluster_centers_, sample_weight)
    shown = np.asarray(model.cluster_centers_ if centers is None else centers, dtype=np.float64)
    return {
        "format": FORMAT,
        "version": VERSION,
        "evomeans": __version__,
        "created": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "title": _text(title),
        "command": _text(command),
        "python": python_snippet(model, X.shape) if python is None else _text(python),
        "settings": {_text(name): _plain(value) for name, value in settings.items()},
        "run": _run(model, moments, X.shape),
        "convergence": {x: _convergence(model, x) for x in ("offspring", "seconds")},
        "projection": _projection(model, X, names),
        "profiles": _profiles(model, moments, names, shown),
        "clusters": _clusters(model, moments, names, shown),
    }


def _plain(value: Any) -> str | int | float | bool | None:
    """Keep what JSON knows, write the rest as text; NaN and infinity too."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return _text(value) if isinstance(value, str) else value
    return value if isinstance(value, float) and np.isfinite(value) else _text(value)


def _text(value: Any) -> str:
    """Return text that can be written as UTF-8; names of files need not be."""
    return str(value).encode("utf-8", "replace").decode("utf-8")


def _run(model: Any, moments: Moments, shape: tuple[int, int]) -> dict[str, Any]:
    """Tell the search in figures."""
    history = model.history_
    best = np.asarray(history.column("best"), dtype=np.float64)
    # The same threshold as for the patience of the search.
    improved = np.flatnonzero(best[1:] < best[:-1] * (1 - 1e-10)) + 1
    last = history[int(improved[-1]) if len(improved) else 0] if len(history) else None
    founders = [record.best for record in history if record.number == 0]
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
        "last_improvement": int(last.number) if last else 0,
        "last_improvement_seconds": float(last.seconds) if last else 0.0,
        "stop_reason": str(model.stop_reason_),
    }


def _convergence(model: Any, x: Any) -> dict[str, Any]:
    data = convergence_data(model.history_, x, limit=SOLUTIONS)
    return {
        "x": _short(data.x),
        "gap": _short(data.gap),
        "step_x": _short(data.step_x),
        "step_gap": _short(data.step_gap),
        "floor": data.floor,
        "unit": data.unit,
    }


def _projection(model: Any, X: Any, names: list[str]) -> dict[str, Any]:
    centers = model.cluster_centers_
    data = projection_data(X, model.labels_, centers, names=names, limit=POINTS)
    return {
        "points": [_short(column) for column in data.points.T],
        "labels": data.labels.tolist(),
        "centers": [_short(column) for column in data.centers.T],
        "axis_names": list(data.axis_names),
        "view": [list(limits) for limits in data.view(1.2)],
    }


def _profiles(
    model: Any, moments: Moments, names: list[str], shown: NDArray[np.float64]
) -> dict[str, Any]:
    data = profile_data(
        model.cluster_centers_,
        moments.weights,
        list(map(str, range(len(names)))),
        mean=moments.mean,
        spread=moments.spread,
        limit=COLUMNS,
    )
    columns = [int(index) for index in data.names]
    return {
        "columns": [names[index] for index in columns],
        "clusters": data.clusters.tolist(),
        "values": [np.round(row, 2).tolist() for row in data.values],
        "centers": [_short(row) for row in shown[data.clusters][:, columns]],
    }


def _clusters(
    model: Any, moments: Moments, names: list[str], shown: NDArray[np.float64]
) -> list[dict[str, Any]]:
    """One entry per cluster: how large, how loose, and in which columns it stands out."""
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


def _short(values: NDArray[np.float64]) -> list[float]:
    """Five digits are finer than any screen, and keep the page small."""
    return [float(f"{value:.5g}") for value in values.tolist()]


def python_snippet(model: Any, shape: tuple[int, int]) -> str:
    """Write the Python code that repeats a fit; what cannot be written down becomes ``...``."""
    defaults = inspect.signature(type(model)).parameters
    changed = [
        f"{name}={value!r}" if _is_literal(value) else f"{name}=..."
        for name, value in model.get_params(deep=False).items()
        if name == "n_clusters" or _differs(value, defaults[name].default)
    ]
    changed.sort(key=lambda text: not text.startswith("n_clusters="))
    call = f"{type(model).__name__}({', '.join(changed)})"
    if len(call) > 80:
        call = f"{type(model).__name__}(\n    " + ",\n    ".join(changed) + ",\n)"
    return (
        f"from evomeans import {type(model).__name__}\n\n"
        f"X = ...  # the samples: {shape[0]:,} rows, {shape[1]:,} columns\n"
        f"model = {call}.fit(X)\n"
        "print(model.inertia_)\n"
    )


def _differs(value: Any, default: Any) -> bool:
    # Only literals are compared: arrays would answer with an array.
    return value is not default and not (_is_literal(value) and value == default)


def _is_literal(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)
