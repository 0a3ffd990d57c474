"""SAGA: the self-adaptive genetic algorithm of Kivijärvi, Fränti and Nevalainen (2003)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from evomeans.engines.protocol import Refinement
from evomeans.estimators.parameters import check_int, check_random_source, generator_from
from evomeans.search.stopping import DeferredInterrupt
from lab.baselines.base import AnytimeBaseline, Found
from lab.baselines.checks import check_choice
from lab.baselines.engine import BaselineEngine
from lab.baselines.saga.evolution import READINGS, ROULETTE, Evolution
from lab.baselines.saga.parameters import ParameterSet


@dataclass(eq=False, repr=False, kw_only=True)
class SAGA(AnytimeBaseline):
    """The self-adaptive genetic algorithm of Kivijärvi, Fränti and Nevalainen [1]_.

    Every candidate is a solution together with its own strategy parameters: which of six
    crossovers made it, with which probability a centre was then put onto a random sample, and how
    much noise was added to all centres. A child inherits each parameter from one of its parents,
    occasionally gets a new one instead, and is made accordingly. Parameters that make good children
    therefore spread with them. Two steps of K-means complete the child. The best candidates
    survive into the next generation.

    Parameters
    ----------
    population_size : int, default=45
        Individuals of a generation (S in the paper), at least 2. The best fifth of them (S_B)
        survive into the next one.
    n_generations : int, default=50
        Generations (T) after the first, which is random.
    kmeans_iterations : int, default=2
        Steps of K-means (G) that every child gets, at most.
    reading : {"roulette", "elitist"}, default="roulette"
        How the publication is read where its text could not be consulted.

        - "roulette": parents are selected by a roulette wheel with chances of one over the inertia.
          PNN weighs the centres by the samples that choose between those of both parents.
        - "elitist": all pairs of the S_B best are crossed, which [2]_ offers as elitist selection.
          PNN weighs the centres by the clusters that the parents had.

    Attributes
    ----------
    n_iter_ : int
        The number of solutions made: the first generation, all children, and the best candidate
        refined at the end.
    strategies_ : tuple of ParameterSet
        ``crossover``, ``mutation_probability`` and ``noise_range`` of the candidates of the last
        complete generation, the best first: what the search has found to work. Empty if it was
        stopped before the first generation was complete.

    See Also
    --------
    evomeans.HGMeans : Pairs the centres of the parents optimally, refines every child to the end,
        and keeps its population free of clones.
    RandomSwap : Relocations alone, without a population.

    Notes
    -----
    The crossovers are random multipoint, centroid distance, largest partitions, multipoint and
    one-point pairwise [2]_, and PNN [3]_. Before PNN merges the centres of both parents, [3]_ moves
    them to the means of the samples that chose them. This takes another pass over the samples and
    gained little, so that it is left out.

    Where the text of [1]_ could not be consulted, this is our reading. With "elitist", early
    winners take over with any crossover they happen to have; its solutions are worse, and nearer to
    those that the HG-means paper reports for SAGA. With "roulette", the solutions on most data sets
    are better, and about as good as those of HG-means, but take more time. The tables in
    docs/laboratory/paper.md use "roulette". A parameter is drawn anew with probability Ψ = 0.05,
    uniformly from its range, which for noise is up to one standard deviation of each feature. Noise
    fades linearly, to almost nothing in the last generation. The first generation gets no K-means,
    and the best candidate is refined to the fixed point of K-means at the end.

    References
    ----------
    .. [1] J. Kivijärvi, P. Fränti and O. Nevalainen, "Self-adaptive genetic algorithm for
       clustering", Journal of Heuristics 9, 113-129, 2003.
    .. [2] P. Fränti, J. Kivijärvi, T. Kaukoranta and O. Nevalainen, "Genetic algorithms for
       large-scale clustering problems", The Computer Journal 40, 547-554, 1997.
       `doi:10.1093/comjnl/40.9.547 <https://doi.org/10.1093/comjnl/40.9.547>`_
    .. [3] P. Fränti, "Genetic algorithm with deterministic crossover for vector quantization",
       Pattern Recognition Letters 21, 61-68, 2000.

    Examples
    --------
    >>> from lab.baselines import SAGA
    >>> X = [[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]]
    >>> model = SAGA(n_clusters=2, population_size=10, n_generations=5, random_state=0).fit(X)
    >>> model.labels_
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    >>> model.inertia_, model.n_iter_, str(model.stop_reason_)
    (16.0, 51, 'max_offspring')
    >>> len(model.strategies_)
    10
    """

    population_size: int = 45
    n_generations: int = 50
    kmeans_iterations: int = 2
    reading: str = ROULETTE
    strategies_: tuple[ParameterSet, ...] = field(init=False)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_int("population_size", self.population_size, at_least=2)
        check_int("n_generations", self.n_generations, at_least=1)
        check_int("kmeans_iterations", self.kmeans_iterations, at_least=0)
        check_choice("reading", self.reading, READINGS)

    def solutions(self, engine: BaselineEngine, rng: np.random.Generator) -> Iterator[Refinement]:
        """Make a random generation, the children of each generation, and at last refine the best.

        An engine that refines several starts at once gets several children of one generation.
        """
        return self._evolution(engine, rng).run()

    def _search(self, engine: BaselineEngine, interrupt: DeferredInterrupt) -> Found:
        rng = generator_from(check_random_source(self.random_state))
        evolution = self._evolution(engine, rng)
        best, attributes = self._pursue(evolution.run(), interrupt)
        return best, {**attributes, "strategies_": evolution.strategies()}

    def _evolution(self, engine: BaselineEngine, rng: np.random.Generator) -> Evolution:
        sizes = self.population_size, self.n_generations, self.kmeans_iterations
        return Evolution(engine, rng, self.n_clusters, *sizes, self.reading)
