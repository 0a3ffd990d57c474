"""Seeding in a few rounds (k-means‖), where a pass over all samples for each centre takes long.

Each round draws hundreds of samples at once, by their squared distance to those drawn before, and
compares all samples with them in matrix products. The samples are then summed up by the means of
those that are closest to each of the drawn ones. Where time is short, all this happens in leading
directions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evomeans.engines import nearest
from evomeans.engines.cpu.order import leading_directions, polled
from evomeans.engines.cpu.samples import ROWS_IN_DOUBLE
from evomeans.engines.cpu.steps import GivenRows, cluster_means
from evomeans.engines.rules import total_weights
from evomeans.engines.workers import threads_for
from evomeans.kernels.blas import one_blas_thread
from evomeans.typing import FloatArray, Labels

# Samples drawn for each cluster in all rounds together: with more, K-means ends a little lower and
# takes longer. One to four rounds are equally good.
PER_CLUSTER, ROUNDS = 2, 3
# Samples far out take all places of a round. As long as the last round has divided the sum of
# squared distances by this, another one follows; but no more than these in all: so few points for
# each cluster are not seeded in rounds again.
LARGE_GAIN, LAST_ROUND = 10.0, 10
# Products after which to look whether the result is still wanted.
AT_ONCE = 2**32
# Points that are compared with all others at a time.
POINTS_AT_ONCE = 256
# Looks at all points that K-means among them takes; and products for each sample that take as long
# as its projection, and the mean of its cluster in all features.
PER_POINT, TO_PROJECT = 8, 40_000


def quick_looks(n_samples: int, n_features: int, n_clusters: int, n_directions: int) -> float:
    """Return how long a seeding in rounds takes, in comparisons of all samples with all centres.

    ``n_directions`` are compared, 0 for all features. The factors are measured ones, on one thread.
    """
    n_points, n_compared = PER_CLUSTER * n_clusters, n_directions or n_features
    of_rounds = (1.5 if n_directions else 1.1) * n_points * n_compared
    of_points = 0.7 * n_points * n_clusters * n_compared * PER_POINT / n_samples
    projecting = TO_PROJECT if n_directions else 0
    return (projecting + of_rounds + of_points) / (n_clusters * n_features)


class Seeds(NamedTuple):
    """A few weighted points, in the frame, that stand for all samples.

    * ``points`` (p, d) and ``weights`` (p,).
    * ``labels`` (n,): the point of each sample.
    """

    points: FloatArray
    weights: FloatArray
    labels: Labels


def sum_up(
    source: GivenRows, n_clusters: int, rng: np.random.Generator, check: Callable[[], None]
) -> Seeds:
    """Draw samples as in k-means‖ (Bahmani et al., PVLDB 5, 2012), and sum up all samples.

    These are dense. ``check`` raises an error to end this.
    """
    X, weights, frame, _ = source
    # So scaled that no product overflows.
    own = np.ones(len(X)) if weights is None else weights / weights.max()
    chances, cost, before = own, math.inf, math.inf
    closest, labels = np.full(len(X), np.inf), np.zeros(len(X), np.int32)
    drawn: list[NDArray[np.intp]] = []
    n_drawn = 0
    for nth in range(LAST_ROUND + 1):
        if not chances.any() or (nth > ROUNDS and cost * LARGE_GAIN > before):
            break
        drawn.append(draw(chances, -(-PER_CLUSTER * n_clusters // ROUNDS) if nth else 1, rng))
        points = frame.encode(X[drawn[-1]]).astype(np.float64)
        found, squares = closest_points(source, points, check)
        is_nearer = squares < closest
        labels[is_nearer] = found[is_nearer] + n_drawn
        closest[is_nearer] = squares[is_nearer]
        chances = own * closest
        before, cost = cost, float(chances.sum())
        n_drawn += len(drawn[-1])
    points = frame.encode(X[np.concatenate(drawn)]).astype(np.float64)
    means = cluster_means(source, labels, points)
    totals = total_weights(labels, weights, n_drawn)
    is_used = totals > 0.0
    numbers = np.cumsum(is_used, dtype=np.int32) - 1
    return Seeds(means[is_used], totals[is_used], np.maximum(numbers, 0)[labels])


def most_missed(seeds: Seeds, n_clusters: int, n_jobs: int) -> FloatArray:
    """Return the points, (k, d), whose samples would be farthest away without them.

    Without a point its weight would be as far away as the closest other point. This is nearly as
    good as greedy k-means++ among the points, and takes a tenth of the time or less.
    """
    points = seeds.points.astype(np.float32)
    squares, closest = np.einsum("ij,ij->i", points, points), np.empty(len(points))

    def compare(first: int) -> None:
        some = slice(first, first + POINTS_AT_ONCE)
        apart = squares - 2.0 * (points[some] @ points.T)
        own = np.arange(len(apart))
        apart[own, first + own] = np.inf
        closest[some] = squares[some] + apart.min(axis=1)

    run = map if n_jobs == 1 else threads_for(n_jobs).map
    with one_blas_thread:
        list(run(compare, range(0, len(points), POINTS_AT_ONCE)))
    costs = seeds.weights * np.maximum(closest, 0.0)
    chosen: FloatArray = seeds.points[np.sort(np.argsort(-costs, kind="stable")[:n_clusters])]
    return chosen


def draw(chances: FloatArray, count: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Draw ``count`` different samples by their chances, fewer if no others have a chance.

    See Efraimidis and Spirakis, "Weighted random sampling with a reservoir", Information Processing
    Letters 97, 2006.
    """
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        turns = rng.standard_exponential(len(chances)) / (chances / chances.max())
    first = np.argpartition(turns, count - 1)[:count]
    return np.sort(first[chances[first] > 0.0])


def closest_points(
    source: GivenRows, points: FloatArray, check: Callable[[], None]
) -> tuple[NDArray[np.int32], FloatArray]:
    """Return the closest of some points for every sample, and its squared distance."""
    X, _, frame, n_jobs = source
    labels, squares = np.empty(len(X), np.int32), np.empty(len(X))
    size = max(1, n_jobs * AT_ONCE // points.size)
    for first in range(0, len(X), size):
        check()
        part = slice(first, first + size)
        labels[part], squares[part] = nearest.labels_and_squares(X[part], points, frame, n_jobs)
    return labels, squares


# With hundreds of features, some dozens of directions tell clusters apart. The means of clusters
# found in these are a start for K-means in all features.


def project(source: GivenRows, n_directions: int, check: Callable[[], None]) -> NDArray[Any]:
    """Return dense samples on their leading directions."""
    X, _, frame, n_jobs = source
    result = np.empty((len(X), n_directions), X.dtype)
    with one_blas_thread:
        directions = leading_directions(frame.encode(polled(X)), n_directions, check)
        directions = directions.astype(X.dtype)

        def fill(first: int) -> None:
            check()
            part = slice(first, first + ROWS_IN_DOUBLE)
            np.matmul(frame.encode(X[part]), directions, out=result[part])

        run = map if n_jobs == 1 else threads_for(n_jobs).map
        list(run(fill, range(0, len(X), ROWS_IN_DOUBLE)))
    return result
