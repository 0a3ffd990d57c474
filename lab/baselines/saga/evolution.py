"""The loop of the self-adaptive genetic algorithm: one generation after another."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from evomeans.engines.protocol import LocalSearch, Order, Refinement
from evomeans.engines.sampling import roulette
from evomeans.typing import FloatArray, Indices
from lab.baselines.base import random_samples
from lab.baselines.engine import BaselineEngine, refined
from lab.baselines.saga.crossovers import CROSSOVERS, Couple
from lab.baselines.saga.parameters import ParameterSet, inherited_parameters

# Keeps a solution without any error from taking the whole roulette wheel.
LEAST_ERROR = 1e-9
ROULETTE, ELITIST = READINGS = "roulette", "elitist"
"""How the publication is read, see :class:`~lab.baselines.SAGA`."""


@dataclass
class Candidate:
    """A solution, the parameters it was made with, and its labels once they were needed."""

    solution: Refinement
    parameters: ParameterSet
    labels: Indices | None = field(default=None, repr=False)

    def partition(self, engine: BaselineEngine) -> Indices:
        """Return the cluster of each sample."""
        if self.labels is None:
            self.labels = closest_centers(engine, self.solution.centers)
        return self.labels


@dataclass
class Evolution:
    """A population (the last complete generation, the best first) and the steps that change it.

    ``middle`` is the mean of all samples. ``variances`` are those of the features, estimated from
    the samples at which the first generation starts.
    """

    engine: BaselineEngine
    rng: np.random.Generator
    n_clusters: int
    population_size: int
    n_generations: int
    kmeans_iterations: int
    reading: str = ROULETTE
    population: list[Candidate] = field(default_factory=list, init=False)
    middle: FloatArray = field(init=False)
    variances: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        (mean,) = self.engine.refine([Order(self.engine.samples_at(np.array([0.5])))])
        self.middle = mean.centers[0]
        self.variances = np.zeros_like(self.middle)

    @property
    def n_survivors(self) -> int:
        """The number S_B of the best that survive into the next generation: one in five."""
        return max(1, self.population_size // 5)

    def run(self) -> Iterator[Refinement]:
        """Make solutions, one after another; the last is the best one, refined to the end."""
        size = self.population_size
        yield from self._settle([], (self.found() for _ in range(size)))
        for generation in range(self.n_generations):
            survivors = self.population[: self.n_survivors]
            fading = 1.0 - generation / self.n_generations
            children = (self.breed(fading, nth) for nth in range(size - len(survivors)))
            yield from self._settle(survivors, children)
        best = self.population[0].solution
        yield from self.engine.refine([Order(best.centers, parent=best.handle)])

    def _settle(
        self, survivors: Sequence[Candidate], begun: Iterator[tuple[Order, ParameterSet]]
    ) -> Iterator[Refinement]:
        """Refine a generation; when it is complete, it replaces the previous one."""
        generation, parameters = list(survivors), deque[ParameterSet]()

        def starts() -> Iterator[Order]:
            for start, own in begun:
                parameters.append(own)
                yield start

        for solution in refined(self.engine, self.n_clusters, starts()):
            generation.append(Candidate(solution, parameters.popleft()))
            yield solution
        self.population = sorted(generation, key=lambda member: member.solution.inertia)

    def found(self) -> tuple[Order, ParameterSet]:
        """Begin a candidate of the first generation: random samples, random parameters."""
        parameters = ParameterSet.drawn(self.rng.random(3))
        quantile = self.rng.random()
        centers = random_samples(self.engine, self.n_clusters, self.rng)
        squares = (centers - self.middle) ** 2
        self.variances += squares.mean(axis=0) / self.population_size
        return Order(centers, quantile=quantile, local_search=LocalSearch(max_iter=0)), parameters

    def breed(self, fading: float, nth: int = 0) -> tuple[Order, ParameterSet]:
        """Select two parents, cross their parameters and then their centres, and vary the child.

        ``fading`` is the part of the noise that is left, from 1 at the beginning to 0 at the end.
        ``nth`` is the number of the child in its generation.
        """
        k = self.n_clusters
        if self.reading == ELITIST:
            first, second = nth_pair(self.population[: max(2, self.n_survivors)], nth)
        else:
            first, second = select_by_roulette(self.population, self.rng.random(2))
        parameters = inherited_parameters(
            first.parameters, second.parameters, self.rng.random((3, 3))
        )
        cross = CROSSOVERS[parameters.crossover]
        centers, nearer = cross(self.couple(first, second), self.rng.random((2, k)))
        chance, chosen, place, quantile = self.rng.random(4).tolist()
        if chance < parameters.mutation_probability:
            centers[int(chosen * k)] = self.engine.samples_at(np.array([place]))[0]
        reach = fading * parameters.noise_range * np.sqrt(self.variances)
        centers += reach * self.rng.uniform(-1.0, 1.0, centers.shape)
        parent = (first, second)[nearer].solution.handle
        steps = LocalSearch(max_iter=self.kmeans_iterations)
        return Order(centers, quantile=quantile, parent=parent, local_search=steps), parameters

    def couple(self, first: Candidate, second: Candidate) -> Couple:
        """Bring two candidates together; what needs all samples is computed when called."""
        engine, k = self.engine, self.n_clusters
        centers = first.solution.centers, second.solution.centers

        def overlap() -> FloatArray:
            cells = first.partition(engine) * k + second.partition(engine)
            return _total_weights(engine, cells, (k, k))

        def joint_weights() -> FloatArray:
            if self.reading == ELITIST:
                return np.array([one.solution.cluster_weights for one in (first, second)])
            return _total_weights(engine, closest_centers(engine, np.concatenate(centers)), (2, k))

        return Couple(centers, self.middle, overlap, joint_weights)

    def strategies(self) -> tuple[ParameterSet, ...]:
        """Return the parameters of all candidates, those of the best one first."""
        return tuple(member.parameters for member in self.population)


def nth_pair(elite: Sequence[Candidate], nth: int) -> tuple[Candidate, Candidate]:
    """Return one pair of the elite after the other, and begin again after the last."""
    pairs = list(combinations(elite, 2))
    return pairs[nth % len(pairs)]


def select_by_roulette(
    population: Sequence[Candidate], uniforms: FloatArray
) -> tuple[Candidate, Candidate]:
    """Select two different candidates by a roulette wheel, with chances of one over the error."""
    errors = np.array([member.solution.inertia for member in population])
    errors /= max(errors.max(), np.finfo(np.float64).tiny)
    chances = 1.0 / (errors + LEAST_ERROR)
    first = _spun(chances, uniforms[0])
    chances[first] = 0.0
    return population[first], population[_spun(chances, uniforms[1])]


def _spun(chances: FloatArray, uniform: float) -> int:
    """Return the index at which the wheel stops; never one without a chance."""
    return int(roulette(chances, np.array([uniform]))[0])


def closest_centers(engine: BaselineEngine, centers: FloatArray) -> Indices:
    """Return the index of the closest centre of every sample."""
    return np.asarray(engine.assign(centers)[0]).astype(np.intp)


def _total_weights(engine: BaselineEngine, cells: Indices, shape: tuple[int, int]) -> FloatArray:
    totals = np.bincount(cells, engine.weights, shape[0] * shape[1])
    return totals.reshape(shape).astype(np.float64)
