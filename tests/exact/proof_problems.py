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


def costs_of(points: WeightedPoints, every: NDArray[np.int64], k: int) -> NDArray[np.float64]:
    """Return the inertias of clusterings into at most k clusters, by pairs of points."""
    w = points.weights
    pairs = points.squared_distances() * np.outer(w, w) / 2
    costs = np.zeros(len(every))
    for label in range(k):
        member = (every == label).astype(float)
        weight = member @ w
        share = np.divide(1.0, weight, out=np.zeros(len(every)), where=weight > 0)
        costs += np.einsum("ci,ij,cj->c", member, pairs, member) * share
    return costs


def brute_force(points: WeightedPoints, k: int) -> tuple[float, NDArray[np.int64]]:
    """Return the least inertia of all clusterings into k clusters, and its clustering."""
    every = np.array(list(clusterings(points.n, k)))
    best = every[costs_of(points, every, k).argmin()]
    return points.inertia(best), best


def hostile_points(
    rng: np.random.Generator, n: int, d: int, on_a_line: float = 0.0
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Draw samples and weights: duplicates, outliers, offsets, tiny or huge units, or a line."""
    X = rng.normal(size=(n, d))
    if rng.random() < 0.3:
        X = np.round(1.5 * X)
    if on_a_line and rng.random() < on_a_line:
        X[:, 1] = 2 * X[:, 0] + rng.choice([0.0, 1e-9]) * X[:, 1]
    if rng.random() < 0.3:
        X[0] *= 10.0 ** rng.integers(1, 7)
    if rng.random() < 0.2:
        X += 10.0 ** rng.integers(1, 6)
    if rng.random() < 0.2:
        X *= 10.0 ** rng.choice([-150, -30, 30, 140])
    return X, rng.random(n) ** 3 + 1e-3 if rng.random() < 0.4 else None


def random_problem(rng: np.random.Generator, largest: int = 8) -> SmallProblem:
    """Draw a problem that brute force can solve."""
    while True:
        n, d = int(rng.integers(4, largest + 1)), int(rng.integers(1, 4))
        k = int(rng.integers(2, max(3, n - 2)))
        X, weight = hostile_points(rng, n, d)
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
