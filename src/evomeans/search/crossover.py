"""The matching crossover MX (section 3.2 of the paper)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

FloatArray = NDArray[np.float64]


def matching_crossover(
    first: FloatArray, second: FloatArray, coins: FloatArray
) -> tuple[FloatArray, int]:
    """Pair up the centres of two parents at minimum cost and take one centre of each pair.

    Parameters
    ----------
    first, second : (k, d) arrays
        Centres of the parents.
    coins : (k,) array
        Uniform numbers; from a pair whose number is below one half the child takes the centre
        of ``second``.

    Returns
    -------
    child : (k, d) array
    parent : {0, 1}
        The parent that gave the larger part of what differs; the child's centres stand at the
        positions they have in that parent.
    """
    partner = match(first, second)
    from_second = coins < 0.5
    differs = (first != second[partner]).any(axis=1)
    if 2 * np.count_nonzero(from_second & differs) <= np.count_nonzero(differs):
        return np.where(from_second[:, None], second[partner], first), 0
    child = second.copy()
    child[partner[~from_second]] = first[~from_second]
    return child, 1


def match(first: FloatArray, second: FloatArray) -> NDArray[np.intp]:
    """Assign every centre of ``first`` its own centre of ``second``, at least total distance.

    Returns
    -------
    partner : (k,) array
        ``second[partner[i]]`` is matched with ``first[i]``.
    """
    return np.asarray(linear_sum_assignment(euclidean_distances(first, second))[1])


def euclidean_distances(first: FloatArray, second: FloatArray) -> FloatArray:
    """Distances between the rows of two matrices by the expanded form.

    Its rounding (1e-8 of the norms, as centres lie around the origin) only matters between pairs of
    equal cost, except for equal centres, whose distance must be exactly zero.
    """
    squares = (
        np.einsum("ij,ij->i", first, first)[:, None]
        + np.einsum("ij,ij->i", second, second)[None, :]
        - 2.0 * (first @ second.T)
    )
    distances: FloatArray = np.sqrt(np.maximum(squares, 0.0))
    return distances
