"""Swaps: a centre is removed, another begins elsewhere, and the effects are followed locally.

docs/background/cpu-engine.md has the steps of a swap. The new cluster is one half of another: with
many features a single sample attracts nothing, because every other sample is closer to the mean of
its cluster. Swaps are in double precision and run in one thread.
"""

from __future__ import annotations

import numpy as np

from evomeans.compiled.jit import jit
from evomeans.engines.cpu.layout import Centers, Samples, State, WorkArrays, weight_of
from evomeans.engines.cpu.sums import set_length_one, update_center
from evomeans.engines.cpu.swaps.lists import (
    CHANGED,
    FRESH,
    GROUP,
    MOVED,
    SUCCESSES,
    Clusters,
    UndoLog,
    add_fresh,
    add_to,
    fill,
    get_mean,
    point_to,
    product_with,
    refresh_squares,
    set_apart,
)
from evomeans.engines.cpu.swaps.moves import (
    begin_cluster,
    dissolve,
    insert,
    keep_changes,
    may_leave,
    move_samples,
    retrace,
    take_back,
)
from evomeans.engines.cpu.threads import ABANDONED
from evomeans.typing import Index

# Assignments of 2-means. The gain hardly grows afterwards.
ROUNDS_OF_TWO_MEANS = 3


@jit(inline=False)
def halve_cluster(
    samples: Samples, clusters: Clusters, undo: UndoLog, j: Index, chosen: Index
) -> float:
    """Divide a cluster in two, and return by how much that lowers the sum of squares.

    The first plane between the halves goes through the centre, perpendicular to the direction of a
    chosen sample. Nothing is changed: ``undo.group`` lists the half that began with this sample.
    With the means a and b and the weights A and B of both, the gain is AB/(A + B)·‖a − b‖².
    """
    normal, sums, center = undo.halves[0], undo.halves[1], undo.halves[2]
    get_mean(samples.rows, clusters, j, undo.halves, 2)
    get_mean(samples.rows, clusters, j, undo.halves, 0)
    point_to(samples.rows, chosen, normal)
    total, gain, offset = clusters.weights[j], 0.0, 0.0
    for t in range(center.shape[0]):
        offset += normal[t] * center[t]
    for _ in range(ROUNDS_OF_TWO_MEANS):
        weight = list_beyond(samples, clusters, undo, j, offset)
        if undo.numbers[GROUP] == 0 or undo.numbers[GROUP] == clusters.sizes[j]:
            return 0.0
        rest = total - weight
        if rest <= 0.0:
            return 0.0
        square, offset = 0.0, 0.0
        for t in range(center.shape[0]):
            a, b = sums[t] / weight, (total * center[t] - sums[t]) / rest
            normal[t] = a - b
            square += (a - b) * (a - b)
            offset += (a - b) * 0.5 * (a + b)
        gain = weight * rest / total * square
    return gain


@jit(inline=False)
def list_beyond(
    samples: Samples, clusters: Clusters, undo: UndoLog, j: Index, offset: float
) -> float:
    """List the samples of a cluster beyond a plane in ``undo.group``; return their weight.

    The plane has the normal ``undo.halves[0]``. Their sum is left in ``undo.halves[1]``.
    """
    normal, sums = undo.halves[0], undo.halves[1]
    for t in range(sums.shape[0]):
        sums[t] = 0.0
    weight, count, i = 0.0, 0, clusters.first[j]
    while i >= 0:
        if product_with(samples.rows, i, normal) > offset:
            own = weight_of(samples, i)
            undo.group[count] = i
            count += 1
            weight += own
            add_to(samples.rows, i, own, sums)
        i = clusters.after[i]
    undo.numbers[GROUP] = count
    return weight


# Where a swap takes a cluster from, and where it begins another one.
ANYWHERE, FRESH_ONES, AROUND = range(3)
# The cluster to remove is the cheapest of this share of all, drawn at random, and of at least this
# number. With all of them, every swap would remove the same cluster.
COMPARED, AT_LEAST = 0.1, 2
# Closest clusters that samples of a removed cluster may join, which bounds the cost of a swap.
NEIGHBOURS = 16
# How many of the clusters closest to the removed one are around it.
CLOSEST = 8
# Of this many halves, the one that gains most becomes the new cluster. With more of them,
# populations become too much alike.
HALVES_COMPARED = 8


@jit
def uniform(undo: UndoLog) -> float:
    """Return the next number in [0, 1) by SplitMix64 (Steele, Lea and Flood, OOPSLA 2014)."""
    undo.random[0] += np.uint64(0x9E3779B97F4A7C15)
    bits = undo.random[0]
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits ^= bits >> np.uint64(31)
    return np.float64(bits >> np.uint64(11)) * 2.0**-53


@jit
def choose_cluster(clusters: Clusters, undo: UndoLog, origin: Index) -> Index:
    """Return the cheapest cluster to remove among some drawn from all, or from the fresh ones."""
    count = clusters.weights.shape[0] if origin == ANYWHERE else undo.numbers[FRESH]
    chosen, least = np.int64(0), np.inf
    for _ in range(max(AT_LEAST, int(COMPARED * count))):
        drawn = np.int64(uniform(undo) * count)
        if origin == FRESH_ONES:
            drawn = np.int64(undo.fresh[drawn])
        if clusters.removal_costs[drawn] <= least:
            chosen, least = drawn, clusters.removal_costs[drawn]
    return chosen


@jit(inline=False)
def choose_half(
    samples: Samples, clusters: Clusters, undo: UndoLog, removed: Index, place: Index, count: int
) -> np.bool_:
    """Leave the half of a cluster in ``undo.group`` that gains most of some; False for none."""
    chosen, most = np.int64(-1), 0.0
    for _ in range(HALVES_COMPARED):
        drawn = np.int64(choose_sample(samples, clusters, undo, removed, place, count))
        if drawn >= 0:
            gain = halve_cluster(samples, clusters, undo, clusters.labels[drawn], drawn)
            if gain > most:
                chosen, most = drawn, gain
    if chosen >= 0:
        halve_cluster(samples, clusters, undo, clusters.labels[chosen], chosen)
    return chosen >= 0


@jit(inline=False)
def choose_sample(
    samples: Samples, clusters: Clusters, undo: UndoLog, removed: Index, place: Index, count: int
) -> Index:
    """Draw a sample by its share of the sum of squares; return its place, −1 if there is none.

    From all clusters but the removed one (ANYWHERE), from those that are fresh (FRESH_ONES), or
    from the closest ones (AROUND).
    """
    eligible = np.int64(clusters.weights.shape[0])
    if place == FRESH_ONES:
        eligible = undo.numbers[FRESH]
    elif place == AROUND:
        eligible = np.int64(min(count, CLOSEST))
    total = 0.0
    for nth in range(eligible):
        total += nth_eligible(clusters, undo, removed, place, nth)[1]
    left = uniform(undo) * total
    found: Index = np.int64(-1)
    for nth in range(eligible):
        j, error = nth_eligible(clusters, undo, removed, place, nth)
        if error > 0.0:
            found = j
            left -= error
            if left < 0.0:
                break
    return draw_member(samples, clusters, found, uniform(undo)) if found >= 0 else -1


@jit
def nth_eligible(
    clusters: Clusters, undo: UndoLog, removed: Index, place: Index, nth: Index
) -> tuple[Index, float]:
    """Return a cluster, and its Σ w‖x − c‖² or zero if no sample may be drawn from it."""
    j = np.int64(nth)
    if place == FRESH_ONES:
        j = np.int64(undo.fresh[nth])
    elif place == AROUND:
        j = np.int64(undo.neighbours[nth])
    return j, clusters.errors[j] if j != removed and clusters.sizes[j] > 1 else 0.0


@jit(inline=False)
def draw_member(samples: Samples, clusters: Clusters, j: Index, quantile: float) -> Index:
    """Draw a sample of a cluster by its share of the sum of squares; −1 if it may not leave."""
    total, i = 0.0, clusters.first[j]
    while i >= 0:
        total += clusters.squares[i] * weight_of(samples, i)
        i = clusters.after[i]
    left, i = quantile * total, clusters.first[j]
    chosen = i
    while i >= 0 and left >= 0.0:
        chosen = i
        left -= clusters.squares[i] * weight_of(samples, i)
        i = clusters.after[i]
    return chosen if may_leave(clusters, j, weight_of(samples, chosen)) else -1


@jit(inline=False)
def find_neighbours(samples: Samples, clusters: Clusters, undo: UndoLog, j: Index) -> int:
    """List the closest clusters, and their squared distances, in ``undo``; return how many."""
    names, keys, count = undo.neighbours, undo.neighbour_keys, 0
    set_apart(samples.rows, clusters, undo.apart, j)
    for other in range(clusters.weights.shape[0]):
        if other != j and clusters.weights[other] > 0.0:
            square = undo.apart[other]
            count = insert(names, keys, count, NEIGHBOURS, other, square)
    return count


# This share of the swaps begins the new cluster in one of those closest to the removed one. They
# repair local mistakes; the others move a centre to anywhere in the data.
SHARE_AROUND = 0.5
# This share of the swaps has to do with fresh clusters, if there are any.
SHARE_FRESH = 0.5
# A swap has failed by little if the sum of squares has grown by less than this share of the cost of
# merging the removed cluster with another one. At most this many further swaps follow it.
NEARLY_GAINED, FOLLOWERS = 0.05, 4
# A smaller gain, relative to the sum of squares, might be rounding: the sums of squares of swaps
# are updated in double precision at every move, and rounded each time.
GAIN = 1e-9


@jit(by_address=True)
def try_swaps(work: WorkArrays, state: State, count: int, seed: float) -> None:
    """Try swaps one after the other, and keep those that lower the sum of squares.

    On the sphere, these are about the means of clusters as well. They nearly always lower the sum
    of cosine distances with it, and the refinement that follows looks.

    * ``work``: ``clusters`` become the best solution, with means that are written out, and
      ``undo.numbers[SUCCESSES]`` is how many of the ``count`` swaps were kept. ``centers`` are the
      fixed point of K-means to begin with, and ``centers.target`` is where that began.
    * ``seed``: a uniform number in [0, 1), from which all others follow.
    """
    samples, centers, clusters, undo = work.samples, work.centers, work.clusters, work.undo
    means, on_sphere = centers.exact, samples.on_sphere != 0.0
    if on_sphere:
        means, totals = centers.before, work.scratch.totals[0]
        for j in range(centers.weights.shape[0]):
            update_center(samples, centers.sums, means, centers.weights, j, totals)
    fill(samples, clusters, undo, state.labels, means, centers.weights)
    list_fresh(undo, centers)
    undo.random[0] = np.uint64(seed * 2.0**53)
    successes = 0
    for _ in range(count):
        if undo.barrier[ABANDONED] != 0:
            break
        total = sum_errors(clusters)
        origin, place = choose_kind(undo)
        removed = choose_cluster(clusters, undo, origin)
        change = swap(samples, clusters, undo, removed, place)
        if 0.0 <= change < NEARLY_GAINED * clusters.removal_costs[removed]:
            change = follow_up(samples, clusters, undo, change)
        if change < -GAIN * total and recompute_change(samples, clusters, undo) < -GAIN * total:
            successes += 1
            for nth in range(undo.numbers[CHANGED]):
                add_fresh(undo, undo.changed[nth])
            keep_changes(samples, clusters, undo)
        else:
            take_back(samples, clusters, undo)
    for j in range(clusters.weights.shape[0]):
        get_mean(samples.rows, clusters, j, clusters.centers, j)
        if on_sphere:
            set_length_one(clusters.centers, j, centers.exact)
    undo.numbers[SUCCESSES] = successes


@jit(inline=False)
def list_fresh(undo: UndoLog, centers: Centers) -> None:
    """List the clusters whose centres are not where they were at the start of the refinement."""
    undo.numbers[FRESH] = 0
    for j in range(centers.exact.shape[0]):
        undo.is_fresh[j] = 0
        moved = 0
        for t in range(centers.exact.shape[1]):
            moved += centers.exact[j, t] != centers.target[j, t]
        if moved > 0:
            add_fresh(undo, j)


@jit
def choose_kind(undo: UndoLog) -> tuple[Index, Index]:
    """Draw where a swap removes a cluster, and where it begins another one."""
    is_fresh = uniform(undo) < SHARE_FRESH and undo.numbers[FRESH] > 0
    kind = uniform(undo)
    if kind < SHARE_AROUND:
        return (np.int64(FRESH_ONES) if is_fresh else np.int64(ANYWHERE)), np.int64(AROUND)
    if is_fresh and kind < 0.5 * (1.0 + SHARE_AROUND):
        return np.int64(FRESH_ONES), np.int64(ANYWHERE)
    return np.int64(ANYWHERE), (np.int64(FRESH_ONES) if is_fresh else np.int64(ANYWHERE))


@jit(inline=False)
def swap(
    samples: Samples, clusters: Clusters, undo: UndoLog, removed: Index, place: Index
) -> float:
    """Remove a cluster and begin another one; return the change of the sum of squares.

    Infinite if that is not possible. A positive value may be too high.
    """
    count = find_neighbours(samples, clusters, undo, removed)
    if not choose_half(samples, clusters, undo, removed, place, count):
        return np.inf
    change = dissolve(samples, clusters, undo, removed, count)
    change += begin_cluster(samples, clusters, undo, removed)
    return move_samples(samples, clusters, undo, change) if change < np.inf else change


@jit(inline=False)
def follow_up(samples: Samples, clusters: Clusters, undo: UndoLog, change: float) -> float:
    """Let swaps around changed clusters follow one that nearly gained; return the total change."""
    for _ in range(FOLLOWERS):
        moved, most = undo.numbers[MOVED], clusters.labels.shape[0]
        if moved + most > undo.samples.shape[0]:
            # The samples of two clusters have to go into the log.
            break
        removed = np.int64(undo.changed[int(uniform(undo) * undo.numbers[CHANGED])])
        refresh_squares(samples, clusters, removed)
        further = swap(samples, clusters, undo, removed, np.int64(AROUND))
        if further < 0.0:
            change += further
            if change < 0.0:
                break
        else:
            retrace(samples, clusters, undo, moved)
    return change


@jit(inline=False)
def recompute_change(samples: Samples, clusters: Clusters, undo: UndoLog) -> float:
    """Return the change of the sum of squares, computed anew for all clusters that have changed.

    In the sum over moves, rounding of one sample far away may exceed what all others contribute.
    """
    change = 0.0
    for place in range(undo.numbers[CHANGED]):
        j = undo.changed[place]
        clusters.errors[j] = refresh_squares(samples, clusters, j)
        change += clusters.errors[j] - undo.errors[place]
    return change


@jit
def sum_errors(clusters: Clusters) -> float:
    """Return the sum of squares."""
    total = 0.0
    for j in range(clusters.errors.shape[0]):
        total += clusters.errors[j]
    return total
