"""Exact distances to the own centre, their sums, and the draw of a sample from the mixture."""

from __future__ import annotations

from typing import Any

import numpy as np

from evomeans.engines.cpu.jit import jit
from evomeans.engines.cpu.layout import CHUNK
from evomeans.engines.cpu.moves import MORE
from evomeans.engines.cpu.rows import remember_centers, squared_distance


@jit
def measure_own(
    samples: Any, state: Any, exact: Any, power: Any, scratch: Any, first: int, last: int
) -> None:
    """Weighted distances to the own centre, per sample and summed per chunk.

    Parameters
    ----------
    power : {1, 2}
        ``scratch.nearby[i]`` becomes wᵢ·‖xᵢ − c‖ to this power.
    first, last : int
        Samples; ``first`` is a multiple of CHUNK.
    """
    rows, weights = samples.rows, samples.weights
    names, upper = state.names, state.upper
    nearby, partial = scratch.nearby, scratch.partial
    for begin in range(first, last, CHUNK):
        total = 0.0
        for i in range(begin, min(begin + CHUNK, last)):
            square = squared_distance(rows, i, exact, names[i, 0])
            distance = np.sqrt(square)
            upper[i] = np.float32(distance) * MORE
            value = distance if power == 1 else square
            if weights.shape[0]:
                value *= weights[i]
            nearby[i] = value
            total += value
        partial[begin // CHUNK] = total


@jit
def measure_all(rows: Any, exact: Any, copy: Any, drift: Any, distances: Any) -> None:
    """Distances of all samples to all centres, into the (n, k) array ``distances``."""
    n_samples, k = distances.shape
    remember_centers(rows, exact, k, copy, drift, True)
    for i in range(n_samples):
        for j in range(k):
            distances[i, j] = np.sqrt(squared_distance(rows, i, exact, j))


@jit
def sum_chunks(partial: Any) -> float:
    """Sum in the order of the chunks."""
    total = 0.0
    for chunk in range(partial.shape[0]):
        total += partial[chunk]
    return total


@jit
def draw_nearby(nearby: Any, partial: Any, quantile: float) -> int:
    """Return the sample whose share of the sum of ``nearby`` holds the quantile; −1 if none."""
    n_samples = nearby.shape[0]
    target = quantile * sum_chunks(partial)
    chunk, last_chunk = 0, partial.shape[0] - 1
    while chunk < last_chunk and partial[chunk] <= target:
        target -= partial[chunk]
        chunk += 1
    for i in range(chunk * CHUNK, n_samples):
        if nearby[i] > target:
            return i
        target -= nearby[i]
    # Rounding has left the target just beyond the end: the last sample that can be drawn.
    for i in range(n_samples - 1, -1, -1):
        if nearby[i] > 0.0:
            return i
    return -1
