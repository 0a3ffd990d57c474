"""Seeding in a few rounds (k-means‖), where a pass over all samples for each centre takes long.

Each round draws hundreds of samples at once, by their squared distance to those drawn before, and
compares all samples with them in matrix products. The samples are then summed up by the means of
those that are closest to each of the drawn ones. Where time is short, all this happens in leading
directions. If there is hardly time for K-means, a few steps follow in which samples are compared
only with centres near their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from evomeans.engines import nearest
from evomeans.engines.cpu.order import leading_directions, polled
from evomeans.engines.cpu.samples import ROWS_IN_DOUBLE, scale_sparse
from evomeans.engines.frame import Frame, is_sparse
from evomeans.engines.rules import total_weights
from evomeans.engines.workers import side_by_side, threads_for
from evomeans.kernels.blas import one_blas_thread
from evomeans.typing import FloatArray, Labels

# Samples drawn for each cluster in all rounds together: with more, K-means ends a little lower and
# takes longer. One to four rounds are equally good.
PER_CLUSTER, ROUNDS = 2, 3
# Samples far out take all places of a round. As long as the last round has divided the sum of
# squared distances by this, another one follows; but no more than these in all: so few points for
# each cluster are not seeded in rounds again.
LARGE_GAIN, LAST_ROUND = 10.0, 10
# Products after which to look whether the result is still wanted, and whether time is up.
AT_ONCE, LABELLED_AT_ONCE = 2**32, 2**30
# Centres near its own with which a sample is compared, how many steps of this kind follow at most,
# and the share of samples that have to change their clusters for another one.
NEAR, STEPS, FEW_CHANGES = 64, 6, 0.02
# Looks at all points that seeding and K-means among them take; and products for each sample that
# take as long as its projection.
PER_POINT, TO_PROJECT = 15, 100_000
# Bytes of the sums of parts that threads average at a time.
BYTES_OF_SUMS = 2**28


def quick_looks(n_samples: int, n_features: int, n_clusters: int, n_directions: int) -> float:
    """Return how long a quick seeding takes, in comparisons of all samples with all centres.

    ``n_directions`` are compared, 0 for all features. The factors are measured ones, on one thread.
    """
    n_points = PER_CLUSTER * n_clusters
    of_rounds = 1.5 * n_points * (n_directions or n_features)
    of_points = 0.7 * n_points * n_clusters * (n_directions or n_features) * PER_POINT / n_samples
    of_steps = 8 * NEAR * n_features
    projecting = TO_PROJECT if n_directions else 0
    return (projecting + of_rounds + of_points + of_steps) / (n_clusters * n_features)


class Seeds(NamedTuple):
    """A few weighted points, in the frame, that stand for all samples.

    * ``points`` (p, d) and ``weights`` (p,).
    * ``labels`` (n,): the point of each sample.
    """

    points: FloatArray
    weights: FloatArray
    labels: Labels


def sum_up(
    X: NDArray[Any],
    weights: FloatArray | None,
    frame: Frame,
    n_clusters: int,
    rng: np.random.Generator,
    n_jobs: int,
    check: Callable[[], None],
) -> Seeds:
    """Draw samples as in k-means‖ (Bahmani et al., PVLDB 5, 2012), and sum up all samples.

    ``X`` (n, d) are dense samples in data units. ``check`` raises an error to end this.
    """
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
        found, squares = closest_points(X, frame, points, n_jobs, check)
        is_nearer = squares < closest
        labels[is_nearer] = found[is_nearer] + n_drawn
        closest[is_nearer] = squares[is_nearer]
        chances = own * closest
        before, cost = cost, float(chances.sum())
        n_drawn += len(drawn[-1])
    points = frame.encode(X[np.concatenate(drawn)]).astype(np.float64)
    means = cluster_means(X, weights, frame, labels, points, n_jobs)
    totals = total_weights(labels, weights, n_drawn)
    is_used = totals > 0.0
    numbers = np.cumsum(is_used, dtype=np.int32) - 1
    return Seeds(means[is_used], totals[is_used], np.maximum(numbers, 0)[labels])


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
    X: NDArray[Any], frame: Frame, points: FloatArray, n_jobs: int, check: Callable[[], None]
) -> tuple[NDArray[np.int32], FloatArray]:
    """Return the closest of some points for every sample, and its squared distance."""
    labels, squares = np.empty(len(X), np.int32), np.empty(len(X))
    size = max(1, n_jobs * AT_ONCE // points.size)
    for first in range(0, len(X), size):
        check()
        part = slice(first, first + size)
        labels[part] = nearest.labels(X[part], points, frame, n_jobs)
        squares[part] = nearest.squares(X[part], labels[part], points, frame, n_jobs)
    return labels, squares


def quick_steps(
    X: NDArray[Any],
    weights: FloatArray | None,
    frame: Frame,
    centers: FloatArray,
    n_jobs: int,
    is_over: Callable[[], bool],
) -> FloatArray:
    """Return the centres after a comparison of samples with all of them, and near steps.

    Soon after ``is_over()`` they are the means of the samples that have been compared so far.
    """
    size, found, first = max(1, n_jobs * LABELLED_AT_ONCE // centers.size), [], 0
    while first == 0 or (first < len(X) and not is_over()):
        found.append(nearest.labels(X[first : first + size], centers, frame, n_jobs))
        first += size
    labels = np.concatenate(found)
    own = None if weights is None else weights[: len(labels)]
    centers = cluster_means(X[: len(labels)], own, frame, labels, centers, n_jobs)
    if len(labels) < len(X):
        return centers
    return near_steps(X, weights, frame, centers, labels, n_jobs, is_over)


def near_steps(
    X: NDArray[Any],
    weights: FloatArray | None,
    frame: Frame,
    centers: FloatArray,
    labels: Labels,
    n_jobs: int,
    is_over: Callable[[], bool],
) -> FloatArray:
    """Return the centres after steps of K-means that look at centres near those of the labels.

    Soon after ``is_over()`` they are those of the last step.
    """
    for _ in range(STEPS):
        found = near_labels(X, frame, centers, labels, n_jobs, is_over)
        if is_over():
            break
        centers = cluster_means(X, weights, frame, found, centers, n_jobs)
        n_changed, labels = np.count_nonzero(found != labels), found
        if n_changed < FEW_CHANGES * len(X):
            break
    return centers


def near_labels(
    X: NDArray[Any],
    frame: Frame,
    centers: FloatArray,
    labels: Labels,
    n_jobs: int,
    is_over: Callable[[], bool],
) -> Labels:
    """Return the closest of the centres near that of each sample's label, by single products.

    They are compared in the frame: next to the origin few digits cancel, and no square overflows.
    """
    k, points = len(centers), centers.astype(X.dtype)
    squares = np.einsum("ij,ij->i", points, points)
    order = np.argsort(labels, kind="stable")
    ends = np.searchsorted(labels[order], np.arange(k + 1))
    result = labels.copy()

    def compare(first: int) -> None:
        some = slice(first, min(first + NEAR, k))
        apart = squares - 2.0 * (points[some] @ points.T)
        near = np.argpartition(apart, min(NEAR, k) - 1, axis=1)[:, :NEAR]
        for j, others in zip(range(some.start, some.stop), near, strict=True):
            members = order[ends[j] : ends[j + 1]]
            if len(members) and not is_over():
                scores = squares[others] - 2.0 * (frame.encode(X[members]) @ points[others].T)
                result[members] = others[scores.argmin(axis=1)]

    with one_blas_thread:
        side_by_side(compare, range(0, k, NEAR), n_jobs)
    return result


# ---- leading directions, and the way back to all features ----------------------------------------

# With hundreds of features, some dozens of directions tell clusters apart. The means of clusters
# found in these are a start for K-means in all features.


def project(
    X: NDArray[Any], frame: Frame, n_directions: int, n_jobs: int, check: Callable[[], None]
) -> NDArray[Any]:
    """Return dense samples ``X``, in data units, on their leading directions."""
    result = np.empty((len(X), n_directions), X.dtype)
    with one_blas_thread:
        directions = leading_directions(frame.encode(polled(X)), n_directions, check)
        directions = directions.astype(X.dtype)

        def fill(first: int) -> None:
            check()
            part = slice(first, first + ROWS_IN_DOUBLE)
            np.matmul(frame.encode(X[part]), directions, out=result[part])

        side_by_side(fill, range(0, len(X), ROWS_IN_DOUBLE), n_jobs)
    return result


def cluster_means(
    X: Any,
    weights: FloatArray | None,
    frame: Frame,
    labels: Labels,
    others: FloatArray,
    n_jobs: int = 1,
) -> FloatArray:
    """Return the means of clusters in the frame; ``others`` (k, d) for those without weight."""
    k, n_samples = len(others), X.shape[0]
    own = np.ones(n_samples) if weights is None else weights

    def sums_of(first: int) -> FloatArray:
        part = slice(first, min(first + ROWS_IN_DOUBLE, n_samples))
        size = part.stop - first
        members = csr_array((own[part], labels[part], np.arange(size + 1)), shape=(size, k))
        if is_sparse(X):
            return np.asarray((members.T @ scale_sparse(X[part], frame)).toarray())
        return np.asarray(members.T @ frame.encode(X[part]).astype(np.float64))

    sums, begins = np.zeros(others.shape), range(0, n_samples, ROWS_IN_DOUBLE)
    run = map if n_jobs == 1 else threads_for(n_jobs).map
    # Each part at a time has sums of its own. They are added in order.
    together = max(1, min(n_jobs, BYTES_OF_SUMS // sums.nbytes))
    for first in range(0, len(begins), together):
        for some in run(sums_of, begins[first : first + together]):
            sums += some
    totals = np.bincount(labels, own, k)
    counted = totals > 0.0
    means = others.copy()
    means[counted] = sums[counted] / totals[counted, None]
    return means
