"""Ward's method, compiled: merge the clusters whose union raises the sum of squares least."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evomeans.compiled.bundle import bundle
from evomeans.compiled.jit import FINITE, jit
from evomeans.kernels import MOST_KEPT
from evomeans.kernels.vectors import coordinate_sum, is_equal, squared_difference
from evomeans.typing import FloatArray, Indices, Integers

# Cost of an impossible merger, and the upper limit of all other costs. With infinity, minima would
# not be vectorised.
FORBIDDEN, MOST = 1e200, 1e199
# How many near clusters are kept of each, if there are more than MOST_KEPT.
N_NEAR = 8


@bundle
class MergingArrays(NamedTuple):
    """Working memory for n clusters with d features.

    * ``shares`` (n,): the weights divided by the heaviest; modified.
    * ``lowest``, ``nearest``, ``origin`` and ``names`` (n,).
    * ``stop`` (1,): with more than MOST_KEPT clusters, merging ends soon after another thread sets
      it. The result is undefined then.

    For up to MOST_KEPT clusters:

    * ``costs`` (n, n).

    For more, see :func:`~evomeans.kernels.ward_lists.merge_many`:

    * ``means`` (n, d).
    * ``near`` and ``near_costs`` (n, N_NEAR), ``beyond``, ``changed`` and ``looked`` (n,).
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
        few, many = (n, 0) if n <= MOST_KEPT else (0, n)
        return cls(
            shares=np.empty(n),
            lowest=np.empty(n),
            nearest=np.empty(n, np.intp),
            origin=np.empty(n, np.intp),
            names=np.empty(n, np.intp),
            stop=np.zeros(1, np.int64) if stop is None else stop,
            costs=np.empty((few, few)),
            means=np.empty((many, n_features)),
            near=np.empty((many, N_NEAR), np.intp),
            near_costs=np.empty((many, N_NEAR)),
            beyond=np.empty(many),
            changed=np.empty(many, np.intp),
            looked=np.empty(many, np.intp),
        )


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

    * ``centers`` (n, d) and ``weights`` (n,): the clusters, at most MOST_KEPT; all weights are
      positive.
    * ``merged`` (k, d), ``totals`` (k,) and ``origins`` (k,), out: means and weights of the
      clusters that are left, and the first cluster that each consists of, in ascending order.
    """
    k, shares, costs = merged.shape[0], arrays.shares, arrays.costs
    lowest, nearest, origin, names = arrays.lowest, arrays.nearest, arrays.origin, arrays.names
    count = unite_equal(centers, k, shares, origin, names, lowest)
    cheapest(centers, names, count, shares, costs, nearest, lowest)
    for _ in range(count - k):
        merge_cheapest(costs, names, count, shares, nearest, lowest, origin)
    write_merged(centers, weights, merged, totals, origins, origin, nearest)


@jit
def write_merged(
    centers: FloatArray,
    weights: FloatArray,
    merged: FloatArray,
    totals: FloatArray,
    origins: Indices,
    origin: Indices,
    places: Indices,
) -> None:
    """Write down the clusters that are left; see :func:`merge`.

    * ``origin`` (n,), in and out: of a cluster that was absorbed, the one that absorbed it; of the
      others, themselves.
    * ``places`` (n,): working memory.
    """
    n, k, d, count = centers.shape[0], merged.shape[0], centers.shape[1], 0
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
def unite_equal(
    centers: FloatArray,
    k: int,
    shares: FloatArray,
    origin: Indices,
    names: Indices,
    sums: FloatArray,
) -> int:
    """Merge clusters with equal centres, which costs nothing; at least ``k`` are left.

    Two parents have most of their centres in common, and what follows takes longer than in
    proportion to the number of clusters.

    * ``centers`` (n, d)
    * ``shares`` (n,), in and out: weights of the clusters, and then of those that are left, one
      after the other.
    * ``origin`` (n,), out: of a cluster that is absorbed, the one that absorbs it; of the others,
      themselves.
    * ``names`` (n,), out: the clusters that are left.
    * ``sums`` (n,): working memory.

    Returns how many are left.
    """
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
        origin[j] = names[place]
    return count


@jit
def cost(centers: FloatArray, i: int, j: int, weight: float, other: float) -> float:
    """Return wᵢwⱼ/(wᵢ+wⱼ)·‖cᵢ−cⱼ‖², the cost of merging two clusters.

    Written such that swapping i and j does not change a bit.
    """
    return squared_difference(centers, i, centers, j) / (1.0 / weight + 1.0 / other)


@jit
def cheapest(
    centers: FloatArray,
    names: Indices,
    count: int,
    weights: FloatArray,
    costs: FloatArray,
    nearest: Indices,
    lowest: FloatArray,
) -> None:
    """Set the costs of merging any two clusters, and the cheapest merger of each cluster.

    * ``centers`` (n, d)
    * ``names`` (n,): the rows of ``centers`` that are clusters, and ``count`` of them. All that
      follows is in this order.
    * ``weights`` (n,): all positive, and none above n.
    * ``costs`` (n, n), out: FORBIDDEN for a cluster with itself.
    * ``nearest`` (n,), out: the other cluster of the cheapest merger; the first if there are
      several.
    * ``lowest`` (n,), out: its cost.
    """
    for i in range(count):
        costs[i, i] = FORBIDDEN
        for j in range(i):
            value = cost(centers, names[i], names[j], weights[i], weights[j])
            costs[i, j] = costs[j, i] = min(value, MOST)
    for i in range(count):
        lowest[i] = minimum(costs[i], count)
        nearest[i] = position(costs[i], lowest[i])


@jit
def merge_cheapest(
    costs: FloatArray,
    names: Indices,
    count: int,
    weights: FloatArray,
    nearest: Indices,
    lowest: FloatArray,
    origin: Indices,
) -> None:
    """Merge the two clusters whose union costs least. The one with the lower index becomes it.

    The union is not nearer to a third cluster than the nearer of the two was. So only clusters
    whose nearest was one of the two have to search again.

    * ``costs``, ``names``, ``count``, ``weights``, ``nearest`` and ``lowest``: as in
      :func:`cheapest`; all but the names are modified.
    * ``origin`` (n,), in and out: of a cluster that is absorbed, the one that absorbs it.
    """
    one = position(lowest, minimum(lowest, count))
    other = nearest[one]
    a, b = min(one, other), max(one, other)
    origin[names[b]] = names[a]
    unite(costs, count, weights, a, b)
    lowest[b] = FORBIDDEN
    for j in range(count):
        if j == a or ((nearest[j] == a or nearest[j] == b) and lowest[j] < FORBIDDEN):
            lowest[j] = minimum(costs[j], count)
            nearest[j] = position(costs[j], lowest[j])


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


@jit(fastmath=FINITE)
def minimum(values: FloatArray, count: int) -> float:
    """Return the lowest of the first numbers."""
    lowest = FORBIDDEN
    for i in range(count):
        lowest = min(lowest, values[i])
    return lowest


@jit
def position(values: FloatArray, wanted: float) -> int:
    """Return the first index of a number."""
    for i in range(values.shape[0]):
        if values[i] == wanted:
            return i
    return 0
