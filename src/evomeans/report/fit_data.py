"""What only the report of a single model shows: the course of the search, and the labels."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from evomeans.metrics.sums import ClusterMoments
from evomeans.plotting.search_data import convergence_data
from evomeans.report.clusters import model_parts
from evomeans.report.plain import as_json
from evomeans.report.rival import affordable_runs, kmeans_runs
from evomeans.report.samples import Samples
from evomeans.search.history import History

FORMAT = "evomeans report"
VERSION = 4
AXES: tuple[Literal["offspring", "seconds"], ...] = ("offspring", "seconds")
POINTS = 5000
SOLUTIONS = 1500
LABELS = 100_000
"""Samples up to which the page has all labels."""


def fit_parts(model: Any, samples: Samples, most_runs: int) -> dict[str, Any]:
    """Gather what the report of a fit shows."""
    moments = samples.moments(model)
    history = _history(model)
    return {
        "format": FORMAT,
        "version": VERSION,
        "run": _run(model, samples, moments, history, most_runs),
        "convergence": {
            x: as_json(convergence_data(history, x, limit=SOLUTIONS), shortened=True) for x in AXES
        },
        **model_parts(model, samples, moments, POINTS),
        "labels": _labels(model, samples),
    }


def _history(model: Any) -> History:
    """Return the history of a search; some methods have none, or one of their own."""
    history = getattr(model, "history_", None)
    return history if isinstance(history, History) else History()


def _run(
    model: Any, samples: Samples, moments: ClusterMoments, history: History, most_runs: int
) -> dict[str, Any]:
    """Describe the search in figures."""
    reached = history.when_best_was_found() if history else None
    founders = [record.best for record in history if record.founder and record.population == 1]
    total = float(moments.weights.sum() * np.square(moments.spread).sum())
    shape, k, inertia = samples.X.shape, len(model.cluster_centers_), float(model.inertia_)
    # Other models than plain k-means have another objective.
    n_runs = affordable_runs(shape, k, most_runs) if _is_plain(model) else 0
    certificate = getattr(model, "certificate_", None)
    return {
        "model": type(model).__name__,
        "is_plain": _is_plain(model),
        "n_samples": int(shape[0]),
        "n_features": int(shape[1]),
        "n_clusters": k,
        "n_outliers": int(np.count_nonzero(model.labels_ < 0)),
        "n_offspring": int(getattr(model, "n_iter_", 0)),
        "n_populations": int(history[-1].population) if history else 0,
        "seconds": float(history[-1].seconds) if len(history) else 0.0,
        "inertia": inertia,
        "first_inertia": float(history[0].inertia) if len(history) else None,
        "founders_inertia": float(founders[-1]) if founders else None,
        "n_founders": len(founders),
        "explained": max(0.0, 1.0 - inertia / total) if total > 0 else None,
        "last_improvement": int(reached.number) if reached else 0,
        "last_improvement_seconds": float(reached.seconds) if reached else 0.0,
        "stop_reason": str(getattr(model, "stop_reason_", "")),
        "n_rediscoveries": int(getattr(model, "n_rediscoveries_", 0)),
        "levels": [int(rows) for rows in getattr(model, "levels_", ())],
        "certificate": None if certificate is None else str(certificate),
        "kmeans": kmeans_runs(samples.X, k, samples.weights, inertia, n_runs),
    }


def _is_plain(model: Any) -> bool:
    """Whether the objective is that of plain k-means, for which there are rivals and proofs."""
    return bool(getattr(model, "_is_plain_kmeans", True))


def _labels(model: Any, samples: Samples) -> dict[str, Any] | None:
    """Return the cluster of every sample, unless there are too many for a page."""
    if len(model.labels_) > LABELS:
        return None
    return {
        "label": samples.label,
        "names": samples.names,
        "first": samples.first,
        "clusters": model.labels_.tolist(),
    }
