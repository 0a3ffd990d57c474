"""k-means++, and draws of samples by their distance to the closest centre.

k-means++: centres drawn one after the other, by squared distance to those drawn before.

After every draw, the distance D of each sample to its closest centre has to be updated. A tile is
skipped if it is too far from the new centre, given an upper bound of D over its samples. In the
other tiles, single precision finds the few samples that may have come nearer, 64 at a time, and
double precision computes how near. Each sample is measured about log k times instead of k times.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.jit import jit
from evomeans.engines.cpu.assignment import UNDERFLOW, locate_center, score, score_error
from evomeans.engines.cpu.bounds import MORE
from evomeans.engines.cpu.layout import (
    CHUNK,
    ENDLESS,
    Samples,
    Scratch,
    State,
    remember_center,
    squared_distance,
    weight_of,
    write_row,
)
from evomeans.engines.cpu.simd import WIDTH, first_lane, highest, less, load, repeat, store
from evomeans.engines.cpu.threads import ABANDONED, meet, nth_item, share
from evomeans.typing import FloatArray, Index, SingleArray


@jit
def set_distances(
    samples: Samples,
    state: State,
    exact: FloatArray,
    power: Index,
    scratch: Scratch,
    thread: int,
    n_threads: int,
) -> None:
    """Set ``scratch.nearby[i]`` to wᵢ‖xᵢ − c‖ᵖ, c the own centre, for a thread's tiles.

    The power p is 1 or 2.
    """
    rows, labels, nearby = samples.rows, state.labels, scratch.nearby
    n_tiles = labels.shape[0]
    for nth in range(n_tiles):
        tile = nth_item(nth, thread, n_threads)
        if tile >= n_tiles:
            break
        for lane in range(min(WIDTH, nearby.shape[0] - tile * WIDTH)):
            i = tile * WIDTH + lane
            value = squared_distance(rows, i, exact, labels[tile, lane])
            if power == 1:
                value = np.sqrt(value)
            nearby[i] = value * weight_of(samples, i)


@jit
def sum_nearby(places: NDArray[np.uint32], scratch: Scratch, thread: int, n_threads: int) -> None:
    """Set ``scratch.partial`` to the sums of ``nearby`` over a thread's chunks of user rows.

    In the user's order, so that the sums do not depend on the tiles.
    """
    nearby, partial = scratch.nearby, scratch.partial
    first, last = share(partial.shape[0], thread, n_threads)
    for chunk in range(first, last):
        total = 0.0
        for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, nearby.shape[0])):
            total += nearby[places[i]]
        partial[chunk] = total


@jit
def all_distances(samples: Samples, exact: FloatArray, distances: FloatArray) -> None:
    """Set ``distances`` (n, k) to those of the user's rows to all centres."""
    n_samples, k = distances.shape
    for j in range(k):
        remember_center(samples.rows, exact, j)
    for i in range(n_samples):
        for j in range(k):
            square = squared_distance(samples.rows, i, exact, j)
            distances[samples.order[i], j] = np.sqrt(square)


@jit
def sum_chunks(partial: FloatArray) -> float:
    """Sum in the order of the chunks."""
    total = 0.0
    for chunk in range(partial.shape[0]):
        total += partial[chunk]
    return total


@jit
def draw_nearby(
    nearby: FloatArray, partial: FloatArray, places: NDArray[np.uint32], quantile: float
) -> np.uint32:
    """Draw a sample with probability proportional to ``nearby``; return its place.

    The samples follow each other in the user's order. Any sample will do if all are zero.
    """
    return draw_at(nearby, partial, places, quantile * sum_chunks(partial))


@jit
def draw_at(
    nearby: FloatArray, partial: FloatArray, places: NDArray[np.uint32], target: float
) -> np.uint32:
    """Return the place of the sample at which the cumulative sum of ``nearby`` exceeds a target."""
    n_samples = nearby.shape[0]
    chunk, last_chunk = 0, partial.shape[0] - 1
    while chunk < last_chunk and partial[chunk] <= target:
        target -= partial[chunk]
        chunk += 1
    for i in range(chunk * CHUNK, n_samples):
        if nearby[places[i]] > target:
            return places[i]
        target -= nearby[places[i]]
    # Rounding has left the target just beyond the end: take the last sample that can be drawn.
    for i in range(n_samples - 1, 0, -1):
        if nearby[places[i]] > 0.0:
            return places[i]
    return places[0]


@jit
def seed(
    samples: Samples,
    exact: FloatArray,
    scratch: Scratch,
    ceilings: SingleArray,
    tile_ceilings: SingleArray,
    gains: FloatArray,
    quantiles: FloatArray,
    chosen: NDArray[np.int64],
    thread: int,
    n_threads: int,
) -> None:
    """Draw centres by D² seeding [1]_.

    Parameters
    ----------
    samples : Samples
    exact : (k, d) array, out
        The centres.
    scratch : Scratch
        ``nearby`` becomes wᵢ·D²ᵢ, with D the distance to the closest of all but the last centre.
    ceilings : (tiles, WIDTH) array
        Working memory: upper bounds of D².
    tile_ceilings : (tiles,) array
        Working memory: upper bounds of D over the samples of a tile.
    gains : (tiles,) array
        Working memory: by how much a candidate lowers Σ wᵢ·D²ᵢ in each tile.
    quantiles : (k, t) array
        Uniform numbers for the t candidates of each centre. The candidate with the largest gain
        becomes the centre. The first centre has only one candidate.
    chosen : (k,) array, out
        Places of the samples that became centres; those not reached stay as they are if the barrier
        says that the team is abandoned.
    thread, n_threads : int

    References
    ----------
    .. [1] Arthur, D. and Vassilvitskii, S. (2007). "k-means++: the advantages of careful seeding".
       SODA 2007, 1027-1035.
    """
    forget_distances(samples, scratch, ceilings, tile_ceilings, thread, n_threads)
    meet(scratch.barrier, n_threads)
    k, n_trials = quantiles.shape
    for j in range(k):
        sum_nearby(samples.places, scratch, thread, n_threads)
        meet(scratch.barrier, n_threads)
        n_looks = n_trials if n_trials > 1 and j > 0 else 0
        # Threads share no variables: each makes the same choice by itself.
        best, most = np.int64(0), -1.0
        # Each candidate is evaluated, then the best is kept. A single candidate is kept at once.
        for trial in range(n_looks + 1):
            keep = trial == n_looks
            drawn = best
            if trial < n_looks or n_looks == 0:
                quantile = quantiles[j, trial]
                drawn = np.int64(
                    draw_nearby(scratch.nearby, scratch.partial, samples.places, quantile)
                )
            place(samples, drawn, exact, j, scratch, thread, n_threads)
            if scratch.barrier[ABANDONED] != 0:
                return
            if keep and thread == 0:
                chosen[j] = drawn
            if keep and j == k - 1:
                return
            lower_tiles(
                samples, exact, j, scratch, ceilings, tile_ceilings, gains, keep, thread, n_threads
            )
            meet(scratch.barrier, n_threads)
            gain = sum_chunks(gains)
            if gain > most:
                best, most = drawn, gain


@jit
def forget_distances(
    samples: Samples,
    scratch: Scratch,
    ceilings: SingleArray,
    tile_ceilings: SingleArray,
    thread: int,
    n_threads: int,
) -> None:
    """Begin without centres: all distances endless, ``nearby`` the weights for the first draw."""
    nearby, n_tiles = scratch.nearby, tile_ceilings.shape[0]
    for nth in range(n_tiles):
        tile = nth_item(nth, thread, n_threads)
        if tile >= n_tiles:
            break
        tile_ceilings[tile] = np.sqrt(ENDLESS)
        store(ceilings, tile, repeat(ENDLESS))
        for i in range(tile * WIDTH, min((tile + 1) * WIDTH, nearby.shape[0])):
            nearby[i] = weight_of(samples, i)


@jit
def place(
    samples: Samples,
    drawn: np.int64,
    exact: FloatArray,
    j: int,
    scratch: Scratch,
    thread: int,
    n_threads: int,
) -> None:
    """Put centre ``j`` onto a sample, for all threads to see."""
    if thread == 0:
        write_row(samples.rows, drawn, exact, j)
        remember_center(samples.rows, exact, j)
    meet(scratch.barrier, n_threads)


@jit
def lower_tiles(
    samples: Samples,
    exact: FloatArray,
    j: int,
    scratch: Scratch,
    ceilings: SingleArray,
    tile_ceilings: SingleArray,
    gains: FloatArray,
    keep: bool,
    thread: int,
    n_threads: int,
) -> None:
    """Set ``gains``: by how much centre ``j`` lowers Σ wᵢ·D²ᵢ in each of a thread's tiles.

    The new distances are stored only if ``keep``.
    """
    offsets, away, chosen = scratch.offsets[thread], scratch.away[thread], scratch.chosen[thread]
    barrier, n_tiles = scratch.barrier, tile_ceilings.shape[0]
    for nth in range(n_tiles):
        tile = nth_item(nth, thread, n_threads)
        if tile >= n_tiles or barrier[ABANDONED] != 0:
            break
        gains[tile] = 0.0
        locate_center(samples.rows, samples, tile, exact, j, 0, offsets, away)
        radius = samples.radii[tile]
        limit = (tile_ceilings[tile] + radius) * MORE
        if away[0] > limit * limit + UNDERFLOW:
            continue
        chosen[0] = j
        score(samples.rows, samples, tile, chosen, 1, scratch, thread)
        error = score_error(samples, tile, away[0])
        square = load(samples.squares, tile) + load(scratch.scores[thread], 0)
        nearer = less(square - (error + error), load(ceilings, tile))
        if nearer != 0:
            gains[tile] = lower_distances(
                samples, exact, j, scratch.nearby, ceilings, tile, nearer, keep
            )
            if keep:
                tile_ceilings[tile] = np.sqrt(highest(load(ceilings, tile))) * MORE


@jit
def lower_distances(
    samples: Samples,
    exact: FloatArray,
    j: int,
    nearby: FloatArray,
    ceilings: SingleArray,
    tile: int,
    nearer: np.uint64,
    keep: bool,
) -> float:
    """Return by how much centre ``j`` lowers Σ wᵢ·D²ᵢ over some samples of a tile.

    ``nearer`` has the bits of those that may be nearer to it; the new distances are stored only if
    ``keep``.
    """
    n_samples, gain = nearby.shape[0], 0.0
    while nearer != 0:
        lane = first_lane(nearer)
        nearer &= nearer - np.uint64(1)
        # The copies that fill up the last tile do not count.
        i = min(tile * WIDTH + lane, n_samples - 1)
        counts = tile * WIDTH + lane == i
        square = squared_distance(samples.rows, i, exact, j)
        value = square * weight_of(samples, i)
        # Before the first centre, ``nearby`` is not a distance but a weight.
        if counts and (value < nearby[i] or j == 0):
            gain += nearby[i] - value
            if keep:
                nearby[i] = value
        ceiling = np.float32(square) * MORE + UNDERFLOW
        if keep and ceiling < ceilings[tile, lane]:
            ceilings[tile, lane] = ceiling
    return gain
