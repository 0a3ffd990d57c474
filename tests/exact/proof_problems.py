"""Small problems whose optimum is found by trying all clusterings."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evomeans.exact.points import WeightedPoints


class SmallProblem(NamedTuple):
    """Points, the number of clusters, and clusterings with their costs, in units of the points."""

    points: WeightedPoints
    k: int
    every: NDArray[np.int64]
    costs: NDArray[np.float64]

    @property
    def optimum(self) -> float:
        return float(self.costs.min())

    @property
    def labels(self) -> NDArray[np.int64]:
        return self.every[self.costs.argmin()]


def clusterings(n: int, k: int) -> Iterator[NDArray[np.int64]]:
    """All clusterings of n points into exactly k clusters."""
    found: list[tuple[int, ...]] = [()]
    for _ in range(n):
        found = [
            (*one, label) for one in found for label in range(min(max(one, default=-1) + 2, k))
        ]
    return (np.array(one) for one in found if len(set(one)) == k)


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


def solved(points: WeightedPoints, k: int, fewest: int | None = None) -> SmallProblem:
    """Return a problem with all clusterings into k clusters, or into any number from the fewest."""
    sizes = range(k if fewest is None else fewest, k + 1)
    every = np.array([one for size in sizes for one in clusterings(points.n, size)])
    return SmallProblem(points, k, every, costs_of(points, every, k))


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


def random_problem(
    rng: np.random.Generator, largest: int = 8, *, in_plane: bool = False
) -> SmallProblem:
    """Draw a problem that brute force can solve; in the plane, fewer clusters are allowed too."""
    while True:
        n = int(rng.integers(4, largest + 1))
        d = 2 if in_plane else int(rng.integers(1, 4))
        k = int(rng.integers(2, 4 if in_plane else max(3, n - 2)))
        points = WeightedPoints.of_samples(*hostile_points(rng, n, d, 0.2 if in_plane else 0.0))
        if points.n <= k:
            continue
        found = solved(points, k, 1 if in_plane else k)
        if found.optimum > 0:
            return found


def problems(seed: int, count: int, largest: int = 8) -> Iterator[SmallProblem]:
    """Draw many problems."""
    rng = np.random.default_rng(seed)
    return (random_problem(rng, largest) for _ in itertools.repeat(None, count))
