"""A solution that can be changed one sample at a time, and restored as it was.

Clusters are linked lists of samples, with means, weights and sums of squares that follow every
sample that leaves or joins (``moves.py``). The :class:`UndoLog` restores them.

For sparse rows a mean is ``centers[j]·scales[j]``, and its squared norm is ``norms[j]``. So a
sample that joins or leaves changes the few coordinates that it has and two numbers, and no distance
needs more: ‖x − c‖² = ‖x‖² + ‖c‖² − 2x·c. Digits that cancel there cost time at most: what swaps
find is compared with what was before, and is only a start for K-means.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.bundle import bundle
from evomeans.compiled.jit import REORDER, jit
from evomeans.engines.cpu.layout import Rows, Samples, SparseRows, by_row_type, weight_of
from evomeans.engines.cpu.simd import WIDTH
from evomeans.kernels.vectors import squared_difference
from evomeans.typing import FloatArray, Index, Integers

# Entries of ``UndoLog.numbers``.
HEAD, WAITING, CHANGED, MOVED, GROUP, FRESH, SUCCESSES = range(7)
# Rows of ``Clusters.move_factors``.
ARRIVING, LEAVING = range(2)
NOBODY = np.int32(-1)


@bundle
class Clusters(NamedTuple):
    """Clusters as doubly linked lists of samples, by place. Samples without weight are in no list.

    * ``centers`` (k, d): means, and ``features`` (d, k): the same, for loops over centres.
    * ``scales`` and ``norms`` (k,): for sparse samples instead of ``features``.
    * ``weights`` (k,): total weights.
    * ``sizes`` (k,): numbers of samples.
    * ``move_factors`` (2, k): see :func:`resize`.
    * ``errors`` (k,): Σ w‖x − c‖².
    * ``max_squares`` (k,): the largest ‖x − c‖² when ``squares`` were last refreshed.
    * ``removal_costs`` (k,): about how much the sum of squares would grow without a cluster.
    * ``first`` (k,), ``after`` and ``before`` (n,): the lists; NOBODY at their ends.
    * ``labels`` (n,): the cluster of every sample.
    * ``squares`` (n,): ‖x − c‖² when last refreshed, see :func:`refresh_squares`.
    """

    centers: FloatArray
    features: FloatArray
    scales: FloatArray
    norms: FloatArray
    weights: FloatArray
    sizes: NDArray[np.int64]
    move_factors: FloatArray
    errors: FloatArray
    max_squares: FloatArray
    removal_costs: FloatArray
    first: NDArray[np.int32]
    after: NDArray[np.int32]
    before: NDArray[np.int32]
    labels: NDArray[np.int32]
    squares: FloatArray

    @classmethod
    def allocate(cls, n_samples: int, n_clusters: int, n_features: int, sparse: bool) -> Clusters:
        """Allocate the arrays; :func:`fill` sets them."""
        return cls(
            centers=np.empty((n_clusters, n_features)),
            features=np.empty((0 if sparse else n_features, n_clusters)),
            scales=np.ones(n_clusters),
            norms=np.empty(n_clusters),
            weights=np.empty(n_clusters),
            sizes=np.empty(n_clusters, np.int64),
            move_factors=np.empty((2, n_clusters)),
            errors=np.empty(n_clusters),
            max_squares=np.empty(n_clusters),
            removal_costs=np.empty(n_clusters),
            first=np.empty(n_clusters, np.int32),
            after=np.empty(n_samples, np.int32),
            before=np.empty(n_samples, np.int32),
            labels=np.empty(n_samples, np.int32),
            squares=np.empty(n_samples),
        )


@bundle
class UndoLog(NamedTuple):
    """An undo log, the queue of clusters to visit, and working memory.

    * ``queue`` (k + 1,): ring buffer of clusters that have changed since they were last visited,
      and ``is_waiting`` (k,): 1 for these.
    * ``changed`` (k,): clusters that have changed since the log was opened, and ``is_changed``
      (k,): 1 for these.
    * ``centers`` (k, d), ``weights``, ``sizes`` and ``errors`` (k,): as they were, in the order of
      ``changed``.
    * ``samples`` and ``origins`` (≥ n,): every move of a sample, and the cluster that it left.
    * ``neighbours`` (k,): a list of clusters, sorted by ``neighbour_keys`` (k,).
    * ``apart`` (k,): squared distances of all centres from one.
    * ``group`` (n,): some samples of a cluster, and ``halves`` (3, d): working memory.
    * ``fresh`` (k,): clusters that differ from those of the parents, or that swaps have changed,
      and ``is_fresh`` (k,): 1 for these.
    * ``numbers`` (7,): HEAD and length (WAITING) of the queue, lengths of ``changed`` (CHANGED), of
      ``samples`` (MOVED), of ``group`` (GROUP) and of ``fresh`` (FRESH); in the end, the swaps kept
      (SUCCESSES).
    * ``random`` (1,): state of the generator.
    * ``barrier``: that of the threads, which says whether the refinement is abandoned.
    """

    queue: NDArray[np.int32]
    is_waiting: NDArray[np.uint8]
    changed: NDArray[np.int32]
    is_changed: NDArray[np.uint8]
    centers: FloatArray
    weights: FloatArray
    sizes: NDArray[np.int64]
    errors: FloatArray
    samples: NDArray[np.int32]
    origins: NDArray[np.int32]
    neighbours: NDArray[np.int32]
    neighbour_keys: FloatArray
    apart: FloatArray
    group: NDArray[np.int32]
    halves: FloatArray
    fresh: NDArray[np.int32]
    is_fresh: NDArray[np.uint8]
    numbers: NDArray[np.int64]
    random: NDArray[np.uint64]
    barrier: NDArray[np.int64]

    @classmethod
    def allocate(
        cls, n_samples: int, n_clusters: int, n_features: int, barrier: Integers | None = None
    ) -> UndoLog:
        """Allocate the arrays. A swap that moves samples more than about 2n times is given up."""
        most = 2 * n_samples + 64
        return cls(
            queue=np.empty(n_clusters + 1, np.int32),
            is_waiting=np.zeros(n_clusters, np.uint8),
            changed=np.empty(n_clusters, np.int32),
            is_changed=np.zeros(n_clusters, np.uint8),
            centers=np.empty((n_clusters, n_features)),
            weights=np.empty(n_clusters),
            sizes=np.empty(n_clusters, np.int64),
            errors=np.empty(n_clusters),
            samples=np.empty(most, np.int32),
            origins=np.empty(most, np.int32),
            neighbours=np.empty(n_clusters, np.int32),
            neighbour_keys=np.empty(n_clusters),
            apart=np.empty(n_clusters),
            group=np.empty(n_samples, np.int32),
            halves=np.empty((3, n_features)),
            fresh=np.empty(n_clusters, np.int32),
            is_fresh=np.zeros(n_clusters, np.uint8),
            numbers=np.zeros(7, np.int64),
            random=np.zeros(1, np.uint64),
            barrier=np.zeros(16, np.int64) if barrier is None else barrier,
        )


# A scale below this would lose digits; the mean is written out before.
SMALLEST_SCALE = 1e-3


def _square_to_dense(rows: Rows, i: Index, clusters: Any, j: Index) -> float:
    """Return ‖x − c‖² for a sample and the mean of a cluster."""
    return squared_difference(rows, i, clusters.centers, j)


def _square_to_sparse(rows: SparseRows, i: Index, clusters: Any, j: Index) -> float:
    total = 0.0
    for p in range(rows.starts[i], rows.starts[i + 1]):
        total += rows.values[p] * clusters.centers[j, rows.columns[p]]
    return max(rows.squares[i] + clusters.norms[j] - 2.0 * clusters.scales[j] * total, 0.0)


square_to = by_row_type(dense=_square_to_dense, sparse=_square_to_sparse, fastmath=REORDER)


def _set_apart_dense(rows: Rows, clusters: Any, apart: FloatArray, j: Index) -> None:
    """Set ``apart`` to the squared distances of all means from that of cluster ``j``."""
    features = clusters.features
    for other in range(apart.shape[0]):
        apart[other] = 0.0
    for t in range(features.shape[0]):
        own = features[t, j]
        for other in range(apart.shape[0]):
            difference = features[t, other] - own
            apart[other] += difference * difference


def _set_apart_sparse(rows: SparseRows, clusters: Any, apart: FloatArray, j: Index) -> None:
    centers, scales, norms = clusters.centers, clusters.scales, clusters.norms
    for other in range(apart.shape[0]):
        total = 0.0
        for t in range(centers.shape[1]):
            total += centers[j, t] * centers[other, t]
        apart[other] = max(norms[j] + norms[other] - 2.0 * scales[j] * scales[other] * total, 0.0)


set_apart = by_row_type(
    dense=_set_apart_dense, sparse=_set_apart_sparse, fastmath=REORDER, inline=False
)


def _set_mean_dense(rows: Rows, clusters: Any, j: Index, means: FloatArray, place: Index) -> None:
    """Set the mean of a cluster to a row of a matrix."""
    for t in range(means.shape[1]):
        clusters.centers[j, t] = means[place, t]
        clusters.features[t, j] = means[place, t]


def _set_mean_sparse(
    rows: SparseRows, clusters: Any, j: Index, means: FloatArray, place: Index
) -> None:
    norm = 0.0
    for t in range(means.shape[1]):
        clusters.centers[j, t] = means[place, t]
        norm += means[place, t] * means[place, t]
    clusters.scales[j], clusters.norms[j] = 1.0, norm


set_mean = by_row_type(
    dense=_set_mean_dense, sparse=_set_mean_sparse, fastmath=REORDER, inline=False
)


def _get_mean_dense(rows: Rows, clusters: Any, j: Index, means: FloatArray, place: Index) -> None:
    """Write the mean of a cluster into a row of a matrix."""
    for t in range(means.shape[1]):
        means[place, t] = clusters.centers[j, t]


def _get_mean_sparse(
    rows: SparseRows, clusters: Any, j: Index, means: FloatArray, place: Index
) -> None:
    for t in range(means.shape[1]):
        means[place, t] = clusters.centers[j, t] * clusters.scales[j]


get_mean = by_row_type(dense=_get_mean_dense, sparse=_get_mean_sparse, inline=False)


def _move_mean_dense(rows: Rows, i: Index, clusters: Any, j: Index, share: float) -> None:
    """Move the mean of a cluster towards a sample by a share of the way, or away from it."""
    for t in range(rows.shape[1]):
        mean = clusters.centers[j, t] + (rows[i, t] - clusters.centers[j, t]) * share
        clusters.centers[j, t] = clusters.features[t, j] = mean


def _move_mean_sparse(rows: SparseRows, i: Index, clusters: Any, j: Index, share: float) -> None:
    centers, scale, rest = clusters.centers, clusters.scales[j], 1.0 - share
    if abs(rest * scale) < SMALLEST_SCALE or abs(rest * scale) > 1.0 / SMALLEST_SCALE:
        # Written out. The only sample of a cluster is its mean already.
        for t in range(centers.shape[1]):
            centers[j, t] *= scale * rest
        scale = 1.0
    else:
        scale *= rest
    total = 0.0
    for p in range(rows.starts[i], rows.starts[i + 1]):
        t, value = rows.columns[p], rows.values[p]
        # Before the change the mean is (centers·scale)/rest, unless rest is zero.
        total += value * centers[j, t]
        centers[j, t] += value * (share / scale)
    norm = rest * rest * clusters.norms[j] + share * share * rows.squares[i]
    clusters.norms[j] = max(norm + 2.0 * share * scale * total, 0.0)
    clusters.scales[j] = scale


move_mean = by_row_type(dense=_move_mean_dense, sparse=_move_mean_sparse)


def _point_to_dense(rows: Rows, i: Index, normal: FloatArray) -> None:
    """Replace a point by the vector from it to a sample."""
    for t in range(normal.shape[0]):
        normal[t] = rows[i, t] - normal[t]


def _point_to_sparse(rows: SparseRows, i: Index, normal: FloatArray) -> None:
    for t in range(normal.shape[0]):
        normal[t] = -normal[t]
    for p in range(rows.starts[i], rows.starts[i + 1]):
        normal[rows.columns[p]] += rows.values[p]


point_to = by_row_type(dense=_point_to_dense, sparse=_point_to_sparse)


def _product_with_dense(rows: Rows, i: Index, vector: FloatArray) -> float:
    """Return the scalar product of a sample with a vector."""
    total = 0.0
    for t in range(vector.shape[0]):
        total += rows[i, t] * vector[t]
    return total


def _product_with_sparse(rows: SparseRows, i: Index, vector: FloatArray) -> float:
    total = 0.0
    for p in range(rows.starts[i], rows.starts[i + 1]):
        total += rows.values[p] * vector[rows.columns[p]]
    return total


product_with = by_row_type(dense=_product_with_dense, sparse=_product_with_sparse, fastmath=REORDER)


def _add_to_dense(rows: Rows, i: Index, weight: float, vector: NDArray[np.float64]) -> None:
    """Add a sample to a vector, by its weight."""
    for t in range(vector.shape[0]):
        vector[t] += weight * rows[i, t]


def _add_to_sparse(rows: SparseRows, i: Index, weight: float, vector: NDArray[np.float64]) -> None:
    for p in range(rows.starts[i], rows.starts[i + 1]):
        vector[rows.columns[p]] += weight * rows.values[p]


add_to = by_row_type(dense=_add_to_dense, sparse=_add_to_sparse)


# ---- clusters, and the log of their changes ------------------------------------------------------


@jit(inline=False)
def fill(
    samples: Samples,
    clusters: Clusters,
    undo: UndoLog,
    labels: NDArray[Any],
    centers: FloatArray,
    weights: FloatArray,
) -> None:
    """Set the clusters to a fixed point of K-means."""
    k, n = weights.shape[0], clusters.labels.shape[0]
    for j in range(k):
        clusters.first[j] = NOBODY
        clusters.sizes[j] = 0
        clusters.weights[j] = weights[j]
        set_mean(samples.rows, clusters, j, centers, j)
    for i in range(n - 1, -1, -1):
        own = np.int32(labels[i // WIDTH, i % WIDTH])
        clusters.labels[i] = own
        if weight_of(samples, i) > 0.0:
            clusters.sizes[own] += 1
            link(clusters, i, own)
    for j in range(k):
        resize(clusters, j, clusters.sizes[j])
        clusters.errors[j] = refresh_squares(samples, clusters, j)
        clusters.removal_costs[j] = np.inf
    for j in range(k):
        update_removal_costs(samples, clusters, undo, j)


@jit
def link(clusters: Clusters, i: Index, j: Index) -> None:
    """Put a sample at the head of the list of a cluster."""
    follower = clusters.first[j]
    clusters.after[i], clusters.before[i] = follower, NOBODY
    if follower >= 0:
        clusters.before[follower] = i
    clusters.first[j] = i


@jit
def unlink(clusters: Clusters, i: Index, j: Index) -> None:
    """Remove a sample from the list of a cluster."""
    leader, follower = clusters.before[i], clusters.after[i]
    if leader >= 0:
        clusters.after[leader] = follower
    else:
        clusters.first[j] = follower
    if follower >= 0:
        clusters.before[follower] = leader


@jit
def resize(clusters: Clusters, j: Index, size: Index) -> None:
    """Set the number of samples of a cluster, and its ``move_factors``.

    By Hartigan's rule, a sample of average weight moves from a to b if ‖x − c_b‖ < ρ‖x − c_a‖, with
    ρ² = m_a/(m_a − 1) · (m_b + 1)/m_b for sizes m. The move factors are these two, for LEAVING a
    and for ARRIVING at b.
    """
    clusters.sizes[j] = size
    clusters.move_factors[LEAVING, j] = size / max(size - 1.0, 0.5)
    clusters.move_factors[ARRIVING, j] = (size + 1.0) / max(size, 1.0)


@jit(inline=False)
def refresh_squares(samples: Samples, clusters: Clusters, j: Index) -> float:
    """Set ``squares`` of the samples of a cluster and its ``max_squares``; return Σ w‖x − c‖²."""
    i, most, total = clusters.first[j], 0.0, 0.0
    while i >= 0:
        square = square_to(samples.rows, i, clusters, j)
        clusters.squares[i] = square
        most = max(most, square)
        total += square * weight_of(samples, i)
        i = clusters.after[i]
    clusters.max_squares[j] = most
    return total


@jit(inline=False)
def update_removal_costs(samples: Samples, clusters: Clusters, undo: UndoLog, j: Index) -> None:
    """Set what merging cluster ``j`` with another costs at least, and lower that of the others.

    Merging a and b raises the sum of squares by W_a W_b/(W_a + W_b)·‖c_a − c_b‖².
    """
    costs, weights = clusters.removal_costs, clusters.weights
    set_apart(samples.rows, clusters, undo.apart, j)
    least = np.inf
    for other in range(weights.shape[0]):
        total = weights[j] + weights[other]
        if other != j and total > 0.0:
            cost = undo.apart[other] * (weights[j] * weights[other] / total)
            least = min(least, cost)
            costs[other] = min(costs[other], cost)
    costs[j] = least


@jit(inline=False)
def remember(samples: Samples, clusters: Clusters, undo: UndoLog, j: Index) -> None:
    """Log a cluster before its first change, and put it into the queue."""
    numbers = undo.numbers
    if undo.is_changed[j] == 0:
        undo.is_changed[j] = 1
        place = numbers[CHANGED]
        numbers[CHANGED] += 1
        undo.changed[place] = j
        undo.weights[place] = clusters.weights[j]
        undo.sizes[place] = clusters.sizes[j]
        undo.errors[place] = clusters.errors[j]
        get_mean(samples.rows, clusters, j, undo.centers, place)
    if undo.is_waiting[j] == 0:
        undo.is_waiting[j] = 1
        last = numbers[HEAD] + numbers[WAITING]
        capacity = undo.queue.shape[0]
        undo.queue[last - capacity if last >= capacity else last] = j
        numbers[WAITING] += 1


@jit
def next_waiting(undo: UndoLog) -> np.int32:
    """Remove the cluster from the queue that has waited longest, and return it."""
    numbers = undo.numbers
    j = undo.queue[numbers[HEAD]]
    numbers[HEAD] += 1
    if numbers[HEAD] == undo.queue.shape[0]:
        numbers[HEAD] = 0
    numbers[WAITING] -= 1
    undo.is_waiting[j] = 0
    return j


@jit
def is_full(undo: UndoLog) -> np.bool_:
    """Whether the log has no room for another move."""
    return undo.numbers[MOVED] >= undo.samples.shape[0]


@jit
def add_fresh(undo: UndoLog, j: Index) -> None:
    """Note that a cluster is not as the parents had it."""
    if undo.is_fresh[j] == 0:
        undo.is_fresh[j] = 1
        undo.fresh[undo.numbers[FRESH]] = j
        undo.numbers[FRESH] += 1
