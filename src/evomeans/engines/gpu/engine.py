"""The GPU engine."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from evomeans.engines.frame import Frame
from evomeans.engines.gpu.batch import Batch
from evomeans.engines.gpu.devices import chosen_device
from evomeans.engines.gpu.lloyd import Lloyd
from evomeans.engines.gpu.memory import Memory
from evomeans.engines.gpu.samples import Samples, encode_samples
from evomeans.engines.protocol import FloatArray, Refinement, Start, require_plain_kmeans
from evomeans.engines.rules import (
    CERTAINLY_NO_ROUNDING,
    MAX_REPAIRS,
    repair_draw,
    sits_on_centers,
    split_mixture,
)

# Distances of so many rows and one centre are computed together.
ROWS_AT_ONCE = 2**16


class Relocation(NamedTuple):
    """A centre that is to be put onto a drawn sample."""

    slot: int
    removed: int
    alpha: float
    quantile: float
    power: int


class GpuEngine:
    """K-means of many solutions at once, on a GPU.

    Labels are proposed by tensor cores in half precision and decided in double precision wherever
    that leaves a doubt; sums are exact. Results have the same bits in every run, whatever is
    refined together.

    Parameters
    ----------
    X : (n, d) array of float32 or float64
        Samples in data units; copies of them are kept on the device.
    sample_weight : (n,) array of float64, optional
        None for equal weights.
    frame : Frame, optional
        The frame to work in, by default the one around ``X``.
    device : str or torch.device, optional
        "cuda", "cuda:1" or "cpu", by default what
        :func:`~evomeans.engines.gpu.devices.chosen_device` says.
    batch : int
        How many solutions the search makes in a round. It decides about the course of a search;
        how many are refined together follows from the memory of the device and decides nothing.
    searching : bool
        Whether there will be refinements, or only assignments, which need less room.
    memory_budget : int, optional
        Bytes for what is kept of refined solutions, by default a quarter of the device's memory.
    """

    is_plain = True

    def __init__(
        self,
        X: NDArray[Any],
        sample_weight: FloatArray | None = None,
        *,
        frame: Frame | None = None,
        device: Any = None,
        batch: int = 32,
        searching: bool = True,
        memory_budget: int | None = None,
    ) -> None:
        self.device = chosen_device() if device is None else torch.device(device)
        self.batch = batch
        self.frame = Frame.around(X) if frame is None else frame
        self.n_samples, self.n_features = X.shape
        self.weights = None if sample_weight is None else np.array(sample_weight, dtype=np.float64)
        self.total_weight = self.n_samples if self.weights is None else float(self.weights.sum())
        self.samples = self._on_device(X)
        self.memory = Memory(self._default_budget() if memory_budget is None else memory_budget)
        self.together = batch if searching else 1
        self._in_use: tuple[Batch, Lloyd] | None = None

    def _on_device(self, X: NDArray[Any]) -> Samples:
        try:
            return encode_samples(self.frame.encode(X), self.weights, self.device)
        except torch.OutOfMemoryError as error:
            raise MemoryError(
                f"{X.shape[0]:,} samples of {X.shape[1]:,} features do not fit into the memory of "
                f"{self.device}: {error}"
            ) from error

    def _default_budget(self) -> int:
        if self.device.type == "cpu":
            return 2**31
        return int(torch.cuda.get_device_properties(self.device).total_memory // 4)

    @cached_property
    def _ops(self) -> ModuleType:
        # Imported here: Triton is not needed, and may not exist, on a CPU.
        if self.device.type == "cpu":
            from evomeans.engines.gpu import torch_ops

            return torch_ops
        from evomeans.engines.gpu import triton_ops

        return triton_ops

    # ---- samples by weight -------------------------------------------------------------------

    def samples_at(self, quantiles: FloatArray) -> FloatArray:
        """Rows at quantiles of the cumulated weight."""
        rows = self.samples.rows[torch.from_numpy(self._drawn(quantiles)).to(self.device)]
        found: FloatArray = rows.double().cpu().numpy()
        return found

    def _drawn(self, quantiles: FloatArray) -> NDArray[np.intp]:
        if self.weights is None:
            drawn = (quantiles * self.n_samples).astype(np.intp)
        else:
            cumulated = self._cumulated_weights
            drawn = np.searchsorted(cumulated, quantiles * cumulated[-1], side="right")
        rows: NDArray[np.intp] = np.minimum(drawn, self._last_drawable)
        return rows

    @cached_property
    def _cumulated_weights(self) -> FloatArray:
        assert self.weights is not None
        return np.cumsum(self.weights)

    @cached_property
    def _last_drawable(self) -> int:
        return self.n_samples - 1 if self.weights is None else int(np.flatnonzero(self.weights)[-1])

    # ---- refinements -------------------------------------------------------------------------

    def refine(self, starts: Sequence[Start]) -> list[Refinement]:
        """K-means from every start, as many together as the memory of the device allows."""
        require_plain_kmeans(starts, "GPU")
        results: list[Refinement] = []
        while len(results) < len(starts):
            part = starts[len(results) : len(results) + self.together]
            try:
                with self._on_this_device():
                    results += self._refine(part)
            except torch.OutOfMemoryError as error:
                self._shrink(error)
        return results

    def _shrink(self, error: Exception) -> None:
        """Refine fewer solutions together from now on."""
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

    def _refine(self, starts: Sequence[Start]) -> list[Refinement]:
        batch, lloyd = self._room(len(starts[0].centers))
        batch.load([start.centers for start in starts])
        self._inherit(batch, starts)
        self._relocate(
            batch,
            [
                Relocation(slot, start.removed, start.alpha, start.quantile, start.power)
                for slot, start in enumerate(starts)
                if start.removed >= 0
            ],
        )
        repairs = [0] * len(starts)
        running = list(range(len(starts)))
        while running:
            self._prepare(batch, running)
            lloyd.run(len(running))
            inertias = self._inertias(batch, len(starts))
            weights = batch.cluster_weights[: len(starts)].cpu().numpy()
            running = [
                slot
                for slot in range(len(starts))
                if not weights[slot].all()
                and repairs[slot] < MAX_REPAIRS * batch.k
                and not self._sits_on_samples(batch, slot, inertias[slot])
            ]
            self._repair(batch, starts, weights, running, repairs)
        return self._results(batch, len(starts), inertias, weights)

    def _inherit(self, batch: Batch, starts: Sequence[Start]) -> None:
        """Take over labels and sums of parents: fewer of them have to change then."""
        for slot, start in enumerate(starts):
            known = self.memory.recall(start.parent, batch.k)
            if known is not None:
                batch.labels[slot] = known.labels
                batch.sums[slot] = known.sums

    def _prepare(self, batch: Batch, slots: Sequence[int]) -> None:
        batch.activate(slots)
        self._ops.prepare(self.samples, batch, len(slots))

    def _repair(
        self,
        batch: Batch,
        starts: Sequence[Start],
        weights: FloatArray,
        slots: Sequence[int],
        repairs: list[int],
    ) -> None:
        """Give empty clusters new places, one after another: each draw sees the last one's."""
        waiting = {slot: np.flatnonzero(weights[slot] == 0.0).tolist() for slot in slots}
        while waiting:
            relocations = []
            for slot, empty in waiting.items():
                repairs[slot] += 1
                start = starts[slot]
                alpha, quantile = repair_draw(start.alpha, start.quantile, repairs[slot])
                relocations.append(Relocation(slot, empty.pop(0), alpha, quantile, start.power))
            self._relocate(batch, relocations)
            waiting = {slot: empty for slot, empty in waiting.items() if empty}

    def _relocate(self, batch: Batch, relocations: Sequence[Relocation]) -> None:
        """Put centres onto samples drawn from the mixture (the paper's eq. 5)."""
        if not relocations:
            return
        parts = [split_mixture(one.alpha, one.quantile) for one in relocations]
        quantiles = np.array([quantile for _, quantile in parts])
        slots = batch.tensor([one.slot for one in relocations], torch.int64)
        removed = batch.tensor([one.removed for one in relocations], torch.int64)
        batch.fallback[slots] = batch.tensor(self._drawn(quantiles), torch.int64)
        batch.drawn[slots] = batch.fallback[slots]
        far = [nth for nth, (by_distance, _) in enumerate(parts) if by_distance and batch.k > 1]
        if far:
            self._draw_by_distance(batch, [relocations[nth] for nth in far], quantiles[far])
        batch.centers[slots, removed] = self.samples.rows[batch.drawn[slots]].double()

    def _draw_by_distance(
        self, batch: Batch, relocations: Sequence[Relocation], quantiles: FloatArray
    ) -> None:
        """Draw samples by their distances to the closest of the centres that remain."""
        count = len(relocations)
        slots = batch.tensor([one.slot for one in relocations], torch.int64)
        batch.excluded[slots] = batch.tensor([one.removed for one in relocations], torch.int32)
        batch.power[slots] = batch.tensor([one.power for one in relocations], torch.int32)
        batch.quantile[slots] = batch.tensor(quantiles, torch.float64)
        self._prepare(batch, [one.slot for one in relocations])
        self._ops.propose(self.samples, batch, count)
        self._ops.decide(self.samples, batch, count)
        self._ops.update(self.samples, batch, count)
        self._ops.measure(self.samples, batch, count)
        self._ops.draw(self.samples, batch, count)
        batch.excluded[slots] = -1

    def _inertias(self, batch: Batch, count: int) -> FloatArray:
        """Σw‖x−c‖² of the first solutions, from labels that are up to date."""
        batch.activate(range(count))
        batch.power.fill_(2)
        self._ops.measure(self.samples, batch, count)
        inertias: FloatArray = batch.totals[:count].cpu().numpy()
        return inertias

    def _sits_on_samples(self, batch: Batch, slot: int, inertia: float) -> bool:
        if inertia > CERTAINLY_NO_ROUNDING * self.total_weight:
            return False
        squares = batch.nearby[slot].cpu().numpy()
        norms = np.concatenate(
            [part.double().square().sum(dim=1).cpu() for part in self.samples.rows.split(2**16)]
        )
        if self.weights is not None:
            counted = np.flatnonzero(self.weights)
            squares, norms = squares[counted] / self.weights[counted], norms[counted]
        return sits_on_centers(squares, norms)

    def _results(
        self, batch: Batch, count: int, inertias: FloatArray, weights: FloatArray
    ) -> list[Refinement]:
        n_iter = batch.n_iter[:count].tolist()
        snapped = {
            slot for slot in range(count) if self._sits_on_samples(batch, slot, inertias[slot])
        }
        for slot in snapped:
            inertias[slot], weights[slot] = self._snap(batch, slot)
        centers = batch.read_centers(count)
        return [
            Refinement(
                centers[slot],
                self.frame.inertia_in_data_units(float(inertias[slot])),
                weights[slot].copy(),
                n_iter[slot],
                None if slot in snapped else self.memory.keep(batch.labels[slot], batch.sums[slot]),
            )
            for slot in range(count)
        ]

    def _snap(self, batch: Batch, slot: int) -> tuple[float, FloatArray]:
        """Put every centre onto one of its samples, where all of them are up to rounding."""
        weights = np.ones(self.n_samples) if self.weights is None else self.weights
        counted = np.flatnonzero(weights)
        labels = batch.labels[slot].cpu().numpy()
        present, members = np.unique(labels[counted], return_index=True)
        members = torch.from_numpy(counted[members]).to(self.device)
        batch.centers[slot, batch.tensor(present, torch.int64)] = self.samples.rows[
            members
        ].double()
        labels, inertia = self._assign(batch, slot)
        return inertia, np.bincount(labels, weights, batch.k).astype(np.float64)

    # ---- the other verbs ---------------------------------------------------------------------

    def assign(self, centers: FloatArray) -> tuple[NDArray[np.int32], float]:
        """Labels of the closest centres, and the inertia."""
        while True:
            try:
                with self._on_this_device():
                    batch, _ = self._room(len(centers))
                    batch.load([centers])
                    labels, inertia = self._assign(batch, 0)
                return labels, self.frame.inertia_in_data_units(inertia)
            except torch.OutOfMemoryError as error:
                self._shrink(error)

    def _assign(self, batch: Batch, slot: int) -> tuple[NDArray[np.int32], float]:
        self._prepare(batch, [slot])
        self._ops.propose(self.samples, batch, 1)
        self._ops.decide(self.samples, batch, 1)
        batch.power[slot] = 2
        self._ops.measure(self.samples, batch, 1)
        labels: NDArray[np.int32] = batch.labels[slot].to("cpu", copy=True).numpy()
        return labels, float(batch.totals[slot])

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

    def _room(self, n_clusters: int) -> tuple[Batch, Lloyd]:
        if self._in_use is None or self._in_use[0].k != n_clusters:
            self._in_use = None
            batch = Batch(self.samples, n_clusters, self.together)
            self._in_use = batch, Lloyd(self.samples, batch, self._ops)
        return self._in_use
