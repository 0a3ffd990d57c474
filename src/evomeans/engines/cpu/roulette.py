"""Exact distances to the own centre, their sums, and the draw of a sample from the mixture."""

from __future__ import annotations

from typing import Any

import numpy as np

from evomeans.compiled.jit import jit
from evomeans.engines.cpu.lanes import WIDTH
from evomeans.engines.cpu.layout import CHUNK
from evomeans.engines.cpu.rows import remember_center, squared_distance
from evomeans.engines.cpu.threads import nth_item


@jit
def measure_own(
    samples: Any,
    state: Any,
    exact: Any,
    power: Any,
    scratch: Any,
    thread: int,
    n_threads: int,
) -> None:
    """Weighted distances to the own centre, for a thread's share of the tiles.

    Parameters
    ----------
    power : {1, 2}
        ``scratch.nearby[i]`` becomes wᵢ·‖xᵢ − c‖ to this power.
    """
    rows, weights = samples.rows, samples.weights
    labels, nearby = state.labels, scratch.nearby
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
            if weights.shape[0]:
                value *= weights[i]
            nearby[i] = value


@jit
def sum_nearby(places: Any, scratch: Any, thread: int, n_threads: int) -> None:
    """Sum the distances per chunk, in the user's order: the sum does not depend on the tiles."""
    nearby, partial = scratch.nearby, scratch.partial
    n_chunks = partial.shape[0]
    for chunk in range(n_chunks * thread // n_threads, n_chunks * (thread + 1) // n_threads):
        total = 0.0
        for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, nearby.shape[0])):
            total += nearby[places[i]]
        partial[chunk] = total


@jit
def measure_all(samples: Any, exact: Any, distances: Any) -> None:
    """Distances of all samples to all centres, into the (n, k) array ``distances``."""
    n_samples, k = distances.shape
    for j in range(k):
        remember_center(samples.rows, exact, j)
    for i in range(n_samples):
        for j in range(k):
            square = squared_distance(samples.rows, i, exact, j)
            distances[samples.order[i], j] = np.sqrt(square)


@jit
def sum_chunks(partial: Any) -> float:
    """Sum in the order of the chunks."""
    total = 0.0
    for chunk in range(partial.shape[0]):
        total += partial[chunk]
    return total


@jit
def draw_nearby(nearby: Any, partial: Any, places: Any, quantile: float) -> Any:
    """Return the place of the sample whose share of the sum of ``nearby`` holds the quantile.

    Shares follow each other in the user's order. Any sample will do if all distances are zero.
    """
    return draw_at(nearby, partial, places, quantile * sum_chunks(partial))


@jit
def draw_at(nearby: Any, partial: Any, places: Any, target: float) -> Any:
    """Return the place of the sample at which the cumulated sum of ``nearby`` exceeds a target."""
    n_samples = nearby.shape[0]
    chunk, last_chunk = 0, partial.shape[0] - 1
    while chunk < last_chunk and partial[chunk] <= target:
        target -= partial[chunk]
        chunk += 1
    for i in range(chunk * CHUNK, n_samples):
        if nearby[places[i]] > target:
            return places[i]
        target -= nearby[places[i]]
    # Rounding has left the target just beyond the end: the last sample that can be drawn.
    for i in range(n_samples - 1, 0, -1):
        if nearby[places[i]] > 0.0:
            return places[i]
    return places[0]
