"""From the points of a proof back to the samples: labels, and inertias of whatever magnitude."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.exact.points import SMALLEST_INERTIA, Floats, Indices, WeightedPoints, sums_by

GRID = 1 << 1074
"""All float64 numbers are multiples of 1 / GRID."""


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


def inertia_of_samples(
    points: WeightedPoints, X: Floats, sample_weight: Floats | None, labels: NDArray[Any]
) -> float:
    """Return the inertia of a clustering about its exact means, in the units of the data.

    Where the points leave samples out, or underflow would cost digits, it is computed in rational
    numbers. Equal samples have equal labels.
    """
    if points.is_whole:
        found = points.inertia(points.labels_of_points(labels))
        in_data_units = points.in_data_units(found)
        if found >= SMALLEST_INERTIA and in_data_units > 0.0:
            return in_data_units
    return exact_inertia(X, sample_weight, labels)


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
