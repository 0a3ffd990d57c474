"""K-means with momentum on the device, for a batch.

The rules are those of :mod:`~evomeans.engines.momentum` and :mod:`~evomeans.engines.outlook`.
Centres stay on the device. After an iteration, the host reads four numbers of each solution and
answers with one: the part of the last step by which its centres go beyond the means.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any, NamedTuple

import torch

from evomeans.engines.gpu.batch import Batch
from evomeans.engines.gpu.lloyd import Lloyd
from evomeans.engines.gpu.samples import DeviceSamples
from evomeans.engines.momentum import Pace
from evomeans.engines.outlook import Outlook
from evomeans.engines.protocol import FloatArray
from evomeans.engines.rules import MAX_ITERATIONS


class Glance(NamedTuple):
    """What the host learns of a solution after an assignment."""

    explained: float
    uphill: float
    is_fixed: float
    is_moving: float


class Leading:
    """Leads solutions of a batch to fixed points, or near them.

    Parameters
    ----------
    samples, batch, lloyd, ops
        See :class:`~evomeans.engines.gpu.refining.BatchRefining`.
    least : mapping of int to float
        The slots of the solutions, and what each has to explain in the end.
    """

    def __init__(
        self,
        samples: DeviceSamples,
        batch: Batch,
        lloyd: Lloyd,
        ops: ModuleType,
        least: Mapping[int, float],
    ) -> None:
        self.samples, self.batch, self.lloyd, self.ops = samples, batch, lloyd, ops
        self.slots = list(least)
        self.paces = {slot: Pace() for slot in least}
        self.outlooks = {slot: Outlook(value) for slot, value in least.items()}

    def run(self) -> dict[int, FloatArray | None]:
        """Return None for every solution, or the weights of its clusters if it is hopeless."""
        batch = self.batch
        answers: dict[int, FloatArray | None] = dict.fromkeys(self.slots)
        before = None
        for _ in range(MAX_ITERATIONS):
            self.lloyd.check()
            at = batch.tensor(self.slots, torch.int64)
            centers = batch.centers[at]
            self._assign(at)
            means, weights = batch.centers[at], batch.cluster_weights[at]
            step = means - (centers if before is None else before)
            # By a mask, which the host need not see.
            step.masked_fill_((weights == 0.0)[:, :, None], 0.0)
            left, shares = [], []
            for place, glance in enumerate(self._glances(centers, means, weights, step)):
                slot = self.slots[place]
                if self.outlooks[slot].is_too_little(glance.explained):
                    answers[slot] = weights[place].cpu().numpy()
                elif not glance.is_fixed:
                    left.append(place)
                    shares.append(self._share(slot, glance))
            if not left:
                break
            self.slots = [self.slots[place] for place in left]
            if len(left) < len(means):
                among = batch.tensor(left, torch.int64)
                means, step = means[among], step[among]
            # In two steps: together they would be rounded once, and elsewhere twice.
            step *= batch.tensor(shares, torch.float64)[:, None, None]
            batch.centers[batch.tensor(self.slots, torch.int64)] = means + step
            before = means
        return answers

    def _assign(self, at: Any) -> None:
        """Make one iteration of K-means; the centres are the means afterwards."""
        batch, count = self.batch, len(self.slots)
        batch.activate(self.slots)
        for name in ("prepare", "propose", "decide", "update", "move"):
            getattr(self.ops, name)(self.samples, batch, count)
        batch.n_iter[at] += 1

    def _share(self, slot: int, glance: Glance) -> float:
        pace = self.paces[slot]
        if pace.is_plain():
            return 0.0
        return pace.share(is_moving=bool(glance.is_moving), is_uphill=glance.uphill > 0.0)

    def _glances(self, centers: Any, means: Any, weights: Any, step: Any) -> list[Glance]:
        """Look at all solutions at once; waits for the device."""
        weights = weights[:, :, None]
        terms = torch.stack(
            [weights * (centers * (2.0 * means - centers)), weights * (centers - means) * step]
        )
        explained, uphill = folded(terms.flatten(2))
        is_fixed, is_moving = (centers == means).flatten(1).all(1), step.flatten(1).any(1)
        numbers = torch.stack([explained, uphill, is_fixed.double(), is_moving.double()], dim=1)
        return [Glance(*row) for row in numbers.tolist()]


def folded(values: Any) -> Any:
    """Sum up the last dimension, in an order that depends on nothing but its length.

    The order of PyTorch's own sums depends on what else is summed up, and the bits with it.
    """
    while (count := values.shape[-1]) > 1:
        half = (count + 1) // 2
        first = values[..., :half].clone()
        first[..., : count - half] += values[..., half:]
        values = first
    return values[..., 0]
