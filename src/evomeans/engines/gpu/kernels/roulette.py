"""Distances to the own centre, their sums, and the draw of a sample by its share of them."""

from __future__ import annotations

import triton.language as tl

from evomeans.engines.gpu.kernels import jit


@jit
def measure_kernel(
    rows,
    weights,
    centers,
    labels,
    power,
    nearby,
    partial,
    active,
    n_active,
    n,
    n_tiles,
    bound,
    k,
    d,
    WEIGHTED: tl.constexpr,
    TILE: tl.constexpr,
    ROWS: tl.constexpr,
    STEP: tl.constexpr,
):
    """wᵢ‖xᵢ − c‖ or its square for a tile of samples of one solution, and the sum of the tile.

    ``power`` is 1 for distances and 2 for their squares. The order of summation depends on n alone.

    Shapes: rows (n, d); centers (B, k, d); power (B,); nearby (B, n); partial (B, n_tiles).
    """
    pid = tl.program_id(0)
    slot = pid % bound
    if slot >= tl.load(n_active):
        return
    b = tl.load(active + slot).to(tl.int64)
    tile = (pid // bound).to(tl.int64)
    root = tl.load(power + b) == 1
    total = tl.full((), 0.0, tl.float64)
    for begin in range(0, TILE, ROWS):
        own = tile * TILE + begin + tl.arange(0, ROWS)
        exists = own < n
        label = tl.load(labels + b * n + own, mask=exists, other=0).to(tl.int64)
        squares = tl.zeros((ROWS, STEP), tl.float64)
        for t in range(0, d, STEP):
            steps = t + tl.arange(0, STEP)
            is_meant = exists[:, None] & (steps[None, :] < d)
            x = tl.load(rows + own[:, None] * d + steps[None, :], mask=is_meant, other=0.0)
            c = tl.load(
                centers + (b * k + label[:, None]) * d + steps[None, :], mask=is_meant, other=0.0
            )
            difference = x.to(tl.float64) - c
            squares += difference * difference
        value = tl.sum(squares, axis=1)
        if root:
            value = tl.sqrt(value)
        if WEIGHTED:
            value = value * tl.load(weights + own, mask=exists, other=0.0)
        tl.store(nearby + b * n + own, value, mask=exists)
        total += tl.sum(value, axis=0)
    tl.store(partial + b * n_tiles + tile, total)


@jit
def total_kernel(partial, totals, active, n_active, n_tiles, TILES: tl.constexpr):
    """Sum the tiles of one solution, in a fixed order."""
    slot = tl.program_id(0)
    if slot >= tl.load(n_active):
        return
    b = tl.load(active + slot).to(tl.int64)
    total = tl.full((), 0.0, tl.float64)
    for begin in range(0, n_tiles, TILES):
        tiles = begin + tl.arange(0, TILES)
        total += tl.sum(
            tl.load(partial + b * n_tiles + tiles, mask=tiles < n_tiles, other=0.0), axis=0
        )
    tl.store(totals + b, total)


@jit
def draw_kernel(
    nearby,
    partial,
    totals,
    quantile,
    fallback,
    drawn,
    active,
    n_active,
    n,
    n_tiles,
    TILES: tl.constexpr,
    TILE: tl.constexpr,
):
    """Find the sample whose share of the total holds the quantile: first its tile, then itself.

    Rounding may leave a target beyond the end; the last sample that can be drawn is taken then.
    """
    slot = tl.program_id(0)
    if slot >= tl.load(n_active):
        return
    b = tl.load(active + slot).to(tl.int64)
    target = tl.load(quantile + b) * tl.load(totals + b)
    chosen = tl.full((), -1, tl.int32)
    last = tl.full((), -1, tl.int32)
    reached = tl.full((), 0.0, tl.float64)
    before = tl.full((), 0.0, tl.float64)
    before_last = tl.full((), 0.0, tl.float64)
    for begin in range(0, n_tiles, TILES):
        tiles = begin + tl.arange(0, TILES)
        shares = tl.load(partial + b * n_tiles + tiles, mask=tiles < n_tiles, other=0.0)
        ends = reached + tl.cumsum(shares, axis=0)
        nth = tl.min(tl.where((ends > target) & (shares > 0.0), tiles, 2147483647), axis=0)
        if (chosen < 0) & (nth < 2147483647):
            chosen = nth
            before = tl.max(tl.where(tiles < nth, ends, reached), axis=0)
        final = tl.max(tl.where(shares > 0.0, tiles, -1), axis=0)
        if final >= 0:
            last = final
            before_last = tl.max(tl.where(tiles < final, ends, reached), axis=0)
        reached = tl.max(ends, axis=0)
    if chosen < 0:
        chosen = last
        before = before_last
    sample = tl.load(fallback + b)
    if chosen >= 0:
        own = chosen.to(tl.int64) * TILE + tl.arange(0, TILE)
        shares = tl.load(nearby + b * n + own, mask=own < n, other=0.0)
        ends = before + tl.cumsum(shares, axis=0)
        found = tl.min(tl.where((ends > target) & (shares > 0.0), own, n), axis=0)
        final = tl.max(tl.where(shares > 0.0, own, -1), axis=0)
        sample = tl.where(found < n, found, final)
    tl.store(drawn + b, sample)
