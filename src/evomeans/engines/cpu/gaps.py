"""How far a tile is from any change: one bound for every tile and every centre.

gaps[T, j] is a lower bound of ‖x − c_j‖ − ‖x − c_x‖ over the samples x of tile T that do not belong
to centre j, c_x being their own. As long as it is positive, centre j wins nobody in the tile. When
centres move, every distance changes by at most the length of the move:

    gaps[T, j]  −=  move of c_j  +  largest move of a centre present in T

so most tiles are done with by one subtraction per centre, for 64 samples at once. The others are
compared with the few centres whose gap is used up, which gives these new gaps.

All of this is in single precision, and rounded to the safe side by more than it can be off.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evomeans.compiled.jit import jit
from evomeans.engines.cpu.lanes import (
    bits_float,
    float_bits,
    higher,
    highest,
    load,
    lowest,
    repeat,
    root,
    where_equal,
)
from evomeans.engines.cpu.layout import BEST, FAR, NAMES

# Single-precision results may be off by a few units of 2⁻²⁴; bounds are widened by a little more.
PAD = np.float32(2.0**-21)
MORE = np.float32(1.0) + PAD
LESS = np.float32(1.0) - PAD
NOTHING = np.float32(0.0)


@jit
def widen(state: Any, tile: int, drift: Any, approached: Any) -> Any:
    """Let the gaps of a tile shrink by what the centres moved; return whether any is used up."""
    gaps, present, spread = state.gaps, state.present, state.spread
    k = drift.shape[0]
    moved = np.int32(0)
    for j in range(k):
        moved = max(moved, float_bits(drift[j]) & -np.int32(present[tile, j]))
    own = bits_float(moved)
    signs = np.int32(0)
    for j in range(k):
        gap = (gaps[tile, j] - (approached[j] + own)) * LESS
        gaps[tile, j] = gap
        signs |= float_bits(gap)
    spread[tile] = (spread[tile] + own) * MORE
    return signs < 0


@jit
def renew(
    state: Any,
    tile: int,
    squares: Any,
    chosen: Any,
    count: int,
    scores: Any,
    lanes: Any,
    error: Any,
) -> None:
    """Set the gaps of the centres that a tile was compared with, from their scores.

    Parameters
    ----------
    squares : (tiles, WIDTH) array
        Squared distances of the samples from the middle of their tile.
    lanes : (3, WIDTH) array
        BEST and NAMES of the samples.
    error : float32
        Of a score, at most.
    """
    nothing = repeat(NOTHING)
    square, names = load(squares, tile), load(lanes, NAMES)
    own = root(higher(square + load(lanes, BEST), nothing) + error) * MORE
    square = square - error
    state.spread[tile] = highest(own)
    for a in range(count):
        name = repeat(np.float32(chosen[a]))
        gap = root(higher(square + load(scores, a), nothing)) * LESS - own
        state.gaps[tile, chosen[a]] = lowest(where_equal(names, name, repeat(FAR), gap))
