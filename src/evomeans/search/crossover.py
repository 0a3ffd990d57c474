"""Crossovers: the matching one of the paper (section 3.2), partition, and merging."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from evomeans.compiled.merging import pnn_merge
from evomeans.engines.protocol import GuidingEngine
from evomeans.search.individual import Individual

FloatArray = NDArray[np.float64]
Integers = NDArray[np.intp]
Flags = NDArray[np.bool_]
# Up to this many centres, solving the whole assignment problem is faster than making it smaller.
FEW = 50


class Child(NamedTuple):
    """A solution before it is refined.

    ``centers`` (k, d) array; ``cluster_weights`` (k,) array: what its clusters weighed in its
    parents; ``parent`` Individual: the one at whose positions most of the centres stand.
    """

    centers: FloatArray
    cluster_weights: FloatArray
    parent: Individual


def matching_crossover(first: Individual, second: Individual, coins: FloatArray) -> Child:
    """Pair up the centres of two parents at minimum cost and take one centre of each pair.

    Parameters
    ----------
    first, second : Individual
        The parents.
    coins : (k,) array
        Uniform numbers; from a pair whose number is below one half the child takes the centre
        of ``second``.
    """
    partner, shared = match(first.centers, second.centers)
    from_second = ~shared & (coins < 0.5)
    from_first = ~shared & ~from_second
    if np.count_nonzero(from_second) <= np.count_nonzero(from_first):
        return _replaced(first, from_second, second, partner[from_second])
    return _replaced(second, partner[from_first], first, from_first)


def _replaced(
    parent: Individual, places: NDArray[np.generic], other: Individual, taken: NDArray[np.generic]
) -> Child:
    """Put some centres of another parent into the places of a parent's own."""
    centers, weights = parent.centers.copy(), parent.cluster_weights.copy()
    centers[places] = other.centers[taken]
    weights[places] = other.cluster_weights[taken]
    return Child(centers, weights, parent)


def partition_crossover(
    engine: GuidingEngine, first: Individual, second: Individual
) -> Child | None:
    """Take the better version of every part in which two parents differ; None if that is no gain.

    A part is a set of samples that fills some clusters of one parent, and some of the other. What
    is partition crossover [1]_ for tours needs no more here: the sum of squares is a sum over the
    parts, and the versions may even differ in the number of clusters, if others make up for it.

    References
    ----------
    .. [1] Whitley, D., Hains, D. and Howe, A. (2009). "Tunneling between optima: partition
       crossover for the traveling salesman problem". GECCO 2009, 915-922.
    """
    centers = first.centers, second.centers
    found = engine.better_parts(*centers, first.handle, second.handle)
    if found is None:
        return None
    gone, taken = found
    if np.count_nonzero(gone) > len(gone) // 2:
        return _replaced(second, ~taken, first, ~gone)
    return _replaced(first, gone, second, taken)


def merging_crossover(first: Individual, second: Individual) -> Child:
    """Merge the centres of both parents, those first that cost least, until k are left.

    The child has what both parents agree on, and spends its centres where one of them had more than
    the other. Nothing here is random. That of Fränti [1]_, with the weights that clusters have in
    their own parent, so that no sample has to be looked at.

    References
    ----------
    .. [1] Fränti, P. (2000). "Genetic algorithm with deterministic crossover for vector
       quantization". Pattern Recognition Letters 21, 61-68.
    """
    k = len(first.centers)
    both = np.concatenate([first.centers, second.centers])
    weights = np.concatenate([first.cluster_weights, second.cluster_weights])
    merged, totals, origins = pnn_merge(both, weights, k)
    places = np.empty(k, dtype=np.intp)
    own = origins < k
    is_free = np.ones(k, dtype=np.bool_)
    is_free[origins[own]] = False
    places[own], places[~own] = origins[own], np.flatnonzero(is_free)
    order = places.argsort()
    return Child(merged[order], 0.5 * totals[order], first)


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
