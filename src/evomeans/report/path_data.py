"""What only the report of a path shows: curves over k, a clustergram, and every model."""

from __future__ import annotations

from typing import Any

from evomeans.plotting.path_data import clustergram_data, criteria_titles, path_curves
from evomeans.plotting.path_plots import check_path
from evomeans.report.clusters import model_parts
from evomeans.report.plain import as_json, as_text
from evomeans.report.samples import Samples

FORMAT = "evomeans path report"
VERSION = 3
# All k have a map of their own.
POINTS = 1500
# A clustergram of more flows than this is too large for a page, and shows nothing.
MOST_FLOWS = 40_000


def path_parts(path: Any, samples: Samples) -> dict[str, Any]:
    """Gather what the report of a path shows."""
    check_path(path)
    flows = clustergram_data(path, samples.X)
    n_flows = sum(one.size for one in flows.flows)
    return {
        "format": FORMAT,
        "version": VERSION,
        "n_samples": int(samples.X.shape[0]),
        "n_features": int(samples.X.shape[1]),
        "stop_reason": str(path.stop_reason_),
        "select": as_text(_selected_by(path)),
        "shown_k": path.best_k_ or int(path.k_values_[0]),
        "curves": as_json(path_curves(path)),
        "clustergram": as_json(flows, shortened=True) if n_flows < MOST_FLOWS else None,
        "models": {str(k): _model(path.at(int(k)), samples) for k in path.k_values_},
    }


def _selected_by(path: Any) -> Any:
    """Return the title of the criterion that chose k, or the name of the user's function."""
    select = getattr(path.select, "name", getattr(path.select, "__name__", path.select))
    return criteria_titles(path).get(select, select)


def _model(model: Any, samples: Samples) -> dict[str, Any]:
    parts = model_parts(model, samples, samples.moments(model), POINTS)
    # One for each k would make a large page.
    del parts["examples"]
    return {
        "inertia": float(model.inertia_),
        "n_rediscoveries": int(model.n_rediscoveries_),
        **parts,
    }
