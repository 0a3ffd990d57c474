"""Exchanges of samples that are left out with samples that count.

Trimming leaves out the samples that are farthest from the centres as they are. But a sample that is
left out would attract a centre if it counted, so the sum of squares can fall although it is farther
away. What an exchange changes is computed with the means moving along, as in Hartigan's method.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.jit import jit
from evomeans.compiled.vectors import squared_difference
from evomeans.engines.constrained.layout import Clusters, Items

FloatArray = NDArray[np.float64]
Integers = NDArray[np.int64]
# Samples of each cluster that may be left out instead of others: those farthest from its centre.
CANDIDATES = 16
# What is less than this share of the terms that make it up is rounding.
WORTHWHILE = 1e-10
NONE = -1


@jit(inline=False)
def exchange_outliers(
    items: Items,
    clusters: Clusters,
    weights: FloatArray,
    candidates: Integers,
    away: FloatArray,
    squares: FloatArray,
) -> int:
    """Let samples count that are left out, each instead of another one, where the objective falls.

    Parameters
    ----------
    items : Items
        Their weights are what counts of the samples, in and out.
    clusters : Clusters
        With the means and weights of what counts, in and out.
    weights : (n,) array
        All of the weights of the samples.
    candidates, away : (k, CANDIDATES) arrays
        Working memory.
    squares : (k,) array
        Working memory.

    Returns
    -------
    exchanged : int
        How many exchanges there were.
    """
    k, exchanged = clusters.means.shape[0], 0
    list_farthest(items, clusters, candidates, away)
    for j in range(weights.shape[0]):
        left = weights[j] - items.weights[j]
        if left <= 0.0:
            continue
        for b in range(k):
            squares[b] = squared_difference(items.points, j, clusters.means, b)
        i, b = find_exchange(items, clusters, j, left, candidates, away, squares)
        if i != NONE:
            a = clusters.labels[i]
            exchange(items, clusters, i, j, b, min(left, items.weights[i]))
            measure_again(items, clusters, a, candidates, away)
            measure_again(items, clusters, b, candidates, away)
            exchanged += 1
    return exchanged


@jit
def list_farthest(items: Items, clusters: Clusters, candidates: Integers, away: FloatArray) -> None:
    """List the samples of each cluster that are farthest from its centre, farthest first."""
    for a in range(candidates.shape[0]):
        for p in range(CANDIDATES):
            candidates[a, p] = NONE
            away[a, p] = -1.0
    for i in range(items.points.shape[0]):
        if items.weights[i] <= 0.0:
            continue
        a = clusters.labels[i]
        square = squared_difference(items.points, i, clusters.means, a)
        p = CANDIDATES
        while p > 0 and square > away[a, p - 1]:
            if p < CANDIDATES:
                candidates[a, p], away[a, p] = candidates[a, p - 1], away[a, p - 1]
            p -= 1
        if p < CANDIDATES:
            candidates[a, p], away[a, p] = i, square


@jit
def measure_again(
    items: Items, clusters: Clusters, a: int, candidates: Integers, away: FloatArray
) -> None:
    """Measure how far the listed samples of a cluster are from its centre, which has moved."""
    for p in range(CANDIDATES):
        if candidates[a, p] != NONE:
            away[a, p] = squared_difference(items.points, candidates[a, p], clusters.means, a)


@jit
def find_exchange(
    items: Items,
    clusters: Clusters,
    j: int,
    left: float,
    candidates: Integers,
    away: FloatArray,
    squares: FloatArray,
) -> tuple[int, int]:
    """Find the sample to leave out instead of j, and the cluster of j, that lower the objective."""
    k = candidates.shape[0]
    chosen, where, lowest = NONE, NONE, 0.0
    for a in range(k):
        for p in range(CANDIDATES):
            i = candidates[a, p]
            if i == NONE:
                break
            amount = min(left, items.weights[i])
            rest = clusters.weights[a] - amount
            if i == j or amount <= 0.0 or rest <= 0.0:
                continue
            for b in range(k):
                # A sample that counts in part has its cluster.
                if items.weights[j] > 0.0 and b != clusters.labels[j]:
                    continue
                if b == a:
                    change = swap_change(items, i, j, away[a, p], squares[a], amount, rest + amount)
                else:
                    total = clusters.weights[b]
                    spent = squares[b] * total / (total + amount)
                    change = amount * (spent - away[a, p] * (rest + amount) / rest)
                if change < lowest and -change > WORTHWHILE * amount * (away[a, p] + squares[b]):
                    chosen, where, lowest = i, b, change
    return chosen, where


@jit
def swap_change(
    items: Items, i: int, j: int, own: float, other: float, amount: float, total: float
) -> float:
    """Return what changes if j takes the place of i in the same cluster.

    The squared distances to the mean change, and then the mean moves by (xⱼ − xᵢ)·amount/total.
    """
    # A bound that needs no distance between the two.
    reach = math.sqrt(own) + math.sqrt(other)
    bound = amount * (other - own) - amount * amount / total * reach * reach
    if bound >= 0.0:
        return bound
    apart = squared_difference(items.points, i, items.points, j)
    return amount * (other - own) - amount * amount / total * apart


@jit
def exchange(items: Items, clusters: Clusters, i: int, j: int, b: int, amount: float) -> None:
    """Leave out a part of i, and count as much of j in cluster b; the means follow."""
    a = clusters.labels[i]
    rest = clusters.weights[a] - amount
    for t in range(items.points.shape[1]):
        clusters.means[a, t] += (clusters.means[a, t] - items.points[i, t]) * (amount / rest)
    clusters.weights[a] = rest
    total = clusters.weights[b] + amount
    for t in range(items.points.shape[1]):
        clusters.means[b, t] += (items.points[j, t] - clusters.means[b, t]) * (amount / total)
    clusters.weights[b] = total
    items.weights[i] -= amount
    items.weights[j] += amount
    clusters.labels[j] = b
