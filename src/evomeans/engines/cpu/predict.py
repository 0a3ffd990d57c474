"""The closest centres by scores, and by direct distances where scores cannot decide."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.jit import REORDER, jit
from evomeans.compiled.ready import Call
from evomeans.engines.cpu.layout import Rows, SparseRows, remember_center, squared_distance
from evomeans.engines.cpu.samples import encode_samples, frame_for
from evomeans.engines.frame import is_sparse
from evomeans.engines.nearest import FAR, NARROW, TOGETHER, UNCLEAR, UNDERFLOW
from evomeans.typing import FloatArray

Lanes = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]
"""Working memory: the products of a centre far away, the best and the second best score, and whose
the best is, (TOGETHER,) each. Of rows of one array, the compiler could not tell that they do not
overlap, and would not vectorise the loops."""


@jit
def offset_of(x: Any, scale: Any, shift: Any, middle: Any) -> Any:
    """Return a coordinate in the frame − middle, subtracted in this order.

    The shift may be far larger than the result. With the middle added to it first, digits would be
    lost that no bound of the error of a score knows of.
    """
    return (x * scale - shift) - middle


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
        total = squares.dtype.type(0.0)
        for t in range(X.shape[1]):
            offset = offset_of(X[i, t], scale, shift[t], middle[t])
            offsets[i, t] = offset
            total += offset * offset
        squares[i] = total


@jit
def label_clear(
    products: NDArray[Any],
    lowered: NDArray[Any],
    doubts: NDArray[Any],
    squares: NDArray[Any],
    roundoff: float,
    lanes: Lanes,
    labels: NDArray[np.int32],
) -> None:
    """Set the labels of samples to the closest centres, or to UNCLEAR.

    * ``products`` (k, ≥ m): −2x·c; a multiple of TOGETHER columns, of which the first m count.
    * ``lowered`` (k,): ‖c‖² of the centres less their ``doubts``.
    * ``doubts``, ``squares`` and ``roundoff``: as in :func:`choose`. Samples with squares above FAR
      are UNCLEAR.
    * ``labels`` (m,), out
    """
    nothing, best, second, closest = lanes
    k, n_samples = products.shape[0], labels.shape[0]
    for first in range(0, n_samples, TOGETHER):
        for i in range(TOGETHER):
            closest[i] = 0.0
            nothing[i] = best[i] = second[i] = np.inf
        last = first + TOGETHER
        for j in range(0, k - 1, 2):
            one, other = products[j, first:last], products[j + 1, first:last]
            keep_two(one, other, lowered[j], lowered[j + 1], j, best, second, closest)
        if k % 2 == 1:
            one = products[k - 1, first:last]
            keep_two(one, nothing, lowered[k - 1], lowered[0], k - 1, best, second, closest)
        for i in range(min(TOGETHER, n_samples - first)):
            label = np.int32(closest[i])
            doubt = doubts[label] + roundoff * squares[first + i]
            limit = best[i] + (2 * doubt + UNDERFLOW)
            # Not the other way round: what has overflowed is not a number.
            is_clear = second[i] > limit and squares[first + i] <= FAR
            labels[first + i] = label if is_clear else UNCLEAR


@jit(fastmath=REORDER)
def label_narrow(
    X: Rows,
    scale: float,
    shift: NDArray[Any],
    middle: NDArray[Any],
    points: NDArray[Any],
    lowered: NDArray[Any],
    doubts: NDArray[Any],
    roundoff: float,
    columns: NDArray[Any],
    squares: NDArray[Any],
    products: NDArray[Any],
    lanes: Lanes,
    labels: NDArray[np.int32],
) -> None:
    """Set the labels of samples with few features to the closest centres, or to UNCLEAR.

    Matrix products of few features are slow. Here samples lie side by side, feature by feature, and
    one centre after the other is multiplied with all of them.

    The ``points`` (d, k) are −2c of the centres; ``columns`` (d, TOGETHER), ``squares`` (TOGETHER,)
    and ``products`` (k, TOGETHER) are working memory. The other arguments are those of
    :func:`set_offsets` and :func:`label_clear`.
    """
    n_features, k = points.shape
    for first in range(0, X.shape[0], TOGETHER):
        count = min(TOGETHER, X.shape[0] - first)
        for i in range(count):
            for t in range(n_features):
                columns[t, i] = offset_of(X[first + i, t], scale, shift[t], middle[t])
        for i in range(TOGETHER):
            squares[i] = 0.0
        for t in range(n_features):
            for i in range(TOGETHER):
                squares[i] += columns[t, i] * columns[t, i]
        for j in range(k):
            multiply(columns, points, j, products[j])
        some = labels[first : first + count]
        label_clear(products, lowered, doubts, squares, roundoff, lanes, some)


@jit
def keep_two(
    one: NDArray[Any],
    other: NDArray[Any],
    one_level: Any,
    other_level: Any,
    j: int,
    best: NDArray[Any],
    second: NDArray[Any],
    closest: NDArray[Any],
) -> None:
    """Keep the lowest two scores of all samples, and the centre with the lowest.

    ``one`` and ``other`` are products with the centres j and j + 1, to which their levels are
    added. Two centres at a time are three times as fast as one.
    """
    # Numbers of the type of the others, or the loop is not vectorised.
    one_center, other_center = closest.dtype.type(j), closest.dtype.type(j + 1)
    for i in range(TOGETHER):
        one_score, other_score = one[i] + one_level, other[i] + other_level
        best_yet, second_yet = best[i], second[i]
        # Not min and max: those that may meet infinities are not vectorised.
        is_other = other_score < one_score
        low = other_score if is_other else one_score
        high = one_score if is_other else other_score
        center = other_center if is_other else one_center
        is_lower = low < best_yet
        loser = best_yet if is_lower else low
        rival = high if is_lower else second_yet
        is_second = loser < rival
        second[i] = loser if is_second else rival
        closest[i] = center if is_lower else closest[i]
        best[i] = low if is_lower else best_yet


@jit(fastmath=REORDER)
def multiply(columns: NDArray[Any], points: NDArray[Any], j: int, products: NDArray[Any]) -> None:
    """Set the products of all samples with centre j, four features at a time."""
    n_features, a = columns.shape[0], points[0, j]
    for i in range(TOGETHER):
        products[i] = columns[0, i] * a
    t = 1
    while t + 4 <= n_features:
        a, b, c, d = points[t, j], points[t + 1, j], points[t + 2, j], points[t + 3, j]
        for i in range(TOGETHER):
            products[i] += (columns[t, i] * a + columns[t + 1, i] * b) + (
                columns[t + 2, i] * c + columns[t + 3, i] * d
            )
        t += 4
    while t < n_features:
        a = points[t, j]
        for i in range(TOGETHER):
            products[i] += columns[t, i] * a
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
    doubts: NDArray[Any],
    squares: NDArray[Any],
    roundoff: float,
    centers: FloatArray,
    labels: NDArray[np.int32],
) -> None:
    """Set the labels of samples to the closest centres; the lowest index wins a tie.

    With ``scores`` (m, k), ‖c‖² − 2x·c less the ``doubts`` (k,) of the centres, and ``squares``
    (m,), ‖x‖², a centre is not the closest if its score exceeds that of another one by more than
    twice the doubt of the other and roundoff · ‖x‖².
    """
    k = centers.shape[0]
    for j in range(k):
        remember_center(rows, centers, j)
    for i in range(labels.shape[0]):
        highest = np.inf
        for j in range(k):
            highest = min(highest, scores[i, j] + 2 * doubts[j])
        limit = highest + (2 * roundoff * squares[i] + UNDERFLOW)
        closest = np.inf
        for j in range(k):
            if scores[i, j] <= limit:
                square = squared_distance(rows, i, centers, j)
                if square < closest:
                    closest = square
                    labels[i] = j


def kernel_calls_for(X: Any, *, only_ties: bool = False) -> list[Call]:
    """Return what labels and scores of many samples such as ``X`` call, or those of a block."""
    one, grid, labels = np.zeros(1), np.zeros((1, 1)), np.zeros(1, np.int32)
    if is_sparse(X):
        rows = encode_samples(X[:1], None, frame_for(X[:1], None), in_order=False).rows
        ties = Call(choose, (rows, grid, one, one, 0.0, grid, labels), 0.6)
        clear = Call(label_clear, (grid, one, one, one, 0.0, (one,) * 4, labels), 0.4)
        return [ties] if only_ties else [ties, clear]
    samples, sample = np.zeros((1, 1), X.dtype), np.zeros(1, X.dtype)
    encoded, lanes = (samples, X.dtype.type(1.0), sample), (sample,) * 4
    ties = Call(choose, (samples, samples, sample, sample, 0.0, grid, labels), 0.4)
    if only_ties:
        return [ties]
    memory = samples, sample, samples, lanes, labels
    narrow = *encoded, sample, samples, sample, sample, 0.0, *memory
    return [
        ties,
        *(
            Call(set_offsets, (*encoded, *memory), 0.3)
            for memory in {X.dtype: (sample, samples, sample), one.dtype: (one, grid, one)}.values()
        ),
        *([Call(label_narrow, narrow, 0.8)] * (X.shape[1] <= NARROW)),
        Call(label_clear, (samples, *[sample] * 3, 0.0, lanes, labels), 0.4),
        Call(set_squared_distances, (*encoded, grid, labels, one), 0.3),
    ]
