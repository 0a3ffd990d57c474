"""A whole refinement in one kernel: take over, relocate, then Lloyd's iterations to the end."""

from __future__ import annotations

from typing import Any

import numpy as np

from evomeans.compiled.jit import jit
from evomeans.compiled.vectors import squared_difference
from evomeans.engines.cpu.gaps import MORE, NOTHING
from evomeans.engines.cpu.hartigan import mark, visit
from evomeans.engines.cpu.lanes import WIDTH
from evomeans.engines.cpu.layout import FAR, NOWHERE
from evomeans.engines.cpu.reassign import forget, reassign
from evomeans.engines.cpu.roulette import draw_nearby, measure_own, sum_chunks, sum_nearby
from evomeans.engines.cpu.rows import remember_center, write_row
from evomeans.engines.cpu.sums import update_center
from evomeans.engines.cpu.threads import ABANDONED, meet, nth_item
from evomeans.engines.rules import MAX_ITERATIONS

INERTIA, ITERATIONS = range(2)
BEGIN, PLACE, LLOYD = range(3)
# A move that single precision would call none.
SMALLEST = np.float32(1e-37)


@jit
def refine(
    samples: Any,
    parent: Any,
    state: Any,
    centers: Any,
    scratch: Any,
    target: Any,
    inherit: bool,
    removed: int,
    quantile: float,
    power: int,
    steps: int,
    single_moves: bool,
    thread: int,
    n_threads: int,
) -> None:
    """Run K-means from the centres ``target``.

    Parameters
    ----------
    samples : Samples
    parent : State
        Consistent with ``centers.exact`` and ``centers.sums`` if ``inherit``; else the sums are
        zero.
    state : State, out
        May be ``parent`` itself.
    centers : Centers, in and out
    scratch : Scratch
        ``numbers`` receives inertia and iterations.
    target : (k, d) array
    inherit : bool
        Whether to begin from ``parent``.
    removed : int
        The centre to be put onto a sample drawn by distance; −1 for none.
    quantile, power
        Of that draw.
    steps : int
        Lloyd's iterations at most: moves of the centres to their means, and assignments. 0 to
        assign the samples to the target and stop there.
    single_moves : bool
        Whether to go on from the fixed point by Hartigan's moves, until there are none.
    thread, n_threads : int
    """
    if inherit:
        take_over(parent, state, thread, n_threads)
    else:
        forget(state, centers.weights.shape[0], thread, n_threads)
    # Typed: Numba would compile what takes a literal number once more for it.
    stage, squared = np.int64(BEGIN), np.int64(2)
    iterations = 0
    while iterations < MAX_ITERATIONS:
        move_centers(samples, centers, scratch, stage, target, removed, quantile, thread, n_threads)
        meet(scratch.barrier, n_threads)
        if single_moves and nothing_moved(scratch.farthest):
            mark(samples, state, centers, scratch, thread, n_threads)
            meet(scratch.barrier, n_threads)
            if thread == 0:
                visit(samples, state, centers, scratch)
            meet(scratch.barrier, n_threads)
        if nothing_moved(scratch.farthest) or scratch.barrier[ABANDONED] != 0:
            break
        iterations += 1
        gone = removed if stage == BEGIN else -1
        reassign(samples, state, centers, scratch, gone, thread, n_threads)
        meet(scratch.barrier, n_threads)
        if stage == BEGIN and removed >= 0:
            stage = np.int64(PLACE)
            measure(samples, state, centers, scratch, power, thread, n_threads)
        elif steps > 0:
            stage = np.int64(LLOYD)
            steps -= 1
        else:
            break
    if scratch.barrier[ABANDONED] != 0:
        return
    measure(samples, state, centers, scratch, squared, thread, n_threads)
    if thread == 0:
        scratch.numbers[ITERATIONS] = iterations


@jit
def step(
    samples: Any,
    state: Any,
    centers: Any,
    scratch: Any,
    target: Any,
    fresh: bool,
    gone: int,
    thread: int,
    n_threads: int,
) -> None:
    """Move the centres to ``target`` and bring labels and sums up to date: a single assignment.

    Parameters
    ----------
    state : State, in and out
        Consistent with ``centers.exact`` and ``centers.sums``, unless ``fresh``.
    centers : Centers, in and out
    target : (k, d) array
    fresh : bool
        Whether nothing is known of the samples; the sums are zero then.
    gone : int
        A centre that goes nowhere instead; −1 for none.
    thread, n_threads : int
    """
    if fresh:
        forget(state, centers.weights.shape[0], thread, n_threads)
    stage = np.int64(BEGIN)
    move_centers(samples, centers, scratch, stage, target, gone, 0.0, thread, n_threads)
    meet(scratch.barrier, n_threads)
    reassign(samples, state, centers, scratch, gone, thread, n_threads)
    meet(scratch.barrier, n_threads)


@jit
def measure(
    samples: Any, state: Any, centers: Any, scratch: Any, power: Any, thread: int, n_threads: int
) -> None:
    """Sum up the weighted distances to the own centre, to this power, into ``scratch``."""
    measure_own(samples, state, centers.exact, power, scratch, thread, n_threads)
    meet(scratch.barrier, n_threads)
    sum_nearby(samples.places, scratch, thread, n_threads)
    meet(scratch.barrier, n_threads)
    if thread == 0:
        scratch.numbers[INERTIA] = sum_chunks(scratch.partial)
    meet(scratch.barrier, n_threads)


@jit
def take_over(parent: Any, state: Any, thread: int, n_threads: int) -> None:
    """Copy a parent's state of a thread's share of the tiles."""
    n_tiles = state.spread.shape[0]
    for nth in range(n_tiles):
        tile = nth_item(nth, thread, n_threads)
        if tile >= n_tiles:
            break
        for lane in range(WIDTH):
            state.labels[tile, lane] = parent.labels[tile, lane]
        state.spread[tile] = parent.spread[tile]
        for j in range(state.gaps.shape[1]):
            state.gaps[tile, j] = parent.gaps[tile, j]
            state.present[tile, j] = parent.present[tile, j]


@jit
def move_centers(
    samples: Any,
    centers: Any,
    scratch: Any,
    stage: Any,
    target: Any,
    removed: int,
    quantile: float,
    thread: int,
    n_threads: int,
) -> None:
    """Move a thread's share of the centres to where the stage wants them, and measure the move.

    BEGIN: to the target, a removed centre to nowhere. PLACE: the removed one onto a drawn sample.
    LLOYD: to the means of their clusters.
    """
    exact, before, drift = centers.exact, centers.before, centers.drift
    first, last = share(drift.shape[0], thread, n_threads)
    # Only in Lloyd's iterations does it matter whether anything has moved.
    farthest = NOTHING if stage == LLOYD else FAR
    for j in range(first, last):
        drift[j] = centers.approached[j] = NOTHING
        if (stage == LLOYD and not is_touched(centers.touched, j)) or (
            stage == PLACE and j != removed
        ):
            continue
        centers.changed[j] = 1
        for t in range(exact.shape[1]):
            before[j, t] = exact[j, t]
        if stage == BEGIN:
            for t in range(exact.shape[1]):
                exact[j, t] = NOWHERE if j == removed else target[j, t]
            # Its mean is due at the first step even if no sample changes its label.
            centers.touched[thread, j] = 1
        elif stage == PLACE:
            drawn = draw_nearby(scratch.nearby, scratch.partial, samples.places, quantile)
            write_row(samples.rows, drawn, exact, removed)
        else:
            sums, totals = centers.sums, scratch.totals[thread]
            update_center(sums, samples.scales, samples.limb, exact, centers.weights, j, totals)
        remember_center(samples.rows, exact, j)
        moved = np.sqrt(squared_difference(before, j, exact, j))
        drift[j] = max(np.float32(moved) * MORE, SMALLEST if moved > 0.0 else NOTHING)
        # Leaving brings nobody nearer.
        centers.approached[j] = NOTHING if stage == BEGIN and j == removed else drift[j]
        farthest = max(farthest, drift[j])
    scratch.farthest[thread, 0] = farthest


@jit
def nothing_moved(farthest: Any) -> Any:
    """Whether no thread has moved a centre."""
    total = NOTHING
    for thread in range(farthest.shape[0]):
        total += farthest[thread, 0]
    return total == NOTHING


@jit
def is_touched(touched: Any, j: int) -> bool:
    """Whether the sums of a cluster have changed; takes notice of it."""
    found = False
    for thread in range(touched.shape[0]):
        if touched[thread, j]:
            touched[thread, j] = 0
            found = True
    return found


@jit
def share(count: int, thread: int, n_threads: int) -> Any:
    """Return the first and the last of ``count`` items that a thread takes."""
    return count * thread // n_threads, count * (thread + 1) // n_threads
