"""Which centre is relocated, and the self-adapting parameter (section 3.3 of the paper)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evomeans.centers.pnn import removal_losses

FloatArray = NDArray[np.float64]

ALPHA_STEP = 0.2
# Part of the centres that are compared when one of little use is wanted, and how many at least.
COMPARED, AT_LEAST = 0.25, 2


def inherited_alpha(first: float, second: float, uniform: float) -> float:
    """Average of the parents' α, moved by up to ±0.2 and clipped to [0, 1]."""
    alpha = 0.5 * (first + second) + ALPHA_STEP * (2.0 * uniform - 1.0)
    return min(1.0, max(0.0, alpha))


def tournament_size(k: int) -> int:
    """Return among how many centres one of little use is sought."""
    return max(AT_LEAST, int(COMPARED * k))


def least_useful(centers: FloatArray, weights: FloatArray, uniforms: FloatArray) -> int:
    """Return the centre whose loss would cost least, of some that are drawn with replacement.

    What it would cost is estimated by what merging its cluster with another one costs.
    """
    drawn = (uniforms * len(centers)).astype(np.intp)
    return int(drawn[removal_losses(centers, weights)[drawn].argmin()])
