"""The coordinates in which engines compute, and the fixed-point numbers of their sums.

The terms wᵢxᵢ of clusters are rounded once, to an integer of two limbs, and added and taken away
exactly, in any order. A sample is *lost* if the unit of these integers is not small compared with
its largest coordinate, as for size 1 next to 1e50. A clustering is refused if a third or more of
all samples are lost and a cluster has no others. Fewer are taken for noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

# Sums over 1e7 samples of this size stay finite.
LARGEST_VALUE = 1e300
# Sums of squared distances have to stay within these to be float64 numbers in data units.
LARGEST_SUM = 1e306
SMALLEST_SQUARE = 1e-306
# Coordinates of centres in a frame, at most: no sample is nearest to a centre a million extents
# away, wherever exactly it is. Kernels rely on it, since squares must not overflow.
FARTHEST_CENTER = 1e6


@dataclass(frozen=True)
class Frame:
    """An affine change of coordinates, ``z = (x - shift) * 2**exponent``.

    Shifting removes offsets that would cancel digits (1e8 + noise), scaling keeps squares away from
    overflow and underflow and makes float32 bounds safe. Both are exact.
    """

    shift: NDArray[np.float64]
    exponent: int

    @classmethod
    def around(cls, X: NDArray[Any]) -> Frame:
        """Build a frame that holds the dense samples ``X`` without losing a digit."""
        return cls.spanning(X.min(axis=0), X.max(axis=0), X.shape[0])

    @classmethod
    def spanning(cls, lowest: NDArray[Any], highest: NDArray[Any], n_samples: int) -> Frame:
        """Build a frame for samples between these, column by column, without losing a digit.

        A column is shifted, to its smallest value, only if its offset is large beside its extent.
        All its values are then within a factor of two of each other and their differences exact;
        anywhere else a shift could cost the digits of small values next to an outlier.
        """
        low, high = lowest.astype(np.float64), highest.astype(np.float64)
        # Halved: the difference of the two ends of the range of float64 is none.
        offset_is_large = np.minimum(np.abs(low), np.abs(high)) / 8.0 > high / 2.0 - low / 2.0
        shift = np.where(offset_is_large, low, 0.0)
        extent = float(np.max(np.maximum(high - shift, shift - low), initial=0.0))
        return cls(shift, _exponent(extent, n_samples * len(low), lowest.dtype))

    @classmethod
    def scaling(cls, values: NDArray[Any], n_features: int) -> Frame:
        """Build a frame without a shift, for sparse samples with these stored ``values``."""
        extent = float(np.max(np.abs(values), initial=0.0))
        return cls(np.zeros(n_features), _exponent(extent, values.size, values.dtype))

    @property
    def scale(self) -> float:
        """The factor from data to frame."""
        return math.ldexp(1.0, self.exponent)

    def factors(self, dtype: np.dtype[Any]) -> tuple[Any, NDArray[Any]]:
        """Return what :meth:`encode` multiplies samples of a type by, and then takes away."""
        return dtype.type(self.scale), np.ldexp(self.shift, self.exponent).astype(dtype)

    def encode(self, X: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Bring rows in data units into the frame, in C order and in their own precision."""
        # Scaled first: the difference of two extreme float32 numbers is none.
        scale, shift = self.factors(X.dtype)
        Z: NDArray[Any] = np.multiply(X, scale, order="C", out=out)
        if shift.any():
            Z -= shift
        return Z

    def decode(self, centers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Bring centres from the frame back into data units."""
        return np.ldexp(centers, -self.exponent) + self.shift

    def inertia_in_data_units(self, inertia: float) -> float:
        """Convert a sum of squared distances."""
        try:
            return math.ldexp(inertia, -2 * self.exponent)
        except OverflowError:
            raise ValueError(
                "Weighted sums of squared distances overflow. Divide X or sample_weight by a "
                "constant first."
            ) from None

    def inertia_in_frame(self, inertia: float) -> float:
        """Convert a sum of squared distances from data units."""
        return math.ldexp(inertia, 2 * self.exponent)


def is_sparse(X: Any) -> bool:
    """Whether ``X`` is a sparse matrix or array; a plain bool, so that type checkers forget it."""
    return bool(issparse(X))


def _exponent(extent: float, n_values: int, dtype: np.dtype[Any]) -> int:
    largest_extent = math.sqrt(LARGEST_SUM / max(1, n_values))
    if extent > largest_extent:
        raise ValueError(
            f"The samples extend over {extent:.3g}; sums of squared distances overflow beyond "
            f"{largest_extent:.1e}. Divide X by a constant first."
        )
    if 0.0 < extent < math.sqrt(SMALLEST_SQUARE):
        raise ValueError(
            f"The samples extend over {extent:.3g} only; squared distances underflow below "
            f"{math.sqrt(SMALLEST_SQUARE):.1e}. Multiply X by a constant first."
        )
    # The factor itself has to fit into the type of the samples.
    largest = np.finfo(dtype).maxexp - 2
    return min(largest, -math.frexp(extent)[1]) if extent > 0.0 else 0


LIMBS = 2


def limb_bits(n_samples: int) -> int:
    """Bits of a limb such that the sum of ``n_samples`` of them cannot overflow."""
    return 61 - max(1, n_samples).bit_length()


def column_scales(extents: Any, weights: Any, bits: int) -> Any:
    """Return d + 1 powers of two that bring all terms below ``2**bits``; the last is for weights.

    ``extents`` (d,) are the largest absolute values of the columns. Equal ``weights`` are empty.
    """
    heaviest = float(weights.max()) if len(weights) else 1.0
    largest = np.append(extents, 1.0) * heaviest
    exponents = np.array([bits - math.frexp(v)[1] if v > 0 else 0 for v in largest])
    return np.ldexp(1.0, np.minimum(exponents, 1000))


def means_of(sums: Any, centers: Any, scales: Any, limb: float) -> tuple[Any, Any]:
    """Return the means and weights of clusters; an empty cluster's centre stays.

    The same arithmetic as :func:`~evomeans.engines.cpu.sums.update_center`, to the last bit.
    ``scales`` and ``limb`` are those of the numbers in ``sums`` (k, 2, d + 1).
    """
    totals = sums[:, 0] + sums[:, 1] * (1.0 / limb)
    weights = totals[:, -1] / scales[-1]
    filled = weights > 0.0
    means = centers.copy()
    means[filled] = totals[filled, :-1] / (scales[:-1] * weights[filled, None])
    return means, weights


# ---- values that can be computed with, and samples that are lost next to outliers ----------------

# Sums of weights, of models whose kernels square them.
LIGHTEST_TOTAL, HEAVIEST_TOTAL = 1e-100, 1e100
OVERFLOW = f"sums overflow beyond {LARGEST_VALUE:.0e}. Divide X by a constant first."


def check_total_weight(total: float) -> None:
    """Reject weights by which no sample counts, or that cannot be summed."""
    if total == 0.0:
        raise ValueError("sample_weight must not be all zero: no sample would count.")
    if not np.isfinite(total):
        raise ValueError("sample_weight sums to infinity; divide the weights by a constant.")


def check_moderate_weight(total: float) -> None:
    """Reject weights whose squares, or products with squared distances, are not all numbers."""
    if not LIGHTEST_TOTAL <= total <= HEAVIEST_TOTAL:
        raise ValueError(
            f"sample_weight sums to {total:.3g}; this model needs a sum between "
            f"{LIGHTEST_TOTAL:.0e} and {HEAVIEST_TOTAL:.0e}. Multiply the weights by a constant."
        )


def reaching(frame: Frame, low: NDArray[Any], high: NDArray[Any]) -> Frame:
    """Return the frame, or one of another scale if squares of samples between these overflow."""
    # An infinite extent is refused below.
    with np.errstate(over="ignore"):
        extent = max((high - frame.shift).max(), (frame.shift - low).max())
    if extent * frame.scale <= 1.0:
        return frame
    return replace(frame, exponent=Frame.scaling(np.array([extent]), 0).exponent)


# Means then have errors of at most 2⁻²⁰ of the size of their samples.
SPARE_BITS = 20
DIGITS = 53
VALUES_PER_BLOCK = 2**20


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
    """Whether samples may be lost; ``finest`` is the smallest nonzero size in data units."""
    # Values that are shifted differ by a unit in the last place at least. No extent is above one.
    size = min(finest, smallest(frame.shift) * 2.0**-DIGITS) * frame.scale
    return not resolved_size(n_samples) * max(1.0, size) < lightest / heaviest * size


class Resolution:
    """Refuses clusterings of samples in memory if many samples and a whole cluster are lost."""

    def __init__(self, X: Any, sample_weight: NDArray[np.float64] | None) -> None:
        self.X = X
        self._sample_weight = sample_weight
        self._resolves_all: bool | None = None

    @cached_property
    def _smallest(self) -> float:
        """The smallest absolute value: a look at all samples, however many clusterings follow."""
        return smallest(self.X.data if is_sparse(self.X) else self.X)

    def check(
        self, frame: Frame, labels: Any, k: int, run: Callable[..., Iterable[Any]] = map
    ) -> None:
        """Check a clustering with the sums of an engine, whose frame is always the same.

        ``run`` maps a function over blocks of samples, perhaps by several threads.
        """
        X, sample_weight = self.X, self._sample_weight
        weights = np.ones(1) if sample_weight is None else sample_weight
        lightest, heaviest = smallest(weights), float(weights.max())
        if self._resolves_all is None:
            self._resolves_all = not is_sparse(X) and resolves_all(
                X, frame, lightest / heaviest, run
            )
        if self._resolves_all or not may_lose_samples(
            frame, self._smallest, lightest, heaviest, X.shape[0]
        ):
            return
        ends = _dense(X.min(axis=0)), _dense(X.max(axis=0))
        extremes = Extremes(*ends, lightest, heaviest, X.shape[0])
        step = X.shape[0] if is_sparse(X) else max(1, VALUES_PER_BLOCK // X.shape[1])
        counts = np.zeros((2, k), np.int64)
        for begin in range(0, X.shape[0], step):
            part = slice(begin, begin + step)
            own = None if sample_weight is None else sample_weight[part]
            counts += extremes.lost_and_resolved(X[part], own, labels[part], k, frame)
        extremes.refuse_lost_clusters(counts)


def resolves_all(
    X: NDArray[Any], frame: Frame, lightest: float, run: Callable[..., Iterable[Any]]
) -> bool:
    """Whether the largest values of dense samples tell that none is lost; a look at all of them.

    ``lightest`` is the share of the lightest weight in the heaviest one.
    """
    step = max(1, VALUES_PER_BLOCK // 2 // X.shape[1])

    def smallest_sample(begin: int) -> float:
        Z = frame.encode(X[begin : begin + step])
        return float(np.maximum(Z.max(axis=1), -Z.min(axis=1)).min())

    size = float(min(run(smallest_sample, range(0, len(X), step))))
    # No extent is above one.
    return bool(resolved_size(len(X)) < lightest * min(size, 1.0))


def smallest(values: NDArray[Any]) -> float:
    """Return the smallest absolute value that is not zero; infinity if there is none."""
    # Imported late: importing the estimator loads no compiler.
    from evomeans.kernels.vectors import NO_SIZE, smallest_size

    least = smallest_size(values.reshape(-1))
    return least if least < NO_SIZE else math.inf


def _dense(values: Any) -> NDArray[Any]:
    """Return what a reduction of dense or sparse samples gives as an array of one dimension."""
    return np.ravel(values.toarray() if is_sparse(values) else values)
