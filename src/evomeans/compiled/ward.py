"""Ward's costs, compiled: what the sum of squares grows by when clusters are merged."""

from __future__ import annotations

from typing import Any

from evomeans.compiled.jit import FINITE, jit
from evomeans.compiled.vectors import squared_difference

# Of a merger that is out of the question, and the most that any other costs. Infinity would keep
# minima from being vectorised.
FORBIDDEN, MOST = 1e200, 1e199


@jit
def cost(centers: Any, weights: Any, i: int, j: int) -> Any:
    """Return wᵢwⱼ/(wᵢ+wⱼ)·‖cᵢ−cⱼ‖², what merging two clusters costs.

    Written such that it is to the last bit the same for i with j as for j with i.
    """
    return squared_difference(centers, i, centers, j) / (1.0 / weights[i] + 1.0 / weights[j])


@jit
def cheapest(centers: Any, weights: Any, costs: Any, nearest: Any, lowest: Any) -> None:
    """Set the costs of merging any two clusters, and for each the cheapest of them.

    Parameters
    ----------
    centers : (n, d) array
    weights : (n,) array
        All positive, and none above one.
    costs : (n, n) array, out
        FORBIDDEN for a cluster with itself.
    nearest : (n,) array of integers, out
        With which it is cheapest; the first if there are several.
    lowest : (n,) array, out
        What that costs.
    """
    for i in range(centers.shape[0]):
        costs[i, i] = FORBIDDEN
        for j in range(i):
            costs[i, j] = costs[j, i] = min(cost(centers, weights, i, j), MOST)
    for i in range(centers.shape[0]):
        lowest[i] = minimum(costs[i])
        nearest[i] = position(costs[i], lowest[i])


@jit
def mergers(
    costs: Any, weights: Any, nearest: Any, lowest: Any, absorbing: Any, absorbed: Any
) -> None:
    """Merge the two clusters whose union costs least, again and again.

    No merger brings a third cluster nearer than the nearer of the two was: only those that were
    nearest to one of the two have to look for their nearest again.

    Parameters
    ----------
    costs, weights, nearest, lowest
        As in :func:`cheapest`; modified.
    absorbing, absorbed : (count,) arrays of integers, out
        The two clusters of every merger; the first has the lower index, and stands for the union.
    """
    n = weights.shape[0]
    for merger in range(absorbing.shape[0]):
        one = position(lowest, minimum(lowest))
        other = nearest[one]
        a, b = min(one, other), max(one, other)
        absorbing[merger], absorbed[merger] = a, b
        unite(costs, weights, a, b)
        lowest[b] = FORBIDDEN
        for j in range(n):
            if j == a or ((nearest[j] == a or nearest[j] == b) and lowest[j] < FORBIDDEN):
                lowest[j] = minimum(costs[j])
                nearest[j] = position(costs[j], lowest[j])


@jit(fastmath=FINITE)
def unite(costs: Any, weights: Any, a: int, b: int) -> None:
    """Let cluster ``a`` be the union of ``a`` and ``b``.

    What merging it with another costs follows from its parts, by the formula of Lance and Williams.
    """
    first, second, own = weights[a], weights[b], costs[a, b]
    for j in range(weights.shape[0]):
        value = (first + weights[j]) * costs[a, j] + (second + weights[j]) * costs[b, j]
        value = (value - weights[j] * own) / (first + second + weights[j])
        # Rounding must not make it negative.
        costs[a, j] = min(max(value, 0.0), FORBIDDEN)
    costs[a, a] = costs[a, b] = FORBIDDEN
    for j in range(weights.shape[0]):
        costs[j, a] = costs[a, j]
        costs[j, b] = FORBIDDEN
    weights[a] += weights[b]


@jit(fastmath=FINITE)
def minimum(values: Any) -> float:
    """Return the lowest of some numbers."""
    lowest = FORBIDDEN
    for i in range(values.shape[0]):
        lowest = min(lowest, values[i])
    return lowest


@jit
def position(values: Any, wanted: float) -> int:
    """Return where a number is found first."""
    for i in range(values.shape[0]):
        if values[i] == wanted:
            return i
    return 0
