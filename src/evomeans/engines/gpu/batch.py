"""Room on the device for solutions that are refined together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from evomeans.engines.fixed_point import LIMBS
from evomeans.engines.gpu.samples import DeviceSamples, round_up

# Centres are compared in tiles of at least this many.
CENTER_STEP = 16
# Distances are summed up in tiles of this many samples, in a fixed order.
TILE = 1024
# The square of a centre that is none: above all others, and finite.
BEYOND = 1e38


class Batch:
    """The state of up to ``capacity`` solutions of ``k`` centres.

    Every tensor but ``n_active`` has the solutions as its first dimension.
    """

    def __init__(self, samples: DeviceSamples, n_clusters: int, capacity: int) -> None:
        n, d = samples.count, samples.n_features
        self.k, self.capacity = n_clusters, capacity
        self.device = samples.rows.device
        self.on_cpu = self.device.type == "cpu"
        k_padded = padded_centers(n_clusters)
        whole, single, double = torch.int32, torch.float32, torch.float64
        self.centers = self._zeros((n_clusters, d), double)
        # The centres as the tensor cores want them.
        self.planes = self._zeros((k_padded, samples.width), torch.float16)
        # ‖c‖² in the units of the planes; BEYOND where there is no centre to compare with.
        self.squares = self._zeros((k_padded,), single).fill_(BEYOND)
        # What evomeans.engines.gpu.bounds wants to know of all centres.
        self.reach = self._zeros((3,), single)
        # A centre that does not take part, −1 for none.
        self.excluded = self._zeros((), whole).fill_(-1)
        # −1 where a sample has none yet.
        self.labels = self._zeros((n,), whole)
        # Of the samples by their labels, in fixed point.
        self.sums = self._zeros((n_clusters, LIMBS, d + 1), torch.int64)
        self.cluster_weights = self._zeros((n_clusters,), double)
        # Samples to be decided in double precision, and the highest score their nearest centre has.
        self.doubtful = self._zeros((n,), whole)
        self.limits = self._zeros((n,), single)
        # Samples whose label has changed since the sums were, and the labels they had.
        self.changed = self._zeros((n,), whole)
        self.former = self._zeros((n,), whole)
        # How many are doubtful, and how many have changed.
        self.counts = self._zeros((2,), whole)
        # Whether any centre moved.
        self.moved = self._zeros((), whole)
        # The solutions at work.
        self.active = self._zeros((), whole)
        self.n_active = torch.zeros(1, dtype=whole, device=self.device)
        self.n_iter = self._zeros((), whole)
        # Weighted distances of the samples to their centres, and their sums.
        self.nearby = self._zeros((n,), double)
        self.partial = self._zeros((-(-n // TILE),), double)
        self.totals = self._zeros((), double)
        # A draw from them: distances or squares, the uniform number, the sample to take if all
        # distances are zero, and the sample drawn.
        self.power = self._zeros((), whole)
        self.quantile = self._zeros((), double)
        self.fallback = self._zeros((), torch.int64)
        self.drawn = self._zeros((), torch.int64)
        shape = (capacity, n_clusters, d)
        self._staged = torch.empty(shape, dtype=double, pin_memory=not self.on_cpu)

    def _zeros(self, shape: tuple[int, ...], dtype: Any) -> Any:
        return torch.zeros((self.capacity, *shape), dtype=dtype, device=self.device)

    def load(self, centers: Sequence[NDArray[np.float64]]) -> None:
        """Begin with these centres, no labels and no sums."""
        staged = self._staged.numpy()
        for slot, given in enumerate(centers):
            staged[slot] = given
        count = len(centers)
        self.centers[:count].copy_(self._staged[:count], non_blocking=True)
        self.labels[:count] = -1
        self.sums[:count] = 0
        self.n_iter[:count] = 0

    def activate(self, slots: Sequence[int]) -> None:
        """Let these solutions take part in what follows."""
        self.active[: len(slots)] = self.tensor(slots, torch.int32)
        self.n_active.fill_(len(slots))
        self.counts.zero_()
        self.moved.zero_()

    def tensor(self, values: Any, dtype: Any) -> Any:
        """Bring a few numbers onto the device."""
        return torch.tensor(values, dtype=dtype).to(self.device, non_blocking=True)

    def read_centers(self, count: int) -> list[NDArray[np.float64]]:
        """Return the first ``count`` solutions; waits for the device."""
        self._staged[:count].copy_(self.centers[:count])
        return [self._staged[slot].numpy().copy() for slot in range(count)]


def padded_centers(n_clusters: int) -> int:
    """Room for centres, such that no tile of them is cut."""
    if n_clusters > 128:
        return round_up(n_clusters, 256)
    return max(CENTER_STEP, 1 << (n_clusters - 1).bit_length())
