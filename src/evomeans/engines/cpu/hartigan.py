"""Hartigan's moves: single samples that leave their cluster although its centre is the closest.

A sample x of weight w that moves from cluster a to cluster b shifts both means: that of a away from
itself, that of b towards itself. The sum of squares falls if

    W_a / (W_a − w) · ‖x − c_a‖²  >  W_b / (W_b + w) · ‖x − c_b‖²

with W the weights of the clusters [1]_. On the sphere, with s the sums of clusters, the sum of
cosine distances falls if

    ‖s_a − wx‖ − ‖s_a‖  >  ‖s_b‖ − ‖s_b + wx‖

If w is less than these lengths, such a sample also meets Hartigan's rule with the lengths ‖s‖ for
W. So the bounds are the same. All threads mark the samples for which that holds. Then one
thread visits these in the user's order, and moves those for which it still holds. So the result
depends neither on the tiles nor on the number of threads.

References
----------
.. [1] Telgarsky, M. and Vattani, A. (2010). "Hartigan's method: k-means clustering without
   Voronoi". AISTATS 2010, 820-827.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.jit import jit
from evomeans.engines.cpu.assignment import UNDERFLOW, locate_center, score_chosen
from evomeans.engines.cpu.layout import (
    BEST,
    FACTOR,
    FAR,
    LESS,
    MORE,
    NOTHING,
    WEIGHT,
    Centers,
    Samples,
    State,
    WorkArrays,
    copy_row,
    remember_center,
    squared_distance,
    weight_of,
)
from evomeans.engines.cpu.simd import (
    WIDTH,
    bits_float,
    first_lane,
    float_bits,
    higher,
    less,
    load,
    repeat,
)
from evomeans.engines.cpu.sums import add_row, follow_sums
from evomeans.engines.cpu.threads import ABANDONED, meet, nth_item
from evomeans.engines.rules import MEAN_ROUNDING, WORTHWHILE
from evomeans.kernels.vectors import squared_difference
from evomeans.typing import FloatArray, Index, SingleArray

# Rows of ``Scratch.shares``.
ARRIVING, LEAVING = range(2)
HALF = np.float32(0.5)
ONE = np.float32(1.0)
# If less than this share of a cluster stays, the factor W/(W − w) is as good as infinite.
TINY = np.float32(1e-6)
# Upper limit of 1/W, in units of the heaviest sample: it would be infinite in single precision.
LIGHT = 1e30


@jit(by_address=True)
def move_singles(work: WorkArrays, state: State, thread: int, n_threads: int) -> None:
    """Make one pass of single moves, from a fixed point of K-means; see :func:`visit`."""
    mark(work, state, thread, n_threads)
    meet(work.scratch.barrier, n_threads)
    if thread == 0:
        visit(work, state)
    meet(work.scratch.barrier, n_threads)


@jit
def mark(work: WorkArrays, state: State, thread: int, n_threads: int) -> None:
    """Mark the samples of a thread's share of the tiles that would gain by a move."""
    n_tiles, barrier = state.spread.shape[0], work.scratch.barrier
    set_shares(work.samples, work.centers.masses, work.scratch.shares[thread])
    for nth in range(n_tiles):
        tile = nth_item(nth, thread, n_threads)
        if tile >= n_tiles or barrier[ABANDONED] != 0:
            break
        if find_rivals(work, state, tile, thread):
            mark_tile(work, state, tile, thread, choose_targets(work, state, tile, thread))


@jit
def set_shares(samples: Samples, totals: FloatArray, shares: SingleArray) -> None:
    """Set ``shares`` (2, k) to 1/W, for arrivals and for departures; zero where there are none."""
    for j in range(totals.shape[0]):
        share = NOTHING
        if totals[j] > 0.0:
            share = np.float32(min(1.0 / (totals[j] * samples.weight_unit), LIGHT)) * MORE
        shares[ARRIVING, j] = share
        # The only sample of a cluster stays; with weights, one of several may have nearly all.
        shares[LEAVING, j] = NOTHING if not samples.weights.shape[0] and totals[j] <= 1.0 else share


@jit
def find_rivals(work: WorkArrays, state: State, tile: int, thread: int) -> np.bool_:
    """Set the gaps below which samples of a tile might move; return whether there are such gaps.

    A move from a to b needs a gap below (ρ − 1)‖x − c_a‖, with ρ² = W_a/(W_a − w) · (W_b + w)/W_b.
    ρ − 1 is at most (ρ² − 1)/2, and ‖x − c_a‖ at most the spread. A move that was impossible in the
    last pass is possible now only if one of its two clusters has changed.
    """
    gaps, present, changed = state.gaps, state.present, work.centers.changed
    shares, gap_limits = work.scratch.shares[thread], work.scratch.gap_limits
    k, spread, weight = changed.shape[0], state.spread[tile], heaviest(work.samples, tile)
    # Maxima and signs by integer operations, as in ``shrink_gaps``: AND with −1 keeps a number, and
    # AND with −0 drops that of a centre that is not present, or of a pair that has not changed.
    most, own_changed = np.int32(0), np.uint8(0)
    for j in range(k):
        most = max(most, float_bits(shares[LEAVING, j]) & -np.int32(present[tile, j]))
        own_changed |= present[tile, j] & changed[j]
    left = ONE - weight * bits_float(most) * MORE
    factor = ONE / left * MORE if left > TINY else FAR
    signs = np.int32(0)
    for j in range(k):
        square = factor * (ONE + weight * shares[ARRIVING, j])
        limit = spread * (HALF * (square - ONE)) * MORE
        gap_limits[thread, j] = limit
        signs |= float_bits(gaps[tile, j] - limit) & -np.int32(own_changed | changed[j])
    return signs < 0


@jit
def choose_targets(work: WorkArrays, state: State, tile: int, thread: int) -> int:
    """List centres to which samples of a tile might move, and those present; return how many."""
    samples, exact, scratch = work.samples, work.centers.exact, work.scratch
    gaps, present, gap_limits = state.gaps, state.present, scratch.gap_limits
    chosen, offsets, away = scratch.chosen[thread], scratch.offsets[thread], scratch.away[thread]
    count = 0
    for j in range(gaps.shape[1]):
        if gaps[tile, j] < gap_limits[thread, j] or present[tile, j] != 0:
            away[count] = locate_center(samples, tile, exact, j, offsets[count])
            chosen[count] = j
            count += 1
    return count


@jit
def heaviest(samples: Samples, tile: int) -> np.float32:
    """Return the largest weight in a tile, in weight units and rounded up."""
    if samples.weights.shape[0] == 0:
        return ONE
    weight = 0.0
    for i in range(tile * WIDTH, min((tile + 1) * WIDTH, samples.weights.shape[0])):
        weight = max(weight, samples.weights[i])
    return np.float32(weight * samples.weight_unit) * MORE


@jit
def leaving_factor(total: float, weight: float) -> float:
    """Return W / (W − w), by which leaving saves w‖x − c‖²; zero if nothing would be left."""
    rest = total - weight
    return total / rest if rest > 0.0 else 0.0


@jit
def arriving_divisor(total: float, weight: float) -> float:
    """Return (W + w) / W, of which an arrival costs w‖x − c‖²; zero bars an empty cluster."""
    return (total + weight) / total if total > 0.0 else 0.0


@jit(inline=False)
def mark_tile(work: WorkArrays, state: State, tile: int, thread: int, count: int) -> None:
    """Mark samples of a tile that would gain; single precision errs on the side of confirming."""
    samples, scratch = work.samples, work.scratch
    chosen, shares = scratch.chosen[thread], scratch.shares[thread]
    scores, lanes = scratch.scores[thread], scratch.lanes[thread]
    error = score_chosen(samples, tile, scratch, thread, count)
    weigh_lanes(samples, state, work.centers.masses, lanes, tile)
    square = load(samples.squares, tile)
    nothing = repeat(NOTHING)
    own = (higher(square + load(lanes, BEST), nothing) + error) * load(lanes, FACTOR)
    for a in range(count):
        share = shares[ARRIVING, chosen[a]]
        if share > NOTHING:
            divisor = load(lanes, WEIGHT) * share + MORE
            likely = less(square + load(scores, a) - error, own * divisor)
            if likely != 0:
                confirm(work, state, tile, chosen[a], likely)


@jit
def weigh_lanes(
    samples: Samples, state: State, totals: FloatArray, lanes: SingleArray, tile: int
) -> None:
    """Set FACTOR and WEIGHT in ``lanes`` for every sample of a tile."""
    last = samples.order.shape[0] - 1
    for lane in range(WIDTH):
        i = min(tile * WIDTH + lane, last)
        weight = weight_of(samples, i)
        lanes[WEIGHT, lane] = weight * samples.weight_unit
        found = leaving_factor(totals[state.labels[tile, lane]], weight)
        lanes[FACTOR, lane] = min(np.float32(found) * MORE, FAR)


@jit(inline=False)
def confirm(work: WorkArrays, state: State, tile: int, j: Index, likely: np.uint64) -> None:
    """Mark which of the ``likely`` samples (bits) gain by a move to ``j``, in double precision."""
    samples, centers, marks = work.samples, work.centers, work.scratch.marks
    while likely != 0:
        lane = first_lane(likely)
        likely &= likely - np.uint64(1)
        i = tile * WIDTH + lane
        own = np.int64(state.labels[tile, lane])
        if i >= samples.order.shape[0] or own == j or marks[samples.order[i]] != 0:
            continue
        weight = weight_of(samples, i)
        if weight > 0.0:
            saved = saving(samples, centers, i, own, weight)
            marks[samples.order[i]] = expense(samples, centers, i, j, weight) < saved


@jit(inline=False)
def visit(work: WorkArrays, state: State) -> None:
    """Move the marked samples, one after the other, and the centres with them.

    What is valid then is in docs/background/cpu-engine.md. ``largest_move`` says whether anything
    has moved, and the marks are zero.
    """
    samples, centers, scratch = work.samples, work.centers, work.scratch
    exact, before, marks = centers.exact, centers.before, scratch.marks
    for j in range(exact.shape[0]):
        centers.changed[j] = 0
        copy_row(exact, j, before, j)
    moves = 0
    for row in range(marks.shape[0]):
        if marks[row] != 0:
            marks[row] = 0
            if scratch.barrier[ABANDONED] != 0:
                continue
            i = np.int64(samples.places[row])
            target = best_move(samples, state, centers, i)
            if target >= 0:
                moves += 1
                move(work, state, i, target)
    for j in range(exact.shape[0]):
        drift = np.float32(np.sqrt(squared_difference(before, j, exact, j))) * MORE
        centers.drift[j] = centers.approached[j] = drift
    scratch.largest_move[0, 0] = FAR if moves > 0 else NOTHING


@jit(inline=False)
def best_move(samples: Samples, state: State, centers: Centers, i: Index) -> Index:
    """Return the cluster to which a sample moves at the largest gain; −1 if there is no gain."""
    own = np.int64(state.labels[i // WIDTH, i % WIDTH])
    weight = weight_of(samples, i)
    least, target = saving(samples, centers, i, own, weight), np.int64(-1)
    for j in range(centers.weights.shape[0]):
        if j != own and centers.weights[j] > 0.0:
            spent = expense(samples, centers, i, j, weight)
            if spent < least:
                least, target = spent, np.int64(j)
    return target


@jit
def saving(samples: Samples, centers: Centers, i: Index, own: Index, weight: float) -> float:
    """Return what a sample saves at least by leaving its cluster, per unit of its weight."""
    distance = np.sqrt(squared_distance(samples.rows, i, centers.exact, own))
    distance = max(distance - MEAN_ROUNDING * np.sqrt(centers.exact.shape[1]), 0.0)
    square, mass = distance * distance, centers.masses[own]
    if samples.on_sphere != 0.0:
        return square * factor_on_sphere(square, mass, -weight) * WORTHWHILE
    return square * leaving_factor(mass, weight) * WORTHWHILE


@jit
def expense(samples: Samples, centers: Centers, i: Index, j: Index, weight: float) -> float:
    """Return what a sample costs at most by joining cluster ``j``, per unit of its weight."""
    distance = np.sqrt(squared_distance(samples.rows, i, centers.exact, j))
    distance += MEAN_ROUNDING * np.sqrt(centers.exact.shape[1])
    square, mass = distance * distance, centers.masses[j]
    if samples.on_sphere != 0.0:
        return square * factor_on_sphere(square, mass, weight)
    return square / arriving_divisor(mass, weight)


@jit
def factor_on_sphere(square: float, length: float, weight: float) -> float:
    """Return what a sample saves or costs, 2 (w + ‖s‖ − ‖s + wx‖)/w, in units of ‖x − c‖².

    It leaves if the weight is negative; zero if nothing would be left.
    """
    cosine = 1.0 - 0.5 * square
    if length + weight <= 0.0:
        return 0.0
    along = length + weight * cosine
    after = np.sqrt(along * along + weight * weight * (1.0 - cosine * cosine))
    return 1.0 - weight * (1.0 + cosine) / (after + along)


@jit(inline=False)
def move(work: WorkArrays, state: State, i: Index, target: Index) -> None:
    """Move a sample to another cluster: its label, the sums, both centres, and the bounds."""
    samples, centers = work.samples, work.centers
    tile, lane = i // WIDTH, i % WIDTH
    own = np.int64(state.labels[tile, lane])
    lower_gaps(samples, state, centers, i, own, target)
    state.labels[tile, lane] = target
    state.present[tile, target] = 1
    add_row(samples, centers.sums[0], own, i, -1.0)
    add_row(samples, centers.sums[0], target, i, 1.0)
    if not is_in_tile(state.labels, tile, own):
        state.present[tile, own] = 0
    renew_center(work, own)
    renew_center(work, target)


@jit
def is_in_tile(labels: NDArray[np.unsignedinteger], tile: Index, label: Index) -> bool:
    """Whether a sample of a tile has a label."""
    found = False
    for lane in range(WIDTH):
        found |= labels[tile, lane] == label
    return found


@jit(inline=False)
def renew_center(work: WorkArrays, j: Index) -> None:
    """Move the centre of a cluster that has changed."""
    samples, centers = work.samples, work.centers
    centers.changed[j] = 1
    follow_sums(samples, centers, j, work.scratch.totals[0])
    remember_center(samples.rows, centers.exact, j)


@jit
def lower_gaps(
    samples: Samples, state: State, centers: Centers, i: Index, own: Index, target: Index
) -> None:
    """Lower the gaps of a tile so that they hold when sample ``i`` belongs to another centre.

    They are bounds for ``centers.before``. How far the two centres of the sample were then follows
    from how far they are now, and how far they have moved.
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
