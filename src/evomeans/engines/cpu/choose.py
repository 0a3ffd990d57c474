"""The closest centres by scores, and by direct distances where scores cannot decide."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.jit import FINITE, REORDER, jit
from evomeans.engines.cpu.layout import FloatArray
from evomeans.engines.cpu.rows import Rows, SparseRows, remember_center, squared_distance


@jit(fastmath=REORDER)
def set_offsets(
    rows: Rows, middle: NDArray[Any], offsets: NDArray[Any], squares: NDArray[Any]
) -> None:
    """Set ``offsets`` to rows − middle, and ``squares`` to their squared norms."""
    for i in range(rows.shape[0]):
        total = 0.0
        for t in range(rows.shape[1]):
            offset = rows[i, t] - middle[t]
            offsets[i, t] = offset
            total += offset * offset
        squares[i] = total


@jit
def choose(
    rows: Rows | SparseRows,
    scores: NDArray[Any],
    levels: NDArray[Any],
    squares: NDArray[Any],
    longest: float,
    roundoff: float,
    underflow: float,
    centers: FloatArray,
    labels: NDArray[np.int32],
) -> None:
    """Set the labels of samples to the closest centres; the lowest index wins a tie.

    Parameters
    ----------
    rows : (m, d) array or SparseRows
    scores : (m, k) array, in and out
        −2x·c; in the end, ‖c‖² − 2x·c.
    levels : (k,) array
        ‖c‖² of the centres.
    squares : (m,) array
        ‖x‖² of the samples.
    longest, roundoff, underflow : float
        A centre is not the closest if its score exceeds the lowest one by more than
        roundoff · (‖x‖ + longest)² + underflow.
    centers : (k, d) array
    labels : (m,) array, out
    """
    k = centers.shape[0]
    for j in range(k):
        remember_center(rows, centers, j)
    for i in range(labels.shape[0]):
        extent = np.sqrt(squares[i]) + longest
        limit = lowest(scores, levels, i) + (roundoff * extent * extent + underflow)
        count, label = candidates(scores, i, limit)
        if count > 1:
            closest = np.inf
            for j in range(k):
                if scores[i, j] <= limit:
                    square = squared_distance(rows, i, centers, j)
                    if square < closest:
                        closest, label = square, j
        labels[i] = label


@jit(fastmath=FINITE)
def lowest(scores: NDArray[Any], levels: NDArray[Any], i: int) -> Any:
    """Complete the scores of a sample, and return the lowest one."""
    best = scores[i, 0] + levels[0]
    for j in range(scores.shape[1]):
        score = scores[i, j] + levels[j]
        scores[i, j] = score
        best = min(best, score)
    return best


@jit
def candidates(scores: NDArray[Any], i: int, limit: Any) -> tuple[int, int]:
    """Count the centres whose scores are up to a limit; also return the sum of their indices."""
    count = total = 0
    for j in range(scores.shape[1]):
        close = int(scores[i, j] <= limit)
        count += close
        total += close * j
    return count, total
