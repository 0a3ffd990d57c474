"""Distances of samples to their own centres, their sums, and draws of samples by distance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.jit import jit
from evomeans.engines.cpu.lanes import WIDTH
from evomeans.engines.cpu.layout import CHUNK, FloatArray, Index, Samples, Scratch, State
from evomeans.engines.cpu.rows import remember_center, squared_distance, weight_of
from evomeans.engines.cpu.threads import nth_item, share


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
