"""Nearest centres of doubtful samples, in double precision."""

from __future__ import annotations

import triton.language as tl

from evomeans.engines.gpu.kernels.jit import jit
from evomeans.engines.gpu.kernels.propose import note_changes


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
