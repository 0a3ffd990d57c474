"""Ward's method on the device, for thousands of clusters.

Merging the cheapest two clusters again and again takes a step for each merger. Here many pairs are
merged in a step, each of two clusters that are the cheapest to merge for each other. Merging others
makes such a pair no more expensive, and nothing cheaper for either of them, so Ward's method would
merge it as well, unless enough clusters have been merged before. Therefore each step makes no more
than half of the mergers that are still to be made, the cheapest ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

# Costs that are computed together.
COSTS_AT_ONCE = 2**25


def merge_many(
    centers: Any, weights: Any, k: int, check: Callable[[], None]
) -> tuple[Any, Any, Any]:
    """Merge clusters until ``k`` are left; see :func:`~evomeans.kernels.ward.pnn_merge`.

    ``centers`` (n, d) and ``weights`` (n,) are modified. ``check`` raises an error to end it.
    """
    left = torch.arange(len(centers), device=centers.device)
    while (n_mergers := len(left) - k) > 0:
        check()
        nearest, costs = cheapest(centers[left], weights[left])
        # Rounding must not leave a circle without a pair.
        lowest = costs.argmin()
        nearest[nearest[lowest]] = lowest
        places = torch.arange(len(left), device=left.device)
        pairs = torch.nonzero((nearest[nearest] == places) & (places < nearest))[:, 0]
        pairs = pairs[costs[pairs].argsort(stable=True)][: (n_mergers + 1) // 2]
        first, second = left[pairs], left[nearest[pairs]]
        totals = weights[first] + weights[second]
        shares = torch.where(totals > 0.0, weights[second] / totals, 0.0)
        centers[first] += shares[:, None] * (centers[second] - centers[first])
        weights[first] = totals
        is_left = torch.ones_like(left, dtype=torch.bool)
        is_left[nearest[pairs]] = False
        left = left[is_left]
    return centers[left], weights[left], left


def cheapest(centers: Any, weights: Any) -> tuple[Any, Any]:
    """Return with which other cluster each is the cheapest to merge, and the cost."""
    # Around their mean, so that few digits cancel.
    centers = centers - centers.mean(dim=0)
    norms, inverse = centers.square().sum(dim=1), 1.0 / weights
    nearest = torch.empty(len(centers), dtype=torch.int64, device=centers.device)
    lowest = torch.empty_like(weights)
    at_once = max(1, COSTS_AT_ONCE // len(centers))
    for begin in range(0, len(centers), at_once):
        part = slice(begin, begin + at_once)
        costs = torch.addmm(norms, centers[part], centers.T, alpha=-2.0)
        costs.add_(norms[part, None]).clamp_(min=0.0)
        costs.div_(inverse[part, None] + inverse)
        costs.diagonal(begin).fill_(torch.inf)
        torch.min(costs, dim=1, out=(lowest[part], nearest[part]))
    return nearest, lowest
