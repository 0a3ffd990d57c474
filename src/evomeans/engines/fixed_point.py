"""Fixed-point numbers of two limbs, in which engines sum up clusters without rounding.

A floating-point sum depends on the order of its terms; a sum of integers does not. The terms wᵢxᵢ
are rounded once, to an integer of two limbs, and added and taken away exactly.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

LIMBS = 2


def limb_bits(n_samples: int) -> int:
    """Bits of a limb such that the sum of ``n_samples`` of them cannot overflow."""
    return 61 - max(1, n_samples).bit_length()


def column_scales(extents: Any, weights: Any, bits: int) -> Any:
    """Factors that bring every term of every column below ``2**bits``.

    Parameters
    ----------
    extents : (d,) array
        The largest absolute value of every column.
    weights : (n,) or (0,) array
        Empty for equal weights.
    bits : int
        Size of a limb.

    Returns
    -------
    scales : (d + 1,) array
        Powers of two; the last one is for the weights themselves.
    """
    heaviest = float(weights.max()) if len(weights) else 1.0
    largest = np.append(extents, 1.0) * heaviest
    exponents = np.array([bits - math.frexp(v)[1] if v > 0 else 0 for v in largest])
    return np.ldexp(1.0, np.minimum(exponents, 1000))


def means_of(sums: Any, centers: Any, scales: Any, limb: float) -> tuple[Any, Any]:
    """Return the means and weights of clusters; an empty cluster's centre stays.

    The same arithmetic as :func:`~evomeans.engines.cpu.sums.update_center`, to the last bit.

    Parameters
    ----------
    sums : (k, 2, d + 1) array of int64
    centers : (k, d) array
    scales, limb
        Of the numbers in ``sums``.
    """
    totals = sums[:, 0] + sums[:, 1] * (1.0 / limb)
    weights = totals[:, -1] / scales[-1]
    filled = weights > 0.0
    means = centers.copy()
    means[filled] = totals[filled, :-1] / (scales[:-1] * weights[filled, None])
    return means, weights
