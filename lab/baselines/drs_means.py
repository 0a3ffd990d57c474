"""DRS-means: distributed random swap (Kozbagarov and Mussabayev 2024)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist

from evomeans.engines.protocol import LocalSearch, Order, Refinement
from evomeans.estimators.parameters import check_int, check_optional_int
from evomeans.typing import FloatArray
from lab.baselines.base import AnytimeBaseline, random_samples
from lab.baselines.drawing import roulette, weighted
from lab.baselines.engine import BaselineEngine

# With so many features, a tree has to look at nearly all samples, and comparing all is faster.
MANY_FEATURES = 32
# Distances that are computed together where there is no tree.
BLOCK = 2**24


@dataclass(eq=False, repr=False, kw_only=True)
class DRSMeans(AnytimeBaseline):
    """DRS-means: random swap with well-chosen chances [1]_.

    A trial moves a centre onto a sample and makes a few iterations of K-means, as random swap does.
    But the centre is drawn by how close it is to the others, and the sample by its squared
    distance from the centres that stay, times the density around it.

    Parameters
    ----------
    n_swaps : int, default=1000
        Trials after the first solution.
    kmeans_iterations : int, default=2
        Iterations of K-means in each trial, at most.
    n_neighbors : int, default=None
        The density around a sample is one over the distance to the neighbour with this number, the
        sample itself being the first. None means n/100 + 2, rounded down.

    See Also
    --------
    RandomSwap : Draws centres and samples with equal chances.
    FLSpp : Foresees what a swap will bring.

    Notes
    -----
    The chance of a centre is the sum of one over its distances to the others. Where a sample has
    too many copies for its distance to be positive, the smallest positive distance counts. Numbers
    of trials and iterations are those of the public program [2]_. Finding neighbours takes up to n²
    distances before the first solution.

    References
    ----------
    .. [1] O. Kozbagarov and R. Mussabayev, "Distributed random swap: an efficient algorithm for
       minimum sum-of-squares clustering", Information Sciences 681, 121204, 2024.
       `doi:10.1016/j.ins.2024.121204 <https://doi.org/10.1016/j.ins.2024.121204>`_
    .. [2] T. Pahikkala, `DRSmeans <https://github.com/napsu/DRSmeans>`_, 2025.

    Examples
    --------
    >>> from lab.baselines import DRSMeans
    >>> X = [[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]]
    >>> model = DRSMeans(n_clusters=2, n_swaps=20, random_state=0).fit(X)
    >>> model.labels_
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    >>> model.inertia_, model.n_iter_, str(model.stop_reason_)
    (16.0, 21, 'max_offspring')
    """

    n_swaps: int = 1000
    kmeans_iterations: int = 2
    n_neighbors: int | None = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_int("n_swaps", self.n_swaps, at_least=1)
        check_int("kmeans_iterations", self.kmeans_iterations, at_least=1)
        if check_optional_int("n_neighbors", self.n_neighbors) is not None:
            check_int("n_neighbors", self.n_neighbors, at_least=2)

    def solutions(self, engine: BaselineEngine, rng: np.random.Generator) -> Iterator[Refinement]:
        """Make a first solution, and then one per trial from the best so far."""
        steps = LocalSearch(max_iter=self.kmeans_iterations)
        centers = random_samples(engine, self.n_clusters, rng)
        (best,) = engine.refine([Order(centers, quantile=rng.random(), local_search=steps)])
        yield best
        if self.n_clusters == 1:
            # A single centre is the mean, wherever it is put first.
            return
        density = weighted(engine, densities(engine, self.n_neighbors))
        chances, closest = center_chances(best.centers), engine.two_closest(best.centers)
        for _ in range(self.n_swaps):
            first, second, quantile = rng.random(3)
            removed = int(roulette(chances, np.array([first]))[0])
            labels, nearest, next_nearest = closest
            left = np.where(labels == removed, next_nearest, nearest)
            row = roulette(left * density, np.array([second]))
            centers = best.centers.copy()
            centers[removed] = engine.rows(row)[0]
            start = Order(centers, quantile=quantile, parent=best.handle, local_search=steps)
            (trial,) = engine.refine([start])
            if trial.inertia < best.inertia:
                best = trial
                chances, closest = center_chances(best.centers), engine.two_closest(best.centers)
            yield trial


def center_chances(centers: FloatArray) -> FloatArray:
    """Return the sum of one over the distances of each centre to the others.

    Centres in the same place count as if they were the shortest positive distance apart.
    """
    distances = cdist(centers, centers)
    np.fill_diagonal(distances, np.inf)
    apart = _without_zeros(distances.ravel()).reshape(distances.shape)
    chances: FloatArray = (1.0 / apart).sum(axis=1)
    return chances


def densities(engine: BaselineEngine, n_neighbors: int | None = None) -> FloatArray:
    """Return one over the distance of each sample to one of its nearest neighbours."""
    n = engine.n_samples
    number = min(n // 100 + 2 if n_neighbors is None else n_neighbors, n)
    density: FloatArray = 1.0 / _without_zeros(neighbour_distances(engine, number))
    return density


def neighbour_distances(engine: BaselineEngine, number: int) -> FloatArray:
    """Return the distance of each sample to its nearest neighbour with this number, in the frame.

    The nearest neighbour, with the number 1, is the sample itself.
    """
    n, d = engine.n_samples, engine.rows(np.array([0])).shape[1]
    if d < MANY_FEATURES:
        rows = engine.rows(np.arange(n))
        return np.asarray(KDTree(rows).query(rows, k=[number])[0])[:, 0]
    size = max(1, BLOCK // n)
    parts = []
    for begin in range(0, n, size):
        rows = engine.rows(np.arange(begin, min(begin + size, n)))
        distances = np.ascontiguousarray(engine.distances(rows).T)
        distances.partition(number - 1, axis=1)
        parts.append(distances[:, number - 1])
    return np.concatenate(parts) * engine.frame.scale


def _without_zeros(distances: FloatArray) -> FloatArray:
    """Replace zeros by the smallest positive and finite number, or by one if there is none."""
    positive = distances[(distances > 0.0) & np.isfinite(distances)]
    return np.where(distances > 0.0, distances, positive.min() if len(positive) else 1.0)
