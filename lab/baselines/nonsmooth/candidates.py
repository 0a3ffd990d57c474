"""Where a new centre may start: filters over samples, means and local minima."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evomeans.engines.protocol import Refinement
from evomeans.typing import FloatArray, Indices
from lab.baselines.engine import BaselineEngine
from lab.baselines.incremental import ROUNDING, attracted_means, largest, promising

# Samples are starts only if they are farther from their centres than this share of the mean.
FAR = 0.75


def cluster_means(
    engine: BaselineEngine, solution: Refinement, squares: FloatArray
) -> tuple[Indices, FloatArray, FloatArray]:
    """Return labels, sample weights, and the mean of the squares in every cluster."""
    labels = np.asarray(engine.assign(solution.centers)[0], dtype=np.intp)
    weights = np.ones(engine.n_samples) if engine.weights is None else engine.weights
    k = len(solution.centers)
    totals = np.bincount(labels, weights, minlength=k)
    costs = np.bincount(labels, weights * squares, minlength=k)
    means = np.divide(costs, totals, out=np.zeros(k), where=totals > 0.0)
    return labels, weights, means


def far_candidates(
    engine: BaselineEngine,
    solution: Refinement,
    squares: FloatArray,
    gammas: tuple[float, float],
    tolerance: float,
) -> FloatArray:
    """Means of what samples far from their centres attract: the starts of DCClust.

    Parameters
    ----------
    engine, solution, squares
        The present solution, and the squared distances of the samples to their centres.
    gammas : (float, float)
        Shares of the largest reduction of the objective that samples, and means, have to reach.
    tolerance : float
        Squared distance within which two means are one.
    """
    labels, _, means = cluster_means(engine, solution, squares)
    far = squares > FAR * (1.0 + ROUNDING) * means[labels]
    samples = promising(engine, np.flatnonzero(far), squares, share=gammas[0], moved=False)
    points = np.unique(attracted_means(engine, engine.rows(samples), squares), axis=0)
    gains = engine.reductions(points, squares)
    points = lowest_apart(points, -gains, tolerance)
    return points[largest(engine.reductions(points, squares), gammas[1])]


def apart(points: FloatArray, tolerance: float) -> FloatArray:
    """Drop every point whose squared distance to an earlier one is at most the tolerance."""
    return _kept(points, lambda squares: (squares > tolerance).all())


def together(points: FloatArray, tolerance: float) -> FloatArray:
    """Drop every point that is farther than that from an earlier one: nearly all but the first."""
    return _kept(points, lambda squares: (squares <= tolerance).all())


def _kept(points: FloatArray, is_kept: Callable[[FloatArray], np.bool_]) -> FloatArray:
    """Go through points in order; squared distances to those kept so far decide."""
    kept = np.empty_like(points)
    count = 0
    for point in points:
        if is_kept(np.square(kept[:count] - point).sum(axis=1)):
            kept[count] = point
            count += 1
    return kept[:count]


def lowest_apart(points: FloatArray, values: FloatArray, tolerance: float) -> FloatArray:
    """Of points that are within the tolerance of each other, keep the one with the lowest value."""
    ordered = np.lexsort([*points.T[::-1], values])
    return apart(points[ordered], tolerance)


def farthest_candidates(
    engine: BaselineEngine,
    solution: Refinement,
    squares: FloatArray,
    most_samples: int,
    tenths: int,
) -> FloatArray:
    """Means of what the farthest samples of every cluster attract: the starts of LMBM-Clust.

    Of each cluster, as many samples as its share of ``most_samples``, at least one, and of all
    these some tenths with the largest reductions. Weights count as repetitions.

    Parameters
    ----------
    engine, solution, squares
        The present solution, and the squared distances of the samples to their centres.
    most_samples, tenths : int

    Returns
    -------
    points : (m, d) array
        Those with the largest reductions first, in bands of one percent.
    """
    labels, weights, means = cluster_means(engine, solution, squares)
    samples, counts = [], []
    for cluster in range(len(solution.centers)):
        members = np.flatnonzero((labels == cluster) & (squares > 0.0))
        if len(members) == 0:
            continue
        wanted = float(weights[labels == cluster].sum()) * most_samples // engine.total_weight
        own, count = _farthest(engine, members, squares, means[cluster], weights, max(1.0, wanted))
        samples.append(own)
        counts.append(count)
    chosen, repeated = np.concatenate(samples), np.concatenate(counts)
    rows = engine.rows(chosen)
    gains = engine.reductions(rows, squares)
    bands = np.floor(100.0 * (1.0 - gains / gains.max()) + ROUNDING)
    order = np.lexsort([*rows.T[::-1], bands])
    wanted = max(1.0, float(repeated.sum()) * tenths // 10)
    points = attracted_means(engine, rows[_first(order, repeated, wanted)], squares)
    # Equal means come once, where the first of them is.
    return points[np.sort(np.unique(points, axis=0, return_index=True)[1])]


def _farthest(
    engine: BaselineEngine,
    members: Indices,
    squares: FloatArray,
    mean: float,
    weights: FloatArray,
    wanted: float,
) -> tuple[Indices, FloatArray]:
    """Return the farthest samples of a cluster beyond the mean, and how often each counts."""
    far = members[squares[members] >= mean * (1.0 - ROUNDING)]
    highest = squares[far].max()
    width = 1e-3 * (highest - mean)
    bands = np.zeros(len(far))
    if width > ROUNDING * highest:
        bands = np.floor((highest - squares[far]) / width + ROUNDING)
    order = np.lexsort([*engine.rows(far).T[::-1], bands])
    taken = _first(order, weights[far], wanted)
    before = np.cumsum(weights[far[taken]]) - weights[far[taken]]
    return far[taken], np.minimum(weights[far[taken]], wanted - before)


def _first(order: Indices, weights: FloatArray, wanted: float) -> Indices:
    """Return the first entries of an order, until their weights reach what is wanted."""
    before = np.cumsum(weights[order]) - weights[order]
    return order[before < wanted * (1.0 - ROUNDING)]


def lowest_tenths(points: FloatArray, values: FloatArray, tenths: int) -> Indices:
    """Return the indices of some tenths of the points, those with the lowest values.

    Values are compared in bands of one percent of the lowest, and within a band the order of the
    points decides.
    """
    lowest = max(float(values.min()), np.finfo(float).tiny)
    bands = np.floor(100.0 * (values / lowest - 1.0) + ROUNDING)
    count = max(1, tenths * len(points) // 10)
    return np.argsort(bands, kind="stable")[:count]
