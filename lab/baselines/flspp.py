"""FLS++: local search with foresight (Conrads et al. 2024)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from evomeans.engines.protocol import Ability, LocalSearch, Order, Refinement
from evomeans.estimators.parameters import check_int
from lab.baselines.base import AnytimeBaseline
from lab.baselines.checks import check_choice
from lab.baselines.engine import BaselineEngine

ONE_STEP = LocalSearch(max_iter=1)


@dataclass(eq=False, repr=False, kw_only=True)
class FLSpp(AnytimeBaseline):
    """FLS++: swap a centre for a sample if that pays after one step of K-means [1]_.

    After k-means++ and one step of K-means, some samples are drawn by D², one after the other. Each
    may replace the centre for which the sum of squares is lowest after another step of K-means, if
    that is better than the step without a swap. K-means completes the solution.

    Parameters
    ----------
    n_swaps : int, default=20
        Samples that are drawn.
    init : {"k-means++", "greedy k-means++"}, default="k-means++"
        Where the search starts. The greedy variant draws 2 + log k candidates for each centre and
        takes the best.

    See Also
    --------
    RandomSwap : Swaps a random centre, and keeps what is better.
    DRSMeans : Prefers centres that are close to others, and samples in dense places.

    Notes
    -----
    Solutions in ``history_`` are those after the steps; the last is the fixed point of K-means. All
    k swaps with a sample are evaluated together, from the sums of the clusters.

    References
    ----------
    .. [1] T. Conrads, L. Drexler, J. Könen, D. R. Schmidt and M. Schmidt, "Local search k-means++
       with foresight", 22nd International Symposium on Experimental Algorithms, 7:1-7:20, 2024;
       `arXiv:2406.02739 <https://arxiv.org/abs/2406.02739>`_.

    Examples
    --------
    >>> from lab.baselines import FLSpp
    >>> X = [[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]]
    >>> model = FLSpp(n_clusters=2, random_state=0).fit(X)
    >>> model.labels_
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    >>> model.inertia_, model.n_iter_, str(model.stop_reason_)
    (16.0, 22, 'max_offspring')
    """

    n_swaps: int = 20
    init: str = "k-means++"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_int("n_swaps", self.n_swaps, at_least=1)
        check_choice("init", self.init, ("k-means++", "greedy k-means++"))

    def _abilities(self) -> frozenset[Ability]:
        return frozenset({Ability.SEEDING})

    def solutions(self, engine: BaselineEngine, rng: np.random.Generator) -> Iterator[Refinement]:
        """Make a step of K-means from k-means++, one for every sample drawn, and all others."""
        k = self.n_clusters
        n_trials = 2 + int(math.log(k)) if self.init == "greedy k-means++" else 1
        seeds = engine.seed(rng.random((k, n_trials)))
        (solution,) = engine.refine([Order(seeds, quantile=rng.random(), local_search=ONE_STEP)])
        yield solution
        # A single centre is the mean, wherever it is put first.
        for _ in range(self.n_swaps if k > 1 else 0):
            uniform, quantile = rng.random(2)
            (solution,) = engine.refine([foreseen_swap(engine, solution, uniform, quantile)])
            yield solution
        yield from engine.refine([Order(solution.centers, parent=solution.handle)])


def foreseen_swap(
    engine: BaselineEngine, solution: Refinement, uniform: float, quantile: float
) -> Order:
    """Draw a sample by D², and begin the step with the best swap, or without one if none pays."""
    centers = solution.centers
    row, gains = engine.swap_gains(centers, uniform)
    removed = int(gains.argmax())
    if gains[removed] > 0.0:
        centers = centers.copy()
        centers[removed] = engine.rows(np.array([row]))[0]
    return Order(centers, quantile=quantile, parent=solution.handle, local_search=ONE_STEP)
