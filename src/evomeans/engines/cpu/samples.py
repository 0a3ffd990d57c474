"""From what the user gave to what the kernels read."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.engines.cpu.layout import Samples
from evomeans.engines.cpu.rows import SparseRows
from evomeans.engines.cpu.sums import column_scales, limb_bits
from evomeans.engines.frame import Frame, is_sparse

UNIT = 2.0**-24
BLOCK = 4096


def frame_for(X: Any, frame: Frame | None) -> Frame:
    """Return the frame to hold these samples in; sparse ones cannot be shifted."""
    if is_sparse(X):
        scaling = Frame.scaling(X.data, X.shape[1])
        return scaling if frame is None else Frame(scaling.shift, frame.exponent)
    return Frame.around(X) if frame is None else frame


def encode_samples(X: Any, sample_weight: NDArray[np.float64] | None, frame: Frame) -> Samples:
    """Bring samples into the frame and compute what all refinements need of them."""
    n_samples, n_features = X.shape
    # A copy: kernels would be compiled once more for every other kind of array.
    weights = np.array([] if sample_weight is None else sample_weight, dtype=np.float64)
    bits = limb_bits(n_samples)
    rows: Any
    if is_sparse(X):
        rows = encode_sparse(X, frame)
        extents = np.zeros(n_features)
        np.maximum.at(extents, rows.columns, np.abs(rows.values))
        norms, roundoff = np.zeros(n_samples, np.float32), np.float32(8 * UNIT)
    else:
        rows = frame.encode(X)
        extents = np.maximum(rows.max(axis=0), -rows.min(axis=0)).astype(np.float64)
        norms = (np.sqrt(squared_norms(rows)) * (1 + 1e-6)).astype(np.float32)
        roundoff = np.float32((n_features + 8) * UNIT)
    scales = column_scales(extents, weights, bits)
    return Samples(rows, norms, roundoff, weights, scales, float(2**bits))


def encode_sparse(X: Any, frame: Frame) -> SparseRows:
    """Bring a CSR matrix with sorted indices into a frame that has no shift."""
    values = np.ldexp(X.data, frame.exponent)
    squares = np.zeros(X.shape[0])
    np.add.at(
        squares, np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), values.astype(float) ** 2
    )
    # The room for the squared norms of the centres is made when their number is known.
    return SparseRows(X.indptr.copy(), X.indices.copy(), values, squares, np.zeros(0))


def squared_norms(rows: NDArray[Any]) -> NDArray[np.float64]:
    """‖x‖² of dense rows, without a float64 copy of them all."""
    result = np.empty(len(rows))
    for begin in range(0, len(rows), BLOCK):
        block = rows[begin : begin + BLOCK].astype(np.float64)
        result[begin : begin + BLOCK] = np.einsum("ij,ij->i", block, block)
    return result


def dense_rows(samples: Samples, chosen: NDArray[np.intp], n_features: int) -> NDArray[np.float64]:
    """Return a few rows as a dense array."""
    rows = samples.rows
    if not isinstance(rows, SparseRows):
        return np.asarray(rows[chosen], dtype=np.float64)
    result = np.zeros((len(chosen), n_features))
    for place, i in enumerate(chosen):
        stored = slice(rows.starts[i], rows.starts[i + 1])
        result[place, rows.columns[stored]] = rows.values[stored]
    return result
