"""Swaps: a centre is removed, another begins elsewhere, and the effects are followed locally.

A swap concerns the clusters around the two places and no others:

1. A cluster is chosen to be removed, and a way to divide another one in two (``choices.py``).
2. The samples of the removed cluster join their next best clusters, one of the halves becomes a
   cluster, and single samples move until that gains nothing more (``settling.py``).

If the sum of squares is lower in the end than at first, the swap is kept; otherwise everything is
restored. A swap that fails by little is followed by further ones among the clusters that it has
changed (:func:`follow_up`), and judged with them: removing a centre may pay only if those around it
are rearranged.

Parents have had their swaps, so that an offspring mostly gains where it differs from them. Clusters
that differ are *fresh*: half of the swaps begin or end there.

Swaps are in double precision and run in one thread.
"""

from __future__ import annotations

import numpy as np

from evomeans.compiled.jit import jit
from evomeans.engines.cpu.choices import (
    ANYWHERE,
    AROUND,
    FRESH_ONES,
    choose_changed,
    choose_cluster,
    choose_half,
    find_neighbours,
    uniform,
)
from evomeans.engines.cpu.clusters import (
    CHANGED,
    FRESH,
    MOVED,
    SUCCESSES,
    Clusters,
    Diary,
    add_fresh,
    fill,
    refresh_squares,
)
from evomeans.engines.cpu.layout import Centers, Index, Samples, Scratch, State
from evomeans.engines.cpu.means import get_mean
from evomeans.engines.cpu.moving import (
    keep_changes,
    retrace,
    take_back,
)
from evomeans.engines.cpu.settling import begin_cluster, dissolve, move_samples
from evomeans.engines.cpu.threads import ABANDONED

# docs/background/how-it-works.md lists what was measured about swaps.
#
# This share of the swaps begins the new cluster in one of those closest to the removed one. They
# repair local mistakes; the others move a centre to anywhere in the data.
SHARE_AROUND = 0.5
# This share of the swaps has to do with fresh clusters, if there are any.
SHARE_FRESH = 0.5
# A swap has failed by little if the sum of squares has grown by less than this share of the cost of
# merging the removed cluster with another one. At most this many further swaps follow it.
NEARLY, FOLLOWERS = 0.05, 4
# A smaller gain, relative to the sum of squares, might be rounding: the sums of squares of swaps
# are updated in double precision at every move, and rounded each time.
GAIN = 1e-9


@jit(by_address=True)
def try_swaps(
    samples: Samples,
    clusters: Clusters,
    diary: Diary,
    state: State,
    centers: Centers,
    scratch: Scratch,
    count: int,
    seed: float,
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
        The fixed point of K-means to begin with, and where that began (``centers.target``); not
        modified.
    scratch : Scratch
        Swaps end early if its barrier says that the refinement is abandoned.
    count : int
        How many to try.
    seed : float
        A uniform number in [0, 1), from which all others follow.
    """
    fill(samples, clusters, diary, state.labels, centers.exact, centers.weights)
    list_fresh(diary, centers)
    diary.random[0] = np.uint64(seed * 2.0**53)
    successes = 0
    for _ in range(count):
        if scratch.barrier[ABANDONED] != 0:
            break
        total = sum_errors(clusters)
        origin, place = choose_kind(diary)
        removed = choose_cluster(clusters, diary, origin)
        change = swap(samples, clusters, diary, removed, place)
        if 0.0 <= change < NEARLY * clusters.removal_costs[removed]:
            change = follow_up(samples, clusters, diary, change)
        if change < -GAIN * total and recompute_change(samples, clusters, diary) < -GAIN * total:
            successes += 1
            for nth in range(diary.numbers[CHANGED]):
                add_fresh(diary, diary.changed[nth])
            keep_changes(samples, clusters, diary)
        else:
            take_back(samples, clusters, diary)
    for j in range(clusters.weights.shape[0]):
        get_mean(samples.rows, clusters, j, clusters.centers, j)
    diary.numbers[SUCCESSES] = successes


@jit(inline=False)
def list_fresh(diary: Diary, centers: Centers) -> None:
    """List the clusters whose centres are not where they were at the start of the refinement.

    A child takes centres of its parents, and if a cluster has the same samples as in the parent,
    its centre is the same to the last bit.
    """
    diary.numbers[FRESH] = 0
    for j in range(centers.exact.shape[0]):
        diary.is_fresh[j] = 0
        moved = 0
        for t in range(centers.exact.shape[1]):
            moved += centers.exact[j, t] != centers.target[j, t]
        if moved > 0:
            add_fresh(diary, j)


@jit
def choose_kind(diary: Diary) -> tuple[Index, Index]:
    """Draw where a swap removes a cluster, and where it begins another one."""
    is_fresh = uniform(diary) < SHARE_FRESH and diary.numbers[FRESH] > 0
    kind = uniform(diary)
    if kind < SHARE_AROUND:
        return (np.int64(FRESH_ONES) if is_fresh else np.int64(ANYWHERE)), np.int64(AROUND)
    if is_fresh and kind < 0.5 * (1.0 + SHARE_AROUND):
        return np.int64(FRESH_ONES), np.int64(ANYWHERE)
    return np.int64(ANYWHERE), (np.int64(FRESH_ONES) if is_fresh else np.int64(ANYWHERE))


@jit(inline=False)
def swap(samples: Samples, clusters: Clusters, diary: Diary, removed: Index, place: Index) -> float:
    """Remove a cluster and begin another one; return the change of the sum of squares.

    Infinite if that is not possible. A positive value may be too high.
    """
    count = find_neighbours(samples, clusters, diary, removed)
    if not choose_half(samples, clusters, diary, removed, place, count):
        return np.inf
    change = dissolve(samples, clusters, diary, removed, count)
    change += begin_cluster(samples, clusters, diary, removed)
    return move_samples(samples, clusters, diary, change) if change < np.inf else change


@jit(inline=False)
def follow_up(samples: Samples, clusters: Clusters, diary: Diary, change: float) -> float:
    """Let further swaps follow one that failed by little, and keep those that gain.

    They remove one of the clusters that have changed, and begin another one around it. ``change``
    is that of the first one; returns that of all. They end as soon as it is negative.
    """
    for _ in range(FOLLOWERS):
        moved, most = diary.numbers[MOVED], clusters.labels.shape[0]
        if moved + most > diary.samples.shape[0]:
            # The samples of two clusters have to go into the log.
            break
        removed = choose_changed(diary)
        refresh_squares(samples, clusters, removed)
        further = swap(samples, clusters, diary, removed, np.int64(AROUND))
        if further < 0.0:
            change += further
            if change < 0.0:
                break
        else:
            retrace(samples, clusters, diary, moved)
    return change


@jit(inline=False)
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
def sum_errors(clusters: Clusters) -> float:
    """Return the sum of squares."""
    total = 0.0
    for j in range(clusters.errors.shape[0]):
        total += clusters.errors[j]
    return total
