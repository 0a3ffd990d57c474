"""The course of one refinement, told once for all engines.

:func:`course` says what comes next; an engine answers in its own way. The CPU engine answers at
once, the GPU engine answers many courses together, and the Dask engine asks its blocks first. The
reference engine does without it, so that there is something to compare with.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from evomeans.engines.acceleration import AbandonRule, Momentum
from evomeans.engines.protocol import LocalSearch, Order
from evomeans.engines.rules import CERTAINLY_NO_ROUNDING, MAX_ITERATIONS, MAX_REPAIRS, repair_draw
from evomeans.typing import FloatArray


class Level(NamedTuple):
    """Where centres stand after an assignment, in the frame."""

    inertia: float
    weights: FloatArray


class ClusterMeans(NamedTuple):
    """The clusters of centres, in the frame; an empty one has its centre for a mean."""

    centers: FloatArray
    means: FloatArray
    weights: FloatArray


@dataclass(frozen=True, slots=True)
class Begin:
    """Go to the centres of the start; forget all that happened on this course. No answer."""


@dataclass(frozen=True, slots=True)
class Relocate:
    """Put one centre onto a sample drawn from the mixture (the paper's eq. 5). No answer."""

    removed: int
    alpha: float
    quantile: float


@dataclass(frozen=True, slots=True)
class Assign:
    """Go to these centres, or stay if there are none, and assign the samples.

    The answer is :class:`ClusterMeans`.
    """

    centers: FloatArray | None


@dataclass(frozen=True, slots=True)
class Lead:
    """Lead the centres by momentum to a fixed point, or near one, as :func:`lead` does.

    The answer is None, or the weights of the clusters where it is hopeless to go on: the centres
    have to explain ``least`` in the end, 0 for anything.
    """

    least: float


@dataclass(frozen=True, slots=True)
class Descend:
    """Run K-means, and single moves if the start wants them. The answer is a :class:`Level`."""


@dataclass(frozen=True, slots=True)
class Swap:
    """Try the swaps of the start, and go to the centres after them.

    The answer is whether any swap was kept.
    """


@dataclass(frozen=True, slots=True)
class IsOnSamples:
    """Answer whether every sample equals its centre up to rounding."""


@dataclass(frozen=True, slots=True)
class Snap:
    """Put every centre onto one of its samples. The answer is a :class:`Level`."""


Step = Begin | Relocate | Assign | Lead | Descend | Swap | IsOnSamples | Snap
Answer = TypeVar("Answer")
Steps = Generator[Step, Any, Answer]


def course(
    start: Order, total_weight: float, reached: Level | None = None, *, leads: bool = False
) -> Steps[Level]:
    """Relocate, run K-means, refill empty clusters, swap centres, and settle.

    * ``total_weight``: of all samples.
    * ``reached``: where the engine stands, if it has relocated and run K-means before it asks what
      follows.
    * ``leads``: whether the engine has an answer to :class:`Lead`; else it is asked for
      assignments.

    Yields what the engine has to do next; it sends the answer. Returns where the refinement ended;
    of infinite inertia if it was given up.
    """
    if reached is None:
        level = yield from _descent(start, total_weight, leads)
    else:
        level = yield from _refilled(start, total_weight, reached)
    local_search = start.local_search
    if math.isinf(level.inertia):
        return level
    if local_search.swaps and local_search.max_iter is None and (yield Swap()):
        # On all samples, because swaps only look at their neighbourhood.
        swapped = yield from _filled(start, total_weight, leads)
        if swapped.inertia <= level.inertia:
            level = swapped
        else:
            # Rounding, where weights or distances have no digits in common.
            level = yield from _descent(start, total_weight, leads)
    if (yield from _is_on_samples(level, total_weight)):
        level = yield Snap()
    return level


def least_of(local_search: LocalSearch, least_explained: float) -> float:
    """Return what K-means has to explain; swaps that follow may bring more than it can."""
    return 0.0 if local_search.swaps else least_explained


def _descent(start: Order, total_weight: float, leads: bool) -> Steps[Level]:
    yield Begin()
    if start.removed >= 0:
        yield Relocate(start.removed, start.alpha, start.quantile)
    return (yield from _filled(start, total_weight, leads))


def _filled(start: Order, total_weight: float, leads: bool) -> Steps[Level]:
    """Run K-means, and refill clusters that end up empty."""
    if start.local_search.momentum and start.local_search.max_iter is None:
        least = least_of(start.local_search, start.least_explained)
        weights = (yield Lead(least)) if leads else (yield from lead(AbandonRule(least)))
        if weights is not None:
            return Level(math.inf, weights)
    return (yield from _refilled(start, total_weight, (yield Descend())))


def _refilled(start: Order, total_weight: float, level: Level) -> Steps[Level]:
    """Refill clusters that ended up empty and run K-means, until none does."""
    repairs, most_repairs = 0, MAX_REPAIRS * len(start.centers)
    while np.count_nonzero(level.weights) < len(start.centers) and repairs < most_repairs:
        if (yield from _is_on_samples(level, total_weight)):
            break
        # One at a time: each draw sees where the last centre went.
        for empty in np.flatnonzero(level.weights == 0.0).tolist():
            repairs += 1
            yield Relocate(empty, *repair_draw(start.alpha, start.quantile, repairs))
        level = yield Descend()
    return level


def lead(rule: AbandonRule) -> Steps[FloatArray | None]:
    """Lead the centres by momentum; return the weights of the clusters if it is hopeless."""
    momentum, target = Momentum(), None
    for _ in range(MAX_ITERATIONS):
        clusters: ClusterMeans = yield Assign(target)
        if rule.is_hopeless(*clusters):
            return clusters.weights
        target = momentum.next(*clusters)
        if target is None:
            break
    return None


def _is_on_samples(level: Level, total_weight: float) -> Steps[bool]:
    """Ask only where it is possible: it takes a look at every sample."""
    if level.inertia > CERTAINLY_NO_ROUNDING * total_weight:
        return False
    return bool((yield IsOnSamples()))
