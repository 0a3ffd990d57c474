"""How far a score computed in half precision can be from the true one.

The centre nearest to x has the lowest score ‖c‖² − 2x·c. Scores are proposed by tensor cores, from
samples and centres split into half-precision terms: x = x₁ + x₂ + eₓ and c = c₁ + c₂ + e_c, where
x₂ = c₂ = 0 if one term is enough. The product that is computed, x₁·c₁ + x₂·c₁ + x₁·c₂, misses
x₂·c₂ + eₓ·c + (x₁ + x₂)·e_c, which Cauchy and Schwarz bound by lengths that are known. Products of
half-precision numbers are exact in single precision; their sum is rounded at every addition.

A sample whose two lowest scores differ by more than :func:`doubt` has found its nearest centre.
The others are decided in double precision.
"""

from __future__ import annotations

from typing import Any

# Tensor cores add sixteen products at a time to a sum and cut what is below its last bit: at most
# 18·2⁻²³ of the largest partial sum for each sixteen. This is 1.8 times that.
ADDITION = 2.0**-22
# ‖c‖² and the score itself are rounded to single precision: at most 2⁻²² for both of two scores.
ROUNDING = 2.0**-21
# The last bits of a score may make room for the number of its centre: for c centres c·2⁻²³ each.
PACKING = 2.0**-22
# The bound is computed in single precision, too.
MARGIN = 1.0001
# Where an outlier sets the scale, scores of all others may vanish: relative errors say nothing
# then, and the number of a centre in the last bits is all that is left. Others are near 2²⁰.
FLOOR = 1e-30

# Positions in the arrays of lengths.
LENGTH, REST, SECOND = 0, 1, 2


def doubt(spans: Any, reach: Any, width: int, packed: int = 0) -> Any:
    """Return what a gap between two scores must exceed to be true.

    ``spans`` are the lengths ‖x₁ + x₂‖, ‖eₓ‖ and ‖x₂‖ of samples, ``reach`` the largest ‖c‖, ‖e_c‖
    and ‖c₂‖ of the centres they are compared with. A score adds up ``width`` products, and its last
    bits can tell ``packed`` centres apart.
    """
    farthest = reach[LENGTH]
    rounding = ROUNDING + packed * PACKING
    of_length = 4.0 * reach[REST] + (4.0 * width * ADDITION + 2.0 * rounding) * farthest
    return MARGIN * (
        spans[LENGTH] * of_length
        + spans[REST] * (4.0 * farthest)
        + spans[SECOND] * (4.0 * reach[SECOND])
        + rounding * farthest * farthest
        + FLOOR
    )
