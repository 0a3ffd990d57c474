"""What a swap is about: the cluster to remove, and the half of another one that takes its place."""

from __future__ import annotations

import numpy as np

from evomeans.compiled.jit import jit
from evomeans.engines.cpu.clusters import (
    CHANGED,
    FRESH,
    Clusters,
    Diary,
)
from evomeans.engines.cpu.halving import halve_cluster
from evomeans.engines.cpu.layout import Index, Samples
from evomeans.engines.cpu.means import set_apart
from evomeans.engines.cpu.moving import may_leave
from evomeans.engines.cpu.rows import weight_of
from evomeans.engines.cpu.settling import insert

# Where a swap takes a cluster from, and where it begins another one.
ANYWHERE, FRESH_ONES, AROUND = range(3)
# The cluster to remove is the cheapest of this share of all, drawn at random, and of at least this
# number. With all of them, every swap would remove the same cluster.
COMPARED, AT_LEAST = 0.1, 2
# Closest clusters that samples of a removed cluster may join. This bounds the cost of a swap where
# there are many features, and so all clusters are neighbours.
NEIGHBOURS = 16
# How many of the clusters closest to the removed one are around it.
CLOSEST = 8
# Of this many halves, the one that gains most becomes the new cluster. A look at one is cheap
# compared with a swap, and those that gain little hardly ever succeed. With more of them,
# populations become too much alike.
CANDIDATES = 8


@jit
def uniform(diary: Diary) -> float:
    """Return the next random number in [0, 1), by SplitMix64 [1]_.

    References
    ----------
    .. [1] Steele, G., Lea, D. and Flood, C. (2014). "Fast splittable pseudorandom number
       generators". OOPSLA 2014, 453-472.
    """
    diary.random[0] += np.uint64(0x9E3779B97F4A7C15)
    bits = diary.random[0]
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits ^= bits >> np.uint64(31)
    return np.float64(bits >> np.uint64(11)) * 2.0**-53


@jit
def choose_cluster(clusters: Clusters, diary: Diary, origin: Index) -> Index:
    """Return the cluster that is cheapest to remove, among some that are drawn.

    They are drawn from all (ANYWHERE), or from those that are fresh (FRESH_ONES).
    """
    count = clusters.weights.shape[0] if origin == ANYWHERE else diary.numbers[FRESH]
    chosen, least = np.int64(0), np.inf
    for _ in range(max(AT_LEAST, int(COMPARED * count))):
        drawn = np.int64(uniform(diary) * count)
        if origin == FRESH_ONES:
            drawn = np.int64(diary.fresh[drawn])
        if clusters.removal_costs[drawn] <= least:
            chosen, least = drawn, clusters.removal_costs[drawn]
    return chosen


@jit
def choose_changed(diary: Diary) -> Index:
    """Return one of the clusters that have changed since the diary was opened."""
    return np.int64(diary.changed[int(uniform(diary) * diary.numbers[CHANGED])])


@jit(inline=False)
def choose_half(
    samples: Samples, clusters: Clusters, diary: Diary, removed: Index, place: Index, count: int
) -> np.bool_:
    """Leave the half of a cluster in ``diary.group`` that gains most of some; False for none.

    ``place`` says from which clusters, and ``count`` is how many neighbours were found.
    """
    chosen, most = np.int64(-1), 0.0
    for _ in range(CANDIDATES):
        drawn = np.int64(choose_sample(samples, clusters, diary, removed, place, count))
        if drawn >= 0:
            gain = halve_cluster(samples, clusters, diary, clusters.labels[drawn], drawn)
            if gain > most:
                chosen, most = drawn, gain
    if chosen >= 0:
        halve_cluster(samples, clusters, diary, clusters.labels[chosen], chosen)
    return chosen >= 0


@jit(inline=False)
def choose_sample(
    samples: Samples, clusters: Clusters, diary: Diary, removed: Index, place: Index, count: int
) -> Index:
    """Draw a sample by its share of the sum of squares; return its place, −1 if there is none.

    From all clusters but the removed one (ANYWHERE), from those that are fresh (FRESH_ONES), or
    from the closest ones (AROUND).
    """
    eligible = count_eligible(clusters, diary, place, count)
    total = 0.0
    for a in range(eligible):
        total += drawable_error(clusters, nth_eligible(diary, place, a), removed)
    left, found = uniform(diary) * total, -1
    for a in range(eligible):
        j = nth_eligible(diary, place, a)
        if drawable_error(clusters, j, removed) > 0.0:
            found = int(j)
            left -= clusters.errors[j]
            if left < 0.0:
                break
    return draw_member(samples, clusters, found, uniform(diary)) if found >= 0 else -1


@jit
def count_eligible(clusters: Clusters, diary: Diary, place: Index, count: int) -> Index:
    """Return the number of clusters from which a sample may be drawn."""
    if place == FRESH_ONES:
        return np.int64(diary.numbers[FRESH])
    return np.int64(min(count, CLOSEST) if place == AROUND else clusters.weights.shape[0])


@jit
def nth_eligible(diary: Diary, place: Index, nth: Index) -> Index:
    """Return a cluster of those from which a sample may be drawn."""
    if place == FRESH_ONES:
        return np.int64(diary.fresh[nth])
    return np.int64(diary.neighbours[nth]) if place == AROUND else np.int64(nth)


@jit
def drawable_error(clusters: Clusters, j: Index, removed: Index) -> float:
    """Return Σ w‖x − c‖² of a cluster, or zero if no sample may be drawn from it."""
    return clusters.errors[j] if j != removed and clusters.sizes[j] > 1 else 0.0


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
def find_neighbours(samples: Samples, clusters: Clusters, diary: Diary, j: Index) -> int:
    """List the clusters with the closest centres in ``diary.neighbours``; return their number.

    The closest is first; the keys are squared distances.
    """
    names, keys, count = diary.neighbours, diary.neighbour_keys, 0
    set_apart(samples.rows, clusters, diary.apart, j)
    for other in range(clusters.weights.shape[0]):
        if other != j and clusters.weights[other] > 0.0:
            square = diary.apart[other]
            count = insert(names, keys, count, NEIGHBOURS, other, square)
    return count
