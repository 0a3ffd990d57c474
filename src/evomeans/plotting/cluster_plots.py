"""The samples and models that plots take, and the clusters: in the plane, as profiles, by size.

The data of each plot come first, so that they can be tested without a picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import pdist

from evomeans.docstrings import described_like
from evomeans.engines.frame import is_sparse
from evomeans.metrics.sums import dense
from evomeans.plotting.axes import (
    DIFFERENCES,
    FAINT,
    INK,
    MUTED,
    OKABE_ITO,
    PAPER,
    badge,
    cluster_colors,
    get_axes,
    plain,
)
from evomeans.sparse import as_csr
from evomeans.typing import FloatArray
from evomeans.wording import number_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def as_rows(X: Any) -> Any:
    """Return samples as something with a shape whose rows can be taken: an array or CSR."""
    return as_csr(X) if is_sparse(X) else np.asarray(X)


def check_fitted(model: Any) -> None:
    """Raise scikit-learn's NotFittedError if a model has not been fitted."""
    # Imported here: the command line answers without loading it.
    from sklearn.utils.validation import check_is_fitted

    if not hasattr(model, "fit"):
        raise TypeError(
            f"A fitted estimator with centres is needed here, such as HGMeans; got "
            f"{type(model).__name__}."
        )
    # A path that has not chosen a k has no centres of its own.
    check_is_fitted(model, ["cluster_centers_", "k_values_"], all_or_any=any)


def check_one_model(model: Any) -> None:
    """Raise an error that explains what is needed if this is not one fitted model."""
    check_fitted(model)
    if hasattr(model, "k_values_"):
        raise TypeError(
            f"{type(model).__name__} has a model for each k; pass one of them, such as "
            f"path.at({model.k_values_[0]}) or path.best_estimator_."
        )


def fitted_rows(model: Any, X: Any) -> Any:
    """Return samples as :func:`as_rows` does, if they have the features of a fitted model."""
    check_fitted(model)
    is_path = hasattr(model, "k_values_")
    rows = as_rows(X)
    expected = model.n_features_in_ if is_path else model.cluster_centers_.shape[1]
    if rows.ndim != 2 or rows.shape[1] != expected:
        raise ValueError(
            f"X must have {expected} features, as in the fit; it has the shape {rows.shape}."
        )
    return rows


# Axes of the projection do not change visibly with more rows than this.
ROWS_FOR_AXES = 20_000


def column_names(model: Any, feature_names: Sequence[str] | None, n_features: int) -> list[str]:
    """Return the names given, else those of the fit, else ``x0``, ``x1`` and so on."""
    if feature_names is None:
        feature_names = getattr(model, "feature_names_in_", None)
    if feature_names is None:
        return [f"x{i}" for i in range(n_features)]
    if len(feature_names) != n_features:
        raise ValueError(
            f"feature_names must name all {n_features} columns, got {len(feature_names)} names."
        )
    return [str(name) for name in feature_names]


def thin_out(labels: NDArray[Any], limit: int, at_least: int = 5) -> NDArray[np.intp]:
    """Return the indices of about ``limit`` samples, always the same ones, in a shuffled order.

    Every cluster keeps ``at_least`` of its samples, or all of them: small clusters do not vanish.
    """
    order = np.random.default_rng(0).permutation(len(labels))
    if len(order) <= limit:
        return order
    # Outliers, labelled −1, are a cluster here.
    counts = np.bincount(labels - labels.min())
    rank = np.empty_like(order)
    by_cluster = np.argsort(labels[order], kind="stable")
    rank[by_cluster] = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    protected = rank < at_least
    others = np.cumsum(~protected) <= limit - protected.sum()
    chosen: NDArray[np.intp] = order[protected | others]
    return chosen


@dataclass(frozen=True, eq=False)
class Projection:
    """Some of the samples in the plane with their labels, and all centres.

    ``sizes`` counts all samples of each cluster. The label −1 is that of outliers.
    """

    points: FloatArray
    labels: NDArray[np.intp]
    centers: FloatArray
    sizes: NDArray[np.intp]
    axis_names: list[str]

    def view(self, shape: float = 1.0) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return the limits of both axes: nearly all samples and every centre, with a margin.

        A few far samples must not squeeze the rest into a dot, so the outermost 0.5 % may lie
        outside. Both axes have the same scale, unless that would leave most of the picture empty.
        ``shape`` is width divided by height.
        """
        low, high = np.quantile(self.points, [0.0025, 0.9975], axis=0)
        slack = 0.25 * (high - low)
        low = np.maximum(self.points.min(axis=0), low - slack)
        high = np.minimum(self.points.max(axis=0), high + slack)
        low = np.minimum(low, self.centers.min(axis=0))
        high = np.maximum(high, self.centers.max(axis=0))
        half = np.where(high > low, high - low, (high - low).max() or 1.0) / 2
        equal = max(half[0] / shape, half[1]) * np.array([shape, 1.0])
        if np.all(equal <= 3.0 * half):
            half = equal
        left, bottom = (low + high) / 2 - 1.06 * half
        right, top = (low + high) / 2 + 1.06 * half
        return (float(left), float(right)), (float(bottom), float(top))


def projection_data(
    X: Any,
    labels: NDArray[Any],
    centers: NDArray[Any],
    *,
    names: Sequence[str],
    columns: Sequence[str | int] | None = None,
    limit: int = 20_000,
) -> Projection:
    """Project samples and centres onto principal components, or onto two columns.

    Columns are given by their names or indices. About ``limit`` samples are kept, as in
    :func:`thin_out`.
    """
    X = as_rows(X)
    kept = thin_out(labels, limit)
    middles = np.asarray(centers, dtype=np.float64)
    if columns is not None:
        if isinstance(columns, str) or len(columns) != 2:
            raise ValueError(f"columns must be two names or two indices, got {columns!r}.")
        pair = [_column_index(column, names) for column in columns]
        points, plane = dense(X[kept][:, pair]), middles[:, pair]
        axis_names = [names[i] for i in pair]
    elif X.shape[1] == 1:
        # Spread evenly over a strip, by multiples of the golden ratio.
        heights = np.arange(1, len(kept) + 1) * 0.6180339887498949 % 1.0
        points = np.column_stack([dense(X[kept]), heights])
        plane = np.insert(middles, 1, 0.5, axis=1)
        axis_names = [names[0], "spread out to be seen"]
    else:
        mean, axes, shares = principal_axes(X)
        points, plane = (dense(X[kept]) - mean) @ axes.T, (middles - mean) @ axes.T
        axis_names = [
            f"principal component {i} ({share:.0%} of the variance)"
            for i, share in enumerate(shares, start=1)
        ]
    sizes = cluster_sizes(labels, len(middles))
    return Projection(points, labels[kept], plane, sizes, axis_names)


def cluster_sizes(labels: NDArray[Any], n_clusters: int) -> NDArray[np.intp]:
    """Count the samples of clusters; outliers, labelled −1, belong to none."""
    return np.bincount(labels[labels >= 0], minlength=n_clusters)


def _column_index(column: str | int, names: Sequence[str]) -> int:
    if isinstance(column, str):
        if column not in names:
            shown = ", ".join(repr(name) for name in names[:10])
            more = f", … ({len(names)} in all)" if len(names) > 10 else ""
            raise ValueError(f"There is no column {column!r}; there are {shown}{more}.")
        return list(names).index(column)
    if not 0 <= column < len(names):
        raise ValueError(f"There is no column {column}; indices go from 0 to {len(names) - 1}.")
    return int(column)


def principal_axes(X: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the mean, the first two principal axes, if there are two, and their shares."""
    # Imported here: the command line answers without loading it.
    from sklearn.decomposition import PCA

    every = max(1, -(-X.shape[0] // ROWS_FOR_AXES))
    rows = X[::every]
    sparse = is_sparse(rows) and min(rows.shape) > 2
    if not sparse:
        rows = dense(rows)
    mean = np.asarray(rows.mean(axis=0), dtype=np.float64).ravel()
    if rows.shape[0] < 2 or not (sparse or (rows - mean).any()):
        return mean, np.eye(2, X.shape[1]), np.zeros(2)
    solver = "arpack" if sparse else "auto"
    pca = PCA(min(2, rows.shape[1]), svd_solver=solver, random_state=0).fit(rows)
    return mean, np.asarray(pca.components_), np.asarray(pca.explained_variance_ratio_)


@dataclass(frozen=True, eq=False)
class Profiles:
    """How the clusters differ from the whole, in the columns that tell most.

    A row for each of ``clusters``, similar ones next to each other; a column for each of ``names``,
    whose indices are ``columns``, out of ``n_features``. ``values`` are differences of the
    ``centers`` from the overall mean, in standard deviations.
    """

    values: FloatArray
    centers: FloatArray
    clusters: NDArray[np.intp]
    names: list[str]
    columns: NDArray[np.intp]
    n_features: int


def profile_data(
    centers: NDArray[Any],
    weights: NDArray[Any],
    names: Sequence[str],
    *,
    shown: FloatArray | None = None,
    mean: FloatArray | None = None,
    spread: FloatArray | None = None,
    limit: int = 24,
) -> Profiles:
    """Standardise the centres, and choose the ``limit`` most telling columns.

    ``shown`` are the centres in other units, if the model was fitted to scaled samples. ``mean``
    and ``spread`` are those of the samples. A column then counts by the share of its variance that
    the clusters explain. Without them, those of the centres are used, and a column counts by its
    part in the separation of the clusters.
    """
    middles = np.asarray(centers, dtype=np.float64)
    shares = weights / weights.sum()
    mean = shares @ middles if mean is None else mean
    between = np.sqrt(shares @ np.square(middles - mean))
    values = standardized(middles, mean, between if spread is None else spread)
    telling = between if spread is None else np.sqrt(shares @ np.square(values))
    chosen = np.argsort(-telling, kind="stable")[:limit]
    rows = np.arange(len(values))
    if len(rows) > 2:
        tree = linkage(pdist(values[:, chosen]), "average", optimal_ordering=True)
        rows = leaves_list(tree).astype(np.intp)
    return Profiles(
        values[rows][:, chosen],
        (middles if shown is None else shown)[rows][:, chosen],
        rows,
        [names[i] for i in chosen],
        chosen,
        middles.shape[1],
    )


def standardized(centers: FloatArray, mean: FloatArray, spread: FloatArray) -> FloatArray:
    """Differences from the mean in standard deviations; 0 in columns that do not vary."""
    # A constant column leaves a spread of some roundings.
    varies = spread > 1e-12 * np.maximum(np.abs(mean), np.finfo(np.float64).tiny)
    return np.where(varies, (centers - mean) / np.where(varies, spread, 1.0), 0.0)


def room_for_labels(
    places: FloatArray, size: tuple[float, float], priority: NDArray[Any]
) -> NDArray[np.bool_]:
    """Tell which labels, of this width and height, do not touch one of a higher priority."""
    room = np.zeros(len(places), dtype=bool)
    for i in np.argsort(-np.asarray(priority), kind="stable"):
        away = np.abs(places[room] - places[i])
        room[i] = not np.any((away[:, 0] < size[0]) & (away[:, 1] < size[1]))
    return room


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
        Fitted; any estimator with ``cluster_centers_``, ``labels_`` and ``predict`` will do.
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
    for cluster in np.flatnonzero(numbered).tolist():
        x, y = data.centers[cluster]
        badge(ax, x, y, cluster, colors[cluster], clip_on=True, gid=f"{CLUSTER_ID}{cluster}")


def _inches(ax: Axes) -> tuple[float, float]:
    """Width and height of the axes, about: the layout is only made when the figure is drawn."""
    return ax.bbox.width / ax.figure.dpi, ax.bbox.height / ax.figure.dpi


@described_like(plot_clusters)
def plot_profiles(
    model: Any, *, feature_names: Sequence[str] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw what distinguishes the centres, as a table of colours.

    Rows are clusters, similar ones together. Columns are those that part the clusters most. The
    colour is the difference from the overall mean, in standard deviations of the centres; few
    enough cells also show the centres themselves, in units of the data.

    Parameters
    ----------
    feature_names : sequence of str, optional
        Names of all columns; by default those that the model was fitted with.
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
    is_tight = columns > 6 or max(map(len, shown)) > 8
    turned: dict[str, Any] = {"rotation": 45, "ha": "right"} if is_tight else {}
    ax.set_xticks(range(columns), shown, rotation_mode="anchor", **turned)
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


@described_like(plot_clusters)
def plot_sizes(model: Any, ax: Axes | None = None) -> Axes:
    """Draw how many samples each cluster has, the largest first."""
    check_one_model(model)
    sizes = cluster_sizes(model.labels_, len(model.cluster_centers_))
    ax = get_axes(ax, (float(np.clip(1.5 + 0.4 * len(sizes), 4.5, 9.0)), 3.8))
    return draw_sizes(ax, sizes, cluster_colors(model.cluster_centers_))


def draw_sizes(ax: Axes, sizes: NDArray[np.intp], palette_indices: NDArray[np.intp]) -> Axes:
    """Draw the data of :func:`plot_sizes`."""
    k, order = len(sizes), np.argsort(-sizes, kind="stable")
    colors, width = np.array(OKABE_ITO)[palette_indices[order]], 0.82 if k <= 60 else 1.0
    bars = ax.bar(range(k), sizes[order], width=width, color=colors)
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
