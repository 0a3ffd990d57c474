"""The point of least norm in the convex hull of a few points (Wolfe 1976)."""

from __future__ import annotations

import numpy as np

from evomeans.typing import FloatArray

# Products that differ by less, relative to the longest point, are equal.
ROUNDING = 1e-12
# Weights below this leave the corral.
NEGLIGIBLE = 1e-10


def minimum_norm_weights(products: FloatArray) -> FloatArray:
    """Return the weights of the points whose convex combination has the least norm.

    Wolfe's algorithm [1]_ keeps a *corral*: affinely independent points whose affine hull has its
    point of least norm inside their convex hull. The point that lies farthest in the opposite
    direction joins, and points whose weights would turn negative leave, until no point lies
    beyond the hyperplane through the best combination.

    Parameters
    ----------
    products : (m, m) array
        Scalar products of the m points with each other.

    Returns
    -------
    weights : (m,) array
        Not negative; they add up to one.

    References
    ----------
    .. [1] P. Wolfe, "Finding the nearest point in a polytope", Mathematical Programming 11,
       128-149, 1976.
    """
    squares = np.diag(products)
    weights = np.zeros(len(products))
    weights[np.argmin(squares)] = 1.0
    allowance = ROUNDING * max(float(squares.max()), np.finfo(float).tiny)
    # A corral never returns, so this ends; the limit guards against rounding.
    for _ in range(50 * len(products)):
        along = products @ weights
        nearest = int(np.argmin(along))
        if along[nearest] >= weights @ along - allowance or weights[nearest] > 0.0:
            break
        before = weights
        weights = _enter(products, weights, nearest)
        if weights @ products @ weights >= before @ products @ before:
            # Rounding: the corral is as good as it gets.
            return before
    return weights


def _enter(products: FloatArray, weights: FloatArray, nearest: int) -> FloatArray:
    """Let a point join the corral, and those leave that have to."""
    inside = np.flatnonzero(weights)
    corral = np.append(inside, nearest)
    present = weights[corral]
    while True:
        wanted = _affine_weights(products[np.ix_(corral, corral)])
        if (wanted > NEGLIGIBLE).all():
            present = wanted
            break
        # Go towards the affine minimum up to the boundary of the convex hull.
        leaving = wanted <= NEGLIGIBLE
        workspace = present[leaving] - wanted[leaving]
        share = min(
            1.0, float((present[leaving] / np.where(workspace > 0.0, workspace, 1.0)).min())
        )
        present = (1.0 - share) * present + share * wanted
        stays = present > NEGLIGIBLE
        stays &= ~(leaving & (present <= present[leaving].min()))
        corral, present = corral[stays], present[stays]
        present = present / present.sum()
        if len(corral) == 1:
            break
    result = np.zeros(len(weights))
    result[corral] = present
    return result


def _affine_weights(products: FloatArray) -> FloatArray:
    """Weights of the point of least norm in the affine hull; they may be negative."""
    scale = max(float(np.diag(products).max()), np.finfo(float).tiny)
    # With e the vector of ones, (P + e·eᵀ)u = e gives u in the direction of the weights.
    system = products / scale + 1.0
    ones = np.ones(len(products))
    try:
        solution = np.linalg.solve(system, ones)
    except np.linalg.LinAlgError:
        # Affinely dependent up to rounding.
        solution = np.linalg.lstsq(system, ones, rcond=None)[0]
    weights: FloatArray = solution / solution.sum()
    return weights
