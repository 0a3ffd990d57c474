"""The samples and models that plots take, and the data of plots of clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import pdist

from evomeans.engines.frame import is_sparse
from evomeans.sparse import as_csr
from evomeans.typing import FloatArray


def as_rows(X: Any) -> Any:
    """Return samples as something with a shape whose rows can be taken: an array or CSR."""
    return as_csr(X) if is_sparse(X) else np.asarray(X)


def dense(X: Any) -> FloatArray:
    """Return samples as a float64 array."""
    return np.asarray(as_csr(X).toarray() if is_sparse(X) else X, dtype=np.float64)


def check_fitted(model: Any) -> None:
    """Raise scikit-learn's NotFittedError if a model has not been fitted."""
    # Imported here: the command line answers without loading it.
    from sklearn.utils.validation import check_is_fitted

    if not hasattr(model, "fit"):
        raise TypeError(
            f"A fitted estimator with centres is needed here, such as HGMeans; got "
            f"{type(model).__name__}."
        )
    check_is_fitted(model, "cluster_centers_")


def check_one_model(model: Any) -> None:
    """Raise an error that explains what is needed if this is not one fitted model."""
    check_fitted(model)
    if isinstance(model.cluster_centers_, dict):
        raise TypeError(
            f"{type(model).__name__} has a model for each k; pass one of them, such as "
            f"path.at({next(iter(model.cluster_centers_))}) or path.best_estimator_."
        )


def fitted_rows(model: Any, X: Any) -> Any:
    """Return samples as :func:`as_rows` does, if they have the features of a fitted model."""
    check_fitted(model)
    centers = model.cluster_centers_
    if isinstance(centers, dict):
        # A path has centres for every k.
        centers = next(iter(centers.values()))
    rows, expected = as_rows(X), centers.shape[1]
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
    """Choose at most about ``limit`` samples, always the same ones, in a shuffled order.

    Every cluster keeps ``at_least`` of its samples, or all if it has fewer: small clusters do
    not vanish. Returns the indices of the samples.
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

        A few far samples must not squeeze the rest into a dot, so the outermost 0.5 % may
        lie outside. Distances are what k-means is about: both axes have the same scale, unless
        that would leave most of the picture empty. ``shape`` is width divided by height.
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
    pca = PCA(min(2, rows.shape[1]), svd_solver="arpack" if sparse else "auto", random_state=0).fit(
        rows
    )
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
