"""Aggregation of subgradients: the best convex combination of three of them."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from evomeans.typing import FloatArray


def aggregation_weights(products: FloatArray, errors: FloatArray) -> FloatArray:
    """Minimise λᵀGλ + 2·errorsᵀλ over λ ≥ 0 with Σλ = 1.

    Null steps of bundle methods combine the subgradient at the present point, the one at the trial
    point and the aggregate so far in this way. The minimum lies inside one of the faces of the
    simplex, and there are only a few.

    Parameters
    ----------
    products : (m, m) array
        G, the scalar products of the subgradients in the metric of the method; m is 3 there.
    errors : (m,) array
        Their linearisation errors.
    """
    count = len(errors)
    best, least = np.zeros(count), np.inf
    for size in range(1, count + 1):
        for face in map(list, combinations(range(count), size)):
            weights = np.zeros(count)
            weights[face] = _inside(products[np.ix_(face, face)], errors[face])
            if weights.min() < 0.0:
                continue
            value = float(weights @ products @ weights + 2.0 * errors @ weights)
            # A larger face has to be better by more than rounding.
            if value < least - 1e-15 * abs(least) or least == np.inf:
                best, least = weights, value
    return best


def _inside(products: FloatArray, errors: FloatArray) -> FloatArray:
    """Weights of the minimum over the affine hull of a face; negative entries leave the face."""
    count = len(errors)
    if count == 1:
        return np.ones(1)
    # With the last weight eliminated, what remains is a linear system.
    differences = products[:-1] - products[-1]
    system = differences[:, :-1] - differences[:, -1:]
    right = errors[-1] - errors[:-1] - differences[:, -1]
    others = np.linalg.lstsq(system, right, rcond=None)[0]
    return np.append(others, 1.0 - others.sum())
