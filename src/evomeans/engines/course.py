"""The course of one refinement, the same for most engines.

:func:`course` says what comes next. The CPU engine answers at once, the GPU engine for many courses
together, and the Dask engine asks its blocks first.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

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
    """Go to these centres, or stay, and assign the samples. Answer: :class:`ClusterMeans`."""

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
    """Try the swaps of the start, and continue from there. The answer: whether any was kept."""


@dataclass(frozen=True, slots=True)
class IsOnSamples:
    """Answer whether every sample equals its centre up to rounding."""


@dataclass(frozen=True, slots=True)
class Snap:
    """Put every centre onto one of its samples. The answer is a :class:`Level`."""


Step = Begin | Relocate | Assign | Lead | Descend | Swap | IsOnSamples | Snap
Answer = TypeVar("Answer")
Steps = Generator[Step, Any, Answer]


def course(start: Order, total_weight: float, *, leads: bool = False) -> Steps[Level]:
    """Relocate, run K-means, refill empty clusters, swap centres, and settle.

    Yields what the engine has to do next, and is sent the answer. Returns where the refinement
    ended, with infinite inertia if abandoned. ``leads``: whether the engine answers :class:`Lead`.
    """
    level = yield from _descent(start, total_weight, leads)
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


# ---- momentum, and when to abandon a refinement --------------------------------------------------

# Iterations without momentum in the beginning: far from a valley it leads astray.
PLAIN_STEPS = 10


class MomentumSchedule:
    """Says by which part of the last step centres go beyond the means."""

    def __init__(self) -> None:
        self._t = 1.0
        self._n_steps = 0

    def is_plain(self) -> bool:
        """Count a step; return whether it is one of those without momentum in the beginning."""
        self._n_steps += 1
        return self._n_steps <= PLAIN_STEPS

    def share(self, *, is_moving: bool, is_uphill: bool) -> float:
        """Return the part of the step.

        If no mean ``is_moving``, no sample has changed its cluster, and it is time to look at the
        means themselves.
        """
        if is_uphill or not is_moving:
            self._t = 1.0
        if not is_moving:
            return 0.0
        later = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * self._t * self._t))
        share, self._t = (self._t - 1.0) / later, later
        return share


class Momentum:
    """Says where centres go next.

    With many rows for each cluster the sum of squares is nearly a smooth function f of the centres,
    and an iteration of K-means is a step of gradient descent: ∂f/∂cⱼ = 2Wⱼ(cⱼ − mⱼ), where mⱼ is
    the mean of cluster j and Wⱼ its weight [1]_. If clusters overlap, hundreds of such steps creep
    through long valleys. Nesterov's method (1983) goes beyond the means by a part of the last step
    that grows from step to step,

        y ← x + (t − 1)/t′ (x − x′),  t′ = (1 + √(1 + 4t²))/2,

    x being the means for the centres y before, and x′ the means before those. It begins again with
    t = 1 when momentum points uphill, Σ Wⱼ(yⱼ − xⱼ)·(xⱼ − xⱼ′) > 0 [2]_. It needs no inertia, and
    ends where K-means ends: at centres that are the means of their own clusters.

    References
    ----------
    .. [1] Bottou, L. and Bengio, Y. (1995). "Convergence properties of the K-means algorithms".
       NIPS 7, 585-592.
    .. [2] O'Donoghue, B. and Candès, E. (2015). "Adaptive restart for accelerated gradient
       schemes". Foundations of Computational Mathematics 15, 715-732.
    """

    def __init__(self) -> None:
        self._before: FloatArray | None = None
        self._schedule = MomentumSchedule()

    def next(
        self, centers: FloatArray, means: FloatArray, weights: FloatArray
    ) -> FloatArray | None:
        """Return where the centres go from these :class:`ClusterMeans`; None at a fixed point."""
        if np.array_equal(centers, means):
            return None
        before, self._before = self._before, means
        if self._schedule.is_plain() or before is None:
            return means
        step = means - before
        step[weights == 0.0] = 0.0
        if not step.any():
            self._schedule.share(is_moving=False, is_uphill=False)
            return means
        # Summed one by one, because the CPU engine does the same in a kernel.
        uphill = np.cumsum(weights[:, None] * (centers - means) * step)[-1]
        return means + self._schedule.share(is_moving=True, is_uphill=bool(uphill > 0.0)) * step


# Iterations before a run is judged; and how many times as much as it gained lately it may gain.
EARLIEST, MOST_GAIN = 10, 2.0


class AbandonRule:
    """Follows one run of K-means, which has to explain ``least_explained`` in the end.

    Let mⱼ be the mean of the samples that are closest to centre cⱼ, and Wⱼ their weight. Then

        Σ w‖x − c‖² = Σ w‖x‖² − Σ Wⱼ(2cⱼ·mⱼ − ‖cⱼ‖²).

    The first sum is the same for all solutions. The second, what the centres *explain*, is known
    after every assignment, on every engine, and is the larger the lower the inertia. K-means gains
    less and less, so it is hopeless to go on if even several times as much as it gained in the
    second half of its iterations would not be enough.
    """

    def __init__(self, least_explained: float) -> None:
        self._least = least_explained
        self._explained: list[float] = []

    def is_hopeless(self, centers: FloatArray, means: FloatArray, weights: FloatArray) -> bool:
        """Look at the clusters of the present centres; say whether to give up."""
        if not self._least:
            return False
        # Summed one by one, because the CPU engine does the same in a kernel.
        each = np.cumsum(centers * (2.0 * means - centers), axis=1)[:, -1]
        return self.is_too_little(float(np.cumsum(weights * each)[-1]))

    def is_too_little(self, explained: float) -> bool:
        """Note what the present centres explain; say whether to give up."""
        if not self._least:
            return False
        self._explained.append(explained)
        n_steps = len(self._explained)
        if n_steps < EARLIEST:
            return False
        gained = max(0.0, explained - self._explained[n_steps // 2 - 1])
        return explained + MOST_GAIN * gained < self._least
