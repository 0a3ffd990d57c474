"""A whole offspring in one kernel: cross two solutions, and refine the child.

The crossovers are those of :mod:`evomeans.search.crossover`, by the same kernels. Whatever is out
of the ordinary is left to the search, which can do the same step by step. The *parts* of partition
crossover are explained in docs/background/cpu-engine.md ("The better parts of two solutions").
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.bundle import bundle
from evomeans.compiled.jit import call_at, jit
from evomeans.engines.cpu.layout import (
    Samples,
    Solution,
    WorkArrays,
    copy_row,
    remember_center,
    squared_distance,
    weight_of,
)
from evomeans.engines.cpu.simd import WIDTH
from evomeans.engines.cpu.threads import ABANDONED
from evomeans.engines.protocol import Way
from evomeans.engines.rules import BETTER, MOST_SPARE
from evomeans.kernels import MOST_COSTS
from evomeans.kernels.matching import MatchingArrays
from evomeans.kernels.ward import MergingArrays
from evomeans.typing import FloatArray, Index, Integers

# What ``made_by`` of an outcome is if merging finds a cluster without weight.
NO_CHILD = -1
BY_PARTS, BY_MERGING, BY_SQUARES = int(Way.PARTS), int(Way.MERGING), int(Way.SQUARED_MATCHING)

FIRST, SECOND = range(2)
# The balance is by how many clusters the versions chosen so far exceed those of the first solution,
# from −MOST_SPARE to MOST_SPARE; EVEN is the index of balance zero.
BALANCES = 2 * MOST_SPARE + 1
EVEN = MOST_SPARE


@bundle
class Parts(NamedTuple):
    """Two solutions with k clusters each, and their parts.

    A *node* is a cluster: j of the first solution, k + j of the second.

    * ``errors`` (2, k): sums of squares of the clusters.
    * ``root`` (2k,): the first node of the part that each node belongs to.

    * ``extra_costs`` (2k,): at the root of every part, sum of squares of the second version minus
      that of the first; ``spare`` (2k,): the same of the numbers of clusters.
    * ``chosen`` (2k,): at the root, 1 if the second version is taken.
    * ``costs`` (2, BALANCES): lowest extra cost for every balance, before and after a part.
    * ``takes`` (2k, BALANCES): 1 if the second version of a part leads to this lowest cost.
    * ``is_better`` (1,): 1 if what is chosen is better than both solutions.
    """

    errors: FloatArray
    root: NDArray[np.int64]
    extra_costs: FloatArray
    spare: NDArray[np.int64]
    chosen: NDArray[np.uint8]
    costs: FloatArray
    takes: NDArray[np.uint8]
    is_better: NDArray[np.uint8]

    @classmethod
    def allocate(cls, n_clusters: int) -> Parts:
        """Allocate the arrays."""
        nodes = 2 * n_clusters
        errors, extra_costs = np.empty((2, n_clusters)), np.empty(nodes)
        (root, spare), chosen = np.empty((2, nodes), np.int64), np.empty(nodes, np.uint8)
        costs, takes = np.empty((2, BALANCES)), np.empty((nodes, BALANCES), np.uint8)
        return cls(errors, root, extra_costs, spare, chosen, costs, takes, np.empty(1, np.uint8))


@bundle
class OffspringArrays(NamedTuple):
    """What crossovers of two solutions with k clusters each work with.

    * ``coins`` (k,): uniform numbers, one for each cluster.
    * ``is_second`` (1,): whether the child has most of its centres from the second solution.

    For merging, there are the clusters of both solutions, the result, and working memory; see
    :func:`~evomeans.kernels.ward.merge`. More than MOST_COSTS clusters are not merged here.
    """

    coins: FloatArray
    is_second: NDArray[np.bool_]
    parts: Parts
    matching: MatchingArrays
    centers: FloatArray
    weights: FloatArray
    merged: FloatArray
    totals: FloatArray
    origins: NDArray[np.intp]
    merging: MergingArrays

    @classmethod
    def allocate(
        cls, k: int, n_features: int, parts: Parts, stop: Integers | None = None
    ) -> OffspringArrays:
        """Allocate the arrays. Crossovers that take long end soon after ``stop[0]`` is set."""
        few = k if 2 * k <= MOST_COSTS else 0
        return cls(
            coins=np.empty(k),
            is_second=np.zeros(1, np.bool_),
            parts=parts,
            matching=MatchingArrays.allocate(k, stop),
            centers=np.empty((2 * few, n_features)),
            weights=np.empty(2 * few),
            merged=np.empty((few, n_features)),
            totals=np.empty(few),
            origins=np.empty(few, np.intp),
            merging=MergingArrays.allocate(2 * few),
        )


@jit(by_address=True)
def make_offspring(
    work: WorkArrays,
    first: Solution,
    second: Solution,
    found: Solution,
    arrays: OffspringArrays,
    thread: int,
    n_threads: int,
) -> None:
    """Cross two solutions, relocate a centre of the child, and refine it, all in one thread.

    The record of ``work`` says how: with ``tries_parts``, by the better parts of both, if that is
    better than either, and without relocation; otherwise by ``way``.
    """
    todo, outcome = work.record[0], work.scratch.outcome[0]
    child, is_second = work.centers.target, arrays.is_second
    made_by = way = todo.way
    if todo.tries_parts and take_better_parts(work, first, second, arrays):
        made_by = BY_PARTS
        todo.gone = todo.placed = -1
    elif way == BY_MERGING:
        if not merge_centers(todo.merge, first, second, arrays, child):
            made_by = NO_CHILD
        is_second[0] = False
    else:
        parents = first.centers, second.centers, arrays.coins
        call_at(todo.cross, *parents, child, way == BY_SQUARES, arrays.matching, is_second)
    outcome.made_by = made_by
    if made_by != NO_CHILD and work.scratch.barrier[ABANDONED] == 0:
        parent = second if is_second[0] else first
        call_at(todo.refine, work, parent, found, thread, n_threads)


@jit
def take_better_parts(
    work: WorkArrays, first: Solution, second: Solution, arrays: OffspringArrays
) -> bool:
    """Put the better parts of both together, if that is better than either; return whether it is.

    The child is the solution of which more is left, with centres of the other in some places.
    """
    parts, child = arrays.parts, work.centers.target
    k = child.shape[0]
    one, other = (first.state.labels, first.centers), (second.state.labels, second.centers)
    call_at(work.record[0].choose, work.samples, *one, *other, parts)
    if parts.is_better[0] == 0:
        return False
    n_gone = 0
    for j in range(k):
        n_gone += 1 if is_taken(parts, j) else 0
    is_second = n_gone > k // 2
    arrays.is_second[0] = is_second
    parent, donor = (second, first) if is_second else (first, second)
    # Where the nodes of either begin.
    of_parent, of_donor = (k, 0) if is_second else (0, k)
    source = 0
    for j in range(k):
        # Centres of the parent that stay are those of the version that is chosen.
        if is_taken(parts, of_parent + j) == is_second:
            copy_row(parent.centers, j, child, j)
            continue
        while is_taken(parts, of_donor + source) == is_second:
            source += 1
        copy_row(donor.centers, source, child, j)
        source += 1
    return True


@jit
def merge_centers(
    merge: int, first: Solution, second: Solution, arrays: OffspringArrays, child: FloatArray
) -> bool:
    """Merge the clusters of both until k are left; return whether that was done.

    It is not if one of them has no weight. Clusters that begin with one of the first solution keep
    its place. ``merge`` is an address of ``kernels.ward.merge``.
    """
    k, heaviest = child.shape[0], 0.0
    for j in range(k):
        copy_row(first.centers, j, arrays.centers, j)
        copy_row(second.centers, j, arrays.centers, k + j)
        arrays.weights[j], arrays.weights[k + j] = first.weights[j], second.weights[j]
    for j in range(2 * k):
        if not arrays.weights[j] > 0.0:
            return False
        heaviest = max(heaviest, arrays.weights[j])
    for j in range(2 * k):
        arrays.merging.shares[j] = arrays.weights[j] / heaviest
    merged = arrays.merged, arrays.totals, arrays.origins
    call_at(merge, arrays.centers, arrays.weights, *merged, arrays.merging)
    # Origins ascend, so those of the first solution come first. The others fill the places left.
    own, place = 0, 0
    while own < k and arrays.origins[own] < k:
        copy_row(arrays.merged, own, child, arrays.origins[own])
        own += 1
    taken = 0
    for other in range(own, k):
        while taken < own and arrays.origins[taken] == place:
            taken += 1
            place += 1
        copy_row(arrays.merged, other, child, place)
        place += 1
    return True


# ---- the better parts of two solutions -----------------------------------------------------------


@jit
def sum_squares(
    samples: Samples, labels: NDArray[Any], centers: FloatArray, errors: FloatArray
) -> None:
    """Set ``errors`` (k,) to Σ w‖x − c‖² of every cluster; ``labels`` are (tiles, WIDTH)."""
    rows = samples.rows
    for j in range(errors.shape[0]):
        errors[j] = 0.0
        remember_center(rows, centers, j)
    for i in range(samples.order.shape[0]):
        own = np.int64(labels[i // WIDTH, i % WIDTH])
        errors[own] += weight_of(samples, i) * squared_distance(rows, i, centers, own)


@jit
def choose_parts(
    samples: Samples,
    first: NDArray[Any],
    first_centers: FloatArray,
    second: NDArray[Any],
    second_centers: FloatArray,
    parts: Parts,
) -> None:
    """Choose the better version of every part; ``first`` and ``second`` are labels."""
    sum_squares(samples, first, first_centers, parts.errors[FIRST])
    sum_squares(samples, second, second_centers, parts.errors[SECOND])
    connect(samples, first, second, parts.root)
    compare_versions(parts)
    balance(parts)
    # Totals, not differences: if one solution is far worse, cancellation may leave nothing of them.
    total, first_total, second_total = 0.0, 0.0, 0.0
    for j in range(parts.errors.shape[1]):
        own, other = parts.errors[FIRST, j], parts.errors[SECOND, j]
        first_total += own
        second_total += other
        total += 0.0 if is_taken(parts, j) else own
        total += other if is_taken(parts, j + parts.errors.shape[1]) else 0.0
    parts.is_better[0] = total < min(first_total, second_total) * BETTER


@jit
def is_taken(parts: Parts, node: int) -> np.bool_:
    """Whether the second version of the part of a node is chosen."""
    return parts.chosen[parts.root[node]] != 0


@jit
def connect(
    samples: Samples, first: NDArray[Any], second: NDArray[Any], root: NDArray[np.int64]
) -> None:
    """Set the roots: nodes that share a sample of positive weight have the same, by union-find."""
    k = root.shape[0] // 2
    for node in range(2 * k):
        root[node] = node
    for i in range(samples.order.shape[0]):
        if weight_of(samples, i) > 0.0:
            one = find_root(root, np.int64(first[i // WIDTH, i % WIDTH]))
            other = find_root(root, k + np.int64(second[i // WIDTH, i % WIDTH]))
            root[max(one, other)] = min(one, other)
    for node in range(2 * k):
        root[node] = root[root[node]]


@jit
def find_root(root: NDArray[np.int64], node: Index) -> Index:
    """Return the root of a node, and halve the path to it."""
    while root[node] != node:
        root[node] = root[root[node]]
        node = root[node]
    return node


@jit
def compare_versions(parts: Parts) -> None:
    """Set ``extra_costs`` and ``spare`` of every part."""
    root, k = parts.root, parts.errors.shape[1]
    for node in range(2 * k):
        parts.extra_costs[node], parts.spare[node] = 0.0, 0
    for j in range(k):
        parts.extra_costs[root[j]] -= parts.errors[FIRST, j]
        parts.spare[root[j]] -= 1
        parts.extra_costs[root[k + j]] += parts.errors[SECOND, j]
        parts.spare[root[k + j]] += 1


@jit
def balance(parts: Parts) -> None:
    """Choose versions with the lowest sum of squares among those that make k clusters.

    Dynamic programming over the parts. With C(b) the lowest extra cost for balance b so far, and
    e and s extra cost and spare clusters of the next part, C'(b) = min(C(b), C(b − s) + e).
    """
    root, costs, takes = parts.root, parts.costs, parts.takes
    for place in range(BALANCES):
        costs[0, place] = np.inf
    costs[0, EVEN] = 0.0
    for node in range(root.shape[0]):
        if root[node] != node:
            continue
        spare, extra = parts.spare[node], parts.extra_costs[node]
        for place in range(BALANCES):
            origin = place - spare
            taken = costs[0, origin] + extra if 0 <= origin < BALANCES else np.inf
            takes[node, place] = taken < costs[0, place]
            costs[1, place] = min(taken, costs[0, place])
        for place in range(BALANCES):
            costs[0, place] = costs[1, place]
    place = EVEN
    for node in range(root.shape[0] - 1, -1, -1):
        parts.chosen[node] = 0
        if root[node] == node and takes[node, place] != 0:
            parts.chosen[node] = 1
            place -= parts.spare[node]
