"""The inertia of labelled samples, with a bound for its rounding error."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evomeans.exact.points import UNIT, Floats, sums_by

UNDERFLOW = 1e-290
"""What the square of a tiny offset may lose, for each sample."""


class Enclosure(NamedTuple):
    """A computed value that differs from the exact one by at most ``error``."""

    value: float
    error: float

    @property
    def low(self) -> float:
        """At most the exact value, which is never negative."""
        return max(0.0, self.value - self.error)

    @property
    def high(self) -> float:
        """At least the exact value."""
        return self.value + self.error


def labelled_inertia(values: Floats, weights: Floats, labels: NDArray[np.integer]) -> Enclosure:
    """Return the sum of w |x - mean of its cluster|² for samples of magnitude at most 1.

    For any point m, the inertia of a cluster of weight W is the sum of w |x - m|² minus W times the
    squared distance of m to the mean. With a computed mean as m the second term is tiny, and it
    removes what the rounding of the mean adds to the first. Offsets x - m have a relative error of
    one rounding, so that all errors are small shares of the first term.

    Parameters
    ----------
    values : (n, d) array
    weights : (n,) array
        Positive.
    labels : (n,) array
        Any integers.
    """
    n, d = values.shape
    _, first, places = np.unique(labels, return_index=True, return_inverse=True)
    places = places.ravel()
    total = sums_by(places, weights)[:, None]
    anchor = values[first]
    means = anchor + _sums(places, (values - anchor[places]) * weights[:, None]) / total
    offsets = values - means[places]
    if not offsets.any():
        return Enclosure(0.0, 0.0)
    about_means = math.fsum((weights * np.einsum("ij,ij->i", offsets, offsets)).tolist())
    rest = np.square(_sums(places, offsets * weights[:, None])) / total
    value = max(0.0, about_means - math.fsum(rest.ravel().tolist()))
    return Enclosure(value, 8 * (n + d + 40) * UNIT * about_means + UNDERFLOW * n)


def _sums(places: NDArray[np.intp], rows: Floats) -> Floats:
    return np.stack([sums_by(places, column) for column in rows.T], axis=1)
