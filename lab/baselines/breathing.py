"""Breathing K-means (Fritzke 2020)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.distance import cdist

from evomeans.engines.protocol import Ability, Order, Refinement
from evomeans.estimators.parameters import check_int, check_real
from evomeans.typing import FloatArray
from lab.baselines.base import AnytimeBaseline
from lab.baselines.engine import BaselineEngine

# A new centre starts within this distance, in each feature, of the centre whose cluster it will
# share, in units of the root mean squared distance of the samples to their centres.
OFFSET = 0.005
# A smaller relative gain counts as none, and makes the breath shallower.
GAIN = 1e-4


@dataclass(eq=False, repr=False, kw_only=True)
class BreathingKMeans(AnytimeBaseline):
    """Breathing K-means: add a few centres, remove as many, as long as that helps [1]_.

    A breath in adds ``m`` centres next to those with the largest error. A breath out removes the
    ``m`` centres whose samples would cost least with their second closest centre. K-means follows
    both. When a cycle brings no improvement, the breath becomes shallower by one centre. The search
    ends when none is left.

    Parameters
    ----------
    m : int, default=5
        How many centres are added and removed at first, at most ``n_clusters``. A larger ``m``
        takes longer and finds better solutions. With 0 there is only the start.
    theta : float, default=1.1
        The neighbours of a removed centre must stay. Its neighbours are the centres closer to it
        than ``theta`` times the mean distance of a centre to its nearest neighbour. None protects
        only the nearest neighbour, as in the last revision of the paper.

    See Also
    --------
    RandomSwap : Moves one randomly chosen centre at a time.
    evomeans.HGMeans : Searches with a population of solutions.

    Notes
    -----
    A cycle continues from the solution of the previous one, whether that is better or worse. An
    improvement must exceed one part in 10,000, as in the author's program. The start is greedy
    k-means++, as in the paper. K-means always continues to its fixed point here; the author's
    program stops it earlier.

    References
    ----------
    .. [1] B. Fritzke, "The breathing k-means algorithm", `arXiv:2006.15666
       <https://arxiv.org/abs/2006.15666>`_, 2020; last revised in 2024 as "Breathing K-Means:
       Superior K-Means Solutions through Dynamic K-Values".

    Examples
    --------
    >>> from lab.baselines import BreathingKMeans
    >>> X = [[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]]
    >>> model = BreathingKMeans(n_clusters=2, random_state=0).fit(X)
    >>> model.labels_
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    >>> model.inertia_, str(model.stop_reason_)
    (16.0, 'max_offspring')
    """

    m: int = 5
    theta: float | None = 1.1

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_int("m", self.m, at_least=0)
        theta = check_real("theta", self.theta)
        if theta is not None and not theta > 0:
            raise ValueError(f"theta={self.theta} must be positive, or None.")

    def _abilities(self) -> frozenset[Ability]:
        return frozenset({Ability.SEEDING})

    def solutions(self, engine: BaselineEngine, rng: np.random.Generator) -> Iterator[Refinement]:
        """Run K-means from a k-means++ start, then make one solution per cycle."""
        k = self.n_clusters
        seeds = engine.seed(rng.random((k, 2 + int(math.log(k)))))
        (solution,) = engine.refine([Order(seeds, quantile=rng.random())])
        yield solution
        lowest = solution.inertia
        # A single centre has nowhere to send its samples.
        depth = min(self.m, k) if k > 1 else 0
        while depth > 0:
            more = breathe_in(engine, solution, depth, rng)
            (inhaled,) = engine.refine([Order(more, quantile=rng.random())])
            fewer = breathe_out(engine, inhaled, depth, self.theta)
            (exhaled,) = engine.refine([Order(fewer, quantile=rng.random())])
            solution = replace(exhaled, n_iter=inhaled.n_iter + exhaled.n_iter)
            yield solution
            if solution.inertia < lowest * (1.0 - GAIN):
                lowest = solution.inertia
            else:
                depth -= 1


def breathe_in(
    engine: BaselineEngine, solution: Refinement, count: int, rng: np.random.Generator
) -> FloatArray:
    """Add a centre close to each of the ``count`` centres with the largest errors."""
    centers = solution.centers
    errors, _ = engine.errors_and_utilities(centers)
    worst = np.argsort(-errors, kind="stable")[:count]
    deviation = math.sqrt(solution.inertia / solution.cluster_weights.sum()) * engine.frame.scale
    offsets = OFFSET * deviation * rng.uniform(-1.0, 1.0, size=(count, centers.shape[1]))
    return np.concatenate([centers, centers[worst] + offsets])


def breathe_out(
    engine: BaselineEngine, solution: Refinement, count: int, theta: float | None
) -> FloatArray:
    """Remove ``count`` centres of low utility, but no two neighbours."""
    _, utilities = engine.errors_and_utilities(solution.centers)
    spared = dispensable(solution.centers, utilities, count, theta)
    return np.delete(solution.centers, spared, axis=0)


def dispensable(
    centers: FloatArray, utilities: FloatArray, count: int, theta: float | None
) -> list[int]:
    """Choose ``count`` centres to remove, the least useful first.

    The neighbours of a chosen centre have to take over its samples. They are therefore frozen and
    not chosen themselves, the nearest first, as long as enough others are left.
    """
    distances = cdist(centers, centers)
    np.fill_diagonal(distances, np.inf)
    radius = None if theta is None else theta * distances.min(axis=1).mean()
    chosen: list[int] = []
    frozen: set[int] = set()
    for j in np.argsort(utilities, kind="stable").tolist():
        if len(chosen) == count:
            break
        if j in frozen:
            continue
        chosen.append(j)
        n_close = 1 if radius is None else int(np.count_nonzero(distances[j] < radius))
        for neighbour in np.argsort(distances[j], kind="stable")[:n_close].tolist():
            if len(frozen) + count < len(centers):
                frozen.add(neighbour)
    return chosen
