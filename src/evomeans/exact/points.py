"""The samples as a proof sees them: distinct points with weights, in units without overflow."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

UNIT = 2.0**-53
"""The unit roundoff of float64: a single operation is off by at most this share."""


@dataclass(frozen=True)
class WeightedPoints:
    """Distinct points of positive weight.

    Equal samples are merged, because some optimal clustering keeps them together. Coordinates and
    weights are divided by powers of two, which changes no digit.

    Parameters
    ----------
    values : (n, d) array
        Distinct, of magnitude at most 1.
    weights : (n,) array
        Positive, at most the number of samples.
    places : (n_samples,) array
        The point of every sample, -1 if the sample has no weight.
    exponent, weight_exponent : int
        The data are ``values * 2**exponent`` with ``weights * 2**weight_exponent``.
    weight_error : float
        Relative rounding error of the sums of weights of equal samples.
    """

    values: Floats
    weights: Floats
    places: Indices
    exponent: int
    weight_exponent: int
    weight_error: float

    @classmethod
    def of_samples(cls, X: NDArray[Any], sample_weight: Floats | None = None) -> WeightedPoints:
        """Merge equal samples and drop those without weight."""
        X = np.asarray(X, np.float64) + 0.0  # -0.0 and 0.0 are the same point
        n = X.shape[0]
        weights = np.ones(n) if sample_weight is None else np.asarray(sample_weight, np.float64)
        exponent = _exponent(X)
        weight_exponent = 0 if sample_weight is None else _exponent(weights)
        weights = np.ldexp(weights, -weight_exponent)
        heavy = np.flatnonzero(weights > 0)
        values, inverse = np.unique(X[heavy], axis=0, return_inverse=True)
        inverse = inverse.ravel()
        counts = np.bincount(inverse)
        places = np.full(n, -1)
        places[heavy] = inverse
        return cls(
            values=np.ldexp(values, -exponent),
            weights=sums_by(inverse, weights[heavy]),
            places=places,
            exponent=exponent,
            weight_exponent=weight_exponent,
            weight_error=0.0 if sample_weight is None else UNIT * float(counts.max()),
        )

    @property
    def n(self) -> int:
        """The number of distinct points."""
        return len(self.values)

    @property
    def unit_exponent(self) -> int:
        """Inertias of the data are those of the points times ``2**unit_exponent``."""
        return 2 * self.exponent + self.weight_exponent

    def in_data_units(self, inertia: float) -> float:
        """Return an inertia in the units of the data; zero or infinity if it cannot be written."""
        if inertia == 0.0 or not math.isfinite(inertia):
            return inertia
        try:
            return math.ldexp(inertia, self.unit_exponent)
        except OverflowError:
            return math.copysign(math.inf, inertia)

    def in_point_units(self, inertia: float) -> float:
        """Return an inertia of the data in the units of the points."""
        return math.ldexp(inertia, -self.unit_exponent) if math.isfinite(inertia) else inertia

    def labels_of_points(self, labels: NDArray[Any]) -> Indices:
        """Return one label for each point, that of its last sample."""
        found = np.zeros(self.n, np.int64)
        heavy = self.places >= 0
        found[self.places[heavy]] = np.asarray(labels)[heavy]
        return np.unique(found, return_inverse=True)[1].ravel()

    def inertia(self, labels: Indices) -> float:
        """Sum of w |x - mean of the cluster|² by the direct formula."""
        offsets = self.values - self.means(labels)[labels]
        return math.fsum((self.weights * np.einsum("ij,ij->i", offsets, offsets)).tolist())

    def means(self, labels: Indices) -> Floats:
        """Weighted means of the clusters, about a point of each so that offsets do not matter."""
        first = np.unique(labels, return_index=True)[1]
        anchor = self.values[first]
        offsets = (self.values - anchor[labels]) * self.weights[:, None]
        sums = np.stack([sums_by(labels, column) for column in offsets.T], axis=1)
        means: Floats = anchor + sums / sums_by(labels, self.weights)[:, None]
        return means

    def restricted(self, chosen: Indices) -> WeightedPoints:
        """Return some of the points, in the same units."""
        return WeightedPoints(
            self.values[chosen],
            self.weights[chosen],
            np.arange(len(chosen)),
            self.exponent,
            self.weight_exponent,
            self.weight_error,
        )

    def squared_distances(self) -> Floats:
        """All squared distances, from differences: each is off by a share of (d + 3) UNIT."""
        total = np.zeros((self.n, self.n))
        for column in self.values.T:
            total += np.square(column[:, None] - column)
        return total


def sums_by(labels: Indices, values: Floats, count: int = 0) -> Floats:
    """Sum the values of every label."""
    return np.bincount(labels, values, count).astype(np.float64)


def _exponent(values: Floats) -> int:
    largest = float(np.abs(values).max(initial=0.0))
    return math.frexp(largest)[1] if largest > 0 else 0
