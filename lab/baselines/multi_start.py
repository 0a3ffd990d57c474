"""K-means from many starts, of which the best is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from evomeans.engines.protocol import Ability, Engine, Order, Refinement
from evomeans.estimators.parameters import check_int
from lab.baselines.base import AnytimeBaseline, random_samples
from lab.baselines.checks import check_choice
from lab.baselines.engine import BaselineEngine, made


@dataclass(eq=False, repr=False, kw_only=True)
class MultiStartKMeans(AnytimeBaseline):
    """K-means from many random starts, the best of which is kept.

    This is what :class:`sklearn.cluster.KMeans` does with a large ``n_init``, except that every
    run continues to its fixed point, that the search can be limited by time, and that it records
    the result of each run.

    Parameters
    ----------
    init : {"random", "k-means++"}, default="random"
        Where a run starts.

        - "random": at ``n_clusters`` distinct samples [1]_. Samples with more weight are chosen
          more often.
        - "k-means++": at samples drawn one after another, with probabilities proportional to their
          weight and their squared distance from the closest sample drawn before [2]_. This is the
          plain algorithm with one draw per centre; scikit-learn draws several and takes the best.
    n_runs : int, default=5000
        Runs of K-means.

    See Also
    --------
    RandomSwap : Changes one centre at a time instead of all.
    evomeans.HGMeans : Learns from the solutions it has seen.

    References
    ----------
    .. [1] E. W. Forgy, "Cluster analysis of multivariate data: efficiency versus interpretability
       of classifications", Biometrics 21, 768-769, 1965.
    .. [2] D. Arthur and S. Vassilvitskii, "k-means++: the advantages of careful seeding", Proc.
       18th ACM-SIAM Symposium on Discrete Algorithms, 1027-1035, 2007.

    Examples
    --------
    >>> from lab.baselines import MultiStartKMeans
    >>> X = [[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]]
    >>> model = MultiStartKMeans(n_clusters=2, n_runs=20, random_state=0).fit(X)
    >>> model.labels_
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    >>> model.inertia_, model.n_iter_, str(model.stop_reason_)
    (16.0, 20, 'max_offspring')
    """

    init: str = "random"
    n_runs: int = 5000

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_int("n_runs", self.n_runs, at_least=1)
        check_choice("init", self.init, ("random", "k-means++"))

    def _abilities(self) -> frozenset[Ability]:
        return frozenset({Ability.SEEDING} if self.init == "k-means++" else ())

    def solutions(self, engine: BaselineEngine, rng: np.random.Generator) -> Iterator[Refinement]:
        """Run K-means from ``n_runs`` starts."""
        return made(engine, self.n_clusters, (self._run(engine, rng) for _ in range(self.n_runs)))

    def _run(
        self, engine: BaselineEngine, rng: np.random.Generator
    ) -> Callable[[Engine], Refinement]:
        """Draw the numbers of a run; the rest can be done by any worker."""
        is_random = self.init == "random"
        if is_random:
            drawn = random_samples(engine, self.n_clusters, rng)
        else:
            drawn = rng.random(self.n_clusters)
        quantile = rng.random()

        def run(worker: Engine) -> Refinement:
            centers = drawn if is_random else worker.seed(drawn)
            return worker.refine([Order(centers, quantile=quantile)])[0]

        return run
