"""A path over k: curves of all criteria, the flow of samples between k, and silhouettes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from evomeans.criteria import Agreement
from evomeans.plotting.axes import (
    FAINT,
    INK,
    MUTED,
    OKABE_ITO,
    PAPER,
    calm,
    cluster_colors,
    get_axes,
    ink_on,
    new_figure,
)
from evomeans.plotting.cluster_data import check_fitted, check_one_model
from evomeans.plotting.path_data import (
    Clustergram,
    Curve,
    PathCurves,
    SilhouetteBars,
    clustergram_data,
    path_curves,
    silhouette_bars,
)
from evomeans.wording import number_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
    is_confirmed = data.is_confirmed
    ax.plot(ks[is_confirmed], values[is_confirmed], "o", color=OKABE_ITO[0], markersize=4)
    ax.plot(
        ks[~is_confirmed],
        values[~is_confirmed],
        "o",
        markerfacecolor=PAPER,
        markeredgecolor=OKABE_ITO[0],
        markersize=4.5,
    )
    if (values > 0.0).all():
        ax.set_yscale("log")
    return _finished(ax, data, "Inertia")


def draw_curve(ax: Axes, data: PathCurves, curve: Curve) -> Axes:
    """Draw the values of one criterion."""
    values = np.where(np.isfinite(curve.values), curve.values, np.nan)
    if curve.errors is not None:
        ax.errorbar(
            data.k_values, values, yerr=curve.errors, color=MUTED, linewidth=0, elinewidth=0.9
        )
    ax.plot(data.k_values, values, color=INK, linewidth=1.3, marker="o", markersize=2.8)
    is_share = curve.name == Agreement.name
    if curve.choice is not None and not is_share:
        at = float(values[np.searchsorted(data.k_values, curve.choice)])
        ax.plot(
            curve.choice,
            at,
            "o",
            markersize=9,
            markerfacecolor="none",
            markeredgecolor=CHOSEN,
            markeredgewidth=1.8,
            clip_on=False,
        )
    is_clear = not is_share and curve.choice not in (None, data.k_values[-1])
    ax.set_title(curve.says, loc="right", fontsize="small", color=CHOSEN if is_clear else MUTED)
    _finished(ax, data, curve.title)
    if is_share:
        ax.set(ylim=(0.0, 1.06), yticks=(0.0, 0.5, 1.0))
    return ax


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
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

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
    ax.add_collection(
        LineCollection(lines, linewidths=widths, colors=OKABE_ITO[0], alpha=0.32, capstyle="butt")
    )
    for k, heights, sizes in zip(data.k_values, data.places, data.sizes, strict=True):
        ax.scatter(
            np.full(len(heights), k),
            heights,
            s=6.0 + 220.0 * sizes / total,
            color=CHOSEN if k == best_k else INK,
            edgecolors=PAPER,
            linewidths=0.6,
            zorder=3,
        )
    ax.set_xlabel("k")
    ax.set_ylabel("first principal component")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=12))
    ax.margins(0.04, 0.06)
    ax.autoscale_view()
    return ax


def plot_silhouette(
    model: Any, X: Any, *, simplified: bool = False, ax: Axes | None = None
) -> Axes:
    """Draw the silhouette of every sample, a block of bars for each cluster.

    Parameters
    ----------
    model : HGMeans
        Fitted, such as ``path.at(k)``; at least two clusters.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The samples.
    simplified : bool, default=False
        Whether to compare distances to centres, in one pass, instead of those between samples.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    """
    check_one_model(model)
    colors = cluster_colors(model.cluster_centers_)
    data = silhouette_bars(model, X, simplified=simplified)
    return draw_silhouette(get_axes(ax, (6.4, 4.8)), data, colors)


def draw_silhouette(ax: Axes, data: SilhouetteBars, palette_indices: Any) -> Axes:
    """Draw the data of :func:`plot_silhouette`."""
    n = sum(map(len, data.bars))
    space = max(1.0, 0.012 * n)
    top = 0.0
    low = min((float(bar[-1]) for bar in data.bars if len(bar)), default=0.0)
    lowest = min(0.0, low)
    highest = max((float(bar[0]) for bar in data.bars if len(bar)), default=1.0)
    for cluster, bar in enumerate(data.bars):
        color = OKABE_ITO[palette_indices[cluster]]
        heights = top + np.arange(len(bar) + 1)
        ax.stairs(bar, heights, orientation="horizontal", fill=True, color=color, linewidth=0)
        middle = top + len(bar) / 2.0
        ax.text(
            lowest - 0.02,
            middle,
            str(cluster),
            ha="right",
            va="center",
            size=8,
            weight="bold",
            color=ink_on(color),
            bbox={
                "boxstyle": "round,pad=0.25,rounding_size=0.5",
                "facecolor": color,
                "edgecolor": PAPER,
            },
        )
        top += len(bar) + space
    ax.axvline(data.mean, color=INK, linewidth=1.0, linestyle=(0, (4, 3)))
    ax.set_title(f"mean {data.mean:.3f}", loc="right", fontsize="small", color=MUTED)
    ax.set(
        xlim=(lowest - 0.08, min(1.0, highest + 0.05)),
        ylim=(top, -space),
        xlabel="silhouette",
        ylabel="cluster",
    )
    ax.set_yticks([])
    return ax
