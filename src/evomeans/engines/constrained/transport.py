"""The cheapest assignment of samples to clusters of limited sizes.

This is a transport problem with few sinks. Samples begin with the cluster that is cheapest at given
prices. Then they are shifted along shortest paths from overfull clusters to those with room, in a
graph whose nodes are the clusters: an arc from a to b is as long as the move of the cheapest sample
from a to b costs. These are successive shortest paths [1]_ on a graph of k + 1 nodes instead of
n + k. The last node is the sink that takes all samples; it lets the room of clusters be used.

Heap (a, b) holds the samples of cluster a, ordered by what they would cost more in cluster b. A
sample leaves all heaps of its cluster when it moves, so that heaps need deletion from the middle.
Nodes are numbers, ``place * k + b``, and a heap is the number of its root. Pairing heaps [2]_ are
built in linear time. Each is built only when its smallest sample leaves, and then from the samples
with small keys; all others follow if these have left too.

References
----------
.. [1] Ahuja, R. K., Magnanti, T. L. and Orlin, J. B. (1993). *Network Flows*, section 9.7.
.. [2] Fredman, M. L., Sedgewick, R., Sleator, D. D. and Tarjan, R. E. (1986). "The pairing heap: a
   new form of self-adjusting heap". Algorithmica 1, 111-129.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.bundle import bundle
from evomeans.compiled.jit import jit
from evomeans.engines.constrained.moves import ENDLESS, NONE
from evomeans.typing import FloatArray, Integers, Labels


@bundle
class Heaps(NamedTuple):
    """Heaps over all pairs of clusters.

    * ``root`` (k, k): the node with the smallest key, −1 in an empty heap.
    * ``least`` (k, k): the smallest key of heaps that are not built.
    * ``cut`` (k, k): heaps that are built hold all samples whose keys are not larger than this.
    * ``is_built`` (k, k): whether other nodes than the root are in the heap.
    * ``child``, ``next`` and ``before`` (n·k,): the first child of a node; its next sibling; and
      its previous one, or its parent if it is the first.
    """

    root: NDArray[np.int64]
    least: NDArray[np.float64]
    cut: NDArray[np.float64]
    is_built: NDArray[np.bool_]
    key: NDArray[np.float64]
    child: NDArray[np.int64]
    next: NDArray[np.int64]
    before: NDArray[np.int64]

    @classmethod
    def allocate(cls, n_samples: int, n_clusters: int) -> Heaps:
        """Reserve memory."""
        size = n_samples * n_clusters
        links: list[Any] = [np.empty(size, np.int64) for _ in range(3)]
        pairs = (n_clusters, n_clusters)
        root, is_built = np.empty(pairs, np.int64), np.empty(pairs, np.bool_)
        return cls(root, np.empty(pairs), np.empty(pairs), is_built, np.empty(size), *links)


@jit
def link(heaps: Heaps, one: int, other: int) -> int:
    """Unite two heaps given by their roots; return the root."""
    if one == NONE:
        return other
    if other == NONE:
        return one
    if heaps.key[other] < heaps.key[one]:
        one, other = other, one
    first = heaps.child[one]
    heaps.next[other] = first
    if first != NONE:
        heaps.before[first] = other
    heaps.child[one] = other
    heaps.before[other] = one
    return one


@jit(inline=False)
def unite_siblings(heaps: Heaps, first: int) -> int:
    """Unite a list of siblings, in pairs and then from the last pair on; return the root."""
    pairs = NONE
    while first != NONE:
        second = heaps.next[first]
        after = NONE if second == NONE else heaps.next[second]
        heaps.next[first] = NONE
        if second != NONE:
            heaps.next[second] = NONE
        root = link(heaps, first, second)
        heaps.next[root] = pairs
        pairs = root
        first = after
    root = NONE
    while pairs != NONE:
        after = heaps.next[pairs]
        heaps.next[pairs] = NONE
        root = link(heaps, root, pairs)
        pairs = after
    if root != NONE:
        heaps.before[root] = NONE
    return root


@jit
def insert(heaps: Heaps, a: int, b: int, node: int, key: float) -> None:
    """Put a node into heap (a, b)."""
    heaps.key[node] = key
    heaps.child[node] = heaps.next[node] = heaps.before[node] = NONE
    heaps.root[a, b] = link(heaps, heaps.root[a, b], node)


@jit(inline=False)
def remove(heaps: Heaps, a: int, b: int, node: int) -> None:
    """Take a node out of heap (a, b), wherever it is."""
    rest = unite_siblings(heaps, heaps.child[node])
    heaps.child[node] = NONE
    if heaps.root[a, b] == node:
        heaps.root[a, b] = rest
        return
    before, after = heaps.before[node], heaps.next[node]
    if heaps.child[before] == node:
        heaps.child[before] = after
    else:
        heaps.next[before] = after
    if after != NONE:
        heaps.before[after] = before
    heaps.root[a, b] = link(heaps, heaps.root[a, b], rest)


# Prices that differ from that of the sink by less than this share of the largest are its price.
ROUNDING = 1e-10
# Heaps are built from the samples whose keys are this far, or less, from the smallest to the mean.
SMALL_KEYS = 0.35


@bundle
class Flow(NamedTuple):
    """Where a transport stands; all arrays have an entry for each cluster and one for the sink.

    * ``sizes`` and ``flow``: samples of clusters, and what these hand on to the sink.
    * ``excess``: what nodes have too much; negative where they lack something.
    * ``prices``: sample i is in a cluster j with the least ``costs[i, j] - prices[j]``.
    * ``length``, ``before`` and ``is_done``: of shortest paths, the lengths, the nodes before, and
      which are final.
    * ``stop`` (1,): not zero if the result is no longer needed.
    """

    sizes: Integers
    flow: Integers
    excess: Integers
    prices: FloatArray
    length: FloatArray
    before: Integers
    is_done: NDArray[np.bool_]
    stop: Integers

    @classmethod
    def allocate(cls, n_clusters: int, stop: Integers | None = None) -> Flow:
        """Reserve memory; all prices are zero."""
        k = n_clusters + 1
        sizes, flow, excess, before = (np.zeros(k, np.int64) for _ in range(4))
        is_done, stop = np.zeros(k, np.bool_), np.zeros(1, np.int64) if stop is None else stop
        return cls(sizes, flow, excess, np.zeros(k), np.zeros(k), before, is_done, stop)


@jit
def transport(
    costs: FloatArray,
    items: Integers,
    low: Integers,
    high: Integers,
    labels: Integers,
    state: Flow,
    heaps: Heaps,
) -> bool:
    """Assign samples at the least total cost.

    * ``items`` (f,): the samples to assign; the others keep their labels, and count nothing.
    * ``low`` and ``high`` (k,): how many of them each cluster must and may have.
    * ``state``: prices to begin with, in and out: those of a similar problem save most of the work.

    Returns False if the limits leave no assignment, or if it was stopped.
    """
    k = costs.shape[1]
    begin(costs, items, low, high, labels, state)
    is_balanced = True
    for node in range(k + 1):
        is_balanced = is_balanced and state.excess[node] == 0
    if is_balanced:
        return True
    fill_heaps(costs, items, labels, state, heaps)
    while True:
        source = NONE
        for node in range(k + 1):
            if state.excess[node] > 0:
                source = node
        if source == NONE:
            return True
        if state.stop[0] != 0:
            return False
        target = find_path(low, high, state, heaps)
        if target == NONE:
            return False
        shift(costs, items, labels, target, state, heaps)


@jit
def fill_soon(
    costs: FloatArray, items: Integers, low: Integers, high: Integers, labels: Integers
) -> None:
    """Assign samples one after the other to the cheapest cluster that limits leave them.

    The limits must leave an assignment, and are used up. A cluster may have more than it must as
    long as there are more samples left than all clusters still must have.
    """
    k = costs.shape[1]
    spare = items.shape[0]
    for j in range(k):
        spare -= low[j]
    for p in range(items.shape[0]):
        i, best = items[p], NONE
        for j in range(k):
            may_have = high[j] > 0 and (low[j] > 0 or spare > 0)
            if may_have and (best == NONE or costs[i, j] < costs[i, best]):
                best = j
        labels[i] = best
        high[best] -= 1
        if low[best] > 0:
            low[best] -= 1
        else:
            spare -= 1


@jit
def begin(
    costs: FloatArray, items: Integers, low: Integers, high: Integers, labels: Integers, state: Flow
) -> None:
    """Assign every sample to its cheapest cluster at the prices, and see what is too much where.

    A cluster of negative price is full, and one of positive price has only what it must.
    """
    k = costs.shape[1]
    largest = 0.0
    for j in range(k):
        state.sizes[j] = 0
        # Relative to the sink, whose price is zero.
        state.prices[j] -= state.prices[k]
        largest = max(largest, abs(state.prices[j]))
    state.prices[k] = 0.0
    for j in range(k):
        if abs(state.prices[j]) <= ROUNDING * largest:
            state.prices[j] = 0.0
    for p in range(items.shape[0]):
        i = items[p]
        best, lowest = 0, costs[i, 0] - state.prices[0]
        for j in range(1, k):
            cost = costs[i, j] - state.prices[j]
            if cost < lowest:
                best, lowest = j, cost
        labels[i] = best
        state.sizes[best] += 1
    state.excess[k] = -items.shape[0]
    for j in range(k):
        if state.prices[j] < 0.0:
            flow = high[j]
        elif state.prices[j] > 0.0:
            flow = low[j]
        else:
            flow = min(max(state.sizes[j], low[j]), high[j])
        state.flow[j] = flow
        state.excess[j] = state.sizes[j] - flow
        state.excess[k] += flow


@jit
def fill_heaps(
    costs: FloatArray, items: Integers, labels: Integers, state: Flow, heaps: Heaps
) -> None:
    """Find the cheapest sample of every heap, and how cheap those are that it will hold."""
    k = costs.shape[1]
    for a in range(k):
        for b in range(k):
            heaps.root[a, b] = NONE
            heaps.least[a, b] = ENDLESS
            heaps.cut[a, b] = 0.0
            heaps.is_built[a, b] = False
    for p in range(items.shape[0]):
        i = items[p]
        a = labels[i]
        own = costs[i, a]
        for b in range(k):
            heaps.cut[a, b] += costs[i, b] - own
        enter(costs, items, p, a, heaps)
    for a in range(k):
        for b in range(k):
            mean = heaps.cut[a, b] / max(state.sizes[a], 1)
            heaps.cut[a, b] = heaps.least[a, b] + SMALL_KEYS * (mean - heaps.least[a, b])


@jit
def enter(costs: FloatArray, items: Integers, p: int, a: int, heaps: Heaps) -> None:
    """Put a sample into all heaps of its cluster that hold such keys."""
    i, k = items[p], costs.shape[1]
    for b in range(k):
        if b == a:
            continue
        key = costs[i, b] - costs[i, a]
        if heaps.is_built[a, b]:
            if key <= heaps.cut[a, b]:
                insert(heaps, a, b, p * k + b, key)
        elif key < heaps.least[a, b]:
            heaps.root[a, b] = p * k + b
            heaps.least[a, b] = key


@jit
def leave(
    costs: FloatArray, items: Integers, labels: Integers, p: int, a: int, heaps: Heaps
) -> None:
    """Take a sample out of all heaps of its cluster."""
    i, k, is_root = items[p], costs.shape[1], False
    for b in range(k):
        if b == a:
            continue
        if not heaps.is_built[a, b]:
            is_root = is_root or heaps.root[a, b] == p * k + b
        elif costs[i, b] - costs[i, a] <= heaps.cut[a, b]:
            remove(heaps, a, b, p * k + b)
    if is_root:
        build(costs, items, labels, p, a, heaps)
    for b in range(k):
        if b != a and heaps.is_built[a, b] and heaps.root[a, b] == NONE:
            complete(costs, items, labels, p, a, b, heaps)


@jit(inline=False)
def build(
    costs: FloatArray, items: Integers, labels: Integers, p: int, a: int, heaps: Heaps
) -> None:
    """Build the heaps of cluster a that are not, from its samples with small keys, but for one."""
    k = costs.shape[1]
    for b in range(k):
        if not heaps.is_built[a, b]:
            heaps.root[a, b] = NONE
    for other in range(items.shape[0]):
        i = items[other]
        if labels[i] != a or other == p:
            continue
        for b in range(k):
            key = costs[i, b] - costs[i, a]
            if b != a and not heaps.is_built[a, b] and key <= heaps.cut[a, b]:
                insert(heaps, a, b, other * k + b, key)
    for b in range(k):
        heaps.is_built[a, b] = True


@jit(inline=False)
def complete(
    costs: FloatArray, items: Integers, labels: Integers, p: int, a: int, b: int, heaps: Heaps
) -> None:
    """Put all samples of cluster a into heap (a, b), which is empty, but for one."""
    if heaps.cut[a, b] == ENDLESS:
        return
    heaps.cut[a, b] = ENDLESS
    for other in range(items.shape[0]):
        i = items[other]
        if labels[i] == a and other != p:
            insert(heaps, a, b, other * costs.shape[1] + b, costs[i, b] - costs[i, a])


@jit
def find_path(low: Integers, high: Integers, state: Flow, heaps: Heaps) -> int:
    """Find the node of the nearest lack, by Dijkstra's algorithm; adapt the prices; return it."""
    k = low.shape[0]
    for node in range(k + 1):
        state.length[node] = 0.0 if state.excess[node] > 0 else ENDLESS
        state.before[node] = NONE
        state.is_done[node] = False
    target, reach = NONE, ENDLESS
    while True:
        nearest, reach = NONE, ENDLESS
        for node in range(k + 1):
            if not state.is_done[node] and state.length[node] < reach:
                nearest, reach = node, state.length[node]
        if nearest == NONE:
            return NONE
        if state.excess[nearest] < 0:
            target = nearest
            break
        state.is_done[nearest] = True
        for node in range(k + 1):
            if state.is_done[node]:
                continue
            step = arc(nearest, node, low, high, state, heaps)
            if step < ENDLESS:
                # Rounding must not make it negative.
                step = max(step + state.prices[nearest] - state.prices[node], 0.0)
                if reach + step < state.length[node]:
                    state.length[node] = reach + step
                    state.before[node] = nearest
    for node in range(k + 1):
        state.prices[node] += min(state.length[node], reach)
    return target


@jit
def arc(a: int, b: int, low: Integers, high: Integers, state: Flow, heaps: Heaps) -> float:
    """Return what it costs to hand one sample on from a to b, endless if that is not possible."""
    k = low.shape[0]
    if b == k:
        return 0.0 if state.flow[a] < high[a] else ENDLESS
    if a == k:
        return 0.0 if state.flow[b] > low[b] else ENDLESS
    if not heaps.is_built[a, b]:
        return heaps.least[a, b]
    root = heaps.root[a, b]
    return ENDLESS if root == NONE else heaps.key[root]


@jit
def shift(
    costs: FloatArray, items: Integers, labels: Integers, target: int, state: Flow, heaps: Heaps
) -> None:
    """Hand one sample on along each arc of the path to a node.

    From its end on: no sample that has just come may be handed on in place of the one that the
    path was computed with.
    """
    k, node = costs.shape[1], target
    state.excess[target] += 1
    while state.before[node] != NONE:
        before = state.before[node]
        if node == k:
            state.flow[before] += 1
        elif before == k:
            state.flow[node] -= 1
        else:
            p = heaps.root[before, node] // k
            leave(costs, items, labels, p, before, heaps)
            labels[items[p]] = node
            enter(costs, items, p, node, heaps)
            state.sizes[before] -= 1
            state.sizes[node] += 1
        node = before
    state.excess[node] -= 1


def assign_within(costs: FloatArray, low: Integers, high: Integers) -> Labels:
    """Assign all samples at the least total cost; the limits must leave an assignment."""
    n, k = costs.shape
    costs, labels = np.ascontiguousarray(costs), np.empty(n, np.int64)
    memory = Flow.allocate(k), Heaps.allocate(n, k)
    transport(costs, np.arange(n), low, np.minimum(high, n), labels, *memory)
    return labels.astype(np.int32)
