"""Baselines of the other models, written here: what people would run instead.

COP-KMeans [1]_ and the alternation of exact assignments and means that PCCC does [2]_, for links;
restarts of spherical k-means, as faiss has it, for cosines. All yield one objective after another,
and stop when they are asked to.

References
----------
.. [1] Wagstaff, K., Cardie, C., Rogers, S. and Schrödl, S. (2001). "Constrained k-means clustering
   with background knowledge". ICML 2001, 577-584.
.. [2] Baumann, P. and Hochbaum, D. S. (2024). "An algorithm for clustering with confidence-based
   must-link and cannot-link constraints". INFORMS Journal on Computing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import kmeans_plusplus

from evomeans.engines.constrained.feasibility import place_exactly
from evomeans.engines.constrained.links import Groups, Links, contract, group_samples, neighbours
from evomeans.engines.spherical import unit_rows
from evomeans.typing import FloatArray

MOST_STEPS = 300


def linked_problem(X: FloatArray, links: Links) -> tuple[Groups, NDArray[np.int64]]:
    """Contract must-links; return the items and the pairs of them that must be apart."""
    groups = contract(X, None, group_samples(len(X), links.hard_must))
    pairs = np.unique(np.sort(groups.of_sample[links.hard_cannot], axis=1), axis=0)
    return groups, pairs


def best_within(objectives: Iterator[float | None], seconds: float) -> tuple[float, int]:
    """Return the lowest objective found within CPU time, and how many runs there were.

    At least one run is made; infinite if none of them ended with a clustering.
    """
    began, best, runs = time.process_time(), np.inf, 0
    for objective in objectives:
        runs += 1
        best = min(best, np.inf if objective is None else objective)
        if time.process_time() - began >= seconds:
            break
    return best, runs


def objective_of(X: FloatArray, labels: NDArray[Any], k: int) -> float:
    """Sum of squares around the means of clusters."""
    total = 0.0
    for j in range(k):
        own = X[labels == j]
        if len(own):
            total += float(((own - own.mean(axis=0)) ** 2).sum())
    return total


def means_of(groups: Groups, labels: NDArray[Any], centers: FloatArray) -> FloatArray:
    """Weighted means; those of empty clusters stay."""
    weights = np.bincount(labels, groups.weights, len(centers))
    sums = np.zeros_like(centers)
    np.add.at(sums, labels, groups.weights[:, None] * groups.points)
    filled = weights > 0
    moved = centers.copy()
    moved[filled] = sums[filled] / weights[filled, None]
    return moved


def cop_kmeans(X: FloatArray, links: Links, k: int, seed: int) -> Iterator[float | None]:
    """Assign items one by one to the closest cluster that is not blocked; None if all are."""
    groups, pairs = linked_problem(X, links)
    starts, partners, _ = neighbours(len(groups.points), pairs)
    rng = np.random.default_rng(seed)
    while True:
        chosen = rng.choice(len(groups.points), k, replace=False)
        centers = groups.points[chosen].astype(float)
        labels: NDArray[np.int64] | None = None
        order = rng.permutation(len(groups.points))
        for _ in range(MOST_STEPS):
            new = _assigned(groups, centers, starts, partners, order)
            if new is None:
                labels = None
                break
            if labels is not None and np.array_equal(new, labels):
                break
            labels = new
            centers = means_of(groups, labels, centers)
        yield None if labels is None else objective_of(X, labels[groups.of_sample], k)


def _assigned(
    groups: Groups,
    centers: FloatArray,
    starts: NDArray[np.int64],
    partners: NDArray[np.int64],
    order: NDArray[np.int64],
) -> NDArray[np.int64] | None:
    squares = ((groups.points[:, None] - centers) ** 2).sum(axis=2)
    ranking = squares.argsort(axis=1)
    labels = np.full(len(squares), -1)
    for i in order:
        blocked = set(labels[partners[starts[i] : starts[i + 1]]].tolist())
        place = next((j for j in ranking[i].tolist() if j not in blocked), None)
        if place is None:
            return None
        labels[i] = place
    return labels


def exact_alternation(X: FloatArray, links: Links, k: int, seed: int) -> Iterator[float | None]:
    """Alternate the cheapest assignment that heeds all links, by an integer program, and means."""
    groups, pairs = linked_problem(X, links)
    bound = np.unique(pairs)
    place = np.full(len(groups.points), -1)
    place[bound] = np.arange(len(bound))
    limits = np.zeros(k, np.int64), np.full(k, len(X))
    rng = np.random.default_rng(seed)
    while True:
        state = int(rng.integers(2**31))
        centers, _ = kmeans_plusplus(groups.points, k, random_state=state)
        labels = None
        for _ in range(MOST_STEPS):
            squares = ((groups.points[:, None] - centers) ** 2).sum(axis=2)
            costs = groups.weights[:, None] * squares
            new = costs.argmin(axis=1)
            counts = groups.counts[bound]
            found = place_exactly(costs[bound], place[pairs], counts, 0, *limits)
            if found is None:
                break
            new[bound] = found
            if labels is not None and np.array_equal(new, labels):
                break
            labels = new
            centers = means_of(groups, labels, centers)
        yield None if labels is None else objective_of(X, labels[groups.of_sample], k)


def spherical_restarts(X: Any, k: int, seed: int) -> Iterator[float]:
    """Spherical k-means from random samples, to its fixed point, again and again."""
    rows = unit_rows(X)
    rng = np.random.default_rng(seed)
    while True:
        chosen = rows[rng.choice(rows.shape[0], k, replace=False)]
        centers = np.asarray(chosen.toarray() if hasattr(chosen, "toarray") else chosen)
        labels = None
        for _ in range(MOST_STEPS):
            products = np.asarray(rows @ centers.T)
            new = products.argmax(axis=1)
            if labels is not None and np.array_equal(new, labels):
                break
            labels = new
            for j in np.unique(labels):
                total = np.asarray(rows[labels == j].sum(axis=0)).ravel()
                centers[j] = total / np.linalg.norm(total)
        yield float((1.0 - products.max(axis=1)).sum())
