"""Solutions that are refined together on the device: memory, iterations, what is kept."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from evomeans.engines.frame import LIMBS
from evomeans.engines.gpu.samples import DeviceSamples, round_up
from evomeans.engines.rules import MAX_ITERATIONS

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
        # What evomeans.engines.gpu.samples wants to know of all centres.
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


@dataclass(eq=False)
class DeviceSolution:
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

    def keep(self, labels: Any, sums: Any) -> DeviceSolution | None:
        """Copy the state of a solution; None if there is no room for it."""
        size = labels.nbytes + sums.nbytes
        if self.used + size > self.budget:
            return None
        solution = DeviceSolution(self, labels.clone(), sums.clone())
        self.used += size
        weakref.finalize(solution, self._give_back, size)
        return solution

    def _give_back(self, size: int) -> None:
        self.used -= size

    def recall(self, handle: Any, n_clusters: int) -> DeviceSolution | None:
        """Return what is known of a handle of this engine, or None."""
        if not isinstance(handle, DeviceSolution) or handle.owner is not self:
            return None
        return handle if len(handle.sums) == n_clusters else None


# Iterations that are queued together, as one graph of kernels.
ITERATIONS_AT_ONCE = 4


class Lloyd:
    """Runs the active solutions of a batch to their fixed points.

    The device decides which solutions go on. The host learns it later: it has always queued
    the next iterations when it reads how many solutions were active before them. Kernels are
    launched for that many; what has ended meanwhile costs next to nothing. ``check`` is called
    between iterations, and raises an error to end them.
    """

    def __init__(
        self, samples: DeviceSamples, batch: Batch, check: Callable[[], None] = lambda: None
    ) -> None:
        # Imported here: Triton is not needed, and may not exist, on a CPU.
        name = "torch_ops" if batch.on_cpu else "triton_ops"
        self.ops = import_module(f"evomeans.engines.gpu.{name}")
        self.samples, self.batch, self.check = samples, batch, check
        self._graphs: dict[int, Any] = {}
        self._readings = () if batch.on_cpu else (Reading(), Reading())
        self._is_warm = False

    def carry_out(self, *steps: str, bound: int) -> None:
        """Make some steps of the solutions at work, which are at most ``bound``."""
        for step in steps:
            getattr(self.ops, step)(self.samples, self.batch, bound)

    def iterate(self, bound: int) -> None:
        """Assign all samples, move the centres, and drop the solutions that stand still."""
        self.carry_out("propose", "decide", "update", "move", bound=bound)
        self.ops.tally(self.batch)

    def run(self, n_solutions: int, most: int = MAX_ITERATIONS) -> None:
        """Iterate until all stand still or ``most`` times, a multiple of ITERATIONS_AT_ONCE."""
        if self.batch.on_cpu:
            for _ in range(most):
                self.check()
                self.iterate(n_solutions)
                if not int(self.batch.n_active):
                    return
            return
        bound = n_solutions
        for nth in range(most // ITERATIONS_AT_ONCE):
            self.check()
            self._enqueue(bound)
            latest, before = self._readings[nth % 2], self._readings[1 - nth % 2]
            latest.take(self.batch.n_active)
            if nth > 0:
                bound = before.wait()
                if bound == 0:
                    return

    def _enqueue(self, bound: int) -> None:
        """Queue some iterations, as a graph recorded for at least this many solutions."""
        if not self._is_warm:
            # Compiles the kernels, which cannot be done while a graph is recorded.
            for _ in range(ITERATIONS_AT_ONCE):
                self.iterate(bound)
            self._is_warm = True
            return
        size = min(self.batch.capacity, 1 << (bound - 1).bit_length())
        graph = self._graphs.get(size)
        if graph is None:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                for _ in range(ITERATIONS_AT_ONCE):
                    self.iterate(size)
            self._graphs[size] = graph
        graph.replay()


class Reading:
    """A number that the device sends while the host continues."""

    def __init__(self) -> None:
        self._number = torch.empty(1, dtype=torch.int32, pin_memory=True)
        self._arrived = torch.cuda.Event()

    def take(self, number: Any) -> None:
        """Queue the transfer."""
        self._number.copy_(number, non_blocking=True)
        self._arrived.record()

    def wait(self) -> int:
        """Return the number as soon as it has arrived."""
        self._arrived.synchronize()
        return int(self._number)
