"""The clusters themselves: in the plane, as profiles, by size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from evomeans.plotting.axes import get_axes, plain
from evomeans.plotting.cluster_data import (
    Profiles,
    Projection,
    column_names,
    profile_data,
    projection_data,
    room_for_labels,
    size_data,
)
from evomeans.plotting.palette import FAINT, INK, MUTED, OKABE_ITO, cluster_colors, ink_on

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOW, MIDDLE, HIGH = "#0072B2", "#f7f7f5", "#D55E00"


def plot_clusters(
    model: Any,
    X: Any,
    *,
    columns: Sequence[str | int] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the samples in the plane, coloured by cluster, with the numbers of the clusters.

    Beyond eight clusters colours repeat, but neighbours have different ones. Of many samples
    only some are drawn, at least a few of every cluster.

    Parameters
    ----------
    model : HGMeans
        Fitted; any estimator with ``cluster_centers_`` and ``predict`` will do.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The samples to show.
    columns : two column names or indices, optional
        What to show; the first two principal components by default.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
    """
    centers = model.cluster_centers_
    names = column_names(model, getattr(X, "columns", None), centers.shape[1])
    labels = np.asarray(model.predict(X))
    data = projection_data(X, labels, centers, names=names, columns=columns)
    ax = get_axes(ax, (7.0, 5.6))
    colors = np.array(OKABE_ITO)[cluster_colors(centers)]
    ax.scatter(
        data.points[:, 0],
        data.points[:, 1],
        s=float(np.clip(40_000 / len(data.points), 5, 26)),
        c=colors[data.labels],
        alpha=0.65 if len(data.points) > 500 else 0.85,
        linewidths=0,
        rasterized=len(data.points) > 5000,
    )
    width, height = _inches(ax)
    x_limits, y_limits = data.view(width / height)
    x_name, y_name = map(plain, data.axis_names)
    ax.set(xlim=x_limits, ylim=y_limits, xlabel=x_name, ylabel=y_name)
    _draw_centers(ax, data, colors)
    if len(data.points) < data.n_samples:
        shown = f"{len(data.points):,} of {data.n_samples:,} samples shown"
        ax.set_title(shown, loc="right", fontsize="small", color=MUTED)
    return ax


def _draw_centers(ax: Axes, data: Projection, colors: Any) -> None:
    """Mark the centres; number those that have room, the largest clusters first."""
    low, high = np.transpose([ax.get_xlim(), ax.get_ylim()])
    places = (data.centers - low) / (high - low) * _inches(ax)
    numbered = room_for_labels(places, (0.22, 0.22), data.sizes)
    ax.scatter(
        data.centers[~numbered, 0],
        data.centers[~numbered, 1],
        s=18,
        c=colors[~numbered],
        edgecolors="white",
        linewidths=0.8,
        zorder=3,
    )
    for cluster in np.flatnonzero(numbered):
        ax.text(
            data.centers[cluster, 0],
            data.centers[cluster, 1],
            str(cluster),
            size=8,
            weight="bold",
            color=ink_on(colors[cluster]),
            ha="center",
            va="center",
            zorder=4,
            clip_on=True,
            bbox={
                "boxstyle": "round,pad=0.28,rounding_size=0.6",
                "facecolor": colors[cluster],
                "edgecolor": "white",
                "linewidth": 1.2,
            },
        )


def _inches(ax: Axes) -> tuple[float, float]:
    """Width and height of the axes, about: the layout is only made when the figure is drawn."""
    box, figure = ax.get_position(), ax.get_figure(root=True)
    assert figure is not None
    width, height = figure.get_size_inches()
    return width * box.width, height * box.height


def plot_profiles(
    model: Any, *, feature_names: Sequence[str] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw what distinguishes the centres, as a table of colours.

    Rows are clusters, similar ones together. Columns are those that part the clusters most. The
    colour is the difference from the overall mean, in standard deviations of the centres; few
    enough cells also show the centres themselves, in units of the data.

    Parameters
    ----------
    model : HGMeans
        Fitted.
    feature_names : sequence of str, optional
        Names of all columns; by default those that the model was fitted with.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
    """
    k, d = model.cluster_centers_.shape
    names = column_names(model, feature_names, d)
    sizes = np.bincount(model.labels_, minlength=k)
    data = profile_data(model.cluster_centers_, sizes, names)
    n_columns = len(data.names)
    width = min(11.0, 2.6 + 0.42 * n_columns)
    ax = get_axes(ax, (max(width, 4.5), float(np.clip(2.2 + 0.28 * k, 3.4, 9.0))))
    image = _draw_cells(ax, data)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.9, aspect=25, pad=0.02)
    bar.set_label("difference from the mean\n(standard deviations)", color=INK, fontsize="small")
    bar.outline.set_visible(False)
    bar.ax.tick_params(color=FAINT, labelcolor=MUTED)
    if n_columns < data.n_features:
        chosen = f"{n_columns} of {data.n_features} columns, the most telling first"
        ax.set_title(chosen, loc="left", fontsize="small", color=MUTED)
    return ax


def _draw_cells(ax: Axes, data: Profiles) -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    reach = float(np.clip(np.abs(data.values).max(initial=0.0), 1.0, 3.0))
    colormap = LinearSegmentedColormap.from_list("profiles", [LOW, MIDDLE, HIGH])
    image = ax.imshow(
        data.values, cmap=colormap, vmin=-reach, vmax=reach, aspect="auto", interpolation="nearest"
    )
    shown = [plain(name if len(name) <= 22 else name[:21] + "…") for name in data.names]
    upright = len(shown) > 6 or max(map(len, shown)) > 8
    ax.set_xticks(
        range(len(shown)),
        shown,
        rotation=45 if upright else 0,
        ha="right" if upright else "center",
        rotation_mode="anchor",
    )
    rows = len(data.clusters)
    if rows <= 60:
        size = "medium" if rows <= 25 else 6
        ax.set_yticks(range(rows), [str(cluster) for cluster in data.clusters], fontsize=size)
    else:
        ax.set_yticks([])
    ax.set_ylabel("cluster" if rows <= 60 else f"{rows} clusters, similar ones together")
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    if data.values.size <= 150:
        for (row, column), value in np.ndenumerate(data.values):
            color = "white" if abs(value) > 0.75 * reach else INK
            text = f"{data.centers[row, column]:.3g}"
            ax.text(column, row, text, ha="center", va="center", fontsize=7, color=color)
    return image


def plot_sizes(model: Any, ax: Axes | None = None) -> Axes:
    """Draw how many samples each cluster has, the largest first.

    Parameters
    ----------
    model : HGMeans
        Fitted.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
    """
    k = len(model.cluster_centers_)
    data = size_data(model.labels_, k)
    ax = get_axes(ax, (float(np.clip(1.5 + 0.4 * k, 4.5, 9.0)), 3.8))
    colors = np.array(OKABE_ITO)[cluster_colors(model.cluster_centers_)]
    bars = ax.bar(range(k), data.sizes, width=0.82 if k <= 60 else 1.0, color=colors[data.clusters])
    if k <= 20:
        ax.bar_label(bars, [f"{size:,}" for size in data.sizes], padding=2, fontsize=8, color=MUTED)
    if k <= 40:
        ax.set_xticks(
            range(k),
            [str(cluster) for cluster in data.clusters],
            fontsize="medium" if k <= 25 else 7,
        )
        ax.set_xlabel("cluster")
    else:
        ax.set_xticks([])
        ax.set_xlabel(f"{k} clusters: from {data.sizes[0]:,} samples down to {data.sizes[-1]:,}")
    ax.set_xlim(-0.6, k - 0.4)
    ax.set_ylabel("samples")
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    ax.grid(axis="y", color=FAINT, linewidth=0.6)
    ax.tick_params(axis="x", length=0)
    return ax
