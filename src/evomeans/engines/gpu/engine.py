"""The GPU engine."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from evomeans.engines.base import PlainKMeans
from evomeans.engines.cpu import CpuEngine
from evomeans.engines.frame import Frame
from evomeans.engines.gpu import chosen_device
from evomeans.engines.gpu.batch import Batch, DeviceMemory, Lloyd
from evomeans.engines.gpu.course import BatchRefining
from evomeans.engines.gpu.merging import merge_many
from evomeans.engines.gpu.samples import encode_rows, extremes, hold_samples, upload_rows
from evomeans.engines.gpu.seeding import Seeding
from evomeans.engines.protocol import Abandoned, Ability, Order, Refinement, require_abilities
from evomeans.engines.sampling import Drawing, WeightedDraw
from evomeans.kernels import MOST_MATCHED_EXACTLY
from evomeans.typing import FloatArray, Indices, Integers

# Products of an assignment from which on a sample is searched on the device. The CPU engine has
# more operators, but a solution of this size takes a hundred times as long there.
WORTH_A_DEVICE = 20_000_000
# Products of samples, clusters and features that keep the device busy for milliseconds: more
# solutions in a round would only delay the next parents. And the smallest round.
PRODUCTS_OF_A_ROUND, SMALLEST_ROUND = 2**39, 4
# Iterations of K-means before solutions are merged into the start of another one.
ITERATIONS_OF_A_PART = 8
# Rows from which on momentum saves time, although the host looks at the centres in every iteration.
MANY_ROWS_ON_DEVICE = 500_000
# Distances of this many rows and one centre are computed together.
ROWS_AT_ONCE = 2**16

Done = TypeVar("Done")


class GpuEngine(PlainKMeans):
    """K-means of many solutions at once, on a GPU.

    Labels are proposed by tensor cores in half precision and decided in double precision wherever
    that leaves a doubt; sums are exact. Results have the same bits in every run, whatever is
    refined together.

    * ``X`` (n, d) of float32 or float64: samples in data units, copied to the device; or a tensor
      of rows that are on the device already, in ``frame``.
    * ``sample_weight`` (n,): None for equal weights.
    * ``frame``: the frame to work in, by default the one around ``X``.
    * ``device``: "cuda", "cuda:1" or "cpu", by default what
      :func:`~evomeans.engines.gpu.chosen_device` says.
    * ``batch``: how many solutions the search makes in a round, or fewer where they take long. It
      decides about the course of a search; how many are refined together follows from the memory of
      the device, which decides nothing.
    * ``n_jobs``: threads that copy samples, and threads of engines over some of them on the CPU.
    * ``searching``: whether there will be refinements, or only assignments, which need less room.
    """

    most_sampled = sys.maxsize

    def __init__(
        self,
        X: Any,
        sample_weight: FloatArray | None = None,
        *,
        frame: Frame | None = None,
        device: Any = None,
        batch: int = 32,
        n_jobs: int = 1,
        searching: bool = True,
    ) -> None:
        self.device = chosen_device() if device is None else torch.device(device)
        self.batch = batch
        self.n_samples, self.n_features = X.shape
        self.weights = None if sample_weight is None else np.array(sample_weight, dtype=np.float64)
        self.total_weight = self.n_samples if self.weights is None else float(self.weights.sum())
        self._draw = WeightedDraw(self.n_samples, self.weights)
        self.n_jobs = n_jobs
        with room_for(X.shape, self.device):
            rows = X
            if not isinstance(X, torch.Tensor):
                rows = upload_rows(X, self.device, n_jobs)
                if frame is None:
                    frame = Frame.spanning(*extremes(rows), self.n_samples)
                encode_rows(rows, frame)
            assert frame is not None
            self.frame, self.samples = frame, hold_samples(rows, self.weights)
        if self.n_samples >= MANY_ROWS_ON_DEVICE:
            self.abilities = frozenset({Ability.MOMENTUM})
        self.memory = DeviceMemory(2**31)
        if self.device.type != "cpu":
            total = torch.cuda.get_device_properties(self.device).total_memory
            self.memory.budget = total // 4
        self.together = batch if searching else 1
        self._in_use: Lloyd | None = None

    def round_size(self, n_clusters: int) -> int:
        """Return how many solutions to make in a round; so many are refined together at most."""
        enough: int = PRODUCTS_OF_A_ROUND // (self.n_samples * self.n_features * n_clusters)
        return min(self.batch, max(SMALLEST_ROUND, enough))

    def samples_at(self, quantiles: FloatArray) -> FloatArray:
        """Rows at quantiles of the cumulated weight."""
        found: FloatArray = self._rows(self._draw.rows(quantiles)).double().cpu().numpy()
        return found

    def _rows(self, numbers: NDArray[np.intp]) -> Any:
        """Return some rows on the device, in the frame."""
        return self.samples.rows[torch.from_numpy(numbers).to(self.device)]

    def _in_data_units(self, numbers: NDArray[np.intp]) -> NDArray[Any]:
        """Return the bits of some rows of ``X``: the frame loses no digit."""
        rows = self._rows(numbers).cpu().numpy()
        found: NDArray[Any] = self.frame.decode(rows.astype(np.float64)).astype(rows.dtype)
        return found

    def _chosen(self, drawing: Drawing) -> tuple[NDArray[np.intp], FloatArray]:
        """Return the rows of a drawing by weights and distances, and what each stands for."""
        costs = None
        if drawing.centers is not None:
            self.assign(drawing.centers)
            costs = self._refining_of(len(drawing.centers)).batch.nearby[0].cpu().numpy()
        return drawing.choose(costs, self.weights, self.total_weight, self.n_samples)

    def drawn(self, drawing: Drawing) -> tuple[NDArray[Any], FloatArray]:
        """Return some samples in data units, and what each of them stands for."""
        rows, own = self._chosen(drawing)
        return self._in_data_units(rows), own

    def subsample(self, drawing: Drawing) -> GpuEngine | CpuEngine:
        """Make an engine over rows that are drawn; on the CPU if there is little work."""
        rows, own = self._chosen(drawing)
        n_jobs, frame = self.n_jobs, self.frame
        if drawing.centers is None or drawing.centers.size * len(rows) < WORTH_A_DEVICE:
            return CpuEngine(self._in_data_units(rows), own, frame=frame, n_jobs=n_jobs)
        with room_for((len(rows), self.n_features), self.device):
            X = self._rows(rows)
        return GpuEngine(X, own, frame=frame, n_jobs=n_jobs, device=self.device, batch=self.batch)

    def refine(self, starts: Sequence[Order]) -> list[Refinement]:
        """K-means from every start, as many together as the memory of the device allows."""
        require_abilities(starts, self.abilities, "GPU")
        results: list[Refinement] = []
        while len(results) < len(starts):
            results += self._with_room(self._refine, starts[len(results) :])
        return results

    def _with_room(self, work: Callable[..., Done], *given: Any) -> Done:
        """Return what ``work`` does; it is tried again, for fewer solutions, if memory runs out."""
        while True:
            try:
                with self._on_this_device():
                    return work(*given)
            except torch.OutOfMemoryError as error:
                self._in_use = None
                if self.device.type != "cpu":
                    torch.cuda.empty_cache()
                if self.together == 1:
                    raise MemoryError(
                        f"The memory of {self.device} does not suffice for a single solution over "
                        f"{self.n_samples:,} samples of {self.n_features:,} features, which take "
                        f"{self.samples.nbytes / 2**30:.2f} GiB themselves: {error}"
                    ) from error
                self.together //= 2

    def _refine(self, starts: Sequence[Order]) -> list[Refinement]:
        """Refine as many of the first starts as there is room for."""
        refining = self._refining_of(len(starts[0].centers))
        starts = starts[: refining.batch.capacity]
        try:
            levels = refining.run(starts, self.memory, self.total_weight)
        except Abandoned:
            (reached,) = refining.batch.read_centers(1)
            others = [Refinement.stopped(start) for start in starts[1:]]
            return [Refinement.stopped(starts[0], reached), *others]
        batch = refining.batch
        n_iter = batch.n_iter.tolist()
        found = []
        ends = zip(batch.read_centers(len(starts)), levels, strict=True)
        for slot, (centers, level) in enumerate(ends):
            inertia = self.frame.inertia_in_data_units(level.inertia)
            state = batch.labels[slot], batch.sums[slot]
            handle = None if slot in refining.snapped else self.memory.keep(*state)
            found.append(Refinement(centers, inertia, level.weights.copy(), n_iter[slot], handle))
        return found

    def seeds_among(self, places: FloatArray, draws: Sequence[FloatArray]) -> list[FloatArray]:
        """Draw centres by k-means++, on the device where solutions take long."""
        if self.round_size(len(draws[0])) == self.batch:
            return super().seeds_among(places, draws)
        with self._on_this_device():
            rows = self._rows(self._draw.rows(places)).double()
            # Around their mean, so that few digits cancel.
            near = (rows - rows.mean(dim=0)).float()
            quantiles = torch.tensor(np.stack(draws), device=self.device)
            chosen = Seeding(near, quantiles).run(self.check_abandoned)
            return list(rows[chosen].cpu().numpy())

    def unite(self, starts: Sequence[FloatArray]) -> FloatArray:
        """Merge what a few iterations of K-means come to from each of some starts."""
        return self._with_room(self._unite, starts)

    def _unite(self, starts: Sequence[FloatArray]) -> FloatArray:
        refining = self._refining_of(len(starts[0]))
        try:
            parts = [refining.advance(start, ITERATIONS_OF_A_PART) for start in starts]
            centers, weights = (torch.cat(each) for each in zip(*parts, strict=True))
            merged, _, _ = merge_many(centers, weights, len(starts[0]), self.check_abandoned)
        except Abandoned:
            return refining.batch.read_centers(1)[0]
        found: FloatArray = merged.cpu().numpy()
        return found

    def merge(
        self, centers: FloatArray, weights: FloatArray, k: int, stop: Integers | None = None
    ) -> tuple[FloatArray, FloatArray, Indices]:
        """Merge clusters by Ward's method, on the device if there are many."""
        if k <= MOST_MATCHED_EXACTLY or self.round_size(k) == self.batch:
            return super().merge(centers, weights, k, stop)
        with self._on_this_device():
            own, totals = (torch.tensor(each, device=self.device) for each in (centers, weights))
            merged, totals, origins = merge_many(own, totals, k, self.check_abandoned)
            return merged.cpu().numpy(), totals.cpu().numpy(), origins.cpu().numpy()

    def assign(self, centers: FloatArray) -> tuple[NDArray[np.int32], float]:
        """Labels of the closest centres, and the inertia."""
        return self._with_room(self._assign, centers)

    def _assign(self, centers: FloatArray) -> tuple[NDArray[np.int32], float]:
        refining = self._refining_of(len(centers))
        refining.batch.load([centers])
        labels, inertia = refining.assign(0)
        return labels, self.frame.inertia_in_data_units(inertia)

    def distances(self, centers: FloatArray) -> FloatArray:
        """Distances of all samples to all centres."""
        result = np.empty((self.n_samples, len(centers)))
        on_device = torch.tensor(centers, dtype=torch.float64, device=self.device)
        for begin in range(0, self.n_samples, ROWS_AT_ONCE):
            rows = self.samples.rows[begin : begin + ROWS_AT_ONCE].double()
            for j in range(len(centers)):
                squares = (rows - on_device[j]).square().sum(dim=1)
                result[begin : begin + len(rows), j] = squares.sqrt().cpu().numpy()
        return np.ldexp(result, -self.frame.exponent, out=result)

    def _on_this_device(self) -> AbstractContextManager[Any]:
        """Kernels are launched on the current device, which need not be that of the samples."""
        if self.device.type == "cpu":
            return nullcontext()
        device: AbstractContextManager[Any] = torch.cuda.device(self.device)
        return device

    def _refining_of(self, n_clusters: int) -> BatchRefining:
        if self._in_use is None or self._in_use.batch.k != n_clusters:
            self._in_use = None
            batch = Batch(self.samples, n_clusters, min(self.together, self.round_size(n_clusters)))
            self._in_use = Lloyd(self.samples, batch, self.check_abandoned)
        return BatchRefining(self._in_use, self._draw)


@contextmanager
def room_for(shape: Sequence[int], device: Any) -> Iterator[None]:
    """Say which samples do not fit if the memory of the device runs out."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise MemoryError(
            f"{shape[0]:,} samples of {shape[1]:,} features do not fit into the memory of "
            f"{device}: {error}"
        ) from error
