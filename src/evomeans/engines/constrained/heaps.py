"""Pairing heaps of samples, one for each ordered pair of clusters.

Heap (a, b) holds the samples of cluster a, ordered by what they would cost more in cluster b. A
sample leaves all heaps of its cluster when it moves, so that heaps need deletion from the middle.
Nodes are numbers, ``place * k + b``, and a heap is the number of its root. Pairing heaps [1]_ are
built in linear time. Each is built only when its smallest sample leaves, and then from the samples
with small keys; all others follow if these have left too.

References
----------
.. [1] Fredman, M. L., Sedgewick, R., Sleator, D. D. and Tarjan, R. E. (1986). "The pairing heap: a
   new form of self-adjusting heap". Algorithmica 1, 111-129.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.bundle import bundle
from evomeans.compiled.jit import jit
from evomeans.engines.constrained.layout import NONE


@bundle
class Heaps(NamedTuple):
    """Heaps over all pairs of clusters.

    * ``root`` (k, k): the node with the smallest key, −1 in an empty heap.
    * ``least`` (k, k): the smallest key of heaps that are not built.
    * ``cut`` (k, k): heaps that are built hold all samples whose keys are not larger than this.
    * ``is_built`` (k, k): whether other nodes than the root are in the heap.
    * ``key`` (n·k,)
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
