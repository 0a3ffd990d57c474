"""All clusterings of a few samples, and the best of those that heed constraints."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray


@cache
def all_labels(n: int, k: int) -> NDArray[np.int64]:
    """Every assignment of n samples to k clusters."""
    return np.array(list(product(range(k), repeat=n)))


def inertias(X, weights, labels, k):
    """Return sums of squares of many clusterings, around the means of their clusters."""
    total = np.zeros(len(labels))
    squares = weights @ (X**2).sum(axis=1)
    for j in range(k):
        own = (labels == j) * weights
        weight = own.sum(axis=1)
        sums = own @ X
        total -= (sums**2).sum(axis=1) / np.where(weight > 0, weight, 1.0)
    return squares + total


def best_constrained(X, weights, k, low, high, must, cannot, penalty=np.inf):
    """Return the lowest objective within size limits and links; infinite if there is none."""
    labels = all_labels(len(X), k)
    sizes = (labels[:, :, None] == np.arange(k)).sum(axis=1)
    allowed = ((sizes >= low) & (sizes <= high)).all(axis=1)
    broken = np.zeros(len(labels))
    for i, j in must:
        broken += labels[:, i] != labels[:, j]
    for i, j in cannot:
        broken += labels[:, i] == labels[:, j]
    with np.errstate(invalid="ignore"):
        price = np.where(broken > 0, broken * penalty, 0.0)
    return np.min(inertias(X, weights, labels, k) + price, where=allowed, initial=np.inf)
