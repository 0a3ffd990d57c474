"""Hartigan's moves: single samples that change their cluster although it is the closest.

A sample x of weight w that leaves cluster a takes its share of the mean with it, and draws that of
cluster b nearer to itself. The sum of squares falls if

    W_a / (W_a − w) · ‖x − c_a‖²  >  W_b / (W_b + w) · ‖x − c_b‖²

so that there is a way on from many fixed points of K-means, the more the smaller the clusters are.
A pass has two halves. All threads mark the samples for which the inequality holds. Then one thread
visits the marked ones in the user's order, so that the result depends neither on the tiles nor on
the number of threads, and moves those for which it still holds after the moves before.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evomeans.compiled.jit import jit
from evomeans.compiled.vectors import squared_difference
from evomeans.engines.cpu.gaps import LESS, MORE, NOTHING
from evomeans.engines.cpu.lanes import (
    WIDTH,
    bits_float,
    first_lane,
    float_bits,
    higher,
    less,
    load,
    repeat,
)
from evomeans.engines.cpu.layout import BEST, FAR, NAMES, SECOND
from evomeans.engines.cpu.reassign import UNDERFLOW, score_chosen
from evomeans.engines.cpu.rows import remember_center, squared_distance
from evomeans.engines.cpu.scores import approach
from evomeans.engines.cpu.sums import add_row, update_center
from evomeans.engines.cpu.threads import nth_item
from evomeans.engines.rules import MEAN_ROUNDING, WORTHWHILE

# Rows of ``Scratch.lanes`` while samples are marked: what :func:`release` says, and the weights.
RELEASE, WEIGHT = SECOND, NAMES
# Rows of ``Scratch.shares``.
ARRIVING, LEAVING = range(2)
HALF = np.float32(0.5)
ONE = np.float32(1.0)
TINY = np.float32(1e-6)
# Clusters lighter than that, in units of the heaviest sample, do not matter; in single precision
# one over their weight would be infinite.
LIGHT = 1e30


@jit
def mark(samples: Any, state: Any, centers: Any, scratch: Any, thread: int, n_threads: int) -> None:
    """Mark the samples of a thread's share of the tiles that could gain by a move.

    Parameters
    ----------
    state : State
        A fixed point of K-means.
    scratch : Scratch
        ``marks`` becomes 1 for those samples; it was zero.
    """
    n_tiles = state.spread.shape[0]
    set_shares(samples, centers.weights, scratch.shares[thread])
    for nth in range(n_tiles):
        tile = nth_item(nth, thread, n_threads)
        if tile >= n_tiles:
            break
        if find_rivals(samples, state, centers.changed, scratch, tile, thread):
            count = choose_targets(samples, state, centers, scratch, tile, thread)
            mark_tile(samples, state, centers, scratch, tile, count, thread)


@jit
def set_shares(samples: Any, totals: Any, shares: Any) -> None:
    """Set 1/W for every cluster, for arrivals and for departures; zero where there are none."""
    for j in range(totals.shape[0]):
        share = NOTHING
        if totals[j] > 0.0:
            share = np.float32(min(1.0 / (totals[j] * samples.weight_unit), LIGHT)) * MORE
        shares[ARRIVING, j] = share
        # The only sample of a cluster stays; with weights, one of several may have nearly all.
        shares[LEAVING, j] = NOTHING if not samples.weights.shape[0] and totals[j] <= 1.0 else share


@jit
def find_rivals(
    samples: Any, state: Any, changed: Any, scratch: Any, tile: int, thread: int
) -> Any:
    """Tell whether samples of a tile might move, and set from which gap on they cannot.

    A move from a to b needs ‖x − c_b‖ < ρ‖x − c_a‖, with ρ² = W_a/(W_a − w) · (W_b + w)/W_b, and
    so a gap below (ρ − 1)‖x − c_a‖; and ρ − 1 ≤ (ρ² − 1)/2, which is close for ρ near one.

    What could not move before can only do so now if one of the two clusters has changed.
    """
    gaps, present = state.gaps, state.present
    shares, limits = scratch.shares[thread], scratch.limits
    k, spread, weight = changed.shape[0], state.spread[tile], heaviest(samples, tile)
    most, own_changed = np.int32(0), np.uint8(0)
    for j in range(k):
        most = max(most, float_bits(shares[LEAVING, j]) & -np.int32(present[tile, j]))
        own_changed |= present[tile, j] & changed[j]
    left = ONE - weight * bits_float(most) * MORE
    release = ONE / left * MORE if left > TINY else FAR
    signs = np.int32(0)
    for j in range(k):
        square = release * (ONE + weight * shares[ARRIVING, j])
        limit = spread * (HALF * (square - ONE)) * MORE
        limits[thread, j] = limit
        signs |= float_bits(gaps[tile, j] - limit) & -np.int32(own_changed | changed[j])
    return signs < 0


@jit
def choose_targets(
    samples: Any, state: Any, centers: Any, scratch: Any, tile: int, thread: int
) -> int:
    """List the centres to which samples of a tile might move, and those that they have.

    Returns
    -------
    count : int
        ``scratch.chosen[thread, :count]``.
    """
    gaps, present, limits = state.gaps, state.present, scratch.limits
    chosen, offsets, away = scratch.chosen[thread], scratch.offsets[thread], scratch.away[thread]
    count = 0
    for j in range(gaps.shape[1]):
        if gaps[tile, j] < limits[thread, j] or present[tile, j] != 0:
            approach(samples.rows, samples, tile, centers.exact, j, count, offsets, away)
            chosen[count] = j
            count += 1
    return count


@jit
def heaviest(samples: Any, tile: int) -> Any:
    """Return the largest weight in a tile."""
    if samples.weights.shape[0] == 0:
        return ONE
    weight = 0.0
    for i in range(tile * WIDTH, min((tile + 1) * WIDTH, samples.weights.shape[0])):
        weight = max(weight, samples.weights[i])
    return np.float32(weight * samples.weight_unit) * MORE


@jit
def release(total: float, weight: float) -> float:
    """W / (W − w): what leaving takes off the sum of squares, for a squared distance of one.

    None if the cluster would be empty: clusters never are.
    """
    rest = total - weight
    return total / rest if rest > 0.0 else 0.0


@jit
def attraction(total: float, weight: float) -> float:
    """(W + w) / W: what the sum of squares grows by on arrival is the squared distance over this.

    None for empty clusters: these are repaired.
    """
    return (total + weight) / total if total > 0.0 else 0.0


@jit
def mark_tile(
    samples: Any,
    state: Any,
    centers: Any,
    scratch: Any,
    tile: int,
    count: int,
    thread: int,
) -> None:
    """Compare the samples of a tile with the chosen centres; exactly, where it may matter."""
    chosen = scratch.chosen[thread]
    scores, lanes = scratch.scores[thread], scratch.lanes[thread]
    error = score_chosen(samples, scratch, tile, count, thread)
    weigh_lanes(samples, state, centers.weights, lanes, tile)
    square = load(samples.squares, tile)
    nothing = repeat(NOTHING)
    own = (higher(square + load(lanes, BEST), nothing) + error) * load(lanes, RELEASE)
    for a in range(count):
        total = centers.weights[chosen[a]]
        if total > 0.0:
            share = np.float32(min(1.0 / (total * samples.weight_unit), LIGHT))
            ease = load(lanes, WEIGHT) * (share * MORE) + MORE
            likely = less(square + load(scores, a) - error, own * ease)
            if likely != 0:
                confirm(samples, state, centers, scratch.marks, tile, chosen[a], likely)


@jit
def weigh_lanes(samples: Any, state: Any, totals: Any, lanes: Any, tile: int) -> None:
    """Set what leaving takes off, and the weight, for every sample of a tile."""
    last = samples.order.shape[0] - 1
    for lane in range(WIDTH):
        i = min(tile * WIDTH + lane, last)
        weight = samples.weights[i] if samples.weights.shape[0] else 1.0
        lanes[WEIGHT, lane] = weight * samples.weight_unit
        found = release(totals[state.labels[tile, lane]], weight)
        lanes[RELEASE, lane] = min(np.float32(found) * MORE, FAR)


@jit
def confirm(
    samples: Any, state: Any, centers: Any, marks: Any, tile: int, j: int, likely: Any
) -> None:
    """Mark those of a few samples that gain by a move to centre ``j``, in double precision."""
    while likely != 0:
        lane = first_lane(likely)
        likely &= likely - np.uint64(1)
        i = tile * WIDTH + lane
        own = np.int64(state.labels[tile, lane])
        if i >= samples.order.shape[0] or own == j or marks[samples.order[i]] != 0:
            continue
        weight = samples.weights[i] if samples.weights.shape[0] else 1.0
        if weight > 0.0:
            saved = saving(samples, centers, i, own, weight)
            marks[samples.order[i]] = expense(samples, centers, i, j, weight) < saved


@jit
def visit(samples: Any, state: Any, centers: Any, scratch: Any) -> None:
    """Move the marked samples, one after the other, and the centres with them.

    Parameters
    ----------
    state : State, in and out
        In the end with the new labels, and bounds that hold for ``centers.before``.
    centers : Centers, in and out
        In the end at the means of their clusters, with ``drift`` since the beginning.
    scratch : Scratch
        ``farthest`` tells whether anything has moved; ``marks`` are zero in the end.
    """
    exact, before, marks = centers.exact, centers.before, scratch.marks
    for j in range(exact.shape[0]):
        centers.changed[j] = 0
        for t in range(exact.shape[1]):
            before[j, t] = exact[j, t]
    moves = 0
    for row in range(marks.shape[0]):
        if marks[row] != 0:
            marks[row] = 0
            i = np.int64(samples.places[row])
            target = best_move(samples, state, centers, i)
            if target >= 0:
                moves += 1
                move(samples, state, centers, scratch, i, target)
    for j in range(exact.shape[0]):
        drift = np.float32(np.sqrt(squared_difference(before, j, exact, j))) * MORE
        centers.drift[j] = centers.approached[j] = drift
    scratch.farthest[0, 0] = FAR if moves > 0 else NOTHING


@jit
def best_move(samples: Any, state: Any, centers: Any, i: Any) -> Any:
    """Return the cluster to which a sample had best move, −1 if it had better stay."""
    own = np.int64(state.labels[i // WIDTH, i % WIDTH])
    weight = samples.weights[i] if samples.weights.shape[0] else 1.0
    least, target = saving(samples, centers, i, own, weight), np.int64(-1)
    for j in range(centers.weights.shape[0]):
        if j != own and centers.weights[j] > 0.0:
            spent = expense(samples, centers, i, j, weight)
            if spent < least:
                least, target = spent, np.int64(j)
    return target


@jit
def saving(samples: Any, centers: Any, i: Any, own: Any, weight: float) -> Any:
    """Return what a sample's leaving saves at least, per unit of its weight."""
    distance = np.sqrt(squared_distance(samples.rows, i, centers.exact, own))
    distance = max(distance - MEAN_ROUNDING * np.sqrt(centers.exact.shape[1]), 0.0)
    return distance * distance * release(centers.weights[own], weight) * WORTHWHILE


@jit
def expense(samples: Any, centers: Any, i: Any, j: Any, weight: float) -> Any:
    """Return what a sample's arrival costs at most, per unit of its weight."""
    distance = np.sqrt(squared_distance(samples.rows, i, centers.exact, j))
    distance += MEAN_ROUNDING * np.sqrt(centers.exact.shape[1])
    return distance * distance / attraction(centers.weights[j], weight)


@jit
def move(samples: Any, state: Any, centers: Any, scratch: Any, i: Any, target: Any) -> None:
    """Move a sample to another cluster: its label, the sums, both centres, and the bounds."""
    tile, lane = i // WIDTH, i % WIDTH
    own = np.int64(state.labels[tile, lane])
    lower_gaps(samples, state, centers, i, own, target)
    state.labels[tile, lane] = target
    state.present[tile, target] = 1
    sums, scales, limb = centers.sums, samples.scales, samples.limb
    weight = samples.weights[i] if samples.weights.shape[0] else 1.0
    add_row(sums[0], own, samples.rows, i, weight, scales, limb, -1.0)
    add_row(sums[0], target, samples.rows, i, weight, scales, limb, 1.0)
    if not is_in_tile(state.labels, tile, own):
        state.present[tile, own] = 0
    renew_center(samples, centers, scratch, own)
    renew_center(samples, centers, scratch, target)


@jit
def is_in_tile(labels: Any, tile: Any, label: Any) -> bool:
    """Whether a sample of a tile has a label."""
    found = False
    for lane in range(WIDTH):
        found |= labels[tile, lane] == label
    return found


@jit
def renew_center(samples: Any, centers: Any, scratch: Any, j: Any) -> None:
    """Move a centre to the mean of its cluster, which has changed."""
    centers.changed[j] = 1
    exact, weights, totals = centers.exact, centers.weights, scratch.totals[0]
    update_center(centers.sums, samples.scales, samples.limb, exact, weights, j, totals)
    remember_center(samples.rows, exact, j)


@jit
def lower_gaps(samples: Any, state: Any, centers: Any, i: Any, own: Any, target: Any) -> None:
    """Let the bounds of a tile hold when sample ``i`` belongs to another centre.

    They are bounds for ``centers.before``; how far its two centres were from the sample then
    follows from how far they are now, and how far they have moved.
    """
    exact, before, tile = centers.exact, centers.before, i // WIDTH
    near = np.sqrt(squared_distance(samples.rows, i, exact, own))
    far = np.sqrt(squared_distance(samples.rows, i, exact, target))
    near -= np.sqrt(squared_difference(before, own, exact, own))
    far += np.sqrt(squared_difference(before, target, exact, target))
    loss = np.float32(max(far - near, 0.0)) * MORE + UNDERFLOW
    for j in range(exact.shape[0]):
        state.gaps[tile, j] = (state.gaps[tile, j] - loss) * LESS
    state.gaps[tile, own] = min(state.gaps[tile, own], -loss)
    state.spread[tile] = max(state.spread[tile], np.float32(far) * MORE)
