"""What the engine remembers of solutions, so that their children need not start from nothing."""

from __future__ import annotations

import weakref
from typing import Any


class DeviceRecollection:
    """The handle of a refined solution: its labels and its sums, on the device.

    Parameters
    ----------
    owner : DeviceMemory
        Of the engine that made it; another engine has other samples.
    labels : (n,) tensor of int32
    sums : (k, 2, d + 1) tensor of int64
    """

    __slots__ = ("__weakref__", "labels", "owner", "sums")

    def __init__(self, owner: DeviceMemory, labels: Any, sums: Any) -> None:
        self.owner, self.labels, self.sums = owner, labels, sums

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return sum(tensor.numel() * tensor.element_size() for tensor in (self.labels, self.sums))


class DeviceMemory:
    """Keeps solutions while somebody holds their handles, as many as fit into a budget.

    Parameters
    ----------
    budget : int
        Bytes.
    """

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.used = 0

    def keep(self, labels: Any, sums: Any) -> DeviceRecollection | None:
        """Copy the state of a solution; None if there is no room for it."""
        size = sum(tensor.numel() * tensor.element_size() for tensor in (labels, sums))
        if self.used + size > self.budget:
            return None
        recollection = DeviceRecollection(self, labels.clone(), sums.clone())
        self.used += size
        weakref.finalize(recollection, self._give_back, size)
        return recollection

    def _give_back(self, size: int) -> None:
        self.used -= size

    def recall(self, handle: Any, n_clusters: int) -> DeviceRecollection | None:
        """Return what is known of a handle of this engine, or None."""
        if not isinstance(handle, DeviceRecollection) or handle.owner is not self:
            return None
        return handle if len(handle.sums) == n_clusters else None
