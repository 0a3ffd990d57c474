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
from evomeans.engines.cpu.layout import Rows, Samples, SparseRows, aligned, count_tiles, weight_of
from evomeans.engines.cpu.order import neighbour_order
from evomeans.engines.cpu.seeding import all_distances
from evomeans.engines.cpu.simd import WIDTH
from evomeans.engines.cpu.threads import ThreadTeam, nth_item
from evomeans.typing import FloatArray
from lab.baselines.engine import Attracted

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
        self.team = ThreadTeam(n_threads)

    def reductions(self, points: FloatArray, squares: FloatArray) -> FloatArray:
        """Return b(y) of every point.

        Parameters
        ----------
        points : (m, d) array
            In the frame.
        squares : (n,) array
            δ, in the user's order; zero for a sample without weight.
        """
        return self._attract(points, squares, valued=True, moving=False).reductions

    def means(self, points: FloatArray, squares: FloatArray) -> FloatArray:
        """Return the mean of the samples that every point attracts, or the point if there are none.

        The bits of a mean depend only on the samples attracted, so a point that comes back
        unchanged has converged.
        """
        return self._attract(points, squares, valued=False, moving=True).means

    def attracted(self, points: FloatArray, squares: FloatArray) -> Attracted:
        """Return reductions and means, and the weights of what is attracted, in one pass."""
        return self._attract(points, squares, valued=True, moving=True)

    def _attract(
        self, points: FloatArray, squares: FloatArray, valued: bool, moving: bool
    ) -> Attracted:
        if isinstance(self.samples.rows, SparseRows):
            return self._sparse(points, squares, valued, moving)
        return self._dense(points, squares, valued, moving)

    def _dense(
        self, points: FloatArray, squares: FloatArray, valued: bool, moving: bool
    ) -> Attracted:
        order = neighbour_order(points, WIDTH)
        squares = squares[self.samples.order]
        gains, weights = np.empty(len(points)), np.empty(len(points))
        means = np.empty(points.shape if moving else (0, self.n_features))
        self.team.run(
            attract,
            self.samples,
            OwnDistances.of(squares),
            points[order],
            valued,
            moving,
            gains,
            weights,
            means,
            PointScratch.allocate(self.n_features, self.team.n_threads),
        )
        places = np.empty_like(order)
        places[order] = np.arange(len(order), dtype=order.dtype)
        return Attracted(gains[places], weights[places], means[places] if moving else means)

    def _sparse(
        self, points: FloatArray, squares: FloatArray, valued: bool, moving: bool
    ) -> Attracted:
        """Compute all distances, for a few points at a time: sparse rows have no tiles."""
        order, weights = self.samples.order, np.ones(len(squares))
        if len(self.samples.weights):
            weights[order] = self.samples.weights
        gains, attracted = np.zeros(len(points)), np.zeros(len(points))
        means = points.copy()
        for first in range(0, len(points), WIDTH):
            block = points[first : first + WIDTH]
            away = self._sparse_squares(block)
            if valued:
                reductions = np.maximum(squares[:, None] - away, 0.0)
                gains[first : first + WIDTH] = weights @ reductions
            if not moving:
                continue
            shares = np.where(away < squares[:, None], weights[:, None], 0.0)
            sums = (self._rows_and_ones.T @ shares[order]).T
            found = np.flatnonzero(sums[:, -1])
            attracted[first : first + WIDTH] = sums[:, -1]
            means[first + found] = sums[found, :-1] / sums[found, -1:]
        return Attracted(gains, attracted, means)

    @cached_property
    def _rows_and_ones(self) -> Any:
        rows, n_samples = self.samples.rows, len(self.samples.order)
        shape = n_samples, self.n_features
        stored = csr_array((rows.values, rows.columns, rows.starts), shape=shape)
        return hstack([stored, csr_array(np.ones((n_samples, 1)))], format="csr")

    def _sparse_squares(self, points: FloatArray) -> FloatArray:
        workspace = {
            "center_squares": np.zeros(len(points)),
            "by_feature": np.zeros((self.n_features, len(points))),
        }
        samples = self.samples._replace(rows=self.samples.rows._replace(**workspace))
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
    * ``gains`` (threads, WIDTH): their reductions.
    * ``weights`` (threads, WIDTH): weights of the samples they attract.
    * ``sums`` (threads, d, WIDTH): weighted sums of the samples they attract.
    """

    middle: FloatArray
    points: FloatArray
    away: FloatArray
    gains: FloatArray
    weights: FloatArray
    sums: FloatArray

    @classmethod
    def allocate(cls, n_features: int, n_threads: int) -> PointScratch:
        """Allocate the arrays for ``n_threads`` threads."""
        return cls(
            np.empty((n_threads, 1, n_features)),
            aligned((n_threads, n_features, WIDTH), np.float64),
            aligned((n_threads, WIDTH), np.float64),
            aligned((n_threads, WIDTH), np.float64),
            aligned((n_threads, WIDTH), np.float64),
            aligned((n_threads, n_features, WIDTH), np.float64),
        )


@jit
def attract(
    samples: Samples,
    own: OwnDistances,
    points: FloatArray,
    valued: bool,
    moving: bool,
    gains: FloatArray,
    weights: FloatArray,
    means: FloatArray,
    scratch: PointScratch,
    thread: int,
    n_threads: int,
) -> None:
    """Compute reductions, means or both for a thread's share of the tiles of points.

    Parameters
    ----------
    samples : Samples
    own : OwnDistances
    points : (m, d) array
        In an order in which neighbours follow each other.
    valued, moving : bool
        Whether to compute reductions, and whether to compute means.
    gains, weights : (m,) arrays, out
        The reductions, and the weights of the samples attracted; zero if they are not computed.
    means : (m, d) array, out
        The means; empty unless ``moving``.
    scratch : PointScratch
    thread, n_threads : int
    """
    n_points, n_features = points.shape
    own_gains, own_weights = scratch.gains[thread], scratch.weights[thread]
    sums = scratch.sums[thread]
    n_tiles = (n_points + WIDTH - 1) // WIDTH
    for nth in range(n_tiles):
        tile = nth_item(nth, thread, n_threads)
        if tile >= n_tiles:
            break
        for p in range(WIDTH):
            own_gains[p] = own_weights[p] = 0.0
            for t in range(n_features):
                sums[t, p] = 0.0
        visit_samples(samples, own, points, tile, valued, moving, scratch, thread)
        first = tile * WIDTH
        for p in range(min(WIDTH, n_points - first)):
            gains[first + p] = own_gains[p]
            total = weights[first + p] = own_weights[p]
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
    valued: bool,
    moving: bool,
    scratch: PointScratch,
    thread: int,
) -> None:
    """Add the samples that a tile of points may attract, in the order of their places."""
    rows, middle = samples.rows, scratch.middle[thread]
    block, away = scratch.points[thread], scratch.away[thread]
    gains, weights, sums = scratch.gains[thread], scratch.weights[thread], scratch.sums[thread]
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
            if valued:
                add_gains(weight, own.squares[i], away, gains)
            if moving:
                add_attracted(rows, i, weight, own.squares[i], away, weights, sums)


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
