"""Optimal objectives of small problems, by looking at every clustering.

The cost of each subset of the samples is computed once. A clustering is a row of subsets, written
as numbers whose bits are the samples, so that the costs of all clusterings are one look-up.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Integers = NDArray[np.int64]


@cache
def members(n: int) -> FloatArray:
    """Return the members of every subset of n samples, as rows of zeros and ones."""
    return (np.arange(1 << n)[:, None] >> np.arange(n) & 1).astype(np.float64)


@cache
def clusterings(n: int, k: int) -> Integers:
    """Return every assignment of n samples to k numbered clusters, as rows of subsets."""
    labels = np.array(list(product(range(k), repeat=n)), dtype=np.int64)
    return np.stack([((labels == j) << np.arange(n)).sum(axis=1) for j in range(k)], axis=1)


@cache
def partitions(n: int, k: int) -> Integers:
    """Return every partition of n samples into at most k clusters, whatever their numbers."""
    return np.unique(np.sort(clusterings(n, k), axis=1), axis=0)


def squared_distances(X: FloatArray) -> FloatArray:
    """Return the squared distances of all pairs of samples."""
    return ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2)


def costs_of_subsets(squares: FloatArray, weights: FloatArray) -> FloatArray:
    """Return Σᵢ<ⱼ wᵢwⱼ‖xᵢ − xⱼ‖² / Σw of every subset: a sum without any cancellation.

    ``weights`` may have further axes in front.
    """
    shares = weights[..., None, :] * members(len(squares))
    totals = shares.sum(axis=-1)
    moments = 0.5 * ((shares @ squares) * shares).sum(axis=-1)
    return moments / np.where(totals > 0.0, totals, 1.0)


def cosine_costs_of_subsets(units: FloatArray, weights: FloatArray) -> FloatArray:
    """Return Σw − ‖Σwx‖ of every subset of samples of length one or zero."""
    shares = weights * members(len(units))
    return shares.sum(axis=1) - np.sqrt(((shares @ units) ** 2).sum(axis=1))


def lowest(costs: FloatArray, n: int, k: int) -> float:
    """Return the lowest total cost of any partition into at most k clusters."""
    return float(costs[..., partitions(n, k)].sum(axis=-1).min())


def lowest_trimmed(squares: FloatArray, weights: FloatArray, trimmed: float, k: int) -> float:
    """Return the lowest objective of trimmed k-means.

    For given clusters, it is a concave function of the weights that are kept. So a best choice
    leaves out samples altogether, but for one at most.
    """
    n = len(weights)
    left_out = members(n)
    over = trimmed - left_out @ weights
    kept = [(1.0 - left_out[over == 0.0]) * weights]
    for i in range(n):
        is_part = (over > 0.0) & (over < weights[i]) & (left_out[:, i] == 0.0)
        some = (1.0 - left_out[is_part]) * weights
        some[:, i] -= over[is_part]
        kept.append(some)
    return lowest(costs_of_subsets(squares, np.concatenate(kept)), n, k)


def lowest_constrained(
    costs: FloatArray,
    low: Integers,
    high: Integers,
    must: Integers,
    cannot: Integers,
    penalty: float = np.inf,
) -> float:
    """Return the lowest objective within limits and links, infinite if there is no clustering."""
    n, k = len(costs).bit_length() - 1, len(low)
    found = clusterings(n, k)
    sizes = members(n).sum(axis=1)[found]
    found = found[((sizes >= low) & (sizes <= high)).all(axis=1)]
    broken = np.zeros(len(found))
    for i, j in must:
        together = (found >> i & found >> j & 1).any(axis=1)
        broken += ~together
    for i, j in cannot:
        broken += (found >> i & found >> j & 1).any(axis=1)
    price = np.where(broken > 0.0, broken * min(penalty, 1e300), 0.0)
    price[price >= 1e300] = np.inf
    return float(np.min(costs[found].sum(axis=1) + price, initial=np.inf))
