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

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.bundle import bundle
from evomeans.compiled.jit import jit
from evomeans.engines.constrained.moves import ENDLESS, NONE
from evomeans.typing import FloatArray, Integers, Labels


@bundle
class Problem(NamedTuple):
    """What is to be assigned.

    * ``costs`` (n, k): of each sample in each cluster.
    * ``items`` (f,): the samples to assign; the others keep their labels, and count nothing.
    * ``low`` and ``high`` (k,): how many of them each cluster must and may have.
    * ``labels`` (n,), out.
    """

    costs: FloatArray
    items: Integers
    low: Integers
    high: Integers
    labels: Integers


@bundle
class Heaps(NamedTuple):
    """Heaps over all pairs of clusters.

    * ``root`` and ``least`` (k, k): the node with the smallest key, −1 in an empty heap; and that
      key, endless there.
    * ``cut`` (k, k): heaps that are built hold all samples whose keys are not larger than this.
    * ``is_built`` (k,): whether other nodes than the root are in the heaps of a cluster.
    * ``key``, ``child``, ``next`` and ``before`` (n·k,): the key of a node; its first child; its
      next sibling; and its previous one, or its parent if it is the first.
    """

    root: Integers
    least: FloatArray
    cut: FloatArray
    is_built: NDArray[np.bool_]
    key: FloatArray
    child: Integers
    next: Integers
    before: Integers

    @classmethod
    def allocate(cls, n_samples: int, n_clusters: int) -> Heaps:
        """Reserve memory."""
        size, pairs = n_samples * n_clusters, (n_clusters, n_clusters)
        root, is_built = np.empty(pairs, np.int64), np.empty(n_clusters, np.bool_)
        links = np.empty((3, size), np.int64)
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
def set_root(heaps: Heaps, a: int, b: int, root: int) -> None:
    """Let a node be the root of heap (a, b)."""
    heaps.root[a, b] = root
    heaps.least[a, b] = ENDLESS if root == NONE else heaps.key[root]


@jit
def insert(heaps: Heaps, a: int, b: int, node: int, key: float) -> None:
    """Put a node into heap (a, b)."""
    heaps.key[node] = key
    heaps.child[node] = heaps.next[node] = heaps.before[node] = NONE
    set_root(heaps, a, b, link(heaps, heaps.root[a, b], node))


@jit(inline=False)
def remove(heaps: Heaps, a: int, b: int, node: int) -> None:
    """Take a node out of heap (a, b), wherever it is."""
    rest = unite_siblings(heaps, heaps.child[node])
    heaps.child[node] = NONE
    if heaps.root[a, b] == node:
        set_root(heaps, a, b, rest)
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
    """Where a transport stands; arrays have an entry for each cluster and one for the sink.

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
    heaps: Heaps
    stop: Integers

    @classmethod
    def allocate(cls, heaps: Heaps, stop: Integers | None = None) -> Flow:
        """Reserve memory; all prices are zero."""
        k = len(heaps.root) + 1
        sizes, flow, excess, before = np.zeros((4, k), np.int64)
        is_done, stop = np.zeros(k, np.bool_), np.zeros(1, np.int64) if stop is None else stop
        return cls(sizes, flow, excess, np.zeros(k), np.zeros(k), before, is_done, heaps, stop)


@jit
def transport(problem: Problem, state: Flow) -> bool:
    """Assign samples at the least total cost.

    ``state`` has the prices to begin with: those of a similar problem save most of the work.
    Returns False if the limits leave no assignment, or if it was stopped.
    """
    begin(problem, state)
    if is_balanced(state):
        return True
    fill_heaps(problem, state)
    while not is_balanced(state):
        if state.stop[0] != 0:
            return False
        target = find_path(problem, state)
        if target == NONE:
            return False
        shift(problem, state, target)
    return True


@jit
def is_balanced(state: Flow) -> bool:
    """Whether no node has too much; then none lacks anything, since all excesses sum to zero."""
    most = 0
    for node in range(state.excess.shape[0]):
        most = max(most, state.excess[node])
    return most == 0


@jit
def fill_soon(problem: Problem) -> None:
    """Assign samples one after the other to the cheapest cluster that limits leave them.

    The limits must leave an assignment, and are used up. A cluster may have more than it must as
    long as there are more samples left than all clusters still must have.
    """
    costs, low, high = problem.costs, problem.low, problem.high
    k = costs.shape[1]
    spare = problem.items.shape[0]
    for j in range(k):
        spare -= low[j]
    for p in range(problem.items.shape[0]):
        i, best = problem.items[p], NONE
        for j in range(k):
            may_have = high[j] > 0 and (low[j] > 0 or spare > 0)
            if may_have and (best == NONE or costs[i, j] < costs[i, best]):
                best = j
        problem.labels[i] = best
        high[best] -= 1
        if low[best] > 0:
            low[best] -= 1
        else:
            spare -= 1


@jit
def begin(problem: Problem, state: Flow) -> None:
    """Assign every sample to its cheapest cluster at the prices, and see what is too much where.

    A cluster of negative price is full, and one of positive price has only what it must.
    """
    costs, items, k = problem.costs, problem.items, problem.costs.shape[1]
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
        problem.labels[i] = best
        state.sizes[best] += 1
    state.excess[k] = -items.shape[0]
    for j in range(k):
        flow = min(max(state.sizes[j], problem.low[j]), problem.high[j])
        if state.prices[j] < 0.0:
            flow = problem.high[j]
        elif state.prices[j] > 0.0:
            flow = problem.low[j]
        state.flow[j] = flow
        state.excess[j] = state.sizes[j] - flow
        state.excess[k] += flow


@jit
def fill_heaps(problem: Problem, state: Flow) -> None:
    """Find the cheapest sample of every heap, and how cheap those are that it will hold."""
    costs, heaps, k = problem.costs, state.heaps, problem.costs.shape[1]
    for a in range(k):
        heaps.is_built[a] = False
        for b in range(k):
            set_root(heaps, a, b, NONE)
            heaps.cut[a, b] = 0.0
    for p in range(problem.items.shape[0]):
        i = problem.items[p]
        a = problem.labels[i]
        for b in range(k):
            heaps.cut[a, b] += costs[i, b] - costs[i, a]
        enter(problem, heaps, p, a)
    for a in range(k):
        for b in range(k):
            mean, lowest = heaps.cut[a, b] / max(state.sizes[a], 1), heaps.least[a, b]
            heaps.cut[a, b] = lowest + SMALL_KEYS * (mean - lowest)


@jit
def enter(problem: Problem, heaps: Heaps, p: int, a: int) -> None:
    """Put a sample into all heaps of its cluster that hold such keys."""
    costs, i, k = problem.costs, problem.items[p], problem.costs.shape[1]
    for b in range(k):
        key, node = costs[i, b] - costs[i, a], p * k + b
        if b == a:
            continue
        if heaps.is_built[a]:
            if key <= heaps.cut[a, b]:
                insert(heaps, a, b, node, key)
        elif key < heaps.least[a, b]:
            heaps.key[node] = key
            set_root(heaps, a, b, node)


@jit
def leave(problem: Problem, heaps: Heaps, p: int, a: int) -> None:
    """Take a sample out of all heaps of its cluster."""
    costs, i, k = problem.costs, problem.items[p], problem.costs.shape[1]
    is_root = False
    for b in range(k):
        if b == a:
            continue
        if not heaps.is_built[a]:
            is_root = is_root or heaps.root[a, b] == p * k + b
        elif costs[i, b] - costs[i, a] <= heaps.cut[a, b]:
            remove(heaps, a, b, p * k + b)
    if is_root:
        heaps.is_built[a] = True
        build(problem, heaps, p, a, 0, k)
    if heaps.is_built[a]:
        for b in range(k):
            if b != a and heaps.root[a, b] == NONE and heaps.cut[a, b] < ENDLESS:
                heaps.cut[a, b] = ENDLESS
                build(problem, heaps, p, a, b, b + 1)


@jit(inline=False)
def build(problem: Problem, heaps: Heaps, p: int, a: int, first: int, last: int) -> None:
    """Build some heaps of cluster a, from its samples with keys up to the cut, but for one."""
    costs, k = problem.costs, problem.costs.shape[1]
    for b in range(first, last):
        set_root(heaps, a, b, NONE)
    for other in range(problem.items.shape[0]):
        i = problem.items[other]
        if problem.labels[i] != a or other == p:
            continue
        for b in range(first, last):
            key = costs[i, b] - costs[i, a]
            if b != a and key <= heaps.cut[a, b]:
                insert(heaps, a, b, other * k + b, key)


@jit
def find_path(problem: Problem, state: Flow) -> int:
    """Find the node of the nearest lack, by Dijkstra's algorithm; adapt the prices; return it."""
    k = problem.low.shape[0]
    for node in range(k + 1):
        state.length[node] = 0.0 if state.excess[node] > 0 else ENDLESS
        state.before[node] = NONE
        state.is_done[node] = False
    while True:
        nearest, reach = NONE, ENDLESS
        for node in range(k + 1):
            if not state.is_done[node] and state.length[node] < reach:
                nearest, reach = node, state.length[node]
        if nearest == NONE:
            return NONE
        if state.excess[nearest] < 0:
            break
        state.is_done[nearest] = True
        for node in range(k + 1):
            if state.is_done[node]:
                continue
            step = arc(problem, state, nearest, node)
            if step < ENDLESS:
                # Rounding must not make it negative.
                step = max(step + state.prices[nearest] - state.prices[node], 0.0)
                if reach + step < state.length[node]:
                    state.length[node] = reach + step
                    state.before[node] = nearest
    for node in range(k + 1):
        state.prices[node] += min(state.length[node], reach)
    return nearest


@jit
def arc(problem: Problem, state: Flow, a: int, b: int) -> float:
    """Return what it costs to hand one sample on from a to b, endless if that is not possible."""
    k = problem.low.shape[0]
    if b == k:
        return 0.0 if state.flow[a] < problem.high[a] else ENDLESS
    if a == k:
        return 0.0 if state.flow[b] > problem.low[b] else ENDLESS
    return state.heaps.least[a, b]


@jit
def shift(problem: Problem, state: Flow, target: int) -> None:
    """Hand one sample on along each arc of the path to a node.

    From its end on: no sample that has just come may be handed on in place of the one that the
    path was computed with.
    """
    k, node = problem.low.shape[0], target
    state.excess[target] += 1
    while state.before[node] != NONE:
        before = state.before[node]
        if node == k:
            state.flow[before] += 1
        elif before == k:
            state.flow[node] -= 1
        else:
            p = state.heaps.root[before, node] // k
            leave(problem, state.heaps, p, before)
            problem.labels[problem.items[p]] = node
            enter(problem, state.heaps, p, node)
            state.sizes[before] -= 1
            state.sizes[node] += 1
        node = before
    state.excess[node] -= 1


def assign_within(costs: FloatArray, low: Integers, high: Integers) -> Labels:
    """Assign all samples at the least total cost; the limits must leave an assignment."""
    n, k = costs.shape
    labels = np.empty(n, np.int64)
    costs, high = np.ascontiguousarray(costs), np.minimum(high, n)
    transport(Problem(costs, np.arange(n), low, high, labels), Flow.allocate(Heaps.allocate(n, k)))
    return labels.astype(np.int32)
