"""Bounds: how far the samples of a tile are from changing to a centre.

For every tile T and every centre j there is a *gap*, a lower bound of

    ‖x − c_j‖ − ‖x − c_x‖

over the samples x of T that belong to another centre c_x than c_j. While it is positive, centre j
wins no sample of the tile. When centres move, each distance changes by at most the length of the
move:

    gaps[T, j]  −=  move of c_j  +  largest move of a centre present in T
    spread[T]   +=  largest move of a centre present in T

where the *spread* is an upper bound of ‖x − c_x‖ in T. So one subtraction per centre deals with
most tiles, for 64 samples at once. The other tiles are compared with the few centres whose gap is
used up, and this comparison gives them new gaps.

All of this is in single precision, rounded to the safe side by more than it can be off.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.jit import jit
from evomeans.engines.cpu.layout import BEST, CLOSEST, FAR, LESS, MORE, NOTHING, State
from evomeans.engines.cpu.simd import (
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
from evomeans.typing import SingleArray


@jit
def shrink_gaps(state: State, tile: int, drift: SingleArray, approached: SingleArray) -> np.bool_:
    """Reduce the gaps of a tile by what the centres moved; return whether any is used up.

    ``drift`` and ``approached`` are those of :class:`~evomeans.engines.cpu.layout.Centers`.
    """
    gaps, present, spread = state.gaps, state.present, state.spread
    k = drift.shape[0]
    # As integers: the bits of non-negative floats are in the order of the floats, and only integer
    # maxima are vectorised. −1 is all bits and keeps a drift; −0 is none and masks it out.
    moved = np.int32(0)
    for j in range(k):
        moved = max(moved, float_bits(drift[j]) & -np.int32(present[tile, j]))
    own = bits_float(moved)
    # The highest bit is the sign: after OR of all gaps it is set if any of them is negative.
    signs = np.int32(0)
    for j in range(k):
        gap = (gaps[tile, j] - (approached[j] + own)) * LESS
        gaps[tile, j] = gap
        signs |= float_bits(gap)
    spread[tile] = (spread[tile] + own) * MORE
    return signs < 0


@jit
def renew_gaps(
    state: State,
    tile: int,
    squares: SingleArray,
    chosen: NDArray[np.int32],
    count: int,
    scores: SingleArray,
    lanes: SingleArray,
    error: np.float32,
) -> None:
    """Set the spread of a tile, and the gaps of the centres it was compared with, from scores.

    ``squares`` (tiles, WIDTH) are squared distances of the samples from the middle of their tile;
    ``lanes`` have BEST and CLOSEST; ``error`` is an upper bound of the error of a score.
    """
    nothing = repeat(NOTHING)
    square, closest = load(squares, tile), load(lanes, CLOSEST)
    own = root(higher(square + load(lanes, BEST), nothing) + error) * MORE
    square = square - error
    state.spread[tile] = highest(own)
    for a in range(count):
        name = repeat(np.float32(chosen[a]))
        gap = root(higher(square + load(scores, a), nothing)) * LESS - own
        state.gaps[tile, chosen[a]] = lowest(where_equal(closest, name, repeat(FAR), gap))
