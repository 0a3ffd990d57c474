"""Sums of clusters, centres from sums, and the end of an iteration."""

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
