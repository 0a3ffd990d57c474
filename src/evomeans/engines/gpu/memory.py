"""What the engine remembers of solutions, so that their children need not start from nothing."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any


@dataclass(eq=False)
class DeviceRecollection:
    """The handle of a refined solution: its labels and its sums, on the device."""

    owner: DeviceMemory
    """Of the engine that made it; another engine has other samples."""
    labels: Any
    sums: Any


@dataclass(eq=False)
class DeviceMemory:
    """Keeps solutions while their handles are held, as many as fit into a budget of bytes."""

    budget: int
    used: int = 0

    def keep(self, labels: Any, sums: Any) -> DeviceRecollection | None:
        """Copy the state of a solution; None if there is no room for it."""
        size = labels.nbytes + sums.nbytes
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
