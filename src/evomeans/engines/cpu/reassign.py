"""One assignment step: bounds first, then the few comparisons that are left."""

from __future__ import annotations

from typing import Any

import numpy as np

from evomeans.compiled.jit import jit
from evomeans.engines.cpu.gaps import LESS, MORE, NOTHING, renew, widen
from evomeans.engines.cpu.lanes import (
    EVERY_LANE,
    WIDTH,
    first_lane,
    higher,
    less,
    load,
    lower,
    repeat,
    store,
    unequal,
    where_less,
)
from evomeans.engines.cpu.layout import BEST, ENDLESS, FAR, NAMES, SECOND
from evomeans.engines.cpu.rows import squared_distance
from evomeans.engines.cpu.scores import approach, score
from evomeans.engines.cpu.sums import add_row
from evomeans.engines.cpu.threads import nth_item

PAIRS = 0
# Squares of single-precision numbers below this may have lost their digits, or vanished.
UNDERFLOW = np.float32(1e-36)


@jit
def forget(state: Any, k: int, thread: int, n_threads: int) -> None:
    """Begin with nothing known of a thread's share of the tiles; label k is none."""
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


@jit
def reassign(
    samples: Any,
    state: Any,
    centers: Any,
    scratch: Any,
    gone: int,
    thread: int,
    n_threads: int,
) -> None:
    """Bring a thread's share of the tiles up to date after a move of the centres.

    Parameters
    ----------
    gone : int
        The centre that is nowhere at present; −1 for none.
    """
    pairs, n_tiles = 0, state.spread.shape[0]
    for nth in range(n_tiles):
        tile = nth_item(nth, thread, n_threads)
        if tile >= n_tiles:
            break
        if widen(state, tile, centers.drift, centers.approached):
            count = choose_centers(samples, state, centers, scratch, gone, tile, thread)
            if count > 0:
                compare(samples, state, centers, scratch, tile, count, thread)
                pairs += count
    scratch.counts[thread, PAIRS] += pairs * WIDTH


@jit
def choose_centers(
    samples: Any, state: Any, centers: Any, scratch: Any, gone: int, tile: int, thread: int
) -> int:
    """List the centres with which a tile has to be compared: rivals in reach, and its own.

    A centre is out of reach if it is farther from the middle, less the radius of the tile, than
    all samples are from their own centres, or from any one centre.

    Returns
    -------
    count : int
        ``scratch.chosen[thread, :count]``; none if all rivals are out of reach.
    """
    gaps, present = state.gaps, state.present
    chosen, offsets, away = scratch.chosen[thread], scratch.offsets[thread], scratch.away[thread]
    listed = 0
    for j in range(gaps.shape[1]):
        chosen[listed] = j
        listed += (gaps[tile, j] < NOTHING) | ((present[tile, j] != 0) & (j != gone))
    closest = ENDLESS
    for a in range(listed):
        approach(samples.rows, samples, tile, centers.exact, chosen[a], a, offsets, away)
        closest = min(closest, away[a])
    radius = samples.radii[tile]
    reach = min(state.spread[tile], (np.sqrt(closest) + radius) * MORE)
    limit = (reach + radius) * MORE
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
                for t in range(offsets.shape[1]):
                    offsets[count, t] = offsets[a, t]
            count += 1
    return count if rivals > 0 else 0


@jit
def compare(
    samples: Any, state: Any, centers: Any, scratch: Any, tile: int, count: int, thread: int
) -> None:
    """Find the closest of the chosen centres for every sample of a tile; renew labels and gaps."""
    chosen = scratch.chosen[thread]
    scores, lanes = scratch.scores[thread], scratch.lanes[thread]
    error = score_chosen(samples, scratch, tile, count, thread)
    close = less(load(lanes, SECOND) - load(lanes, BEST), repeat(error + error))
    if close != 0:
        decide_close_calls(samples, centers.exact, chosen, count, lanes, tile, close)
    changed = unequal(load(state.labels, tile), load(lanes, NAMES))
    if changed != 0:
        relabel(samples, state, centers, lanes, tile, changed, thread)
    renew(state, tile, samples.squares, chosen, count, scores, lanes, error)


@jit
def score_chosen(samples: Any, scratch: Any, tile: int, count: int, thread: int) -> Any:
    """Score the chosen centres, find the lowest for every sample; return the error of a score."""
    chosen, away = scratch.chosen[thread], scratch.away[thread]
    score(samples.rows, samples, tile, chosen, count, scratch, thread)
    find_lowest(scratch.scores[thread], chosen, count, scratch.lanes[thread])
    farthest = NOTHING
    for a in range(count):
        farthest = max(farthest, away[a])
    extent = np.sqrt(farthest) + samples.radii[tile]
    return samples.roundoff * extent * extent + UNDERFLOW


@jit
def find_lowest(scores: Any, chosen: Any, count: int, lanes: Any) -> None:
    """For every sample of a tile: the two lowest scores, and whose the lowest is."""
    best = second = repeat(ENDLESS)
    names = repeat(np.float32(-1.0))
    for a in range(count):
        new = load(scores, a)
        second = lower(second, higher(best, new))
        names = where_less(new, best, repeat(np.float32(chosen[a])), names)
        best = lower(best, new)
    store(lanes, BEST, best)
    store(lanes, SECOND, second)
    store(lanes, NAMES, names)


@jit
def decide_close_calls(
    samples: Any,
    exact: Any,
    chosen: Any,
    count: int,
    lanes: Any,
    tile: int,
    close: Any,
) -> None:
    """Decide in double precision what single precision cannot; the lowest index wins a tie."""
    last = samples.order.shape[0] - 1
    while close != 0:
        lane = first_lane(close)
        close &= close - np.uint64(1)
        i = min(tile * WIDTH + lane, last)
        closest, label = np.inf, np.int64(-1)
        for a in range(count):
            square = squared_distance(samples.rows, i, exact, chosen[a])
            if square < closest or (square == closest and chosen[a] < label):
                closest, label = square, np.int64(chosen[a])
        lanes[NAMES, lane] = label


@jit
def relabel(
    samples: Any, state: Any, centers: Any, lanes: Any, tile: int, changed: Any, thread: int
) -> None:
    """Move the samples of a tile that have a new closest centre to its cluster."""
    labels, present, weights = state.labels, state.present, samples.weights
    sums, touched = centers.sums[thread], centers.touched
    n_samples, k = samples.order.shape[0], centers.weights.shape[0]
    names = load(lanes, NAMES)
    while changed != 0:
        lane = first_lane(changed)
        changed &= changed - np.uint64(1)
        i = tile * WIDTH + lane
        before, after = np.int64(labels[tile, lane]), np.int64(lanes[NAMES, lane])
        labels[tile, lane] = after
        present[tile, after] = 1
        if before < k and unequal(names, repeat(np.float32(before))) == EVERY_LANE:
            present[tile, before] = 0
        if i < n_samples:
            weight = weights[i] if weights.shape[0] else 1.0
            add_row(sums, after, samples.rows, i, weight, samples.scales, samples.limb, 1.0)
            touched[thread, after] = 1
            if before < k:
                add_row(sums, before, samples.rows, i, weight, samples.scales, samples.limb, -1.0)
                touched[thread, before] = 1
