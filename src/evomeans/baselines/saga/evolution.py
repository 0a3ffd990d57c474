"""The loop of the self-adaptive genetic algorithm: one generation after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from evomeans.baselines.base import random_samples
from evomeans.baselines.saga.crossovers import CROSSOVERS, Couple
from evomeans.baselines.saga.partitions import joint_weights, overlap, partition
from evomeans.baselines.saga.strategy import Strategy, inherited_strategy
from evomeans.engines import Engine
from evomeans.engines.protocol import Refinement, Start

FloatArray = NDArray[np.float64]
# A solution without any error does not take all of the roulette wheel.
LEAST_ERROR = 1e-9


@dataclass(frozen=True)
class Settings:
    """The size of the search.

    Parameters
    ----------
    n_clusters : int
        Number of centres k.
    population_size : int
        Individuals S of a generation, at least 2.
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
        """The number S_B of the best that live on in the next generation: every fifth."""
        return max(1, self.population_size // 5)


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
    labels: NDArray[np.intp] | None = field(default=None, repr=False)

    def partition(self, engine: Engine) -> NDArray[np.intp]:
        """Return the cluster of each sample."""
        if self.labels is None:
            self.labels = partition(engine, self.solution.centers)
        return self.labels


class Evolution:
    """A population, and the steps that change it.

    Parameters
    ----------
    engine : Engine
        Holds the samples.
    settings : Settings
    rng : numpy.random.Generator
        Source of all randomness.

    Attributes
    ----------
    population : list of Individual
        The last complete generation, the best first.
    middle : (d,) array
        Mean of all samples.
    variances : (d,) array
        Of the features, estimated from the samples at which the first generation begins.
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
        size, n_generations = self.settings.population_size, self.settings.n_generations
        yield from self._settle([], (self.found() for _ in range(size)))
        for generation in range(n_generations):
            survivors = self.population[: self.settings.n_survivors]
            fading = 1.0 - generation / n_generations
            children = (self.breed(fading) for _ in range(size - len(survivors)))
            yield from self._settle(survivors, children)
        best = self.population[0].solution
        yield from self.engine.refine([Start(best.centers, parent=best.handle)])

    def _settle(
        self, survivors: Sequence[Individual], begun: Iterator[tuple[Start, Strategy]]
    ) -> Iterator[Refinement]:
        """Refine a generation; when it is complete, it takes the place of the last one."""
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
        centers = random_samples(self.engine, self.settings.n_clusters, self.rng)
        squares = (centers - self.middle) ** 2
        self.variances += squares.mean(axis=0) / self.settings.population_size
        return Start(centers, quantile=quantile, max_iter=0), strategy

    def breed(self, fading: float) -> tuple[Start, Strategy]:
        """Select two parents, cross their parameters and then themselves, and vary the child.

        Parameters
        ----------
        fading : float
            What is left of the noise, from 1 at the beginning to 0 at the end.
        """
        k = self.settings.n_clusters
        first, second = select_parents(self.population, self.rng.random(2))
        strategy = inherited_strategy(first.strategy, second.strategy, self.rng.random((3, 3)))
        cross = CROSSOVERS[strategy.crossover]
        centers, nearer = cross(self.couple(first, second), self.rng.random((2, k)))
        chance, chosen, place, quantile = self.rng.random(4).tolist()
        if chance < strategy.mutation_probability:
            centers[int(chosen * k)] = self.engine.samples_at(np.array([place]))[0]
        reach = fading * strategy.noise_range * np.sqrt(self.variances)
        centers += reach * self.rng.uniform(-1.0, 1.0, centers.shape)
        start = Start(
            centers,
            quantile=quantile,
            parent=(first, second)[nearer].solution.handle,
            max_iter=self.settings.kmeans_iterations,
        )
        return start, strategy

    def couple(self, first: Individual, second: Individual) -> Couple:
        """Bring two individuals together; what takes a look at the samples waits to be called."""
        engine, centers = self.engine, (first.solution.centers, second.solution.centers)
        return Couple(
            *centers,
            self.middle,
            overlap=lambda: overlap(
                engine, first.partition(engine), second.partition(engine), len(centers[0])
            ),
            joint_weights=partial(joint_weights, engine, *centers),
        )

    def strategies(self) -> tuple[Strategy, ...]:
        """Return the parameters of all individuals, those of the best one first."""
        return tuple(member.strategy for member in self.population)


def select_parents(
    population: Sequence[Individual], uniforms: FloatArray
) -> tuple[Individual, Individual]:
    """Select two different individuals by a roulette wheel, with chances of one over the error."""
    errors = np.array([member.solution.inertia for member in population])
    errors /= max(errors.max(), np.finfo(np.float64).tiny)
    chances = 1.0 / (errors + LEAST_ERROR)
    first = _spun(chances, uniforms[0])
    chances[first] = 0.0
    return population[first], population[_spun(chances, uniforms[1])]


def _spun(chances: FloatArray, uniform: float) -> int:
    """Return the index at which the wheel stops; never one without a chance."""
    cumulated = chances.cumsum()
    index = int(np.searchsorted(cumulated, uniform * cumulated[-1], side="right"))
    return min(index, int(np.flatnonzero(chances)[-1]))
