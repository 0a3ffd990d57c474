"""From a matrix of the relaxation to a clustering, which may be better than the known one."""

from __future__ import annotations

import numpy as np

from evomeans.exact.points import Floats, Indices, WeightedPoints, sums_by
from evomeans.exact.subproblem import Subproblem

MOST_STEPS = 100


def rounded_clustering(points: WeightedPoints, problem: Subproblem, Y: Floats) -> Indices | None:
    """Turn Y into labels of the points: k distant rows, then K-means; None if a cluster dies.

    Row g of Y says with whom group g shares its cluster, and so where the centre would be.
    """
    weighted = (points.values * points.weights[:, None]).T
    sums = np.stack([sums_by(problem.members, column, problem.n) for column in weighted], axis=1)
    Z = np.maximum(Y / problem.products, 0.0)
    centres = Z @ sums / np.maximum(Z @ problem.weights, 1e-300)[:, None]
    chosen = [int(np.argmax(problem.weights))]
    distance = np.full(problem.n, np.inf)
    for _ in range(problem.k - 1):
        offsets = centres - centres[chosen[-1]]
        distance = np.minimum(distance, np.einsum("ij,ij->i", offsets, offsets))
        chosen.append(int(np.argmax(distance * problem.weights)))
    return kmeans(points, centres[chosen])


def kmeans(points: WeightedPoints, centres: Floats) -> Indices | None:
    """Lloyd's algorithm; None if a cluster loses all its points."""
    k, labels = len(centres), np.full(points.n, -1)
    for _ in range(MOST_STEPS):
        # Up to a term that is the same for all centres.
        scores = points.values @ centres.T - np.einsum("ij,ij->i", centres, centres) / 2
        nearest = scores.argmax(axis=1)
        if np.array_equal(nearest, labels):
            break
        labels = nearest
        if len(np.unique(labels)) < k:
            return None
        centres = points.means(labels)
    return labels
