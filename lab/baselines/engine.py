"""The operations of an engine that only baselines need."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evomeans.engines.protocol import Engine, Handle, Order, Refinement
from evomeans.engines.workers import Workers
from evomeans.typing import FloatArray, Indices

ENGINES = ("auto", "cpu", "reference")
"""The engines that can do all of it."""

MOST_WORKERS = 64


class Attracted(NamedTuple):
    """What one more centre at each of m points y would attract: samples nearer to it than before.

    Parameters
    ----------
    reductions : (m,) array
        How much that lowers the sum of squares.
    weights : (m,) array
        Total weight of the samples attracted.
    means : (m, d) array
        Their mean; y itself if there are none.
    """

    reductions: FloatArray
    weights: FloatArray
    means: FloatArray


class ClusterSums(NamedTuple):
    """The samples assigned to their closest centres, and no more.

    Parameters
    ----------
    inertia : float
        Weighted sum of squared distances, in the frame.
    weights : (k,) array
        Total weight of the samples that are closest to each centre.
    sums : (k, d) array
        Their weighted sums, in the frame.
    handle : handle, optional
        Saves work if given for centres that are near these.
    """

    inertia: float
    weights: FloatArray
    sums: FloatArray
    handle: Handle | None = None


class BaselineEngine(Engine):
    """An engine with all abilities that can also tell where centres are wanted.

    ``squares`` are the squared distances of all samples to the closest of the present centres, in
    the frame. Samples whose value there is zero do not count.
    """

    dtype: np.dtype[Any]

    @abstractmethod
    def errors_and_utilities(
        self, centers: FloatArray, power: int = 2
    ) -> tuple[FloatArray, FloatArray]:
        """Return what the samples of each centre cost, and how much more they cost without it.

        That is Σ wδ₁ and Σ w(δ₂ − δ₁) over the samples that are closest to it, in data units.
        δ₁ and δ₂ are the distances of a sample to the closest and the second closest centre, raised
        to ``power``, 1 or 2. The utility of a single centre is infinite.
        """

    @abstractmethod
    def rows(self, chosen: Indices) -> FloatArray:
        """Return the samples with these indices, shape (m, d)."""

    @abstractmethod
    def nearest_squares(self, centers: FloatArray) -> FloatArray:
        """Return the squares for these centres; zero for samples without weight."""

    @abstractmethod
    def two_closest(self, centers: FloatArray) -> tuple[NDArray[np.int32], FloatArray, FloatArray]:
        """Return labels of the closest centres, and squared distances to the two closest.

        They are in the frame. With a single centre, the second ones are infinite.
        """

    @abstractmethod
    def swap_gains(self, centers: FloatArray, quantile: float) -> tuple[int, FloatArray]:
        """Draw a sample by D²; return it, and what putting each centre onto it would gain.

        That is the sum of squares after samples have joined their closest centres and these have
        moved to the means, with the centres as they are minus the same with the swap. The gains, of
        shape (k,), are in data units. ``quantile`` is the uniform number of the draw.
        """

    @abstractmethod
    def threshold_moves(
        self, labels: NDArray[np.int32], n_clusters: int, order: Indices, factor: float
    ) -> tuple[NDArray[np.int32], FloatArray]:
        """Visit samples in this order and move them to other clusters; return labels and means.

        A sample x of weight w moves to the cluster with the lowest W/(W + w)·‖x − c‖² if this is
        less than ``factor`` times W/(W − w)·‖x − c‖² of its own cluster, where W are the weights of
        clusters and c their means. Both follow every move. Samples that are alone stay.
        """

    @abstractmethod
    def seed_from(self, pool: FloatArray, chances: FloatArray, quantiles: FloatArray) -> Indices:
        """Draw k points of a pool by k-means++, judged by all samples; return their indices.

        The first is drawn by ``chances``, shape (p,), each later one by these times the squared
        distance to the closest point drawn before. ``quantiles`` are the uniform numbers of the
        draws, shape (k, t), for t different candidates, of which the one is taken that lowers the
        sum of squares of the samples most. The first draw takes one candidate.
        """

    @abstractmethod
    def reductions(self, points: FloatArray, squares: FloatArray) -> FloatArray:
        """Return Σ_j w_j·max(squares_j − ‖y − x_j‖², 0) of every point y, in data units."""

    @abstractmethod
    def attracted_means(self, points: FloatArray, squares: FloatArray) -> FloatArray:
        """Return the mean of the samples with ‖y − x_j‖² < squares_j for every point y.

        It is y itself if there are none. Its bits depend on these samples alone.
        """

    @abstractmethod
    def attracted(self, points: FloatArray, squares: FloatArray) -> Attracted:
        """Return reductions, weights and means of every point; all in the frame."""

    @abstractmethod
    def cluster_sums(self, centers: FloatArray, parent: Handle | None = None) -> ClusterSums:
        """Assign all samples to these centres, and sum them up by cluster; all in the frame.

        ``parent`` is the handle of earlier sums or of a refinement. It may save work, and never
        changes the result.
        """


def refined(engine: Engine, n_clusters: int, starts: Iterable[Order]) -> Iterator[Refinement]:
    """Refine starts that do not depend on each other, with all threads, in their order."""
    return made(engine, n_clusters, (partial(_refine, start) for start in starts))


def _refine(start: Order, engine: Engine) -> Refinement:
    return engine.refine([start])[0]


def made(
    engine: Engine, n_clusters: int, jobs: Iterable[Callable[[Engine], Refinement]]
) -> Iterator[Refinement]:
    """Make solutions that do not depend on each other, with all threads, in their order."""
    with Workers(engine, n_clusters, MOST_WORKERS).at_work() as workers:
        yield from workers.in_order(jobs)
