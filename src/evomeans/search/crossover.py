"""The matching crossover MX (section 3.2 of the paper)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

FloatArray = NDArray[np.float64]
Integers = NDArray[np.intp]
Flags = NDArray[np.bool_]
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
    partner, shared = match(first, second)
    from_second = ~shared & (coins < 0.5)
    from_first = ~shared & ~from_second
    if np.count_nonzero(from_second) <= np.count_nonzero(from_first):
        child = first.copy()
        child[from_second] = second[partner[from_second]]
        return child, 0
    child = second.copy()
    child[partner[from_first]] = first[from_first]
    return child, 1


def match(first: FloatArray, second: FloatArray) -> tuple[Integers, Flags]:
    """Assign every centre of ``first`` its own centre of ``second``.

    Centres that both parents have are paired with each other: the child surely has them, and late
    in a search little else is left for the assignment problem, which takes O(k³). The others are
    paired at the least total squared distance.

    Not at the least total distance, although that is what the paper says. Where there are many
    features, clusters with one sample, or parts of a cluster, take centres that are missing
    elsewhere, and plain distances pair such useless centres with each other: whatever the coins
    say, the child has as many of them as its parents. Squared distances leave it open
    (docs/reading-the-paper.md has the measurements).

    Returns
    -------
    partner : (k,) array
        ``second[partner[i]]`` is matched with ``first[i]``.
    shared : (k,) array of bool
        Whether the two are equal, to the last bit.
    """
    if len(first) <= FEW:
        return match_few(first, second)
    partner = find_shared(first, second)
    shared = partner >= 0
    rows = np.flatnonzero(~shared)
    if len(rows):
        is_free = np.ones(len(second), dtype=np.bool_)
        is_free[partner[shared]] = False
        columns = np.flatnonzero(is_free)
        costs = cdist(first[rows], second[columns], "sqeuclidean")
        partner[rows] = columns[linear_sum_assignment(costs)[1]]
    return partner, shared


def match_few(first: FloatArray, second: FloatArray) -> tuple[Integers, Flags]:
    """Match all centres at once; equal ones come together, for that is worth more than all else."""
    costs = cdist(first, second, "sqeuclidean")
    equal = costs == 0.0
    if equal.any():
        costs[equal] = -1.0 - costs.sum()
    rows, partner = linear_sum_assignment(costs)
    return partner, equal[rows, partner]


def find_shared(first: FloatArray, second: FloatArray) -> Integers:
    """Find centres that are the same to the last bit.

    Equal centres have equal coordinate sums. Where different ones have, too, all bytes are read.

    Returns
    -------
    partner : (k,) array
        The centre of ``second`` that each of ``first`` is, −1 if there is none left.
    """
    own_keys, keys = first.sum(axis=1), second.sum(axis=1)
    order = keys.argsort()
    keys = keys[order]
    if (keys[1:] == keys[:-1]).any() or len(set(own_keys.tolist())) < len(own_keys):
        return find_shared_bytes(first, second)
    nearby = np.minimum(np.searchsorted(keys, own_keys), len(keys) - 1)
    likely = np.flatnonzero(keys[nearby] == own_keys)
    found = order[nearby[likely]]
    same = (second[found] == first[likely]).all(axis=1)
    partner = np.full(len(first), -1, dtype=np.intp)
    partner[likely[same]] = found[same]
    return partner


def find_shared_bytes(first: FloatArray, second: FloatArray) -> Integers:
    """Find them with twins among them, each of which finds a partner of its own."""
    places: dict[bytes, list[int]] = {}
    for j, row in enumerate(second + 0.0):
        places.setdefault(row.tobytes(), []).append(j)
    partner = np.full(len(first), -1, dtype=np.intp)
    for i, row in enumerate(first + 0.0):
        if free := places.get(row.tobytes()):
            partner[i] = free.pop()
    return partner
