"""What only the report of a path shows: curves over k, a clustergram, and every model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.plotting.path_data import Clustergram, PathCurves, clustergram_data, path_curves
from evomeans.plotting.path_plots import check_path
from evomeans.report.clusters import model_parts
from evomeans.report.plain import as_text, short
from evomeans.report.samples import Samples

FORMAT = "evomeans path report"
VERSION = 2
# All k have a map of their own.
POINTS = 1500
# A clustergram of more flows than this is too large for a page, and shows nothing.
MOST_FLOWS = 40_000


def path_parts(path: Any, samples: Samples) -> dict[str, Any]:
    """Gather what the report of a path shows."""
    check_path(path)
    flows = clustergram_data(path, samples.X)
    return {
        "format": FORMAT,
        "version": VERSION,
        "n_samples": int(samples.X.shape[0]),
        "n_features": int(samples.X.shape[1]),
        "stop_reason": str(path.stop_reason_),
        "select": as_text(getattr(path.select, "name", path.select)),
        "best_k": path.best_k_,
        "shown_k": path.best_k_ or int(path.k_values_[0]),
        "curves": _curves(path_curves(path)),
        "clustergram": _flows(flows) if sum(one.size for one in flows.flows) < MOST_FLOWS else None,
        "models": {str(k): _model(path.at(int(k)), samples) for k in path.k_values_},
    }


def _model(model: Any, samples: Samples) -> dict[str, Any]:
    parts = model_parts(model, samples, samples.moments(model), POINTS)
    # One for each k would make a large page.
    del parts["examples"]
    return {
        "run": {"n_features": samples.X.shape[1]},
        "inertia": float(model.inertia_),
        "n_rediscoveries": int(model.n_rediscoveries_),
        **parts,
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
