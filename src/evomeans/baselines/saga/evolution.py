"""The loop of the self-adaptive genetic algorithm: one generation after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations, islice
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from evomeans.baselines.saga.crossovers import CROSSOVERS, Couple
from evomeans.baselines.saga.strategy import Strategy, inherited_strategy
from evomeans.engines import Engine
from evomeans.engines.protocol import Refinement, Start

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Settings:
    """The size of the search.

    Parameters
    ----------
    n_clusters : int
        Number of centres k.
    population_size : int
        Individuals S of a generation, at least 3.
    n_generations : int
        Generations T after the first.
    kmeans_iterations : int
        Steps G of K-means that every child gets.
    """

    n_clusters: int
    population_size: int
    n_generations: int
    kmeans_iterations: int

    @property
    def n_survivors(self) -> int:
        """The least number of survivors that make enough couples to fill the next generation."""
        survivors = 1
        while survivors * (survivors + 1) // 2 < self.population_size:
            survivors += 1
        return survivors


@dataclass
class Individual:
    """A solution, and the parameters that it was made with.

    Parameters
    ----------
    solution : Refinement
    strategy : Strategy
    labels : (n,) array, optional
        The cluster of each sample, once somebody has asked for it.
    """

    solution: Refinement
    strategy: Strategy
    labels: NDArray[Any] | None = field(default=None, repr=False)

    def partition(self, engine: Engine) -> NDArray[np.intp]:
        """Return the cluster of each sample."""
        if self.labels is None:
            self.labels = np.asarray(engine.assign(self.solution.centers)[0])
        return self.labels.astype(np.intp)


class Evolution:
    """A population, and the steps that change it.

    Parameters
    ----------
    engine : Engine
        Holds the samples.
    settings : Settings
    rng : numpy.random.Generator
        Source of all randomness.
    """

    def __init__(self, engine: Engine, settings: Settings, rng: np.random.Generator) -> None:
        self.engine = engine
        self.settings = settings
        self.rng = rng
        self.population: list[Individual] = []
        self.middle = engine.refine([Start(engine.samples_at(np.array([0.5])))])[0].centers[0]
        self.variances = np.zeros_like(self.middle)

    def run(self) -> Iterator[Refinement]:
        """Make solutions, one after the other; the last one is the best, refined to the end."""
        size = self.settings.population_size
        yield from self._settle([], (self.found() for _ in range(size)))
        for generation in range(self.settings.n_generations):
            survivors = self.population[: self.settings.n_survivors]
            couples = islice(ranked_pairs(survivors), size - len(survivors))
            fading = 1.0 - generation / self.settings.n_generations
            yield from self._settle(
                survivors, (self.breed(first, second, fading) for first, second in couples)
            )
        best = self.population[0].solution
        yield from self.engine.refine([Start(best.centers, parent=best.handle)])

    def _settle(
        self, survivors: list[Individual], begun: Iterator[tuple[Start, Strategy]]
    ) -> Iterator[Refinement]:
        """Refine a new generation; when all are there, they take the place of the last one."""
        generation = list(survivors)
        while batch := list(islice(begun, self.engine.batch)):
            solutions = self.engine.refine([start for start, _ in batch])
            for solution, (_, strategy) in zip(solutions, batch, strict=True):
                generation.append(Individual(solution, strategy))
                yield solution
        self.population = sorted(generation, key=lambda member: member.solution.inertia)

    def found(self) -> tuple[Start, Strategy]:
        """Begin an individual of the first generation: random samples, random parameters."""
        strategy = Strategy.drawn(self.rng.random(3))
        quantile = self.rng.random()
        # Distinct slots of equal weight: distinct samples, unless one sample fills two slots.
        slots = self.rng.choice(self.engine.n_samples, self.settings.n_clusters, replace=False)
        centers = self.engine.samples_at((slots + 0.5) / self.engine.n_samples)
        self.variances += ((centers - self.middle) ** 2).mean(axis=0)
        return Start(centers, quantile=quantile, max_iter=0), strategy

    def breed(
        self, first: Individual, second: Individual, fading: float
    ) -> tuple[Start, Strategy]:
        """Cross two individuals, parameters first, and vary the child as these say.

        Parameters
        ----------
        first, second : Individual
        fading : float
            What is left of the noise, from 1 to 0.
        """
        k = self.settings.n_clusters
        strategy = inherited_strategy(first.strategy, second.strategy, self.rng.random((3, 3)))
        couple = Couple(
            first.solution, second.solution, self.middle, partial(self.overlap, first, second)
        )
        centers, nearer = CROSSOVERS[strategy.crossover](couple, self.rng.random((2, k)))
        chance, chosen, place, quantile = self.rng.random(4).tolist()
        if chance < strategy.mutation_probability:
            centers[int(chosen * k)] = self.engine.samples_at(np.array([place]))[0]
        noise = fading * strategy.noise_range * np.sqrt(
            self.variances / self.settings.population_size
        )
        centers += noise * self.rng.uniform(-1.0, 1.0, centers.shape)
        return (
            Start(
                centers,
                quantile=quantile,
                parent=(first, second)[nearer].solution.handle,
                max_iter=self.settings.kmeans_iterations,
            ),
            strategy,
        )

    def overlap(self, first: Individual, second: Individual) -> FloatArray:
        """Return the weight of the samples that each two clusters have in common."""
        k = self.settings.n_clusters
        cells = first.partition(self.engine) * k + second.partition(self.engine)
        weights = cast(_Weighted, self.engine).weights
        return np.bincount(cells, weights, k * k).reshape(k, k).astype(np.float64)

    def strategies(self) -> tuple[Strategy, ...]:
        """Return the parameters of the individuals, the best individual's first."""
        return tuple(member.strategy for member in self.population)


class _Weighted(Protocol):
    """An engine that shows the weights of its samples; None means equal ones."""

    weights: FloatArray | None


def ranked_pairs(members: Iterable[Individual]) -> list[tuple[Individual, Individual]]:
    """All pairs of members, those of the best first: (1,2), (1,3), (2,3), (1,4), …"""
    pairs = combinations(enumerate(members), 2)
    ordered = sorted(pairs, key=lambda pair: (pair[1][0], pair[0][0]))
    return [(first, second) for (_, first), (_, second) in ordered]
