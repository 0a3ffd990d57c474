"""Samples as points of the space of a kernel: coordinates whose products are the kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

FloatArray = NDArray[np.float64]
Kernel = Callable[[NDArray[Any], NDArray[Any]], FloatArray]
# What the products of coordinates may differ from a kernel, as a share of its largest value.
INDEFINITE = 1e-6


class IndefiniteKernelError(ValueError):
    """A kernel that is not the product of anything."""


@dataclass(frozen=True)
class Coordinates:
    """A map from samples to coordinates: φ(x) = L⁻¹k(landmarks, x).

    Parameters
    ----------
    chosen : (r,) array
        Which of the samples are landmarks.
    factor : (r, r) array
        L, lower triangular, with LLᵀ the kernel of the landmarks.
    """

    chosen: NDArray[np.intp]
    factor: FloatArray


def find_coordinates(gram: FloatArray) -> Coordinates:
    """Choose landmarks that span all samples, by a Cholesky factorisation with pivots [1]_.

    Samples whose coordinates follow from those of the landmarks, up to rounding, add nothing. So
    all products of coordinates are the kernel itself, however few landmarks there are.

    References
    ----------
    .. [1] Higham, N. J. (1990). "Analysis of the Cholesky decomposition of a semi-definite matrix".
       Reliable Numerical Computation, 161-185.
    """
    largest = float(np.diagonal(gram).max())
    if not largest > 0.0:
        raise IndefiniteKernelError(
            f"The kernel of no sample with itself is positive; the largest is {largest:.3g}."
        )
    tolerance = len(gram) * np.finfo(np.float64).eps * largest
    factor, pivots, rank, _ = dpstrf(gram, tol=tolerance, lower=1)
    chosen = (pivots[:rank] - 1).astype(np.intp)
    factor = np.tril(factor[:rank, :rank])
    coordinates = apply_map(gram[chosen], factor)
    error = float(np.abs(coordinates @ coordinates.T - gram).max())
    if error > INDEFINITE * largest:
        raise IndefiniteKernelError(
            "The kernel is not positive semi-definite: it differs from all products of coordinates "
            f"by {error:.3g}, with values up to {largest:.3g}. Use another kernel, or add a "
            "constant to the diagonal of a precomputed one."
        )
    return Coordinates(chosen, np.ascontiguousarray(factor))


def apply_map(products: FloatArray, factor: FloatArray) -> FloatArray:
    """Return the coordinates of samples from their kernel with the landmarks, (r, n)."""
    solved: FloatArray = solve_triangular(factor, products, lower=True)
    return np.ascontiguousarray(solved.T)
