"""K-means iterations of a batch, queued on the device without waiting for it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

from evomeans.engines.gpu.batch import Batch
from evomeans.engines.gpu.samples import DeviceSamples
from evomeans.engines.rules import MAX_ITERATIONS

# Iterations that are queued together, as one graph of kernels.
AT_ONCE = 4


class Lloyd:
    """Runs the active solutions of a batch to their fixed points.

    The device decides which solutions go on. The host learns it later: it has always queued
    the next iterations when it reads how many solutions were active before them. Kernels are
    launched for that many; what has ended meanwhile costs next to nothing. The steps, ``ops``, are
    :mod:`~evomeans.engines.gpu.torch_ops` or :mod:`~evomeans.engines.gpu.triton_ops`. ``check`` is
    called between iterations, and raises an error to end them.
    """

    def __init__(
        self,
        samples: DeviceSamples,
        batch: Batch,
        ops: ModuleType,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self.samples, self.batch, self.ops = samples, batch, ops
        self.check = check
        self._graphs: dict[int, Any] = {}
        self._readings: list[Reading] = []
        self._is_warm = False

    def iterate(self, bound: int) -> None:
        """Assign all samples, move the centres, and drop the solutions that stand still."""
        self.ops.propose(self.samples, self.batch, bound)
        self.ops.decide(self.samples, self.batch, bound)
        self.ops.update(self.samples, self.batch, bound)
        self.ops.move(self.samples, self.batch, bound)
        self.ops.tally(self.batch)

    def run(self, n_solutions: int) -> None:
        """Iterate until the solutions that were activated stand still."""
        if self.batch.on_cpu:
            for _ in range(MAX_ITERATIONS):
                self.check()
                self.iterate(n_solutions)
                if not int(self.batch.n_active):
                    return
            return
        pending: deque[Reading] = deque()
        bound, done = n_solutions, 0
        while done < MAX_ITERATIONS:
            self.check()
            self._enqueue(bound)
            done += AT_ONCE
            pending.append(self._reading().take(self.batch.n_active))
            if len(pending) < 2:
                continue
            reading = pending.popleft()
            n_active = reading.wait()
            self._readings.append(reading)
            if n_active == 0:
                break
            bound = n_active
        self._readings.extend(pending)

    def _reading(self) -> Reading:
        return self._readings.pop() if self._readings else Reading()

    def _enqueue(self, bound: int) -> None:
        """Queue some iterations, as a graph recorded for at least this many solutions."""
        if not self._is_warm:
            # Compiles the kernels, which cannot be done while a graph is recorded.
            for _ in range(AT_ONCE):
                self.iterate(bound)
            self._is_warm = True
            return
        size = min(self.batch.capacity, 1 << (bound - 1).bit_length())
        graph = self._graphs.get(size)
        if graph is None:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                for _ in range(AT_ONCE):
                    self.iterate(size)
            self._graphs[size] = graph
        graph.replay()


class Reading:
    """A number that the device sends while the host continues."""

    def __init__(self) -> None:
        self._number = torch.empty(1, dtype=torch.int32, pin_memory=True)
        self._arrived = torch.cuda.Event()

    def take(self, number: Any) -> Reading:
        """Queue the transfer."""
        self._number.copy_(number, non_blocking=True)
        self._arrived.record()
        return self

    def wait(self) -> int:
        """Return the number as soon as it has arrived."""
        self._arrived.synchronize()
        return int(self._number)
