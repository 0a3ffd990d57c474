"""k-means++, and draws of samples by their distance to the closest centre.

After every draw, the distance D of each sample to its closest centre has to be updated. A tile is
skipped if it is too far from the new centre, given an upper bound of D over its samples. In the
other tiles, single precision finds the few samples that may have come nearer, 64 at a time, and
double precision computes how near. All candidates of a centre share one pass over the tiles, whose
bits tell which samples to measure again for the candidate that is kept.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.bundle import bundle
from evomeans.compiled.jit import jit
from evomeans.engines.cpu.assignment import UNDERFLOW, locate_center, score, score_error
from evomeans.engines.cpu.layout import (
    CHUNK,
    ENDLESS,
    MORE,
    Samples,
    Scratch,
    State,
    aligned,
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
    """Set ``scratch.nearby[i]`` to wᵢ‖xᵢ − c‖ᵖ, with the own centre c and p = 1 or 2."""
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
    """Set ``scratch.partial`` to sums of ``nearby`` over a thread's chunks, in the user's order."""
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
    """Draw a sample by its share of ``nearby``, any if all are zero; return its place."""
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


@bundle
class Candidates(NamedTuple):
    """Samples of which one becomes the next centre, and what each of them would gain.

    * ``drawn`` (t,): their places.
    * ``rows`` (t, d): the samples.
    * ``gains`` (t, tiles): by how much each lowers Σ wᵢ·D²ᵢ in each tile.
    * ``nearer`` (t, tiles): the samples of the tile that may be nearer to it than D, as bits.
    * ``ceilings`` (tiles, WIDTH): upper bounds of D².
    * ``tile_ceilings`` (tiles,): upper bounds of D over the samples of a tile.
    """

    drawn: NDArray[np.int64]
    rows: FloatArray
    gains: FloatArray
    nearer: NDArray[np.uint64]
    ceilings: SingleArray
    tile_ceilings: SingleArray

    @classmethod
    def allocate(cls, n_trials: int, n_tiles: int, n_features: int) -> Candidates:
        """Allocate candidates; their contents are undefined."""
        drawn, rows = np.zeros(n_trials, np.int64), np.zeros((n_trials, n_features))
        nearer, gains = np.zeros((n_trials, n_tiles), np.uint64), np.zeros((n_trials, n_tiles))
        ceilings = aligned((n_tiles, WIDTH), np.float32), np.zeros(n_tiles, np.float32)
        return cls(drawn, rows, gains, nearer, *ceilings)


@jit
def seed(
    samples: Samples,
    exact: FloatArray,
    scratch: Scratch,
    candidates: Candidates,
    quantiles: FloatArray,
    chosen: NDArray[np.int64],
    thread: int,
    n_threads: int,
) -> None:
    """Draw centres by D² seeding [1]_.

    All candidates of a centre are compared with the samples in one pass: it is the memory that
    takes the time, and each tile is read once.

    * ``scratch``: ``nearby`` becomes wᵢ·D²ᵢ, with D the distance to the closest of all but the last
      centre.
    * ``quantiles`` (k, t): uniform numbers for the t candidates of each centre, no more than k. The
      candidate with the largest gain becomes the centre. The first centre has only one candidate.
    * ``chosen`` (k,), out: places of the samples that became centres; those not reached stay as
      they are if the barrier says that the team is abandoned.

    References
    ----------
    .. [1] Arthur, D. and Vassilvitskii, S. (2007). "k-means++: the advantages of careful seeding".
       SODA 2007, 1027-1035.
    """
    forget_distances(samples, scratch, candidates, thread, n_threads)
    meet(scratch.barrier, n_threads)
    k = quantiles.shape[0]
    for j in range(k):
        sum_nearby(samples.places, scratch, thread, n_threads)
        meet(scratch.barrier, n_threads)
        n_trials = quantiles.shape[1] if j > 0 else 1
        place(samples, scratch, candidates, quantiles[j], n_trials, thread, n_threads)
        best = 0
        # The last centre changes no distance that anybody asks for.
        if n_trials > 1 or j < k - 1:
            compare_candidates(samples, scratch, candidates, n_trials, thread, n_threads)
            meet(scratch.barrier, n_threads)
            # Threads share no variables: each makes the same choice by itself.
            best = most_gaining(candidates.gains, n_trials)
        if scratch.barrier[ABANDONED] != 0:
            return
        if thread == 0:
            chosen[j] = candidates.drawn[best]
            for t in range(exact.shape[1]):
                exact[j, t] = candidates.rows[best, t]
        if j < k - 1:
            keep_candidate(samples, scratch, candidates, best, j == 0, thread, n_threads)
        # Before the next candidates take the places of these.
        meet(scratch.barrier, n_threads)


@jit
def most_gaining(gains: FloatArray, n_trials: int) -> int:
    """Return the candidate with the largest gain, the first on ties."""
    best, most = 0, -1.0
    for a in range(n_trials):
        gain = sum_chunks(gains[a])
        if gain > most:
            best, most = a, gain
    return best


@jit
def forget_distances(
    samples: Samples, scratch: Scratch, candidates: Candidates, thread: int, n_threads: int
) -> None:
    """Begin without centres: all distances endless, ``nearby`` the weights for the first draw."""
    nearby, n_tiles = scratch.nearby, candidates.tile_ceilings.shape[0]
    for nth in range(n_tiles):
        tile = nth_item(nth, thread, n_threads)
        if tile >= n_tiles:
            break
        candidates.tile_ceilings[tile] = np.sqrt(ENDLESS)
        store(candidates.ceilings, tile, repeat(ENDLESS))
        for i in range(tile * WIDTH, min((tile + 1) * WIDTH, nearby.shape[0])):
            nearby[i] = weight_of(samples, i)


@jit
def place(
    samples: Samples,
    scratch: Scratch,
    candidates: Candidates,
    quantiles: FloatArray,
    n_trials: int,
    thread: int,
    n_threads: int,
) -> None:
    """Draw the candidates of a centre, for all threads to see."""
    if thread == 0:
        for a in range(n_trials):
            drawn = draw_nearby(scratch.nearby, scratch.partial, samples.places, quantiles[a])
            candidates.drawn[a] = drawn
            write_row(samples.rows, np.int64(drawn), candidates.rows, a)
            remember_center(samples.rows, candidates.rows, a)
    meet(scratch.barrier, n_threads)


@jit
def compare_candidates(
    samples: Samples,
    scratch: Scratch,
    candidates: Candidates,
    n_trials: int,
    thread: int,
    n_threads: int,
) -> None:
    """Set ``gains`` and ``nearer`` of all candidates in each of a thread's tiles."""
    rows, gains, nearer = candidates.rows, candidates.gains, candidates.nearer
    offsets, away, chosen = scratch.offsets[thread], scratch.away[thread], scratch.chosen[thread]
    barrier, n_tiles = scratch.barrier, candidates.tile_ceilings.shape[0]
    for nth in range(n_tiles):
        tile = nth_item(nth, thread, n_threads)
        if tile >= n_tiles or barrier[ABANDONED] != 0:
            break
        limit = (candidates.tile_ceilings[tile] + samples.radii[tile]) * MORE
        count = 0
        for a in range(n_trials):
            gains[a, tile], nearer[a, tile] = 0.0, np.uint64(0)
            away[count] = locate_center(samples, tile, rows, a, offsets[count])
            chosen[count] = a
            count += away[count] <= limit * limit + UNDERFLOW
        if count == 0:
            continue
        score(samples, tile, scratch, thread, count)
        squares, ceilings = load(samples.squares, tile), load(candidates.ceilings, tile)
        for b in range(count):
            a = chosen[b]
            error = score_error(samples, tile, away[b])
            square = squares + load(scratch.scores[thread], b)
            bits = less(square - (error + error), ceilings)
            if bits != 0:
                nearer[a, tile] = bits
                gains[a, tile] = gain_of(samples, rows, a, scratch.nearby, tile, bits)


@jit
def gain_of(
    samples: Samples, rows: FloatArray, a: int, nearby: FloatArray, tile: int, nearer: np.uint64
) -> float:
    """Return by how much a candidate lowers Σ wᵢ·D²ᵢ over the samples of a tile with these bits."""
    gain = 0.0
    while nearer != 0:
        lane = first_lane(nearer)
        nearer &= nearer - np.uint64(1)
        i = tile * WIDTH + lane
        # The copies that fill up the last tile do not count.
        if i >= nearby.shape[0]:
            break
        value = squared_distance(samples.rows, i, rows, a) * weight_of(samples, i)
        if value < nearby[i]:
            gain += nearby[i] - value
    return gain


@jit
def keep_candidate(
    samples: Samples,
    scratch: Scratch,
    candidates: Candidates,
    a: int,
    is_first: bool,
    thread: int,
    n_threads: int,
) -> None:
    """Lower the distances of a thread's tiles to those from a candidate, which becomes a centre."""
    n_tiles, ceilings = candidates.tile_ceilings.shape[0], candidates.ceilings
    for nth in range(n_tiles):
        tile = nth_item(nth, thread, n_threads)
        if tile >= n_tiles:
            break
        bits = candidates.nearer[a, tile]
        if bits != 0:
            lower_distances(samples, scratch.nearby, candidates, a, tile, bits, is_first)
            candidates.tile_ceilings[tile] = np.sqrt(highest(load(ceilings, tile))) * MORE


@jit
def lower_distances(
    samples: Samples,
    nearby: FloatArray,
    candidates: Candidates,
    a: int,
    tile: int,
    nearer: np.uint64,
    is_first: bool,
) -> None:
    """Lower the distances of the samples of a tile with these bits."""
    n_samples, ceilings = nearby.shape[0], candidates.ceilings
    while nearer != 0:
        lane = first_lane(nearer)
        nearer &= nearer - np.uint64(1)
        # The copies that fill up the last tile have bounds, but no distances.
        i = min(tile * WIDTH + lane, n_samples - 1)
        square = squared_distance(samples.rows, i, candidates.rows, a)
        value = square * weight_of(samples, i)
        # Before the first centre, ``nearby`` is not a distance but a weight.
        if tile * WIDTH + lane == i and (value < nearby[i] or is_first):
            nearby[i] = value
        ceiling = np.float32(square) * MORE + UNDERFLOW
        if ceiling < ceilings[tile, lane]:
            ceilings[tile, lane] = ceiling
