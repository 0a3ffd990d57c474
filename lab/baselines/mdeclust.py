"""MDEClust: memetic differential evolution (Mansueto and Schoen 2021)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from evomeans.engines.protocol import Order, Refinement
from evomeans.estimators.parameters import check_int
from evomeans.search.population import CLONE_TOLERANCE
from evomeans.typing import FloatArray, Indices
from lab.baselines.base import AnytimeBaseline, random_samples
from lab.baselines.checks import check_choice, check_interval, check_number
from lab.baselines.engine import BaselineEngine, refined
from lab.baselines.saga.crossovers import pair_up

PARENTS = 3


@dataclass(eq=False, repr=False, kw_only=True)
class MDEClust(AnytimeBaseline):
    """MDEClust: differential evolution of centres, with K-means for every child [1]_.

    A child is S₁ + F·(S₂ − S₃), where the parents are three random members of the population whose
    centres have been matched. It replaces one member, each in turn, if K-means makes it better.

    Parameters
    ----------
    population_size : int, default=150
        Members of the population, at least 4. They begin as K-means from random samples.
    n_iter_no_change : int, default=5000
        Stop after this many children in a row that do not improve the best solution.
    tol : float, default=1e-4
        Stop when the differences of the inertias of all pairs of members add up to less. It is
        absolute, as published, and so depends on the units of ``X``.
    f_range : tuple of two floats, default=(0.5, 0.8)
        F is drawn from this interval for every child.
    matching : {"exact", "greedy"}, default="exact"
        How centres are matched: those of S₁ and S₂ with S₃ at the least total squared distance, or
        those of all three with the best solution, centre by centre.
    mutation : bool, default=False
        Whether one centre of a child is put onto a random sample, as in HG-means.
    alpha : float, default=0.5
        How much the distance to the other centres counts in the choice of that sample.
    n_attempts : int, default=3
        How often parents are drawn until they are different solutions.

    See Also
    --------
    evomeans.HGMeans : Takes whole centres from two parents.
    SAGA : Adapts the way of crossing to the data.

    Notes
    -----
    Solutions count as different if their inertia or the weights of their clusters differ; the
    authors compare the labels of all samples. Empty clusters are refilled at once, where the
    authors carry them along until a child is made.

    References
    ----------
    .. [1] P. Mansueto and F. Schoen, "Memetic differential evolution methods for clustering
       problems", Pattern Recognition 114, 107849, 2021.
       `doi:10.1016/j.patcog.2021.107849 <https://doi.org/10.1016/j.patcog.2021.107849>`_

    Examples
    --------
    >>> from lab.baselines import MDEClust
    >>> X = [[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]]
    >>> model = MDEClust(n_clusters=2, population_size=10, random_state=0).fit(X)
    >>> model.labels_
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    >>> model.inertia_, str(model.stop_reason_)
    (16.0, 'max_offspring')
    """

    population_size: int = 150
    n_iter_no_change: int = 5000
    tol: float = 1e-4
    f_range: tuple[float, float] = (0.5, 0.8)
    matching: str = "exact"
    mutation: bool = False
    alpha: float = 0.5
    n_attempts: int = 3

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_int("population_size", self.population_size, at_least=PARENTS + 1)
        check_int("n_iter_no_change", self.n_iter_no_change, at_least=1)
        check_int("n_attempts", self.n_attempts, at_least=1)
        check_number("tol", self.tol, least=0.0)
        check_number("alpha", self.alpha, least=0.0, most=1.0)
        check_interval("f_range", self.f_range)
        check_choice("matching", self.matching, ("exact", "greedy"))
        if not isinstance(self.mutation, bool | np.bool_):
            raise TypeError(f"mutation must be True or False, got {self.mutation!r}.")

    def solutions(self, engine: BaselineEngine, rng: np.random.Generator) -> Iterator[Refinement]:
        """Make a random population, then one child for each member in turn."""
        starts = (
            Order(random_samples(engine, self.n_clusters, rng), quantile=rng.random())
            for _ in range(self.population_size)
        )
        population = []
        for member in refined(engine, self.n_clusters, starts):
            population.append(member)
            yield member
        best, idle, turn = lowest(population), 0, 0
        while idle < self.n_iter_no_change and spread(population) > self.tol:
            (child,) = engine.refine([self._breed(population, turn, rng)])
            if child.inertia < population[turn].inertia:
                population[turn] = child
            idle = 0 if child.inertia < best.inertia else idle + 1
            best = child if idle == 0 else best
            turn = (turn + 1) % len(population)
            yield child

    def _breed(
        self, population: Sequence[Refinement], turn: int, rng: np.random.Generator
    ) -> Order:
        """Begin the child that may replace the member whose turn it is."""
        first, second, third = different_parents(population, turn, self.n_attempts, rng)
        factor = rng.uniform(*self.f_range)
        best = lowest(population).centers if self.matching == "greedy" else None
        centers = difference_child(first.centers, second.centers, third.centers, factor, best)
        removed = int(rng.integers(self.n_clusters)) if self.mutation else -1
        return Order(centers, alpha=self.alpha, quantile=rng.random(), removed=removed)


def lowest(population: Sequence[Refinement]) -> Refinement:
    """Return the best member."""
    return min(population, key=lambda member: member.inertia)


def spread(population: Sequence[Refinement]) -> float:
    """Return Σ|fᵢ − fⱼ| over all pairs of members."""
    ordered = np.sort([member.inertia for member in population])
    n = len(ordered)
    # The i-th is above i others and below n − 1 − i. Equal ones add up to zero, without rounding.
    return float((ordered - ordered[0]) @ (2.0 * np.arange(n) - (n - 1)))


def different_parents(
    population: Sequence[Refinement], turn: int, n_attempts: int, rng: np.random.Generator
) -> list[Refinement]:
    """Draw three members that are different solutions, also from the one whose turn it is.

    After ``n_attempts`` draws in vain, any three other members will do.
    """
    others = np.delete(np.arange(len(population)), turn)
    for _ in range(n_attempts + 1):
        drawn = [population[i] for i in rng.choice(others, PARENTS, replace=False)]
        all_four = [population[turn], *drawn]
        if not any(is_same(a, b) for i, a in enumerate(all_four) for b in all_four[:i]):
            break
    return drawn


def is_same(first: Refinement, second: Refinement) -> bool:
    """Whether two solutions have the same inertia and the same weights of clusters."""
    if abs(first.inertia - second.inertia) > CLONE_TOLERANCE * second.inertia:
        return False
    return np.array_equal(np.sort(first.cluster_weights), np.sort(second.cluster_weights))


def difference_child(
    first: FloatArray,
    second: FloatArray,
    third: FloatArray,
    factor: float,
    best: FloatArray | None = None,
) -> FloatArray:
    """Return S₁ + F·(S₂ − S₃), centre by centre, after the centres have been matched.

    The first two are matched with the third at the least total squared distance, or all three with
    the best solution, greedily, if that is given.
    """
    if best is None:
        first, second = first[exact_match(third, first)], second[exact_match(third, second)]
    else:
        first, second, third = (one[pair_up(best, one)] for one in (first, second, third))
    return first + factor * (second - third)


def exact_match(reference: FloatArray, centers: FloatArray) -> Indices:
    """Return which centre belongs to each of the reference, at the least total squared distance."""
    partner: Indices = linear_sum_assignment(cdist(reference, centers, "sqeuclidean"))[1]
    return partner
