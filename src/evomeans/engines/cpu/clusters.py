"""A solution that can be changed a sample at a time, and put back as it was.

K-means looks at all samples, however few of them a change concerns. Where a cluster has few samples
it is far cheaper to follow the change: to visit the clusters that it has reached, and no others.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.jit import jit
from evomeans.compiled.vectors import squared_difference
from evomeans.engines.cpu.lanes import WIDTH
from evomeans.engines.cpu.rows import write_row

# Of :attr:`Diary.numbers`.
HEAD, WAITING, CHANGED, MOVED = range(4)
# Of :attr:`Clusters.eagerness`.
ARRIVING, LEAVING = range(2)
NOBODY = np.int32(-1)
# A sample that has nearly all the weight of its cluster stays: the mean of the rest would be noise.
REMAINDER = 1e-9


class Clusters(NamedTuple):
    """Clusters as lists of samples.

    ``centers`` (k, d), ``weights`` (k,) and ``sizes`` (k,) int64: means, total weights, and how
    many samples there are; those without weight are in no list. ``features`` (d, k): the means once
    more, for loops over centres. ``eagerness`` (2, k): see :func:`resize`. ``errors`` (k,):
    Σ w‖x − c‖²; ``reach`` (k,): the largest ‖x − c‖² of a cluster when it was last measured.
    ``losses`` (k,): about what the sum of squares would grow by without a cluster.

    ``first`` (k,), ``after`` and ``before`` (n,) int32: the lists; ``labels`` (n,) int32;
    ``squares`` (n,): ‖x − c‖² when the cluster was last measured.
    """

    centers: NDArray[np.float64]
    weights: NDArray[np.float64]
    sizes: NDArray[np.int64]
    features: NDArray[np.float64]
    eagerness: NDArray[np.float64]
    errors: NDArray[np.float64]
    reach: NDArray[np.float64]
    losses: NDArray[np.float64]
    first: NDArray[np.int32]
    after: NDArray[np.int32]
    before: NDArray[np.int32]
    labels: NDArray[np.int32]
    squares: NDArray[np.float64]

    @classmethod
    def allocate(cls, n_samples: int, n_clusters: int, n_features: int) -> Clusters:
        """Make room."""
        return cls(
            centers=np.empty((n_clusters, n_features)),
            weights=np.empty(n_clusters),
            sizes=np.empty(n_clusters, np.int64),
            features=np.empty((n_features, n_clusters)),
            eagerness=np.empty((2, n_clusters)),
            errors=np.empty(n_clusters),
            reach=np.empty(n_clusters),
            losses=np.empty(n_clusters),
            first=np.empty(n_clusters, np.int32),
            after=np.empty(n_samples, np.int32),
            before=np.empty(n_samples, np.int32),
            labels=np.empty(n_samples, np.int32),
            squares=np.empty(n_samples),
        )


class Diary(NamedTuple):
    """What has been changed and what is to be visited.

    ``queue`` (k + 1,) int32: a ring of clusters that have changed and not been visited since;
    ``is_waiting`` (k,) uint8: whether a cluster is among them. Of all that have changed since the
    diary was opened: ``changed`` (k,) int32, which they are; ``is_changed`` (k,) uint8; ``centers``
    (k, d), ``weights`` (k,), ``sizes`` (k,) int64 and ``errors`` (k,), as they were. ``samples``
    and ``origins`` (≥ n,) int32: every move of a sample, and the cluster that it left.

    ``nearby`` (k,) int32, ``limits`` (k,) and ``apart`` (k,): room to work in. ``numbers`` (4,)
    int64: HEAD and length (WAITING) of the queue, and lengths of ``changed`` and of ``samples``.
    ``random`` (1,) uint64: see :func:`~evomeans.engines.cpu.swaps.uniform`.
    """

    queue: NDArray[np.int32]
    is_waiting: NDArray[np.uint8]
    changed: NDArray[np.int32]
    is_changed: NDArray[np.uint8]
    centers: NDArray[np.float64]
    weights: NDArray[np.float64]
    sizes: NDArray[np.int64]
    errors: NDArray[np.float64]
    samples: NDArray[np.int32]
    origins: NDArray[np.int32]
    nearby: NDArray[np.int32]
    limits: NDArray[np.float64]
    apart: NDArray[np.float64]
    numbers: NDArray[np.int64]
    random: NDArray[np.uint64]

    @classmethod
    def allocate(cls, n_samples: int, n_clusters: int, n_features: int) -> Diary:
        """Make room. A change that moves more samples than there are twice over is given up."""
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
            nearby=np.empty(n_clusters, np.int32),
            limits=np.empty(n_clusters),
            apart=np.empty(n_clusters),
            numbers=np.zeros(4, np.int64),
            random=np.zeros(1, np.uint64),
        )


@jit
def weight_of(samples: Any, i: Any) -> Any:
    """Return the weight of a sample."""
    return samples.weights[i] if samples.weights.shape[0] else 1.0


@jit
def fill(samples: Any, clusters: Any, diary: Any, labels: Any, centers: Any, weights: Any) -> None:
    """Take over a fixed point of K-means.

    Parameters
    ----------
    labels : (tiles, WIDTH) array
    centers, weights : (k, d) and (k,) arrays
    """
    k, n = weights.shape[0], clusters.labels.shape[0]
    for j in range(k):
        clusters.first[j] = NOBODY
        clusters.sizes[j] = 0
        clusters.weights[j] = weights[j]
        for t in range(centers.shape[1]):
            place_center(clusters, j, t, centers[j, t])
    for i in range(n - 1, -1, -1):
        own = np.int32(labels[i // WIDTH, i % WIDTH])
        clusters.labels[i] = own
        if weight_of(samples, i) > 0.0:
            clusters.sizes[own] += 1
            link(clusters, i, own)
    for j in range(k):
        resize(clusters, j, clusters.sizes[j])
        clusters.errors[j] = measure(samples, clusters, j)
        clusters.losses[j] = np.inf
    for j in range(k):
        compare_losses(clusters, diary, j)


@jit
def link(clusters: Any, i: Any, j: Any) -> None:
    """Put a sample at the head of a cluster's list."""
    follower = clusters.first[j]
    clusters.after[i], clusters.before[i] = follower, NOBODY
    if follower >= 0:
        clusters.before[follower] = i
    clusters.first[j] = i


@jit
def unlink(clusters: Any, i: Any, j: Any) -> None:
    """Take a sample out of a cluster's list."""
    leader, follower = clusters.before[i], clusters.after[i]
    if leader >= 0:
        clusters.after[leader] = follower
    else:
        clusters.first[j] = follower
    if follower >= 0:
        clusters.before[follower] = leader


@jit
def place_center(clusters: Any, j: Any, t: Any, value: float) -> None:
    """Set a coordinate of a centre."""
    clusters.centers[j, t] = value
    clusters.features[t, j] = value


@jit
def resize(clusters: Any, j: Any, size: Any) -> None:
    """Set how many samples a cluster has.

    A sample of the usual weight moves from a to b if b is ρ times as far away as a, at most, with
    ρ² = m_a/(m_a − 1) · (m_b + 1)/m_b for sizes m. ``eagerness`` has the two factors.
    """
    clusters.sizes[j] = size
    clusters.eagerness[LEAVING, j] = size / max(size - 1.0, 0.5)
    clusters.eagerness[ARRIVING, j] = (size + 1.0) / max(size, 1.0)


@jit
def measure_apart(clusters: Any, diary: Any, j: Any) -> None:
    """Set the squared distances of all other centres from one."""
    apart, features = diary.apart, clusters.features
    for other in range(apart.shape[0]):
        apart[other] = 0.0
    for t in range(features.shape[0]):
        own = features[t, j]
        for other in range(apart.shape[0]):
            difference = features[t, other] - own
            apart[other] += difference * difference


@jit
def measure(samples: Any, clusters: Any, j: Any) -> Any:
    """Measure how far samples are from their centre; return the sum of squares of the cluster."""
    i, reach, total = clusters.first[j], 0.0, 0.0
    while i >= 0:
        square = squared_difference(samples.rows, i, clusters.centers, j)
        clusters.squares[i] = square
        reach = max(reach, square)
        total += square * weight_of(samples, i)
        i = clusters.after[i]
    clusters.reach[j] = reach
    return total


@jit
def compare_losses(clusters: Any, diary: Any, j: Any) -> None:
    """Set what uniting a cluster with another costs at least, for it and for the others."""
    losses, weights = clusters.losses, clusters.weights
    measure_apart(clusters, diary, j)
    least = np.inf
    for other in range(weights.shape[0]):
        total = weights[j] + weights[other]
        if other != j and total > 0.0:
            loss = diary.apart[other] * (weights[j] * weights[other] / total)
            least = min(least, loss)
            losses[other] = min(losses[other], loss)
    losses[j] = least


@jit
def remember(clusters: Any, diary: Any, j: Any) -> None:
    """Write down how a cluster was, before it changes for the first time; it waits for a visit."""
    numbers = diary.numbers
    if diary.is_changed[j] == 0:
        diary.is_changed[j] = 1
        place = numbers[CHANGED]
        numbers[CHANGED] += 1
        diary.changed[place] = j
        diary.weights[place] = clusters.weights[j]
        diary.sizes[place] = clusters.sizes[j]
        diary.errors[place] = clusters.errors[j]
        for t in range(clusters.centers.shape[1]):
            diary.centers[place, t] = clusters.centers[j, t]
    if diary.is_waiting[j] == 0:
        diary.is_waiting[j] = 1
        last = numbers[HEAD] + numbers[WAITING]
        capacity = diary.queue.shape[0]
        diary.queue[last - capacity if last >= capacity else last] = j
        numbers[WAITING] += 1


@jit
def next_waiting(diary: Any) -> Any:
    """Take the cluster out of the queue that has waited longest."""
    numbers = diary.numbers
    j = diary.queue[numbers[HEAD]]
    numbers[HEAD] += 1
    if numbers[HEAD] == diary.queue.shape[0]:
        numbers[HEAD] = 0
    numbers[WAITING] -= 1
    diary.is_waiting[j] = 0
    return j


@jit
def is_full(diary: Any) -> Any:
    """Whether no further move could be written down."""
    return diary.numbers[MOVED] >= diary.samples.shape[0]


@jit
def may_leave(clusters: Any, j: Any, weight: float) -> Any:
    """Whether something is left of a cluster without a sample of this weight."""
    return clusters.sizes[j] > 1 and clusters.weights[j] - weight > REMAINDER * clusters.weights[j]


@jit
def leave(samples: Any, clusters: Any, diary: Any, i: Any, square: float) -> Any:
    """Take a sample out of its cluster, from a centre that far away; return what that changes."""
    j, weight, centers = clusters.labels[i], weight_of(samples, i), clusters.centers
    remember(clusters, diary, j)
    rest = clusters.weights[j] - weight
    saved = square * weight * clusters.weights[j] / rest
    share = weight / rest
    for t in range(centers.shape[1]):
        mean = centers[j, t] - (samples.rows[i, t] - centers[j, t]) * share
        place_center(clusters, j, t, mean)
    clusters.weights[j] = rest
    resize(clusters, j, clusters.sizes[j] - 1)
    clusters.errors[j] -= saved
    unlink(clusters, i, j)
    return -saved


@jit
def join(samples: Any, clusters: Any, diary: Any, i: Any, j: Any, square: float) -> Any:
    """Put a sample that has left into a cluster with a centre that far away; return the change."""
    weight, centers = weight_of(samples, i), clusters.centers
    remember(clusters, diary, j)
    place = diary.numbers[MOVED]
    diary.numbers[MOVED] += 1
    diary.samples[place], diary.origins[place] = i, clusters.labels[i]
    total = clusters.weights[j] + weight
    spent = square * weight * clusters.weights[j] / total
    share = weight / total
    for t in range(centers.shape[1]):
        mean = centers[j, t] + (samples.rows[i, t] - centers[j, t]) * share
        place_center(clusters, j, t, mean)
    clusters.weights[j] = total
    resize(clusters, j, clusters.sizes[j] + 1)
    clusters.errors[j] += spent
    clusters.labels[i] = j
    link(clusters, i, j)
    return spent


@jit
def found_cluster(samples: Any, clusters: Any, diary: Any, i: Any, j: Any) -> None:
    """Let a sample that has left begin a cluster of its own, in the place of one that is empty."""
    clusters.weights[j], clusters.sizes[j], clusters.errors[j] = 0.0, 0, 0.0
    write_row(samples.rows, i, clusters.centers, j)
    join(samples, clusters, diary, i, j, 0.0)


@jit
def close_diary(diary: Any) -> None:
    """Forget what was written down."""
    while diary.numbers[WAITING] > 0:
        next_waiting(diary)
    for place in range(diary.numbers[CHANGED]):
        diary.is_changed[diary.changed[place]] = 0
    for number in range(diary.numbers.shape[0]):
        diary.numbers[number] = 0


@jit
def keep_changes(clusters: Any, diary: Any) -> None:
    """Let the changes stand."""
    for place in range(diary.numbers[CHANGED]):
        compare_losses(clusters, diary, diary.changed[place])
    close_diary(diary)


@jit
def take_back(samples: Any, clusters: Any, diary: Any) -> None:
    """Make everything as it was when the diary was opened."""
    for place in range(diary.numbers[MOVED] - 1, -1, -1):
        i = diary.samples[place]
        unlink(clusters, i, clusters.labels[i])
        clusters.labels[i] = diary.origins[place]
        link(clusters, i, clusters.labels[i])
    for place in range(diary.numbers[CHANGED]):
        j = diary.changed[place]
        clusters.weights[j] = diary.weights[place]
        clusters.errors[j] = diary.errors[place]
        resize(clusters, j, diary.sizes[place])
        for t in range(clusters.centers.shape[1]):
            place_center(clusters, j, t, diary.centers[place, t])
        measure(samples, clusters, j)
    close_diary(diary)
