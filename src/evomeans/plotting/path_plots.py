"""A path over k: curves of all criteria, the flow of samples between k, and silhouettes.

The data of each plot come first, so that they can be tested without a picture.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evomeans.criteria import CRITERIA
from evomeans.docstrings import described_like
from evomeans.plotting.axes import (
    FAINT,
    INK,
    MUTED,
    OKABE_ITO,
    PAPER,
    badge,
    calm,
    cluster_colors,
    get_axes,
    new_figure,
)
from evomeans.plotting.cluster_plots import (
    as_rows,
    check_fitted,
    check_one_model,
    plot_clusters,
    principal_axes,
)
from evomeans.typing import FloatArray
from evomeans.wording import number_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
            suggestion_text(suggestions[name], int(results["k"][-1])),
        )
        for name in results
        if name in suggestions
    ]
    return PathCurves(
        np.asarray(results["k"]),
        Curve("inertia", "Inertia", inertia),
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


def suggestion_text(choice: int | None, last: int) -> str:
    """Say which k a criterion suggests, and whether a longer path might change that."""
    if choice is None:
        return "none"
    return f"k = {choice} (end of the range)" if choice == last else f"k = {choice}"


TRUSTED = {"simplified_silhouette": "first", "bic": "if clusters are round and of similar width"}
"""The criteria to trust, and when; docs/laboratory/criteria.md has the measurements."""


def trust_text(
    suggestions: Mapping[str, int | None], last: int, titles: Mapping[str, str] | None = None
) -> str:
    """Say which suggestions to trust; criteria are called by their titles, if these are given."""
    inside = [
        f"k = {k} ({(titles or {}).get(name, name)}) {when}"
        for name, when in TRUSTED.items()
        if (k := suggestions.get(name)) is not None and k != last
    ]
    which = f"{', or '.join(inside)}; trust " if inside else ""
    return f"Trust {which}no k at the end of the range."


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
    rows, labels = as_rows(X), np.asarray(path.labels_path_)
    if rows.shape[0] != len(labels):
        raise ValueError(
            f"The path was fitted to {len(labels)} samples, X has {rows.shape[0]}; a clustergram "
            "needs the samples of the fit."
        )
    mean, (axis, *_), _ = principal_axes(rows)
    # The sign is arbitrary. So that pictures can be compared, the largest part is positive.
    axis = axis * np.sign(axis[np.abs(axis).argmax()] or 1.0)
    ks = np.asarray(path.k_values_)
    places = [(np.asarray(path.at(int(k)).cluster_centers_, float) - mean) @ axis for k in ks]
    sizes = [np.bincount(column, minlength=int(k)) for k, column in zip(ks, labels.T, strict=True)]
    flows = []
    for place in range(len(ks) - 1):
        k, after = int(ks[place]), int(ks[place + 1])
        pairs = labels[:, place].astype(np.intp) * after + labels[:, place + 1]
        flows.append(np.bincount(pairs, minlength=k * after).reshape(k, after))
    return Clustergram(ks, places, sizes, flows)


def silhouette_bars(model: Any, X: Any, *, simplified: bool) -> list[FloatArray]:
    """Return the silhouettes of the samples of each cluster, descending."""
    # Imported here: the report and the command line do without it.
    from evomeans.metrics import silhouette_samples, simplified_silhouette_samples

    labels, rows = np.asarray(model.predict(X)), as_rows(X)
    centers = model.cluster_centers_
    if simplified:
        values = simplified_silhouette_samples(rows, centers)
    else:
        values = silhouette_samples(rows, labels)
    return [np.sort(values[labels == cluster])[::-1] for cluster in range(len(centers))]


COLUMNS = 3
"""Small multiples next to each other."""

CHOSEN = OKABE_ITO[3]


def plot_path(path: Any, figure: Figure | None = None) -> Figure:
    """Draw the inertia and all criteria over k, each with the k that it suggests.

    Criteria have scales of their own: each gets its own axes. The ring is the suggestion of the
    criterion; the line through all of them is the choice of ``select``. Hollow dots of the inertia
    are those k at which no second population reached the lowest inertia. If the gap statistic was
    computed, the inertia of samples without clusters is drawn with it, one standard error wide.

    Parameters
    ----------
    path : HGMeansPath
        Fitted.
    figure : matplotlib Figure, optional
        Where to draw; a new one by default.

    Returns
    -------
    figure : matplotlib Figure
    """
    check_path(path)
    data = path_curves(path)
    if figure is None:
        figure = new_figure((3.4 * COLUMNS, 2.3 * grid_rows(data) + 0.3))
    return draw_path(figure, data)


def grid_rows(data: PathCurves) -> int:
    """Return how many rows of axes :func:`draw_path` makes: for the inertia and all criteria."""
    return -(-(1 + len(data.criteria)) // COLUMNS)


def draw_path(figure: Figure, data: PathCurves) -> Figure:
    """Draw the data of :func:`plot_path`."""
    grid = figure.subplots(grid_rows(data), COLUMNS, squeeze=False, sharex=True).ravel()
    draw_inertia(calm(grid[0]), data)
    for ax, curve in zip(grid[1:], data.criteria, strict=False):
        draw_curve(calm(ax), data, curve)
    for ax in grid[1 + len(data.criteria) :]:
        ax.set_axis_off()
    for ax in grid[: 1 + len(data.criteria)][-COLUMNS:]:
        ax.set_xlabel("k")
        ax.tick_params(labelbottom=True)
    return figure


def check_path(path: Any) -> None:
    """Raise scikit-learn's NotFittedError if a path has not been fitted."""
    check_fitted(path)
    if not hasattr(path, "results_"):
        raise TypeError(f"A fitted HGMeansPath is needed here, got {type(path).__name__}.")


def draw_inertia(ax: Axes, data: PathCurves) -> Axes:
    """Draw the inertia with what samples without clusters would have."""
    ks, values = data.k_values, data.inertia.values
    if data.reference is not None and data.reference_errors is not None:
        low, high = (data.reference * np.exp(sign * data.reference_errors) for sign in (-1, 1))
        ax.fill_between(ks, low, high, color=OKABE_ITO[4], alpha=0.35, linewidth=0)
        ax.plot(ks, data.reference, color=OKABE_ITO[4], linewidth=1.2, label="without clusters")
        ax.legend(frameon=False, fontsize="small", labelcolor=MUTED)
    ax.plot(ks, values, color=OKABE_ITO[0], linewidth=1.6)
    for shown, face in ((data.is_confirmed, OKABE_ITO[0]), (~data.is_confirmed, PAPER)):
        ax.plot(ks[shown], values[shown], "o", mfc=face, mec=OKABE_ITO[0], markersize=4)
    if (values > 0.0).all():
        ax.set_yscale("log")
    return _finished(ax, data, "Inertia")


def draw_curve(ax: Axes, data: PathCurves, curve: Curve) -> Axes:
    """Draw the values of one criterion."""
    values = np.where(np.isfinite(curve.values), curve.values, np.nan)
    if curve.errors is not None:
        style: dict[str, Any] = {"color": MUTED, "linewidth": 0, "elinewidth": 0.9}
        ax.errorbar(data.k_values, values, yerr=curve.errors, **style)
    ax.plot(data.k_values, values, color=INK, linewidth=1.3, marker="o", markersize=2.8)
    if curve.choice is not None:
        at = float(values[np.searchsorted(data.k_values, curve.choice)])
        ring: dict[str, Any] = {"mfc": "none", "mec": CHOSEN, "mew": 1.8}
        ax.plot(curve.choice, at, "o", markersize=9, clip_on=False, **ring)
    is_clear = curve.choice not in (None, data.k_values[-1])
    ax.set_title(curve.says, loc="right", fontsize="small", color=CHOSEN if is_clear else MUTED)
    return _finished(ax, data, curve.title)


def _finished(ax: Axes, data: PathCurves, title: str) -> Axes:
    """Name the axes, and mark the number of clusters that was chosen."""
    from matplotlib.ticker import MaxNLocator, NullFormatter, NullLocator

    if data.best_k is not None:
        ax.axvline(data.best_k, color=CHOSEN, linewidth=0.9, linestyle=(0, (4, 3)), zorder=0)
    ax.set_title(title, loc="left", fontsize="medium", color=INK)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=7))
    if ax.get_yscale() == "log":
        ax.yaxis.set_minor_locator(NullLocator())
        ax.yaxis.set_minor_formatter(NullFormatter())
        low, high = ax.get_ylim()
        ticks = np.geomspace(low * 1.1, high / 1.1, 4)
        ax.set_yticks(ticks, [number_text(float(f"{tick:.2g}"), 2) for tick in ticks])
    else:
        ax.yaxis.set_major_locator(MaxNLocator(nbins=4))
        ax.yaxis.set_major_formatter(lambda value, _: number_text(float(value), 3))
    ax.grid(axis="y", color=FAINT, linewidth=0.5)
    return ax


@described_like(plot_clusters)
def plot_clustergram(path: Any, X: Any, ax: Axes | None = None) -> Axes:
    """Draw how clusters divide as k grows: a clustergram (Schonlau 2002).

    A column for each k, a dot for each of its clusters: its height is the centre's place on the
    first principal component of the samples, its area the size of the cluster. The lines between
    columns are the samples that two clusters have in common.

    Parameters
    ----------
    path : HGMeansPath
        Fitted.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The samples of the fit.

    References
    ----------
    M. Schonlau, "The clustergram: A graph for visualizing hierarchical and nonhierarchical cluster
    analyses", The Stata Journal 2(4), 391-402, 2002.
    """
    check_path(path)
    return draw_clustergram(get_axes(ax, (8.0, 4.8)), clustergram_data(path, X), path.best_k_)


def draw_clustergram(ax: Axes, data: Clustergram, best_k: int | None) -> Axes:
    """Draw the data of :func:`plot_clustergram`."""
    from matplotlib.collections import LineCollection
    from matplotlib.ticker import MaxNLocator

    total = data.sizes[0].sum()
    steps = np.linspace(0.0, 1.0, 24)
    # From one height to the other in a smooth S.
    ease = steps * steps * (3.0 - 2.0 * steps)
    lines, widths = [], []
    for place, flow in enumerate(data.flows):
        left, right = data.k_values[place], data.k_values[place + 1]
        for a, b in np.argwhere(flow > 0):
            low, high = data.places[place][a], data.places[place + 1][b]
            x = left + (right - left) * steps
            lines.append(np.stack([x, low + (high - low) * ease], axis=1))
            widths.append(0.3 + 14.0 * flow[a, b] / total)
    style: dict[str, Any] = {"colors": OKABE_ITO[0], "alpha": 0.32, "capstyle": "butt"}
    ax.add_collection(LineCollection(lines, linewidths=widths, **style))
    dots: dict[str, Any] = {"edgecolors": PAPER, "linewidths": 0.6, "zorder": 3}
    for k, heights, sizes in zip(data.k_values, data.places, data.sizes, strict=True):
        color, areas = CHOSEN if k == best_k else INK, 6.0 + 220.0 * sizes / total
        ax.scatter(np.full(len(heights), k), heights, s=areas, color=color, **dots)
    ax.set_xlabel("k")
    ax.set_ylabel("first principal component")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=12))
    ax.margins(0.04, 0.06)
    ax.autoscale_view()
    return ax


@described_like(plot_clusters)
def plot_silhouette(
    model: Any, X: Any, *, simplified: bool = False, ax: Axes | None = None
) -> Axes:
    """Draw the silhouette of every sample, a block of bars for each cluster.

    Parameters
    ----------
    model : HGMeans
        Fitted, such as ``path.at(k)``; at least two clusters.
    simplified : bool, default=False
        Whether to compare distances to centres, in one pass, instead of those between samples.
    """
    check_one_model(model)
    colors = cluster_colors(model.cluster_centers_)
    bars = silhouette_bars(model, X, simplified=simplified)
    ax = get_axes(ax, (6.4, 4.8))
    every = np.concatenate(bars)
    space, mean = max(1.0, 0.012 * len(every)), float(every.mean())
    top = 0.0
    lowest, highest = min(0.0, float(every.min())), float(every.max())
    for cluster, bar in enumerate(bars):
        color = OKABE_ITO[colors[cluster]]
        heights = top + np.arange(len(bar) + 1)
        ax.stairs(bar, heights, orientation="horizontal", fill=True, color=color, linewidth=0)
        middle = top + len(bar) / 2.0
        badge(ax, lowest - 0.02, middle, cluster, color, ha="right")
        top += len(bar) + space
    ax.axvline(mean, color=INK, linewidth=1.0, linestyle=(0, (4, 3)))
    ax.set_title(f"mean {mean:.3f}", loc="right", fontsize="small", color=MUTED)
    ax.set(xlim=(lowest - 0.08, min(1.0, highest + 0.05)), ylim=(top, -space))
    ax.set(xlabel="silhouette", ylabel="cluster", yticks=())
    return ax
