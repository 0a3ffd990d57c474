"""From the data of the user to the arrays that kernels read, at once or when they are needed."""

from __future__ import annotations

import math
from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from evomeans.compiled.jit import jit
from evomeans.engines.cpu.layout import MORE, Rows, Samples, SparseRows, aligned, count_tiles
from evomeans.engines.cpu.order import (
    VALUES_AT_A_TIME,
    neighbour_order,
    ordered_rows,
    row_blocks,
)
from evomeans.engines.cpu.simd import WIDTH
from evomeans.engines.frame import Frame, column_scales, is_sparse, limb_bits
from evomeans.engines.protocol import Abandoned
from evomeans.engines.rules import MANY_ROWS, sits_on_centers
from evomeans.engines.workers import extremes, side_by_side
from evomeans.typing import FloatArray, SingleArray

FourArrays = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]
# Unit roundoff of float32.
SINGLE_UNIT = 2.0**-24
# Coordinates in a frame made for the samples are below one. In a given frame they may be larger, up
# to this limit, which FAR and ENDLESS in ``layout.py`` rely on.
LARGEST_IN_FRAME = 1e6
# Rows converted to float64 at a time.
ROWS_IN_DOUBLE = 4096
# Single moves pay in sparse samples if they store at least one feature in 16.
NEARLY_EMPTY = 16


def frame_for(X: Any, frame: Frame | None, n_jobs: int = 1) -> Frame:
    """Return the frame for these samples; sparse ones cannot be shifted."""
    if is_sparse(X):
        scaling = Frame.scaling(X.data, X.shape[1])
        return scaling if frame is None else Frame(scaling.shift, frame.exponent)
    return Frame.spanning(*extremes(X, n_jobs), X.shape[0]) if frame is None else frame


def encode_samples(
    X: Any,
    sample_weight: FloatArray | None,
    frame: Frame,
    *,
    in_order: bool,
    n_jobs: int = 1,
    check: Callable[[], None] = lambda: None,
    on_sphere: bool = False,
) -> Samples:
    """Transform samples into the frame, sort them into tiles, and compute what refinements need.

    If ``in_order``, neighbours are sorted together first. For ``check`` see
    :func:`~evomeans.engines.cpu.order.ordered_rows`. ``on_sphere`` says that samples and centres
    have length one.
    """
    n_samples, n_features = X.shape
    if in_order and not is_sparse(X) and n_samples >= MANY_ROWS:
        order, encoded = ordered_rows(X, frame, WIDTH, n_jobs, check)
        in_order = False
    else:
        check()
        encoded = scale_sparse(X, frame) if is_sparse(X) else frame.encode(X)
        in_turn = np.arange(n_samples, dtype=np.uint32)
        order = neighbour_order(encoded, WIDTH, n_jobs, check) if in_order else in_turn
    places = np.empty_like(order)
    places[order] = np.arange(n_samples, dtype=order.dtype)
    # A copy, because kernels would be compiled again for every other memory layout.
    weights = np.array([] if sample_weight is None else sample_weight[order], dtype=np.float64)
    bits = limb_bits(n_samples)
    check()
    rows: Any
    if is_sparse(X):
        rows = sparse_rows(sparse_part(encoded, order, check) if in_order else encoded, check)
        extents = np.zeros(n_features)
        for first in range(0, len(rows.values), VALUES_AT_A_TIME):
            check()
            part = slice(first, first + VALUES_AT_A_TIME)
            np.maximum.at(extents, rows.columns[part], np.abs(rows.values[part]))
        tiles, middles, squares, radii = sparse_tiles(rows)
        roundoff = 8 * SINGLE_UNIT
    else:
        rows = encoded[order] if in_order else encoded
        low, high = extremes(rows, n_jobs)
        extents = np.maximum(high, -low).astype(np.float64)
        del encoded
        tiles, middles, squares, radii = dense_tiles(rows, n_jobs, check)
        roundoff = (n_features + 8) * SINGLE_UNIT
    if not extents.max(initial=0.0) < LARGEST_IN_FRAME:
        raise ValueError("The samples lie far outside of the frame they are to be held in.")
    return Samples(
        *(rows, order, places, weights, tiles, middles, squares, radii),
        weight_unit=weight_unit(weights),
        roundoff=np.float32(roundoff),
        scales=column_scales(extents, weights, bits),
        limb=float(2**bits),
        on_sphere=float(on_sphere),
    )


def weight_unit(weights: FloatArray) -> float:
    """Return the power of two that brings the heaviest weight near one."""
    if not len(weights):
        return 1.0
    return math.ldexp(1.0, min(-math.frexp(float(weights.max()))[1], 1023))


def dense_tiles(
    rows: NDArray[Any], n_jobs: int = 1, check: Callable[[], None] = lambda: None
) -> FourArrays:
    """Return tiles, middles, squares and radii of dense rows, see Samples."""
    n_samples, n_features = rows.shape
    n_tiles = count_tiles(n_samples)
    tiles = aligned((n_tiles * n_features, WIDTH), np.float32)
    middles = np.empty((n_tiles, n_features))
    squares = np.empty((n_tiles, WIDTH), np.float32)
    radii = np.empty(n_tiles, np.float32)
    at_once = max(1, VALUES_AT_A_TIME // (WIDTH * max(1, n_features)))

    def fill(first: int) -> None:
        check()
        part = slice(first, last := first + at_once)
        own = tiles[first * n_features : last * n_features]
        inside = rows[first * WIDTH : last * WIDTH]
        fill_tiles(inside, own, middles[part], squares[part], radii[part])

    side_by_side(fill, range(0, n_tiles, at_once), n_jobs)
    return tiles, middles, squares, radii


@jit
def fill_tiles(
    rows: Rows, tiles: SingleArray, middles: FloatArray, squares: SingleArray, radii: SingleArray
) -> None:
    """Set ``middles`` to the mean of each tile, and the others relative to it, see Samples."""
    n_samples, n_features = rows.shape
    for tile in range(radii.shape[0]):
        first = tile * WIDTH
        count = min(WIDTH, n_samples - first)
        for t in range(n_features):
            total = 0.0
            for lane in range(count):
                total += rows[first + lane, t]
            middles[tile, t] = total / count
        radius = 0.0
        for lane in range(WIDTH):
            i = min(first + lane, n_samples - 1)
            square = 0.0
            for t in range(n_features):
                offset = rows[i, t] - middles[tile, t]
                tiles[tile * n_features + t, lane] = offset
                square += offset * offset
            squares[tile, lane] = square
            radius = max(radius, square)
        radii[tile] = np.float32(np.sqrt(radius)) * MORE


def sparse_tiles(rows: SparseRows) -> FourArrays:
    """Return tiles and middles, both empty, squares and radii of sparse rows, see Samples."""
    n_samples = len(rows.squares)
    n_tiles = count_tiles(n_samples)
    inside = np.minimum(np.arange(n_tiles * WIDTH), n_samples - 1)
    squares = rows.squares[inside].reshape(n_tiles, WIDTH)
    radii = np.sqrt(squares.max(axis=1)) * MORE
    no_tiles, no_middles = np.zeros((0, WIDTH), np.float32), np.zeros((0, 0))
    return no_tiles, no_middles, squares.astype(np.float32), radii.astype(np.float32)


def scale_sparse(X: Any, frame: Frame) -> Any:
    """Transform a CSR matrix with sorted indices into a frame without a shift."""
    values = np.ldexp(X.data, frame.exponent)
    return csr_array((values, X.indices, X.indptr), shape=X.shape)


def sparse_part(X: Any, chosen: NDArray[Any], check: Callable[[], None]) -> Any:
    """Return some rows of a CSR matrix, as ``X[chosen]`` does at once."""
    starts = np.zeros(len(chosen) + 1, X.indptr.dtype)
    np.cumsum(np.diff(X.indptr)[chosen], out=starts[1:])
    values, columns = np.empty(starts[-1], X.dtype), np.empty(starts[-1], X.indices.dtype)
    for part in row_blocks(starts):
        check()
        found = X[chosen[part]]
        entries = slice(starts[part.start], starts[part.stop])
        values[entries], columns[entries] = found.data, found.indices
    return csr_array((values, columns, starts), shape=(len(chosen), X.shape[1]))


def sparse_rows(X: Any, check: Callable[[], None] = lambda: None) -> SparseRows:
    """Convert a scaled CSR matrix for the kernels."""
    squares = np.empty(X.shape[0])
    for part in row_blocks(X.indptr):
        check()
        starts = X.indptr[part.start : part.stop + 1]
        members = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        values = X.data[starts[0] : starts[-1]].astype(np.float64)
        squares[part] = np.bincount(members, values * values, len(starts) - 1)
    # The arrays for the centres are allocated when their number is known.
    none = np.zeros(0), np.zeros((0, 0))
    return SparseRows(X.indptr.copy(), X.indices.copy(), X.data, squares, *none)


def sit_on_centers(samples: Samples, nearby: FloatArray) -> bool:
    """Whether all samples with weight equal their centres; ``nearby`` (n,) is as in Scratch."""
    rows = samples.rows
    if isinstance(rows, SparseRows):
        norms = rows.squares
    else:
        norms = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    if len(samples.weights):
        counted = np.flatnonzero(samples.weights)
        nearby, norms = nearby[counted] / samples.weights[counted], norms[counted]
    return sits_on_centers(nearby, norms)


def dense_rows(samples: Samples, chosen: NDArray[Any], n_features: int) -> FloatArray:
    """Return a few of the user's rows as a dense array."""
    rows, chosen = samples.rows, samples.places[chosen]
    if not isinstance(rows, SparseRows):
        return np.asarray(rows[chosen], dtype=np.float64)
    result = np.zeros((len(chosen), n_features))
    for place, i in enumerate(chosen):
        stored = slice(rows.starts[i], rows.starts[i + 1])
        result[place, rows.columns[stored]] = rows.values[stored]
    return result


def with_room(samples: Samples, k: int, n_features: int) -> Samples:
    """Give sparse rows room for what distances to ``k`` centres need; dense rows need none."""
    if not isinstance(samples.rows, SparseRows):
        return samples
    workspace = {"center_squares": np.zeros(k), "by_feature": np.zeros((n_features, k))}
    return samples._replace(rows=samples.rows._replace(**workspace))


def can_move_singles(X: Any) -> bool:
    """Whether single moves are fast enough: two dense centres follow every sample that moves."""
    return not is_sparse(X) or NEARLY_EMPTY * X.nnz >= X.shape[0] * X.shape[1]


class DeferredSamples:
    """Samples that are prepared when they are first needed. Workers share one of these.

    ``prepare`` takes ``in_order`` and ``check``, as :func:`encode_samples` does. ``insists`` says
    whether to put the samples into order even after a preparation that was ended.
    """

    def __init__(self, prepare: Callable[..., Samples], *, in_order: bool, insists: bool) -> None:
        self._prepare = prepare
        self._in_order = in_order
        self._insists = insists
        self._lock = Lock()
        self.samples: Samples | None = None
        """None until they are prepared."""

    def get(self, check: Callable[[], None]) -> Samples:
        """Return the samples; prepare them if that is not done."""
        with self._lock:
            if self.samples is None:
                try:
                    self.samples = self._prepare(check=check, in_order=self._in_order)
                except Abandoned:
                    self._in_order = self._in_order and self._insists
                    raise
            return self.samples
