"""The arrays that the kernels of the constrained engine share, and where bound items go."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.bundle import bundle
from evomeans.compiled.jit import jit
from evomeans.typing import FloatArray, Integers

# No item, cluster or node; and a cost above all others, since kernels do without infinity.
NONE, ENDLESS = -1, 1e300


@bundle
class Items(NamedTuple):
    """What is assigned to clusters: samples, or groups of samples that must stay together.

    * ``points`` (n, d): in the frame; of groups, the means of their samples.
    * ``weights`` (n,)
    * ``counts`` (n,): how many samples they are.
    * ``hard_start`` (n + 1,) and ``hard`` (p,): ``hard[hard_start[i]:hard_start[i + 1]]`` must not
      be in the cluster of i.
    * ``soft_start`` (n + 1,), ``soft`` (q,) and ``penalties`` (q,): what it costs if these are in
      the cluster of i. Negative for pairs that belong together.
    """

    points: FloatArray
    weights: FloatArray
    counts: Integers
    hard_start: Integers
    hard: Integers
    soft_start: Integers
    soft: Integers
    penalties: FloatArray


@bundle
class Clustering(NamedTuple):
    """A clustering, with the means of its clusters.

    * ``labels`` (n,)
    * ``means`` (k, d): those of empty clusters are anywhere.
    * ``weights`` and ``counts`` (k,): total weight, and number of samples.
    * ``low`` and ``high`` (k,): how many samples each must and may have.
    """

    labels: Integers
    means: FloatArray
    weights: FloatArray
    counts: Integers
    low: Integers
    high: Integers


@bundle
class MoveMemory(NamedTuple):
    """Memory of the moves.

    * ``squares`` and ``extra`` (k,): of one item, squared distances to the means, and penalties.
    * ``is_blocked`` (k,): where an item is met by one from which it must be kept apart.
    * ``chain`` (n,): items of a chain.
    * ``is_in_chain`` (n,): always False between two moves.
    * ``sums`` (k, d)
    * ``shifts`` (2, d): how the moments of two clusters change.
    * ``numbers`` (4,): of a chain: weights that leave the first and the second cluster; the change
      of the objective; and the size of the terms that make it up.
    """

    squares: FloatArray
    extra: FloatArray
    is_blocked: NDArray[np.bool_]
    chain: Integers
    is_in_chain: NDArray[np.bool_]
    sums: FloatArray
    shifts: FloatArray
    numbers: FloatArray

    @classmethod
    def allocate(cls, n_items: int, n_clusters: int, n_features: int) -> MoveMemory:
        """Reserve memory."""
        squares, extra, is_blocked = *np.empty((2, n_clusters)), np.empty(n_clusters, np.bool_)
        chain, is_in_chain = np.empty(n_items, np.int64), np.zeros(n_items, np.bool_)
        sums, shifts = np.empty((n_clusters, n_features)), np.empty((2, n_features))
        return cls(squares, extra, is_blocked, chain, is_in_chain, sums, shifts, np.empty(4))


@jit
def place_bound(
    items: Items,
    costs: FloatArray,
    bound: Integers,
    high: Integers,
    window: int,
    labels: Integers,
    counts: Integers,
    first: int,
    last: int,
) -> int:
    """Place bound items one after the other where they are cheapest, and not blocked.

    Next is the item with the fewest clusters left; of several, the one that has most to lose if its
    cheapest cluster is blocked too, which is its regret.

    * ``bound`` (b,): the items to place, changed: in the order in which they were placed. The
      places from ``first`` to ``last`` are filled. Those before must be filled, and later ones are
      looked at, up to a ``window`` of waiting items.
    * ``high`` (k,): the most samples that clusters may have.
    * ``labels`` (n,), out: must be −1 for bound items.
    * ``counts`` (k,), in and out: samples that were placed in the clusters.

    Returns how many items could not be placed, because all clusters are blocked.
    """
    left, end = 0, bound.shape[0]
    for place in range(first, last):
        chosen, fewest, largest, where = place, costs.shape[1] + 1, -1.0, NONE
        for p in range(place, min(end, place + window)):
            n_open, regret, best = look(items, costs, bound[p], high, labels, counts)
            if n_open < fewest or (n_open == fewest and regret > largest):
                chosen, fewest, largest, where = p, n_open, regret, best
            if n_open == 0:
                break
        i = bound[chosen]
        bound[chosen], bound[place] = bound[place], i
        if where == NONE:
            left += 1
        else:
            labels[i] = where
            counts[where] += items.counts[i]
    return left


@jit(inline=False)
def look(
    items: Items, costs: FloatArray, i: int, high: Integers, labels: Integers, counts: Integers
) -> tuple[int, float, int]:
    """Return how many clusters are open to an item, its regret, and the cheapest one."""
    n_open, best, lowest, second = 0, NONE, ENDLESS, ENDLESS
    for j in range(costs.shape[1]):
        if counts[j] + items.counts[i] > high[j]:
            continue
        is_open, cost = True, costs[i, j]
        for e in range(items.hard_start[i], items.hard_start[i + 1]):
            is_open = is_open and labels[items.hard[e]] != j
        if not is_open:
            continue
        for e in range(items.soft_start[i], items.soft_start[i + 1]):
            if labels[items.soft[e]] == j:
                cost += items.penalties[e]
        n_open += 1
        if cost < lowest:
            best, lowest, second = j, cost, lowest
        elif cost < second:
            second = cost
    return n_open, second - lowest if second < ENDLESS else ENDLESS, best
