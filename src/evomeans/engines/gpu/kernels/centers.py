"""Centres from sums, their half-precision terms, and the end of an iteration."""

from __future__ import annotations

import triton.language as tl

from evomeans.engines.gpu.kernels.jit import jit


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
