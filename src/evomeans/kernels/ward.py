"""Ward's method: merge the clusters whose union raises the sum of squares least, pair by pair.

The costs of all pairs are kept for up to MOST_COSTS clusters; :mod:`evomeans.kernels.near` merges
more of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evomeans.compiled.bundle import bundle
from evomeans.compiled.jit import FINITE, jit
from evomeans.compiled.ready import Call
from evomeans.kernels import MOST_COSTS, near
from evomeans.kernels.vectors import coordinate_sum, is_equal, minimum, squared_difference
from evomeans.typing import FloatArray, Indices, Integers

# An odd number that spreads bits well: 2⁶⁴ over the golden ratio.
MIXER = np.uint64(0x9E3779B97F4A7C15)
# Cost of an impossible merger, and the upper limit of all other costs. With infinity, minima would
# not be vectorised.
FORBIDDEN, MOST_COST = 1e200, 1e199


@bundle
class MergingArrays(NamedTuple):
    """Working memory for n clusters.

    * ``origin``, by given clusters: of one that has been absorbed, the one that absorbed it; of the
      others, themselves.

    By clusters that are left after equal ones have been merged:

    * ``shares``: weights, those given divided by the heaviest.
    * ``lowest``: the cost of the cheapest merger with another one, or a lower bound of it;
      FORBIDDEN for a cluster that has been absorbed.
    * ``nearest``: the other cluster.
    * ``names``: the given cluster.
    * ``costs`` (n, n): of merging any two; empty for more than MOST_COSTS clusters.
    """

    shares: FloatArray
    lowest: FloatArray
    nearest: Indices
    origin: Indices
    names: Indices
    costs: FloatArray

    @classmethod
    def allocate(cls, n: int) -> MergingArrays:
        """Allocate the arrays."""
        shares, lowest = np.empty((2, n))
        nearest, origin, names = np.empty((3, n), np.intp)
        few = n if n <= MOST_COSTS else 0
        return cls(shares, lowest, nearest, origin, names, np.empty((few, few)))


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
    * ``stop`` (1,): more than MOST_COSTS clusters are merged until another thread sets this. The
      result is undefined then.

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
    arrays = MergingArrays.allocate(n)
    if n <= MOST_COSTS:
        # Costs are only compared: a common factor does not matter, and none of them overflows.
        np.divide(weights, weights.max(), out=arrays.shares)
        merge(centers, weights, merged, totals, origins, arrays)
    else:
        stop = np.zeros(1, np.int64) if stop is None else stop
        arrays.origin[:] = absorbers_of_many(centers, weights, k, stop)
        if stop[0] == 0:
            collect(centers, weights, merged, totals, origins, arrays)
    return merged, totals, kept[origins]


def absorbers_of_many(centers: FloatArray, weights: FloatArray, k: int, stop: Integers) -> Indices:
    """Merge equal centres, then the cheapest; return which cluster has absorbed each, or itself."""
    n, d = centers.shape
    # Sums of bits that wrap around; adding zero gives both zeros the same bits.
    bits = (centers + 0.0).view(np.uint64)
    bits ^= bits >> np.uint64(29)
    sums = (bits * (np.arange(1, 2 * d, 2, dtype=np.uint64) * MIXER)).sum(axis=1)
    _, places, which = np.unique(sums, return_index=True, return_inverse=True)
    origin, own = places[which], np.arange(n)
    others = np.flatnonzero(origin != own)
    equal = others[(centers[others] == centers[origin[others]]).all(axis=1)][: n - k]
    own[equal] = origin[equal]
    left = np.flatnonzero(own == np.arange(n))
    if len(left) > k:
        united = np.zeros(len(left))
        np.add.at(united, np.searchsorted(left, own), weights)
        own[left] = left[near.absorbers(centers[left], united, k, stop)]
    return own


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
    k = merged.shape[0]
    merge_by_costs(centers, k, unite_equal(centers, k, arrays), arrays)
    collect(centers, weights, merged, totals, origins, arrays)


@jit
def collect(
    centers: FloatArray,
    weights: FloatArray,
    merged: FloatArray,
    totals: FloatArray,
    origins: Indices,
    arrays: MergingArrays,
) -> None:
    """Set means and weights of the clusters that are left; see :func:`merge`."""
    (n, d), k, origin, places = centers.shape, merged.shape[0], arrays.origin, arrays.nearest
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
        # Sums are read much faster than a coordinate of every centre.
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


def kernel_calls(n: int = 0) -> list[Call]:
    """Return what merging ``n`` clusters or fewer calls, to be compiled before."""
    one, square, index = np.zeros(1), np.zeros((1, 1)), np.zeros(1, np.intp)
    arguments = square, one, square, one, index, MergingArrays.allocate(1)
    calls = [Call(merge, arguments, 1.3)]
    if n > MOST_COSTS:
        calls += [Call(collect, arguments, 0.2), *near.kernel_calls()]
    return calls
