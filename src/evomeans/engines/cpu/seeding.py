"""k-means++: centres drawn one after the other, by squared distance to those drawn before.

After every draw the distance of each sample to its closest centre has to be brought up to date. A
tile that is too far from the new centre, given the farthest that any of its samples is from its
own, is skipped. In the others single precision finds the few samples that may have come nearer, 64
at a time, and double precision says how near: each sample is measured about log k times, not k.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evomeans.compiled.jit import jit
from evomeans.engines.cpu.gaps import MORE
from evomeans.engines.cpu.lanes import WIDTH, first_lane, highest, less, load, repeat, store
from evomeans.engines.cpu.layout import ENDLESS
from evomeans.engines.cpu.reassign import UNDERFLOW
from evomeans.engines.cpu.roulette import draw_nearby, sum_chunks, sum_nearby
from evomeans.engines.cpu.rows import remember_center, squared_distance, write_row
from evomeans.engines.cpu.scores import approach, score
from evomeans.engines.cpu.threads import ABANDONED, meet, nth_item


@jit
def seed(
    samples: Any,
    exact: Any,
    scratch: Any,
    ceilings: Any,
    reach: Any,
    gains: Any,
    quantiles: Any,
    thread: int,
    n_threads: int,
) -> None:
    """Draw centres by D² seeding (Arthur & Vassilvitskii 2007).

    Parameters
    ----------
    samples : Samples
    exact : (k, d) array, out
        The centres.
    scratch : Scratch
        ``nearby`` becomes wᵢ·D²ᵢ, with D the distance to the closest of all but the last centre.
    ceilings : (tiles, WIDTH) array of float32
        Room for upper bounds of D².
    reach : (tiles,) array of float32
        Room for upper bounds of D over the samples of a tile.
    gains : (tiles,) array of float64
        Room for what a candidate saves in a tile.
    quantiles : (k, t) array
        Of each centre's draws. The candidate that saves most becomes the centre; only one is drawn
        for the first centre.
    thread, n_threads : int
    """
    forget_distances(samples, scratch, ceilings, reach, thread, n_threads)
    meet(scratch.barrier, n_threads)
    k, n_trials = quantiles.shape
    for j in range(k):
        sum_nearby(samples.places, scratch, thread, n_threads)
        meet(scratch.barrier, n_threads)
        n_looks = n_trials if n_trials > 1 and j > 0 else 0
        # Every thread comes to the same choice by itself; they share no variables.
        best, most = np.int64(0), -1.0
        # Each candidate is looked at, then the best one kept; the only one is kept at once.
        for trial in range(n_looks + 1):
            keep = trial == n_looks
            drawn = best
            if trial < n_looks or n_looks == 0:
                quantile = quantiles[j, trial]
                drawn = np.int64(
                    draw_nearby(scratch.nearby, scratch.partial, samples.places, quantile)
                )
            place(samples, drawn, exact, j, scratch, thread, n_threads)
            if (keep and j == k - 1) or scratch.barrier[ABANDONED] != 0:
                return
            come_nearer(samples, exact, j, scratch, ceilings, reach, gains, keep, thread, n_threads)
            meet(scratch.barrier, n_threads)
            gain = sum_chunks(gains)
            if gain > most:
                best, most = drawn, gain


@jit
def forget_distances(
    samples: Any, scratch: Any, ceilings: Any, reach: Any, thread: int, n_threads: int
) -> None:
    """Begin without centres: every sample endlessly far, its chance to be drawn its weight."""
    nearby, weights = scratch.nearby, samples.weights
    n_tiles = reach.shape[0]
    for nth in range(n_tiles):
        tile = nth_item(nth, thread, n_threads)
        if tile >= n_tiles:
            break
        reach[tile] = np.sqrt(ENDLESS)
        store(ceilings, tile, repeat(ENDLESS))
        for i in range(tile * WIDTH, min((tile + 1) * WIDTH, nearby.shape[0])):
            nearby[i] = weights[i] if weights.shape[0] else 1.0


@jit
def place(
    samples: Any, drawn: Any, exact: Any, j: int, scratch: Any, thread: int, n_threads: int
) -> None:
    """Put centre ``j`` onto a sample, for all threads to see."""
    if thread == 0:
        write_row(samples.rows, drawn, exact, j)
        remember_center(samples.rows, exact, j)
    meet(scratch.barrier, n_threads)


@jit
def come_nearer(
    samples: Any,
    exact: Any,
    j: int,
    scratch: Any,
    ceilings: Any,
    reach: Any,
    gains: Any,
    keep: bool,
    thread: int,
    n_threads: int,
) -> None:
    """Sum up by how much centre ``j`` lowers wᵢ·D²ᵢ in a thread's tiles, and maybe lower it.

    Parameters
    ----------
    gains : (tiles,) array, out
    keep : bool
        Whether to write the new distances down, or to look only.
    """
    offsets, away, chosen = scratch.offsets[thread], scratch.away[thread], scratch.chosen[thread]
    n_tiles = reach.shape[0]
    for nth in range(n_tiles):
        tile = nth_item(nth, thread, n_threads)
        if tile >= n_tiles:
            break
        gains[tile] = 0.0
        approach(samples.rows, samples, tile, exact, j, 0, offsets, away)
        radius = samples.radii[tile]
        limit = (reach[tile] + radius) * MORE
        if away[0] > limit * limit + UNDERFLOW:
            continue
        chosen[0] = j
        score(samples.rows, samples, tile, chosen, 1, scratch, thread)
        extent = np.sqrt(away[0]) + radius
        error = samples.roundoff * extent * extent + UNDERFLOW
        square = load(samples.squares, tile) + load(scratch.scores[thread], 0)
        nearer = less(square - (error + error), load(ceilings, tile))
        if nearer != 0:
            gains[tile] = measure_lanes(
                samples, exact, j, scratch.nearby, ceilings, tile, nearer, keep
            )
            if keep:
                reach[tile] = np.sqrt(highest(load(ceilings, tile))) * MORE


@jit
def measure_lanes(
    samples: Any,
    exact: Any,
    j: int,
    nearby: Any,
    ceilings: Any,
    tile: int,
    nearer: Any,
    keep: bool,
) -> float:
    """Measure the samples of a tile that may be nearer to centre ``j``; return what that saves."""
    n_samples, weights = nearby.shape[0], samples.weights
    gain = 0.0
    while nearer != 0:
        lane = first_lane(nearer)
        nearer &= nearer - np.uint64(1)
        # The last tile is filled up with copies of its last sample, which count for nothing.
        i = min(tile * WIDTH + lane, n_samples - 1)
        counts = tile * WIDTH + lane == i
        square = squared_distance(samples.rows, i, exact, j)
        value = square * weights[i] if weights.shape[0] else square
        # Before the first centre, what stands there is no distance.
        if counts and (value < nearby[i] or j == 0):
            gain += nearby[i] - value
            if keep:
                nearby[i] = value
        ceiling = np.float32(square) * MORE + UNDERFLOW
        if keep and ceiling < ceilings[tile, lane]:
            ceilings[tile, lane] = ceiling
    return gain
