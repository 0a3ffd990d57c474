"""Nearest centres by tensor cores, and the exact decision where that is not certain."""

from __future__ import annotations

import triton.language as tl

from evomeans.engines.gpu.kernels import jit


@jit
def note_changes(
    labels,
    changed,
    former,
    count,
    rows,
    found,
    is_meant,
):
    """Set labels and append the samples for which that is a change to the list of changes."""
    old = tl.load(labels + rows, mask=is_meant, other=-1)
    differs = is_meant & (found != old)
    n_differ = tl.sum(differs.to(tl.int32), axis=0)
    if n_differ > 0:
        begin = tl.atomic_add(count, n_differ, sem="relaxed")
        place = begin + tl.cumsum(differs.to(tl.int32), axis=0) - 1
        tl.store(changed + place, rows.to(tl.int32), mask=differs)
        tl.store(former + place, old, mask=differs)
        tl.store(labels + rows, found, mask=differs)


@jit
def propose_kernel(
    sample_planes,
    spans,
    center_planes,
    squares,
    reach,
    active,
    n_active,
    labels,
    doubtful,
    limits,
    changed,
    former,
    counts,
    n,
    height,
    bound,
    K,
    D,
    ADDITION: tl.constexpr,
    ROUNDING: tl.constexpr,
    MARGIN: tl.constexpr,
    FLOOR: tl.constexpr,
    ROWS: tl.constexpr,
    CENTERS: tl.constexpr,
    STEP: tl.constexpr,
):
    """Lowest and second lowest of ‖c‖² − 2x·c for a tile of samples and one solution.

    ``limits`` get the highest score that the nearest centre of each doubtful sample can have.

    Shapes: sample_planes (height, D); spans (3, height); center_planes (B, K, D); squares (B, K);
    reach (B, 3); labels, doubtful, limits, changed, former (B, n); counts (B, 2).
    """
    # Solutions vary fastest, so that those that run together read the same samples.
    pid = tl.program_id(0)
    slot = pid % bound
    if slot >= tl.load(n_active):
        return
    b = tl.load(active + slot).to(tl.int64)
    rows = (pid // bound).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, CENTERS)
    steps = tl.arange(0, STEP)
    best = tl.full((ROWS,), float("inf"), tl.float32)
    second = tl.full((ROWS,), float("inf"), tl.float32)
    found = tl.zeros((ROWS,), tl.int32)
    own_planes = sample_planes + rows[:, None] * D + steps[None, :]
    for j in range(0, K, CENTERS):
        others = center_planes + (b * K + j + columns[None, :]) * D + steps[:, None]
        products = tl.zeros((ROWS, CENTERS), tl.float32)
        for t in range(0, D, STEP):
            products = tl.dot(tl.load(own_planes + t), tl.load(others + t), products)
        scores = tl.load(squares + b * K + j + columns)[None, :] - 2.0 * products
        # With its number in the last bits, a plain minimum also tells which centre it was.
        bits = scores.to(tl.int32, bitcast=True) & -CENTERS
        keys = (bits | columns[None, :]).to(tl.float32, bitcast=True)
        lowest = tl.min(keys, axis=1)
        next_lowest = tl.min(tl.where(keys == lowest[:, None], float("inf"), keys), axis=1)
        number = lowest.to(tl.int32, bitcast=True) & (CENTERS - 1)
        is_lower = lowest < best
        second = tl.where(is_lower, tl.minimum(best, next_lowest), tl.minimum(second, lowest))
        found = tl.where(is_lower, number + j, found)
        best = tl.minimum(best, lowest)

    farthest = tl.load(reach + b * 3)
    of_length = 4.0 * tl.load(reach + b * 3 + 1) + (4.0 * D * ADDITION + 2.0 * ROUNDING) * farthest
    doubt = MARGIN * (
        tl.load(spans + rows) * of_length
        + tl.load(spans + height + rows) * (4.0 * farthest)
        + tl.load(spans + 2 * height + rows) * (4.0 * tl.load(reach + b * 3 + 2))
        + ROUNDING * farthest * farthest
        + FLOOR
    )
    exists = rows < n
    certain = (second - best > doubt) & exists
    note_changes(
        labels + b * n, changed + b * n, former + b * n, counts + b * 2 + 1, rows, found, certain
    )
    in_doubt = exists & ~certain
    n_doubtful = tl.sum(in_doubt.to(tl.int32), axis=0)
    if n_doubtful > 0:
        begin = tl.atomic_add(counts + b * 2, n_doubtful, sem="relaxed")
        place = begin + tl.cumsum(in_doubt.to(tl.int32), axis=0) - 1
        tl.store(doubtful + b * n + place, rows.to(tl.int32), mask=in_doubt)
        tl.store(limits + b * n + place, best + doubt, mask=in_doubt)


@jit
def decide_kernel(
    rows,
    centers,
    sample_planes,
    center_planes,
    squares,
    active,
    n_active,
    labels,
    doubtful,
    limits,
    changed,
    former,
    counts,
    n,
    bound,
    d,
    k,
    K,
    D,
    programs,
    ROWS: tl.constexpr,
    CENTERS: tl.constexpr,
    STEP: tl.constexpr,
):
    """Lowest Σ(x−c)² over the centres whose score is not above the limit; of equal ones the first.

    There are ``counts[:, 0]`` samples to decide, in ``doubtful``.

    Shapes: rows (n, d); centers (B, k, d); sample_planes (height, D); center_planes (B, K, D);
    doubtful, limits (B, n).
    """
    pid = tl.program_id(0)
    slot = pid % bound
    if slot >= tl.load(n_active):
        return
    b = tl.load(active + slot).to(tl.int64)
    n_doubtful = tl.load(counts + b * 2)
    columns = tl.arange(0, CENTERS)
    steps = tl.arange(0, STEP)
    for begin in range((pid // bound) * ROWS, n_doubtful, programs * ROWS):
        nth = begin + tl.arange(0, ROWS)
        is_meant = nth < n_doubtful
        own = tl.load(doubtful + b * n + nth, mask=is_meant, other=0).to(tl.int64)
        limit = tl.load(limits + b * n + nth, mask=is_meant, other=0.0)
        best = tl.full((ROWS,), float("inf"), tl.float64)
        found = tl.zeros((ROWS,), tl.int32)
        own_planes = sample_planes + own[:, None] * D + steps[None, :]
        for j in range(0, K, CENTERS):
            others = center_planes + (b * K + j + columns[None, :]) * D + steps[:, None]
            products = tl.zeros((ROWS, CENTERS), tl.float32)
            for t in range(0, D, STEP):
                products = tl.dot(tl.load(own_planes + t), tl.load(others + t), products)
            scores = tl.load(squares + b * K + j + columns)[None, :] - 2.0 * products
            # Scores are not to be trusted beyond single precision; what is no centre never is one.
            is_center = (j + columns < k)[None, :]
            is_left = is_meant[:, None] & is_center & ~(scores > limit[:, None])
            n_left = tl.sum(tl.sum(is_left.to(tl.int32), axis=1), axis=0)
            while n_left > 0:
                number = tl.min(tl.where(is_left, columns[None, :], CENTERS), axis=1)
                has_one = number < CENTERS
                center = (j + tl.where(has_one, number, 0)).to(tl.int64)
                parts = tl.zeros((ROWS, STEP), tl.float64)
                for t in range(0, d, STEP):
                    is_there = has_one[:, None] & (t + steps < d)[None, :]
                    x = tl.load(rows + own[:, None] * d + t + steps[None, :], is_there, 0.0)
                    c = tl.load(
                        centers + (b * k + center[:, None]) * d + t + steps[None, :], is_there, 0.0
                    )
                    difference = x.to(tl.float64) - c
                    parts += difference * difference
                square = tl.sum(parts, axis=1)
                is_lower = has_one & (square < best)
                found = tl.where(is_lower, center.to(tl.int32), found)
                best = tl.where(is_lower, square, best)
                is_left = is_left & (columns[None, :] != number[:, None])
                n_left = tl.sum(tl.sum(is_left.to(tl.int32), axis=1), axis=0)
        note_changes(
            labels + b * n,
            changed + b * n,
            former + b * n,
            counts + b * 2 + 1,
            own,
            found,
            is_meant,
        )
