"""A whole offspring in one kernel: cross two solutions, and refine the child.

The crossovers are those of :mod:`evomeans.search.crossover`, by the same kernels; their addresses
and working memory are in :class:`OffspringArrays`. Whatever is out of the ordinary is left to the
search, which can do the same step by step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.bundle import bundle
from evomeans.compiled.jit import call_at, jit
from evomeans.engines.cpu.layout import Centers, Samples, Scratch, Solution
from evomeans.engines.cpu.partition import Parts, is_taken
from evomeans.engines.cpu.refine import MomentumState
from evomeans.engines.cpu.swaps.lists import Clusters, UndoLog
from evomeans.engines.cpu.threads import ABANDONED
from evomeans.engines.protocol import Way
from evomeans.kernels.matching import MatchingArrays
from evomeans.kernels.ward import MergingArrays
from evomeans.typing import FloatArray, Integers

if TYPE_CHECKING:
    from evomeans.engines.cpu.kernels import Instructions

# Entry of ``Scratch.numbers``, after those of a refinement: the way in which the child was made,
# or NO_CHILD.
MADE_BY = 5
NO_CHILD = -1
# Entries of ``OffspringArrays.addresses``.
PARTS, MERGE, CROSS, REFINE = range(4)
BY_PARTS, BY_MERGING, BY_SQUARES = int(Way.PARTS), int(Way.MERGING), int(Way.SQUARED_MATCHING)


@bundle
class OffspringArrays(NamedTuple):
    """What crossovers of two solutions with k clusters each work with.

    * ``addresses`` (4,): of the kernels, as far as they are needed.
    * ``coins`` (k,): uniform numbers, one for each cluster.
    * ``is_second`` (1,): whether the child has most of its centres from the second solution.

    For merging, there are the clusters of both solutions, the result, and working memory; see
    :func:`~evomeans.kernels.ward.merge`.
    """

    addresses: NDArray[np.int64]
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
        """Allocate the arrays; the addresses are still to be set.

        Crossovers that take long end soon after ``stop[0]`` is set.
        """
        return cls(
            addresses=np.zeros(4, np.int64),
            coins=np.empty(k),
            is_second=np.zeros(1, np.bool_),
            parts=parts,
            matching=MatchingArrays.allocate(k, stop),
            centers=np.empty((2 * k, n_features)),
            weights=np.empty(2 * k),
            merged=np.empty((k, n_features)),
            totals=np.empty(k),
            origins=np.empty(k, np.intp),
            merging=MergingArrays.allocate(2 * k, n_features, stop),
        )


@jit(by_address=True)
def make_offspring(
    samples: Samples,
    first: Solution,
    second: Solution,
    found: Solution,
    centers: Centers,
    scratch: Scratch,
    clusters: Clusters,
    undo: UndoLog,
    momentum: MomentumState,
    arrays: OffspringArrays,
    instructions: Instructions,
) -> None:
    """Cross two solutions, relocate a centre of the child, and refine it.

    * ``scratch``: ``numbers`` receives the results of :func:`~evomeans.engines.cpu.refine.refine`,
      and by which way the child was MADE_BY. NO_CHILD if merging finds a cluster without weight.
    * ``instructions``, in and out: of the refinement. ``tries_parts`` says whether the better parts
      of both are taken, if that is better than either; no centre is relocated then. ``way`` is what
      to do otherwise, see :class:`~evomeans.engines.protocol.Way`.
    """
    todo = instructions.record[0]
    child, addresses, is_second = centers.target, arrays.addresses, arrays.is_second
    made_by = way = todo.way
    if todo.tries_parts and take_better_parts(samples, first, second, arrays, child):
        made_by = BY_PARTS
        todo.gone = todo.placed = -1
    elif way == BY_MERGING:
        if not merge_centers(first, second, arrays, child):
            made_by = NO_CHILD
        is_second[0] = False
    else:
        parents = first.centers, second.centers, arrays.coins
        call_at(addresses[CROSS], *parents, child, way == BY_SQUARES, arrays.matching, is_second)
    scratch.numbers[MADE_BY] = made_by
    if made_by == NO_CHILD or scratch.barrier[ABANDONED] != 0:
        return
    parent = second if is_second[0] else first
    shared = centers, scratch, clusters, undo, momentum, instructions
    call_at(addresses[REFINE], samples, parent, found, *shared, np.int64(0), np.int64(1))


@jit
def take_better_parts(
    samples: Samples, first: Solution, second: Solution, arrays: OffspringArrays, child: FloatArray
) -> bool:
    """Put the better parts of both together, if that is better than either; return whether it is.

    The child is the solution of which more is left, with centres of the other in some places.
    """
    parts, k = arrays.parts, child.shape[0]
    one, other = (first.state.labels, first.centers), (second.state.labels, second.centers)
    call_at(arrays.addresses[PARTS], samples, *one, *other, parts)
    if parts.is_better[0] == 0:
        return False
    n_gone = 0
    for j in range(k):
        n_gone += 1 if is_taken(parts, j) else 0
    is_second = n_gone > k // 2
    arrays.is_second[0] = is_second
    source = 0
    for j in range(k):
        # Centres of the parent that stay are those of the version that is chosen.
        stays = is_taken(parts, k + j) if is_second else not is_taken(parts, j)
        if stays:
            write_center(second.centers if is_second else first.centers, j, child, j)
            continue
        if is_second:
            while is_taken(parts, source):
                source += 1
        else:
            while not is_taken(parts, k + source):
                source += 1
        write_center(first.centers if is_second else second.centers, source, child, j)
        source += 1
    return True


@jit
def merge_centers(
    first: Solution, second: Solution, arrays: OffspringArrays, child: FloatArray
) -> bool:
    """Merge the clusters of both until k are left; return False if one of them has no weight.

    Also if the merging was stopped.

    Clusters that begin with one of the first solution keep its place.
    """
    k, heaviest = child.shape[0], 0.0
    for j in range(k):
        write_center(first.centers, j, arrays.centers, j)
        write_center(second.centers, j, arrays.centers, k + j)
        arrays.weights[j], arrays.weights[k + j] = first.weights[j], second.weights[j]
    for j in range(2 * k):
        if not arrays.weights[j] > 0.0:
            return False
        heaviest = max(heaviest, arrays.weights[j])
    for j in range(2 * k):
        arrays.merging.shares[j] = arrays.weights[j] / heaviest
    merged = arrays.merged, arrays.totals, arrays.origins
    call_at(arrays.addresses[MERGE], arrays.centers, arrays.weights, *merged, arrays.merging)
    if arrays.merging.stop[0] != 0:
        return False
    # Origins ascend, so those of the first solution come first. The others fill the places left.
    own, place = 0, 0
    while own < k and arrays.origins[own] < k:
        write_center(arrays.merged, own, child, arrays.origins[own])
        own += 1
    taken = 0
    for other in range(own, k):
        while taken < own and arrays.origins[taken] == place:
            taken += 1
            place += 1
        write_center(arrays.merged, other, child, place)
        place += 1
    return True


@jit
def write_center(source: FloatArray, i: int, target: FloatArray, j: int) -> None:
    """Copy a row."""
    for t in range(source.shape[1]):
        target[j, t] = source[i, t]
