"""The inertia of labelled samples, of whatever magnitude, with a bound for its error."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evomeans.exact.points import (
    SMALLEST_INERTIA,
    UNIT,
    Floats,
    Indices,
    WeightedPoints,
    sums_by,
)

GRID = 1 << 1074
"""All float64 numbers are multiples of 1 / GRID."""

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


def inertia_of_samples(
    points: WeightedPoints, X: Floats, sample_weight: Floats | None, labels: NDArray[Any]
) -> Enclosure:
    """Return the inertia of a clustering about its exact means, in the units of the data.

    Where the points leave samples out, or underflow would cost digits, it is computed in rational
    numbers. It is zero only if the exact inertia is.

    Parameters
    ----------
    points : WeightedPoints
        Of the samples.
    X : (n_samples, d) array
    sample_weight : (n_samples,) array, optional
    labels : (n_samples,) array
        Equal samples may have different ones.
    """
    heavy = np.arange(len(X)) if sample_weight is None else np.flatnonzero(sample_weight > 0)
    rows, found = X[heavy], labels[heavy]
    _, first, places = np.unique(found, return_index=True, return_inverse=True)
    if np.array_equal(rows, rows[first][places.ravel()]):
        return Enclosure(0.0, 0.0)
    if points.is_whole:
        scaled = np.ones(len(heavy))
        if sample_weight is not None:
            scaled = np.ldexp(sample_weight[heavy], -points.weight_exponent)
        inertia = labelled_inertia(points.values[points.places[heavy]], scaled, found)
        value, error = (points.in_data_units(one) for one in inertia)
        if inertia.low >= SMALLEST_INERTIA and error > 0.0 and value < math.inf:
            return Enclosure(value, error)
    exact = exact_inertia(rows, None if sample_weight is None else sample_weight[heavy], found)
    return Enclosure(exact, 2 * UNIT * exact)


def _sums(places: NDArray[np.intp], rows: Floats) -> Floats:
    return np.stack([sums_by(places, column) for column in rows.T], axis=1)


def exact_inertia(X: Floats, sample_weight: Floats | None, labels: NDArray[Any]) -> float:
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
    return _rounded_up(total / GRID**3)


def _on_grid(values: Floats) -> list[int]:
    ratios = (value.as_integer_ratio() for value in np.asarray(values, np.float64).tolist())
    return [numerator * (GRID // denominator) for numerator, denominator in ratios]


def _rounded_up(value: Fraction) -> float:
    try:
        found = float(value)
    except OverflowError:
        return math.inf
    return math.nextafter(found, math.inf) if Fraction(found) < value else found


def labels_of_samples(points: WeightedPoints, X: Floats, found: Indices) -> NDArray[np.int32]:
    """Return labels of all samples, given those of the points.

    Samples that the points leave out belong to the nearest mean.
    """
    labels = np.zeros(len(X), np.int32)
    used = points.places >= 0
    labels[used] = found[points.places[used]]
    left_out = np.flatnonzero(~used)
    if len(left_out):
        scaled = np.ldexp(X, -points.exponent)
        places, weights = points.places[used], sums_by(found, points.weights)
        # Equal samples share the weight of their point.
        shares = points.weights[places] / np.bincount(places)[places]
        columns = [sums_by(found[places], shares * column) for column in scaled[used].T]
        means = np.stack(columns, axis=1) / weights[:, None]
        scores = scaled[left_out] @ means.T - np.square(means).sum(axis=1) / 2
        labels[left_out] = scores.argmax(axis=1)
    return labels
