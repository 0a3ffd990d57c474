"""A cluster divided in two, by a short 2-means of its own samples.

This is how a swap begins its new cluster. A single sample would do in the plane; with many features
it attracts nothing, because every other sample is closer to the mean of its cluster than to it. And
what a division gains is known before anything is changed, so that the best of several can be taken.
"""

from __future__ import annotations

from evomeans.compiled.jit import jit
from evomeans.engines.cpu.clusters import (
    GROUP,
    Clusters,
    Diary,
)
from evomeans.engines.cpu.layout import Index, Samples
from evomeans.engines.cpu.means import add_to, get_mean, point_to, product_with
from evomeans.engines.cpu.rows import weight_of

# Assignments of 2-means. The gain hardly grows afterwards.
ROUNDS = 3


@jit(inline=False)
def halve_cluster(
    samples: Samples, clusters: Clusters, diary: Diary, j: Index, chosen: Index
) -> float:
    """Divide a cluster in two, and return by how much that lowers the sum of squares.

    The first plane between the halves goes through the centre, perpendicular to the direction of a
    chosen sample. Nothing is changed: ``diary.group`` lists the half that began with this sample.
    With the means a and b and the weights A and B of both, the gain is AB/(A + B)·‖a − b‖².
    """
    normal, sums, center = diary.halves[0], diary.halves[1], diary.halves[2]
    get_mean(samples.rows, clusters, j, diary.halves, 2)
    get_mean(samples.rows, clusters, j, diary.halves, 0)
    point_to(samples.rows, chosen, normal)
    total, gain, offset = clusters.weights[j], 0.0, 0.0
    for t in range(center.shape[0]):
        offset += normal[t] * center[t]
    for _ in range(ROUNDS):
        weight = list_beyond(samples, clusters, diary, j, offset)
        if diary.numbers[GROUP] == 0 or diary.numbers[GROUP] == clusters.sizes[j]:
            return 0.0
        rest = total - weight
        if rest <= 0.0:
            return 0.0
        square, offset = 0.0, 0.0
        for t in range(center.shape[0]):
            a, b = sums[t] / weight, (total * center[t] - sums[t]) / rest
            normal[t] = a - b
            square += (a - b) * (a - b)
            offset += (a - b) * 0.5 * (a + b)
        gain = weight * rest / total * square
    return gain


@jit(inline=False)
def list_beyond(
    samples: Samples, clusters: Clusters, diary: Diary, j: Index, offset: float
) -> float:
    """List the samples of a cluster beyond a plane in ``diary.group``; return their weight.

    The plane has the normal ``diary.halves[0]``. Their sum is left in ``diary.halves[1]``.
    """
    normal, sums = diary.halves[0], diary.halves[1]
    for t in range(sums.shape[0]):
        sums[t] = 0.0
    weight, count, i = 0.0, 0, clusters.first[j]
    while i >= 0:
        if product_with(samples.rows, i, normal) > offset:
            own = weight_of(samples, i)
            diary.group[count] = i
            count += 1
            weight += own
            add_to(samples.rows, i, own, sums)
        i = clusters.after[i]
    diary.numbers[GROUP] = count
    return weight
