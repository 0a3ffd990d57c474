"""Smartigan: Hartigan's moves by a threshold (Clément and Steinerberger 2026)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np

from evomeans.engines.protocol import Ability, Engine, LocalSearch, Order, Refinement
from evomeans.estimators.parameters import check_int
from evomeans.typing import FloatArray, Indices
from lab.baselines.base import AnytimeBaseline, random_samples
from lab.baselines.checks import check_choice, check_number
from lab.baselines.engine import BaselineEngine, made


@dataclass(eq=False, repr=False, kw_only=True)
class Smartigan(AnytimeBaseline):
    """Smartigan: Hartigan's method, in which early moves may make things worse [1]_.

    Samples are visited in a random order, and each moves to the cluster in which it costs least, if
    this is less than a multiple of what it costs in its own. The multiple decreases from pass to
    pass, from 1.5 almost at first to 1 at last, which is Hartigan's rule.

    Parameters
    ----------
    n_runs : int, default=10
        Runs, of which the best is kept.
    n_passes : int, default=10
        Passes over all samples in a run (T).
    threshold : float, default=1.5
        The multiple at the beginning, at least 1. In pass t it is
        ``threshold`` − (``threshold`` − 1)·t/T. With 1, all passes follow Hartigan's rule.
    init : {"random", "k-means++"}, default="k-means++"
        Where a run starts.

    See Also
    --------
    MultiStartKMeans : Runs of K-means instead of single moves.
    evomeans.HGMeans : Its default strategy also makes Hartigan's moves.

    Notes
    -----
    The costs are those of Hartigan's method: W/(W + w)·‖x − c‖² in another cluster, compared with
    W/(W − w)·‖x − c‖² in the own one. Samples that are alone in their clusters stay. The authors
    stop after the last pass. Here K-means and Hartigan's moves complete the run, until neither
    finds anything, so that it ends in a local optimum. The authors' program cumulates the chances
    of its k-means++ twice; here the start is plain k-means++.

    References
    ----------
    .. [1] F. Clément and S. Steinerberger, "An effective variant of the Hartigan k-means
       algorithm", `arXiv:2604.21798 <https://arxiv.org/abs/2604.21798>`_, 2026.

    Examples
    --------
    >>> from lab.baselines import Smartigan
    >>> X = [[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]]
    >>> model = Smartigan(n_clusters=2, random_state=0).fit(X)
    >>> model.labels_
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    >>> model.inertia_, model.n_iter_, str(model.stop_reason_)
    (16.0, 10, 'max_offspring')
    """

    n_runs: int = 10
    n_passes: int = 10
    threshold: float = 1.5
    init: str = "k-means++"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_int("n_runs", self.n_runs, at_least=1)
        check_int("n_passes", self.n_passes, at_least=1)
        check_number("threshold", self.threshold, least=1.0)
        check_choice("init", self.init, ("random", "k-means++"))

    def _abilities(self) -> frozenset[Ability]:
        return frozenset({Ability.SEEDING, Ability.SINGLE_MOVES})

    def solutions(self, engine: BaselineEngine, rng: np.random.Generator) -> Iterator[Refinement]:
        """Make one solution per run."""
        return made(engine, self.n_clusters, (self._run(engine, rng) for _ in range(self.n_runs)))

    def _run(
        self, engine: BaselineEngine, rng: np.random.Generator
    ) -> Callable[[Engine], Refinement]:
        """Draw the numbers of a run; the rest can be done by any worker."""
        seeds, k = None, self.n_clusters
        uniforms, quantile = rng.random(k), rng.random()
        if self.init == "random":
            seeds = random_samples(engine, k, rng)
        orders = [rng.permutation(engine.n_samples) for _ in range(self.n_passes)]
        # Rows that are nearly empty are not worth single moves; then there is K-means alone.
        complete = LocalSearch(single_moves=Ability.SINGLE_MOVES in engine.abilities)

        def run(worker: Engine) -> Refinement:
            start = worker.seed(uniforms) if seeds is None else seeds
            able = cast("BaselineEngine", worker)
            moved = threshold_accepting(able, start, orders, self.threshold)
            return worker.refine([Order(moved, quantile=quantile, local_search=complete)])[0]

        return run


def factor(t: int, n_passes: int, threshold: float) -> float:
    """Return the multiple of pass t = 1, 2, …, T: from the threshold, linearly, down to 1."""
    return threshold - (threshold - 1.0) * t / n_passes


def threshold_accepting(
    engine: BaselineEngine, centers: FloatArray, orders: list[Indices], threshold: float
) -> FloatArray:
    """Make a pass for each of the orders, from the clusters of these centres; return the means."""
    labels = np.asarray(engine.assign(centers)[0])
    for t, order in enumerate(orders, start=1):
        allowed = factor(t, len(orders), threshold)
        labels, centers = engine.threshold_moves(labels, len(centers), order, allowed)
    return centers
