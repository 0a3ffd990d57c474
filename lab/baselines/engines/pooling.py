"""k-means++ that draws its centres from a pool of points, and judges them by all samples.

Points are drawn by their chance times the squared distance to the closest point drawn before. Of a
few candidates, the one that lowers the sum of squares of the samples most is taken (Baldassi 2022).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.bundle import bundle
from evomeans.compiled.jit import REORDER, jit
from evomeans.engines.cpu.layout import Samples, remember_center, squared_distance, weight_of
from evomeans.kernels.vectors import squared_difference
from evomeans.typing import FloatArray, Index


@bundle
class PoolMemory(NamedTuple):
    """Squared distances while points are drawn.

    * ``squares`` (n,): of the samples to the closest point so far; ``trial`` and ``best`` (n,):
      the same with the candidate in hand, and with the best one.
    * ``apart`` (p,): of the points of the pool to the closest point so far.
    * ``chances`` (p,): of the points in the draw.
    """

    squares: FloatArray
    trial: FloatArray
    best: FloatArray
    apart: FloatArray
    chances: FloatArray

    @classmethod
    def allocate(cls, n_samples: int, n_points: int) -> PoolMemory:
        """Allocate arrays for so many samples and points; nothing is close to anything yet."""
        return cls(
            np.full(n_samples, np.inf),
            np.empty(n_samples),
            np.empty(n_samples),
            np.full(n_points, np.inf),
            np.empty(n_points),
        )


@jit
def draw_from_pool(
    samples: Samples,
    pool: FloatArray,
    chances: FloatArray,
    uniforms: FloatArray,
    drawn: NDArray[np.intp],
    memory: PoolMemory,
) -> None:
    """Draw k points, one after the other.

    Parameters
    ----------
    samples : Samples
        Sparse rows need room for as many centres as there are points.
    pool : (p, d) array
    chances : (p,) array
        Not all zero.
    uniforms : (k, t) array
        One row for each draw; the first takes one candidate, the others t, all different.
    drawn : (k,) array, out
        Indices of points. One comes twice only if no other point is left with a chance.
    memory : PoolMemory
    """
    for j in range(pool.shape[0]):
        remember_center(samples.rows, pool, j)
    for place in range(drawn.shape[0]):
        left = 0.0
        for j in range(pool.shape[0]):
            memory.chances[j] = chances[j] if place == 0 else chances[j] * memory.apart[j]
            left += memory.chances[j]
        if left <= 0.0:
            # Every point lies on one that was drawn.
            for j in range(pool.shape[0]):
                memory.chances[j] = chances[j]
        least = np.inf
        for trial in range(1 if place == 0 else uniforms.shape[1]):
            j = spin(memory.chances, uniforms[place, trial])
            if j < 0:
                break
            memory.chances[j] = 0.0
            cost = try_point(samples, pool, j, memory)
            if cost < least:
                least, drawn[place] = cost, j
                for i in range(memory.best.shape[0]):
                    memory.best[i] = memory.trial[i]
        for i in range(memory.best.shape[0]):
            memory.squares[i] = memory.best[i]
        for j in range(pool.shape[0]):
            square = squared_difference(pool, j, pool, drawn[place])
            memory.apart[j] = min(memory.apart[j], square)


@jit
def spin(chances: FloatArray, uniform: float) -> int:
    """Return the index at which a roulette wheel stops, −1 if there are no chances."""
    total = 0.0
    for j in range(chances.shape[0]):
        total += chances[j]
    target, last = uniform * total, -1
    for j in range(chances.shape[0]):
        if chances[j] > 0.0:
            last = j
            if chances[j] > target:
                return j
            target -= chances[j]
    return last


@jit(fastmath=REORDER)
def try_point(samples: Samples, pool: FloatArray, j: Index, memory: PoolMemory) -> float:
    """Set ``trial`` as if point ``j`` were a centre; return the sum of squares."""
    total = 0.0
    for i in range(memory.trial.shape[0]):
        square = min(memory.squares[i], squared_distance(samples.rows, i, pool, j))
        memory.trial[i] = square
        total += weight_of(samples, i) * square
    return total
