"""Random swap (Fränti 2018)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from evomeans.baselines.base import AnytimeBaseline, random_samples
from evomeans.engines import Engine, Start
from evomeans.engines.protocol import Refinement
from evomeans.estimators.parameters import check_int


class RandomSwap(AnytimeBaseline):
    """Random swap: put one centre elsewhere, and keep that if it helps [1]_.

    A trial puts a randomly chosen centre onto a randomly chosen sample and makes two iterations of
    K-means. If the solution is then better than the one it came from, it takes its place, else it
    is dropped.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.

    n_swaps : int, default=5000
        Trials (T in the paper). How many are needed to find all clusters grows with the square of
        their number.

    kmeans_iterations : int, default=2
        Iterations of K-means in each trial, at most.

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
        Solutions made: trials, and the one that was there first.

    history_ : tuple of RunRecord
        ``number``, ``inertia``, ``best``, ``n_iter`` and ``seconds`` of every solution made.

    stop_reason_ : StopReason
        Why the search ended, a str: "max_iter" after ``n_swaps`` trials, "max_time",
        "target_inertia", "interrupted", or "proven_optimal" if the inertia is zero.

    n_features_in_ : int
        Number of features seen during :term:`fit`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features seen during :term:`fit`. Defined only when `X` has feature names that are
        all strings.

    See Also
    --------
    evomeans.HGMeans : Relocates a centre in each of its solutions, too.
    BreathingKMeans : Chooses by rule where to add centres and where to remove them.

    Notes
    -----
    The search begins at random samples. 5000 trials are what the authors recommend since [2]_. An
    inertia in ``history_`` is that of a solution on the way; the best is taken to the fixed point
    of K-means at the end, so that ``inertia_`` may be lower still.

    The local repartition of the paper reassigns the samples of the centre that was taken away and
    those that the new one attracts. All others keep their centre, so that it is a complete
    assignment of the samples, and here it is done by the engine, which knows from the solution
    before which samples need a look, in the iterations that follow as well.

    References
    ----------
    .. [1] P. Fränti, "Efficiency of random swap clustering", Journal of Big Data 5:13, 2018.
       `doi:10.1186/s40537-018-0122-y <https://doi.org/10.1186/s40537-018-0122-y>`_
    .. [2] P. Fränti and J. Kivijärvi, "Randomised local search algorithm for the clustering
       problem", Pattern Analysis & Applications 3, 358-369, 2000.

    Examples
    --------
    >>> import numpy as np
    >>> from evomeans.baselines import RandomSwap
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> model = RandomSwap(n_clusters=2, n_swaps=20, random_state=0).fit(X)
    >>> model.labels_
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    >>> model.inertia_, model.n_iter_, str(model.stop_reason_)
    (16.0, 21, 'max_iter')
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_swaps: int = 5000,
        kmeans_iterations: int = 2,
        max_time: float | None = None,
        target_inertia: float | None = None,
        engine: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_swaps = n_swaps
        self.kmeans_iterations = kmeans_iterations
        self.max_time = max_time
        self.target_inertia = target_inertia
        self.engine = engine
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_int("n_swaps", self.n_swaps, at_least=1)
        check_int("kmeans_iterations", self.kmeans_iterations, at_least=1)

    def solutions(self, engine: Engine, rng: np.random.Generator) -> Iterator[Refinement]:
        """Make a solution, and then one from the best so far for each trial.

        An engine that likes several starts at once gets trials from the same solution.
        """
        centers = random_samples(engine, self.n_clusters, rng)
        start = Start(centers, quantile=rng.random(), max_iter=self.kmeans_iterations)
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

    def _swap(self, solution: Refinement, rng: np.random.Generator) -> Start:
        removed, quantile = rng.random(2).tolist()
        return Start(
            solution.centers,
            alpha=0.0,
            quantile=quantile,
            removed=int(removed * self.n_clusters),
            parent=solution.handle,
            max_iter=self.kmeans_iterations,
        )
