"""The samples on the device, and how far half-precision scores can be from the true ones.

The centre nearest to x has the lowest score ‖c‖² − 2x·c. Scores are proposed by tensor cores, from
samples and centres split into half-precision terms: x = x₁ + x₂ + eₓ and c = c₁ + c₂ + e_c, where
x₂ = c₂ = 0 if one term is enough. The product that is computed, x₁·c₁ + x₂·c₁ + x₁·c₂, misses
x₂·c₂ + eₓ·c + (x₁ + x₂)·e_c, which Cauchy and Schwarz bound by lengths that are known. Products of
half-precision numbers are exact in single precision; their sum is rounded at every addition.

A sample whose two lowest scores differ by more than :func:`doubt` has found its nearest centre.
The others are decided in double precision.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from evomeans.engines.frame import Frame, column_scales, limb_bits
from evomeans.engines.workers import side_by_side

# Tensor cores add sixteen products at a time to a sum and cut what is below its last bit: at most
# 18·2⁻²³ of the largest partial sum for each sixteen. This is 1.8 times that.
ADDITION = 2.0**-22
# ‖c‖² and the score itself are rounded to single precision: at most 2⁻²² for both of two scores.
ROUNDING = 2.0**-21
# The last bits of a score may make room for the number of its centre: for c centres c·2⁻²³ each.
PACKING = 2.0**-22
# The bound is computed in single precision, too.
MARGIN = 1.0001
# Where an outlier sets the scale, scores of all others may vanish: relative errors say nothing
# then, and the number of a centre in the last bits is all that is left. Others are near 2²⁰.
FLOOR = 1e-30

# Positions in the arrays of lengths.
LENGTH, REST, SECOND = 0, 1, 2


def doubt(spans: Any, reach: Any, width: int, packed: int = 0) -> Any:
    """Return what a gap between two scores must exceed to be true.

    ``spans`` are the lengths ‖x₁ + x₂‖, ‖eₓ‖ and ‖x₂‖ of samples, ``reach`` the largest ‖c‖, ‖e_c‖
    and ‖c₂‖ of the centres they are compared with. A score adds up ``width`` products, and its last
    bits can tell ``packed`` centres apart.
    """
    farthest = reach[LENGTH]
    rounding = ROUNDING + packed * PACKING
    of_length = 4.0 * reach[REST] + (4.0 * width * ADDITION + 2.0 * rounding) * farthest
    return MARGIN * (
        spans[LENGTH] * of_length
        + spans[REST] * (4.0 * farthest)
        + spans[SECOND] * (4.0 * reach[SECOND])
        + rounding * farthest * farthest
        + FLOOR
    )


# Widths of planes are multiples of this, and numbers of rows of the other: no tile is cut.
WIDTH_STEP = 32
ROW_STEP = 256
# Up to this many features two terms per number make the planes no wider.
FEATURES_WORTH_TWO_TERMS = WIDTH_STEP // 3
# Which terms of its coordinates the planes of a sample, and of a centre, hold side by side.
SAMPLE_TERMS = {1: (0,), 2: (0, 1, 0)}
CENTER_TERMS = {1: (0,), 2: (0, 0, 1)}
# Half-precision numbers are scaled to below 2¹⁰: small ones keep their digits, and centres may lie
# outside of the data. What is beyond the largest of them is cut off, and the bounds know it.
TOP = 10
LARGEST_HALF = 65504.0
ROWS_AT_A_TIME = 2**16
# Bytes that are brought onto the device together, and how many times as many are on their way.
STAGED, MOST_STAGED = 2**24, 8


@dataclass(frozen=True)
class DeviceSamples:
    """Samples in the frame of an engine, as tensors."""

    rows: Any
    """Shape (n, d), float32 or float64."""
    weights: Any
    """Shape (n,), float64, or None for equal weights."""
    planes: Any
    """Shape (n′, D), float16: scaled distances from ``middle``, filled up with zeros."""
    spans: Any
    """Shape (3, n′), float32: what :mod:`~evomeans.engines.gpu.samples` wants to know of them."""
    middle: Any
    """Shape (d,), float64: the mean of the rows."""
    factor: float
    """The scale of the planes, a power of two."""
    terms: int
    """Half-precision numbers per coordinate, 1 or 2."""
    scales: Any
    """Shape (d + 1,), float64: of the fixed-point sums."""
    limb: float
    """The size of a limb of these sums."""

    @property
    def count(self) -> int:
        """Number of samples n."""
        return int(self.rows.shape[0])

    @property
    def n_features(self) -> int:
        """Number of features d."""
        return int(self.rows.shape[1])

    @property
    def width(self) -> int:
        """Number of columns D of the planes."""
        return int(self.planes.shape[1])

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        held = (self.rows, self.planes, self.spans, self.weights)
        return sum(tensor.nbytes for tensor in held if tensor is not None)


def upload_rows(X: NDArray[Any], device: Any, n_jobs: int = 1) -> Any:
    """Copy rows onto the device, as they are, with up to ``n_jobs`` threads."""
    rows = torch.empty(X.shape, dtype=getattr(torch, X.dtype.name), device=device)
    at_once = max(1, STAGED // (X.shape[1] * X.itemsize))
    n_threads = min(n_jobs, MOST_STAGED, -(-len(X) // at_once))
    # Memory that is not paged is read by the device itself, several times as fast. While it reads
    # one part, threads fill others.
    free: SimpleQueue[Any] = SimpleQueue()
    for _ in range(n_threads):
        shape = min(at_once, len(X)), X.shape[1]
        free.put(torch.empty(shape, dtype=rows.dtype, pin_memory=rows.is_cuda))

    def send(begin: int) -> None:
        part, staged = X[begin : begin + at_once], free.get()
        staged.numpy()[: len(part)] = part
        rows[begin : begin + len(part)].copy_(staged[: len(part)])
        free.put(staged)

    side_by_side(send, range(0, len(X), at_once), n_threads)
    return rows


def extremes(rows: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the lowest and the highest value of every column."""
    low, high = torch.aminmax(rows, dim=0)
    return low.cpu().numpy(), high.cpu().numpy()


def encode_rows(rows: Any, frame: Frame) -> None:
    """Bring rows on the device from data units into a frame, in the bits of ``frame.encode``."""
    scale, shift = frame.factors(np.dtype(str(rows.dtype).removeprefix("torch.")))
    rows.mul_(float(scale))
    if shift.any():
        rows.sub_(torch.from_numpy(shift).to(rows.device))


def hold_samples(
    rows: Any, sample_weight: NDArray[np.float64] | None, terms: int | None = None
) -> DeviceSamples:
    """Compute what refinements need of rows on the device that are in the frame.

    By default there are as many ``terms`` as are fastest for this number of features.
    """
    n_samples, n_features = rows.shape
    device = rows.device
    if terms is None:
        terms = 2 if n_features <= FEATURES_WORTH_TWO_TERMS else 1
    low, high = (values.astype(np.float64) for values in extremes(rows))
    bits = limb_bits(n_samples)
    weights = np.empty(0) if sample_weight is None else sample_weight
    middle = rows.mean(dim=0, dtype=torch.float64)
    center = middle.cpu().numpy()
    distance = max(float((high - center).max()), float((center - low).max()))
    factor = math.ldexp(1.0, min(2 * TOP, TOP - math.frexp(distance)[1]))
    planes, spans = _split_rows(rows, middle, factor, terms)
    return DeviceSamples(
        rows=rows,
        weights=None if sample_weight is None else torch.from_numpy(sample_weight).to(device),
        planes=planes,
        spans=spans,
        middle=middle,
        factor=factor,
        terms=terms,
        scales=torch.from_numpy(column_scales(np.maximum(high, -low), weights, bits)).to(device),
        limb=float(2**bits),
    )


def round_up(number: int, step: int) -> int:
    """Return the next multiple of ``step``."""
    return -(-number // step) * step


def split(values: Any, terms: int) -> tuple[list[Any], Any]:
    """Split float64 numbers into half-precision terms and what is left of them."""
    halves = []
    for _ in range(terms):
        halves.append(values.clamp(-LARGEST_HALF, LARGEST_HALF).half())
        values = values - halves[-1].double()
    return halves, values


def _split_rows(rows: Any, middle: Any, factor: float, terms: int) -> tuple[Any, Any]:
    n_samples, n_features = rows.shape
    height = round_up(n_samples, ROW_STEP)
    width = round_up(n_features * len(SAMPLE_TERMS[terms]), WIDTH_STEP)
    planes = torch.zeros((height, width), dtype=torch.float16, device=rows.device)
    spans = torch.zeros((3, height), dtype=torch.float32, device=rows.device)
    for begin in range(0, n_samples, ROWS_AT_A_TIME):
        part = slice(begin, min(begin + ROWS_AT_A_TIME, n_samples))
        halves, rest = split((rows[part].double() - middle) * factor, terms)
        for place, term in enumerate(SAMPLE_TERMS[terms]):
            planes[part, place * n_features : (place + 1) * n_features] = halves[term]
        spans[LENGTH, part] = sum(half.double() for half in halves).norm(dim=1).float()
        spans[REST, part] = rest.norm(dim=1).float()
        if terms == 2:
            spans[SECOND, part] = halves[1].double().norm(dim=1).float()
    return planes, spans
