"""Swaps: a centre is taken away and put elsewhere, and what follows is settled on the spot.

A swap concerns the clusters around the two places and no others. Samples of the cluster that goes
join their next best ones; a sample begins a new cluster; then single samples change their cluster
(:mod:`~evomeans.engines.cpu.hartigan` has the rule) for as long as that lowers the sum of squares,
and a change spreads from cluster to cluster until there is none. If the sum is lower in the end
than it was at first, the swap stands; otherwise all is put back.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evomeans.compiled.jit import jit
from evomeans.compiled.vectors import squared_difference
from evomeans.engines.cpu.clusters import (
    ARRIVING,
    CHANGED,
    LEAVING,
    WAITING,
    fill,
    found_cluster,
    is_full,
    join,
    keep_changes,
    leave,
    may_leave,
    measure,
    measure_apart,
    next_waiting,
    remember,
    take_back,
    weight_of,
)
from evomeans.engines.rules import WORTHWHILE

# Part of the clusters that are compared when one of little use is wanted, and how many at least.
COMPARED, AT_LEAST = 0.1, 2
# How many of the closest clusters the samples of one that goes may join, and between how many
# samples move: with many features all clusters are neighbours. K-means finds what is missed.
NEIGHBOURS, RANGE = 16, 32
# Half of the swaps stay among so many of the closest: these are the ones that succeed most often.
AROUND, SHARE_AROUND = 8, 0.5
# A smaller gain, relative to the sum of squares, might be rounding.
GAIN = 1e-9


@jit
def try_swaps(
    samples: Any, clusters: Any, diary: Any, state: Any, centers: Any, count: int, seed: float
) -> int:
    """Try swaps one after the other, and let those stand that lower the sum of squares.

    Parameters
    ----------
    samples : Samples
        Dense.
    clusters : Clusters, out
        The best solution.
    diary : Diary
    state, centers : State and Centers
        The fixed point of K-means to begin with.
    count : int
        How many to try.
    seed : float
        A uniform number in [0, 1), from which all others follow.

    Returns
    -------
    successes : int
        How many stand.
    """
    fill(samples, clusters, diary, state.labels, centers.exact, centers.weights)
    diary.random[0] = np.uint64(seed * 2.0**53)
    successes = 0
    for _ in range(count):
        removed = choose_cluster(clusters, diary)
        neighbours = find_neighbours(clusters, diary, removed)
        chosen = choose_sample(samples, clusters, diary, removed, neighbours)
        if chosen >= 0:
            total = sum_errors(clusters)
            change = dissolve(samples, clusters, diary, removed, neighbours)
            change += begin_cluster(samples, clusters, diary, chosen, removed)
            change = settle(samples, clusters, diary, change)
            if change < -GAIN * total and measure_change(samples, clusters, diary) < -GAIN * total:
                successes += 1
                keep_changes(clusters, diary)
            else:
                take_back(samples, clusters, diary)
    return successes


@jit
def measure_change(samples: Any, clusters: Any, diary: Any) -> Any:
    """Measure by how much the sum of squares has changed, in all clusters that have.

    The changes of single moves add up to the same, but for rounding: that of a sample that is far
    away or very heavy may exceed all that the others contribute.
    """
    change = 0.0
    for place in range(diary.numbers[CHANGED]):
        j = diary.changed[place]
        clusters.errors[j] = measure(samples, clusters, j)
        change += clusters.errors[j] - diary.errors[place]
    return change


@jit
def uniform(diary: Any) -> Any:
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
def sum_errors(clusters: Any) -> Any:
    """Return the sum of squares."""
    total = 0.0
    for j in range(clusters.errors.shape[0]):
        total += clusters.errors[j]
    return total


@jit
def choose_cluster(clusters: Any, diary: Any) -> Any:
    """Return the cluster of least use among some that are drawn."""
    k = clusters.weights.shape[0]
    chosen, least = 0, np.inf
    for _ in range(max(AT_LEAST, int(COMPARED * k))):
        drawn = int(uniform(diary) * k)
        if clusters.losses[drawn] <= least:
            chosen, least = drawn, clusters.losses[drawn]
    return chosen


@jit
def choose_sample(samples: Any, clusters: Any, diary: Any, removed: Any, neighbours: int) -> Any:
    """Draw a sample by its share of the sum of squares; −1 if there is none.

    From all clusters but the removed one, in half of the cases only from those around it.
    """
    everywhere = uniform(diary) >= SHARE_AROUND
    eligible = clusters.weights.shape[0] if everywhere else min(neighbours, AROUND)
    total = 0.0
    for a in range(eligible):
        j = a if everywhere else diary.nearby[a]
        total += offer(clusters, j, removed)
    left, found = uniform(diary) * total, -1
    for a in range(eligible):
        j = a if everywhere else diary.nearby[a]
        if offer(clusters, j, removed) > 0.0:
            found = j
            left -= clusters.errors[j]
            if left < 0.0:
                break
    return draw_member(samples, clusters, found, uniform(diary)) if found >= 0 else -1


@jit
def offer(clusters: Any, j: Any, removed: Any) -> Any:
    """Return what a cluster contributes to the wheel from which a sample is drawn."""
    return clusters.errors[j] if j != removed and clusters.sizes[j] > 1 else 0.0


@jit
def draw_member(samples: Any, clusters: Any, j: Any, quantile: float) -> Any:
    """Draw a sample of a cluster by its share of the sum of squares; −1 if none may leave it."""
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


@jit
def find_neighbours(clusters: Any, diary: Any, j: Any) -> Any:
    """List the clusters with the closest centres, closest first, and return how many there are."""
    nearby, limits, count = diary.nearby, diary.limits, 0
    measure_apart(clusters, diary, j)
    for other in range(clusters.weights.shape[0]):
        if other != j and clusters.weights[other] > 0.0:
            square = diary.apart[other]
            count = insert(nearby, limits, count, NEIGHBOURS, other, square)
    return count


@jit
def insert(names: Any, keys: Any, count: Any, most: int, name: Any, key: Any) -> Any:
    """Insert a name into a sorted list, unless that is full of lower keys; return its length."""
    if count == most and key >= keys[count - 1]:
        return count
    count = min(count + 1, most)
    place = count - 1
    while place > 0 and keys[place - 1] > key:
        names[place], keys[place] = names[place - 1], keys[place - 1]
        place -= 1
    names[place], keys[place] = name, key
    return count


@jit
def dissolve(samples: Any, clusters: Any, diary: Any, removed: Any, neighbours: int) -> Any:
    """Let the samples of a cluster join others, and return by how much the sum of squares grows.

    :func:`find_neighbours` has listed the others.
    """
    remember(clusters, diary, removed)
    change = -clusters.errors[removed]
    following = clusters.first[removed]
    while following >= 0:
        i, following = following, clusters.after[following]
        weight, reach = weight_of(samples, i), np.sqrt(clusters.squares[i])
        target, nearest, least = 0, 0.0, np.inf
        for a in range(neighbours):
            # ‖x − c‖ is at least ‖c − c'‖ − ‖x − c'‖, and counts half at least.
            farthest = np.sqrt(2.0 * least) + reach
            if diary.limits[a] >= farthest * farthest:
                break
            j = diary.nearby[a]
            square = squared_difference(samples.rows, i, clusters.centers, j)
            spent = square * clusters.weights[j] / (clusters.weights[j] + weight)
            if spent < least:
                target, nearest, least = j, square, spent
        change += join(samples, clusters, diary, i, target, nearest)
    return change


@jit
def begin_cluster(samples: Any, clusters: Any, diary: Any, i: Any, j: Any) -> Any:
    """Let a sample begin a cluster in the place of the dissolved one; return what that changes."""
    square = squared_difference(samples.rows, i, clusters.centers, clusters.labels[i])
    change = leave(samples, clusters, diary, i, square)
    clusters.first[j] = -1
    found_cluster(samples, clusters, diary, i, j)
    return change


@jit
def settle(samples: Any, clusters: Any, diary: Any, change: float) -> Any:
    """Move single samples until nothing more is gained, or nothing more is to be hoped for.

    Parameters
    ----------
    change : float
        By how much the sum of squares has changed so far.

    Returns
    -------
    change : float
        In the end; what is positive may be too high.
    """
    numbers = diary.numbers
    before, left = change, numbers[WAITING]
    while numbers[WAITING] > 0:
        if left == 0:
            # Gains become smaller from round to round. If the last was too small to make up for
            # what is missing, the next will not: that ends nine of ten swaps after a few rounds.
            if change > before - change:
                break
            before, left = change, numbers[WAITING]
        left -= 1
        j = next_waiting(diary)
        measure(samples, clusters, j)
        measure_apart(clusters, diary, j)
        count = list_targets(clusters, diary, j)
        farthest = diary.limits[RANGE - 1] if count == RANGE else np.inf
        change += send_away(samples, clusters, diary, j, count)
        change += take_in(samples, clusters, diary, j, farthest)
        if is_full(diary):
            return np.inf
    return change


@jit
def closeness(clusters: Any, source: Any, target: Any) -> Any:
    """Return how far apart two centres may be for samples to gain by a move from one to the other.

    Squared, and in units of the squared distance from the own centre. A move needs
    ‖x − c_b‖ < ρ‖x − c_a‖, and ‖x − c_b‖ is at least ‖c_a − c_b‖ − ‖x − c_a‖: so this is 1 + ρ,
    squared, and the root of the two factors of ρ² is at most their mean. For samples of the usual
    weight. Of others it may miss some, which are found when K-means and single moves go over all.
    """
    factors = clusters.eagerness[LEAVING, source] + clusters.eagerness[ARRIVING, target]
    ratio = 1.0 + 0.5 * factors
    return ratio * ratio


@jit
def list_targets(clusters: Any, diary: Any, j: Any) -> Any:
    """List clusters to which samples of one might move, and how far these are from their centre.

    Squared, at least, and in this order. The cluster has just been measured.
    """
    reach, count = clusters.reach[j], 0
    for other in range(clusters.weights.shape[0]):
        ratio = closeness(clusters, j, other)
        if diary.apart[other] < reach * ratio and other != j and clusters.weights[other] > 0.0:
            limit = diary.apart[other] / ratio
            count = insert(diary.nearby, diary.limits, count, RANGE, other, limit)
    return count


@jit
def send_away(samples: Any, clusters: Any, diary: Any, j: Any, count: int) -> Any:
    """Move samples of a cluster to those that are listed; return what that changes."""
    change = 0.0
    following = clusters.first[j] if count > 0 else -1
    while following >= 0:
        i, following = following, clusters.after[following]
        weight = weight_of(samples, i)
        if clusters.squares[i] <= diary.limits[0] or not may_leave(clusters, j, weight):
            continue
        own = distance_now(samples, clusters, diary, i, j)
        target, nearest = j, 0.0
        least = own * clusters.weights[j] / (clusters.weights[j] - weight) * WORTHWHILE
        for a in range(count):
            if diary.limits[a] >= own:
                break
            other = diary.nearby[a]
            square = squared_difference(samples.rows, i, clusters.centers, other)
            spent = square * clusters.weights[other] / (clusters.weights[other] + weight)
            if spent < least:
                target, nearest, least = other, square, spent
        if target != j and not is_full(diary):
            change += leave(samples, clusters, diary, i, own)
            change += join(samples, clusters, diary, i, target, nearest)
    return change


@jit
def take_in(samples: Any, clusters: Any, diary: Any, j: Any, farthest: float) -> Any:
    """Move samples of others to a cluster; return what that changes.

    Not from those that wait for a visit: these will look for themselves. And not from those that
    are farther away than any that is listed, if the list is full.
    """
    change = 0.0
    for other in range(clusters.weights.shape[0]):
        ratio = closeness(clusters, other, j)
        if diary.apart[other] >= clusters.reach[other] * ratio or diary.is_waiting[other] != 0:
            continue
        limit = diary.apart[other] / ratio
        following = clusters.first[other] if other != j and limit <= farthest else -1
        while following >= 0:
            i, following = following, clusters.after[following]
            weight = weight_of(samples, i)
            if clusters.squares[i] <= limit or not may_leave(clusters, other, weight):
                continue
            own = distance_now(samples, clusters, diary, i, other)
            square = squared_difference(samples.rows, i, clusters.centers, j)
            saved = own * clusters.weights[other] / (clusters.weights[other] - weight)
            spent = square * clusters.weights[j] / (clusters.weights[j] + weight)
            if spent < saved * WORTHWHILE and not is_full(diary):
                change += leave(samples, clusters, diary, i, own)
                change += join(samples, clusters, diary, i, j, square)
    return change


@jit
def distance_now(samples: Any, clusters: Any, diary: Any, i: Any, j: Any) -> Any:
    """Return the squared distance from the own centre, which may have moved since it was taken."""
    if diary.is_waiting[j] == 0:
        return clusters.squares[i]
    return squared_difference(samples.rows, i, clusters.centers, j)
