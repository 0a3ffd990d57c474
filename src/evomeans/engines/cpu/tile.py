"""Comparing samples with all centres, 64 samples at a time.

Samples that need it are gathered into a transposed tile of float32, so that every operation runs
over neighbouring samples and vectorises whatever the number of features or centres. Single
precision only proposes: distances too close to call are decided in double precision by the caller.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evomeans.engines.cpu.jit import jit

WIDTH = 64
# The closest centre, three runners-up, and how far the next one is.
RANKS = 5
# The bits of a squared distance larger than any that occurs.
FAR_KEY = np.float32(1e37).view(np.int32)


def name_bits(n_clusters: int) -> int:
    """Bits that hold a centre's index, or ``n_clusters`` itself for none."""
    return n_clusters.bit_length()


@jit
def gather(rows: Any, chosen: Any, first: int, count: int, tile: Any) -> None:
    """Put samples ``chosen[first:first + count]`` into the lanes of the (d, WIDTH) tile."""
    n_features = rows.shape[1]
    for lane in range(count):
        i = chosen[first + lane]
        for t in range(n_features):
            tile[t, lane] = rows[i, t]


@jit(reorder=True)
def rank_centers(tile: Any, centers: Any, count: int, bits: int, squares: Any, keys: Any) -> None:
    """Find the five nearest centres of every lane.

    The last ``bits`` bits of a squared distance in single precision are replaced by the index of
    the centre. Such keys sort like the distances, and carry their names along for free.

    Parameters
    ----------
    tile : (d, WIDTH) array of float32
    centers : (count, d) array of float32
    bits : int
    squares : (WIDTH,) array of float32
        Room to work in; the memory of ``keys[5 * WIDTH:]``.
    keys : (6 * WIDTH,) array of int32, out
        The keys of the nearest centre of all lanes, then those of the second nearest, and so on.
        Where there are fewer than five centres, the index is ``count``.
    """
    n_features = tile.shape[0]
    whole = n_features - n_features % 4
    mask = np.int32(-1) << np.int32(bits)
    nobody = (FAR_KEY & mask) | np.int32(count)
    for lane in range(RANKS * WIDTH):
        keys[lane] = nobody
    for c in range(count):
        for lane in range(WIDTH):
            squares[lane] = np.float32(0.0)
        # Four features a turn: the sums are stored and loaded a quarter as often.
        for t in range(0, whole, 4):
            c0, c1, c2, c3 = centers[c, t], centers[c, t + 1], centers[c, t + 2], centers[c, t + 3]
            x0, x1, x2, x3 = tile[t], tile[t + 1], tile[t + 2], tile[t + 3]
            for lane in range(WIDTH):
                e0, e1 = x0[lane] - c0, x1[lane] - c1
                e2, e3 = x2[lane] - c2, x3[lane] - c3
                squares[lane] += (e0 * e0 + e1 * e1) + (e2 * e2 + e3 * e3)
        for t in range(whole, n_features):
            for lane in range(WIDTH):
                e0 = tile[t, lane] - centers[c, t]
                squares[lane] += e0 * e0
        name = np.int32(c)
        for lane in range(WIDTH):
            key = (keys[5 * WIDTH + lane] & mask) | name
            k0 = keys[lane]
            keys[lane] = min(k0, key)
            key = max(k0, key)
            k1 = keys[WIDTH + lane]
            keys[WIDTH + lane] = min(k1, key)
            key = max(k1, key)
            k2 = keys[2 * WIDTH + lane]
            keys[2 * WIDTH + lane] = min(k2, key)
            key = max(k2, key)
            k3 = keys[3 * WIDTH + lane]
            keys[3 * WIDTH + lane] = min(k3, key)
            key = max(k3, key)
            keys[4 * WIDTH + lane] = min(keys[4 * WIDTH + lane], key)
