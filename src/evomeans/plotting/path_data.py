"""What the plots of a path over k show, as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.criteria import CRITERIA, Agreement
from evomeans.plotting.cluster_data import as_rows, principal_axes
from evomeans.typing import FloatArray


@dataclass(frozen=True, eq=False)
class Curve:
    """One curve over k, with standard errors, and the k that it suggests, also in words."""

    name: str
    title: str
    values: FloatArray
    errors: FloatArray | None = None
    choice: int | None = None
    says: str = ""


@dataclass(frozen=True, eq=False)
class PathCurves:
    """All curves of a path; arrays have a value for each k.

    ``reference`` is the inertia of samples without clusters, if the gap statistic was computed: a
    geometric mean, and the standard error of its logarithm. ``is_confirmed`` says whether a second,
    independent population reached the lowest inertia, or none is needed.
    """

    k_values: NDArray[np.int64]
    inertia: Curve
    reference: FloatArray | None
    reference_errors: FloatArray | None
    is_confirmed: NDArray[np.bool_]
    criteria: list[Curve]
    best_k: int | None


def path_curves(path: Any) -> PathCurves:
    """Return the curves of a fitted path."""
    results, suggestions, titles = path.results_, path.suggestions_, criteria_titles(path)
    inertia = np.asarray(results["inertia"], dtype=np.float64)
    reference = errors = None
    if "gap" in results:
        reference, errors = inertia * np.exp(results["gap"]), results["gap_error"]
    criteria = [
        Curve(
            name,
            titles.get(name, name.replace("_", " ")),
            np.asarray(results[name], dtype=np.float64),
            results.get(f"{name}_error"),
            suggestions[name],
            suggestion_text(name, suggestions[name], int(results["k"][-1])),
        )
        for name in results
        if name in suggestions and name != "elbow"
    ]
    return PathCurves(
        np.asarray(results["k"]),
        Curve("inertia", "Inertia", inertia, choice=suggestions.get("elbow")),
        reference,
        errors,
        path._is_confirmed,
        criteria,
        path.best_k_,
    )


def criteria_titles(path: Any) -> dict[str, str]:
    """Return the titles of all criteria by name, those of the user among them."""
    given = path.criteria if isinstance(path.criteria, list | tuple) else [path.criteria]
    own = [one for one in (*given, path.select) if hasattr(one, "judge")]
    return {one.name: getattr(one, "title", one.name) for one in (*CRITERIA.values(), *own)}


def suggestion_text(name: str, choice: int | None, last: int) -> str:
    """Say which k a criterion suggests, and whether a longer path might change that."""
    if choice is None:
        return "none"
    if name == Agreement.name:
        # A limit rather than a suggestion: beyond it, samples do not determine the clusters.
        return "at every k" if choice == last else f"up to k = {choice}"
    return f"k = {choice} (end of the range)" if choice == last else f"k = {choice}"


@dataclass(frozen=True, eq=False)
class Clustergram:
    """Clusters of every k as points on a line, and how many samples flow between them.

    For each k, ``places`` on the first principal component and ``sizes`` of its clusters; ``flows``
    of shape (k, k') are the samples that clusters of one k have in common with those of the next.
    """

    k_values: NDArray[np.int64]
    places: list[FloatArray]
    sizes: list[NDArray[np.intp]]
    flows: list[NDArray[np.intp]]


def clustergram_data(path: Any, X: Any) -> Clustergram:
    """Return what a clustergram shows."""
    rows, labels = as_rows(X), np.asarray(path.labels_)
    if rows.shape[0] != len(labels):
        raise ValueError(
            f"The path was fitted to {len(labels)} samples, X has {rows.shape[0]}; a clustergram "
            "needs the samples of the fit."
        )
    mean, (axis, *_), _ = principal_axes(rows)
    # The sign is arbitrary; so that pictures can be compared, the largest part is positive.
    axis = axis * np.sign(axis[np.abs(axis).argmax()] or 1.0)
    ks = np.asarray(path.k_values_)
    places = [(np.asarray(path.cluster_centers_[int(k)], float) - mean) @ axis for k in ks]
    sizes = [np.bincount(column, minlength=int(k)) for k, column in zip(ks, labels.T, strict=True)]
    flows = []
    for place in range(len(ks) - 1):
        k, after = int(ks[place]), int(ks[place + 1])
        pairs = labels[:, place].astype(np.intp) * after + labels[:, place + 1]
        flows.append(np.bincount(pairs, minlength=k * after).reshape(k, after))
    return Clustergram(ks, places, sizes, flows)


@dataclass(frozen=True, eq=False)
class SilhouetteBars:
    """Silhouettes of the samples of each cluster, descending, and the mean of all."""

    bars: list[FloatArray]
    mean: float


def silhouette_bars(model: Any, X: Any, *, simplified: bool) -> SilhouetteBars:
    """Return the silhouettes of samples by cluster."""
    # Imported here: the report and the command line do without it.
    from evomeans.metrics import silhouette_samples, simplified_silhouette_samples

    labels = np.asarray(model.predict(X))
    rows = as_rows(X)
    if simplified:
        values = simplified_silhouette_samples(rows, model.cluster_centers_)
    else:
        values = silhouette_samples(rows, labels)
    k = len(model.cluster_centers_)
    bars = [np.sort(values[labels == cluster])[::-1] for cluster in range(k)]
    return SilhouetteBars(bars, float(values.mean()))
