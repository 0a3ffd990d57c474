"""Where a refinement begins, and what is left of it in the end."""

from __future__ import annotations

import numpy as np

from evomeans.compiled.jit import jit
from evomeans.engines.cpu.lanes import WIDTH
from evomeans.engines.cpu.layout import Centers, FloatArray, Samples, Solution, State
from evomeans.engines.cpu.rows import write_row
from evomeans.engines.cpu.threads import nth_item, share


@jit(inline=False)
def begin(
    parent: Solution, state: State, centers: Centers, inherit: bool, thread: int, n_threads: int
) -> None:
    """Copy a thread's share of the parent, or begin with sums of zero."""
    if inherit:
        copy_state(parent.state, state, thread, n_threads)
        first, last = share(parent.centers.shape[0], thread, n_threads)
        for j in range(first, last):
            for t in range(parent.centers.shape[1]):
                centers.exact[j, t] = parent.centers[j, t]
    totals = parent.sums
    for j in range(totals.shape[0]):
        for limb in range(totals.shape[1]):
            for t in range(totals.shape[2]):
                # One thread has them all.
                own = totals[j, limb, t] if inherit and thread == 0 else 0
                centers.sums[thread, j, limb, t] = own


@jit(inline=False)
def copy_state(parent: State, state: State, thread: int, n_threads: int) -> None:
    """Copy the parent's state for a thread's share of the tiles."""
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
def place_center(
    samples: Samples, target: FloatArray, removed: int, place: int, thread: int, n_threads: int
) -> None:
    """Put a centre onto a sample, if it belongs to a thread's share of the centres."""
    first, last = share(target.shape[0], thread, n_threads)
    if first <= removed < last:
        write_row(samples.rows, place, target, removed)


@jit(inline=False)
def conclude(samples: Samples, centers: Centers, found: Solution, is_limited: bool) -> None:
    """Write down the solution.

    If K-means ``is_limited``, its last assignment has changed clusters, and no move of their
    centres followed that would have set their weights.
    """
    totals = found.sums
    last = totals.shape[2] - 1
    for j in range(totals.shape[0]):
        for limb in range(totals.shape[1]):
            for t in range(totals.shape[2]):
                total = np.int64(0)
                for thread in range(centers.sums.shape[0]):
                    total += centers.sums[thread, j, limb, t]
                totals[j, limb, t] = total
        if is_limited:
            weight = totals[j, 0, last] + totals[j, 1, last] / samples.limb
            centers.weights[j] = weight / samples.scales[last]
        found.weights[j] = centers.weights[j]
        for t in range(last):
            found.centers[j, t] = centers.exact[j, t]


@jit
def count_empty(weights: FloatArray) -> int:
    """Count the clusters that have no weight."""
    count = 0
    for j in range(weights.shape[0]):
        count += weights[j] == 0.0
    return count
