"""Small problems whose optimum is found by trying all clusterings."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evomeans.exact.points import WeightedPoints


class SmallProblem(NamedTuple):
    """Samples, weights, the number of clusters, and the least inertia, in units of the points."""

    X: NDArray[np.float64]
    sample_weight: NDArray[np.float64] | None
    points: WeightedPoints
    k: int
    optimum: float
    labels: NDArray[np.int64]


def clusterings(n: int, k: int) -> Iterator[NDArray[np.int64]]:
    """All clusterings of n points into exactly k clusters."""

    def extend(labels: list[int], used: int) -> Iterator[list[int]]:
        if len(labels) == n:
            if used == k:
                yield labels
            return
        if used + n - len(labels) < k:
            return
        for label in range(min(used + 1, k)):
            yield from extend([*labels, label], max(used, label + 1))

    yield from (np.array(labels) for labels in extend([], 0))


def brute_force(points: WeightedPoints, k: int) -> tuple[float, NDArray[np.int64]]:
    """Return the least inertia, by pairs of points, and its clustering."""
    w = points.weights
    pairs = points.squared_distances() * np.outer(w, w) / 2
    every = np.array(list(clusterings(points.n, k)))
    costs = np.zeros(len(every))
    for label in range(k):
        member = (every == label).astype(float)
        costs += np.einsum("ci,ij,cj->c", member, pairs, member) / (member @ w)
    best = every[costs.argmin()]
    return points.inertia(best), best


def random_problem(rng: np.random.Generator, largest: int = 8) -> SmallProblem:
    """Draw a problem: some with duplicates, outliers, weights, offsets, tiny or huge units."""
    while True:
        n, d = int(rng.integers(4, largest + 1)), int(rng.integers(1, 4))
        k = int(rng.integers(2, max(3, n - 2)))
        X = rng.normal(size=(n, d))
        if rng.random() < 0.3:
            X = np.round(1.5 * X)
        if rng.random() < 0.3:
            X[0] *= 10.0 ** rng.integers(1, 7)
        if rng.random() < 0.2:
            X += 10.0 ** rng.integers(1, 6)
        if rng.random() < 0.2:
            X *= 10.0 ** rng.choice([-150, -30, 30, 140])
        weight = rng.random(n) ** 3 + 1e-3 if rng.random() < 0.4 else None
        points = WeightedPoints.of_samples(X, weight)
        if points.n <= k:
            continue
        optimum, labels = brute_force(points, k)
        if optimum > 0:
            return SmallProblem(X, weight, points, k, optimum, labels)


def problems(seed: int, count: int, largest: int = 8) -> Iterator[SmallProblem]:
    """Draw many problems."""
    rng = np.random.default_rng(seed)
    return (random_problem(rng, largest) for _ in itertools.repeat(None, count))
