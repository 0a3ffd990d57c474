"""Breathing K-means (Fritzke 2020)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from numbers import Real
from typing import Any, cast

import numpy as np
from scipy.spatial.distance import cdist

from evomeans.baselines.base import AnytimeBaseline
from evomeans.engines import Engine, Start
from evomeans.engines.protocol import GuidingEngine, Refinement
from evomeans.estimators.parameters import check_int
from evomeans.estimators.solution import FloatArray

# A new centre begins this far at most, in each feature, from the one whose cluster it is to share,
# in units of the root mean squared distance of a sample to its centre.
OFFSET = 0.005
# A smaller relative gain counts as none, and lets the breath become shallower.
GAIN = 1e-4


class BreathingKMeans(AnytimeBaseline):
    """Breathing K-means: add a few centres, remove as many, as long as that helps [1]_.

    From a start by k-means++, the number of centres goes up and down. A breath in adds ``m``
    centres next to those with the largest error, a breath out removes the ``m`` that can be spared
    best, and K-means follows both. Where a cycle brings no improvement the breath becomes
    shallower by one centre; without any left the search ends. The best solution on the way is kept.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.

    m : int, default=5
        How many centres are added and removed at first, at most ``n_clusters``. More take longer
        and find deeper solutions. With 0 only the start is left.

    theta : float, default=1.1
        The centres around one that is removed stay: those closer to it than this many times the
        mean distance of a centre to its nearest neighbour. None protects the nearest neighbour
        only, as the last revision of the paper does.

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
        Solutions made: the start, and one in each cycle.

    history_ : tuple of RunRecord
        ``number``, ``inertia``, ``best``, ``n_iter`` and ``seconds`` of every solution made.

    stop_reason_ : StopReason
        Why the search ended, a str: "max_iter" when it was out of breath, "max_time",
        "target_inertia", "interrupted", or "proven_optimal" if the inertia is zero.

    n_features_in_ : int
        Number of features seen during :term:`fit`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features seen during :term:`fit`. Defined only when `X` has feature names that are
        all strings.

    See Also
    --------
    RandomSwap : Moves one centre at a time, and lets chance choose.
    evomeans.HGMeans : Searches with a population of solutions.

    Notes
    -----
    The error of a centre is Σ w‖x − c‖² over its samples, its utility the sum of what the same
    samples would cost more with their second closest centre. A cycle goes on from the solution of
    the last one, be it better or worse. An improvement has to be larger than one in 10,000, as in
    the author's program.

    The start is greedy k-means++, as in the paper: for each centre 2 + ⌊ln k⌋ samples are drawn,
    and the best of them is taken. K-means always goes on to its fixed point here; the author's
    program stops it earlier.

    References
    ----------
    .. [1] B. Fritzke, "The breathing k-means algorithm", `arXiv:2006.15666
       <https://arxiv.org/abs/2006.15666>`_, 2020; last revised in 2024 as "Breathing K-Means:
       Superior K-Means Solutions through Dynamic K-Values".

    Examples
    --------
    >>> import numpy as np
    >>> from evomeans.baselines import BreathingKMeans
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> model = BreathingKMeans(n_clusters=2, random_state=0).fit(X)
    >>> model.labels_
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    >>> model.inertia_, str(model.stop_reason_)
    (16.0, 'max_iter')
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        m: int = 5,
        theta: float | None = 1.1,
        max_time: float | None = None,
        target_inertia: float | None = None,
        engine: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.m = m
        self.theta = theta
        self.max_time = max_time
        self.target_inertia = target_inertia
        self.engine = engine
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_int("m", self.m, at_least=0)
        if self.theta is None:
            return
        if isinstance(self.theta, bool) or not isinstance(self.theta, Real):
            raise TypeError(f"theta must be a positive number or None, got {self.theta!r}.")
        if not self.theta > 0:
            raise ValueError(f"theta={self.theta} must be positive, or None.")

    def solutions(self, engine: Engine, rng: np.random.Generator) -> Iterator[Refinement]:
        """Run K-means from a k-means++ start, then make one solution in each cycle."""
        engine, k = cast(GuidingEngine, engine), self.n_clusters
        seeds = engine.seed(rng.random((k, 2 + int(math.log(k)))))
        (solution,) = engine.refine([Start(seeds, quantile=rng.random())])
        yield solution
        lowest = solution.inertia
        # A single centre has nowhere to send its samples.
        depth = min(self.m, k) if k > 1 else 0
        while depth > 0:
            more = breathe_in(engine, solution, depth, rng)
            (inhaled,) = engine.refine([Start(more, quantile=rng.random())])
            fewer = breathe_out(engine, inhaled, depth, self.theta)
            (exhaled,) = engine.refine([Start(fewer, quantile=rng.random())])
            solution = replace(exhaled, n_iter=inhaled.n_iter + exhaled.n_iter)
            yield solution
            if solution.inertia < lowest * (1.0 - GAIN):
                lowest = solution.inertia
            else:
                depth -= 1


def breathe_in(
    engine: GuidingEngine, solution: Refinement, count: int, rng: np.random.Generator
) -> FloatArray:
    """Add a centre close to each of the ``count`` centres with the largest errors."""
    centers = solution.centers
    errors, _ = engine.errors_and_utilities(centers)
    worst = np.argsort(-errors, kind="stable")[:count]
    deviation = math.sqrt(solution.inertia / solution.cluster_weights.sum()) * engine.frame.scale
    offsets = OFFSET * deviation * rng.uniform(-1.0, 1.0, size=(count, centers.shape[1]))
    return np.concatenate([centers, centers[worst] + offsets])


def breathe_out(
    engine: GuidingEngine, solution: Refinement, count: int, theta: float | None
) -> FloatArray:
    """Remove ``count`` centres of low utility, but no two that are neighbours."""
    _, utilities = engine.errors_and_utilities(solution.centers)
    spared = dispensable(solution.centers, utilities, count, theta)
    return np.delete(solution.centers, spared, axis=0)


def dispensable(
    centers: FloatArray, utilities: FloatArray, count: int, theta: float | None
) -> list[int]:
    """Choose ``count`` centres to remove, the least useful first.

    The neighbours of a chosen centre have to take its samples over, so they are frozen and not
    chosen themselves, the nearest first, for as long as enough others are left.
    """
    distances = cdist(centers, centers)
    np.fill_diagonal(distances, np.inf)
    radius = None if theta is None else theta * distances.min(axis=1).mean()
    chosen: list[int] = []
    frozen: set[int] = set()
    for j in np.argsort(utilities, kind="stable").tolist():
        if len(chosen) == count:
            break
        if j in frozen:
            continue
        chosen.append(j)
        n_close = 1 if radius is None else int(np.count_nonzero(distances[j] < radius))
        for neighbour in np.argsort(distances[j], kind="stable")[:n_close].tolist():
            if len(frozen) + count < len(centers):
                frozen.add(neighbour)
    return chosen
