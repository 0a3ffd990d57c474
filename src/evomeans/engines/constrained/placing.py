"""Where bound items begin: those that links or sizes keep from going where they are closest."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.jit import jit
from evomeans.engines.constrained.layout import Items

FloatArray = NDArray[np.float64]
Integers = NDArray[np.int64]
NONE = -1
ENDLESS = 1e300


@jit
def place_bound(
    items: Items,
    costs: FloatArray,
    bound: Integers,
    high: Integers,
    window: int,
    labels: Integers,
    counts: Integers,
) -> int:
    """Place bound items one after the other where they are cheapest, and not blocked.

    Next is the item with the fewest clusters left; of several, the one that has most to lose if its
    cheapest cluster is blocked too, which is its regret.

    Parameters
    ----------
    items : Items
    costs : (n, k) array
    bound : (b,) array
        The items to place, changed: in the order in which they were placed.
    high : (k,) array
        The most samples that clusters may have.
    window : int
        How many of the waiting items are looked at for the next one.
    labels : (n,) array, out
        Must be −1 for bound items.
    counts : (k,) array, out
        Samples that were placed in the clusters.

    Returns
    -------
    left : int
        The number of items that could not be placed, because all clusters are blocked.
    """
    left, end = 0, bound.shape[0]
    for j in range(counts.shape[0]):
        counts[j] = 0
    for place in range(end):
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
