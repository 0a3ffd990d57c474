"""Random swap (Fränti 2018)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from evomeans.engines.protocol import LocalSearch, Order, Refinement
from evomeans.estimators.parameters import check_int
from lab.baselines.base import AnytimeBaseline, random_samples
from lab.baselines.engine import BaselineEngine


@dataclass(eq=False, repr=False, kw_only=True)
class RandomSwap(AnytimeBaseline):
    """Random swap: move one centre elsewhere, and keep the change if it helps [1]_.

    A trial puts a randomly chosen centre onto a randomly chosen sample and makes two iterations of
    K-means. If the result is better than the solution it came from, it replaces that solution.

    Parameters
    ----------
    n_swaps : int, default=5000
        Trials (T in the paper) after the first solution. The number needed to find all clusters
        grows with the square of ``n_clusters``.
    kmeans_iterations : int, default=2
        Iterations of K-means in each trial, at most.

    See Also
    --------
    evomeans.HGMeans : Also relocates a centre in each of its solutions.
    BreathingKMeans : Chooses by a rule where to add centres and where to remove them.

    Notes
    -----
    The search starts at random samples. The authors have recommended 5000 trials since [2]_. The
    inertias in ``history_`` are those of intermediate solutions. The best of them is refined to the
    fixed point of K-means at the end, so that ``inertia_`` may be lower still. The engine does the
    local repartition of the paper: it knows from the previous solution which samples may change
    their centre.

    References
    ----------
    .. [1] P. Fränti, "Efficiency of random swap clustering", Journal of Big Data 5:13, 2018.
       `doi:10.1186/s40537-018-0122-y <https://doi.org/10.1186/s40537-018-0122-y>`_
    .. [2] P. Fränti and J. Kivijärvi, "Randomised local search algorithm for the clustering
       problem", Pattern Analysis & Applications 3, 358-369, 2000.

    Examples
    --------
    >>> from lab.baselines import RandomSwap
    >>> X = [[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]]
    >>> model = RandomSwap(n_clusters=2, n_swaps=20, random_state=0).fit(X)
    >>> model.labels_
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    >>> model.inertia_, model.n_iter_, str(model.stop_reason_)
    (16.0, 21, 'max_offspring')
    """

    n_swaps: int = 5000
    kmeans_iterations: int = 2

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_int("n_swaps", self.n_swaps, at_least=1)
        check_int("kmeans_iterations", self.kmeans_iterations, at_least=1)

    def solutions(self, engine: BaselineEngine, rng: np.random.Generator) -> Iterator[Refinement]:
        """Make a first solution, and then one per trial from the best so far.

        An engine that refines several starts at once gets trials from the same solution.
        """
        centers = random_samples(engine, self.n_clusters, rng)
        start = Order(centers, quantile=rng.random(), local_search=self._local_search)
        (best,) = engine.refine([start])
        yield best
        # A single centre is the mean, wherever it is put first.
        n_swaps = self.n_swaps if self.n_clusters > 1 else 0
        for done in range(0, n_swaps, engine.batch):
            due = min(engine.batch, n_swaps - done)
            for trial in engine.refine([self._swap(best, rng) for _ in range(due)]):
                if trial.inertia < best.inertia:
                    best = trial
                yield trial

    @property
    def _local_search(self) -> LocalSearch:
        return LocalSearch(max_iter=self.kmeans_iterations)

    def _swap(self, solution: Refinement, rng: np.random.Generator) -> Order:
        removed, quantile = rng.random(2).tolist()
        return Order(
            solution.centers,
            alpha=0.0,
            quantile=quantile,
            removed=int(removed * self.n_clusters),
            parent=solution.handle,
            local_search=self._local_search,
        )
