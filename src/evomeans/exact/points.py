"""The samples as a proof sees them, and inertias with bounds for their errors."""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evomeans.typing import FloatArray, Integers

UNIT = 2.0**-53
"""The unit roundoff of float64: a single operation is off by at most this share."""
LIGHTEST = 2.0**-70
"""Of the heaviest point: lighter ones are left out, so that no product of weights underflows."""
SMALLEST_INERTIA = 1e-120
"""In the units of the points. From here on, norms of matrices do not underflow, nor do those of
their rounding errors, which are the squares of 2**-53 times as much."""


@dataclass(frozen=True)
class WeightedPoints:
    """Distinct points of positive weight.

    Equal samples are merged, because some optimal clustering keeps them together. Samples without
    weight, or with next to none beside the heaviest one, are left out: that never raises the least
    inertia, so that lower bounds stay valid. Coordinates and weights are divided by powers of two,
    and offsets are subtracted from columns where that is exact; both change no digit.
    """

    values: FloatArray  # (n, d), distinct but for underflow, of magnitude at most 1
    weights: FloatArray  # at most the number of samples, and at least `LIGHTEST` of the heaviest
    places: Integers  # the point of every sample, -1 if the sample is left out
    exponent: int  # the data are ``values * 2**exponent``, shifted
    weight_exponent: int  # their weights are ``weights * 2**weight_exponent``
    weight_error: float  # relative rounding error of the sums of weights of equal samples
    is_whole: bool = True  # whether only samples without weight were left out

    @classmethod
    def of_samples(cls, X: NDArray[Any], sample_weight: FloatArray | None = None) -> WeightedPoints:
        """Merge equal samples and drop those without weight."""
        X = np.asarray(X, np.float64) + 0.0  # -0.0 and 0.0 are the same point
        n = X.shape[0]
        given = np.ones(n) if sample_weight is None else np.asarray(sample_weight, np.float64)
        exponent = _exponent(X)
        weight_exponent = 0 if sample_weight is None else _exponent(given)
        counted = np.flatnonzero(given > 0)
        scaled = np.ldexp(given, -weight_exponent)
        values, inverse = distinct_rows(X[counted])
        counts = np.bincount(inverse)
        weights = sums_by(inverse, scaled[counted])
        heavy = weights >= LIGHTEST * weights.max(initial=0.0)
        new_places = np.where(heavy, np.cumsum(heavy) - 1, -1)
        places = np.full(n, -1)
        places[counted] = new_places[inverse]
        return cls(
            values=_shifted(np.ldexp(values[heavy], -exponent)),
            weights=weights[heavy],
            places=places,
            exponent=exponent,
            weight_exponent=weight_exponent,
            weight_error=0.0 if sample_weight is None else UNIT * float(counts.max(initial=0)),
            is_whole=bool(heavy.all()),
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
        """Return an inertia in the units of the data; zero or infinity if it cannot be written.

        A denormal number would be rounded, perhaps upwards, which a lower bound must not be.
        """
        if inertia == 0.0 or not math.isfinite(inertia):
            return inertia
        try:
            found = math.ldexp(inertia, self.unit_exponent)
        except OverflowError:
            return math.copysign(math.inf, inertia)
        return found if abs(found) >= sys.float_info.min else 0.0

    def labels_of_points(self, labels: NDArray[Any]) -> Integers:
        """Return one label for each point, that of its last sample."""
        found = np.zeros(self.n, np.int64)
        heavy = self.places >= 0
        found[self.places[heavy]] = np.asarray(labels)[heavy]
        return np.unique(found, return_inverse=True)[1].ravel()

    def inertia(self, labels: Integers) -> float:
        """Sum of w |x - mean of the cluster|², wherever the cluster is.

        The result is off by a share of at most 8 (n + d + 40) UNIT, besides `weight_error` and
        underflow; docs/background/proofs.md derives this from the heaviest point as the anchor.
        """
        return _spread(self.weights, self.offsets(labels))

    def offsets(self, labels: Integers) -> FloatArray:
        """Return the points minus the means of their clusters, see `inertia`."""
        anchor, shift = _anchors_and_shifts(self.values, self.weights, labels)
        return (self.values - anchor[labels]) - shift[labels]

    def means(self, labels: Integers) -> FloatArray:
        """Weighted means of the clusters, rounded to float64.

        They are off by UNIT times their magnitude, and by (2 m + 8) UNIT times the distance from
        the anchor to the farthest of m points.
        """
        anchor, shift = _anchors_and_shifts(self.values, self.weights, labels)
        return anchor + shift

    def restricted(self, chosen: Integers) -> WeightedPoints:
        """Return some of the points, in the same units."""
        values, weights = self.values[chosen], self.weights[chosen]
        return replace(self, values=values, weights=weights, places=np.arange(len(chosen)))

    def squared_distances(self) -> FloatArray:
        """All squared distances, from differences: each is off by a share of (d + 3) UNIT."""
        total = np.zeros((self.n, self.n))
        for column in self.values.T:
            total += np.square(column[:, None] - column)
        return total


def smallest_cost(points: WeightedPoints) -> float:
    """Return what underflow may hide of an inertia, in the units of the points.

    A single operation loses at most 2**-1075, and no weight is below 2**-71: n² 2**-1004 at most.
    """
    return 1e-290 * points.n


def relative_error(points: WeightedPoints) -> float:
    """Return the share by which the computed costs may exceed the true ones.

    Inertias are sums of nonnegative costs times weights, so relative errors of both carry
    over: of squared distances (d + 3) u, of their sums over the members of groups 2 n u, of
    weights, products and roots the rest.
    """
    n, d = points.values.shape
    return 4 * ((2 * n + d + 40) * UNIT + points.weight_error)


def outward(points: WeightedPoints, bound: float) -> float:
    """Lower a bound of the computed problem to one of the data."""
    if bound <= 0:
        return 0.0
    return max(0.0, bound * (1 - relative_error(points)) - smallest_cost(points))


def distinct_rows(rows: FloatArray) -> tuple[FloatArray, Integers]:
    """Return the distinct rows in lexicographic order, and the place of every row among them.

    As `numpy.unique` does; but columns after the first are compared only where that has ties.
    """
    order = np.argsort(rows[:, 0], kind="stable")
    ascending = rows[order, 0]
    is_tie = ascending[1:] == ascending[:-1]
    tied = np.flatnonzero(np.append(is_tie, False) | np.append(False, is_tie))
    order[tied] = order[tied][np.lexsort(rows[order[tied]].T[::-1])]
    ordered = rows[order]
    is_new = np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1))[: len(rows)]
    places = np.empty(len(rows), np.int64)
    places[order] = np.cumsum(is_new) - 1
    return ordered[is_new], places


def sums_by(labels: Integers, values: FloatArray) -> FloatArray:
    """Sum the values of every label."""
    return np.bincount(labels, values).astype(np.float64)


def column_sums(labels: Integers, rows: FloatArray) -> FloatArray:
    """Sum the rows of every label."""
    return np.stack([sums_by(labels, column) for column in rows.T], axis=1)


def anchors(values: FloatArray, weights: FloatArray, labels: Integers) -> FloatArray:
    """Return the heaviest row of every label."""
    order = np.argsort(-weights, kind="stable")
    return values[order[np.unique(labels[order], return_index=True)[1]]]


def _anchors_and_shifts(
    values: FloatArray, weights: FloatArray, labels: Integers
) -> tuple[FloatArray, FloatArray]:
    """Return a row of every label, and the mean of the differences from it."""
    anchor = anchors(values, weights, labels)
    sums = column_sums(labels, (values - anchor[labels]) * weights[:, None])
    return anchor, sums / sums_by(labels, weights)[:, None]


def _spread(weights: FloatArray, offsets: FloatArray) -> float:
    return math.fsum((weights * np.einsum("ij,ij->i", offsets, offsets)).tolist())


def _shifted(values: FloatArray) -> FloatArray:
    """Subtract from each column the value in its middle, if that is exact and of use.

    Then no distance changes by a digit, and errors that grow with coordinates are those of the
    extent. The rounding error of a difference is computed exactly (Knuth).
    """
    if len(values) == 0:
        return values
    middle = np.partition(values, len(values) // 2, axis=0)[len(values) // 2]
    found = values - middle
    part = found - values
    error = (values - (found - part)) + (-middle - part)
    is_smaller = np.abs(found).max(axis=0) < np.abs(values).max(axis=0)
    return np.where((error == 0.0).all(axis=0) & is_smaller, found, values)


def _exponent(values: FloatArray) -> int:
    largest = float(np.abs(values).max(initial=0.0))
    return math.frexp(largest)[1] if largest > 0 else 0


GRID = 1 << 1074  # all float64 numbers are multiples of 1 / GRID
LOST_TO_UNDERFLOW = 1e-290  # what the square of a tiny offset may lose, for each sample


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


def labelled_inertia(
    values: FloatArray, weights: FloatArray, labels: NDArray[np.integer]
) -> Enclosure:
    """Return the sum of w |x - mean of its cluster|² for samples of magnitude at most 1.

    With r, the differences from the computed means, the inertia of a cluster of weight W is the sum
    of w |r|² minus |sum of w r|² / W. The second term is tiny, and removes what the rounding of the
    mean adds to the first. All errors are small shares of the first term, see
    `WeightedPoints.inertia`.

    Shapes: values (n, d); weights (n,), positive; labels (n,), any integers.
    """
    n, d = values.shape
    places = np.unique(labels, return_inverse=True)[1].ravel()
    anchor, shift = _anchors_and_shifts(values, weights, places)
    offsets = (values - anchor[places]) - shift[places]
    if not offsets.any():
        return Enclosure(0.0, 0.0)
    about_means = _spread(weights, offsets)
    rest = np.square(column_sums(places, offsets * weights[:, None]))
    rest /= sums_by(places, weights)[:, None]
    value = max(0.0, about_means - math.fsum(rest.ravel().tolist()))
    return Enclosure(value, 8 * (n + d + 40) * UNIT * about_means + LOST_TO_UNDERFLOW * n)


def inertia_of_samples(
    points: WeightedPoints, X: FloatArray, sample_weight: FloatArray | None, labels: NDArray[Any]
) -> Enclosure:
    """Return the inertia of a clustering about its exact means, in the units of the data.

    Where a sample is so light that the points leave it out, or would if it had no equals, or where
    underflow would cost digits, it is computed in rational numbers. It is zero only if the exact
    inertia is. The labels are those of the samples, of which equal ones may have different labels.
    """
    heavy = np.arange(len(X)) if sample_weight is None else np.flatnonzero(sample_weight > 0)
    rows, found = X[heavy], labels[heavy]
    _, first, places = np.unique(found, return_index=True, return_inverse=True)
    if np.array_equal(rows, rows[first][places.ravel()]):
        return Enclosure(0.0, 0.0)
    scaled = np.ones(len(heavy))
    if sample_weight is not None:
        scaled = np.ldexp(sample_weight[heavy], -points.weight_exponent)
    if points.is_whole and scaled.min() >= LIGHTEST / 2:
        inertia = labelled_inertia(points.values[points.places[heavy]], scaled, found)
        value, error = (points.in_data_units(one) for one in inertia)
        if inertia.low >= SMALLEST_INERTIA and error > 0.0 and value < math.inf:
            return Enclosure(value, error)
    exact = exact_inertia(rows, None if sample_weight is None else sample_weight[heavy], found)
    return Enclosure(exact, max(2 * UNIT * exact, exact - math.nextafter(exact, 0.0)))


def exact_inertia(X: FloatArray, sample_weight: FloatArray | None, labels: NDArray[Any]) -> float:
    """Return the inertia, computed exactly and rounded up; zero only if it is zero."""
    clusters: dict[int, list[int]] = defaultdict(list)
    for row, label in enumerate(np.asarray(labels).tolist()):
        clusters[label].append(row)
    weights = [GRID] * len(X) if sample_weight is None else _on_grid(sample_weight)
    total = Fraction(0)
    for column in np.asarray(X, np.float64).T:
        values = _on_grid(column)
        for rows in clusters.values():
            w = sum(weights[row] for row in rows)
            wx = sum(weights[row] * values[row] for row in rows)
            wxx = sum(weights[row] * values[row] ** 2 for row in rows)
            if w:
                total += wxx - Fraction(wx**2, w)
    value = total / GRID**3
    try:
        found = float(value)
    except OverflowError:
        return math.inf
    return math.nextafter(found, math.inf) if Fraction(found) < value else found


def _on_grid(values: FloatArray) -> list[int]:
    ratios = (value.as_integer_ratio() for value in np.asarray(values, np.float64).tolist())
    return [numerator * (GRID // denominator) for numerator, denominator in ratios]


def labels_of_samples(points: WeightedPoints, X: FloatArray, found: Integers) -> NDArray[np.int32]:
    """Return labels of all samples from those of the points; others belong to the nearest mean."""
    labels = np.zeros(len(X), np.int32)
    used = points.places >= 0
    labels[used] = found[points.places[used]]
    left_out = np.flatnonzero(~used)
    if len(left_out):
        scaled = np.ldexp(X, -points.exponent)
        places, weights = points.places[used], sums_by(found, points.weights)
        # Equal samples share the weight of their point.
        shares = points.weights[places] / np.bincount(places)[places]
        means = column_sums(found[places], shares[:, None] * scaled[used]) / weights[:, None]
        scores = scaled[left_out] @ means.T - np.square(means).sum(axis=1) / 2
        labels[left_out] = scores.argmax(axis=1)
    return labels


MOST_LLOYD_STEPS = 100


def kmeans(points: WeightedPoints, centres: FloatArray) -> Integers | None:
    """Lloyd's algorithm; None if a cluster loses all its points."""
    k, labels = len(centres), np.full(points.n, -1)
    for _ in range(MOST_LLOYD_STEPS):
        # Up to a term that is the same for all centres.
        scores = points.values @ centres.T - np.einsum("ij,ij->i", centres, centres) / 2
        nearest = scores.argmax(axis=1)
        if np.array_equal(nearest, labels):
            break
        labels = nearest
        if len(np.unique(labels)) < k:
            return None
        centres = points.means(labels)
    return labels
