"""Everything that the report of a path shows, as plain JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evomeans._version import __version__
from evomeans.plotting.cluster_data import column_names
from evomeans.plotting.path_data import Clustergram, PathCurves, clustergram_data, path_curves
from evomeans.plotting.path_plots import check_path
from evomeans.plotting.samples import as_rows, sample_moments
from evomeans.report.data import (
    as_plain,
    as_text,
    clusters_part,
    parameters_of,
    profiles_part,
    projection_part,
    short,
)

FORMAT = "evomeans path report"
VERSION = 1
# All k have a map of their own.
POINTS = 1500
# A clustergram of more flows than this is too large for a page, and shows nothing.
MOST_FLOWS = 40_000


def path_report_data(
    path: Any,
    X: Any,
    *,
    title: str = "HGMeansPath",
    feature_names: Sequence[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    command: str = "",
    sample_weight: Any = None,
    standardization: tuple[ArrayLike, ArrayLike] | None = None,
) -> dict[str, Any]:
    """Gather what the report of a path shows.

    Parameters
    ----------
    path : HGMeansPath
        Fitted.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The samples it was fitted to.
    title, feature_names, settings, command, sample_weight, standardization
        As in :func:`~evomeans.report.report_data`.

    Returns
    -------
    dict
        Plain JSON, for :func:`~evomeans.report.render_report`.
    """
    check_path(path)
    rows = as_rows(X)
    flows = clustergram_data(path, rows)
    names = [as_text(name) for name in column_names(path, feature_names, rows.shape[1])]
    settings = parameters_of(path) if settings is None else settings
    models = {
        str(k): _model(path.at(int(k)), rows, names, sample_weight, standardization)
        for k in path.k_values_
    }
    return {
        "format": FORMAT,
        "version": VERSION,
        "evomeans": __version__,
        "created": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "title": as_text(title),
        "command": as_text(command),
        "settings": {as_text(name): as_plain(value) for name, value in settings.items()},
        "n_samples": int(rows.shape[0]),
        "n_features": int(rows.shape[1]),
        "stop_reason": str(path.stop_reason_),
        "select": as_text(getattr(path.select, "name", path.select)),
        "best_k": path.best_k_,
        "shown_k": path.best_k_ or int(path.k_values_[0]),
        "curves": _curves(path_curves(path)),
        "clustergram": _flows(flows) if sum(one.size for one in flows.flows) < MOST_FLOWS else None,
        "models": models,
    }


def _model(
    model: Any,
    X: Any,
    names: list[str],
    sample_weight: Any,
    standardization: tuple[ArrayLike, ArrayLike] | None,
) -> dict[str, Any]:
    moments = sample_moments(X, model.labels_, model.cluster_centers_, sample_weight)
    shown = np.asarray(model.cluster_centers_, dtype=np.float64)
    if standardization is not None:
        mean, scale = map(np.asarray, standardization)
        shown = shown * scale + mean
    return {
        "run": {"n_features": X.shape[1]},
        "inertia": float(model.inertia_),
        "n_rediscoveries": int(model.n_rediscoveries_),
        "projection": projection_part(model, X, names, limit=POINTS),
        "profiles": profiles_part(model, moments, names, shown),
        "clusters": clusters_part(model, moments, names, shown),
    }


def _curves(curves: PathCurves) -> dict[str, Any]:
    def numbers(values: NDArray[Any] | None) -> list[float | None] | None:
        if values is None:
            return None
        return [float(value) if np.isfinite(value) else None for value in values]

    return {
        "k": curves.k_values.tolist(),
        "inertia": numbers(curves.inertia.values),
        "reference": numbers(curves.reference),
        "reference_errors": numbers(curves.reference_errors),
        "is_confirmed": curves.is_confirmed.tolist(),
        "criteria": [
            {
                "name": one.name,
                "title": one.title,
                "values": numbers(one.values),
                "errors": numbers(one.errors),
                "choice": one.choice,
            }
            for one in curves.criteria
        ],
    }


def _flows(data: Clustergram) -> dict[str, Any]:
    return {
        "places": [short(one) for one in data.places],
        "sizes": [one.tolist() for one in data.sizes],
        "flows": [one.tolist() for one in data.flows],
    }
