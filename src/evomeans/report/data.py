"""The data of a report, for a fit and for a path: plain JSON, and code that repeats the run."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import UTC, datetime
from types import UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evomeans._version import __version__
from evomeans.metrics.sums import (
    ClusterMoments,
    cluster_moments,
    dense,
    dense_blocks,
    simplified,
    two_distances,
)
from evomeans.plotting import cluster_plots, path_plots
from evomeans.plotting.axes import cluster_colors
from evomeans.plotting.search_plots import convergence_data
from evomeans.search.history import History
from evomeans.typing import FloatArray
from evomeans.wording import listed

Kind = TypeVar("Kind")

FIT, PATH = "evomeans report", "evomeans path report"
VERSIONS = {FIT: 4, PATH: 3}

NOT_SETTINGS = ("checkpoint", "observers")  # the result does not depend on them


def parameters_of(model: Any) -> dict[str, Any]:
    """Return the parameters that shape a fit."""
    given = model.get_params(deep=False)
    return {name: value for name, value in given.items() if name not in NOT_SETTINGS}


def as_plain(value: Any) -> str | int | float | bool | None:
    """Keep what JSON can hold; write the rest, NaN and infinity included, as text."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, list | tuple):
        return ", ".join(str(as_plain(one)) for one in value)
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, int | float) else as_text(value)


def as_text(value: Any) -> str:
    """Return text that can be written as UTF-8; names of files need not be."""
    return str(value).encode("utf-8", "replace").decode("utf-8")


def short(values: Any) -> Any:
    """Round to five digits, which are finer than any screen and keep the page small."""
    rounded = [float(f"{value:.5g}") for value in np.ravel(values).tolist()]
    return np.reshape(rounded, np.shape(values)).tolist()


def as_json(data: Any, *, exact: bool = False) -> Any:
    """Turn numbers, arrays and dataclasses into plain JSON; :func:`from_json` is the way back.

    Numbers that are not finite become None. The floats of arrays keep five digits, unless they are
    to be ``exact``.
    """
    if is_dataclass(data):
        data = {one.name: getattr(data, one.name) for one in fields(data)}
    if isinstance(data, np.ndarray | np.generic):
        is_short = isinstance(data, np.ndarray) and data.dtype.kind == "f" and not exact
        data = short(data) if is_short else data.tolist()
    if isinstance(data, Mapping):
        return {str(name): as_json(value, exact=exact) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [as_json(value, exact=exact) for value in data]
    return None if isinstance(data, float) and not np.isfinite(data) else data


def from_json(kind: type[Kind], data: Mapping[str, Any]) -> Kind:
    """Make a dataclass from its plain JSON, with arrays where its annotations say so."""
    hints = get_type_hints(kind)
    return kind(**{name: _read(hints[name], value) for name, value in data.items()})


def _read(hint: Any, value: Any) -> Any:
    """Return a value of JSON as what an annotation says."""
    parts = get_args(hint)
    if get_origin(hint) is UnionType:
        return None if value is None else _read(parts[0], value)
    if get_origin(hint) is np.ndarray:
        # NDArray[np.float64] is ndarray[shape, dtype[np.float64]].
        return np.array(value, dtype=get_args(parts[1])[0])
    if get_origin(hint) is list:
        return [_read(parts[0], one) for one in value]
    return from_json(hint, value) if isinstance(hint, type) and is_dataclass(hint) else value


class ReportSamples:
    """What a model was fitted to, and how to speak of it, as ``report_data`` takes it."""

    def __init__(
        self,
        model: Any,
        X: Any,
        sample_weight: Any,
        standardization: tuple[ArrayLike, ArrayLike] | None,
        feature_names: Sequence[str] | None,
        units: Mapping[str, str] | None,
        names: Sequence[Any] | None,
        label: str | None,
    ) -> None:
        self.X = cluster_plots.fitted_rows(model, X)
        n_samples, n_features = self.X.shape
        n_fitted = len(model.labels_path_ if hasattr(model, "labels_path_") else model.labels_)
        if n_samples != n_fitted:
            raise ValueError(
                f"The model was fitted to {n_fitted} samples, X has {n_samples}; "
                "a report needs the samples of the fit."
            )
        if np.ndim(sample_weight) and len(sample_weight) != n_fitted:
            raise ValueError(
                f"sample_weight has {len(sample_weight)} values for {n_fitted} samples; a report "
                "needs the weights of the fit."
            )
        self.is_weighted = sample_weight is not None
        weights = np.float64(sample_weight if self.is_weighted else 1.0)
        self.weights: FloatArray = np.broadcast_to(weights, n_fitted)
        if feature_names is None:
            feature_names = getattr(X, "columns", None)
        columns = cluster_plots.column_names(model, feature_names, n_features)
        self.columns = [as_text(name) for name in columns]
        by_name = {as_text(name): as_text(unit) for name, unit in (units or {}).items()}
        if unknown := sorted(set(by_name) - set(self.columns)):
            raise ValueError(f"units names a column {unknown[0]!r}, which X does not have.")
        self.units = [by_name.get(name, "") for name in self.columns]
        if names is None and hasattr(X, "index") and hasattr(X, "columns"):
            # A data frame of pandas: rows are known by their index.
            names, label = list(X.index), label or X.index.name or "index"
        if names is not None and len(names) != n_fitted:
            raise ValueError(f"sample_names has {len(names)} names for {n_fitted} samples.")
        self.names = None if names is None else [as_text(name) for name in names]
        self.label = as_text(label or "index")
        # Rows without names are numbered; tables count them from 1, Python from 0.
        self.first = 1 if label == "row" else 0
        self.is_scaled = standardization is not None
        # What leads back to the original units.
        self.mean, self.scale = map(np.asarray, standardization or (0.0, 1.0))

    def in_units(self, values: NDArray[Any]) -> FloatArray:
        """Return centres or rows in the original units of the columns."""
        restored: FloatArray = np.asarray(values, dtype=np.float64) * self.scale + self.mean
        return restored

    def moments(self, model: Any) -> ClusterMoments:
        """Sum up over the samples of each cluster; outliers, labelled −1, do not count."""
        centers = np.asarray(model.cluster_centers_, np.float64)
        return cluster_moments(self.X, centers, self.weights, model.labels_)


ROWS = 200_000  # that are looked at; more would not change what is shown
BORDERLINE = 0.1  # a simplified silhouette below which two centres are about as close


@dataclass(frozen=True, eq=False)
class Separation:
    """Clusters of some rows, how far their centre is, and which other one is the closest.

    ``silhouettes`` are simplified: (b − a)/max(a, b); 1 if there is only one cluster.
    """

    rows: NDArray[np.intp]
    clusters: NDArray[Any]
    near: FloatArray
    other: NDArray[np.intp]
    silhouettes: FloatArray
    weights: FloatArray

    def share(self, values: NDArray[Any]) -> float:
        """Return the mean of something over the rows, by their weights."""
        total = float(self.weights.sum())
        return float(self.weights @ values) / total if total > 0 else 0.0


def separation(
    X: Any, labels: NDArray[Any], centers: NDArray[Any], weights: FloatArray
) -> Separation:
    """Measure distances to centres in one pass; outliers, labelled −1, do not count."""
    rows = cluster_plots.thin_out(labels, ROWS)
    rows = np.sort(rows[labels[rows] >= 0])
    near, silhouettes = np.empty((2, len(rows)))
    other, own = np.empty(len(rows), np.intp), labels[rows]
    for part, block in dense_blocks(X[rows], X.shape[1] + len(centers)):
        _, near[part], far, other[part] = two_distances(block, centers, own[part])
        silhouettes[part] = np.where(np.isinf(far), 1.0, simplified(near[part], far))
    return Separation(rows, own, near, other, silhouettes, weights[rows])


CLEAR, STRONG = 0.5, 1.5  # standard deviations of the column
NAMED = 5  # columns in a description


def cluster_words(telling: Sequence[tuple[str, float]]) -> str:
    """Describe a cluster by the columns in which its centre differs most from the mean.

    The most telling column comes first; differences are in standard deviations.

    >>> cluster_words([("income", 2.0), ("age", -0.8), ("debt", 0.7)])
    'Very high income, high debt, low age.'
    """
    levels: dict[str, list[str]] = {"very high": [], "high": [], "very low": [], "low": []}
    for name, value in list(telling)[:NAMED]:
        if abs(value) >= CLEAR:
            side = "high" if value > 0 else "low"
            # A long name must leave room for others.
            shown = name if len(name) <= 40 else name[:39] + "…"
            levels[f"very {side}" if abs(value) >= STRONG else side].append(shown)
    parts = [f"{level} {listed(names)}" for level, names in levels.items() if names]
    if not parts:
        return "Close to the average in all columns."
    text = ", ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


TELLING = 5
EXAMPLES, EXAMPLE_COLUMNS, MOST_EXAMPLES = 2, 6, 200
"""Samples of a kind that each cluster shows, their columns, and the most samples of all."""


def model_parts(
    model: Any, samples: ReportSamples, moments: ClusterMoments, points: int
) -> dict[str, Any]:
    """Describe the clusters of a model."""
    X, labels, centers = samples.X, model.labels_, moments.centers
    found = separation(X, labels, centers, samples.weights)
    names = samples.columns
    plane = cluster_plots.projection_data(X, labels, centers, names=names, limit=points)
    profiles = cluster_plots.profile_data(
        centers,
        moments.weights,
        names,
        shown=samples.in_units(centers),
        mean=moments.mean,
        spread=moments.spread,
    )
    columns = profiles.columns
    return {
        "projection": plane,
        "profiles": replace(profiles, values=profiles.values.round(2)),
        "columns": {
            "units": [samples.units[column] for column in columns],
            "deviations": (moments.deviations * samples.scale)[profiles.clusters][:, columns],
            "mean": samples.in_units(moments.mean)[columns],
            "deviation": (moments.spread * samples.scale)[columns],
        },
        "clusters": clusters_part(labels, samples, moments, found),
        "separation": {
            "silhouette": found.share(found.silhouettes) if len(centers) > 1 else None,
            "borderline": found.share(found.silhouettes < BORDERLINE),
            "rows": len(found.rows),
        },
        "examples": examples_part(samples, found, len(centers), columns[:EXAMPLE_COLUMNS]),
    }


def clusters_part(
    labels: NDArray[Any], samples: ReportSamples, moments: ClusterMoments, found: Separation
) -> list[dict[str, Any]]:
    """Describe each cluster: how large, loose and separate it is, and where it stands out."""
    centers, weights, names = moments.centers, moments.weights, samples.columns
    k, shown = len(centers), samples.in_units(centers)
    values = cluster_plots.standardized(centers, moments.mean, moments.spread)
    telling = np.argsort(-np.abs(values), axis=1, kind="stable")[:, :TELLING]
    # A single cluster is not separated from anything: its gap is infinite, which becomes None.
    _, _, gaps, nearest = two_distances(centers, centers, np.arange(k))
    summed, counted = (
        np.bincount(found.clusters, found.weights * one, k)
        for one in (found.silhouettes, np.isfinite(gaps)[found.clusters])
    )
    silhouettes = np.divide(summed, counted, out=np.full(k, np.nan), where=counted > 0.0)
    parts = {
        "color": cluster_colors(centers),
        "size": cluster_plots.cluster_sizes(labels, k),
        "weight": weights,
        "inertia_share": moments.inertia / (moments.inertia.sum() or 1.0),
        "spread": np.sqrt(moments.inertia / np.where(weights > 0.0, weights, 1.0)),
        "words": [
            cluster_words([(names[i], float(row[i])) for i in chosen])
            for row, chosen in zip(values, telling, strict=True)
        ],
        "silhouette": silhouettes,
        "nearest": [j if k > 1 else None for j in nearest],
        "gap": gaps,
        "telling": [
            [
                {"name": names[i], "value": round(row[i], 2), "center": short(center[i])}
                for i in chosen
                if abs(row[i]) >= 0.05
            ]
            for row, center, chosen in zip(values, shown, telling, strict=True)
        ],
    }
    columns = as_json(parts, exact=True)
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def examples_part(
    samples: ReportSamples, found: Separation, k: int, columns: NDArray[np.intp]
) -> dict[str, Any]:
    """Return samples closest to the centre of each cluster, and as close to another centre."""
    each = min(EXAMPLES, MOST_EXAMPLES // (2 * k))
    rows = []
    for cluster in range(k):
        places = np.flatnonzero(found.clusters == cluster)
        closest = places[np.argsort(found.near[places], kind="stable")]
        unclear = places[np.argsort(found.silhouettes[places], kind="stable")]
        unclear = unclear[found.silhouettes[unclear] < BORDERLINE]
        for kind, chosen in (("typical", closest), ("borderline", unclear)):
            for rank, place in enumerate(chosen[:each]):
                row = int(found.rows[place])
                rows.append(
                    {
                        "cluster": cluster,
                        "kind": kind,
                        "rank": rank,
                        "name": samples.names[row] if samples.names else str(samples.first + row),
                        "distance": short(found.near[place]),
                        "other": found.other[place] if kind == "borderline" else None,
                        "values": samples.in_units(dense(samples.X[[row]])[0])[columns],
                    }
                )
    return {
        "label": samples.label,
        "columns": [samples.columns[column] for column in columns],
        "units": [samples.units[column] for column in columns],
        "rows": rows,
    }


MOST_RUNS = 10
# In numbers of the table times clusters, for all runs and for one: a few seconds at most.
WORK, MOST_WORK = 10**8, 10**8
SAME = 1e-6  # relative; closer inertias are those of the same solution


def affordable_runs(shape: tuple[int, int], n_clusters: int, most: int = MOST_RUNS) -> int:
    """Return how many runs take no more than a few seconds; 0 if not even one does."""
    work = shape[0] * shape[1] * n_clusters
    return 0 if work > MOST_WORK else int(min(most, max(1, WORK // work)))


def kmeans_runs(
    samples: ReportSamples, n_clusters: int, inertia: float, n_runs: int
) -> dict[str, Any] | None:
    """Run KMeans with its defaults from seeds 0, 1, 2, …; ``as_good`` counts those not worse."""
    if not n_runs:
        return None
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    found, weights = [], samples.weights if samples.is_weighted else None
    # One thread, so that the same seeds give the same inertias on every machine.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for seed in range(n_runs):
            rival = KMeans(n_clusters, n_init=1, random_state=seed)
            found.append(float(rival.fit(samples.X, sample_weight=weights).inertia_))
    return {
        "runs": n_runs,
        "mean": float(np.mean(found)),
        "best": min(found),
        "worst": max(found),
        "as_good": sum(one <= inertia * (1 + SAME) for one in found),
    }


AXES: tuple[Literal["offspring", "seconds"], ...] = ("offspring", "seconds")
POINTS = 5000
SOLUTIONS = 1500
LABELS = 100_000  # samples up to which the page has all labels


def fit_parts(model: Any, samples: ReportSamples, most_runs: int) -> dict[str, Any]:
    """Gather what the report of a fit shows."""
    moments = samples.moments(model)
    labels = None
    if len(model.labels_) <= LABELS:
        names = {"label": samples.label, "names": samples.names, "first": samples.first}
        labels = {**names, "clusters": model.labels_}
    history = getattr(model, "history_", None)
    # Some methods have none, or one of their own.
    history = history if isinstance(history, History) else History()
    return {
        "run": _run(model, samples, moments, history, most_runs),
        "convergence": {x: convergence_data(history, x, limit=SOLUTIONS) for x in AXES},
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
    (n, d), k, inertia = samples.X.shape, len(model.cluster_centers_), float(model.inertia_)
    # Other models than plain k-means have another objective.
    is_plain = bool(getattr(model, "_is_plain_kmeans", True))
    n_runs = affordable_runs((n, d), k, most_runs) if is_plain else 0
    certificate = getattr(model, "certificate_", None)
    return {
        "model": type(model).__name__,
        "is_plain": is_plain,
        "n_samples": n,
        "n_features": d,
        "n_clusters": k,
        "n_outliers": np.count_nonzero(model.labels_ < 0),
        "n_offspring": getattr(model, "n_iter_", 0),
        "seconds": history[-1].seconds if history else 0.0,
        "inertia": inertia,
        "first_inertia": history[0].inertia if history else None,
        "founders_inertia": founders[-1] if founders else None,
        "n_founders": len(founders),
        "explained": max(0.0, 1.0 - inertia / total) if total > 0 else None,
        "last_improvement": reached.number if reached else 0,
        "last_improvement_seconds": reached.seconds if reached else 0.0,
        "stop_reason": str(getattr(model, "stop_reason_", "")),
        "n_rediscoveries": getattr(model, "n_rediscoveries_", 0),
        "certainty": getattr(model, "certainty_", None),
        "levels": list(getattr(model, "levels_", ())),
        "certificate": None if certificate is None else str(certificate),
        "kmeans": kmeans_runs(samples, k, inertia, n_runs),
    }


PATH_POINTS = 1500  # of each k, which all have a map
MOST_FLOWS = 40_000  # a clustergram of more is too large for a page, and shows nothing


def path_parts(path: Any, samples: ReportSamples) -> dict[str, Any]:
    """Gather what the report of a path shows."""
    path_plots.check_path(path)
    # A criterion by its name, or the name of the user's function.
    select = getattr(path.select, "name", getattr(path.select, "__name__", path.select))
    flows, titles = path_plots.clustergram_data(path, samples.X), path_plots.criteria_titles(path)
    is_small = sum(one.size for one in flows.flows) < MOST_FLOWS
    models = {}
    for k in path.k_values_:
        model = path.at(int(k))
        parts = model_parts(model, samples, samples.moments(model), PATH_POINTS)
        # One for each k would make a large page.
        del parts["examples"]
        figures = ("inertia", "n_rediscoveries", "certainty")
        models[k] = {name: getattr(model, f"{name}_") for name in figures} | parts
    return {
        "n_samples": samples.X.shape[0],
        "n_features": samples.X.shape[1],
        "stop_reason": str(path.stop_reason_),
        "select": as_text(titles.get(select, select)),
        "trust": path_plots.trust_text(path.suggestions_, int(path.k_values_[-1]), titles),
        "shown_k": path.best_k_ or path.k_values_[0],
        "curves": as_json(path_plots.path_curves(path), exact=True),
        "clustergram": flows if is_small else None,
        "models": models,
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
    cluster_plots.check_fitted(model)
    if not getattr(model, "_is_euclidean", True):
        raise TypeError(
            f"A report shows distances to centres in the units of the samples, which "
            f"{type(model).__name__} does not have."
        )
    said = feature_names, units, sample_names, sample_label
    samples = ReportSamples(model, X, sample_weight, standardization, *said)
    kind = PATH if hasattr(model, "k_values_") else FIT
    parts = path_parts(model, samples) if kind == PATH else fit_parts(model, samples, kmeans_runs)
    settings = parameters_of(model) if settings is None else settings
    data = {
        "format": kind,
        "version": VERSIONS[kind],
        "evomeans": __version__,
        "created": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "title": as_text(type(model).__name__ if title is None else title),
        "command": as_text(command),
        "python": as_text(python_snippet(model, samples)),
        "standardized": samples.is_scaled,
        "settings": {as_text(name): as_plain(value) for name, value in settings.items()},
        "notes": [as_text(note) for note in notes],
        **parts,
    }
    plain: dict[str, Any] = as_json(data)
    return plain


def python_snippet(model: Any, samples: ReportSamples) -> str:
    """Write the code that repeats a fit; what cannot be written down becomes ``...``."""
    from sklearn import config_context

    weighted, scaled, (n, d) = samples.is_weighted, samples.is_scaled, samples.X.shape
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
