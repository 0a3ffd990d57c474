"""The closest and the second closest centre of every sample.

Without its closest centre, a sample would belong to the second closest. The difference of the two
distances, summed over a cluster, is what it would cost to remove its centre.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.jit import jit
from evomeans.engines.cpu.assignment import find_lowest, locate_center, score, score_error
from evomeans.engines.cpu.layout import (
    NOTHING,
    SECOND,
    Samples,
    Scratch,
    remember_center,
    squared_distance,
)
from evomeans.engines.cpu.simd import WIDTH, first_lane, less, load
from evomeans.engines.cpu.threads import meet, nth_item
from evomeans.typing import FloatArray


@jit
def find_two_closest(
    samples: Samples,
    exact: FloatArray,
    scratch: Scratch,
    labels: NDArray[np.int32],
    others: NDArray[np.int32],
    first: FloatArray,
    second: FloatArray,
    thread: int,
    n_threads: int,
) -> None:
    """Find the two centres that are closest to each sample of a thread's tiles.

    Parameters
    ----------
    samples : Samples
    exact : (k, d) array
        The centres.
    scratch : Scratch
    labels, others : (n,) arrays, out
        The closest and the second closest centre, by place. The others stay as they are if k = 1.
    first, second : (n,) arrays, infinite, out
        Squared distances to the two closest centres, by place. The second stays infinite if k = 1.
    thread, n_threads : int
    """
    chosen, offsets, away = scratch.chosen[thread], scratch.offsets[thread], scratch.away[thread]
    scores, lanes = scratch.scores[thread], scratch.lanes[thread]
    k, n_tiles = exact.shape[0], samples.radii.shape[0]
    for j in range(k):
        chosen[j] = j
        if thread == 0:
            remember_center(samples.rows, exact, j)
    meet(scratch.barrier, n_threads)
    for nth in range(n_tiles):
        tile = nth_item(nth, thread, n_threads)
        if tile >= n_tiles:
            break
        farthest = NOTHING
        for j in range(k):
            away[j] = locate_center(samples, tile, exact, j, offsets[j])
            farthest = max(farthest, away[j])
        score(samples, tile, scratch, thread, k)
        find_lowest(scores, chosen, k, lanes)
        error = score_error(samples, tile, farthest)
        limit = load(lanes, SECOND) + (error + error)
        for j in range(k):
            close = less(load(scores, j), limit)
            if close != 0:
                update_two(samples, exact, j, tile, close, labels, others, first, second)


@jit
def update_two(
    samples: Samples,
    exact: FloatArray,
    j: int,
    tile: int,
    close: np.uint64,
    labels: NDArray[np.int32],
    others: NDArray[np.int32],
    first: FloatArray,
    second: FloatArray,
) -> None:
    """Compare centre ``j`` in double precision with the two closest so far.

    ``close`` has the bits of the samples of the tile for which it may be one of the two.
    """
    n_samples = first.shape[0]
    while close != 0:
        lane = first_lane(close)
        close &= close - np.uint64(1)
        i = tile * WIDTH + lane
        if i < n_samples:
            square = squared_distance(samples.rows, i, exact, j)
            if square < first[i]:
                second[i], others[i] = first[i], labels[i]
                first[i], labels[i] = square, j
            elif square < second[i]:
                second[i], others[i] = square, j
