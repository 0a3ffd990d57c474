"""What one more centre would bring: the reduction it guarantees, and the samples it would attract.

With δ_j the squared distance of sample j to the closest of the present centres, one more centre at
the point y takes over every sample that it is nearer to, and so lowers the objective by at least

    b(y) = Σ_j w_j · max(δ_j − ‖y − x_j‖², 0)

For all samples as points that is n² distances. Most are avoided. Points are taken in tiles of 64
neighbours, and a sample counts for a tile only if the tile's ball and the ball around the sample
that reaches to its own centre meet. What is left is computed in double precision, 64 points at a
time: these numbers decide which point is best, and no rounding may come into that.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack

from evomeans.compiled.jit import FINITE, REORDER, jit
from evomeans.engines.cpu.lanes import WIDTH
from evomeans.engines.cpu.layout import Samples, aligned, count_tiles
from evomeans.engines.cpu.order import neighbour_order
from evomeans.engines.cpu.roulette import measure_all
from evomeans.engines.cpu.rows import SparseRows
from evomeans.engines.cpu.threads import Crew, nth_item
from evomeans.engines.protocol import FloatArray

# Distances that decide whether samples are looked at are widened by this; rounding is far less.
PAD = 1.0 + 1e-9


class Attraction:
    """Asks the samples of an engine what centres at given points would bring.

    Parameters
    ----------
    samples : Samples
    n_features : int
    n_threads : int
        At most; results do not depend on it.
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
            δ, in the user's order; zero for a sample that does not count.
        """
        if isinstance(self.samples.rows, SparseRows):
            return self._sparse(points, squares, moving=False)[0]
        return self._dense(points, squares, moving=False)[0]

    def means(self, points: FloatArray, squares: FloatArray) -> FloatArray:
        """Return the mean of the samples that every point attracts; the point, if there are none.

        The bits of a mean depend on the samples attracted alone, so that a point that comes back
        unchanged has arrived.
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
            Reach.of(squares),
            points[order],
            moving,
            totals,
            means,
            Desk.allocate(self.n_features, self.crew.n_threads),
        )
        places = np.empty_like(order)
        places[order] = np.arange(len(order), dtype=order.dtype)
        return totals[places], means[places] if moving else means

    def _sparse(
        self, points: FloatArray, squares: FloatArray, moving: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Rows without tiles: all distances, of a few points at a time."""
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
        measure_all(samples, np.ascontiguousarray(points), distances)
        return np.square(distances, out=distances)


class Reach(NamedTuple):
    """How far samples can be from a point that attracts them, in the order of the tiles.

    ``squares`` (n,) and ``roots`` (n,) float64: the distance of a sample to its own centre;
    ``farthest`` (tiles,) float64: the largest of a tile.
    """

    squares: FloatArray
    roots: FloatArray
    farthest: FloatArray

    @classmethod
    def of(cls, squares: FloatArray) -> Reach:
        """Take roots and find the largest of every tile."""
        roots = np.sqrt(squares)
        padded = np.zeros((count_tiles(len(roots)), WIDTH))
        padded.ravel()[: len(roots)] = roots
        return cls(squares, roots, padded.max(axis=1))


class Desk(NamedTuple):
    """Room to work in, one slice per thread.

    Of a tile of points: ``middle`` (threads, 1, d), ``points`` (threads, d, WIDTH) and ``away``
    (threads, WIDTH), their squared distances to the sample in hand; ``totals`` (threads, WIDTH),
    their reductions, or the weights of what they attract, and ``sums`` (threads, d, WIDTH), the
    weighted sums of it. All float64.
    """

    middle: NDArray[np.float64]
    points: NDArray[np.float64]
    away: NDArray[np.float64]
    totals: NDArray[np.float64]
    sums: NDArray[np.float64]

    @classmethod
    def allocate(cls, n_features: int, n_threads: int) -> Desk:
        """Make room for ``n_threads`` threads."""
        return cls(
            np.empty((n_threads, 1, n_features)),
            aligned((n_threads, n_features, WIDTH), np.float64),
            aligned((n_threads, WIDTH), np.float64),
            aligned((n_threads, WIDTH), np.float64),
            aligned((n_threads, n_features, WIDTH), np.float64),
        )


@jit
def attract(
    samples: Any,
    reach: Any,
    points: Any,
    moving: bool,
    totals: Any,
    means: Any,
    desk: Any,
    thread: int,
    n_threads: int,
) -> None:
    """Answer for a thread's share of the tiles of points.

    Parameters
    ----------
    samples : Samples
    reach : Reach
    points : (m, d) array
        Neighbours standing together.
    moving : bool
        Whether means are wanted, or reductions.
    totals : (m,) array, out
        The reductions; else the weights of what is attracted.
    means : (m, d) array, out
        Empty unless wanted.
    desk : Desk
    thread, n_threads : int
    """
    n_points, n_features = points.shape
    own_totals, sums = desk.totals[thread], desk.sums[thread]
    n_tiles = (n_points + WIDTH - 1) // WIDTH
    for nth in range(n_tiles):
        tile = nth_item(nth, thread, n_threads)
        if tile >= n_tiles:
            break
        for p in range(WIDTH):
            own_totals[p] = 0.0
            for t in range(n_features):
                sums[t, p] = 0.0
        visit_samples(samples, reach, points, tile, moving, desk, thread)
        first = tile * WIDTH
        for p in range(min(WIDTH, n_points - first)):
            total = totals[first + p] = own_totals[p]
            if moving:
                for t in range(n_features):
                    stays = points[first + p, t]
                    means[first + p, t] = sums[t, p] / total if total > 0.0 else stays


@jit
def visit_samples(
    samples: Any, reach: Any, points: Any, tile: int, moving: bool, desk: Any, thread: int
) -> None:
    """Let a tile of points meet the samples that it may attract, in the order of the samples."""
    rows, weights, middle = samples.rows, samples.weights, desk.middle[thread]
    block, away = desk.points[thread], desk.away[thread]
    totals, sums = desk.totals[thread], desk.sums[thread]
    radius = take_points(points, tile, block, middle)
    for other in range(samples.radii.shape[0]):
        limit = (radius + samples.radii[other] + reach.farthest[other]) * PAD
        if squared_length(samples.middles, other, middle) >= limit * limit:
            continue
        for i in range(other * WIDTH, min((other + 1) * WIDTH, rows.shape[0])):
            limit = (radius + reach.roots[i]) * PAD
            if reach.squares[i] == 0.0 or squared_length(rows, i, middle) >= limit * limit:
                continue
            weight = weights[i] if weights.shape[0] else 1.0
            measure_points(rows, i, block, away)
            if moving:
                add_attracted(rows, i, weight, reach.squares[i], away, totals, sums)
            else:
                add_gains(weight, reach.squares[i], away, totals)


@jit(fastmath=FINITE)
def take_points(points: Any, tile: int, block: Any, middle: Any) -> float:
    """Copy a tile of points, a row for each feature; return its radius around its middle.

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
def squared_length(rows: Any, i: int, middle: Any) -> float:
    """‖rows[i] − middle‖²."""
    total = 0.0
    for t in range(rows.shape[1]):
        difference = rows[i, t] - middle[0, t]
        total += difference * difference
    return total


@jit(fastmath=FINITE)
def measure_points(rows: Any, i: int, block: Any, away: Any) -> None:
    """Set ``away`` to the squared distances of all points of a tile to sample ``i``."""
    for p in range(WIDTH):
        away[p] = 0.0
    for t in range(block.shape[0]):
        value = rows[i, t]
        for p in range(WIDTH):
            difference = block[t, p] - value
            away[p] += difference * difference


@jit(fastmath=FINITE)
def add_gains(weight: float, square: float, away: Any, totals: Any) -> None:
    """Add what a sample gains from each of the points."""
    for p in range(WIDTH):
        totals[p] += weight * max(square - away[p], 0.0)


@jit(fastmath=FINITE)
def add_attracted(
    rows: Any, i: int, weight: float, square: float, away: Any, totals: Any, sums: Any
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
