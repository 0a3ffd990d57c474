"""Comparing the samples of a tile with a few centres, 64 samples at a time.

With x and c relative to the middle of the tile, ‖x − c‖² = ‖x‖² + (‖c‖² − 2x·c). The term in
brackets is the *score* of the centre: the lowest score wins, and it costs one multiplication per
feature.

Scores are computed in single precision. The middle is close to the samples, so x and c are not much
longer than the distances that are compared. The error of a score, together with that of ‖x‖² and of
their sum, is below

    roundoff · (‖c‖ + radius)²  +  UNDERFLOW

The section "The error of a score" of docs/background/cpu-engine.md has the proof, and
tests/engines/cpu/test_gaps.py compares it with the errors of actual scores. So single precision
fails only where two centres are practically at the same distance.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.jit import FINITE, jit
from evomeans.engines.cpu.lanes import WIDTH, load, multiply_add, repeat, store
from evomeans.engines.cpu.layout import FloatArray, Samples, Scratch, SingleArray
from evomeans.engines.cpu.rows import Rows, SparseRows, by_row_type

# Squares of single-precision numbers below this may have lost digits to underflow, or all of them.
UNDERFLOW = np.float32(1e-36)
# A sparse row is multiplied with the chosen centres only if they are fewer than one in FEW of all.
FEW = 4

# ---- where a centre is, relative to a tile -------------------------------------------------------


def _locate_center_dense(
    rows: Rows,
    samples: Samples,
    tile: int,
    centers: FloatArray,
    j: int,
    a: int,
    offsets: SingleArray,
    away: SingleArray,
) -> None:
    """Set ``offsets[a]`` to −2 (c_j − middle), and ``away[a]`` to ‖c_j − middle‖²."""
    middles = samples.middles
    total = 0.0
    for t in range(rows.shape[1]):
        offset = centers[j, t] - middles[tile, t]
        offsets[a, t] = -2.0 * offset
        total += offset * offset
    away[a] = total


def _locate_center_sparse(
    rows: SparseRows,
    samples: Samples,
    tile: int,
    centers: FloatArray,
    j: int,
    a: int,
    offsets: SingleArray,
    away: SingleArray,
) -> None:
    away[a] = rows.center_squares[j]


locate_center = by_row_type(
    dense=_locate_center_dense, sparse=_locate_center_sparse, fastmath=FINITE
)


@jit
def score_error(samples: Samples, tile: int, farthest: np.float32) -> np.float32:
    """Return an upper bound of the error of scores.

    ``farthest`` is the largest ``away`` of the centres.
    """
    extent = np.sqrt(farthest) + samples.radii[tile]
    return samples.roundoff * extent * extent + UNDERFLOW


# ---- scores --------------------------------------------------------------------------------------


def _score_dense(
    rows: Rows,
    samples: Samples,
    tile: int,
    chosen: NDArray[np.int32],
    count: int,
    scratch: Scratch,
    thread: int,
) -> None:
    """Set ``scratch.scores`` for the first ``count`` of the chosen centres and all 64 samples.

    :func:`locate_center` has set the offsets of these centres.
    """
    offsets, away = scratch.offsets[thread], scratch.away[thread]
    scores = scratch.scores[thread]
    n_features = rows.shape[1]
    first = tile * n_features
    # Two centres at a time: each feature that is loaded is used twice.
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
    rows: SparseRows,
    samples: Samples,
    tile: int,
    chosen: NDArray[np.int32],
    count: int,
    scratch: Scratch,
    thread: int,
) -> None:
    k, last = rows.center_squares.shape[0], rows.squares.shape[0] - 1
    products, scores = scratch.products[thread], scratch.scores[thread]
    # Coordinates that are neighbours in memory are cheap: take all centres, unless few are wanted.
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
def multiply_few(
    rows: SparseRows, i: int, chosen: NDArray[np.int32], count: int, products: FloatArray
) -> None:
    """Set ``products[j]`` to the scalar product of a sparse row with each of the chosen centres."""
    for a in range(count):
        products[chosen[a]] = 0.0
    for p in range(rows.starts[i], rows.starts[i + 1]):
        for a in range(count):
            products[chosen[a]] += rows.values[p] * rows.by_feature[rows.columns[p], chosen[a]]


@jit(fastmath=FINITE)
def multiply_all(rows: SparseRows, i: int, k: int, products: FloatArray) -> None:
    """Set ``products`` to the scalar products of a sparse row with all centres."""
    for j in range(k):
        products[j] = 0.0
    for p in range(rows.starts[i], rows.starts[i + 1]):
        value, column = rows.values[p], rows.columns[p]
        for j in range(k):
            products[j] += value * rows.by_feature[column, j]


score = by_row_type(dense=_score_dense, sparse=_score_sparse, fastmath=FINITE)
