"""The closest centres by scores, and by direct distances where scores cannot decide."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.jit import FINITE, REORDER, jit
from evomeans.compiled.ready import Call
from evomeans.engines.cpu.layout import FloatArray
from evomeans.engines.cpu.rows import Rows, SparseRows, remember_center, squared_distance
from evomeans.engines.cpu.samples import encode_samples, frame_for
from evomeans.engines.frame import is_sparse

# The label of a sample whose scores cannot decide.
UNCLEAR = -1
# Samples of narrow data that are compared at a time, few enough for the fastest cache.
TOGETHER = 256


@jit(fastmath=REORDER)
def set_offsets(
    X: Rows,
    scale: float,
    shift: NDArray[Any],
    middle: NDArray[Any],
    offsets: NDArray[Any],
    squares: NDArray[Any],
) -> None:
    """Set ``offsets`` to samples in the frame − middle, and ``squares`` to their squared norms.

    A sample x in data units is scale · x − shift in the frame.
    """
    for i in range(X.shape[0]):
        total = 0.0
        for t in range(X.shape[1]):
            offset = (X[i, t] * scale - shift[t]) - middle[t]
            offsets[i, t] = offset
            total += offset * offset
        squares[i] = total


@jit
def label_clear(
    scores: NDArray[Any],
    levels: NDArray[Any],
    squares: NDArray[Any],
    longest: float,
    roundoff: float,
    underflow: float,
    labels: NDArray[np.int32],
) -> None:
    """Set the labels of samples to the closest centres, or to UNCLEAR.

    Parameters
    ----------
    scores : (m, k) array, in and out
        −2x·c; in the end, ‖c‖² − 2x·c.
    levels : (k,) array
        ‖c‖² of the centres.
    squares, longest, roundoff, underflow
        As in :func:`choose`.
    labels : (m,) array, out
    """
    for i in range(labels.shape[0]):
        extent = np.sqrt(squares[i]) + longest
        limit = lowest(scores, levels, i) + (roundoff * extent * extent + underflow)
        count, label = candidates(scores, i, limit)
        labels[i] = label if count == 1 else UNCLEAR


@jit(fastmath=REORDER)
def label_narrow(
    X: Rows,
    scale: float,
    shift: NDArray[Any],
    middle: NDArray[Any],
    points: NDArray[Any],
    levels: NDArray[Any],
    longest: float,
    roundoff: float,
    underflow: float,
    far: float,
    columns: NDArray[Any],
    squares: NDArray[Any],
    scores: NDArray[Any],
    best: NDArray[Any],
    second: NDArray[Any],
    closest: NDArray[Any],
    labels: NDArray[np.int32],
) -> None:
    """Set the labels of samples with few features to the closest centres, or to UNCLEAR.

    Matrix products of few features are slow. Here samples lie side by side, feature by feature, and
    one centre after the other is compared with all of them; only the lowest two scores are kept.

    Parameters
    ----------
    X, scale, shift, middle
        As in :func:`set_offsets`.
    points : (d, k) array
        −2c of the centres.
    levels : (k,) array
        ‖c‖² of the centres.
    longest, roundoff, underflow
        As in :func:`choose`.
    far : float
        Samples with a squared norm above this are UNCLEAR.
    columns : (d, TOGETHER) array, squares, scores, best, second, closest : (TOGETHER,) arrays
        Working memory. Of rows of one array, the compiler could not tell that they do not overlap,
        and would not vectorise the loops.
    labels : (m,) array, out
    """
    n_features, k = points.shape
    for first in range(0, X.shape[0], TOGETHER):
        count = min(TOGETHER, X.shape[0] - first)
        for i in range(count):
            for t in range(n_features):
                columns[t, i] = (X[first + i, t] * scale - shift[t]) - middle[t]
        for i in range(TOGETHER):
            squares[i] = closest[i] = 0.0
            best[i] = second[i] = np.inf
        for t in range(n_features):
            for i in range(TOGETHER):
                squares[i] += columns[t, i] * columns[t, i]
        for j in range(k):
            score_center(columns, points, levels, j, scores)
            keep_two(scores, closest.dtype.type(j), best, second, closest)
        for i in range(count):
            extent = np.sqrt(squares[i]) + longest
            limit = best[i] + (roundoff * extent * extent + underflow)
            # Not the other way round: what has overflowed is not a number.
            is_clear = second[i] > limit and squares[i] <= far
            labels[first + i] = np.int32(closest[i]) if is_clear else UNCLEAR


@jit
def keep_two(
    scores: NDArray[Any],
    center: Any,
    best: NDArray[Any],
    second: NDArray[Any],
    closest: NDArray[Any],
) -> None:
    """Keep the lowest two scores of all samples, and the centre with the lowest.

    ``center`` is a number of their own type, or the loop is not vectorised.
    """
    for i in range(TOGETHER):
        score, lowest_yet, second_yet = scores[i], best[i], second[i]
        is_lower = score < lowest_yet
        # Not min and max: those that may meet infinities are not vectorised.
        other = lowest_yet if is_lower else score
        is_second = other < second_yet
        second[i] = other if is_second else second_yet
        closest[i] = center if is_lower else closest[i]
        best[i] = score if is_lower else lowest_yet


@jit(fastmath=REORDER)
def score_center(
    columns: NDArray[Any],
    points: NDArray[Any],
    levels: NDArray[Any],
    j: int,
    scores: NDArray[Any],
) -> None:
    """Set the scores of centre j, four features at a time."""
    n_features, level = columns.shape[0], levels[j]
    for i in range(TOGETHER):
        scores[i] = level
    t = 0
    while t + 4 <= n_features:
        a, b, c, d = points[t, j], points[t + 1, j], points[t + 2, j], points[t + 3, j]
        for i in range(TOGETHER):
            scores[i] += (columns[t, i] * a + columns[t + 1, i] * b) + (
                columns[t + 2, i] * c + columns[t + 3, i] * d
            )
        t += 4
    while t < n_features:
        a = points[t, j]
        for i in range(TOGETHER):
            scores[i] += columns[t, i] * a
        t += 1


@jit(fastmath=REORDER)
def set_squared_distances(
    X: Rows,
    scale: float,
    shift: NDArray[Any],
    centers: FloatArray,
    labels: NDArray[np.int32],
    squares: FloatArray,
) -> None:
    """Set ``squares`` to the squared distances of samples to their centres, in the frame."""
    for i in range(X.shape[0]):
        total = 0.0
        for t in range(X.shape[1]):
            difference = (X[i, t] * scale - shift[t]) - centers[labels[i], t]
            total += difference * difference
        squares[i] = total


@jit
def choose(
    rows: Rows | SparseRows,
    scores: NDArray[Any],
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
    scores : (m, k) array
        ‖c‖² − 2x·c.
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
        best = scores[i, 0]
        for j in range(k):
            best = min(best, scores[i, j])
        limit = best + (roundoff * extent * extent + underflow)
        closest = np.inf
        for j in range(k):
            if scores[i, j] <= limit:
                square = squared_distance(rows, i, centers, j)
                if square < closest:
                    closest = square
                    labels[i] = j


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


def kernel_calls_for(X: Any) -> list[Call]:
    """Return what predictions and scores of many samples call; only the type of ``X`` matters."""
    one, grid, labels = np.zeros(1), np.zeros((1, 1)), np.zeros(1, np.int32)
    if is_sparse(X):
        rows = encode_samples(X[:1], None, frame_for(X[:1], None), in_order=False).rows
        return [
            Call(label_clear, (grid, one, one, 0.0, 0.0, 0.0, labels), 0.4),
            Call(choose, (rows, grid, one, 0.0, 0.0, 0.0, grid, labels), 0.6),
        ]
    samples, sample = np.zeros((1, 1), X.dtype), np.zeros(1, X.dtype)
    encoded, bounds = (samples, X.dtype.type(1.0), sample), (0.0, 0.0, 0.0)
    narrow = *encoded, sample, samples, sample, *bounds, 0.0, samples, *[sample] * 5, labels
    return [
        *(
            Call(set_offsets, (*encoded, *memory), 0.3)
            for memory in {X.dtype: (sample, samples, sample), one.dtype: (one, grid, one)}.values()
        ),
        Call(label_narrow, narrow, 0.8),
        Call(label_clear, (samples, sample, sample, *bounds, labels), 0.4),
        Call(choose, (samples, samples, sample, *bounds, grid, labels), 0.4),
        Call(set_squared_distances, (*encoded, grid, labels, one), 0.3),
    ]
