"""Base classes of engines: how single centres are drawn, and the course of a model's refinement."""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Self

import numpy as np
from numpy.typing import NDArray

from evomeans.engines.frame import Frame, check_moderate_weight
from evomeans.engines.protocol import (
    Abandoned,
    Ability,
    Engine,
    Order,
    Refinement,
    require_abilities,
)
from evomeans.engines.rules import BETTER, split_mixture
from evomeans.engines.sampling import Drawing, WeightedDraw, roulette
from evomeans.typing import FloatArray, Labels


class DrawnCenters(Engine):
    """What an engine inherits that draws single centres among its samples, by their ``chances``."""

    weights: FloatArray
    chances: FloatArray

    @abstractmethod
    def rows(self, chosen: NDArray[np.intp]) -> FloatArray:
        """Return a few samples as centres."""

    @abstractmethod
    def nearest(self, centers: FloatArray) -> FloatArray:
        """Return what every sample costs with the closest centre, per unit of weight."""

    def samples_at(self, quantiles: FloatArray) -> FloatArray:
        """Rows at quantiles of the cumulated weight."""
        return self.rows(roulette(self.chances, quantiles))

    def chance(self, nearest: FloatArray) -> FloatArray:
        """Weights times distances; weights alone if all of these are zero."""
        chance = self.chances * nearest
        return chance if chance.any() else self.chances

    def relocate(
        self, centers: FloatArray, removed: int, alpha: float, quantile: float, power: int
    ) -> None:
        """Put one centre onto a sample drawn from the mixture (the paper's eq. 5)."""
        by_distance, quantile = split_mixture(alpha, quantile)
        chance = self.chances
        if by_distance and len(centers) > 1:
            chance = self.chance(self.nearest(np.delete(centers, removed, axis=0)) ** (power / 2))
        centers[removed] = self.rows(roulette(chance, np.array([quantile])))[0]

    def swapped(
        self, centers: FloatArray, weights: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """Take away a centre of little use, and put it onto a sample that costs much.

        The use of a cluster is what merging it with the cheapest other one would cost, wₐwᵦ/(wₐ+wᵦ)
        times the squared distance of their centres; of a few clusters drawn, the least useful one
        goes. The sample is drawn by its share of the objective.
        """
        k = len(centers)
        drawn = rng.integers(k, size=max(2, k // 10))
        apart = np.sum((centers[drawn][:, None] - centers) ** 2, axis=2)
        products, totals = np.outer(weights[drawn], weights), np.add.outer(weights[drawn], weights)
        costs = apart * products / np.where(totals > 0.0, totals, 1.0)
        costs[np.arange(len(drawn)), drawn] = np.inf
        swapped = centers.copy()
        place = roulette(self.chance(self.nearest(centers)), rng.random(1))
        swapped[drawn[costs.min(axis=1).argmin()]] = self.rows(place)[0]
        return swapped


# How often a seeding among some samples draws others by their distances.
DRAWS_BY_DISTANCE = 2


class PlainKMeans(Engine):
    """What an engine inherits that runs K-means to its fixed point and nothing else."""

    def takes_long(self, n_clusters: int) -> bool:
        """Expect large data: such engines are not for small ones."""
        return True

    @abstractmethod
    def drawn(self, drawing: Drawing) -> tuple[FloatArray, FloatArray]:
        """Return rows that are drawn by their weights and distances, and what each stands for."""

    def seeds_among(self, places: FloatArray, draws: Sequence[FloatArray]) -> list[FloatArray]:
        """Draw centres by k-means++ among some samples, which the CPU engine takes over.

        Others follow twice, drawn by their distances to the centres of the first founder. So
        outliers and small clusters are among them, as in k-means‖ (Bahmani et al., "Scalable
        k-means++", Proceedings of the VLDB Endowment 5, 2012).
        """
        # Imported late: importing the estimator loads no compiler.
        from evomeans.engines.cpu import CpuEngine
        from evomeans.engines.workers import watched

        size, name = min(len(places), self.most_sampled), int(places[0] * 2.0**53)
        rows = self.frame.decode(self.samples_at(places))
        weights = np.full(len(rows), self.total_weight / len(rows))

        def seeds(founders: Sequence[FloatArray]) -> list[FloatArray]:
            sample = CpuEngine(rows, weights, n_jobs=self.n_jobs, frame=self.frame)
            each = [partial(sample.seed, numbers) for numbers in founders]
            return [watched(sample, seed, lambda: self.is_abandoned) for seed in each]

        for nth in range(DRAWS_BY_DISTANCE if size else 0):
            (centers,) = seeds(draws[:1])
            try:
                cost = self.frame.inertia_in_frame(self.weigh(centers)[1])
                found, own = self.drawn(Drawing(name + nth, size, centers, cost))
            except Abandoned:
                break
            rows, weights = np.concatenate([rows, found]), np.concatenate([weights, own])
        return seeds(draws)


# Single moves follow a swap only if it comes this close to the best without them.
NEARLY_BEST = 1.003
# A descent is abandoned if it needs more steps like its last one to reach the required inertia.
STEPS_AHEAD = 10.0
# Products between two looks at whether the engine is abandoned, and those of a long assignment.
PRODUCTS_AT_ONCE, LONG = 2**25, 2_500_000
# How long labels take is estimated by this share of the centres.
FEW_CENTERS = 1 / 16


class ModelEngine(DrawnCenters):
    """Samples in memory, and the course of a refinement around the local search of a model.

    Centres are drawn by ``chances``: weights, unless a model has samples that cannot be centres.
    """

    batch = 1
    abilities = frozenset({Ability.SEEDING, Ability.SINGLE_MOVES, Ability.SWAPS})

    def __init__(self, weights: FloatArray, frame: Frame, n_jobs: int = 1) -> None:
        self.weights = weights
        self.chances = weights
        self.frame = frame
        self.n_jobs = n_jobs
        self.n_samples = len(weights)
        self.total_weight = float(weights.sum())
        check_moderate_weight(self.total_weight)
        self._reached: FloatArray | None = None
        self._seconds: dict[int, float] = {}

    @abstractmethod
    def descend(
        self, centers: FloatArray, single_moves: bool, goal: float = math.inf
    ) -> Refinement:
        """Run the local search of the model from centres, which it may change.

        Its inertia is the objective, in the frame. It may end as soon as that is not on its way to
        below ``goal``.
        """

    @abstractmethod
    def assign(self, centers: FloatArray) -> tuple[Labels, float]:
        """Label the samples by these centres; return the objective in data units too."""

    @abstractmethod
    def distances(self, centers: FloatArray) -> FloatArray:
        """Distances of all samples to all centres, in data units."""

    def refine(self, starts: Sequence[Order]) -> list[Refinement]:
        """Refine every start, one after the other."""
        require_abilities(starts, self.abilities, type(self).__name__)
        return list(map(self._refine, starts))

    def _refine(self, start: Order) -> Refinement:
        centers, moves = start.centers.copy(), start.local_search.single_moves
        self._reached = start.centers
        try:
            if start.removed >= 0:
                self.relocate(centers, start.removed, start.alpha, start.quantile, start.power)
            self._reached = centers.copy()
            return self._improve(start, self.descend(centers, moves))
        except Abandoned:
            return Refinement.stopped(start, np.array(self._reached))

    def _improve(self, start: Order, best: Refinement) -> Refinement:
        """Try swaps from where the descent of a start ended."""
        centers, moves = best.centers, start.local_search.single_moves
        n_iter = best.n_iter
        # The engine has no randomness of its own: all draws follow from that of the start.
        rng = np.random.default_rng(int(start.quantile * 2**53))
        for _ in range(start.local_search.swaps if len(centers) > 1 else 0):
            self.reach(best.centers)
            goal = best.inertia * NEARLY_BEST
            begin = self.swapped(best.centers, best.cluster_weights, rng)
            swapped = self.descend(begin, False, goal)
            n_iter += swapped.n_iter
            if moves and swapped.inertia < goal:
                swapped = self.descend(swapped.centers, True)
                n_iter += swapped.n_iter
            if swapped.inertia < best.inertia * BETTER:
                best = swapped
        inertia = self.frame.inertia_in_data_units(best.inertia)
        return replace(best, inertia=inertia, n_iter=n_iter)

    def seed(self, quantiles: FloatArray) -> FloatArray:
        """Draw centres by k-means++."""
        quantiles = quantiles.reshape(len(quantiles), -1)
        chosen = roulette(self.chances, quantiles[0, :1])
        try:
            nearest = self.nearest_each(chosen)[0]
            for trials in quantiles[1:]:
                self.check_abandoned()
                drawn = roulette(self.chance(nearest), trials)
                closer = [np.minimum(nearest, one) for one in self.nearest_each(drawn)]
                best = int(np.argmin([weighted_sum(self.weights, one) for one in closer]))
                chosen, nearest = np.append(chosen, drawn[best]), closer[best]
        except Abandoned:
            drawing = WeightedDraw(self.n_samples, self.chances)
            others = drawing.distinct_rows(quantiles[len(chosen) :, 0], chosen)
            chosen = np.concatenate([chosen, others])
        return self.rows(chosen)

    def nearest_each(self, chosen: NDArray[np.intp]) -> Sequence[FloatArray]:
        """Return what every sample costs with a centre on each of some samples alone."""
        return [self.nearest(one[None]) for one in self.rows(chosen)]

    def reach(self, centers: FloatArray) -> None:
        """Remember how far a refinement has come, in case it is abandoned; or end it."""
        self._reached = centers
        self.check_abandoned()

    def blocks(self, n_clusters: int) -> Iterator[slice]:
        """Yield the rows that are compared with centres together, while anybody wants it."""
        at_once = max(1, PRODUCTS_AT_ONCE // max(1, n_clusters * len(self.frame.shift)))
        for first in range(0, self.n_samples, at_once):
            self.check_abandoned()
            yield slice(first, min(first + at_once, self.n_samples))

    def workers(self, n_clusters: int, most: int) -> list[Self]:
        """Return engines over the same samples, one for each thread."""
        return [self.twin() for _ in range(min(self.n_jobs, most))]

    def twin(self) -> Self:
        """Return an engine that shares the samples, and nothing that is written to."""
        twin = copy.copy(self)
        # It may go on while this one is abandoned.
        twin.stop = np.zeros(1, np.int64)
        return twin

    def takes_long(self, n_clusters: int) -> bool:
        """Whether an assignment takes milliseconds."""
        return self.n_samples * n_clusters * len(self.frame.shift) >= LONG

    def labelling_seconds(self, n_clusters: int) -> float:
        """Estimate how long labels take by the time that a few centres take."""
        if not self.takes_long(n_clusters):
            return 0.0
        if n_clusters not in self._seconds:
            few = max(1, int(FEW_CENTERS * n_clusters))
            centers = self.rows(np.linspace(0, self.n_samples - 1, few).astype(np.intp))
            began = perf_counter()
            self.nearest(centers)
            self._seconds[n_clusters] = (perf_counter() - began) * n_clusters / few
        return self._seconds[n_clusters]


def weighted_sum(weights: FloatArray, values: FloatArray) -> float:
    """Σwv, in the same order whatever the number of threads that BLAS has."""
    return float((weights * values).sum())


def is_hopeless(before: float, now: float, goal: float) -> bool:
    """Whether a descent misses its goal, as each step gains less than the one before."""
    return now - goal > STEPS_AHEAD * (before - now)
