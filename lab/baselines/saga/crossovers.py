"""Six ways to make one solution from two, published as the docstring of SAGA says.

Centroid distance crossover was introduced by Pan, McInnes & Jack (1995).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist

from evomeans.kernels.ward import pnn_merge
from evomeans.typing import FloatArray, Indices


@dataclass(frozen=True)
class Couple:
    """The (k, d) centres of two solutions to be crossed, and the mean of all samples.

    Two callables look at all samples, which only some crossovers need. ``overlap`` returns the
    (k, k) array of the weights that cluster i of the first and cluster j of the second have in
    common. ``joint_weights`` returns the (2, k) array of the weights with which PNN merges the
    centres: those of the clusters if every sample chooses between the centres of both, where ties
    go to the first parent, or those of the parents.
    """

    parents: tuple[FloatArray, FloatArray]
    middle: FloatArray
    overlap: Callable[[], FloatArray]
    joint_weights: Callable[[], FloatArray]


Child = tuple[FloatArray, int]
"""(k, d) centres, and the parent, 0 or 1, with which they share most positions."""
Crossover = Callable[[Couple, FloatArray], Child]
"""Makes a child of a couple with a (2, k) array of uniform numbers."""


def random_multipoint(couple: Couple, uniforms: FloatArray) -> Child:
    """Take a random half of either parent.

    Centres that the child already has are not taken again.
    """
    first, second = couple.parents
    kept = uniforms[0].argsort()[: (len(first) + 1) // 2]
    return _completed(first, kept, second, uniforms[1].argsort()), 0


def centroid_distance(couple: Couple, uniforms: FloatArray) -> Child:
    """Take the half nearer to the mean of all samples from one parent, the farther from the other.

    A fair coin decides which is which. Centres that the child already has are not taken again.
    """
    outer = int(uniforms[0, 0] < 0.5)
    far, near = couple.parents[outer], couple.parents[1 - outer]
    middle = couple.middle[None, :]
    outwards = cdist(middle, far)[0].argsort(kind="stable")
    kept = outwards[len(far) // 2 :]
    return _completed(far, kept, near, cdist(middle, near)[0].argsort(kind="stable")), outer


def largest_partitions(couple: Couple, uniforms: FloatArray) -> Child:
    """Take the centre of the largest cluster of both parents, again and again.

    Samples of a centre that has been taken no longer count in the clusters of the other parent.
    Nothing here is random.
    """
    overlap = couple.overlap()
    sizes = overlap.sum(axis=1), overlap.sum(axis=0)
    shares = overlap, overlap.T
    taken: tuple[list[int], list[int]] = ([], [])
    for _ in range(len(overlap)):
        largest = int(sizes[0].argmax()), int(sizes[1].argmax())
        giver = int(sizes[1][largest[1]] > sizes[0][largest[0]])
        chosen = largest[giver]
        taken[giver].append(chosen)
        sizes[giver][chosen] = -np.inf
        sizes[1 - giver][:] -= shares[giver][chosen]
    keeper = int(len(taken[1]) > len(taken[0]))
    child = couple.parents[keeper].copy()
    child[_others(taken[keeper], len(child))] = couple.parents[1 - keeper][taken[1 - keeper]]
    return child, keeper


def multipoint_pairwise(couple: Couple, uniforms: FloatArray) -> Child:
    """Pair the centres up and take one of each pair, by a fair coin."""
    return _one_of_each_pair(couple, from_second=uniforms[0] < 0.5)


def one_point_pairwise(couple: Couple, uniforms: FloatArray) -> Child:
    """Pair the centres up; take the first parent's up to a random point, then the second's.

    The pairs are in the order of the first parent's centres.
    """
    k = len(couple.parents[0])
    point = 1 + int(uniforms[0, 0] * (k - 1))
    return _one_of_each_pair(couple, from_second=np.arange(k) >= point)


def pnn(couple: Couple, uniforms: FloatArray) -> Child:
    """Merge the centres of both parents, pair by pair, until as many are left as one parent had.

    Every sample first chooses between the centres of both. The cost of a merger depends on the
    weight of the samples that chose its centres. Nothing here is random.
    """
    k = len(couple.parents[0])
    centers, _, origins = pnn_merge(
        np.concatenate(couple.parents), couple.joint_weights().ravel(), k
    )
    in_place = origins[origins < k]
    child = np.empty_like(centers)
    child[np.append(in_place, _others(in_place, k))] = centers
    return child, 0


CROSSOVERS: Mapping[str, Crossover] = {
    "random multipoint": random_multipoint,
    "centroid distance": centroid_distance,
    "largest partitions": largest_partitions,
    "multipoint pairwise": multipoint_pairwise,
    "one-point pairwise": one_point_pairwise,
    "PNN": pnn,
}


def pair_up(first: FloatArray, second: FloatArray) -> Indices:
    """Give each centre of ``first``, in turn, the nearest of ``second`` that is still free."""
    distances = cdist(first, second, "sqeuclidean")
    partner = np.empty(len(first), dtype=np.intp)
    for i, row in enumerate(distances):
        partner[i] = row.argmin()
        distances[:, partner[i]] = np.inf
    return partner


def _one_of_each_pair(couple: Couple, from_second: NDArray[np.bool_]) -> Child:
    """Build the child at the positions of the parent that gives more centres."""
    first, second = couple.parents
    partner = pair_up(first, second)
    if 2 * np.count_nonzero(from_second) <= len(first):
        return np.where(from_second[:, None], second[partner], first), 0
    child = second.copy()
    child[partner[~from_second]] = first[~from_second]
    return child, 1


def _completed(
    keeper: FloatArray, kept: Indices, donor: FloatArray, preference: Indices
) -> FloatArray:
    """Keep some centres in place; fill the other positions with centres of the donor.

    Those are taken in the order of preference, but centres that are already kept come last.
    """
    child = keeper.copy()
    is_kept = (cdist(donor[preference], keeper[kept]) == 0.0).any(axis=1)
    given = preference[is_kept.argsort(kind="stable")]
    child[_others(kept, len(child))] = donor[given[: len(child) - len(kept)]]
    return child


def _others(some: ArrayLike, count: int) -> Indices:
    """Return all positions below ``count`` except some."""
    return np.setdiff1d(np.arange(count), some)
