"""The data of a report, for a fit and for a path, with the Python code that repeats it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from evomeans._version import __version__
from evomeans.metrics.sums import ClusterMoments
from evomeans.plotting.cluster_plots import check_fitted
from evomeans.plotting.path_plots import (
    check_path,
    clustergram_data,
    criteria_titles,
    path_curves,
    trust_text,
)
from evomeans.plotting.search_plots import convergence_data
from evomeans.report.clusters import (
    ReportSamples,
    as_json,
    as_plain,
    as_text,
    model_parts,
    parameters_of,
    samples_of,
)
from evomeans.search.history import History

MOST_RUNS = 10
# In numbers of the table times clusters, for all runs and for one: a few seconds at most.
WORK, MOST_WORK = 10**8, 10**8
SAME = 1e-6
"""Relative; closer inertias are those of the same solution."""


def affordable_runs(shape: tuple[int, int], n_clusters: int, most: int = MOST_RUNS) -> int:
    """Return how many runs take no more than a few seconds; 0 if not even one does."""
    work = shape[0] * shape[1] * n_clusters
    return 0 if work > MOST_WORK else int(min(most, max(1, WORK // work)))


def kmeans_runs(
    X: Any, n_clusters: int, sample_weight: Any, inertia: float, n_runs: int
) -> dict[str, Any] | None:
    """Run KMeans with its defaults from seeds 0, 1, 2, …; ``as_good`` counts those not worse."""
    if not n_runs:
        return None
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    weights = None if sample_weight is None else np.broadcast_to(sample_weight, X.shape[0])
    found = []
    # One thread, so that the same seeds give the same inertias on every machine.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for seed in range(n_runs):
            rival = KMeans(n_clusters, n_init=1, random_state=seed)
            found.append(float(rival.fit(X, sample_weight=weights).inertia_))
    return {
        "runs": n_runs,
        "mean": float(np.mean(found)),
        "best": min(found),
        "worst": max(found),
        "as_good": sum(one <= inertia * (1 + SAME) for one in found),
    }


FORMAT = "evomeans report"
VERSION = 4
AXES: tuple[Literal["offspring", "seconds"], ...] = ("offspring", "seconds")
POINTS = 5000
SOLUTIONS = 1500
LABELS = 100_000
"""Samples up to which the page has all labels."""


def fit_parts(model: Any, samples: ReportSamples, most_runs: int) -> dict[str, Any]:
    """Gather what the report of a fit shows."""
    moments = samples.moments(model)
    labels = None
    if len(model.labels_) <= LABELS:
        names = {"label": samples.label, "names": samples.names, "first": samples.first}
        labels = {**names, "clusters": model.labels_.tolist()}
    history = getattr(model, "history_", None)
    # Some methods have none, or one of their own.
    history = history if isinstance(history, History) else History()
    return {
        "format": FORMAT,
        "version": VERSION,
        "run": _run(model, samples, moments, history, most_runs),
        "convergence": {
            x: as_json(convergence_data(history, x, limit=SOLUTIONS), shortened=True) for x in AXES
        },
        **model_parts(model, samples, moments, POINTS),
        "labels": labels,
    }


def _run(
    model: Any, samples: ReportSamples, moments: ClusterMoments, history: History, most_runs: int
) -> dict[str, Any]:
    """Describe the search in figures."""
    reached = history.when_best_was_found() if history else None
    founders = [record.best for record in history if record.founder and record.population == 1]
    total = float(moments.weights.sum() * np.square(moments.spread).sum())
    shape, k, inertia = samples.X.shape, len(model.cluster_centers_), float(model.inertia_)
    # Other models than plain k-means have another objective.
    is_plain = bool(getattr(model, "_is_plain_kmeans", True))
    n_runs = affordable_runs(shape, k, most_runs) if is_plain else 0
    certificate = getattr(model, "certificate_", None)
    return {
        "model": type(model).__name__,
        "is_plain": is_plain,
        "n_samples": int(shape[0]),
        "n_features": int(shape[1]),
        "n_clusters": k,
        "n_outliers": int(np.count_nonzero(model.labels_ < 0)),
        "n_offspring": int(getattr(model, "n_iter_", 0)),
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
        # Not known, and so not finite, is None.
        "certainty": as_json(getattr(model, "certainty_", None)),
        "levels": [int(rows) for rows in getattr(model, "levels_", ())],
        "certificate": None if certificate is None else str(certificate),
        "kmeans": kmeans_runs(samples.X, k, samples.weights, inertia, n_runs),
    }


PATH_FORMAT = "evomeans path report"
PATH_VERSION = 3
# All k have a map of their own.
PATH_POINTS = 1500
# A clustergram of more flows than this is too large for a page, and shows nothing.
MOST_FLOWS = 40_000


def path_parts(path: Any, samples: ReportSamples) -> dict[str, Any]:
    """Gather what the report of a path shows."""
    check_path(path)
    # A criterion by its name, or the name of the user's function.
    select = getattr(path.select, "name", getattr(path.select, "__name__", path.select))
    flows, titles = clustergram_data(path, samples.X), criteria_titles(path)
    n_flows = sum(one.size for one in flows.flows)
    return {
        "format": PATH_FORMAT,
        "version": PATH_VERSION,
        "n_samples": int(samples.X.shape[0]),
        "n_features": int(samples.X.shape[1]),
        "stop_reason": str(path.stop_reason_),
        "select": as_text(titles.get(select, select)),
        "trust": trust_text(path._suggested, int(path.k_values_[-1]), titles),
        "shown_k": path.best_k_ or int(path.k_values_[0]),
        "curves": as_json(path_curves(path)),
        "clustergram": as_json(flows, shortened=True) if n_flows < MOST_FLOWS else None,
        "models": {str(k): _model(path.at(int(k)), samples) for k in path.k_values_},
    }


def _model(model: Any, samples: ReportSamples) -> dict[str, Any]:
    parts = model_parts(model, samples, samples.moments(model), PATH_POINTS)
    # One for each k would make a large page.
    del parts["examples"]
    return {
        "inertia": float(model.inertia_),
        "n_rediscoveries": int(model.n_rediscoveries_),
        "certainty": as_json(model.certainty_),
        **parts,
    }


def report_data(
    model: Any,
    X: Any,
    *,
    title: str | None = None,
    feature_names: Sequence[str] | None = None,
    units: Mapping[str, str] | None = None,
    settings: Mapping[str, Any] | None = None,
    command: str = "",
    sample_weight: Any = None,
    standardization: tuple[ArrayLike, ArrayLike] | None = None,
    sample_names: Sequence[Any] | None = None,
    sample_label: str | None = None,
    notes: Sequence[str] = (),
    kmeans_runs: int = MOST_RUNS,
) -> dict[str, Any]:
    """Gather what the report of a fit, or of a path over k, shows.

    Parameters
    ----------
    model : HGMeans, HGMeansPath or another estimator of evomeans
        Fitted.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The samples it was fitted to.
    title : str, optional
        What was clustered, e.g. the name of a file; by default the name of the estimator.
    feature_names : sequence of str, optional
        Names of the columns; by default those of ``X`` or of the fit, or x0, x1 and so on.
    units : mapping of str to str, optional
        Units of columns, such as ``{"height": "cm"}``.
    settings : mapping, optional
        How it was run, shown as it is; by default the parameters of the model.
    command : str, optional
        The command line that repeats the run.
    sample_weight : float or array-like of shape (n_samples,), optional
        The weights it was fitted with.
    standardization : (mean, scale), optional
        What was subtracted from the columns, and what they were divided by, before the fit. The
        report then shows centres and samples in the original units.
    sample_names : sequence, optional
        What the samples are called; by default the index of a data frame, else their numbers.
    sample_label : str, optional
        What these names are, such as "customer".
    notes : sequence of str, optional
        What the reader should know about the samples.
    kmeans_runs : int, default=10
        How many runs of scikit-learn's KMeans the inertia is compared with. Large problems get
        fewer, or none, so that this takes a few seconds at most.

    Returns
    -------
    dict
        Plain JSON of a few hundred kilobytes at most, for :func:`~evomeans.report.render_report`.
    """
    check_fitted(model)
    if not getattr(model, "_is_euclidean", True):
        raise TypeError(
            f"A report shows distances to centres in the units of the samples, which "
            f"{type(model).__name__} does not have."
        )
    said = feature_names, units, sample_names, sample_label
    samples = samples_of(model, X, sample_weight, standardization, *said)
    is_path = hasattr(model, "k_values_")
    parts = path_parts(model, samples) if is_path else fit_parts(model, samples, kmeans_runs)
    settings = parameters_of(model) if settings is None else settings
    return {
        "evomeans": __version__,
        "created": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "title": as_text(type(model).__name__ if title is None else title),
        "command": as_text(command),
        "python": as_text(python_snippet(model, samples)),
        "standardized": standardization is not None,
        "settings": {as_text(name): as_plain(value) for name, value in settings.items()},
        "notes": [as_text(note) for note in notes],
        **parts,
    }


def python_snippet(model: Any, samples: ReportSamples) -> str:
    """Write the code that repeats a fit; what cannot be written down becomes ``...``."""
    from sklearn import config_context

    weighted, scaled = samples.weights is not None, samples.standardization is not None
    n, d = samples.X.shape
    given = parameters_of(model).items()
    bare = type(model)(**{name: value if _is_literal(value) else ... for name, value in given})
    with config_context(print_changed_only=True):
        call = repr(bare).replace("Ellipsis", "...").replace("\n", "\n" + " " * len("model = "))
    module = type(model).__module__
    home = "evomeans" if module.startswith("evomeans.") else ".".join(module.split(".")[:2])
    weights = ", sample_weight=weights" if weighted else ""
    lines = [
        f"from {home} import {type(model).__name__}",
        "from sklearn.preprocessing import StandardScaler" if scaled else "",
        f"X = ...  # the samples: {n:,} rows, {d:,} columns",
        "weights = ...  # one for each sample" if weighted else "",
        f"X = StandardScaler().fit_transform(X{weights})" if scaled else "",
        f"model = {call}.fit(X{weights})",
        f"print(model.{'results_' if hasattr(model, 'results_') else 'inertia_'})",
    ]
    return "\n".join(filter(None, lines)) + "\n"


def _is_literal(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return all(map(_is_literal, value))
    return value is None or isinstance(value, bool | int | float | str | range)
