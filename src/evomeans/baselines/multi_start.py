"""K-means from many starts, of which the best is kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np

from evomeans.baselines.base import AnytimeBaseline, random_samples
from evomeans.engines import Engine, Start
from evomeans.engines.protocol import GuidingEngine, Refinement
from evomeans.estimators.parameters import check_int

INITS = ("random", "k-means++")


class MultiStartKMeans(AnytimeBaseline):
    """K-means from many random starts, the best of which is kept.

    What :class:`sklearn.cluster.KMeans` does with a large ``n_init``, except that every run goes on
    to its fixed point, that the search can be bounded by time, and that it tells what each run
    brought.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.

    init : {"random", "k-means++"}, default="random"
        Where a run begins.

        - "random": at ``n_clusters`` distinct samples [1]_; a sample of more weight is chosen more
          often.
        - "k-means++": at samples drawn one after the other with a probability proportional to their
          squared distance from the closest sample drawn before, times their weight [2]_. This is
          the plain algorithm, one draw for each centre; scikit-learn draws several and takes the
          best of them.

    n_runs : int, default=5000
        Runs of K-means.

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

    n_iter_ : int
        Runs made.

    history_ : tuple of RunRecord
        ``number``, ``inertia``, ``best``, ``n_iter`` and ``seconds`` of every run.

    stop_reason_ : StopReason
        Why the search ended, a str: "max_iter" after ``n_runs`` runs, "max_time",
        "target_inertia", "interrupted", or "proven_optimal" if the inertia is zero.

    n_features_in_ : int
        Number of features seen during :term:`fit`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features seen during :term:`fit`. Defined only when `X` has feature names that are
        all strings.

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
    >>> import numpy as np
    >>> from evomeans.baselines import MultiStartKMeans
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> model = MultiStartKMeans(n_clusters=2, n_runs=20, random_state=0).fit(X)
    >>> model.labels_
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    >>> model.inertia_, model.n_iter_, str(model.stop_reason_)
    (16.0, 20, 'max_iter')
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: str = "random",
        n_runs: int = 5000,
        max_time: float | None = None,
        target_inertia: float | None = None,
        engine: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_runs = n_runs
        self.max_time = max_time
        self.target_inertia = target_inertia
        self.engine = engine
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_int("n_runs", self.n_runs, at_least=1)
        if not isinstance(self.init, str) or self.init not in INITS:
            raise ValueError(f"init={self.init!r} must be 'random' or 'k-means++'.")

    def solutions(self, engine: Engine, rng: np.random.Generator) -> Iterator[Refinement]:
        """Run K-means from ``n_runs`` starts, as many at once as the engine likes."""
        for done in range(0, self.n_runs, engine.batch):
            due = min(engine.batch, self.n_runs - done)
            yield from engine.refine([self._start(engine, rng) for _ in range(due)])

    def _start(self, engine: Engine, rng: np.random.Generator) -> Start:
        if self.init == "random":
            centers = random_samples(engine, self.n_clusters, rng)
        else:
            centers = cast(GuidingEngine, engine).seed(rng.random(self.n_clusters))
        return Start(centers, quantile=rng.random())
