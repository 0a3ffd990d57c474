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

from evomeans.engines.cpu.jit import FINITE
from evomeans.engines.cpu.lanes import WIDTH, load, multiply_add, repeat, store
from evomeans.engines.cpu.rows import by_row_type, product

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
    rows: Any,
    samples: Any,
    tile: int,
    centers: Any,
    chosen: Any,
    count: int,
    offsets: Any,
    away: Any,
    scores: Any,
) -> None:
    """Scores of the first ``count`` centres in ``chosen`` for all samples of a tile."""
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
    rows: Any,
    samples: Any,
    tile: int,
    centers: Any,
    chosen: Any,
    count: int,
    offsets: Any,
    away: Any,
    scores: Any,
) -> None:
    last = rows.squares.shape[0] - 1
    for a in range(count):
        square = rows.center_squares[chosen[a]]
        for lane in range(WIDTH):
            i = min(tile * WIDTH + lane, last)
            scores[a, lane] = square - 2.0 * product(rows, i, centers, chosen[a])


score = by_row_type(dense=_score_dense, sparse=_score_sparse, fastmath=FINITE)
