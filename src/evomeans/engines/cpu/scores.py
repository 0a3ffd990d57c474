"""Comparing the samples of a tile with a few centres, 64 samples at a time.

With x and c relative to the middle of the tile, ‖x − c‖² = ‖x‖² + (‖c‖² − 2x·c). What stands in
brackets is the *score* of the centre: the lowest wins, and it costs one multiplication per feature.
Scores are computed in single precision. The middle being close to the samples, x and c are no
longer than the distances in question, and the error of a score stays below

    roundoff · (‖c‖ + radius)²

so that single precision only fails to tell centres apart that are practically equally far.
"""

from __future__ import annotations

from typing import Any

from evomeans.compiled.jit import FINITE, jit
from evomeans.engines.cpu.lanes import WIDTH, load, multiply_add, repeat, store
from evomeans.engines.cpu.rows import by_row_type

# Sparse rows are multiplied with chosen centres only if these are fewer than one in so many.
FEW = 4

# ---- where a centre is, seen from a tile ---------------------------------------------------------


def _approach_dense(
    rows: Any, samples: Any, tile: int, centers: Any, j: int, a: int, offsets: Any, away: Any
) -> None:
    """Set ``offsets[a]`` and ``away[a]`` for centre ``j``, see Scratch."""
    middles = samples.middles
    total = 0.0
    for t in range(rows.shape[1]):
        offset = centers[j, t] - middles[tile, t]
        offsets[a, t] = -2.0 * offset
        total += offset * offset
    away[a] = total


def _approach_sparse(
    rows: Any, samples: Any, tile: int, centers: Any, j: int, a: int, offsets: Any, away: Any
) -> None:
    away[a] = rows.center_squares[j]


approach = by_row_type(dense=_approach_dense, sparse=_approach_sparse, fastmath=FINITE)


# ---- scores --------------------------------------------------------------------------------------


def _score_dense(
    rows: Any, samples: Any, tile: int, chosen: Any, count: int, scratch: Any, thread: int
) -> None:
    """Scores of the first ``count`` centres in ``chosen`` for all samples of a tile."""
    offsets, away = scratch.offsets[thread], scratch.away[thread]
    scores = scratch.scores[thread]
    n_features = rows.shape[1]
    first = tile * n_features
    # Two centres at a time: twice the work for each feature that is loaded.
    for a in range(0, count - 1, 2):
        one, other = repeat(away[a]), repeat(away[a + 1])
        for t in range(n_features):
            feature = load(samples.tiles, first + t)
            one = multiply_add(feature, repeat(offsets[a, t]), one)
            other = multiply_add(feature, repeat(offsets[a + 1, t]), other)
        store(scores, a, one)
        store(scores, a + 1, other)
    if count % 2 == 1:
        one = repeat(away[count - 1])
        for t in range(n_features):
            feature = load(samples.tiles, first + t)
            one = multiply_add(feature, repeat(offsets[count - 1, t]), one)
        store(scores, count - 1, one)


def _score_sparse(
    rows: Any, samples: Any, tile: int, chosen: Any, count: int, scratch: Any, thread: int
) -> None:
    k, last = rows.center_squares.shape[0], rows.squares.shape[0] - 1
    products, scores = scratch.products[thread], scratch.scores[thread]
    # Coordinates of neighbours in memory cost little: all of them, unless few are wanted.
    wants_few = FEW * count < k
    for lane in range(WIDTH):
        i = min(tile * WIDTH + lane, last)
        if wants_few:
            multiply_few(rows, i, chosen, count, products)
        else:
            multiply_all(rows, i, k, products)
        for a in range(count):
            j = chosen[a]
            scores[a, lane] = rows.center_squares[j] - 2.0 * products[j]


@jit
def multiply_few(rows: Any, i: int, chosen: Any, count: int, products: Any) -> None:
    """Set ``products[j]`` to the scalar product of a sparse row with each of the chosen centres."""
    for a in range(count):
        products[chosen[a]] = 0.0
    for p in range(rows.starts[i], rows.starts[i + 1]):
        for a in range(count):
            products[chosen[a]] += rows.values[p] * rows.by_feature[rows.columns[p], chosen[a]]


@jit(fastmath=FINITE)
def multiply_all(rows: Any, i: int, k: int, products: Any) -> None:
    """Set ``products`` to the scalar products of a sparse row with all centres."""
    for j in range(k):
        products[j] = 0.0
    for p in range(rows.starts[i], rows.starts[i + 1]):
        value, column = rows.values[p], rows.columns[p]
        for j in range(k):
            products[j] += value * rows.by_feature[column, j]


score = by_row_type(dense=_score_dense, sparse=_score_sparse, fastmath=FINITE)
