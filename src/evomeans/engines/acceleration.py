"""K-means with momentum, and when to abandon a refinement.

With many rows for each cluster the sum of squares is nearly a smooth function f of the centres, and
an iteration of K-means is a step of gradient descent: ∂f/∂cⱼ = 2Wⱼ(cⱼ − mⱼ), where mⱼ is the mean
of cluster j and Wⱼ its weight (Bottou and Bengio, NIPS 1995). If clusters overlap, hundreds of such
steps creep through long valleys. Nesterov's method (1983) goes beyond the means by a part of the
last step that grows from step to step,

    y ← x + (t − 1)/t′ (x − x′),  t′ = (1 + √(1 + 4t²))/2,

x being the means for the centres y before, and x′ the means before those. It begins again with
t = 1 when momentum points uphill, Σ Wⱼ(yⱼ − xⱼ)·(xⱼ − xⱼ′) > 0 (O'Donoghue and Candès, Foundations
of Computational Mathematics 15, 2015). It needs no inertia, and ends where K-means ends: at centres
that are the means of their own clusters.

Early abandonment: can this K-means run still reach the required inertia?

Let mⱼ be the mean of the samples that are closest to centre cⱼ, and Wⱼ their weight. Then

    Σ w‖x − c‖² = Σ w‖x‖² − Σ Wⱼ(2cⱼ·mⱼ − ‖cⱼ‖²).

The first sum is the same for all solutions. The second, what the centres *explain*, is known after
every assignment, on every engine, and tells how deep they are. What K-means gains gets less and
less, so it is hopeless to go on if even several times as much as it gained in the second half of
its iterations would not be enough.
"""

from __future__ import annotations

import math

import numpy as np

from evomeans.typing import FloatArray

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
    """Says where centres go next."""

    def __init__(self) -> None:
        self._before: FloatArray | None = None
        self._pace = MomentumSchedule()

    def next(
        self, centers: FloatArray, means: FloatArray, weights: FloatArray
    ) -> FloatArray | None:
        """Return where the centres go next, or None if they are at a fixed point.

        ``means`` and ``weights`` are those of their clusters; an empty one has its centre for a
        mean.
        """
        if np.array_equal(centers, means):
            return None
        before, self._before = self._before, means
        if self._pace.is_plain() or before is None:
            return means
        step = means - before
        step[weights == 0.0] = 0.0
        if not step.any():
            self._pace.share(is_moving=False, is_uphill=False)
            return means
        # Summed one by one, because the CPU engine does the same in a kernel.
        uphill = np.cumsum(weights[:, None] * (centers - means) * step)[-1]
        return means + self._pace.share(is_moving=True, is_uphill=bool(uphill > 0.0)) * step


# Iterations before a run is judged; and how many times as much as it gained lately it may gain.
EARLIEST, MOST_GAIN = 10, 2.0


class AbandonRule:
    """Follows one run of K-means, which has to explain ``least_explained`` in the end."""

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
