"""The matching crossover MX (section 3.2 of the paper)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

FloatArray = NDArray[np.float64]
# Up to this many centres, solving the whole assignment problem is faster than making it smaller.
FEW = 30


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
    mates = second.take(partner, axis=0)
    from_second = coins < 0.5
    differs = (first != mates).any(axis=1)
    if 2 * np.count_nonzero(from_second & differs) <= np.count_nonzero(differs):
        return np.where(from_second[:, None], mates, first), 0
    child = second.copy()
    child[partner[~from_second]] = first[~from_second]
    return child, 1


def match(first: FloatArray, second: FloatArray) -> NDArray[np.intp]:
    """Assign every centre of ``first`` its own centre of ``second``, at least total distance.

    Centres that both have are paired up front. By the triangle inequality that costs nothing, and
    late in a search little else is left for the assignment problem, which takes O(k³).

    Returns
    -------
    partner : (k,) array
        ``second[partner[i]]`` is matched with ``first[i]``.
    """
    if len(first) <= FEW:
        return np.asarray(linear_sum_assignment(cdist(first, second))[1])
    partner = shared_centers(first, second)
    rows = np.flatnonzero(partner < 0)
    if len(rows):
        columns = np.delete(np.arange(len(second)), partner[partner >= 0])
        cost = cdist(first[rows], second[columns])
        partner[rows] = columns[linear_sum_assignment(cost)[1]]
    return partner


def shared_centers(first: FloatArray, second: FloatArray) -> NDArray[np.intp]:
    """For every centre of ``first``, where ``second`` has the same to the last bit; else −1."""
    places = {row.tobytes(): place for place, row in enumerate(second)}
    return np.array([places.pop(row.tobytes(), -1) for row in first], dtype=np.intp)
