"""The coordinates in which engines compute, and the fixed-point numbers of their sums.

A floating-point sum depends on the order of its terms; a sum of integers does not. The terms wᵢxᵢ
of clusters are rounded once, to an integer of two limbs, and added and taken away exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

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
