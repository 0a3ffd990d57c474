"""Relocation where samples are noisy: a cluster is divided, and no sample becomes a centre.

Let one cluster hold two clouds whose means are D apart, and let samples be at a squared distance of
σ² from the mean of their cloud, on average. A sample of the same cloud is σ² + D²/4 away from the
centre between the clouds, and 2σ² from a sample. So a centre on a sample attracts hardly any other
where D² < 4σ², which is the rule in many noisy features. A centre that begins close to the one
between the clouds divides their samples by a plane, and K-means does the rest.

Engines that swap centres need none of this: a swap divides a cluster, too.
"""

from __future__ import annotations

import numpy as np

from evomeans.engines.protocol import FloatArray

# The centre that is given up is the most crowded one of this share of all.
SHARE = 0.1
# How many samples are drawn; the cluster of the one that is farthest from its centre is divided.
CANDIDATES = 4
# How far the two halves begin from the centre of their cluster, on the way to the drawn sample.
STEP = 0.1


def source_of(quantile: float) -> np.random.Generator:
    """Return the random numbers of an offspring that is divided.

    A crossover may have drawn from :attr:`~evomeans.search.crossover.Breeding.rng`; these are
    others.
    """
    return np.random.default_rng([int(quantile * 2.0**53), 1])


def divide(centers: FloatArray, rows: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Give up a centre that is close to another one, and divide a cluster.

    Parameters
    ----------
    centers : (k, d) array
    rows : (q, d) array
        Samples. The cluster of the one that is farthest from its centre is divided.
    rng : numpy.random.Generator
        Draws the centres that may be given up.

    Returns
    -------
    (k, d) array
        The given-up centre and that of the cluster are on both sides of where the latter was.
    """
    k = len(centers)
    if k < 2:
        return centers
    drawn = rng.choice(k, size=max(2, round(SHARE * k)), replace=False)
    apart = squares_between(centers[drawn], centers)
    apart[np.arange(len(drawn)), drawn] = np.inf
    removed = drawn[apart.min(axis=1).argmin()]
    away = squares_between(rows, centers)
    away[:, removed] = np.inf
    farthest = away.min(axis=1).argmax()
    divided = away[farthest].argmin()
    step = STEP * (rows[farthest] - centers[divided])
    moved = centers.copy()
    moved[removed], moved[divided] = centers[divided] + step, centers[divided] - step
    return moved


def squares_between(some: FloatArray, others: FloatArray) -> FloatArray:
    """Return the squared distances between the rows of two arrays."""
    # Around a mean, so that few digits cancel.
    middle = others.mean(axis=0)
    some, others = some - middle, others - middle
    norms = np.sum(some * some, axis=1)[:, None] + np.sum(others * others, axis=1)
    squares: FloatArray = np.maximum(norms - 2.0 * (some @ others.T), 0.0)
    return squares
