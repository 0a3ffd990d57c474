"""One-dimensional k-means, solved to proven optimality."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.exact.line_program import (
    Indices,
    best_starts,
    best_starts_of_all,
    segment_means,
)

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LineClustering:
    """An optimal clustering of points on a line."""

    centers: Floats
    """Shape (k,), ascending."""
    labels: NDArray[np.int32]
    """Index of the nearest centre of each point, the lower one on a tie, in the input's order."""
    inertia: float
    """Sum of w (x - centre)², by the direct formula."""
    cluster_weights: Floats
    """Sum of the weights of each cluster's points."""


def cluster_line(
    x: NDArray[Any], n_clusters: int, sample_weight: NDArray[Any] | None = None
) -> LineClustering:
    """Minimise the weighted sum of squared distances to the nearest of ``n_clusters`` centres.

    The result is the global optimum; see `evomeans.exact.line_program` for the algorithm and for
    what is guaranteed in float64.

    Parameters
    ----------
    x : ndarray of shape (n,)
        Finite points, in any order.
    n_clusters : int
        Number of centres, between 1 and n.
    sample_weight : ndarray of shape (n,), optional
        Non-negative and not all zero. Points of weight 0 get labels, but do not pull centres.

    Returns
    -------
    LineClustering
        With fewer distinct values than centres, the surplus centres repeat the largest value,
        and no label points at them.

    Examples
    --------
    >>> import numpy as np
    >>> from evomeans.exact import cluster_line
    >>> result = cluster_line(np.array([1.0, 9.0, 2.0, 11.0]), 2)
    >>> result.centers.tolist(), result.labels.tolist(), result.inertia
    ([1.5, 10.0], [0, 1, 0, 1], 2.5)
    """
    return cluster_line_path(x, [n_clusters], sample_weight)[0]


def cluster_line_path(
    x: NDArray[Any], k_values: Sequence[int], sample_weight: NDArray[Any] | None = None
) -> list[LineClustering]:
    """Solve for several numbers of clusters; one dynamic program gives them all.

    Parameters
    ----------
    x : ndarray of shape (n,)
        Finite points, in any order.
    k_values : sequence of int
        Numbers of centres, ascending, between 1 and n.
    sample_weight : ndarray of shape (n,), optional
        As in :func:`cluster_line`.

    Returns
    -------
    list of LineClustering
        One for each number of centres.

    Examples
    --------
    >>> import numpy as np
    >>> from evomeans.exact import cluster_line_path
    >>> [one.inertia for one in cluster_line_path(np.array([1.0, 9.0, 2.0, 11.0]), [1, 2, 3])]
    [74.75, 2.5, 0.5]
    """
    # Powers of two change no digit, and keep squares away from overflow and underflow.
    x, x_exponent = scale(np.asarray(x, np.float64))
    w = np.ones(x.size) if sample_weight is None else np.asarray(sample_weight, np.float64)
    scaled_w, w_exponent = scale(w)
    values, weights = distinct(x, scaled_w)
    # Sums of weights carry some 30 digits; 21 of them below the largest weight are plenty.
    clamped = np.maximum(weights, math.ldexp(float(weights.max()), -70))
    ks = [k for k in k_values if k < values.size]
    found: list[Indices] = []
    if len(ks) == 1:
        found = [best_starts(values, clamped, ks[0])]
    elif ks:
        found = best_starts_of_all(values, clamped, ks)
    centers = [segment_means(values, weights, starts)[0] for starts in found]
    centers += [values] * (len(k_values) - len(ks))
    exponents = x_exponent, w_exponent
    return [
        labelled(x, scaled_w, w, one, k, exponents)
        for one, k in zip(centers, k_values, strict=True)
    ]


def labelled(
    x: Floats,
    scaled_w: Floats,
    w: Floats,
    centers: Floats,
    n_clusters: int,
    exponents: tuple[int, int],
) -> LineClustering:
    """Return what follows from optimal centres, in the units of the input."""
    x_exponent, w_exponent = exponents
    labels = nearest(x, centers)
    inertia = np.sum(scaled_w * (x - centers[labels]) ** 2)
    surplus = np.full(n_clusters - centers.size, centers[-1])
    return LineClustering(
        centers=np.ldexp(np.append(centers, surplus), x_exponent),
        labels=labels,
        inertia=float(np.ldexp(inertia, 2 * x_exponent + w_exponent)),
        cluster_weights=np.bincount(labels, w, n_clusters).astype(np.float64),
    )


def scale(values: Floats) -> tuple[Floats, int]:
    """Divide by a power of two so that all magnitudes are at most 1/2; return its exponent too."""
    exponent = math.frexp(float(np.abs(values).max()))[1] + 1
    return np.ldexp(values, -exponent), exponent


def distinct(x: Floats, w: Floats) -> tuple[Floats, Floats]:
    """Sorted distinct values of positive weight, and the sums of their weights."""
    x, w = x[w > 0], w[w > 0]
    # Sorted by weight as well, the sums do not depend on the order of the input.
    order = np.argsort(x) if np.ptp(w) == 0.0 else np.lexsort((w, x))
    x, w = x[order], w[order]
    starts = np.flatnonzero(np.append(True, x[1:] > x[:-1]))
    return x[starts], np.add.reduceat(w, starts)


def nearest(x: Floats, centers: Floats) -> NDArray[np.int32]:
    """Index of the nearest of the ascending centres, the lower one on a tie."""
    left = (np.searchsorted(centers, x) - 1).clip(0, max(0, centers.size - 2))
    right = np.minimum(left + 1, centers.size - 1)
    return np.where(x - centers[left] <= centers[right] - x, left, right).astype(np.int32)
