"""Swaps: a centre is removed, another begins elsewhere, and the effects are followed locally.

A swap concerns the clusters around the two places and no others:

1. A cluster elsewhere is chosen, and a way to divide it in two (:func:`choose_half`).
2. The samples of the removed cluster join their next best clusters (:func:`dissolve`).
3. One of the halves becomes a cluster (:func:`begin_cluster`).
4. Single samples change their cluster by the rule of :mod:`~evomeans.engines.cpu.hartigan`, as long
   as that lowers the sum of squares. The change spreads from cluster to cluster until there is none
   left (:func:`move_samples`).

If the sum of squares is lower in the end than at first, the swap is kept; otherwise everything is
restored. Swaps are in double precision and run in one thread.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.jit import jit
from evomeans.engines.cpu.clusters import (
    ARRIVING,
    CHANGED,
    GROUP,
    LEAVING,
    SUCCESSES,
    WAITING,
    Clusters,
    Diary,
    fill,
    found_cluster,
    is_full,
    join,
    joining_cost,
    keep_changes,
    leave,
    leaving_gain,
    may_leave,
    next_waiting,
    refresh_squares,
    remember,
    take_back,
)
from evomeans.engines.cpu.halving import halve_cluster
from evomeans.engines.cpu.layout import Centers, FloatArray, Index, Samples, State
from evomeans.engines.cpu.means import get_mean, set_apart, square_to
from evomeans.engines.cpu.rows import weight_of
from evomeans.engines.cpu.threads import ABANDONED
from evomeans.engines.rules import WORTHWHILE

# docs/how-it-works.md lists what was measured about swaps.
#
# The cluster to remove is the cheapest of this share of all, drawn at random, and of at least this
# number. With all of them, every swap would remove the same cluster.
COMPARED, AT_LEAST = 0.1, 2
# Closest clusters that samples of a removed cluster may join, and clusters that the samples of one
# cluster may move to. This bounds the cost of a swap where there are many features, and so all
# clusters are neighbours. K-means and single moves on all samples find what is missed.
NEIGHBOURS, RANGE = 16, 8
# This share of the swaps begins the new cluster in one of this number of clusters closest to the
# removed one. They repair local mistakes; the others move a centre to anywhere in the data.
SHARE_AROUND, AROUND = 0.5, 8
# Of this many halves, the one that gains most becomes the new cluster. A look at one is cheap
# compared with a swap, and those that gain little hardly ever succeed. With more of them,
# populations become too much alike.
CANDIDATES = 8
# A smaller gain, relative to the sum of squares, might be rounding: the sums of squares of swaps
# are updated in double precision at every move, and rounded each time.
GAIN = 1e-9


@jit
def try_swaps(
    samples: Samples,
    clusters: Clusters,
    diary: Diary,
    state: State,
    centers: Centers,
    count: int,
    seed: float,
    barrier: NDArray[np.int64],
) -> None:
    """Try swaps one after the other, and keep those that lower the sum of squares.

    Parameters
    ----------
    samples : Samples
    clusters : Clusters, out
        The best solution; its means are written out.
    diary : Diary
        ``numbers[SUCCESSES]`` is how many were kept.
    state, centers : State and Centers
        The fixed point of K-means to begin with; not modified.
    count : int
        How many to try.
    seed : float
        A uniform number in [0, 1), from which all others follow.
    barrier : array
        Of the crew; swaps end early if it says that the refinement is abandoned.
    """
    fill(samples, clusters, diary, state.labels, centers.exact, centers.weights)
    diary.random[0] = np.uint64(seed * 2.0**53)
    successes = 0
    for _ in range(count):
        if barrier[ABANDONED] != 0:
            break
        removed = choose_cluster(clusters, diary)
        neighbours = find_neighbours(samples, clusters, diary, removed)
        if choose_half(samples, clusters, diary, removed, neighbours):
            total = sum_errors(clusters)
            change = dissolve(samples, clusters, diary, removed, neighbours)
            change += begin_cluster(samples, clusters, diary, removed)
            if change < np.inf:
                change = move_samples(samples, clusters, diary, change)
            if (
                change < -GAIN * total
                and recompute_change(samples, clusters, diary) < -GAIN * total
            ):
                successes += 1
                keep_changes(samples, clusters, diary)
            else:
                take_back(samples, clusters, diary)
    for j in range(clusters.weights.shape[0]):
        get_mean(samples.rows, clusters, j, clusters.centers, j)
    diary.numbers[SUCCESSES] = successes


@jit
def recompute_change(samples: Samples, clusters: Clusters, diary: Diary) -> float:
    """Return the change of the sum of squares, computed anew for all clusters that have changed.

    The changes of the single moves add up to the same but for rounding. The rounding of one sample
    that is far away or very heavy may exceed all that the others contribute.
    """
    change = 0.0
    for place in range(diary.numbers[CHANGED]):
        j = diary.changed[place]
        clusters.errors[j] = refresh_squares(samples, clusters, j)
        change += clusters.errors[j] - diary.errors[place]
    return change


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
def sum_errors(clusters: Clusters) -> float:
    """Return the sum of squares."""
    total = 0.0
    for j in range(clusters.errors.shape[0]):
        total += clusters.errors[j]
    return total


@jit
def choose_cluster(clusters: Clusters, diary: Diary) -> int:
    """Return the cluster that is cheapest to remove, among some that are drawn."""
    k = clusters.weights.shape[0]
    chosen, least = 0, np.inf
    for _ in range(max(AT_LEAST, int(COMPARED * k))):
        drawn = int(uniform(diary) * k)
        if clusters.removal_costs[drawn] <= least:
            chosen, least = drawn, clusters.removal_costs[drawn]
    return chosen


@jit
def choose_half(
    samples: Samples, clusters: Clusters, diary: Diary, removed: Index, neighbours: int
) -> np.bool_:
    """Leave the half of a cluster in ``diary.group`` that gains most of some; False for none."""
    chosen, most = np.int64(-1), 0.0
    for _ in range(CANDIDATES):
        drawn = np.int64(choose_sample(samples, clusters, diary, removed, neighbours))
        if drawn >= 0:
            gain = halve_cluster(samples, clusters, diary, clusters.labels[drawn], drawn)
            if gain > most:
                chosen, most = drawn, gain
    if chosen >= 0:
        halve_cluster(samples, clusters, diary, clusters.labels[chosen], chosen)
    return chosen >= 0


@jit
def choose_sample(
    samples: Samples, clusters: Clusters, diary: Diary, removed: Index, neighbours: int
) -> Index:
    """Draw a sample by its share of the sum of squares; return its place, −1 if there is none.

    From all clusters but the removed one, or only from those around it (SHARE_AROUND).
    """
    everywhere = uniform(diary) >= SHARE_AROUND
    eligible = clusters.weights.shape[0] if everywhere else min(neighbours, AROUND)
    total = 0.0
    for a in range(eligible):
        j = a if everywhere else diary.neighbours[a]
        total += drawable_error(clusters, j, removed)
    left, found = uniform(diary) * total, -1
    for a in range(eligible):
        j = a if everywhere else diary.neighbours[a]
        if drawable_error(clusters, j, removed) > 0.0:
            found = j
            left -= clusters.errors[j]
            if left < 0.0:
                break
    return draw_member(samples, clusters, found, uniform(diary)) if found >= 0 else -1


@jit
def drawable_error(clusters: Clusters, j: Index, removed: Index) -> float:
    """Return Σ w‖x − c‖² of a cluster, or zero if no sample may be drawn from it."""
    return clusters.errors[j] if j != removed and clusters.sizes[j] > 1 else 0.0


@jit
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


@jit
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


@jit
def insert(
    names: NDArray[np.int32], keys: FloatArray, count: int, most: int, name: Index, key: float
) -> int:
    """Insert a name into a list sorted by keys, unless it is full of lower ones; return its length.

    The list has ``count`` entries, and at most ``most``.
    """
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
def dissolve(
    samples: Samples, clusters: Clusters, diary: Diary, removed: Index, neighbours: int
) -> float:
    """Let the samples of a cluster join others; return by how much the sum of squares grows.

    :func:`find_neighbours` has listed the others.
    """
    remember(samples, clusters, diary, removed)
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
            if diary.neighbour_keys[a] >= farthest * farthest:
                break
            j = diary.neighbours[a]
            square = square_to(samples.rows, i, clusters, j)
            spent = joining_cost(square, clusters.weights[j], weight)
            if spent < least:
                target, nearest, least = j, square, spent
        change += join(samples, clusters, diary, i, target, nearest)
    return change


@jit
def begin_cluster(samples: Samples, clusters: Clusters, diary: Diary, j: Index) -> float:
    """Let ``diary.group`` become a cluster in place of the dissolved one ``j``; return the change.

    A sample with nearly all the weight of its cluster stays. Infinite if none is left to move.
    """
    change = 0.0
    clusters.first[j] = -1
    for place in range(diary.numbers[GROUP]):
        i = diary.group[place]
        own = clusters.labels[i]
        if may_leave(clusters, own, weight_of(samples, i)):
            square = square_to(samples.rows, i, clusters, own)
            change += leave(samples, clusters, diary, i, square)
            if clusters.first[j] < 0:
                found_cluster(samples, clusters, diary, i, j)
            else:
                square = square_to(samples.rows, i, clusters, j)
                change += join(samples, clusters, diary, i, j, square)
    return change if clusters.first[j] >= 0 else np.inf


@jit
def move_samples(samples: Samples, clusters: Clusters, diary: Diary, change: float) -> float:
    """Move single samples until that gains nothing more, or the swap has no hope of success.

    Parameters
    ----------
    change : float
        By how much the swap has changed the sum of squares so far.

    Returns
    -------
    change : float
        By how much in the end. A positive value may be too high.
    """
    numbers = diary.numbers
    before, left = change, numbers[WAITING]
    while numbers[WAITING] > 0:
        if left == 0:
            # Gains shrink from round to round. If the last one was less than what is missing, the
            # next ones will hardly make up for it. Most swaps end here, after a few rounds.
            if change > before - change:
                break
            before, left = change, numbers[WAITING]
        left -= 1
        j = next_waiting(diary)
        refresh_squares(samples, clusters, j)
        set_apart(samples.rows, clusters, diary.apart, j)
        count = list_targets(clusters, diary, j)
        farthest = diary.neighbour_keys[RANGE - 1] if count == RANGE else np.inf
        change += move_members_out(samples, clusters, diary, j, count)
        change += move_members_in(samples, clusters, diary, j, farthest)
        if is_full(diary):
            return np.inf
    return change


@jit
def separation_limit(clusters: Clusters, source: Index, target: Index) -> float:
    """Return how far apart two centres may be for samples to gain by a move between them.

    This is (1 + ρ)², a bound of ‖c_a − c_b‖² / ‖x − c_a‖²: a move needs ‖x − c_b‖ < ρ‖x − c_a‖, and
    ‖x − c_b‖ ≥ ‖c_a − c_b‖ − ‖x − c_a‖. The root ρ of the two move factors is at most their mean.

    It holds for samples of average weight. Moves of others may be missed here; K-means and single
    moves on all samples find them.
    """
    factors = clusters.move_factors[LEAVING, source] + clusters.move_factors[ARRIVING, target]
    ratio = 1.0 + 0.5 * factors
    return ratio * ratio


@jit
def list_targets(clusters: Clusters, diary: Diary, j: Index) -> int:
    """List the clusters to which samples of cluster ``j`` might move; return their number.

    Sorted by their keys: a sample may move there only if its squared distance from its own centre
    is above the key. ``squares`` and ``diary.apart`` have just been set for this cluster.
    """
    most, count = clusters.max_squares[j], 0
    for other in range(clusters.weights.shape[0]):
        ratio = separation_limit(clusters, j, other)
        if diary.apart[other] < most * ratio and other != j and clusters.weights[other] > 0.0:
            limit = diary.apart[other] / ratio
            count = insert(diary.neighbours, diary.neighbour_keys, count, RANGE, other, limit)
    return count


@jit
def move_members_out(
    samples: Samples, clusters: Clusters, diary: Diary, j: Index, count: int
) -> float:
    """Move samples of cluster ``j`` to the listed ones, where that gains; return the change."""
    change = 0.0
    following = clusters.first[j] if count > 0 else -1
    while following >= 0:
        i, following = following, clusters.after[following]
        weight = weight_of(samples, i)
        if clusters.squares[i] <= diary.neighbour_keys[0] or not may_leave(clusters, j, weight):
            continue
        own = current_square(samples, clusters, diary, i, j)
        target, nearest = j, 0.0
        least = leaving_gain(own, clusters.weights[j], weight) * WORTHWHILE
        for a in range(count):
            if diary.neighbour_keys[a] >= own:
                break
            other = diary.neighbours[a]
            square = square_to(samples.rows, i, clusters, other)
            spent = joining_cost(square, clusters.weights[other], weight)
            if spent < least:
                target, nearest, least = other, square, spent
        if target != j and not is_full(diary):
            change += leave(samples, clusters, diary, i, own)
            change += join(samples, clusters, diary, i, target, nearest)
    return change


@jit
def move_members_in(
    samples: Samples, clusters: Clusters, diary: Diary, j: Index, farthest: float
) -> float:
    """Move samples of other clusters to cluster ``j``, where that gains; return the change.

    Not from clusters in the queue, since their own visit will do that; and not from clusters whose
    key would be above ``farthest``, the last key of a full list.
    """
    change = 0.0
    for other in range(clusters.weights.shape[0]):
        ratio = separation_limit(clusters, other, j)
        most = clusters.max_squares[other]
        if diary.apart[other] >= most * ratio or diary.is_waiting[other] != 0:
            continue
        limit = diary.apart[other] / ratio
        following = clusters.first[other] if other != j and limit <= farthest else -1
        while following >= 0:
            i, following = following, clusters.after[following]
            weight = weight_of(samples, i)
            if clusters.squares[i] <= limit or not may_leave(clusters, other, weight):
                continue
            own = current_square(samples, clusters, diary, i, other)
            square = square_to(samples.rows, i, clusters, j)
            saved = leaving_gain(own, clusters.weights[other], weight)
            spent = joining_cost(square, clusters.weights[j], weight)
            if spent < saved * WORTHWHILE and not is_full(diary):
                change += leave(samples, clusters, diary, i, own)
                change += join(samples, clusters, diary, i, j, square)
    return change


@jit
def current_square(samples: Samples, clusters: Clusters, diary: Diary, i: Index, j: Index) -> float:
    """Return ‖x − c‖² for the own centre, which may have moved since ``squares`` were refreshed."""
    if diary.is_waiting[j] == 0:
        return clusters.squares[i]
    return square_to(samples.rows, i, clusters, j)
