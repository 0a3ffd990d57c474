"""Recombinator K-means (Baldassi 2022)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np

from evomeans.engines.protocol import Ability, Engine, LocalSearch, Order, Refinement
from evomeans.estimators.parameters import check_int, check_optional_int
from evomeans.typing import FloatArray
from lab.baselines.base import AnytimeBaseline
from lab.baselines.checks import check_number
from lab.baselines.engine import BaselineEngine, made


@dataclass(eq=False, repr=False, kw_only=True)
class RecombinatorKMeans(AnytimeBaseline):
    """Recombinator K-means: k-means++ over the centres of a whole population [1]_.

    The centres of all members are a pool from which k-means++ draws the centres of every child, and
    K-means follows. The best of parents and children are the next generation. Centres of better
    members are drawn more often, and this preference sharpens from generation to generation, until
    all members agree.

    Parameters
    ----------
    population_size : int, default=20
        Members of a generation (J), and children of each. The publication leaves it to the user.
    beta_step : float, default=0.1
        How much the preference sharpens with every generation (Δβ).
    tol : float, default=1e-4
        Stop when the mean inertia of the population is within this share of the best.
    kmeans_iterations : int, default=10
        Iterations of K-means for every child, at most.
    n_generations : int, default=1000
        Generations after the first, at most.
    n_candidates : int, default=None
        Points among which k-means++ chooses each centre; None means 2 + log k, rounded down.

    See Also
    --------
    evomeans.HGMeans : Crosses two parents by matching their centres.
    SAGA : Another genetic algorithm, with six crossovers.

    Notes
    -----
    The first generation is drawn from the samples by greedy k-means++. The authors also end K-means
    when an iteration gains less than 1e-5; here only the number of iterations ends it. The best
    solution is refined to the fixed point of K-means at the end.

    References
    ----------
    .. [1] C. Baldassi, "Recombinator-k-means: an evolutionary algorithm that exploits k-means++ for
       recombination", IEEE Transactions on Evolutionary Computation 26, 991-1003, 2022;
       `arXiv:1905.00531 <https://arxiv.org/abs/1905.00531>`_.

    Examples
    --------
    >>> from lab.baselines import RecombinatorKMeans
    >>> X = [[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]]
    >>> model = RecombinatorKMeans(n_clusters=2, population_size=5, random_state=0).fit(X)
    >>> model.labels_
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    >>> model.inertia_, str(model.stop_reason_)
    (16.0, 'max_offspring')
    """

    population_size: int = 20
    beta_step: float = 0.1
    tol: float = 1e-4
    kmeans_iterations: int = 10
    n_generations: int = 1000
    n_candidates: int | None = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_int("population_size", self.population_size, at_least=2)
        check_number("beta_step", self.beta_step, least=0.0)
        check_number("tol", self.tol, least=0.0)
        check_int("kmeans_iterations", self.kmeans_iterations, at_least=1)
        check_int("n_generations", self.n_generations, at_least=1)
        if check_optional_int("n_candidates", self.n_candidates) is not None:
            check_int("n_candidates", self.n_candidates, at_least=1)

    def _abilities(self) -> frozenset[Ability]:
        return frozenset({Ability.SEEDING})

    def solutions(self, engine: BaselineEngine, rng: np.random.Generator) -> Iterator[Refinement]:
        """Make a generation from the samples, and others from the centres of the one before."""
        size, k = self.population_size, self.n_clusters
        n_trials = self.n_candidates or 2 + int(math.log(k))
        population: list[Refinement] = []
        for generation in range(self.n_generations + 1):
            pool, chances = None, None
            if population:
                if has_collapsed([member.inertia for member in population], self.tol):
                    break
                pool = np.concatenate([member.centers for member in population])
                inertias = np.array([member.inertia for member in population])
                chances = np.repeat(preferences(inertias, generation * self.beta_step), k)
            draws = (rng.random((k, n_trials)) for _ in range(size))
            jobs = (self._child(pool, chances, draw, rng.random()) for draw in draws)
            children = []
            for child in made(engine, k, jobs):
                children.append(child)
                yield child
            population = sorted(population + children, key=lambda one: one.inertia)[:size]

    def _child(
        self,
        pool: FloatArray | None,
        chances: FloatArray | None,
        uniforms: FloatArray,
        quantile: float,
    ) -> Callable[[Engine], Refinement]:
        """Prepare a child; any worker may make it."""
        steps = LocalSearch(max_iter=self.kmeans_iterations)

        def make(worker: Engine) -> Refinement:
            if pool is None or chances is None:
                centers = worker.seed(uniforms)
            else:
                able = cast("BaselineEngine", worker)
                centers = pool[able.seed_from(pool, chances, uniforms)]
            return worker.refine([Order(centers, quantile=quantile, local_search=steps)])[0]

        return make


def preferences(inertias: FloatArray, beta: float) -> FloatArray:
    """Return exp(−β·(f − best)/(mean − best)) of every member: how often its centres are drawn.

    They are 1 if all members are equally good.
    """
    best, mean = inertias.min(), inertias.mean()
    above = inertias - best
    weights: FloatArray = np.exp(-beta * above / (mean - best)) if mean > best else above + 1.0
    return weights


def has_collapsed(inertias: list[float], tol: float) -> bool:
    """Whether the mean is as good as the best, within a tolerance."""
    return math.fsum(inertias) / len(inertias) <= min(inertias) * (1.0 + tol)
