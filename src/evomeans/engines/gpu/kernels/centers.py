"""Sums of clusters, centres from sums, the end of an iteration, and draws by distance."""

from __future__ import annotations

import triton.language as tl

from evomeans.engines.gpu.kernels import jit


@jit
def centers_kernel(
    sums,
    scales,
    middle,
    centers,
    cluster_weights,
    planes,
    squares,
    reach,
    excluded,
    moved,
    active,
    n_active,
    bound,
    unit,
    factor,
    k,
    d,
    K,
    D,
    TERMS: tl.constexpr,
    FROM_SUMS: tl.constexpr,
    LARGEST_HALF: tl.constexpr,
    BEYOND: tl.constexpr,
    STEP: tl.constexpr,
):
    """One centre of one solution: its mean, if ``FROM_SUMS`` and its cluster weighs anything.

    ``planes`` get the first term of every coordinate; with ``TERMS == 2`` followed by the first
    once more, and the second. ``reach`` is raised to the lengths of this centre, and ``moved`` is
    set if it moved.

    Shapes: sums (B, k, 2, d + 1); centers (B, k, d); planes (B, K, D); squares (B, K);
    reach (B, 3).
    """
    pid = tl.program_id(0)
    slot = pid // k
    if slot >= tl.load(n_active):
        return
    b = tl.load(active + slot).to(tl.int64)
    j = pid % k
    sum_of = sums + (b * k + j) * 2 * (d + 1)
    weight = tl.full((), 0.0, tl.float64)
    if FROM_SUMS:
        total = (
            tl.load(sum_of + d).to(tl.float64) + tl.load(sum_of + 2 * d + 1).to(tl.float64) * unit
        )
        weight = total / tl.load(scales + d)
        tl.store(cluster_weights + b * k + j, weight)
    square = tl.full((), 0.0, tl.float64)
    rest_square = tl.full((), 0.0, tl.float64)
    second_square = tl.full((), 0.0, tl.float64)
    n_differ = tl.full((), 0, tl.int32)
    for t in range(0, d, STEP):
        steps = t + tl.arange(0, STEP)
        is_meant = steps < d
        place = centers + (b * k + j) * d + steps
        center = tl.load(place, mask=is_meant, other=0.0)
        if FROM_SUMS:
            upper = tl.load(sum_of + steps, mask=is_meant, other=0).to(tl.float64)
            lower = tl.load(sum_of + d + 1 + steps, mask=is_meant, other=0).to(tl.float64)
            scale = tl.load(scales + steps, mask=is_meant, other=1.0)
            if weight > 0.0:
                mean = (upper + lower * unit) / (scale * weight)
                n_differ += tl.sum((is_meant & (mean != center)).to(tl.int32), axis=0)
                center = tl.where(is_meant, mean, 0.0)
                tl.store(place, center, mask=is_meant)
        offset = tl.load(middle + steps, mask=is_meant, other=0.0)
        value = tl.where(is_meant, (center - offset) * factor, 0.0)
        first = tl.minimum(tl.maximum(value, -LARGEST_HALF), LARGEST_HALF).to(tl.float32)
        first = first.to(tl.float16)
        rest = value - first.to(tl.float64)
        plane = planes + (b * K + j) * D + steps
        tl.store(plane, first, mask=is_meant)
        if TERMS == 2:
            second = tl.minimum(tl.maximum(rest, -LARGEST_HALF), LARGEST_HALF).to(tl.float32)
            second = second.to(tl.float16)
            rest -= second.to(tl.float64)
            tl.store(plane + d, first, mask=is_meant)
            tl.store(plane + 2 * d, second, mask=is_meant)
            second_square += tl.sum(second.to(tl.float64) * second.to(tl.float64), axis=0)
        square += tl.sum(value * value, axis=0)
        rest_square += tl.sum(rest * rest, axis=0)
    takes_part = j != tl.load(excluded + b)
    tl.store(squares + b * K + j, tl.where(takes_part, square, BEYOND).to(tl.float32))
    tl.atomic_max(reach + b * 3, tl.sqrt(square).to(tl.float32), sem="relaxed")
    tl.atomic_max(reach + b * 3 + 1, tl.sqrt(rest_square).to(tl.float32), sem="relaxed")
    if TERMS == 2:
        tl.atomic_max(reach + b * 3 + 2, tl.sqrt(second_square).to(tl.float32), sem="relaxed")
    if n_differ > 0:
        tl.store(moved + b, 1)


@jit
def tally_kernel(
    active,
    n_active,
    moved,
    counts,
    n_iter,
    SOLUTIONS: tl.constexpr,
):
    """Count the iteration and keep those solutions active, in order, of which a centre moved.

    ``moved`` and ``counts`` are set to zero for the next iteration.

    Shapes: active, moved, n_iter (B,); counts (B, 2).
    """
    slots = tl.arange(0, SOLUTIONS)
    is_active = slots < tl.load(n_active)
    b = tl.load(active + slots, mask=is_active, other=0)
    goes_on = tl.load(moved + b, mask=is_active, other=0) != 0
    done = tl.load(n_iter + b, mask=is_active, other=0)
    tl.store(n_iter + b, done + 1, mask=is_active)
    tl.store(moved + b, 0, mask=is_active)
    tl.store(counts + 2 * b, 0, mask=is_active)
    tl.store(counts + 2 * b + 1, 0, mask=is_active)
    place = tl.cumsum(goes_on.to(tl.int32), axis=0) - 1
    tl.store(active + place, b, mask=goes_on)
    tl.store(n_active, tl.sum(goes_on.to(tl.int32), axis=0))


@jit
def update_kernel(
    rows,
    weights,
    scales,
    labels,
    changed,
    former,
    counts,
    reach,
    sums,
    active,
    n_active,
    n,
    bound,
    limb,
    k,
    d,
    programs,
    WEIGHTED: tl.constexpr,
    ROWS: tl.constexpr,
    STEP: tl.constexpr,
):
    """Add samples to their new cluster and take them away from the one they had.

    Sums are of integers, which add up to the same in any order. ``counts[:, 1]`` samples have
    changed; the label that one had is −1 for none. ``reach`` is set to zero, for the centres that
    follow from the sums.

    Shapes: changed, former (B, n); reach (B, 3); sums (B, k, 2, d + 1).
    """
    pid = tl.program_id(0)
    slot = pid % bound
    if slot >= tl.load(n_active):
        return
    b = tl.load(active + slot).to(tl.int64)
    if pid // bound == 0:
        tl.store(reach + b * 3 + tl.arange(0, 4), 0.0, mask=tl.arange(0, 4) < 3)
    n_changed = tl.load(counts + b * 2 + 1)
    for begin in range((pid // bound) * ROWS, n_changed, programs * ROWS):
        nth = begin + tl.arange(0, ROWS)
        is_meant = nth < n_changed
        own = tl.load(changed + b * n + nth, mask=is_meant, other=0).to(tl.int64)
        old = tl.load(former + b * n + nth, mask=is_meant, other=-1).to(tl.int64)
        new = tl.load(labels + b * n + own, mask=is_meant, other=0).to(tl.int64)
        had = (is_meant & (old >= 0))[:, None]
        for t in range(0, d + 1, STEP):
            steps = t + tl.arange(0, STEP)
            # The last column is that of the weights themselves.
            terms = tl.load(
                rows + own[:, None] * d + steps[None, :],
                mask=is_meant[:, None] & (steps[None, :] < d),
                other=1.0,
            ).to(tl.float64)
            if WEIGHTED:
                terms = tl.load(weights + own, mask=is_meant, other=0.0)[:, None] * terms
            terms = terms * tl.load(scales + steps, mask=steps <= d, other=0.0)[None, :]
            whole = tl.floor(terms)
            upper = whole.to(tl.int64)
            lower = ((terms - whole) * limb).to(tl.int64)
            counted = is_meant[:, None] & (steps[None, :] <= d)
            to = sums + ((b * k + new[:, None]) * 2) * (d + 1) + steps[None, :]
            tl.atomic_add(to, upper, mask=counted, sem="relaxed")
            tl.atomic_add(to + (d + 1), lower, mask=counted & (lower != 0), sem="relaxed")
            away = sums + ((b * k + old[:, None]) * 2) * (d + 1) + steps[None, :]
            tl.atomic_add(away, -upper, mask=counted & had, sem="relaxed")
            tl.atomic_add(away + (d + 1), -lower, mask=counted & had & (lower != 0), sem="relaxed")


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
