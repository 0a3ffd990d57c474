"""Samples that move between clusters during a swap, and how moves are kept or undone.

Samples of the removed cluster join others, and a new cluster begins. Then single samples change
their cluster by the rule of :mod:`~evomeans.engines.cpu.hartigan`, as long as that lowers the sum
of squares. The change spreads from cluster to cluster until there is none left.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.jit import jit
from evomeans.engines.cpu.layout import Samples, weight_of, write_row
from evomeans.engines.cpu.swaps.lists import (
    ARRIVING,
    CHANGED,
    GROUP,
    LEAVING,
    MOVED,
    WAITING,
    Clusters,
    UndoLog,
    add_to,
    get_mean,
    is_full,
    link,
    move_mean,
    next_waiting,
    refresh_squares,
    remember,
    resize,
    set_apart,
    set_mean,
    square_to,
    unlink,
    update_removal_costs,
)
from evomeans.engines.cpu.threads import ABANDONED
from evomeans.engines.rules import WORTHWHILE
from evomeans.typing import FloatArray, Index

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
def leave(samples: Samples, clusters: Clusters, undo: UndoLog, i: Index, square: float) -> float:
    """Remove a sample from its cluster; return the change, −w W/(W − w)·s for the ``square`` s."""
    j, weight = clusters.labels[i], weight_of(samples, i)
    remember(samples, clusters, undo, j)
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
    samples: Samples, clusters: Clusters, undo: UndoLog, i: Index, j: Index, square: float
) -> float:
    """Put a sample that has left into cluster ``j``; return the change, w W/(W + w)·s."""
    weight = weight_of(samples, i)
    remember(samples, clusters, undo, j)
    place = undo.numbers[MOVED]
    undo.numbers[MOVED] += 1
    undo.samples[place], undo.origins[place] = i, clusters.labels[i]
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
def found_cluster(samples: Samples, clusters: Clusters, undo: UndoLog, i: Index, j: Index) -> None:
    """Make a sample that has left the only member of cluster ``j``, which is empty."""
    clusters.weights[j], clusters.sizes[j], clusters.errors[j] = 0.0, 0, 0.0
    # Exactly there: the mean of what the cluster was before may be far away.
    write_row(samples.rows, i, clusters.centers, j)
    join(samples, clusters, undo, i, j, 0.0)


@jit(inline=False)
def keep_changes(samples: Samples, clusters: Clusters, undo: UndoLog) -> None:
    """Accept the changes."""
    for place in range(undo.numbers[CHANGED]):
        j = undo.changed[place]
        # Written out, so that rounding does not add up from swap to swap.
        get_mean(samples.rows, clusters, j, undo.centers, place)
        set_mean(samples.rows, clusters, j, undo.centers, place)
    for place in range(undo.numbers[CHANGED]):
        update_removal_costs(samples, clusters, undo, undo.changed[place])
    close_undo(undo)


@jit(inline=False)
def take_back(samples: Samples, clusters: Clusters, undo: UndoLog) -> None:
    """Undo the changes: restore everything as it was when the undo log was opened."""
    undo_moves(clusters, undo, np.int64(0))
    for place in range(undo.numbers[CHANGED]):
        j = undo.changed[place]
        clusters.weights[j] = undo.weights[place]
        clusters.errors[j] = undo.errors[place]
        resize(clusters, j, undo.sizes[place])
        set_mean(samples.rows, clusters, j, undo.centers, place)
        refresh_squares(samples, clusters, j)
    close_undo(undo)


@jit(inline=False)
def retrace(samples: Samples, clusters: Clusters, undo: UndoLog, moved: Index) -> None:
    """Undo the changes after the first ``moved`` moves of samples, and empty the queue."""
    undo_moves(clusters, undo, moved)
    while undo.numbers[WAITING] > 0:
        next_waiting(undo)
    for place in range(undo.numbers[CHANGED]):
        recompute_cluster(samples, clusters, undo, undo.changed[place])


@jit(inline=False)
def undo_moves(clusters: Clusters, undo: UndoLog, moved: Index) -> None:
    """Let samples return to where they were after the first ``moved`` moves."""
    for place in range(undo.numbers[MOVED] - 1, moved - 1, -1):
        i = undo.samples[place]
        unlink(clusters, i, clusters.labels[i])
        clusters.labels[i] = undo.origins[place]
        link(clusters, i, clusters.labels[i])
    undo.numbers[MOVED] = moved


@jit(inline=False)
def recompute_cluster(samples: Samples, clusters: Clusters, undo: UndoLog, j: Index) -> None:
    """Set the mean, weight, size and sum of squares of a cluster from its samples."""
    sums, weight, size, i = undo.halves[1], 0.0, 0, clusters.first[j]
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
    set_mean(samples.rows, clusters, j, undo.halves, 1)
    clusters.errors[j] = refresh_squares(samples, clusters, j)


@jit(inline=False)
def close_undo(undo: UndoLog) -> None:
    """Empty the log and the queue."""
    while undo.numbers[WAITING] > 0:
        next_waiting(undo)
    for place in range(undo.numbers[CHANGED]):
        undo.is_changed[undo.changed[place]] = 0
    for number in range(GROUP + 1):
        undo.numbers[number] = 0


# Clusters that the samples of one cluster may move to, which bounds the cost of a swap. K-means and
# single moves on all samples find what is missed.
RANGE = 8
# Clusters with at least LARGE_CLUSTER samples on average are large. There, a swap that has
# succeeded ends after a round that adds less than the share LITTLE to its total gain. K-means on
# all samples follows and needs less time for the rest, because it compares few of them.
LARGE_CLUSTER, LITTLE = 512, 0.2


@jit(inline=False)
def dissolve(
    samples: Samples, clusters: Clusters, undo: UndoLog, removed: Index, neighbours: int
) -> float:
    """Let the samples of a cluster join the listed neighbours; return what Σ w‖x − c‖² grows by."""
    remember(samples, clusters, undo, removed)
    change = -clusters.errors[removed]
    following = clusters.first[removed]
    while following >= 0:
        i, following = following, clusters.after[following]
        weight, distance = weight_of(samples, i), np.sqrt(clusters.squares[i])
        target, nearest, least = 0, 0.0, np.inf
        for a in range(neighbours):
            # With c the removed centre and c' another, ‖x − c'‖ ≥ ‖c − c'‖ − ‖x − c‖; and joining
            # costs at least half of ‖x − c'‖², unless the sample is heavier than the cluster.
            farthest = np.sqrt(2.0 * least) + distance
            if undo.neighbour_keys[a] >= farthest * farthest:
                break
            j = undo.neighbours[a]
            square = square_to(samples.rows, i, clusters, j)
            spent = joining_cost(square, clusters.weights[j], weight)
            if spent < least:
                target, nearest, least = j, square, spent
        change += join(samples, clusters, undo, i, target, nearest)
    return change


@jit(inline=False)
def begin_cluster(samples: Samples, clusters: Clusters, undo: UndoLog, j: Index) -> float:
    """Let ``undo.group`` become a cluster in place of the dissolved one ``j``; return the change.

    A sample with nearly all the weight of its cluster stays. Infinite if none is left to move.
    """
    change = 0.0
    clusters.first[j] = -1
    for place in range(undo.numbers[GROUP]):
        i = undo.group[place]
        own = clusters.labels[i]
        if may_leave(clusters, own, weight_of(samples, i)):
            square = square_to(samples.rows, i, clusters, own)
            change += leave(samples, clusters, undo, i, square)
            if clusters.first[j] < 0:
                found_cluster(samples, clusters, undo, i, j)
            else:
                square = square_to(samples.rows, i, clusters, j)
                change += join(samples, clusters, undo, i, j, square)
    return change if clusters.first[j] >= 0 else np.inf


@jit(inline=False)
def move_samples(samples: Samples, clusters: Clusters, undo: UndoLog, change: float) -> float:
    """Move single samples until that gains little or nothing more, or the swap has no hope.

    Takes and returns the ``change`` of the sum of squares. A positive result may be too high.
    """
    numbers = undo.numbers
    before, left = change, numbers[WAITING]
    is_large = clusters.labels.shape[0] >= LARGE_CLUSTER * clusters.weights.shape[0]
    while numbers[WAITING] > 0:
        if left == 0:
            # Gains shrink from round to round. If the last one was less than what is missing, the
            # next ones will hardly make up for it. Most swaps end here, after a few rounds.
            gain = before - change
            if change > gain or (is_large and gain < -LITTLE * change):
                break
            before, left = change, numbers[WAITING]
        left -= 1
        j = next_waiting(undo)
        refresh_squares(samples, clusters, j)
        set_apart(samples.rows, clusters, undo.apart, j)
        count = list_targets(clusters, undo, j)
        farthest = undo.neighbour_keys[RANGE - 1] if count == RANGE else np.inf
        change += move_members_out(samples, clusters, undo, j, count)
        change += move_members_in(samples, clusters, undo, j, farthest)
        if is_full(undo) or undo.barrier[ABANDONED] != 0:
            return np.inf
    return change


@jit
def separation_limit(clusters: Clusters, source: Index, target: Index) -> float:
    """Return how far apart two centres may be for samples to gain by a move between them.

    This is (1 + ρ)², a bound of ‖c_a − c_b‖² / ‖x − c_a‖² for samples of average weight: a move
    needs ‖x − c_b‖ < ρ‖x − c_a‖, and ρ, the root of the two move factors, is at most their mean.
    """
    factors = clusters.move_factors[LEAVING, source] + clusters.move_factors[ARRIVING, target]
    ratio = 1.0 + 0.5 * factors
    return ratio * ratio


@jit
def insert(
    names: NDArray[np.int32], keys: FloatArray, count: int, most: int, name: Index, key: float
) -> int:
    """Insert a name into ``count`` ones sorted by keys, at most ``most``; return their number."""
    if count == most and key >= keys[count - 1]:
        return count
    count = min(count + 1, most)
    place = count - 1
    while place > 0 and keys[place - 1] > key:
        names[place], keys[place] = names[place - 1], keys[place - 1]
        place -= 1
    names[place], keys[place] = name, key
    return count


@jit(inline=False)
def list_targets(clusters: Clusters, undo: UndoLog, j: Index) -> int:
    """List the clusters to which samples of cluster ``j`` might move; return their number.

    Sorted by their keys: a sample may move there only if its squared distance from its own centre
    is above the key. ``squares`` and ``undo.apart`` have just been set for this cluster.
    """
    most, count = clusters.max_squares[j], 0
    for other in range(clusters.weights.shape[0]):
        ratio = separation_limit(clusters, j, other)
        if undo.apart[other] < most * ratio and other != j and clusters.weights[other] > 0.0:
            limit = undo.apart[other] / ratio
            count = insert(undo.neighbours, undo.neighbour_keys, count, RANGE, other, limit)
    return count


@jit(inline=False)
def move_members_out(
    samples: Samples, clusters: Clusters, undo: UndoLog, j: Index, count: int
) -> float:
    """Move samples of cluster ``j`` to the listed ones, where that gains; return the change."""
    change = 0.0
    following = clusters.first[j] if count > 0 else -1
    while following >= 0:
        i, following = following, clusters.after[following]
        weight = weight_of(samples, i)
        if clusters.squares[i] <= undo.neighbour_keys[0] or not may_leave(clusters, j, weight):
            continue
        own = current_square(samples, clusters, undo, i, j)
        target, nearest = j, 0.0
        least = leaving_gain(own, clusters.weights[j], weight) * WORTHWHILE
        for a in range(count):
            if undo.neighbour_keys[a] >= own:
                break
            other = undo.neighbours[a]
            square = square_to(samples.rows, i, clusters, other)
            spent = joining_cost(square, clusters.weights[other], weight)
            if spent < least:
                target, nearest, least = other, square, spent
        if target != j and not is_full(undo):
            change += leave(samples, clusters, undo, i, own)
            change += join(samples, clusters, undo, i, target, nearest)
    return change


@jit(inline=False)
def move_members_in(
    samples: Samples, clusters: Clusters, undo: UndoLog, j: Index, farthest: float
) -> float:
    """Move samples of other clusters to cluster ``j``, where that gains; return the change.

    Not from clusters in the queue, since their own visit will do that; and not from clusters whose
    key would be above ``farthest``, the last key of a full list.
    """
    change = 0.0
    for other in range(clusters.weights.shape[0]):
        ratio = separation_limit(clusters, other, j)
        most = clusters.max_squares[other]
        if undo.apart[other] >= most * ratio or undo.is_waiting[other] != 0:
            continue
        limit = undo.apart[other] / ratio
        following = clusters.first[other] if other != j and limit <= farthest else -1
        while following >= 0:
            i, following = following, clusters.after[following]
            weight = weight_of(samples, i)
            if clusters.squares[i] <= limit or not may_leave(clusters, other, weight):
                continue
            own = current_square(samples, clusters, undo, i, other)
            square = square_to(samples.rows, i, clusters, j)
            saved = leaving_gain(own, clusters.weights[other], weight)
            spent = joining_cost(square, clusters.weights[j], weight)
            if spent < saved * WORTHWHILE and not is_full(undo):
                change += leave(samples, clusters, undo, i, own)
                change += join(samples, clusters, undo, i, j, square)
    return change


@jit
def current_square(
    samples: Samples, clusters: Clusters, undo: UndoLog, i: Index, j: Index
) -> float:
    """Return ‖x − c‖² for the own centre, which may have moved since ``squares`` were refreshed."""
    if undo.is_waiting[j] == 0:
        return clusters.squares[i]
    return square_to(samples.rows, i, clusters, j)
