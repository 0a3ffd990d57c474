"""Sums of clusters, brought up to date with the labels that changed."""

from __future__ import annotations

import triton.language as tl

from evomeans.engines.gpu.kernels.jit import jit


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
