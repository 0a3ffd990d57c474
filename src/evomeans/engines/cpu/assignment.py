"""One assignment step: the bounds first, then the few comparisons that they leave.

For every tile and every centre j there is a *gap*, a lower bound of ‖x − c_j‖ − ‖x − c_x‖ over the
samples x of the tile that belong to another centre c_x. A tile is compared with the centres whose
gap is used up ("The idea" in docs/background/cpu-engine.md). Bounds are rounded to the safe side.

With x and c relative to the middle of the tile, ‖x − c‖² = ‖x‖² + (‖c‖² − 2x·c). The term in
brackets is the *score* of the centre: the lowest wins. Scores are in single precision. The error of
a score, together with that of ‖x‖² and of their sum, is below

    roundoff · (‖c‖ + radius)²  +  UNDERFLOW

"The error of a score" in docs/background/cpu-engine.md has the proof, and
tests/engines/cpu/test_gaps.py compares it with the errors of actual scores.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.jit import FINITE, jit
from evomeans.engines.cpu.layout import (
    BEST,
    CLOSEST,
    ENDLESS,
    FAR,
    LESS,
    MORE,
    NOTHING,
    SECOND,
    Samples,
    Scratch,
    SparseRows,
    State,
    WorkArrays,
    by_row_type,
    copy_row,
    squared_distance,
)
from evomeans.engines.cpu.simd import (
    EVERY_LANE,
    WIDTH,
    bits_float,
    first_lane,
    float_bits,
    higher,
    highest,
    less,
    load,
    lower,
    lowest,
    multiply_add,
    repeat,
    root,
    store,
    unequal,
    where_equal,
    where_less,
)
from evomeans.engines.cpu.sums import add_row
from evomeans.engines.cpu.threads import ABANDONED, nth_item
from evomeans.typing import FloatArray, SingleArray

# Squares of single-precision numbers below this may have lost digits to underflow, or all of them.
UNDERFLOW = np.float32(1e-36)
# A sparse row is multiplied with the chosen centres only if they are fewer than one in so many.
FEW_OF_ALL = 4


@jit
def shrink_gaps(state: State, tile: int, drift: SingleArray, approached: SingleArray) -> np.bool_:
    """Reduce the gaps of a tile by what the centres moved; return whether any is used up.

    ``drift`` and ``approached`` are those of :class:`~evomeans.engines.cpu.layout.Centers`.
    """
    gaps, present, spread = state.gaps, state.present, state.spread
    k = drift.shape[0]
    # As integers: the bits of non-negative floats are in the order of the floats, and only integer
    # maxima are vectorised. −1 is all bits and keeps a drift; −0 is none and masks it out.
    moved = np.int32(0)
    for j in range(k):
        moved = max(moved, float_bits(drift[j]) & -np.int32(present[tile, j]))
    own = bits_float(moved)
    # The highest bit is the sign: after OR of all gaps it is set if any of them is negative.
    signs = np.int32(0)
    for j in range(k):
        gap = (gaps[tile, j] - (approached[j] + own)) * LESS
        gaps[tile, j] = gap
        signs |= float_bits(gap)
    spread[tile] = (spread[tile] + own) * MORE
    return signs < 0


@jit
def renew_gaps(
    work: WorkArrays, state: State, tile: int, thread: int, count: int, error: np.float32
) -> None:
    """Set the spread of a tile, and new gaps from scores that may be off by the ``error``."""
    scratch, nothing = work.scratch, repeat(NOTHING)
    chosen, scores, lanes = scratch.chosen[thread], scratch.scores[thread], scratch.lanes[thread]
    square, closest = load(work.samples.squares, tile), load(lanes, CLOSEST)
    own = root(higher(square + load(lanes, BEST), nothing) + error) * MORE
    square = square - error
    state.spread[tile] = highest(own)
    for a in range(count):
        name = repeat(np.float32(chosen[a]))
        gap = root(higher(square + load(scores, a), nothing)) * LESS - own
        state.gaps[tile, chosen[a]] = lowest(where_equal(closest, name, repeat(FAR), gap))


def _locate_center_dense(
    samples: Samples, tile: int, centers: FloatArray, j: int, offset: SingleArray
) -> float:
    """Set ``offset`` to −2 (c_j − middle); return ‖c_j − middle‖²."""
    middles = samples.middles
    total = 0.0
    for t in range(centers.shape[1]):
        difference = centers[j, t] - middles[tile, t]
        offset[t] = -2.0 * difference
        total += difference * difference
    return total


def _locate_center_sparse(
    samples: Samples, tile: int, centers: FloatArray, j: int, offset: SingleArray
) -> float:
    return samples.rows.center_squares[j]


locate_center = by_row_type(
    dense=_locate_center_dense, sparse=_locate_center_sparse, fastmath=FINITE
)


@jit
def score_error(samples: Samples, tile: int, farthest: np.float32) -> np.float32:
    """Return an upper bound of the error of scores; ``farthest`` is the largest ``away``."""
    extent = np.sqrt(farthest) + samples.radii[tile]
    return samples.roundoff * extent * extent + UNDERFLOW


def _score_dense(samples: Samples, tile: int, scratch: Scratch, thread: int, count: int) -> None:
    """Set ``scratch.scores`` of the first ``count`` chosen centres, whose offsets are set."""
    offsets, away = scratch.offsets[thread], scratch.away[thread]
    scores, n_features = scratch.scores[thread], samples.rows.shape[1]
    first = tile * n_features
    # Two centres at a time: each feature that is loaded is used twice.
    for a in range(0, count - 1, 2):
        one, other = repeat(away[a]), repeat(away[a + 1])
        for t in range(n_features):
            feature = load(samples.tiles, first + t)
            one = multiply_add(feature, repeat(offsets[a, t]), one)
            other = multiply_add(feature, repeat(offsets[a + 1, t]), other)
        store(scores, a, one)
        store(scores, a + 1, other)
    if count % 2 == 1:
        one = repeat(away[count - 1])
        for t in range(n_features):
            feature = load(samples.tiles, first + t)
            one = multiply_add(feature, repeat(offsets[count - 1, t]), one)
        store(scores, count - 1, one)


def _score_sparse(samples: Samples, tile: int, scratch: Scratch, thread: int, count: int) -> None:
    rows, chosen = samples.rows, scratch.chosen[thread]
    k, last = rows.center_squares.shape[0], rows.squares.shape[0] - 1
    products, scores = scratch.products[thread], scratch.scores[thread]
    # Coordinates that are neighbours in memory are cheap: take all centres, unless few are wanted.
    wants_few = FEW_OF_ALL * count < k
    for lane in range(WIDTH):
        i = min(tile * WIDTH + lane, last)
        if wants_few:
            multiply_few(rows, i, chosen, count, products)
        else:
            multiply_all(rows, i, k, products)
        for a in range(count):
            j = chosen[a]
            scores[a, lane] = rows.center_squares[j] - 2.0 * products[j]


@jit
def multiply_few(
    rows: SparseRows, i: int, chosen: NDArray[np.int32], count: int, products: FloatArray
) -> None:
    """Set ``products[j]`` to the scalar product of a sparse row with each of the chosen centres."""
    for a in range(count):
        products[chosen[a]] = 0.0
    for p in range(rows.starts[i], rows.starts[i + 1]):
        for a in range(count):
            products[chosen[a]] += rows.values[p] * rows.by_feature[rows.columns[p], chosen[a]]


@jit(fastmath=FINITE)
def multiply_all(rows: SparseRows, i: int, k: int, products: FloatArray) -> None:
    """Set ``products`` to the scalar products of a sparse row with all centres."""
    for j in range(k):
        products[j] = 0.0
    for p in range(rows.starts[i], rows.starts[i + 1]):
        value, column = rows.values[p], rows.columns[p]
        for j in range(k):
            products[j] += value * rows.by_feature[column, j]


score = by_row_type(dense=_score_dense, sparse=_score_sparse, fastmath=FINITE)


# Column of ``Scratch.counts``.
PAIRS = 0


@jit
def forget(state: State, k: int, thread: int, n_threads: int) -> None:
    """Make a thread's share of the tiles true for any centres: no labels, and all gaps used up."""
    n_tiles = state.spread.shape[0]
    for nth in range(n_tiles):
        tile = nth_item(nth, thread, n_threads)
        if tile >= n_tiles:
            break
        for lane in range(WIDTH):
            state.labels[tile, lane] = k
        state.spread[tile] = FAR
        for j in range(k):
            state.gaps[tile, j] = -FAR
            state.present[tile, j] = 0


@jit(by_address=True)
def reassign(work: WorkArrays, state: State, gone: int, thread: int, n_threads: int) -> None:
    """Assign a thread's share of the tiles to the closest centres, after these have moved.

    The state is true for the centres before their move, and in the end for ``centers.exact``. Sums
    follow the labels. ``gone`` is the centre that is NOWHERE at present; −1 for none.
    """
    centers, scratch = work.centers, work.scratch
    pairs, n_tiles, barrier = 0, state.spread.shape[0], scratch.barrier
    for nth in range(n_tiles):
        tile = nth_item(nth, thread, n_threads)
        # Samples may have no cluster then, and nothing may be done with them.
        if tile >= n_tiles or barrier[ABANDONED] != 0:
            break
        if shrink_gaps(state, tile, centers.drift, centers.approached):
            count = choose_centers(work, state, gone, tile, thread)
            if count > 0:
                compare(work, state, tile, thread, count)
                pairs += count
    scratch.counts[thread, PAIRS] += pairs * WIDTH


@jit(inline=False)
def choose_centers(work: WorkArrays, state: State, gone: int, tile: int, thread: int) -> int:
    """List the centres to compare a tile with: those present in it, and rivals close enough.

    Rivals are centres whose gap is used up. No sample is farther from its closest centre than
    ``farthest``, the spread or the distance from any one centre, whichever is less. A rival whose
    distance from the middle exceeds ``farthest`` + radius is too far for all samples of the tile;
    it gets a new gap at once.

    Returns the length of the list, ``scratch.chosen[thread]``. Zero if no rival is close enough.
    """
    samples, exact, scratch = work.samples, work.centers.exact, work.scratch
    gaps, present = state.gaps, state.present
    chosen, offsets, away = scratch.chosen[thread], scratch.offsets[thread], scratch.away[thread]
    # Without a branch, which would be hard to predict: each centre is written behind the list,
    # and the list grows by one or by nothing.
    listed = 0
    for j in range(gaps.shape[1]):
        chosen[listed] = j
        listed += (gaps[tile, j] < NOTHING) | ((present[tile, j] != 0) & (j != gone))
    closest = ENDLESS
    for a in range(listed):
        away[a] = locate_center(samples, tile, exact, chosen[a], offsets[a])
        closest = min(closest, away[a])
    radius = samples.radii[tile]
    farthest = min(state.spread[tile], (np.sqrt(closest) + radius) * MORE)
    limit = (farthest + radius) * MORE
    count, rivals = 0, 0
    for a in range(listed):
        j = chosen[a]
        if away[a] > limit * limit + UNDERFLOW:
            gaps[tile, j] = np.sqrt(away[a]) * LESS - limit
        else:
            rivals += gaps[tile, j] < NOTHING
            if count < a:
                chosen[count] = j
                away[count] = away[a]
                copy_row(offsets, a, offsets, count)
            count += 1
    return count if rivals > 0 else 0


@jit(inline=False)
def compare(work: WorkArrays, state: State, tile: int, thread: int, count: int) -> None:
    """Find the closest of the chosen centres for every sample of a tile; renew labels and gaps."""
    samples, scratch = work.samples, work.scratch
    lanes = scratch.lanes[thread]
    error = score_chosen(samples, tile, scratch, thread, count)
    close = less(load(lanes, SECOND) - load(lanes, BEST), repeat(error + error))
    if close != 0:
        decide_close_calls(work, tile, thread, count, close)
    changed = unequal(load(state.labels, tile), load(lanes, CLOSEST))
    if changed != 0:
        relabel(work, state, tile, thread, changed)
    renew_gaps(work, state, tile, thread, count, error)


@jit
def score_chosen(
    samples: Samples, tile: int, scratch: Scratch, thread: int, count: int
) -> np.float32:
    """Score the chosen centres and find the lowest scores; return the error of a score."""
    chosen, away = scratch.chosen[thread], scratch.away[thread]
    score(samples, tile, scratch, thread, count)
    find_lowest(scratch.scores[thread], chosen, count, scratch.lanes[thread])
    farthest = NOTHING
    for a in range(count):
        farthest = max(farthest, away[a])
    return score_error(samples, tile, farthest)


@jit
def find_lowest(
    scores: SingleArray, chosen: NDArray[np.int32], count: int, lanes: SingleArray
) -> None:
    """Set BEST, SECOND and CLOSEST: for every sample the two lowest scores, and whose is lowest."""
    best = second = repeat(ENDLESS)
    closest = repeat(np.float32(-1.0))
    for a in range(count):
        new = load(scores, a)
        second = lower(second, higher(best, new))
        closest = where_less(new, best, repeat(np.float32(chosen[a])), closest)
        best = lower(best, new)
    store(lanes, BEST, best)
    store(lanes, SECOND, second)
    store(lanes, CLOSEST, closest)


@jit(inline=False)
def decide_close_calls(
    work: WorkArrays, tile: int, thread: int, count: int, close: np.uint64
) -> None:
    """Set CLOSEST of the ``close`` samples (bits) in double precision; the lowest index wins."""
    samples, exact, chosen = work.samples, work.centers.exact, work.scratch.chosen[thread]
    last = samples.order.shape[0] - 1
    while close != 0:
        lane = first_lane(close)
        # Clears the lowest bit that is set.
        close &= close - np.uint64(1)
        i = min(tile * WIDTH + lane, last)
        closest, label = np.inf, np.int64(-1)
        for a in range(count):
            square = squared_distance(samples.rows, i, exact, chosen[a])
            if square < closest or (square == closest and chosen[a] < label):
                closest, label = square, np.int64(chosen[a])
        work.scratch.lanes[thread, CLOSEST, lane] = label


@jit(inline=False)
def relabel(work: WorkArrays, state: State, tile: int, thread: int, changed: np.uint64) -> None:
    """Move the samples of a tile whose bit is set in ``changed`` to their new clusters."""
    samples, centers, lanes = work.samples, work.centers, work.scratch.lanes[thread]
    labels, present = state.labels, state.present
    sums, touched = centers.sums[thread], centers.touched
    n_samples, k = samples.order.shape[0], centers.weights.shape[0]
    closest = load(lanes, CLOSEST)
    while changed != 0:
        lane = first_lane(changed)
        changed &= changed - np.uint64(1)
        i = tile * WIDTH + lane
        before, after = np.int64(labels[tile, lane]), np.int64(lanes[CLOSEST, lane])
        labels[tile, lane] = after
        present[tile, after] = 1
        if before < k and unequal(closest, repeat(np.float32(before))) == EVERY_LANE:
            present[tile, before] = 0
        # The copies that fill up the last tile belong to no cluster sum.
        if i < n_samples:
            add_row(samples, sums, after, i, 1.0)
            touched[thread, after] = 1
            if before < k:
                add_row(samples, sums, before, i, -1.0)
                touched[thread, before] = 1
