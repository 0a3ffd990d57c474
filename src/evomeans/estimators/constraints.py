"""Which links and size limits users may pass, checked and translated."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.engines.constrained.links import FloatArray, Integers, Links
from evomeans.estimators.parameters import shown

BALANCED = "balanced"


def check_limits(
    size_min: Any, size_max: Any, n_clusters: int, n_samples: int
) -> tuple[Integers, Integers]:
    """Return how many samples each cluster must and may have."""
    if BALANCED in (_text(size_min), _text(size_max)):
        for name, value in (("size_min", size_min), ("size_max", size_max)):
            if value is not None and _text(value) != BALANCED:
                raise ValueError(
                    f"{name}={value!r} contradicts 'balanced', which sets both limits. Leave one "
                    "of them out."
                )
        low = np.full(n_clusters, n_samples // n_clusters)
        return low, np.full(n_clusters, -(-n_samples // n_clusters))
    low = _sizes("size_min", size_min, n_clusters, default=0)
    high = _sizes("size_max", size_max, n_clusters, default=n_samples)
    return low, np.minimum(high, n_samples)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _sizes(name: str, value: Any, n_clusters: int, default: int) -> Integers:
    if value is None:
        return np.full(n_clusters, default)
    expected = f"None, 'balanced', an int, or {n_clusters} ints, one for each cluster"
    if isinstance(value, str | bool):
        raise TypeError(f"{name} must be {expected}, got {shown(value)}.")
    if isinstance(value, Real) and not isinstance(value, Integral):
        raise TypeError(f"{name} must be {expected}, got {shown(value)}.")
    try:
        sizes = np.asarray(value)
    except ValueError:
        raise TypeError(f"{name} must be {expected}, got {shown(value)}.") from None
    if sizes.dtype.kind not in "iu":
        raise TypeError(f"{name} must be {expected}, got {shown(value)}.")
    if sizes.shape not in ((), (n_clusters,)):
        raise ValueError(
            f"{name} has the shape {sizes.shape}, but must be an int or have {n_clusters} values, "
            "one for each cluster."
        )
    if (sizes < 0).any():
        raise ValueError(f"{name}={sizes.min()} must not be negative.")
    # Unsigned numbers beyond the range of int64 would become negative.
    largest = np.iinfo(np.int64).max
    return np.array([min(int(size), largest) for size in np.broadcast_to(sizes, n_clusters)])


def check_penalty(penalty: Any) -> float:
    """Return what a pair costs that is not heeded; infinite if that must not be."""
    if penalty is None:
        return np.inf
    if isinstance(penalty, bool) or not isinstance(penalty, Real):
        raise TypeError(f"penalty must be a number or None, got {shown(penalty)}.")
    if not float(penalty) > 0.0:
        raise ValueError(
            f"penalty={penalty} must be positive, or None for links without exception."
        )
    return float(penalty)


def check_links(must_link: Any, cannot_link: Any, penalty: float, n_samples: int) -> Links:
    """Return pairs of samples and their penalties."""
    must, must_penalties = _pairs("must_link", must_link, penalty, n_samples)
    cannot, cannot_penalties = _pairs("cannot_link", cannot_link, penalty, n_samples)
    # A sample is always together with itself.
    differ = must[:, 0] != must[:, 1]
    return Links(must[differ], must_penalties[differ], cannot, cannot_penalties)


def _pairs(name: str, given: Any, penalty: float, n_samples: int) -> tuple[Integers, FloatArray]:
    if given is None:
        return np.empty((0, 2), np.int64), np.empty(0)
    try:
        table = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name} must be pairs of sample numbers, an array of shape (n_pairs, 2), got "
            f"{shown(given)}."
        ) from None
    if table.size == 0:
        return np.empty((0, 2), np.int64), np.empty(0)
    if table.ndim != 2 or table.shape[1] not in (2, 3):
        raise ValueError(
            f"{name} has the shape {table.shape}, but must have (n_pairs, 2), or (n_pairs, 3) with "
            "a penalty for each pair."
        )
    pairs = _sample_numbers(name, table[:, :2], n_samples)
    if table.shape[1] == 2:
        return pairs, np.full(len(pairs), penalty)
    penalties = table[:, 2]
    if not (penalties > 0).all():
        wrong = int(np.argmin(penalties > 0))
        raise ValueError(
            f"{name} has the penalty {penalties[wrong]} in row {wrong}; penalties must be "
            "positive, or inf for a pair without exception."
        )
    return pairs, penalties


def _sample_numbers(name: str, numbers: NDArray[Any], n_samples: int) -> Integers:
    is_number = (numbers >= 0) & (numbers < n_samples) & (numbers == np.floor(numbers))
    if not is_number.all():
        row, column = np.argwhere(~is_number)[0]
        raise ValueError(
            f"{name} names the sample {numbers[row, column]:g} in row {row}; samples are the rows "
            f"0 to {n_samples - 1} of X."
        )
    return numbers.astype(np.int64)
