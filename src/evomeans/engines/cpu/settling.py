"""What becomes of a swap: samples of the removed cluster join others, and a new cluster begins.

Then single samples change their cluster by the rule of :mod:`~evomeans.engines.cpu.hartigan`, as
long as that lowers the sum of squares. The change spreads from cluster to cluster until there is
none left.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.jit import jit
from evomeans.engines.cpu.clusters import (
    ARRIVING,
    GROUP,
    LEAVING,
    WAITING,
    Clusters,
    Diary,
    is_full,
    next_waiting,
    refresh_squares,
    remember,
)
from evomeans.engines.cpu.layout import FloatArray, Index, Samples
from evomeans.engines.cpu.means import set_apart, square_to
from evomeans.engines.cpu.moving import (
    found_cluster,
    join,
    joining_cost,
    leave,
    leaving_gain,
    may_leave,
)
from evomeans.engines.cpu.rows import weight_of
from evomeans.engines.rules import WORTHWHILE

# Clusters that the samples of one cluster may move to. This bounds the cost of a swap where all
# clusters are neighbours. K-means and single moves on all samples find what is missed.
RANGE = 8
# Clusters with at least LARGE samples on average are large. There, a swap that has succeeded ends
# after a round that adds less than the share LITTLE to its total gain. K-means on all samples
# follows and needs less time for the rest, because it compares few of them.
LARGE, LITTLE = 512, 0.2


@jit(inline=False)
def dissolve(
    samples: Samples, clusters: Clusters, diary: Diary, removed: Index, neighbours: int
) -> float:
    """Let the samples of a cluster join others; return by how much the sum of squares grows.

    :func:`~evomeans.engines.cpu.choices.find_neighbours` has listed the others.
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


@jit(inline=False)
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


@jit(inline=False)
def move_samples(samples: Samples, clusters: Clusters, diary: Diary, change: float) -> float:
    """Move single samples until that gains little or nothing more, or the swap has no hope.

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
    is_large = clusters.labels.shape[0] >= LARGE * clusters.weights.shape[0]
    while numbers[WAITING] > 0:
        if left == 0:
            # Gains shrink from round to round. If the last one was less than what is missing, the
            # next ones will hardly make up for it. Most swaps end here, after a few rounds.
            gain = before - change
            if change > gain or (is_large and gain < -LITTLE * change):
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


@jit(inline=False)
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


@jit(inline=False)
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


@jit(inline=False)
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
