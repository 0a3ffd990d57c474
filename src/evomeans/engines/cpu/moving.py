"""Samples that move from cluster to cluster, and how that is kept or undone."""

from __future__ import annotations

import numpy as np

from evomeans.compiled.jit import jit
from evomeans.engines.cpu.clusters import (
    CHANGED,
    GROUP,
    MOVED,
    WAITING,
    Clusters,
    Diary,
    link,
    next_waiting,
    refresh_squares,
    remember,
    resize,
    unlink,
    update_removal_costs,
)
from evomeans.engines.cpu.layout import Index, Samples
from evomeans.engines.cpu.means import add_to, get_mean, move_mean, set_mean
from evomeans.engines.cpu.rows import weight_of, write_row

# A sample that has nearly all the weight of its cluster stays: the mean of the rest would be noise.
REMAINDER = 1e-9


@jit
def may_leave(clusters: Clusters, j: Index, weight: float) -> np.bool_:
    """Whether something is left of a cluster without a sample of this weight."""
    return clusters.sizes[j] > 1 and clusters.weights[j] - weight > REMAINDER * clusters.weights[j]


@jit
def leaving_gain(square: float, total: float, weight: float) -> float:
    """Return W/(W − w)·s, what a sample saves by leaving, per unit of its weight w.

    ``total`` is the weight W of the cluster, with the sample, and ``square`` is s = ‖x − c‖².
    """
    return square * total / (total - weight)


@jit
def joining_cost(square: float, total: float, weight: float) -> float:
    """Return W/(W + w)·s, what a sample costs by joining a cluster, per unit of its weight w."""
    return square * total / (total + weight)


@jit(inline=False)
def leave(samples: Samples, clusters: Clusters, diary: Diary, i: Index, square: float) -> float:
    """Remove a sample from its cluster; return the change of the sum of squares, −w W/(W − w)·s.

    ``square`` is s, the squared distance from the centre.
    """
    j, weight = clusters.labels[i], weight_of(samples, i)
    remember(samples, clusters, diary, j)
    rest = clusters.weights[j] - weight
    saved = square * weight * clusters.weights[j] / rest
    move_mean(samples.rows, i, clusters, j, -weight / rest)
    clusters.weights[j] = rest
    resize(clusters, j, clusters.sizes[j] - 1)
    clusters.errors[j] -= saved
    unlink(clusters, i, j)
    return -saved


@jit(inline=False)
def join(
    samples: Samples, clusters: Clusters, diary: Diary, i: Index, j: Index, square: float
) -> float:
    """Put a sample that has left into cluster ``j``; return the change, w W/(W + w)·s.

    ``square`` is s, the squared distance from the centre.
    """
    weight = weight_of(samples, i)
    remember(samples, clusters, diary, j)
    place = diary.numbers[MOVED]
    diary.numbers[MOVED] += 1
    diary.samples[place], diary.origins[place] = i, clusters.labels[i]
    total = clusters.weights[j] + weight
    spent = square * weight * clusters.weights[j] / total
    move_mean(samples.rows, i, clusters, j, weight / total)
    clusters.weights[j] = total
    resize(clusters, j, clusters.sizes[j] + 1)
    clusters.errors[j] += spent
    clusters.labels[i] = j
    link(clusters, i, j)
    return spent


@jit
def found_cluster(samples: Samples, clusters: Clusters, diary: Diary, i: Index, j: Index) -> None:
    """Make a sample that has left the only member of cluster ``j``, which is empty."""
    clusters.weights[j], clusters.sizes[j], clusters.errors[j] = 0.0, 0, 0.0
    # Exactly there: the mean of what the cluster was before may be far away.
    write_row(samples.rows, i, clusters.centers, j)
    join(samples, clusters, diary, i, j, 0.0)


@jit(inline=False)
def keep_changes(samples: Samples, clusters: Clusters, diary: Diary) -> None:
    """Accept the changes."""
    for place in range(diary.numbers[CHANGED]):
        j = diary.changed[place]
        # Written out, so that rounding does not add up from swap to swap.
        get_mean(samples.rows, clusters, j, diary.centers, place)
        set_mean(samples.rows, clusters, j, diary.centers, place)
    for place in range(diary.numbers[CHANGED]):
        update_removal_costs(samples, clusters, diary, diary.changed[place])
    close_diary(diary)


@jit(inline=False)
def take_back(samples: Samples, clusters: Clusters, diary: Diary) -> None:
    """Undo the changes: restore everything as it was when the diary was opened."""
    undo_moves(clusters, diary, np.int64(0))
    for place in range(diary.numbers[CHANGED]):
        j = diary.changed[place]
        clusters.weights[j] = diary.weights[place]
        clusters.errors[j] = diary.errors[place]
        resize(clusters, j, diary.sizes[place])
        set_mean(samples.rows, clusters, j, diary.centers, place)
        refresh_squares(samples, clusters, j)
    close_diary(diary)


@jit(inline=False)
def retrace(samples: Samples, clusters: Clusters, diary: Diary, moved: Index) -> None:
    """Undo the last changes, those after the first ``moved`` moves of samples.

    What clusters were then is not in the log, and is computed from their samples. The queue is
    emptied.
    """
    undo_moves(clusters, diary, moved)
    while diary.numbers[WAITING] > 0:
        next_waiting(diary)
    for place in range(diary.numbers[CHANGED]):
        recompute_cluster(samples, clusters, diary, diary.changed[place])


@jit(inline=False)
def undo_moves(clusters: Clusters, diary: Diary, moved: Index) -> None:
    """Let samples return to where they were after the first ``moved`` moves."""
    for place in range(diary.numbers[MOVED] - 1, moved - 1, -1):
        i = diary.samples[place]
        unlink(clusters, i, clusters.labels[i])
        clusters.labels[i] = diary.origins[place]
        link(clusters, i, clusters.labels[i])
    diary.numbers[MOVED] = moved


@jit(inline=False)
def recompute_cluster(samples: Samples, clusters: Clusters, diary: Diary, j: Index) -> None:
    """Set the mean, weight, size and sum of squares of a cluster from its samples."""
    sums, weight, size, i = diary.halves[1], 0.0, 0, clusters.first[j]
    for t in range(sums.shape[0]):
        sums[t] = 0.0
    while i >= 0:
        own = weight_of(samples, i)
        add_to(samples.rows, i, own, sums)
        weight += own
        size += 1
        i = clusters.after[i]
    for t in range(sums.shape[0]):
        sums[t] /= weight
    clusters.weights[j] = weight
    resize(clusters, j, size)
    set_mean(samples.rows, clusters, j, diary.halves, 1)
    clusters.errors[j] = refresh_squares(samples, clusters, j)


@jit(inline=False)
def close_diary(diary: Diary) -> None:
    """Empty the log and the queue."""
    while diary.numbers[WAITING] > 0:
        next_waiting(diary)
    for place in range(diary.numbers[CHANGED]):
        diary.is_changed[diary.changed[place]] = 0
    for number in range(GROUP + 1):
        diary.numbers[number] = 0
