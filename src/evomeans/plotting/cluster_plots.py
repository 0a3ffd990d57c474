"""The clusters themselves: in the plane, as profiles, by size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evomeans.plotting.axes import (
    DIFFERENCES,
    FAINT,
    INK,
    MUTED,
    OKABE_ITO,
    PAPER,
    cluster_colors,
    get_axes,
    ink_on,
    plain,
)
from evomeans.plotting.cluster_data import (
    Profiles,
    Projection,
    check_one_model,
    cluster_sizes,
    column_names,
    fitted_rows,
    profile_data,
    projection_data,
    room_for_labels,
)
from evomeans.wording import number_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CLUSTER_ID = "cluster-"
"""Start of the SVG ids of everything that is drawn for one cluster."""


def plot_clusters(
    model: Any,
    X: Any,
    *,
    columns: Sequence[str | int] | None = None,
    labels: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the samples in the plane, coloured by cluster, with the numbers of the clusters.

    Beyond eight clusters colours repeat, but neighbours have different ones. Of many samples
    only some are drawn, at least a few of every cluster. Outliers, labelled -1, are grey crosses.

    Parameters
    ----------
    model : HGMeans
        Fitted; any estimator with ``cluster_centers_`` and ``predict`` will do.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The samples to show.
    columns : two column names or indices, optional
        What to show; the first two principal components by default.
    labels : array-like of shape (n_samples,), optional
        The clusters of the samples; by default those that the model predicts. Pass
        ``model.labels_`` of models with constraints or outliers, which predict something else.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    """
    check_one_model(model)
    rows, centers = fitted_rows(model, X), model.cluster_centers_
    names = column_names(model, getattr(X, "columns", None), centers.shape[1])
    shown = np.asarray(model.predict(X) if labels is None else labels)
    if shown.shape != (rows.shape[0],):
        raise ValueError(
            f"labels must have {rows.shape[0]} values, and has the shape {shown.shape}."
        )
    data = projection_data(rows, shown, centers, names=names, columns=columns)
    return draw_clusters(get_axes(ax, (7.0, 5.6)), data, cluster_colors(centers))


def draw_clusters(ax: Axes, data: Projection, palette_indices: NDArray[np.intp]) -> Axes:
    """Draw the data of :func:`plot_clusters`."""
    colors, n_shown = np.array(OKABE_ITO)[palette_indices], len(data.points)
    for cluster in np.unique(data.labels):
        x, y = data.points[data.labels == cluster].T
        ax.scatter(
            x,
            y,
            s=float(np.clip(40_000 / n_shown, 5, 26)),
            color=colors[cluster] if cluster >= 0 else MUTED,
            marker="o" if cluster >= 0 else "x",
            alpha=0.65 if n_shown > 500 else 0.85,
            linewidths=0 if cluster >= 0 else 0.8,
            rasterized=n_shown > 5000,
            gid=f"{CLUSTER_ID}{cluster}",
        )
    width, height = _inches(ax)
    x_limits, y_limits = data.view(width / height)
    x_name, y_name = map(plain, data.axis_names)
    ax.set(xlim=x_limits, ylim=y_limits, xlabel=x_name, ylabel=y_name)
    _draw_centers(ax, data, colors)
    n_counted = np.count_nonzero(data.labels >= 0)
    if n_counted < data.sizes.sum():
        shown = f"{n_counted:,} of {data.sizes.sum():,} samples shown"
        ax.set_title(shown, loc="right", fontsize="small", color=MUTED)
    return ax


def _draw_centers(ax: Axes, data: Projection, colors: Any) -> None:
    """Mark the centres; number those that have room, the largest clusters first."""
    low, high = np.transpose([ax.get_xlim(), ax.get_ylim()])
    places = (data.centers - low) / (high - low) * _inches(ax)
    numbered = room_for_labels(places, (0.26, 0.22), data.sizes)
    x, y = data.centers[~numbered].T
    ax.scatter(x, y, s=18, c=colors[~numbered], edgecolors=PAPER, linewidths=0.8, zorder=3)
    for cluster in np.flatnonzero(numbered):
        x, y = data.centers[cluster]
        ax.text(
            x,
            y,
            str(cluster),
            size=8,
            weight="bold",
            color=ink_on(colors[cluster]),
            ha="center",
            va="center",
            zorder=4,
            clip_on=True,
            gid=f"{CLUSTER_ID}{cluster}",
            bbox={
                "boxstyle": "round,pad=0.38,rounding_size=0.7",
                "facecolor": colors[cluster],
                "edgecolor": PAPER,
                "linewidth": 1.2,
            },
        )


def _inches(ax: Axes) -> tuple[float, float]:
    """Width and height of the axes, about: the layout is only made when the figure is drawn."""
    return ax.bbox.width / ax.figure.dpi, ax.bbox.height / ax.figure.dpi


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
    """
    check_one_model(model)
    k, d = model.cluster_centers_.shape
    names = column_names(model, feature_names, d)
    sizes = cluster_sizes(model.labels_, k)
    data = profile_data(model.cluster_centers_, sizes, names)
    return draw_profiles(get_axes(ax, profiles_size(data)), data)


def profiles_size(data: Profiles) -> tuple[float, float]:
    """Return width and height in inches that :func:`draw_profiles` needs."""
    rows, columns = data.values.shape
    return min(11.0, max(4.5, 2.6 + 0.42 * columns)), float(np.clip(2.2 + 0.28 * rows, 3.4, 9.0))


def draw_profiles(ax: Axes, data: Profiles) -> Axes:
    """Draw the data of :func:`plot_profiles`."""
    rows, columns = data.values.shape
    reach = float(np.clip(np.abs(data.values).max(initial=0.0), 1.0, 3.0))
    _draw_cells(ax, data, reach)
    shown = [plain(name, 22) for name in data.names]
    upright = columns > 6 or max(map(len, shown)) > 8
    ax.set_xticks(
        range(columns),
        shown,
        rotation=45 if upright else 0,
        ha="right" if upright else "center",
        rotation_mode="anchor",
    )
    numbers = [str(cluster) for cluster in data.clusters] if rows <= 60 else []
    ax.set_yticks(range(len(numbers)), numbers, fontsize="medium" if rows <= 25 else 6)
    ax.set_ylabel("cluster" if numbers else f"{rows} clusters, similar ones together")
    ax.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5))
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    _draw_scale(ax, reach)
    if columns < data.n_features:
        chosen = f"{columns} of {data.n_features} columns, the most telling first"
        ax.set_title(chosen, loc="left", fontsize="small", color=MUTED)
    return ax


def _draw_cells(ax: Axes, data: Profiles, reach: float) -> None:
    """Draw one shape for each level of colour, so that thousands of cells stay a small file."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    half = len(DIFFERENCES) // 2
    levels = half + np.rint(half * np.clip(data.values / reach, -1, 1)).astype(int)
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]) - 0.5
    codes = [Path.MOVETO, *[Path.LINETO] * 3, Path.CLOSEPOLY]
    for level in np.unique(levels):
        corners = np.argwhere(levels == level)[:, None, ::-1] + square
        path = Path(corners.reshape(-1, 2), np.tile(codes, len(corners)))
        width = 0.8 if len(data.values) <= 60 else 0.0
        ax.add_patch(PathPatch(path, facecolor=DIFFERENCES[level], ec=PAPER, linewidth=width))
    if data.values.size <= 150:
        for (row, column), value in np.ndenumerate(data.values):
            color = PAPER if abs(value) > 0.75 * reach else INK
            text = number_text(float(data.centers[row, column]), 3)
            ax.text(column, row, text, ha="center", va="center", fontsize=7, color=color)


def _draw_scale(ax: Axes, reach: float) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize

    scale = ScalarMappable(Normalize(-reach, reach), ListedColormap(DIFFERENCES))
    bar = ax.figure.colorbar(scale, ax=ax, shrink=0.9, aspect=25, pad=0.02)
    bar.set_label("standard deviations from the mean", color=INK, fontsize="small")
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, labelcolor=MUTED)


def plot_sizes(model: Any, ax: Axes | None = None) -> Axes:
    """Draw how many samples each cluster has, the largest first.

    Parameters
    ----------
    model : HGMeans
        Fitted.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    """
    check_one_model(model)
    sizes = cluster_sizes(model.labels_, len(model.cluster_centers_))
    ax = get_axes(ax, (float(np.clip(1.5 + 0.4 * len(sizes), 4.5, 9.0)), 3.8))
    return draw_sizes(ax, sizes, cluster_colors(model.cluster_centers_))


def draw_sizes(ax: Axes, sizes: NDArray[np.intp], palette_indices: NDArray[np.intp]) -> Axes:
    """Draw the data of :func:`plot_sizes`."""
    k, order = len(sizes), np.argsort(-sizes, kind="stable")
    bars = ax.bar(
        range(k),
        sizes[order],
        width=0.82 if k <= 60 else 1.0,
        color=np.array(OKABE_ITO)[palette_indices[order]],
    )
    for cluster, bar in zip(order, bars, strict=True):
        bar.set_gid(f"{CLUSTER_ID}{cluster}")
    if k <= 20:
        ax.bar_label(bars, [f"{sizes[i]:,}" for i in order], padding=2, fontsize=8, color=MUTED)
    if k <= 40:
        ax.set_xticks(range(k), map(str, order), fontsize="medium" if k <= 25 else 7)
        ax.set_xlabel("cluster")
    else:
        ax.set_xticks([])
        ax.set_xlabel(f"{k} clusters: from {sizes.max():,} samples down to {sizes.min():,}")
    ax.set_xlim(-0.6, k - 0.4)
    ax.set_ylabel("samples")
    ax.locator_params(axis="y", integer=True)
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    ax.grid(axis="y", color=FAINT, linewidth=0.6)
    ax.tick_params(axis="x", length=0)
    return ax
