"""Founders from neighbours on the path: a solution with one centre fewer, or with one more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from scipy.spatial.distance import pdist

from evomeans.engines.protocol import Ability, Engine
from evomeans.engines.sampling import roulette
from evomeans.kernels.merging import pnn_merge
from evomeans.search.population import Individual
from evomeans.typing import FloatArray

# Divisions that are looked at for each centre that is added, and the steps of 2-means of each.
DIVISIONS, ROUNDS = 12, 3
# Samples on which divisions are judged: at least the first number, and the second per centre.
FEW_SAMPLES, SAMPLES_PER_CENTER = 1000, 20
# Among how many of the cheapest mergers one is drawn; the cheapest ones are drawn most often.
MERGERS = 4


@dataclass(frozen=True, eq=False)
class Grown:
    """Solutions with more centres: the cluster whose division gains most is divided.

    What a division gains is measured on some thousand samples that the engine hands out, so that
    every engine can do it.
    """

    # With fewer centres, best first.
    solutions: tuple[Individual, ...] = field(repr=False)
    name: ClassVar[str] = "grown"
    needs: ClassVar[frozenset[Ability]] = frozenset()

    def draw(self, n_samples: int, n_clusters: int, rng: np.random.Generator) -> FloatArray:
        """Draw which solution grows, and a number from which its divisions derive."""
        return np.append(rng.random(2), n_clusters)

    def place(self, engine: Engine, draws: Sequence[FloatArray]) -> list[FloatArray]:
        """Divide clusters until there are enough."""
        placed = []
        for which, number, n_clusters in (numbers.tolist() for numbers in draws):
            rng = np.random.default_rng(int(number * 2.0**53))
            rows = some_samples(engine, int(n_clusters), rng)
            centers = chosen(self.solutions, which).centers
            while len(centers) < n_clusters:
                centers = divide_best(rows, centers, rng)
            placed.append(centers)
        return placed


@dataclass(frozen=True, eq=False)
class Merged:
    """Solutions with fewer centres: clusters that cost little to merge are merged."""

    # With more centres, best first.
    solutions: tuple[Individual, ...] = field(repr=False)
    name: ClassVar[str] = "merged"
    needs: ClassVar[frozenset[Ability]] = frozenset()

    def draw(self, n_samples: int, n_clusters: int, rng: np.random.Generator) -> FloatArray:
        """Draw which solution shrinks, and which of its cheap mergers comes first."""
        return np.append(rng.random(2), n_clusters)

    def place(self, engine: Engine, draws: Sequence[FloatArray]) -> list[FloatArray]:
        """Merge clusters until few enough are left."""
        placed = []
        for which, number, n_clusters in (numbers.tolist() for numbers in draws):
            solution = chosen(self.solutions, which)
            merged = merge_pair(
                solution.centers, solution.cluster_weights, int(number * number * MERGERS)
            )
            placed.append(pnn_merge(*merged, int(n_clusters))[0])
        return placed


def chosen(solutions: Sequence[Individual], uniform: float) -> Individual:
    """Return one of the solutions; the first ones are likelier."""
    return solutions[int(uniform * uniform * len(solutions))]


def some_samples(engine: Engine, n_clusters: int, rng: np.random.Generator) -> FloatArray:
    """Return samples to judge divisions by, drawn by their weight; all of them if these are few."""
    size = max(FEW_SAMPLES, SAMPLES_PER_CENTER * n_clusters)
    if size < engine.n_samples:
        return engine.samples_at(rng.random(size))
    return engine.samples_at((np.arange(engine.n_samples) + 0.5) / engine.n_samples)


def divide_best(rows: FloatArray, centers: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Divide the cluster for which that gains most, judged by some samples.

    A division begins with a sample, drawn by its squared distance to its centre: the first plane
    between the halves goes through the centre, perpendicular to the direction of the sample, and
    some steps of 2-means follow. With the means a and b and the sizes A and B of the halves it
    gains AB/(A + B)·‖a − b‖². One centre comes twice if all samples lie on theirs.
    """
    # Around their mean, so that few digits cancel.
    middle = centers.mean(axis=0)
    near, places = rows - middle, centers - middle
    labels = ((places * places).sum(axis=1) - 2.0 * (near @ places.T)).argmin(axis=1)
    offsets = near - places[labels]
    errors = np.einsum("ij,ij->i", offsets, offsets)
    best_gain, best = -1.0, np.vstack([centers, centers[:1]])
    if not errors.any():
        return best
    drawn = roulette(errors, rng.random(DIVISIONS))
    for j in np.unique(labels[drawn]):
        own = offsets[labels == j]
        for sample in np.unique(drawn[labels[drawn] == j]):
            gain, halves = divide(own, offsets[sample])
            if gain > best_gain:
                best_gain = gain
                best = np.vstack([centers, centers[j] + halves[1]])
                best[j] = centers[j] + halves[0]
    return best


def divide(offsets: FloatArray, direction: FloatArray) -> tuple[float, FloatArray]:
    """Divide samples around their centre in two; return the gain and the means of the halves."""
    normal, level = direction, 0.0
    gain, halves = 0.0, np.array([np.zeros_like(direction), direction])
    total, n = offsets.sum(axis=0), len(offsets)
    for _ in range(ROUNDS):
        beyond = (offsets @ normal > level).astype(np.float64)
        count = float(beyond.sum())
        if count in (0.0, n):
            break
        a = beyond @ offsets
        b = (total - a) / (n - count)
        a /= count
        normal, level = a - b, 0.5 * float((a - b) @ (a + b))
        gain = count * (n - count) / n * float(normal @ normal)
        halves = np.array([b, a])
    return gain, halves


def merging_costs(centers: FloatArray, weights: FloatArray) -> FloatArray:
    """Return what merging any two clusters costs, wₐwᵦ/(wₐ+wᵦ)·‖cₐ−cᵦ‖², as a condensed matrix."""
    a, b = np.triu_indices(len(centers), 1)
    total = weights[a] + weights[b]
    shares = np.divide(weights[a] * weights[b], total, out=np.zeros_like(total), where=total > 0.0)
    costs: FloatArray = shares * pdist(centers, "sqeuclidean")
    return costs


def merge_pair(
    centers: FloatArray, weights: FloatArray, nth: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Merge the two clusters that cost least to merge, or the nth pair after these."""
    costs = merging_costs(centers, weights)
    pair = np.argsort(costs, kind="stable")[min(nth, len(costs) - 1)]
    a, b = (int(places[pair]) for places in np.triu_indices(len(centers), 1))
    total = weights[a] + weights[b]
    share = weights[b] / total if total > 0.0 else 0.5
    merged, left = np.delete(centers, b, axis=0), np.delete(weights, b)
    merged[a], left[a] = centers[a] + share * (centers[b] - centers[a]), total
    return merged, left
