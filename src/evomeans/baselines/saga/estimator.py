"""SAGA: the self-adaptive genetic algorithm of Kivijärvi, Fränti and Nevalainen (2003)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from evomeans.baselines.base import AnytimeBaseline
from evomeans.baselines.saga.evolution import Evolution, Settings
from evomeans.baselines.saga.strategy import Strategy
from evomeans.engines import Engine
from evomeans.engines.protocol import Refinement
from evomeans.estimators.parameters import check_int
from evomeans.search.interrupts import DeferredInterrupt


class SAGA(AnytimeBaseline):
    """The self-adaptive genetic algorithm of Kivijärvi, Fränti and Nevalainen [1]_.

    Every individual is a solution together with its own strategy parameters: which of six
    crossovers made it, with which probability a centre was then put onto a random sample, and how
    much noise was added to all of them. A child inherits each of these from one of its parents,
    now and then gets a new one instead, and is made as they say. So what makes good children
    spreads with them. After two steps of K-means the child is complete. The best individuals live
    on in the next generation.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.

    population_size : int, default=45
        Individuals of a generation (S in the paper), at least 2. The best fifth of them (S_B) live
        on in the next one.

    n_generations : int, default=50
        Generations (T) after the first, which is random.

    kmeans_iterations : int, default=2
        Steps of K-means (G) that every child gets, at most.

    max_time : float, default=None
        Stop after this many seconds. Results then depend on the speed of the machine.

    target_inertia : float, default=None
        Stop as soon as a solution is at least this good.

    engine : {"auto", "cpu", "reference"}, default="auto"
        What holds the samples and runs K-means, see :class:`~evomeans.HGMeans`.

    n_jobs : int, default=None
        Threads to use; None means 1 and -1 all cores. The result does not depend on it.

    random_state : int, RandomState, Generator or None, default=None
        An int makes the result reproducible.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The centres, in the precision of ``X`` and in lexicographic order.

    labels_ : ndarray of shape (n_samples,), dtype int32
        The cluster of each sample.

    inertia_ : float
        Sum of the squared distances of the samples to their closest centre, times their weights.

    strategies_ : tuple of Strategy
        ``crossover``, ``mutation_probability`` and ``noise_range`` of the individuals of the last
        complete generation, the best individual's first: what the search has found to work. Empty
        if it was stopped before there was one.

    n_iter_ : int
        Solutions made: the first generation, all children, and the best one refined at the end.

    history_ : tuple of RunRecord
        ``number``, ``inertia``, ``best``, ``n_iter`` and ``seconds`` of every solution made.

    stop_reason_ : StopReason
        Why the search ended, a str: "max_iter" after ``n_generations``, "max_time",
        "target_inertia", "interrupted", or "proven_optimal" if the inertia is zero.

    n_features_in_ : int
        Number of features seen during :term:`fit`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features seen during :term:`fit`. Defined only when `X` has feature names that are
        all strings.

    See Also
    --------
    evomeans.HGMeans : Pairs the centres of the parents optimally, refines every child to the end,
        and keeps its population free of clones.
    RandomSwap : Relocations alone, without a population.

    Notes
    -----
    The crossovers are random multipoint, centroid distance, largest partitions, multipoint and
    one-point pairwise [2]_, and PNN [3]_. For the last, every sample chooses between the centres of
    both parents, and the pairwise nearest neighbour method merges them by the weights that they
    got. The centres themselves are not moved to the means of those who chose them, as they are in
    [3]_: it takes another pass over the samples, and gained little.

    Where the text of [1]_ could not be consulted, this is our reading. The sizes are S = 45, T = 50
    and G = 2. Parents are selected by a roulette wheel with chances of one over the inertia, and
    S_B = S/5; crossing all pairs of the S_B best instead, which [2]_ offers as elitist selection,
    let early winners take over with whatever crossover they happened to have, and found worse
    solutions. A parameter is drawn anew with probability Ψ = 0.05: the crossover from the six, the
    mutation probability from [0, 1], and the noise range from [0, 1] standard deviations of each
    feature. Noise is uniform within the range and fades linearly, to nearly nothing in the last
    generation. The first generation gets no K-means. Empty clusters are refilled as everywhere in
    evomeans, and the best individual is taken to the fixed point of K-means at the end. With these
    choices the solutions are on most data sets deeper than what the HG-means paper reports of SAGA,
    and about as deep as those of HG-means, in more time (docs/paper.md).

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
    >>> import numpy as np
    >>> from evomeans.baselines import SAGA
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> model = SAGA(n_clusters=2, population_size=10, n_generations=5, random_state=0).fit(X)
    >>> model.labels_
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    >>> model.inertia_, model.n_iter_, str(model.stop_reason_)
    (16.0, 51, 'max_iter')
    >>> len(model.strategies_)
    10
    """

    strategies_: tuple[Strategy, ...]
    _evolution: Evolution

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        population_size: int = 45,
        n_generations: int = 50,
        kmeans_iterations: int = 2,
        max_time: float | None = None,
        target_inertia: float | None = None,
        engine: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.population_size = population_size
        self.n_generations = n_generations
        self.kmeans_iterations = kmeans_iterations
        self.max_time = max_time
        self.target_inertia = target_inertia
        self.engine = engine
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _settings(self) -> Settings:
        return Settings(
            self.n_clusters,
            check_int("population_size", self.population_size, at_least=2),
            check_int("n_generations", self.n_generations, at_least=1),
            check_int("kmeans_iterations", self.kmeans_iterations, at_least=0),
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._settings()

    def solutions(self, engine: Engine, rng: np.random.Generator) -> Iterator[Refinement]:
        """Make a random generation, the children of each generation, and at last refine the best.

        An engine that likes several starts at once gets several children of one generation.
        """
        self._evolution = Evolution(engine, self._settings(), rng)
        return self._evolution.run()

    def _search(
        self, engine: Engine, rng: np.random.Generator, interrupt: DeferredInterrupt
    ) -> tuple[Refinement, dict[str, Any]]:
        try:
            best, found = super()._search(engine, rng, interrupt)
            return best, {**found, "strategies_": self._evolution.strategies()}
        finally:
            # It holds the samples.
            self.__dict__.pop("_evolution", None)
