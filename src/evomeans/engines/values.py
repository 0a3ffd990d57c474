"""Which values engines can compute with, and what users are told about the others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.engines.frame import Frame
from evomeans.engines.rules import LARGEST_VALUE

# Sums of weights, of models whose kernels square them.
LIGHTEST, HEAVIEST = 1e-100, 1e100
OVERFLOW = f"sums overflow beyond {LARGEST_VALUE:.0e}. Divide X by a constant first."


def check_total_weight(total: float) -> None:
    """Reject weights by which no sample counts, or that cannot be summed."""
    if total == 0.0:
        raise ValueError("sample_weight must not be all zero: no sample would count.")
    if not np.isfinite(total):
        raise ValueError("sample_weight sums to infinity; divide the weights by a constant.")


def check_moderate_weight(total: float) -> None:
    """Reject weights whose squares, or products with squared distances, are not all numbers."""
    if not LIGHTEST <= total <= HEAVIEST:
        raise ValueError(
            f"sample_weight sums to {total:.3g}; this model needs a sum between {LIGHTEST:.0e} and "
            f"{HEAVIEST:.0e}. Multiply the weights by a constant."
        )


def reaching(frame: Frame, low: NDArray[Any], high: NDArray[Any]) -> Frame:
    """Return a frame for samples between these, column by column.

    It is the given one, unless they are so far outside that their squares could overflow; then it
    has another scale.
    """
    # An infinite extent is refused below.
    with np.errstate(over="ignore"):
        extent = max((high - frame.shift).max(), (frame.shift - low).max())
    if extent * frame.scale <= 1.0:
        return frame
    return replace(frame, exponent=Frame.scaling(np.array([extent]), 0).exponent)
