"""Ward's method for thousands of clusters, compiled: it keeps the near clusters of each only.

The cost of merging two clusters does not sink when one of them is merged with a third: the union is
not nearer to another cluster than the nearer of its parts was. So each cost that was computed once
is a lower bound for all time, and a cluster is looked at again only if its bound is the lowest of
all. Fränti's lists of near clusters [1]_ save most of these looks: a merge among them is made if it
costs at most SLACK times the lower bound of all others.

References
----------
.. [1] Fränti, P., Virmajoki, O. and Hautamäki, V. (2006). "Fast agglomerative clustering using a
   k-nearest neighbor graph". IEEE Transactions on Pattern Analysis and Machine Intelligence 28,
   1875-1881.
"""

from __future__ import annotations

from evomeans.compiled.jit import jit
from evomeans.kernels.ward import (
    FORBIDDEN,
    MOST,
    N_NEAR,
    MergingArrays,
    cost,
    minimum,
    position,
    unite_equal,
    write_merged,
)
from evomeans.typing import FloatArray, Indices

NONE = -1
# With 1.0, merges would be those of kernels/ward.py, and take twice as long or longer.
SLACK = 1.3
# Clusters that stay in the cache of the processor while costs are computed.
BLOCK = 64


@jit
def merge_many(
    centers: FloatArray,
    weights: FloatArray,
    merged: FloatArray,
    totals: FloatArray,
    origins: Indices,
    arrays: MergingArrays,
) -> None:
    """Do what :func:`~evomeans.kernels.ward.merge` does, for more than MOST_KEPT clusters.

    Fields of ``arrays``, by clusters that are left after equal ones have been merged:

    * ``means``, ``shares``: the clusters.
    * ``near``, ``near_costs``: clusters to merge them with, the cheapest first; NONE fills up.
    * ``beyond``: lower bound of the costs with clusters that are not among the near ones.
    * ``lowest``: lower bound of all costs; FORBIDDEN for a cluster that has been absorbed.
    * ``nearest``: the cluster at that cost; of one that has been absorbed, the one that did so.
    * ``changed``: the merge that changed a cluster last, counted from 1.
    * ``looked``: the merge after which it was looked at last.
    """
    k, names = merged.shape[0], arrays.names
    count = unite_equal(centers, k, arrays.shares, arrays.origin, names, arrays.lowest)
    for i in range(count):
        arrays.changed[i] = arrays.looked[i] = 0
        clear(i, arrays)
        for t in range(centers.shape[1]):
            arrays.means[i, t] = centers[names[i], t]
    list_near(count, arrays)
    n_merges = 0
    while n_merges < count - k:
        if arrays.stop[0] != 0:
            return
        one = position(arrays.lowest, minimum(arrays.lowest, count))
        if is_known(one, arrays):
            n_merges += 1
            absorb(one, arrays.nearest[one], n_merges, arrays)
        else:
            look_again(one, count, n_merges, arrays)
    write_merged(centers, weights, merged, totals, origins, arrays.origin, arrays.nearest)


@jit
def clear(i: int, arrays: MergingArrays) -> None:
    """Forget the near clusters of a cluster."""
    arrays.lowest[i], arrays.nearest[i], arrays.beyond[i] = MOST, NONE, MOST
    for c in range(N_NEAR):
        arrays.near[i, c] = NONE
        arrays.near_costs[i, c] = FORBIDDEN


@jit(inline=False)
def list_near(count: int, arrays: MergingArrays) -> None:
    """Find the near clusters of all clusters."""
    means, shares = arrays.means, arrays.shares
    for begin in range(0, count, BLOCK):
        for i in range(begin + 1, count):
            if arrays.stop[0] != 0:
                return
            for j in range(begin, min(begin + BLOCK, i)):
                value = min(cost(means, i, j, shares[i], shares[j]), MOST)
                insert(i, j, value, arrays)
                insert(j, i, value, arrays)
    for i in range(count):
        arrays.lowest[i], arrays.nearest[i] = arrays.near_costs[i, 0], arrays.near[i, 0]


@jit
def insert(i: int, j: int, value: float, arrays: MergingArrays) -> None:
    """Add ``j`` to the near clusters of ``i``, if it is near enough."""
    near, costs, place = arrays.near[i], arrays.near_costs[i], N_NEAR - 1
    if value >= costs[place]:
        arrays.beyond[i] = min(arrays.beyond[i], value)
        return
    if near[place] != NONE:
        arrays.beyond[i] = min(arrays.beyond[i], costs[place])
    while place > 0 and costs[place - 1] > value:
        near[place], costs[place] = near[place - 1], costs[place - 1]
        place -= 1
    near[place], costs[place] = j, value


@jit
def is_known(i: int, arrays: MergingArrays) -> bool:
    """Whether nothing has changed since a cluster was looked at."""
    other = arrays.nearest[i]
    if other == NONE or arrays.lowest[other] >= FORBIDDEN:
        return False
    return arrays.looked[i] >= max(arrays.changed[i], arrays.changed[other])


@jit(inline=False)
def absorb(one: int, other: int, n_merges: int, arrays: MergingArrays) -> None:
    """Merge two clusters. The one with the lower index becomes the union."""
    a, b = min(one, other), max(one, other)
    lowest = min(next_cost(a, b, arrays), next_cost(b, a, arrays))
    shares, means = arrays.shares, arrays.means
    part = shares[b] / (shares[a] + shares[b])
    for t in range(means.shape[1]):
        means[a, t] += part * (means[b, t] - means[a, t])
    shares[a] += shares[b]
    arrays.origin[arrays.names[b]] = arrays.names[a]
    arrays.lowest[a] = lowest
    join_lists(a, b, arrays)
    arrays.lowest[b], arrays.nearest[b] = FORBIDDEN, a
    arrays.changed[a] = n_merges


@jit
def join_lists(a: int, b: int, arrays: MergingArrays) -> None:
    """Let the near clusters of a union be the nearest ones of its parts."""
    near, costs = arrays.near, arrays.near_costs
    arrays.beyond[a] = min(arrays.beyond[a], arrays.beyond[b])
    for c in range(N_NEAR):
        if near[a, c] == b:
            near[a, c] = NONE
    for c in range(N_NEAR):
        j = near[b, c]
        if j != NONE and j != a:
            insert(a, j, costs[b, c], arrays)


@jit
def next_cost(i: int, other: int, arrays: MergingArrays) -> float:
    """Return a lower bound of the costs of a cluster with all but one."""
    for c in range(N_NEAR):
        if arrays.near[i, c] != other and arrays.near[i, c] != NONE:
            return min(arrays.near_costs[i, c], arrays.beyond[i])
    return arrays.beyond[i]


@jit(inline=False)
def look_again(i: int, count: int, n_merges: int, arrays: MergingArrays) -> None:
    """Set the lowest cost of a cluster, and with which one it is that."""
    means, shares, near = arrays.means, arrays.shares, arrays.near[i]
    lowest, nearest = FORBIDDEN, NONE
    for c in range(N_NEAR):
        j = near[c]
        while j != NONE and arrays.lowest[j] >= FORBIDDEN:
            j = arrays.nearest[j]
        if j != NONE and j != i:
            value = min(cost(means, i, j, shares[i], shares[j]), MOST)
            if value < lowest:
                lowest, nearest = value, j
    arrays.looked[i] = n_merges
    if nearest == NONE or lowest > SLACK * arrays.beyond[i]:
        clear(i, arrays)
        for j in range(count):
            if j != i and arrays.lowest[j] < FORBIDDEN:
                insert(i, j, min(cost(means, i, j, shares[i], shares[j]), MOST), arrays)
        lowest, nearest = arrays.near_costs[i, 0], near[0]
    arrays.lowest[i], arrays.nearest[i] = lowest, nearest
