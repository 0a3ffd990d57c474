"""Single moves by a threshold: Hartigan's rule, but early moves may raise the sum of squares.

A sample of weight w saves W/(W − w)·‖x − c‖² by leaving its cluster and costs W/(W + w)·‖x − c‖² in
another one, per unit of its weight. Hartigan's rule moves it if the cost is less than the saving.
With a threshold, less than a multiple of the saving is enough (Clément & Steinerberger 2026).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.jit import REORDER, jit
from evomeans.engines.cpu.layout import Rows, Samples, SparseRows, by_row_type, weight_of
from evomeans.engines.cpu.swaps.lists import (
    Clusters,
    add_to,
    get_mean,
    move_mean,
    set_mean,
    square_to,
)
from evomeans.engines.cpu.swaps.moves import (
    joining_cost,
    leaving_gain,
    may_leave,
)
from evomeans.engines.rules import WORTHWHILE
from evomeans.typing import FloatArray, Index


@jit
def gather(samples: Samples, clusters: Clusters, means: FloatArray) -> None:
    """Set means, weights and sizes of clusters from their labels.

    ``means`` (k, d) is working memory. Samples without weight do not count.
    """
    k, n_features = means.shape
    for j in range(k):
        clusters.weights[j], clusters.sizes[j] = 0.0, 0
        for t in range(n_features):
            means[j, t] = 0.0
    for i in range(clusters.labels.shape[0]):
        weight = weight_of(samples, i)
        if weight > 0.0:
            own = clusters.labels[i]
            add_to(samples.rows, i, weight, means[own])
            clusters.weights[own] += weight
            clusters.sizes[own] += 1
    for j in range(k):
        for t in range(n_features):
            means[j, t] /= max(clusters.weights[j], np.finfo(np.float64).tiny)
        set_mean(samples.rows, clusters, j, means, j)


@jit
def visit_all(
    samples: Samples,
    clusters: Clusters,
    order: NDArray[np.uint32],
    factor: float,
    squares: FloatArray,
    means: FloatArray,
) -> None:
    """Visit samples by place, and move those whose best move costs less than the threshold.

    Parameters
    ----------
    samples : Samples
    clusters : Clusters, out
        From :func:`gather`. Only means, weights, sizes and labels are used.
    order : (n,) array
    factor : float
        Of the saving.
    squares : (k,) array
        Working memory.
    means : (k, d) array, out
        Where the means are at last.
    """
    for place in range(order.shape[0]):
        i = np.int64(order[place])
        weight, own = weight_of(samples, i), np.int64(clusters.labels[i])
        if weight == 0.0 or not may_leave(clusters, own, weight):
            continue
        set_squares(samples.rows, i, clusters, squares)
        target, least = np.int64(-1), np.inf
        for j in range(squares.shape[0]):
            cost = joining_cost(squares[j], clusters.weights[j], weight)
            if j != own and cost < least:
                target, least = np.int64(j), cost
        saved = leaving_gain(squares[own], clusters.weights[own], weight)
        if target >= 0 and least < factor * WORTHWHILE * saved:
            move(samples, clusters, i, own, target, weight)
    for j in range(squares.shape[0]):
        get_mean(samples.rows, clusters, j, means, j)


@jit
def move(
    samples: Samples, clusters: Clusters, i: Index, own: Index, target: Index, weight: float
) -> None:
    """Move a sample to another cluster; means, weights and sizes follow."""
    rest = clusters.weights[own] - weight
    move_mean(samples.rows, i, clusters, own, -weight / rest)
    clusters.weights[own] = rest
    clusters.sizes[own] -= 1
    total = clusters.weights[target] + weight
    move_mean(samples.rows, i, clusters, target, weight / total)
    clusters.weights[target] = total
    clusters.sizes[target] += 1
    clusters.labels[i] = target


def _set_squares_dense(rows: Rows, i: Index, clusters: Any, squares: FloatArray) -> None:
    """Set the squared distances of a sample to all means."""
    features = clusters.features
    for j in range(squares.shape[0]):
        squares[j] = 0.0
    for t in range(features.shape[0]):
        value = rows[i, t]
        for j in range(squares.shape[0]):
            difference = features[t, j] - value
            squares[j] += difference * difference


def _set_squares_sparse(rows: SparseRows, i: Index, clusters: Any, squares: FloatArray) -> None:
    for j in range(squares.shape[0]):
        squares[j] = square_to(rows, i, clusters, j)


set_squares = by_row_type(dense=_set_squares_dense, sparse=_set_squares_sparse, fastmath=REORDER)
