"""One-dimensional k-means, solved to proven optimality."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.exact.line_program import LARGEST_MAGNITUDE, Segments, best_starts, segment_means
from evomeans.typing import FloatArray, Integers

LIGHTEST_EXPONENT = -70
"""Binary exponent: lighter points, relative to the heaviest one, count as much as this."""
PROVEN = 1e-6
"""A clustering is called optimal if its inertia exceeds the optimum by no more than this share."""


@dataclass(frozen=True)
class LineClustering:
    """An optimal clustering of points on a line."""

    centers: FloatArray
    """Shape (k,), ascending."""
    labels: NDArray[np.int32]
    """Index of the nearest centre of each point, the lower one on a tie, in the input's order."""
    inertia: float
    """Sum of w (x - centre)², by the direct formula."""
    cluster_weights: FloatArray
    """Sum of the weights of each cluster's points."""
    is_proven: bool
    """Whether the labels are proven to be optimal, up to a millionth of the inertia."""
    segments: Integers
    """Index of the optimal segment of each point of positive weight, nearly always the label."""
    doubt: float
    """By how much the inertia of the segments may exceed the optimum, besides the rounding of that
    inertia, in units without overflow. Infinite where nothing is guaranteed."""
    unit_exponent: int
    """Inertias of the points are those in these units times ``2**unit_exponent``."""


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
    """Solve for several numbers of clusters, ascending; one dynamic program gives them all.

    Arguments and results are otherwise those of :func:`cluster_line`.

    Examples
    --------
    >>> import numpy as np
    >>> from evomeans.exact import cluster_line_path
    >>> [one.inertia for one in cluster_line_path(np.array([1.0, 9.0, 2.0, 11.0]), [1, 2, 3])]
    [74.75, 2.5, 0.5]
    """
    x = np.asarray(x, np.float64)
    w = np.ones(len(x)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    scaled_x, x_exponent = scale(x, LARGEST_MAGNITUDE)
    scaled_w, w_exponent = scale(w, 1.0)
    # Underflow may have cost digits.
    is_exact = np.array_equal(np.ldexp(scaled_x, x_exponent), x)
    is_exact = is_exact and np.array_equal(np.ldexp(scaled_w, w_exponent), w)
    values, weights = distinct(scaled_x, scaled_w)

    def clustering(found: Segments, k: int) -> LineClustering:
        centers, _, least = segment_means(values, weights, found.starts)
        last = np.append(values[found.starts[1:] - 1], values[-1])
        labels, segments = (
            nearest(scaled_x, centers),
            np.searchsorted(np.ldexp(last, x_exponent), x),
        )
        inertia = np.sum(scaled_w * (scaled_x - centers[labels]) ** 2)
        doubt = 0.0 if k == 1 else found.doubt if is_exact else math.inf
        # The nearest of the rounded centres may be that of another segment.
        is_segment = np.array_equal(labels[w > 0], segments[w > 0])
        excess = 0.0 if is_segment else max(0.0, float(inertia) - least)
        surplus = np.full(k - centers.size, centers[-1])
        unit_exponent = 2 * x_exponent + w_exponent
        return LineClustering(
            centers=np.ldexp(np.append(centers, surplus), x_exponent),
            labels=labels,
            inertia=float(np.ldexp(inertia, unit_exponent)),
            cluster_weights=np.bincount(labels, w, k).astype(np.float64),
            is_proven=doubt + excess <= PROVEN * least,
            segments=segments,
            doubt=doubt,
            unit_exponent=unit_exponent,
        )

    return [
        clustering(one, k)
        for one, k in zip(solved(values, weights, k_values), k_values, strict=True)
    ]


def solved(values: FloatArray, weights: FloatArray, k_values: Sequence[int]) -> list[Segments]:
    """Return optimal segments of ascending points for several numbers of clusters, ascending."""
    # Sums of weights carry some 30 digits; 21 of them below the largest weight are plenty.
    clamped = np.maximum(weights, math.ldexp(float(weights.max()), LIGHTEST_EXPONENT))
    # Labels that are optimal for the raised weights lose at most what these add, anywhere.
    raised = 2 * float(np.sum(clamped - weights)) * float(values[-1] - values[0]) ** 2
    ks = [k for k in k_values if k < values.size]
    found = [
        Segments(starts, doubt + raised)
        for starts, doubt in (best_starts(values, clamped, ks) if ks else [])
    ]
    return found + [Segments(np.arange(values.size), 0.0)] * (len(k_values) - len(ks))


def scale(values: FloatArray, largest: float) -> tuple[FloatArray, int]:
    """Multiply by a power of two: magnitudes up to half of a power of two, ``largest``.

    The second value is the exponent of the power that leads back.
    """
    exponent = math.frexp(float(np.abs(values).max()))[1] + 2 - math.frexp(largest)[1]
    return np.ldexp(values, -exponent), exponent


def distinct(x: FloatArray, w: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Sorted distinct values of positive weight, and the sums of their weights."""
    x, w = x[w > 0], w[w > 0]
    # Sorted by weight as well, the sums do not depend on the order of the input.
    order = np.argsort(x) if np.ptp(w) == 0.0 else np.lexsort((w, x))
    x, w = x[order], w[order]
    starts = np.flatnonzero(np.append(True, x[1:] > x[:-1]))
    return x[starts], np.add.reduceat(w, starts)


def nearest(x: FloatArray, centers: FloatArray) -> NDArray[np.int32]:
    """Index of the nearest of the ascending centres, the lower one on a tie."""
    left = (np.searchsorted(centers, x) - 1).clip(0, max(0, centers.size - 2))
    right = np.minimum(left + 1, centers.size - 1)
    return np.where(x - centers[left] <= centers[right] - x, left, right).astype(np.int32)
