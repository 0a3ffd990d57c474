"""Rules that choose a number of clusters from the values of a criterion."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evomeans.metrics.checks import FloatArray

Counts = NDArray[np.int64] | Sequence[int]


def largest(ks: Counts, values: FloatArray) -> int | None:
    """Return the k with the largest value, the smallest k on ties."""
    known = ~np.isnan(values)
    if not known.any():
        return None
    return int(ks[int(np.argmax(np.where(known, values, -np.inf)))])


def smallest(ks: Counts, values: FloatArray) -> int | None:
    """Return the k with the smallest value, the smallest k on ties."""
    return largest(ks, -values)


def first_at_most(ks: Counts, values: FloatArray, limit: float) -> int | None:
    """Return the smallest k whose value does not exceed a limit."""
    return next((int(k) for k, value in zip(ks, values, strict=True) if value <= limit), None)


def last_at_least(ks: Counts, values: FloatArray, limit: float) -> int | None:
    """Return the largest k whose value reaches a limit."""
    reached = [int(k) for k, value in zip(ks, values, strict=True) if value >= limit]
    return max(reached, default=None)


def last_of_a_run(ks: Counts, values: FloatArray, limit: float) -> int | None:
    """Return the largest k such that it and all smaller ones reach a limit."""
    choice = None
    for k, value in zip(ks, values, strict=True):
        if np.isnan(value):
            continue
        if value < limit:
            break
        choice = int(k)
    return choice


def first_within_error(ks: Counts, values: FloatArray, errors: FloatArray) -> int | None:
    """Return the smallest k with valueₖ ≥ valueₖ₊₁ − errorₖ₊₁ (Tibshirani, Walther, Hastie)."""
    for place in range(len(ks) - 1):
        if values[place] >= values[place + 1] - errors[place + 1]:
            return int(ks[place])
    return None


def within_error_of_first_maximum(ks: Counts, values: FloatArray, errors: FloatArray) -> int | None:
    """Return the smallest k within one error of the first local maximum (R's ``firstSEmax``)."""
    if not len(ks) or np.isnan(values).all():
        return None
    falls = np.flatnonzero(np.diff(values) <= 0.0)
    top = int(falls[0]) if falls.size else len(values) - 1
    reached = np.flatnonzero(values[: top + 1] >= values[top] - errors[top])
    return int(ks[int(reached[0])])


def knee(ks: Counts, values: FloatArray) -> int | None:
    """Return the k of a falling curve that is farthest below the line between its ends."""
    known = ~np.isnan(values)
    if np.count_nonzero(known) < 3:
        return None
    x, y = np.asarray(ks, dtype=np.float64)[known], values[known]
    height = y[0] - y[-1]
    if height <= 0.0:
        return None
    below = 1.0 - (x - x[0]) / (x[-1] - x[0]) - (y - y[-1]) / height
    return int(x[int(np.argmax(below))])
