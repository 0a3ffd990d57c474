"""Values that engines can compute with, and samples that would be lost next to outliers.

Engines sum up a column in steps of 2⁻ᴿ of its largest value (:mod:`~evomeans.engines.frame`). R is
82 for a million samples, and larger for fewer. A sample is lost if a step is not small compared
with its largest coordinate: next to 1e50, one of size 1. In a cluster with larger samples this does
no harm. The centre of a cluster of lost samples is wrong. That is refused if a third or more of all
samples are lost; fewer are taken for noise next to the samples that matter, with a centre that is
nearly zero.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evomeans.engines.frame import SMALLEST_SQUARE, Frame, is_sparse, limb_bits
from evomeans.engines.rules import LARGEST_VALUE

# Sums of weights, of models whose kernels square them.
LIGHTEST, HEAVIEST = 1e-100, 1e100
OVERFLOW = f"sums overflow beyond {LARGEST_VALUE:.0e}. Divide X by a constant first."


def check_total_weight(total: float) -> None:
    """Reject weights by which no sample counts, or that cannot be summed."""
    if total == 0.0:
        raise ValueError("sample_weight must not be all zero: no sample would count.")
    if not np.isfinite(total):
        raise ValueError("sample_weight sums to infinity; divide the weights by a constant.")


def check_moderate_weight(total: float) -> None:
    """Reject weights whose squares, or products with squared distances, are not all numbers."""
    if not LIGHTEST <= total <= HEAVIEST:
        raise ValueError(
            f"sample_weight sums to {total:.3g}; this model needs a sum between {LIGHTEST:.0e} and "
            f"{HEAVIEST:.0e}. Multiply the weights by a constant."
        )


def reaching(frame: Frame, low: NDArray[Any], high: NDArray[Any]) -> Frame:
    """Return a frame for samples between these, column by column.

    It is the given one, unless they are so far outside that their squares could overflow; then it
    has another scale.
    """
    # An infinite extent is refused below.
    with np.errstate(over="ignore"):
        extent = max((high - frame.shift).max(), (frame.shift - low).max())
    if extent * frame.scale <= 1.0:
        return frame
    return replace(frame, exponent=Frame.scaling(np.array([extent]), 0).exponent)


# Means then have errors of at most 2⁻²⁰ of the size of their samples.
SPARE_BITS = 20
DIGITS = 53
BLOCK = 2**20
# Columns that mostly suffice to see that samples are not lost.
FEW_COLUMNS = 16


class Extremes(NamedTuple):
    """What decides about lost samples: ends of columns, in data units, and of nonzero weights."""

    low: NDArray[Any]
    high: NDArray[Any]
    lightest: float
    heaviest: float
    n_samples: int

    def lost_and_resolved(
        self, X: Any, sample_weight: NDArray[Any] | None, labels: Any, k: int, frame: Frame
    ) -> NDArray[np.int64]:
        """Count the lost samples of each cluster and the others, shape (2, k)."""
        weights = np.ones(X.shape[0]) if sample_weight is None else sample_weight
        # In double precision, in which no sample underflows.
        Z: Any = X.astype(np.float64)
        Z = Z * frame.scale if is_sparse(Z) else frame.encode(Z)
        # Of every row the largest absolute value, and the largest extent of the columns it needs.
        sizes = _dense(abs(Z).max(axis=1))
        ends = np.stack([self.low, self.high]).astype(np.float64)
        extents, needed = np.abs(frame.encode(ends)).max(axis=0), Z != 0.0
        used = needed.multiply(extents) if is_sparse(Z) else np.where(needed, extents, 0.0)
        reach = _dense(used.max(axis=1))
        # Squares of smaller numbers are zero, and so might be the numbers.
        sizes[sizes <= math.sqrt(SMALLEST_SQUARE) * frame.scale] = 0.0
        with np.errstate(over="ignore"):
            ratios = np.divide(reach, sizes, out=np.ones_like(reach), where=sizes > 0.0)
            lost = resolved_size(self.n_samples) * np.maximum(ratios, 1.0) > weights / self.heaviest
        counted = weights > 0.0
        chosen = (np.asarray(labels)[counted & which] for which in (lost, ~lost))
        return np.stack([np.bincount(own, minlength=k) for own in chosen])

    def refuse_lost_clusters(self, counts: NDArray[np.int64]) -> None:
        """Raise an error if many samples are lost, and a cluster has no others."""
        (lost, resolved), limit = counts, resolved_size(self.n_samples)
        if 2 * lost.sum() < resolved.sum() or not np.any((lost > 0) & (resolved == 0)):
            return
        if limit > self.lightest / self.heaviest:
            problem = (
                f"sample_weight ranges from {self.lightest:.3g} to {self.heaviest:.3g}. Next to "
                f"such heavy samples, weights below {limit * self.heaviest:.1e} are lost when "
                "clusters are summed up. Set them to 0"
            )
        else:
            sizes = np.maximum(np.abs(self.low), np.abs(self.high))
            column = int(np.argmax(sizes))
            problem = (
                f"Column {column} of X has values up to {sizes[column]:.3g}. Next to such "
                f"outliers, samples smaller than {limit * sizes[column]:.1e} are lost when "
                "clusters are summed up. Remove the outliers, transform the column"
            )
        raise ValueError(
            f"{problem}, or choose engine='reference', which is exact but slow and takes dense "
            "arrays only."
        )


def resolved_size(n_samples: int) -> float:
    """Return the smallest size of resolved samples, relative to the extent of a column."""
    bits = limb_bits(n_samples)
    return math.ldexp(1.0, SPARE_BITS - bits - min(bits, DIGITS))


def may_lose_samples(
    frame: Frame, finest: float, lightest: float, heaviest: float, n_samples: int
) -> bool:
    """Whether it cannot be ruled out that samples are lost.

    ``finest`` is the smallest absolute value but zero, in data units.
    """
    # Values that are shifted differ by a unit in the last place at least. No extent is above one.
    size = min(finest, smallest(frame.shift) * 2.0**-DIGITS) * frame.scale
    return not resolved_size(n_samples) * max(1.0, size) < lightest / heaviest * size


def check_resolution(
    X: Any, sample_weight: NDArray[np.float64] | None, frame: Frame, labels: Any, k: int
) -> None:
    """Refuse a clustering of samples in memory if many samples and a whole cluster are lost."""
    weights = np.ones(1) if sample_weight is None else sample_weight
    finest = smallest(X.data if is_sparse(X) else X)
    lightest, heaviest = smallest(weights), float(weights.max())
    if may_lose_samples(frame, finest, lightest, heaviest, X.shape[0]):
        if not is_sparse(X) and most_are_resolved(X, sample_weight, frame, heaviest):
            return
        ends = _dense(X.min(axis=0)), _dense(X.max(axis=0))
        extremes = Extremes(*ends, lightest, heaviest, X.shape[0])
        step = X.shape[0] if is_sparse(X) else max(1, BLOCK // X.shape[1])
        counts = np.zeros((2, k), np.int64)
        for begin in range(0, X.shape[0], step):
            part = slice(begin, begin + step)
            own = None if sample_weight is None else sample_weight[part]
            counts += extremes.lost_and_resolved(X[part], own, labels[part], k, frame)
        extremes.refuse_lost_clusters(counts)


def most_are_resolved(
    X: NDArray[Any], sample_weight: NDArray[np.float64] | None, frame: Frame, heaviest: float
) -> bool:
    """Whether a few columns show that more than two thirds of the samples are not lost.

    A sample is at least as large as any of its values, and no extent is above one.
    """
    some = slice(None, None, max(1, X.shape[1] // FEW_COLUMNS))
    part = Frame(frame.shift[some], frame.exponent)
    sizes = np.abs(part.encode(X[:, some].astype(np.float64))).max(axis=1)
    weights = np.ones(1) if sample_weight is None else sample_weight
    is_large = sizes > math.sqrt(SMALLEST_SQUARE) * frame.scale
    is_resolved = is_large & (resolved_size(X.shape[0]) <= weights / heaviest * sizes)
    counted = np.broadcast_to(weights > 0.0, len(sizes))
    return bool(3 * np.count_nonzero(is_resolved & counted) > 2 * np.count_nonzero(counted))


def smallest(values: NDArray[Any]) -> float:
    """Return the smallest absolute value that is not zero; infinity if there is none."""
    # Imported late: importing the estimator loads no compiler.
    from evomeans.kernels.vectors import NO_SIZE, smallest_size

    least = smallest_size(values.reshape(-1))
    return least if least < NO_SIZE else math.inf


def _dense(values: Any) -> NDArray[Any]:
    """Return what a reduction of dense or sparse samples gives as an array of one dimension."""
    return np.ravel(values.toarray() if is_sparse(values) else values)
