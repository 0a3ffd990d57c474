"""Swaps with foresight: what it gains to put a centre elsewhere, after one step of K-means.

A sample becomes a centre, and one of the centres goes. The samples then belong to the closest
centre that is left or to the new one, and all centres move to their means. With sums S and weights
W of clusters, the sum of squares around the means is Σ w‖x‖² − Σ ‖S‖²/W. The first part does not
change. The second needs the sums of clusters only, and a swap changes few of them: the new cluster,
those that lose samples to it, and those that inherit samples of the centre that goes. So all k
swaps with one sample take little more than two passes over the samples (Conrads et al. 2024).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evomeans.compiled.bundle import bundle
from evomeans.compiled.jit import REORDER, jit
from evomeans.engines.cpu.layout import Samples, remember_center, squared_distance, weight_of
from evomeans.engines.cpu.samples import with_room
from evomeans.engines.cpu.swaps.lists import add_to
from evomeans.typing import FloatArray, Index, Indices, Labels


@bundle
class Foresight(NamedTuple):
    """Sums of clusters, and working memory. The new cluster has the index k.

    * ``before`` (k, d) and ``weights_before`` (k,): as the centres are.
    * ``sums`` (k + 1, d) and ``weights`` (k + 1,): with the new centre, before another one goes.
    * ``extra`` (k + 1, d) and ``extra_weights`` (k + 1,): what clusters inherit from the one in
      hand, zero otherwise; ``heirs`` (k + 1,) are those that do.
    * ``gains`` (k,): the result.
    """

    before: FloatArray
    weights_before: FloatArray
    sums: FloatArray
    weights: FloatArray
    extra: FloatArray
    extra_weights: FloatArray
    heirs: Indices
    gains: FloatArray

    @classmethod
    def allocate(cls, k: int, n_features: int) -> Foresight:
        """Allocate zeros."""
        return cls(
            np.zeros((k, n_features)),
            np.zeros(k),
            np.zeros((k + 1, n_features)),
            np.zeros(k + 1),
            np.zeros((k + 1, n_features)),
            np.zeros(k + 1),
            np.zeros(k + 1, np.intp),
            np.zeros(k),
        )


def squares_to(samples: Samples, point: FloatArray) -> FloatArray:
    """Return the squared distances of all samples to a point, shape (1, d), by place."""
    squares = np.empty(len(samples.order))
    set_squares_to(with_room(samples, *point.shape), point, squares)
    return squares


@jit
def set_squares_to(samples: Samples, point: FloatArray, squares: FloatArray) -> None:
    """Set the squared distances of all samples to a point."""
    remember_center(samples.rows, point, 0)
    for i in range(squares.shape[0]):
        squares[i] = squared_distance(samples.rows, i, point, 0)


@jit
def foresee(
    samples: Samples,
    labels: Labels,
    others: Labels,
    first: FloatArray,
    second: FloatArray,
    away: FloatArray,
    members: Indices,
    begins: Indices,
    memory: Foresight,
) -> None:
    """Set the gains of putting each centre onto the new place.

    Parameters
    ----------
    samples : Samples
    labels, others, first, second : (n,) arrays
        The two closest centres of every sample, and the squared distances to them, by place.
    away : (n,) array
        Squared distances to the new place.
    members, begins : (n,) and (k + 1,) arrays
        The places of samples, cluster by cluster, and where each cluster begins.
    memory : Foresight, out
        All zero at first.
    """
    k = memory.gains.shape[0]
    for i in range(labels.shape[0]):
        own, weight = labels[i], weight_of(samples, i)
        add_to(samples.rows, i, weight, memory.before[own])
        memory.weights_before[own] += weight
        target = np.int64(k if away[i] < first[i] else own)
        add_to(samples.rows, i, weight, memory.sums[target])
        memory.weights[target] += weight
    change = energy(memory.sums[k], float(memory.weights[k]))
    for j in range(k):
        change += energy(memory.sums[j], memory.weights[j])
        change -= energy(memory.before[j], memory.weights_before[j])
    for removed in range(k):
        inherited = inherit(
            samples, others, first, second, away, members, begins[removed], begins[removed + 1],
            memory,
        )  # fmt: skip
        own = energy(memory.sums[removed], memory.weights[removed])
        memory.gains[removed] = change + inherited - own


@jit
def inherit(
    samples: Samples,
    others: Labels,
    first: FloatArray,
    second: FloatArray,
    away: FloatArray,
    members: Indices,
    begin: Index,
    end: Index,
    memory: Foresight,
) -> float:
    """Return the energy that other clusters gain from the samples of one that goes."""
    k, count = memory.gains.shape[0], 0
    for place in range(begin, end):
        i = members[place]
        if away[i] < first[i]:
            # The new cluster has it already.
            continue
        weight = weight_of(samples, i)
        heir = np.int64(k if away[i] < second[i] else others[i])
        if memory.extra_weights[heir] == 0.0 and weight > 0.0:
            memory.heirs[count] = heir
            count += 1
        add_to(samples.rows, i, weight, memory.extra[heir])
        memory.extra_weights[heir] += weight
    gained = 0.0
    for place in range(count):
        heir = memory.heirs[place]
        own, extra = memory.sums[heir], memory.extra[heir]
        total = memory.weights[heir] + memory.extra_weights[heir]
        gained += joint_energy(own, extra, total) - energy(own, memory.weights[heir])
        memory.extra_weights[heir] = 0.0
        for t in range(extra.shape[0]):
            extra[t] = 0.0
    return gained


@jit(fastmath=REORDER)
def energy(sums: FloatArray, weight: float) -> float:
    """Return ‖S‖²/W, or zero for an empty cluster."""
    total = 0.0
    for t in range(sums.shape[0]):
        total += sums[t] * sums[t]
    return total / weight if weight > 0.0 else 0.0


@jit(fastmath=REORDER)
def joint_energy(first: FloatArray, second: FloatArray, weight: float) -> float:
    """Return ‖S₁ + S₂‖²/W."""
    total = 0.0
    for t in range(first.shape[0]):
        value = first[t] + second[t]
        total += value * value
    return total / weight
