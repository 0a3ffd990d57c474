"""Effects of one more centre: the reduction it guarantees, and the samples it would attract.

With δ_j the squared distance of sample j to the closest of the present centres, one more centre at
the point y attracts every sample that is nearer to it, and so lowers the objective by at least

    b(y) = Σ_j w_j · max(δ_j − ‖y − x_j‖², 0)

With all samples as points, these are n² distances. Most are avoided: points are taken in tiles of
64 neighbours, and a sample matters to a tile only if the ball around the tile meets the ball around
the sample with radius √δ. The others are computed in double precision, 64 points at a time, since
their sums decide which point is best.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, hstack

from evomeans.compiled.bundle import bundle
from evomeans.compiled.jit import FINITE, REORDER, jit
from evomeans.engines.cpu.lanes import WIDTH
from evomeans.engines.cpu.layout import Samples, aligned, count_tiles
from evomeans.engines.cpu.order import neighbour_order
from evomeans.engines.cpu.roulette import all_distances
from evomeans.engines.cpu.rows import Rows, SparseRows, weight_of
from evomeans.engines.cpu.threads import Crew, nth_item
from evomeans.engines.protocol import FloatArray

# Limits of the distances at which samples are skipped are multiplied by this, far above rounding.
PAD = 1.0 + 1e-9


class Attraction:
    """Computes what centres at given points would gain, for the samples of an engine.

    Parameters
    ----------
    samples : Samples
    n_features : int
    n_threads : int
        Results do not depend on it.
    """

    def __init__(self, samples: Samples, n_features: int, n_threads: int) -> None:
        self.samples = samples
        self.n_features = n_features
        self.crew = Crew(n_threads)

    def reductions(self, points: FloatArray, squares: FloatArray) -> FloatArray:
        """Return b(y) of every point.

        Parameters
        ----------
        points : (m, d) array
            In the frame.
        squares : (n,) array
            δ, in the user's order; zero for a sample without weight.
        """
        if isinstance(self.samples.rows, SparseRows):
            return self._sparse(points, squares, moving=False)[0]
        return self._dense(points, squares, moving=False)[0]

    def means(self, points: FloatArray, squares: FloatArray) -> FloatArray:
        """Return the mean of the samples that every point attracts, or the point if there are none.

        The bits of a mean depend only on the samples attracted, so a point that comes back
        unchanged has converged.
        """
        if isinstance(self.samples.rows, SparseRows):
            return self._sparse(points, squares, moving=True)[1]
        return self._dense(points, squares, moving=True)[1]

    def _dense(
        self, points: FloatArray, squares: FloatArray, moving: bool
    ) -> tuple[FloatArray, FloatArray]:
        order = neighbour_order(points, WIDTH)
        squares = squares[self.samples.order]
        totals = np.empty(len(points))
        means = np.empty(points.shape if moving else (0, self.n_features))
        self.crew.run(
            attract,
            self.samples,
            OwnDistances.of(squares),
            points[order],
            moving,
            totals,
            means,
            PointScratch.allocate(self.n_features, self.crew.n_threads),
        )
        places = np.empty_like(order)
        places[order] = np.arange(len(order), dtype=order.dtype)
        return totals[places], means[places] if moving else means

    def _sparse(
        self, points: FloatArray, squares: FloatArray, moving: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Compute all distances, for a few points at a time: sparse rows have no tiles."""
        order, weights = self.samples.order, np.ones(len(squares))
        if len(self.samples.weights):
            weights[order] = self.samples.weights
        totals, means = np.zeros(len(points)), points.copy()
        for first in range(0, len(points), WIDTH):
            block = points[first : first + WIDTH]
            away = self._sparse_squares(block)
            if not moving:
                gains = np.maximum(squares[:, None] - away, 0.0)
                totals[first : first + WIDTH] = weights @ gains
                continue
            shares = np.where(away < squares[:, None], weights[:, None], 0.0)
            sums = (self._rows_and_ones.T @ shares[order]).T
            found = np.flatnonzero(sums[:, -1])
            means[first + found] = sums[found, :-1] / sums[found, -1:]
        return totals, means

    @cached_property
    def _rows_and_ones(self) -> Any:
        rows, n_samples = self.samples.rows, len(self.samples.order)
        shape = n_samples, self.n_features
        stored = csr_array((rows.values, rows.columns, rows.starts), shape=shape)
        return hstack([stored, csr_array(np.ones((n_samples, 1)))], format="csr")

    def _sparse_squares(self, points: FloatArray) -> FloatArray:
        room = {
            "center_squares": np.zeros(len(points)),
            "by_feature": np.zeros((self.n_features, len(points))),
        }
        samples = self.samples._replace(rows=self.samples.rows._replace(**room))
        distances = np.empty((len(self.samples.order), len(points)))
        all_distances(samples, np.ascontiguousarray(points), distances)
        return np.square(distances, out=distances)


@bundle
class OwnDistances(NamedTuple):
    """Distances of samples to their own centres, by place: how far points may be to attract them.

    * ``squares`` and ``roots`` (n,): the squared distances δ, and their roots.
    * ``farthest`` (tiles,): the largest root of each tile.
    """

    squares: FloatArray
    roots: FloatArray
    farthest: FloatArray

    @classmethod
    def of(cls, squares: FloatArray) -> OwnDistances:
        """Take roots and find the largest of every tile."""
        roots = np.sqrt(squares)
        padded = np.zeros((count_tiles(len(roots)), WIDTH))
        padded.ravel()[: len(roots)] = roots
        return cls(squares, roots, padded.max(axis=1))


@bundle
class PointScratch(NamedTuple):
    """Working memory of each thread for a tile of points.

    * ``middle`` (threads, 1, d): mean of the points.
    * ``points`` (threads, d, WIDTH): the points, one row per feature.
    * ``away`` (threads, WIDTH): their squared distances to the sample in hand.
    * ``totals`` (threads, WIDTH): their reductions, or the weights of the samples they attract.
    * ``sums`` (threads, d, WIDTH): weighted sums of the samples they attract.
    """

    middle: FloatArray
    points: FloatArray
    away: FloatArray
    totals: FloatArray
    sums: FloatArray

    @classmethod
    def allocate(cls, n_features: int, n_threads: int) -> PointScratch:
        """Allocate the arrays for ``n_threads`` threads."""
        return cls(
            np.empty((n_threads, 1, n_features)),
            aligned((n_threads, n_features, WIDTH), np.float64),
            aligned((n_threads, WIDTH), np.float64),
            aligned((n_threads, WIDTH), np.float64),
            aligned((n_threads, n_features, WIDTH), np.float64),
        )


@jit
def attract(
    samples: Samples,
    own: OwnDistances,
    points: FloatArray,
    moving: bool,
    totals: FloatArray,
    means: FloatArray,
    scratch: PointScratch,
    thread: int,
    n_threads: int,
) -> None:
    """Compute reductions or means for a thread's share of the tiles of points.

    Parameters
    ----------
    samples : Samples
    own : OwnDistances
    points : (m, d) array
        In an order in which neighbours follow each other.
    moving : bool
        Whether to compute means instead of reductions.
    totals : (m,) array, out
        The reductions; if ``moving``, the weights of the samples attracted.
    means : (m, d) array, out
        The means; empty unless ``moving``.
    scratch : PointScratch
    thread, n_threads : int
    """
    n_points, n_features = points.shape
    own_totals, sums = scratch.totals[thread], scratch.sums[thread]
    n_tiles = (n_points + WIDTH - 1) // WIDTH
    for nth in range(n_tiles):
        tile = nth_item(nth, thread, n_threads)
        if tile >= n_tiles:
            break
        for p in range(WIDTH):
            own_totals[p] = 0.0
            for t in range(n_features):
                sums[t, p] = 0.0
        visit_samples(samples, own, points, tile, moving, scratch, thread)
        first = tile * WIDTH
        for p in range(min(WIDTH, n_points - first)):
            total = totals[first + p] = own_totals[p]
            if moving:
                for t in range(n_features):
                    stays = points[first + p, t]
                    means[first + p, t] = sums[t, p] / total if total > 0.0 else stays


@jit
def visit_samples(
    samples: Samples,
    own: OwnDistances,
    points: FloatArray,
    tile: int,
    moving: bool,
    scratch: PointScratch,
    thread: int,
) -> None:
    """Add the samples that a tile of points may attract, in the order of their places."""
    rows, middle = samples.rows, scratch.middle[thread]
    block, away = scratch.points[thread], scratch.away[thread]
    totals, sums = scratch.totals[thread], scratch.sums[thread]
    radius = copy_points(points, tile, block, middle)
    for other in range(samples.radii.shape[0]):
        limit = (radius + samples.radii[other] + own.farthest[other]) * PAD
        if squared_length(samples.middles, other, middle) >= limit * limit:
            continue
        for i in range(other * WIDTH, min((other + 1) * WIDTH, rows.shape[0])):
            limit = (radius + own.roots[i]) * PAD
            if own.squares[i] == 0.0 or squared_length(rows, i, middle) >= limit * limit:
                continue
            weight = weight_of(samples, i)
            distances_to_points(rows, i, block, away)
            if moving:
                add_attracted(rows, i, weight, own.squares[i], away, totals, sums)
            else:
                add_gains(weight, own.squares[i], away, totals)


@jit(fastmath=FINITE)
def copy_points(points: FloatArray, tile: int, block: FloatArray, middle: FloatArray) -> float:
    """Copy a tile of points, one row per feature; return its radius around its middle.

    The last tile is filled up with copies of its last point.
    """
    n_points, n_features = points.shape
    for t in range(n_features):
        total = 0.0
        for p in range(WIDTH):
            value = points[min(tile * WIDTH + p, n_points - 1), t]
            block[t, p] = value
            total += value
        middle[0, t] = total / WIDTH
    radius = 0.0
    for p in range(WIDTH):
        square = 0.0
        for t in range(n_features):
            offset = block[t, p] - middle[0, t]
            square += offset * offset
        radius = max(radius, square)
    return float(np.sqrt(radius))


@jit(fastmath=REORDER)
def squared_length(rows: Rows, i: int, middle: FloatArray) -> float:
    """‖rows[i] − middle‖²."""
    total = 0.0
    for t in range(rows.shape[1]):
        difference = rows[i, t] - middle[0, t]
        total += difference * difference
    return total


@jit(fastmath=FINITE)
def distances_to_points(rows: Rows, i: int, block: FloatArray, away: FloatArray) -> None:
    """Set ``away`` to the squared distances of all points of a tile to sample ``i``."""
    for p in range(WIDTH):
        away[p] = 0.0
    for t in range(block.shape[0]):
        value = rows[i, t]
        for p in range(WIDTH):
            difference = block[t, p] - value
            away[p] += difference * difference


@jit(fastmath=FINITE)
def add_gains(weight: float, square: float, away: FloatArray, totals: FloatArray) -> None:
    """Add w·max(δ − ‖y − x‖², 0) of a sample to each of the points y."""
    for p in range(WIDTH):
        totals[p] += weight * max(square - away[p], 0.0)


@jit(fastmath=FINITE)
def add_attracted(
    rows: Rows,
    i: int,
    weight: float,
    square: float,
    away: FloatArray,
    totals: FloatArray,
    sums: FloatArray,
) -> None:
    """Add a sample to the sums of the points that attract it; overwrites ``away``."""
    attracted = 0.0
    for p in range(WIDTH):
        share = weight if away[p] < square else 0.0
        away[p] = share
        totals[p] += share
        attracted += share
    if attracted > 0.0:
        for t in range(sums.shape[0]):
            value = rows[i, t]
            for p in range(WIDTH):
                sums[t, p] += away[p] * value
