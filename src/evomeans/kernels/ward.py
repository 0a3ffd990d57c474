"""Ward's method: merge the clusters whose union raises the sum of squares least, pair by pair.

Of thousands of clusters, only the costs with near ones are kept. The cost of merging two clusters
does not sink when one of them is merged with a third: the union is not nearer to another cluster
than the nearer of its parts was. So each cost that was computed once is a lower bound for all time,
and a cluster is looked at again only if its bound is the lowest of all. Fränti's lists of near
clusters [1]_ save most of these looks: a merge among them is made if it costs at most
SLACK_OF_BOUNDS times the lower bound of all others.

References
----------
.. [1] Fränti, P., Virmajoki, O. and Hautamäki, V. (2006). "Fast agglomerative clustering using a
   k-nearest neighbor graph". IEEE Transactions on Pattern Analysis and Machine Intelligence 28,
   1875-1881.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evomeans.compiled.bundle import bundle
from evomeans.compiled.jit import FINITE, jit
from evomeans.compiled.ready import Call
from evomeans.kernels.vectors import (
    CENTERS_IN_CACHE,
    coordinate_sum,
    is_equal,
    minimum,
    squared_difference,
)
from evomeans.typing import FloatArray, Indices, Integers

# Up to this many clusters, all costs of merging two are kept; of more, those of near ones.
MOST_COSTS = 2048
# Cost of an impossible merger, and the upper limit of all other costs. With infinity, minima would
# not be vectorised.
FORBIDDEN, MOST_COST = 1e200, 1e199
# How many near clusters are kept of each, if there are more than MOST_COSTS.
N_NEAR = 8
NONE = -1
# With 1.0, all merges would be the cheapest, and take twice as long or longer.
SLACK_OF_BOUNDS = 1.3


@bundle
class MergingArrays(NamedTuple):
    """Working memory for n clusters with d features.

    * ``stop`` (1,): with more than MOST_COSTS clusters, merging ends soon after another thread sets
      it. The result is undefined then.

    By clusters that are left after equal ones have been merged, for all numbers of them:

    * ``shares``: weights, those given divided by the heaviest.
    * ``lowest``: the cost of the cheapest merger with another one, or a lower bound of it;
      FORBIDDEN for a cluster that has been absorbed.
    * ``nearest``: the other cluster; of one that has been absorbed, the one that did so.
    * ``names``: the given cluster.
    * ``origin``, by given clusters: of one that has been absorbed, the one that absorbed it; of the
      others, themselves.

    For up to MOST_COSTS clusters, ``costs`` (n, n) of merging any two. For more of them:

    * ``means``: of the clusters.
    * ``near``, ``near_costs``: clusters to merge them with, the cheapest first; NONE fills up.
    * ``beyond``: lower bound of the costs with clusters that are not among the near ones.
    * ``changed``: the merge that changed a cluster last, counted from 1.
    * ``looked``: the merge after which it was looked at last.
    """

    shares: FloatArray
    lowest: FloatArray
    nearest: Indices
    origin: Indices
    names: Indices
    stop: Integers
    costs: FloatArray
    means: FloatArray
    near: Indices
    near_costs: FloatArray
    beyond: FloatArray
    changed: Indices
    looked: Indices

    @classmethod
    def allocate(cls, n: int, n_features: int, stop: Integers | None = None) -> MergingArrays:
        """Allocate the arrays; without ``stop`` there is none."""
        few, many = (n, 0) if n <= MOST_COSTS else (0, n)
        shares, lowest = np.empty((2, n))
        nearest, origin, names = np.empty((3, n), np.intp)
        return cls(
            *(shares, lowest, nearest, origin, names),
            stop=np.zeros(1, np.int64) if stop is None else stop,
            costs=np.empty((few, few)),
            means=np.empty((many, n_features)),
            near=np.empty((many, N_NEAR), np.intp),
            near_costs=np.empty((many, N_NEAR)),
            beyond=np.empty(many),
            changed=np.empty(many, np.intp),
            looked=np.empty(many, np.intp),
        )


def pnn_merge(
    centers: FloatArray, weights: FloatArray, k: int, stop: Integers | None = None
) -> tuple[FloatArray, FloatArray, Indices]:
    """Merge the two clusters whose union costs least, again and again, until ``k`` are left.

    Merging a and b raises the sum of squared distances by wₐwᵦ/(wₐ+wᵦ)·‖cₐ−cᵦ‖² (Ward [1]_; the
    pairwise nearest neighbour method of Equitz [2]_).

    * ``centers`` (n, d): means of the clusters.
    * ``weights`` (n,): their weights. Merging one without any costs nothing and leaves no trace;
      such clusters go first.
    * ``k``: clusters to be left, at least 1 and at most n.
    * ``stop`` (1,): thousands of clusters are merged until another thread sets this. The result is
      undefined then.

    Returns the means (k, d) and weights (k,) of the clusters that are left, and (k,), ascending,
    the first of the given clusters that each of them consists of.

    References
    ----------
    .. [1] Ward, J.H. (1963). "Hierarchical grouping to optimize an objective function". Journal of
       the American Statistical Association 58, 236-244.
    .. [2] Equitz, W.H. (1989). "A new vector quantization clustering algorithm". IEEE Transactions
       on Acoustics, Speech, and Signal Processing 37, 1568-1575.
    """
    kept = np.arange(len(weights))
    if not weights.min() > 0.0:
        weighty = weights > 0.0
        kept = np.sort((~weighty).argsort(kind="stable")[: max(k, np.count_nonzero(weighty))])
        centers, weights = centers[kept], weights[kept]
    n, d = centers.shape
    if n == k:
        return centers.copy(), weights.copy(), kept
    # Zeros, because a merging that is stopped leaves them as they are.
    merged, totals, origins = np.zeros((k, d)), np.zeros(k), np.zeros(k, np.intp)
    arrays = MergingArrays.allocate(n, d, stop)
    # Costs are only compared: a common factor does not matter, and none of them overflows.
    np.divide(weights, weights.max(), out=arrays.shares)
    merge(centers, weights, merged, totals, origins, arrays)
    return merged, totals, kept[origins]


@jit
def merge(
    centers: FloatArray,
    weights: FloatArray,
    merged: FloatArray,
    totals: FloatArray,
    origins: Indices,
    arrays: MergingArrays,
) -> None:
    """Merge clusters until as many are left as ``merged`` has rows.

    * ``centers`` (n, d) and ``weights`` (n,): the clusters; all weights are positive.
    * ``merged`` (k, d), ``totals`` (k,) and ``origins`` (k,), out: means and weights of the
      clusters that are left, and the first cluster that each consists of, in ascending order.
    * ``arrays``: the shares have been set.
    """
    (n, d), k, origin, places = centers.shape, merged.shape[0], arrays.origin, arrays.nearest
    count = unite_equal(centers, k, arrays)
    if n <= MOST_COSTS:
        merge_by_costs(centers, k, count, arrays)
    else:
        merge_by_lists(centers, k, count, arrays)
        if arrays.stop[0] != 0:
            return
    count = 0
    for i in range(n):
        # One that absorbed others may itself have been absorbed, by one with a lower index.
        first = origin[origin[i]]
        origin[i] = first
        if first == i:
            origins[count] = i
            places[i] = count
            totals[count] = weights[i]
            for t in range(d):
                merged[count, t] = 0.0
            count += 1
        else:
            place = places[first]
            totals[place] += weights[i]
            # Relative to one of them, so that the mean of equal centres is that centre.
            for t in range(d):
                merged[place, t] += weights[i] * (centers[i, t] - centers[first, t])
    for place in range(k):
        for t in range(d):
            merged[place, t] = centers[origins[place], t] + merged[place, t] / totals[place]


@jit
def unite_equal(centers: FloatArray, k: int, arrays: MergingArrays) -> int:
    """Merge equal centres, which costs nothing, until ``k`` are left; return how many are."""
    names, shares, sums = arrays.names, arrays.shares, arrays.lowest
    n, count = centers.shape[0], 0
    left = n
    for j in range(n):
        own = coordinate_sum(centers, j)
        place = 0 if left > k else count
        # Thousands of sums are read much faster than a coordinate of thousands of centres.
        while place < count and (
            sums[place] != own or not is_equal(centers, names[place], centers, j)
        ):
            place += 1
        if place < count:
            shares[place] += shares[j]
            left -= 1
        else:
            names[count], shares[count], sums[count] = j, shares[j], own
            count += 1
        arrays.origin[j] = names[place]
    return count


@jit
def cost(centers: FloatArray, i: int, j: int, weight: float, other: float) -> float:
    """Return wᵢwⱼ/(wᵢ+wⱼ)·‖cᵢ−cⱼ‖², or MOST_COST; with the same bits if i and j change places."""
    value = squared_difference(centers, i, centers, j) / (1.0 / weight + 1.0 / other)
    return min(value, MOST_COST)


@jit
def merge_by_costs(centers: FloatArray, k: int, count: int, arrays: MergingArrays) -> None:
    """Merge the first ``count`` clusters until ``k`` are left, by the costs of all pairs."""
    names, weights, costs = arrays.names, arrays.shares, arrays.costs
    for i in range(count):
        costs[i, i] = FORBIDDEN
        for j in range(i):
            value = cost(centers, names[i], names[j], weights[i], weights[j])
            costs[i, j] = costs[j, i] = value
    for i in range(count):
        find_nearest(i, count, arrays)
    for _ in range(count - k):
        merge_cheapest(count, arrays)


@jit
def find_nearest(i: int, count: int, arrays: MergingArrays) -> None:
    """Set the cheapest merger of a cluster, the first if there are several."""
    arrays.lowest[i] = minimum(arrays.costs[i], count)
    arrays.nearest[i] = position(arrays.costs[i], arrays.lowest[i])


@jit
def merge_cheapest(count: int, arrays: MergingArrays) -> None:
    """Merge the two clusters whose union costs least. The one with the lower index becomes it.

    The union is not nearer to a third cluster than the nearer of the two was. So only clusters
    whose nearest was one of the two have to search again.
    """
    lowest, nearest = arrays.lowest, arrays.nearest
    one = position(lowest, minimum(lowest, count))
    other = nearest[one]
    a, b = min(one, other), max(one, other)
    arrays.origin[arrays.names[b]] = arrays.names[a]
    unite(arrays.costs, count, arrays.shares, a, b)
    lowest[b] = FORBIDDEN
    for j in range(count):
        if j == a or ((nearest[j] == a or nearest[j] == b) and lowest[j] < FORBIDDEN):
            find_nearest(j, count, arrays)


@jit(fastmath=FINITE)
def unite(costs: FloatArray, count: int, weights: FloatArray, a: int, b: int) -> None:
    """Make cluster ``a`` the union of ``a`` and ``b``.

    The cost of merging it with another cluster follows from those of its parts [1]_:

        d(ab, j) = ((wₐ + wⱼ) d(a, j) + (wᵦ + wⱼ) d(b, j) − wⱼ d(a, b)) / (wₐ + wᵦ + wⱼ)

    References
    ----------
    .. [1] Lance, G.N. and Williams, W.T. (1967). "A general theory of classificatory sorting
       strategies: 1. Hierarchical systems". The Computer Journal 9, 373-380.
    """
    first, second, own = weights[a], weights[b], costs[a, b]
    for j in range(count):
        value = (first + weights[j]) * costs[a, j] + (second + weights[j]) * costs[b, j]
        value = (value - weights[j] * own) / (first + second + weights[j])
        # Rounding must not make it negative.
        costs[a, j] = min(max(value, 0.0), FORBIDDEN)
    costs[a, a] = costs[a, b] = FORBIDDEN
    for j in range(count):
        costs[j, a] = costs[a, j]
        costs[j, b] = FORBIDDEN
    weights[a] += weights[b]


@jit
def position(values: FloatArray, wanted: float) -> int:
    """Return the first index of a number."""
    for i in range(values.shape[0]):
        if values[i] == wanted:
            return i
    return 0


@jit
def merge_by_lists(centers: FloatArray, k: int, count: int, arrays: MergingArrays) -> None:
    """Merge the first ``count`` clusters until ``k`` are left, by lists of the nearest ones."""
    for i in range(count):
        arrays.changed[i] = arrays.looked[i] = 0
        clear(i, arrays)
        for t in range(centers.shape[1]):
            arrays.means[i, t] = centers[arrays.names[i], t]
    list_near(count, arrays)
    n_merges = 0
    while n_merges < count - k and arrays.stop[0] == 0:
        one = position(arrays.lowest, minimum(arrays.lowest, count))
        if is_known(one, arrays):
            n_merges += 1
            absorb(one, arrays.nearest[one], n_merges, arrays)
        else:
            look_again(one, count, n_merges, arrays)


@jit
def clear(i: int, arrays: MergingArrays) -> None:
    """Forget the near clusters of a cluster."""
    arrays.lowest[i], arrays.nearest[i], arrays.beyond[i] = MOST_COST, NONE, MOST_COST
    for c in range(N_NEAR):
        arrays.near[i, c] = NONE
        arrays.near_costs[i, c] = FORBIDDEN


@jit(inline=False)
def list_near(count: int, arrays: MergingArrays) -> None:
    """Find the near clusters of all clusters."""
    means, shares = arrays.means, arrays.shares
    for begin in range(0, count, CENTERS_IN_CACHE):
        for i in range(begin + 1, count):
            if arrays.stop[0] != 0:
                return
            for j in range(begin, min(begin + CENTERS_IN_CACHE, i)):
                value = cost(means, i, j, shares[i], shares[j])
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
            value = cost(means, i, j, shares[i], shares[j])
            if value < lowest:
                lowest, nearest = value, j
    arrays.looked[i] = n_merges
    if nearest == NONE or lowest > SLACK_OF_BOUNDS * arrays.beyond[i]:
        clear(i, arrays)
        for j in range(count):
            if j != i and arrays.lowest[j] < FORBIDDEN:
                insert(i, j, cost(means, i, j, shares[i], shares[j]), arrays)
        lowest, nearest = arrays.near_costs[i, 0], near[0]
    arrays.lowest[i], arrays.nearest[i] = lowest, nearest


def kernel_calls() -> list[Call]:
    """Return what a search calls of these, see :func:`~evomeans.compiled.ready.ready`."""
    one, square, index = np.zeros(1), np.zeros((1, 1)), np.zeros(1, np.intp)
    return [Call(merge, (square, one, square, one, index, MergingArrays.allocate(1, 1)), 1.3)]
