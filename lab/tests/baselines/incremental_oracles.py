"""The incremental methods in a few lines of NumPy each, by brute force."""

from __future__ import annotations

import numpy as np

from evomeans.typing import FloatArray
from oracles import squared_distances


def lloyd(X: FloatArray, weights: FloatArray, centers: FloatArray) -> tuple[FloatArray, float]:
    """K-means to its fixed point; the data must not leave a cluster empty."""
    labels = None
    while True:
        previous, labels = labels, squared_distances(X, centers).argmin(axis=1)
        if previous is not None and (labels == previous).all():
            return centers, float(weights @ squared_distances(X, centers).min(axis=1))
        members = [labels == j for j in range(len(centers))]
        centers = np.array([np.average(X[own], axis=0, weights=weights[own]) for own in members])


def path(X: FloatArray, weights: FloatArray, k: int, places) -> list[float]:
    """Inertias for 1 to k clusters; ``places`` maps squares to where the next centre may begin."""
    centers, inertia = lloyd(X, weights, X[:1])
    inertias = [inertia]
    while len(centers) < k:
        squares = squared_distances(X, centers).min(axis=1)
        runs = [lloyd(X, weights, np.vstack([centers, y])) for y in places(X, weights, squares)]
        centers, inertia = min(runs, key=lambda run: run[1])
        inertias.append(inertia)
    return inertias


def reduction(X: FloatArray, weights: FloatArray, squares: FloatArray, y: FloatArray) -> float:
    return float(weights @ np.maximum(squares - squared_distances(X, y[None])[:, 0], 0.0))


def auxiliary(X: FloatArray, weights: FloatArray, squares: FloatArray, y: FloatArray) -> float:
    return float(weights @ np.minimum(squares, squared_distances(X, y[None])[:, 0]))


def attracted_mean(X: FloatArray, weights: FloatArray, squares: FloatArray, y: FloatArray):
    own = squared_distances(X, y[None])[:, 0] < squares
    return np.average(X[own], axis=0, weights=weights[own])


def minimum(X: FloatArray, weights: FloatArray, squares: FloatArray, y: FloatArray) -> FloatArray:
    """Follow the means to where nothing changes any more."""
    while True:
        mean = attracted_mean(X, weights, squares, y)
        if np.allclose(mean, y, rtol=1e-13, atol=1e-13):
            return mean
        y = mean


# ---- where the next centre may begin -------------------------------------------------------------


def every_sample(X, weights, squares):
    # A second centre on the same place would stay without samples.
    return X[squares > 1e-20]


def best_sample(X, weights, squares):
    return X[[np.argmax([reduction(X, weights, squares, y) for y in X])]]


def best_mean(X, weights, squares):
    means = np.array([attracted_mean(X, weights, squares, y) for y in X])
    best = means[np.argmin([auxiliary(X, weights, squares, y) for y in means])]
    return minimum(X, weights, squares, best)[None]


def several_minima(gamma1: float, gamma2: float, gamma3: float):
    """Places of the multi-start method."""

    def places(X, weights, squares):
        gains = np.array([reduction(X, weights, squares, y) for y in X])
        chosen = X[gains >= gamma1 * gains.max()]
        means = np.array([attracted_mean(X, weights, squares, y) for y in chosen])
        gains = np.array([reduction(X, weights, squares, y) for y in means])
        means = means[gains >= gamma2 * gains.max()]
        minima = np.unique([minimum(X, weights, squares, y).round(12) for y in means], axis=0)
        values = np.array([auxiliary(X, weights, squares, y) for y in minima])
        return minima[values <= gamma3 * values.min()]

    return places
