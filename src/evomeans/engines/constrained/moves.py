"""Where items are placed, and how they move within their constraints to lower the objective.

An item moves to another cluster if sizes allow it. If it meets an item there from which it must be
kept apart, that one takes its place, and so on: the items of two clusters that are connected by
cannot-links change sides together, as in the chains of Kempe for colourings of graphs. What a move
changes is computed exactly, with the means moving along, as in Hartigan's method.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.bundle import bundle
from evomeans.compiled.jit import jit
from evomeans.kernels.vectors import squared_difference
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
    * ``stop`` (1,): not zero if the result is no longer needed.
    """

    squares: FloatArray
    extra: FloatArray
    is_blocked: NDArray[np.bool_]
    chain: Integers
    is_in_chain: NDArray[np.bool_]
    sums: FloatArray
    shifts: FloatArray
    stop: Integers

    @classmethod
    def allocate(cls, n_items: int, n_clusters: int, n_features: int, stop: Integers) -> MoveMemory:
        """Reserve memory."""
        squares, extra, is_blocked = *np.empty((2, n_clusters)), np.empty(n_clusters, np.bool_)
        chain, is_in_chain = np.empty(n_items, np.int64), np.zeros(n_items, np.bool_)
        sums, shifts = np.empty((n_clusters, n_features)), np.empty((2, n_features))
        return cls(squares, extra, is_blocked, chain, is_in_chain, sums, shifts, stop)


@jit
def place_bound(
    items: Items,
    clusters: Clustering,
    costs: FloatArray,
    bound: Integers,
    window: int,
    stop: Integers,
) -> int:
    """Place bound items one after the other where they are cheapest, and not blocked.

    Next is the item with the fewest clusters left; of several, the one that has most to lose if its
    cheapest cluster is blocked too, which is its regret.

    * ``clusters``: labels of bound items must be −1; counts are of what was placed before.
    * ``costs`` (n, k): of items in clusters.
    * ``bound`` (b,): the items to place, changed: in the order in which they were placed.
    * ``window``: how many waiting items are looked at for the next one.
    * ``stop`` (1,): not zero if the result is no longer needed.

    Returns how many items could not be placed, because all clusters are blocked.
    """
    left, end = 0, bound.shape[0]
    for place in range(end):
        if stop[0] != 0:
            break
        chosen, fewest, largest, where = place, costs.shape[1] + 1, -1.0, NONE
        for p in range(place, min(end, place + window)):
            n_open, regret, best = look(items, clusters, costs, bound[p])
            if n_open < fewest or (n_open == fewest and regret > largest):
                chosen, fewest, largest, where = p, n_open, regret, best
            if n_open == 0:
                break
        i = bound[chosen]
        bound[chosen], bound[place] = bound[place], i
        if where == NONE:
            left += 1
        else:
            clusters.labels[i] = where
            clusters.counts[where] += items.counts[i]
    return left


@jit(inline=False)
def look(items: Items, clusters: Clustering, costs: FloatArray, i: int) -> tuple[int, float, int]:
    """Return how many clusters are open to an item, its regret, and the cheapest one."""
    n_open, best, lowest, second = 0, NONE, ENDLESS, ENDLESS
    for j in range(costs.shape[1]):
        if clusters.counts[j] + items.counts[i] > clusters.high[j]:
            continue
        is_open, cost = True, costs[i, j]
        for e in range(items.hard_start[i], items.hard_start[i + 1]):
            is_open = is_open and clusters.labels[items.hard[e]] != j
        if not is_open:
            continue
        for e in range(items.soft_start[i], items.soft_start[i + 1]):
            if clusters.labels[items.soft[e]] == j:
                cost += items.penalties[e]
        n_open += 1
        if cost < lowest:
            best, lowest, second = j, cost, lowest
        elif cost < second:
            second = cost
    return n_open, second - lowest if second < ENDLESS else ENDLESS, best


# What is less than this share of the terms that make it up is rounding.
LEAST_GAIN = 1e-9
# The most items that change sides together.
LONGEST_CHAIN = 256


@jit(inline=False)
def measure(
    points: FloatArray,
    weights: FloatArray,
    costs: FloatArray,
    means: FloatArray,
    columns: Integers,
    least_weight: float,
) -> None:
    """Fill in what every item costs in some clusters, its weight times the squared distance.

    Items without weight count a little, so that they go where they are closest.
    """
    for i in range(costs.shape[0]):
        weight = max(weights[i], least_weight)
        for c in range(columns.shape[0]):
            j = columns[c]
            costs[i, j] = weight * squared_difference(points, i, means, j)


@jit(inline=False)
def centre(items: Items, clusters: Clustering, work: MoveMemory) -> float:
    """Compute means, weights and counts from the labels; return the sum of squares.

    Those of empty clusters stay where they are.
    """
    (n, d), k = items.points.shape, clusters.means.shape[0]
    labels, means, weights = clusters.labels, clusters.means, clusters.weights
    for j in range(k):
        weights[j] = 0.0
        clusters.counts[j] = 0
    for i in range(n):
        weights[labels[i]] += items.weights[i]
        clusters.counts[labels[i]] += items.counts[i]
    # From where they are, and twice: the second time, differences are as small as clusters are.
    for _ in range(2):
        for j in range(k):
            for t in range(d):
                work.sums[j, t] = 0.0
        for i in range(n):
            j, weight = labels[i], items.weights[i]
            for t in range(d):
                work.sums[j, t] += weight * (items.points[i, t] - means[j, t])
        for j in range(k):
            if weights[j] > 0.0:
                for t in range(d):
                    means[j, t] += work.sums[j, t] / weights[j]
    total = 0.0
    for i in range(n):
        total += items.weights[i] * squared_difference(items.points, i, means, labels[i])
    return total


@jit(inline=False)
def penalty(items: Items, labels: Integers) -> float:
    """Add up what all pairs cost that are together; every pair is listed twice."""
    total = 0.0
    for i in range(items.points.shape[0]):
        for e in range(items.soft_start[i], items.soft_start[i + 1]):
            if labels[items.soft[e]] == labels[i]:
                total += 0.5 * items.penalties[e]
    return total


@jit(inline=False)
def move_items(items: Items, clusters: Clustering, work: MoveMemory) -> int:
    """Visit all items once; move those that lower the objective, and return how many did."""
    moved = 0
    for i in range(items.weights.shape[0]):
        if work.stop[0] != 0:
            break
        if items.weights[i] > 0.0 or items.soft_start[i] < items.soft_start[i + 1]:
            moved += move_item(items, clusters, i, work)
    return moved


@jit(inline=False)
def move_item(items: Items, clusters: Clustering, i: int, work: MoveMemory) -> bool:
    """Move an item, or a chain that begins with it, to the best cluster if that lowers the cost."""
    k, a, weight = clusters.means.shape[0], clusters.labels[i], items.weights[i]
    look_around(items, clusters, i, work)
    rest = clusters.weights[a] - weight
    saved = 0.0
    if rest > 0.0:
        saved = work.squares[a] * weight * clusters.weights[a] / rest
    saved += work.extra[a]
    best, lowest = a, 0.0
    for b in range(k):
        if b == a or work.is_blocked[b] or not has_room(clusters, a, b, items.counts[i], 0):
            continue
        total = clusters.weights[b]
        spent = work.extra[b]
        if total > 0.0:
            spent += work.squares[b] * weight * total / (total + weight)
        change = spent - saved
        if change < lowest and -change > LEAST_GAIN * (abs(saved) + abs(spent)):
            best, lowest = b, change
    if best != a:
        put(items, clusters, i, best)
        return True
    if items.hard_start[i] == items.hard_start[i + 1]:
        return False
    for b in range(k):
        if work.is_blocked[b] and b != a:
            length = follow_chain(items, clusters, i, b, work)
            if length > 0 and is_better(items, clusters, a, b, length, work):
                for p in range(length):
                    mover = work.chain[p]
                    put(items, clusters, mover, b if clusters.labels[mover] == a else a)
                return True
    return False


@jit
def look_around(items: Items, clusters: Clustering, i: int, work: MoveMemory) -> None:
    """Measure how far all clusters are from an item, and whom it meets there."""
    for j in range(clusters.means.shape[0]):
        work.squares[j] = squared_difference(items.points, i, clusters.means, j)
        work.extra[j] = 0.0
        work.is_blocked[j] = False
    for e in range(items.hard_start[i], items.hard_start[i + 1]):
        work.is_blocked[clusters.labels[items.hard[e]]] = True
    for e in range(items.soft_start[i], items.soft_start[i + 1]):
        work.extra[clusters.labels[items.soft[e]]] += items.penalties[e]


@jit
def has_room(clusters: Clustering, a: int, b: int, leave: int, come: int) -> bool:
    """Whether so many samples may leave cluster a for b, and so many come back."""
    first, second = clusters.counts[a] - leave + come, clusters.counts[b] + leave - come
    is_first = clusters.low[a] <= first <= clusters.high[a]
    return is_first and clusters.low[b] <= second <= clusters.high[b]


@jit
def put(items: Items, clusters: Clustering, i: int, b: int) -> None:
    """Move one item; the means follow."""
    a, weight = clusters.labels[i], items.weights[i]
    rest, total = clusters.weights[a] - weight, clusters.weights[b] + weight
    for t in range(items.points.shape[1]):
        x = items.points[i, t]
        if rest > 0.0:
            clusters.means[a, t] += (clusters.means[a, t] - x) * (weight / rest)
        if total > 0.0:
            clusters.means[b, t] += (x - clusters.means[b, t]) * (weight / total)
    clusters.labels[i] = b
    clusters.weights[a], clusters.weights[b] = max(rest, 0.0), total
    clusters.counts[a] -= items.counts[i]
    clusters.counts[b] += items.counts[i]


@jit
def follow_chain(items: Items, clusters: Clustering, i: int, b: int, work: MoveMemory) -> int:
    """Collect the items that change sides if one moves to cluster b; return how many.

    Zero if they are too many.
    """
    a = clusters.labels[i]
    work.chain[0] = i
    work.is_in_chain[i] = True
    length, place = 1, 0
    while place < length and length <= LONGEST_CHAIN:
        item = work.chain[place]
        other = b if clusters.labels[item] == a else a
        for e in range(items.hard_start[item], items.hard_start[item + 1]):
            neighbour = items.hard[e]
            if clusters.labels[neighbour] == other and not work.is_in_chain[neighbour]:
                work.is_in_chain[neighbour] = True
                work.chain[length] = neighbour
                length += 1
        place += 1
    for p in range(length):
        work.is_in_chain[work.chain[p]] = False
    return length if length <= LONGEST_CHAIN else 0


@jit(inline=False)
def is_better(
    items: Items, clusters: Clustering, a: int, b: int, length: int, work: MoveMemory
) -> bool:
    """Whether the objective falls if the items of a chain change sides, and sizes allow it.

    With centres where they are, the sum of squares changes by the terms of these items. Then each
    mean moves to the new one, by the change of the moment over the new weight, which lowers the sum
    by that squared times the new weight.
    """
    leave = come = 0
    for p in range(length):
        if clusters.labels[work.chain[p]] == a:
            leave += items.counts[work.chain[p]]
        else:
            come += items.counts[work.chain[p]]
    if not has_room(clusters, a, b, leave, come):
        return False
    change, size, more = add_up(items, clusters, a, b, length, work)
    for side in range(2):
        weight = clusters.weights[a] + more if side == 0 else clusters.weights[b] - more
        if weight > 0.0:
            for t in range(items.points.shape[1]):
                change -= work.shifts[side, t] * (work.shifts[side, t] / weight)
    return -change > LEAST_GAIN * size


@jit
def add_up(
    items: Items, clusters: Clustering, a: int, b: int, length: int, work: MoveMemory
) -> tuple[float, float, float]:
    """Add up what changes for the items of a chain, with all centres where they are.

    Returns the change, the size of the terms that make it up, and the weight that ``a`` gains.
    """
    d = items.points.shape[1]
    left = came = change = size = 0.0
    for t in range(d):
        work.shifts[0, t] = work.shifts[1, t] = 0.0
    for p in range(length):
        work.is_in_chain[work.chain[p]] = True
    for p in range(length):
        i = work.chain[p]
        weight, is_leaving = items.weights[i], clusters.labels[i] == a
        first = weight * squared_difference(items.points, i, clusters.means, a)
        second = weight * squared_difference(items.points, i, clusters.means, b)
        change += second - first if is_leaving else first - second
        size += first + second
        if is_leaving:
            left += weight
        else:
            came += weight
        signed = -weight if is_leaving else weight
        for t in range(d):
            work.shifts[0, t] += signed * (items.points[i, t] - clusters.means[a, t])
            work.shifts[1, t] -= signed * (items.points[i, t] - clusters.means[b, t])
        soft = penalty_change(items, clusters, i, a, b, work)
        change += soft
        size += abs(soft)
    for p in range(length):
        work.is_in_chain[work.chain[p]] = False
    return change, size, came - left


@jit
def penalty_change(
    items: Items, clusters: Clustering, i: int, a: int, b: int, work: MoveMemory
) -> float:
    """Return how the penalties of an item change if it changes sides, with its chain.

    Of two items of the chain, both change sides, and nothing changes between them.
    """
    own = clusters.labels[i]
    new, change = b if own == a else a, 0.0
    for e in range(items.soft_start[i], items.soft_start[i + 1]):
        there = clusters.labels[items.soft[e]]
        if not work.is_in_chain[items.soft[e]]:
            if there == new:
                change += items.penalties[e]
            elif there == own:
                change -= items.penalties[e]
    return change


# Items of each cluster that are tried with each other cluster: those that cost least more there.
CANDIDATES = 16


@jit(inline=False)
def exchange_items(
    items: Items,
    clusters: Clustering,
    costs: FloatArray,
    candidates: Integers,
    work: MoveMemory,
) -> int:
    """Exchange pairs of items that lower the objective; return how many.

    * ``costs`` (n, k): of items in clusters.
    * ``candidates`` (k, k, CANDIDATES): NONE; filled in here.
    """
    k, exchanged = clusters.means.shape[0], 0
    list_candidates(items, clusters, costs, candidates)
    for a in range(k):
        for b in range(a + 1, k):
            if work.stop[0] != 0:
                return exchanged
            if has_room(clusters, a, b, 1, 0) and has_room(clusters, a, b, 0, 1):
                # Single moves have seen to these.
                continue
            for p in range(CANDIDATES):
                for q in range(CANDIDATES):
                    i, j = candidates[a, b, p], candidates[b, a, q]
                    if i == NONE or j == NONE:
                        break
                    if clusters.labels[i] != a or clusters.labels[j] != b:
                        continue
                    if not can_pay(items, clusters, costs, i, j, a, b):
                        continue
                    work.chain[0], work.chain[1] = i, j
                    if is_better(items, clusters, a, b, 2, work):
                        put(items, clusters, i, b)
                        put(items, clusters, j, a)
                        exchanged += 1
    return exchanged


@jit
def can_pay(
    items: Items, clusters: Clustering, costs: FloatArray, i: int, j: int, a: int, b: int
) -> bool:
    """Whether an exchange of i in a and j in b could lower the objective, by a quick bound.

    Means that move along lower it by no more than (wᵢ‖xᵢ − c‖ + wⱼ‖xⱼ − c‖)² / W each.
    """
    if (
        items.soft_start[i] < items.soft_start[i + 1]
        or items.soft_start[j] < items.soft_start[j + 1]
    ):
        return True
    one, other = items.weights[i], items.weights[j]
    more = costs[i, b] - costs[i, a] + costs[j, a] - costs[j, b]
    first = math.sqrt(one * costs[i, a]) + math.sqrt(other * costs[j, a])
    second = math.sqrt(one * costs[i, b]) + math.sqrt(other * costs[j, b])
    rest = clusters.weights[a] - one + other, clusters.weights[b] - other + one
    return more * rest[0] * rest[1] < first * first * rest[1] + second * second * rest[0]


@jit
def list_candidates(
    items: Items, clusters: Clustering, costs: FloatArray, candidates: Integers
) -> None:
    """List the items of each cluster that cost least more in each other one, cheapest first."""
    k = clusters.means.shape[0]
    for i in range(costs.shape[0]):
        # Where others have to give way, chains have been tried.
        if items.hard_start[i] < items.hard_start[i + 1]:
            continue
        a = clusters.labels[i]
        for b in range(k):
            if b == a:
                continue
            more, p = costs[i, b] - costs[i, a], CANDIDATES
            while p > 0:
                other = candidates[a, b, p - 1]
                if other != NONE and costs[other, b] - costs[other, a] <= more:
                    break
                if p < CANDIDATES:
                    candidates[a, b, p] = other
                p -= 1
            if p < CANDIDATES:
                candidates[a, b, p] = i
