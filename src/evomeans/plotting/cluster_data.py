"""What the plots of clusters show, as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import pdist

from evomeans.engines.frame import is_sparse
from evomeans.plotting.samples import FloatArray, as_rows, dense_rows

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
    """Choose at most about ``limit`` samples, always the same ones, in a shuffled order.

    Every cluster keeps ``at_least`` of its samples, or all if it has fewer: small clusters do
    not vanish.

    Parameters
    ----------
    labels : (n,) array of int
        The cluster of each sample.
    limit : int
        How many to keep.
    at_least : int
        How many of each cluster.

    Returns
    -------
    (m,) array of int
        Indices of samples.
    """
    order = np.random.default_rng(0).permutation(len(labels))
    if len(order) <= limit:
        return order
    by_cluster = order[np.argsort(labels[order], kind="stable")]
    ordered = labels[by_cluster]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    rank = np.arange(len(ordered)) - np.repeat(starts, np.diff(np.append(starts, len(ordered))))
    protected = np.zeros(len(labels), dtype=bool)
    protected[by_cluster[rank < at_least]] = True
    others = order[~protected[order]][: max(0, limit - int(protected.sum()))]
    kept = protected
    kept[others] = True
    return order[kept[order]]


@dataclass(frozen=True, eq=False)
class Projection:
    """Samples and centres in the plane.

    Parameters
    ----------
    points : (m, 2) array
        Some of the samples, in a shuffled order.
    labels : (m,) array of int
        Their clusters.
    centers : (k, 2) array
        The centres.
    sizes : (k,) array of int
        How many of all samples each cluster has.
    axis_names : tuple of two str
        What the axes are.
    """

    points: FloatArray
    labels: NDArray[Any]
    centers: FloatArray
    sizes: NDArray[np.intp]
    axis_names: tuple[str, str]

    def view(self, shape: float = 1.0) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return the limits of both axes: nearly all samples and every centre, with a margin.

        A few far samples must not squeeze the rest into a dot, so that the outermost 0.5 % may
        lie outside. Distances are what k-means is about: both axes have the same scale, unless
        that would leave most of the picture empty.

        Parameters
        ----------
        shape : float
            Width of the picture divided by its height.
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

    Parameters
    ----------
    X : (n, d) array or sparse matrix
        The samples.
    labels : (n,) array of int
        Their clusters.
    centers : (k, d) array
        The centres.
    names : sequence of str
        Of the columns.
    columns : two of the names or indices, optional
        Show these instead of the first two principal components.
    limit : int
        Keep about this many samples; see :func:`thin_out`.

    Returns
    -------
    Projection
    """
    X = as_rows(X)
    kept = thin_out(labels, limit)
    middles = np.asarray(centers, dtype=np.float64)
    if columns is not None:
        first, second = _two_columns(columns, names)
        points = _columns_of(X, kept, [first, second])
        plane, axis_names = middles[:, [first, second]], (names[first], names[second])
    elif X.shape[1] == 1:
        points, plane = _strip(dense_rows(X, kept)), np.insert(middles, 1, 0.5, axis=1)
        axis_names = (names[0], "spread out to be seen")
    else:
        mean, axes, shares = _principal_axes(X)
        points, plane = (dense_rows(X, kept) - mean) @ axes.T, (middles - mean) @ axes.T
        first_name, second_name = (
            f"principal component {i + 1} ({share:.0%} of the variance)"
            for i, share in enumerate(shares)
        )
        axis_names = (first_name, second_name)
    sizes = np.bincount(labels, minlength=len(middles))
    return Projection(points, labels[kept], plane, sizes, axis_names)


def _two_columns(columns: Sequence[str | int], names: Sequence[str]) -> tuple[int, int]:
    if isinstance(columns, str) or len(columns) != 2:
        raise ValueError(f"columns must be two names or two indices, got {columns!r}.")
    first, second = (_column_index(column, names) for column in columns)
    return first, second


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


def _columns_of(X: Any, rows: NDArray[np.intp], columns: list[int]) -> FloatArray:
    taken = X[rows][:, columns]
    return np.asarray(taken.toarray() if is_sparse(taken) else taken, dtype=np.float64)


def _strip(values: FloatArray) -> FloatArray:
    """Spread samples on a line evenly over a strip (by multiples of the golden ratio)."""
    heights = np.arange(1, len(values) + 1) * 0.6180339887498949 % 1.0
    return np.column_stack([values, heights])


def _principal_axes(X: Any) -> tuple[FloatArray, FloatArray, tuple[float, float]]:
    """Return the mean, the first two principal axes and their shares of the variance."""
    # Imported here: the command line answers without loading it.
    from sklearn.decomposition import PCA

    every = max(1, -(-X.shape[0] // ROWS_FOR_AXES))
    rows = X[::every]
    sparse = is_sparse(rows) and min(rows.shape) > 2
    if not sparse:
        rows = dense_rows(rows, slice(None))
    mean = np.asarray(rows.mean(axis=0), dtype=np.float64).ravel()
    if rows.shape[0] < 2 or not (sparse or (rows - mean).any()):
        return mean, np.eye(2, X.shape[1]), (0.0, 0.0)
    pca = PCA(2, svd_solver="arpack" if sparse else "auto", random_state=0).fit(rows)
    first, second = pca.explained_variance_ratio_
    return mean, np.asarray(pca.components_), (float(first), float(second))


@dataclass(frozen=True, eq=False)
class Profiles:
    """How the clusters differ from the whole, in the columns that tell most.

    Parameters
    ----------
    values : (k, m) array
        Difference of each centre from the overall mean, in standard deviations.
    centers : (k, m) array
        The centres in units of the data.
    clusters : (k,) array of int
        The cluster of each row: similar ones stand together.
    names : list of str
        Of the m columns, the most telling first.
    n_features : int
        How many columns there are in all.
    """

    values: FloatArray
    centers: FloatArray
    clusters: NDArray[np.intp]
    names: list[str]
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
    """Standardise the centres, and choose columns.

    Parameters
    ----------
    centers : (k, d) array
        In units of the data.
    weights : (k,) array
        Sizes of the clusters.
    names : sequence of str
        Of the columns.
    shown : (k, d) array, optional
        The centres in the units to be shown, if the model was fitted to scaled samples.
    mean, spread : (d,) arrays, optional
        Mean and standard deviation of the samples. Without them, those of the centres serve. A
        column then counts by its part in the separation of the clusters; with them, by the share
        of its variance that the clusters explain.
    limit : int
        Columns to keep.

    Returns
    -------
    Profiles
    """
    middles = np.asarray(centers, dtype=np.float64)
    shares = weights / weights.sum()
    mean = shares @ middles if mean is None else mean
    between = np.sqrt(shares @ np.square(middles - mean))
    values = standardized(middles, mean, between if spread is None else spread)
    telling = between if spread is None else np.sqrt(shares @ np.square(values))
    chosen = np.argsort(-telling, kind="stable")[:limit]
    rows = _similar_together(values[:, chosen])
    return Profiles(
        values[rows][:, chosen],
        (middles if shown is None else shown)[rows][:, chosen],
        rows,
        [names[i] for i in chosen],
        middles.shape[1],
    )


def standardized(centers: FloatArray, mean: FloatArray, spread: FloatArray) -> FloatArray:
    """Differences from the mean in standard deviations; 0 in columns that do not vary."""
    # A constant column leaves a spread of some roundings.
    varies = spread > 1e-12 * np.maximum(np.abs(mean), np.finfo(np.float64).tiny)
    return np.where(varies, (centers - mean) / np.where(varies, spread, 1.0), 0.0)


def _similar_together(values: FloatArray) -> NDArray[np.intp]:
    if len(values) < 3:
        return np.arange(len(values))
    tree = linkage(pdist(values), "average", optimal_ordering=True)
    return np.asarray(leaves_list(tree), dtype=np.intp)


def room_for_labels(
    places: FloatArray, size: tuple[float, float], priority: NDArray[Any]
) -> NDArray[np.bool_]:
    """Tell which labels can be written without touching one of a higher priority.

    Parameters
    ----------
    places : (k, 2) array
        Where the labels would be.
    size : tuple of two float
        Width and height of a label, in the same units.
    priority : (k,) array
        Higher ones are placed first.

    Returns
    -------
    (k,) array of bool
    """
    room = np.zeros(len(places), dtype=bool)
    for i in np.argsort(-np.asarray(priority), kind="stable"):
        away = np.abs(places[room] - places[i])
        room[i] = not np.any((away[:, 0] < size[0]) & (away[:, 1] < size[1]))
    return room
