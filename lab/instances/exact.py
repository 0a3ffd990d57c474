"""The inertia of a clustering in rational numbers, rounded once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evomeans.typing import FloatArray

# Bits of a limb: sums of 2³² of them fit into int64.
LIMB = 30


@dataclass(frozen=True)
class ExactSamples:
    """Samples as integers: every float64 is an integer times a common power of two.

    Parameters
    ----------
    X : (n, d) array
    """

    X: FloatArray

    @cached_property
    def shift(self) -> int:
        """The samples times two to this power are integers."""
        mantissa, exponent = np.frexp(self.X[self.X != 0])
        whole = np.ldexp(mantissa, 53).astype(np.int64)
        zeros = np.array([(one & -one).bit_length() - 1 for one in whole.tolist()], np.int64)
        return max(0, int((53 - exponent - zeros).max(initial=0)))

    @cached_property
    def limbs(self) -> tuple[NDArray[np.int64], ...]:
        """The integers in limbs of 30 bits with their signs, the lowest first."""
        whole = [int(Fraction(x) * 2**self.shift) for x in self.X.ravel().tolist()]
        signs = np.array([-1 if one < 0 else 1 for one in whole], np.int64)
        sizes, found = [abs(one) for one in whole], []
        while any(sizes) or not found:
            low = np.array([one & (2**LIMB - 1) for one in sizes], np.int64) * signs
            found.append(low.reshape(self.X.shape))
            sizes = [one >> LIMB for one in sizes]
        return tuple(found)

    @cached_property
    def squares(self) -> int:
        """The sum of the squares of all integers."""
        return sum(int(Fraction(x) * 2**self.shift) ** 2 for x in self.X.ravel().tolist())

    def inertia(self, labels: NDArray[np.integer]) -> Fraction:
        """Return the sum of squared distances to the exact means, without any rounding.

        It is Σ‖x‖² − Σⱼ ‖sum of cluster j‖² / size of cluster j.
        """
        sizes = np.bincount(labels).tolist()
        total = Fraction(self.squares)
        sums = np.zeros((len(sizes), self.X.shape[1]), object)
        for place, limb in enumerate(self.limbs):
            part = np.zeros((len(sizes), self.X.shape[1]), np.int64)
            np.add.at(part, labels, limb)
            sums += part.astype(object) * 2 ** (LIMB * place)
        for size, row in zip(sizes, sums.tolist(), strict=True):
            if size:
                total -= Fraction(sum(one * one for one in row), size)
        return total / 4**self.shift


def rounded(value: Fraction) -> float:
    """Return the nearest float64."""
    number = value.numerator / value.denominator
    if not math.isfinite(number):
        raise ValueError(f"The inertia {value} does not fit into float64.")
    return number
