"""The matching crossover MX (section 3.2 of the paper)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

FloatArray = NDArray[np.float64]
# Up to this many centres, solving the whole assignment problem is faster than making it smaller.
FEW = 50


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
        return assign(first, second)
    partner, shared = find_shared(first, second)
    is_free = np.ones(len(second), dtype=np.bool_)
    is_free[partner[shared]] = False
    rows, columns = np.flatnonzero(~shared), np.flatnonzero(is_free)
    if len(rows) != len(columns):
        # Centres of ``first`` that are equal among themselves have found the same partner.
        return assign(first, second)
    partner[rows] = columns[assign(first[rows], second[columns])]
    return partner


def assign(first: FloatArray, second: FloatArray) -> NDArray[np.intp]:
    """Solve the assignment problem as it is."""
    return np.asarray(linear_sum_assignment(cdist(first, second))[1])


def find_shared(
    first: FloatArray, second: FloatArray
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Find centres that are the same to the last bit.

    Equal centres have equal coordinate sums. Of several different centres with one sum only one is
    looked at: a pair that is overlooked is left to the assignment problem.

    Returns
    -------
    partner : (k,) array
        A centre of ``second`` for each of ``first``.
    shared : (k,) array of bool
        Whether the two are equal.
    """
    keys = second.sum(axis=1)
    order = keys.argsort()
    found = np.searchsorted(keys, first.sum(axis=1), sorter=order)
    partner = order.take(found, mode="clip")
    return partner, (second.take(partner, axis=0) == first).all(axis=1)
