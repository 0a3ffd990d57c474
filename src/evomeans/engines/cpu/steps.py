"""Steps of K-means straight from the user's rows, for answers that have to be there soon.

The refinements of a search put samples into order first, which takes as long as several
assignments. These steps need no preparation. In most of them, samples are compared with some
centres near their own only, which takes a fraction of an assignment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.bundle import bundle
from evomeans.compiled.jit import REORDER, jit
from evomeans.compiled.ready import Call
from evomeans.engines import nearest
from evomeans.engines.frame import Frame
from evomeans.engines.workers import threads_for
from evomeans.kernels.blas import one_blas_thread
from evomeans.typing import FloatArray, Indices, Labels

# Centres near its own with which a sample is compared: 48, one in 32 if that is more, or one in
# three if that is less, but at least 18. Three such steps follow a comparison with all centres.
NEAR, SHARE_OF_MANY, SHARE_OF_FEW, FEWEST_NEAR, NEAR_STEPS = 48, 32, 3, 18, 3
# Steps end when a comparison with all centres changes the clusters of a smaller share of the
# samples, or after this number of comparisons.
FEW_CHANGES, MOST_COMPARISONS = 0.02, 12
# Products after which to look whether time is up.
LABELLED_AT_ONCE = 2**30
# Shares of the clusters for each thread: a few, so that none waits long for the others.
SHARES_OF_A_THREAD = 4
# Samples that are compared at a time, and the samples and centres whose products are summed up side
# by side in registers.
TOGETHER, SIDE, ACROSS = 64, 4, 3


class GivenRows(NamedTuple):
    """Rows ``X`` (n, d) in data units, their weights or None, the frame, and threads to use."""

    X: Any
    weights: FloatArray | None
    frame: Frame
    n_jobs: int


@bundle
class Members(NamedTuple):
    """Samples sorted by their clusters: those of cluster j are ``order[ends[j]:ends[j + 1]]``."""

    order: Indices
    ends: Indices


@jit
def sort_by_label(labels: Labels, order: Indices, ends: Indices) -> None:
    """Set the :class:`Members` of clusters; samples of one keep their order."""
    k = ends.shape[0] - 1
    for j in range(k + 1):
        ends[j] = 0
    for i in range(labels.shape[0]):
        ends[labels[i]] += 1
    # Where clusters begin, and then where they end: each sample moves its own on by one.
    total = 0
    for j in range(k + 1):
        total, ends[j] = total + ends[j], total
    for i in range(labels.shape[0]):
        order[ends[labels[i]]] = i
        ends[labels[i]] += 1
    for j in range(k, 0, -1):
        ends[j] = ends[j - 1]
    ends[0] = 0


@jit
def average_clusters(
    X: NDArray[Any],
    scale: float,
    shift: NDArray[Any],
    weights: FloatArray,
    members: Members,
    first: int,
    last: int,
    means: FloatArray,
) -> None:
    """Set the means of some clusters in the frame, in which a sample x is scale · x − shift.

    ``weights`` are empty if all are equal. A mean without weight stays as it is.
    """
    order, ends = members.order, members.ends
    n_features = X.shape[1]
    for j in range(first, last):
        total = 0.0
        for p in range(ends[j], ends[j + 1]):
            total += weights[order[p]] if weights.shape[0] > 0 else 1.0
        if total == 0.0:
            continue
        for t in range(n_features):
            means[j, t] = 0.0
        for p in range(ends[j], ends[j + 1]):
            i = order[p]
            weight = weights[i] if weights.shape[0] > 0 else 1.0
            for t in range(n_features):
                means[j, t] += weight * np.float64(X[i, t] * scale - shift[t])
        for t in range(n_features):
            means[j, t] /= total


@jit(fastmath=REORDER)
def label_near(
    X: NDArray[Any],
    scale: float,
    shift: NDArray[Any],
    members: Members,
    near: Indices,
    points: NDArray[Any],
    levels: NDArray[Any],
    first: int,
    last: int,
    rows: NDArray[Any],
    scores: NDArray[Any],
    labels: Labels,
) -> None:
    """Label the samples of some clusters by the closest of the centres near their own.

    * ``near`` (k, m): of each cluster, numbers of centres, a multiple of ACROSS.
    * ``points`` (k, d) and ``levels`` (k,): −2c and ‖c‖² of the centres, in the frame.
    * ``rows`` (TOGETHER, d) and ``scores`` (TOGETHER, m): working memory, without infinities.
    * ``labels`` (n,), out
    """
    order, ends = members.order, members.ends
    for j in range(first, last):
        for begin in range(ends[j], ends[j + 1], TOGETHER):
            count = min(TOGETHER, ends[j + 1] - begin)
            for a in range(count):
                i = order[begin + a]
                for t in range(X.shape[1]):
                    rows[a, t] = X[i, t] * scale - shift[t]
            multiply(rows, count, points, near[j], scores)
            for a in range(count):
                best = near[j, 0]
                lowest = levels[best] + scores[a, 0]
                for b in range(1, near.shape[1]):
                    score = levels[near[j, b]] + scores[a, b]
                    if score < lowest:
                        lowest, best = score, near[j, b]
                labels[order[begin + a]] = best


@jit(inline=False, fastmath=REORDER)
def multiply(
    rows: NDArray[Any], count: int, points: NDArray[Any], chosen: Indices, scores: NDArray[Any]
) -> None:
    """Set ``scores`` to the products of the first ``count`` rows with the chosen points.

    Twelve sums at a time, in registers, nearly reach the rate of the processor.
    """
    n_features = rows.shape[1]
    for a in range(0, count, SIDE):
        for b in range(0, chosen.shape[0], ACROSS):
            i, j, m = chosen[b], chosen[b + 1], chosen[b + 2]
            zero = rows.dtype.type(0.0)
            ai = aj = am = bi = bj = bm = ci = cj = cm = di = dj = dm = zero
            for t in range(n_features):
                x, y, z = points[i, t], points[j, t], points[m, t]
                row = rows[a, t]
                ai, aj, am = ai + row * x, aj + row * y, am + row * z
                row = rows[a + 1, t]
                bi, bj, bm = bi + row * x, bj + row * y, bm + row * z
                row = rows[a + 2, t]
                ci, cj, cm = ci + row * x, cj + row * y, cm + row * z
                row = rows[a + 3, t]
                di, dj, dm = di + row * x, dj + row * y, dm + row * z
            scores[a, b], scores[a, b + 1], scores[a, b + 2] = ai, aj, am
            scores[a + 1, b], scores[a + 1, b + 1], scores[a + 1, b + 2] = bi, bj, bm
            scores[a + 2, b], scores[a + 2, b + 1], scores[a + 2, b + 2] = ci, cj, cm
            scores[a + 3, b], scores[a + 3, b + 1], scores[a + 3, b + 2] = di, dj, dm


def members_of(labels: Labels, n_clusters: int) -> Members:
    """Sort samples by their clusters."""
    members = Members(np.empty(len(labels), np.intp), np.empty(n_clusters + 1, np.intp))
    sort_by_label(labels, *members)
    return members


def for_clusters(do: Callable[[int, int], None], members: Members, n_jobs: int) -> None:
    """Let threads do something with parts of the clusters, which have about as many samples."""
    n_parts = SHARES_OF_A_THREAD * n_jobs
    shares = np.linspace(0, len(members.order), n_parts + 1)
    cuts = np.searchsorted(members.ends, shares, side="right") - 1
    cuts[0], cuts[-1] = 0, len(members.ends) - 1
    parts: Iterator[tuple[int, int]] = pairwise(np.unique(cuts).tolist())
    run: Callable[..., Any] = map if n_jobs == 1 else threads_for(n_jobs).map
    list(run(lambda part: do(*part), parts))


def cluster_means(source: GivenRows, labels: Labels, others: FloatArray) -> FloatArray:
    """Return the means of clusters of dense samples, ``others`` (k, d) for those without weight."""
    X, weights, frame, n_jobs = source
    means = others.copy()
    members = members_of(labels, len(others))
    samples = nearest.as_kernels_read(X), *frame.factors(X.dtype)
    own = np.zeros(0) if weights is None else weights

    def fill(first: int, last: int) -> None:
        average_clusters(*samples, own, members, first, last, means)

    for_clusters(fill, members, n_jobs)
    return means


def quick_steps(
    source: GivenRows, centers: FloatArray, labels: Labels | None, is_over: Callable[[], bool]
) -> FloatArray:
    """Return the centres after steps of K-means, until few samples change their clusters.

    * ``source``: dense samples.
    * ``labels``: of clusters that have these centres. Without them, samples are compared with all
      centres at first, as many as there is time for.
    * ``is_over``: says that the centres are wanted now. They are means of clusters in any case.
    """
    if labels is None:
        labels = compared(source, centers, is_over)
        n_done = len(labels)
        weights = None if source.weights is None else source.weights[:n_done]
        done = source._replace(X=source.X[:n_done], weights=weights)
        centers = cluster_means(done, labels, centers)
        if n_done < len(source.X):
            return centers
    for _ in range(MOST_COMPARISONS):
        if is_over():
            break
        near = near_centers(centers, source)
        for _ in range(NEAR_STEPS):
            found = near_labels(source, centers, labels, near, is_over)
            if is_over():
                return centers
            labels, centers = found, cluster_means(source, found, centers)
        found = compared(source, centers, is_over)
        found = np.append(found, labels[len(found) :])
        n_changed = np.count_nonzero(found != labels)
        labels, centers = found, cluster_means(source, found, centers)
        if n_changed < FEW_CHANGES * len(labels):
            break
    return centers


def compared(source: GivenRows, centers: FloatArray, is_over: Callable[[], bool]) -> Labels:
    """Return the labels of the closest centres; soon after ``is_over()``, of the first samples."""
    X, _, frame, n_jobs = source
    size, found, first = max(1, n_jobs * LABELLED_AT_ONCE // centers.size), [], 0
    while first == 0 or (first < len(X) and not is_over()):
        found.append(nearest.labels(X[first : first + size], centers, frame, n_jobs))
        first += size
    return np.concatenate(found)


def near_centers(centers: FloatArray, source: GivenRows) -> Indices:
    """Return of each centre, the numbers of those near it, itself among them."""
    k = len(centers)
    n_near = min(max(NEAR, k // SHARE_OF_MANY), max(FEWEST_NEAR, k // SHARE_OF_FEW), k)
    points = centers.astype(source.X.dtype)
    squares = np.einsum("ij,ij->i", points, points)
    near = np.empty((k, n_near), np.intp)

    def choose(first: int) -> None:
        some = slice(first, first + TOGETHER)
        apart = squares - 2.0 * (points[some] @ points.T)
        near[some] = np.argpartition(apart, n_near - 1, axis=1)[:, :n_near]

    run = map if source.n_jobs == 1 else threads_for(source.n_jobs).map
    with one_blas_thread:
        list(run(choose, range(0, k, TOGETHER)))
    # Kernels compare with ACROSS of them at a time; the last one may be there more than once.
    return np.pad(near, ((0, 0), (0, -n_near % ACROSS)), mode="edge")


def near_labels(
    source: GivenRows,
    centers: FloatArray,
    labels: Labels,
    near: Indices,
    is_over: Callable[[], bool],
) -> Labels:
    """Return the closest of the centres near that of each sample's label, by single products.

    They are compared in the frame: next to the origin few digits cancel, and no square overflows.
    """
    X, _, frame, n_jobs = source
    dtype, found, members = X.dtype, labels.copy(), members_of(labels, len(centers))
    points = (-2.0 * centers).astype(dtype)
    levels = np.einsum("ij,ij->i", centers, centers).astype(dtype)
    samples = nearest.as_kernels_read(X), *frame.factors(dtype)

    def compare(first: int, last: int) -> None:
        if not is_over():
            rows = np.zeros((TOGETHER, X.shape[1]), dtype)
            scores = np.empty((TOGETHER, near.shape[1]), dtype)
            own = members, near, points, levels, first, last, rows, scores, found
            arguments: list[Any] = [*samples, *own]
            label_near(*arguments)

    for_clusters(compare, members, n_jobs)
    return found


def kernel_calls_for(X: Any) -> list[Call]:
    """Return what steps with dense samples such as ``X`` call."""
    sample, grid = np.zeros(1, X.dtype), np.zeros((1, 1), X.dtype)
    index, labels, double = np.zeros(1, np.intp), np.zeros(1, np.int32), np.zeros((1, 1))
    samples, members = (grid, X.dtype.type(1.0), sample), Members(index, index)
    near = members, np.zeros((1, ACROSS), np.intp), grid, sample, 0, 0
    return [
        Call(sort_by_label, (labels, index, index), 0.3),
        Call(average_clusters, (*samples, double[0], members, 0, 0, double), 0.5),
        Call(label_near, (*samples, *near, grid, grid, labels), 0.8),
    ]
