"""The CPU engine for dense samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.engines.cpu.layout import Centers, Samples, Scratch, State
from evomeans.engines.cpu.memory import Memory, Recollection
from evomeans.engines.cpu.refine import INERTIA, ITERATIONS, NOWHERE, refine
from evomeans.engines.cpu.sums import column_scales, limb_bits
from evomeans.engines.cpu.threads import Crew
from evomeans.engines.frame import Frame
from evomeans.engines.protocol import FloatArray, Refinement, Start
from evomeans.engines.rules import ROUNDING, can_be_repaired, repair_draw, split_mixture

# Below this many multiplications per assignment a second thread costs more than it brings.
WORTH_A_THREAD = 500_000
BLOCK = 4096


class CpuEngine:
    """K-means in Numba, with bounds inherited from a parent.

    Parameters
    ----------
    X : (n, d) array of float32 or float64
        Samples in data units. A shifted and scaled copy is kept.
    sample_weight : (n,) array of float64, optional
        None for equal weights.
    n_jobs : int
        Threads at most; results do not depend on it.
    frame : Frame, optional
        The frame to work in, by default the one around ``X``.
    memory_budget : int, optional
        Bytes for what is kept of refined solutions; by default half of the size of the samples, and
        at least 256 MiB.
    """

    batch = 1

    def __init__(
        self,
        X: NDArray[Any],
        sample_weight: FloatArray | None = None,
        *,
        n_jobs: int = 1,
        frame: Frame | None = None,
        memory_budget: int | None = None,
    ) -> None:
        self.frame = Frame.around(X) if frame is None else frame
        rows = self.frame.encode(X)
        # A copy: kernels would be compiled once more for every other kind of array.
        weights = np.array([] if sample_weight is None else sample_weight, dtype=np.float64)
        bits = limb_bits(len(rows))
        self.samples = Samples(
            rows, lengths(rows), weights, column_scales(rows, weights, bits), float(2**bits)
        )
        self.n_samples, self.n_features = rows.shape
        self.total_weight = float(weights.sum()) if len(weights) else float(len(rows))
        self.n_jobs = n_jobs
        self.memory = Memory(
            max(2**28, rows.nbytes // 2) if memory_budget is None else memory_budget
        )
        self._rooms: dict[int, _Room] = {}

    def samples_at(self, quantiles: FloatArray) -> FloatArray:
        """Rows at quantiles of the cumulated weight."""
        return self.samples.rows[self._draw(quantiles)].astype(np.float64)

    def _draw(self, quantiles: FloatArray) -> NDArray[np.intp]:
        weights = self.samples.weights
        last = self.n_samples - 1
        if len(weights):
            cumulated = np.cumsum(weights)
            drawn = np.searchsorted(cumulated, quantiles * cumulated[-1], side="right")
            last = np.flatnonzero(weights)[-1]
        else:
            drawn = (quantiles * self.n_samples).astype(np.intp)
        rows: NDArray[np.intp] = np.minimum(drawn, last)
        return rows

    def refine(self, starts: Sequence[Start]) -> list[Refinement]:
        """K-means from every start, one after the other."""
        return [self._refine(start) for start in starts]

    def _refine(self, start: Start) -> Refinement:
        room = self._room(len(start.centers))
        known = self.memory.recall(start.parent, room.k)
        state = self.memory.new_state(self.n_samples, room.k)
        if known is not None:
            room.take_over(known)
        target, removed, quantile = self._relocate(
            start.centers, start.removed, start.alpha, start.quantile
        )
        parent = state if known is None or known.state is None else known.state
        room.run(
            self.samples, parent, state, target, known is not None, removed, quantile, start.power
        )
        n_iter = room.iterations
        repairs = 0
        while (empty := room.empty_clusters()) and can_be_repaired(
            room.inertia, self.total_weight, repairs, room.k
        ):
            # Clusters are refilled one at a time: each draw sees where the last one went.
            for j in empty:
                repairs += 1
                alpha, quantile = repair_draw(start.alpha, start.quantile, repairs)
                target, removed, quantile = self._relocate(room.positions, j, alpha, quantile)
                last = j == empty[-1]
                room.run(
                    self.samples, state, state, target, True, removed, quantile, start.power, last
                )
                n_iter += room.iterations
        if room.inertia <= ROUNDING * self.total_weight:
            self._snap(room, state)
        handle = self.memory.keep(Recollection(state, room.positions, room.centers.sums[0].copy()))
        return Refinement(
            handle.centers,
            self.frame.inertia_in_data_units(room.inertia),
            room.centers.weights.copy(),
            n_iter,
            handle,
        )

    def _snap(self, room: _Room, state: State) -> None:
        """Put every centre onto one of its samples, where all of them are up to rounding."""
        target = room.positions
        weights = self.samples.weights if len(self.samples.weights) else np.ones(self.n_samples)
        counted = np.flatnonzero(weights)
        labels, members = np.unique(state.names[counted, 0], return_index=True)
        target[labels] = self.samples.rows[counted[members]]
        room.run(self.samples, state, state, target, False, -1, 0.0, 1, False)
        room.centers.weights[:] = np.bincount(state.names[:, 0], weights, room.k)

    def _relocate(
        self, centers: FloatArray, removed: int, alpha: float, quantile: float
    ) -> tuple[FloatArray, int, float]:
        """Apply a relocation that needs no distances at once; leave the others to the kernel."""
        if removed < 0:
            return centers, -1, 0.0
        by_distance, quantile = split_mixture(alpha, quantile)
        if by_distance and len(centers) > 1:
            return centers, removed, quantile
        centers = centers.copy()
        centers[removed] = self.samples.rows[self._draw(np.array([quantile]))[0]]
        return centers, -1, 0.0

    def assign(self, centers: FloatArray) -> tuple[NDArray[np.int32], float]:
        """Labels of the closest centres, and the inertia."""
        room = self._room(len(centers))
        state = self.memory.new_state(self.n_samples, room.k)
        room.run(self.samples, state, state, centers, False, -1, 0.0, 1, False)
        labels = state.names[:, 0].astype(np.int32)
        return labels, self.frame.inertia_in_data_units(room.inertia)

    def distances(self, centers: FloatArray) -> FloatArray:
        """Distances of all samples to all centres."""
        rows = self.samples.rows
        result = np.empty((self.n_samples, len(centers)))
        for begin in range(0, self.n_samples, BLOCK):
            block = rows[begin : begin + BLOCK].astype(np.float64)
            for j, center in enumerate(centers):
                difference = block - center
                np.sqrt(
                    np.einsum("ij,ij->i", difference, difference),
                    out=result[begin : begin + BLOCK, j],
                )
        return np.ldexp(result, -self.frame.exponent, out=result)

    def _room(self, n_clusters: int) -> _Room:
        if n_clusters not in self._rooms:
            work = self.n_samples * self.n_features * n_clusters
            n_threads = self.n_jobs if work >= WORTH_A_THREAD else 1
            self._rooms = {
                n_clusters: _Room(self.n_samples, n_clusters, self.n_features, n_threads)
            }
        return self._rooms[n_clusters]


class _Room:
    """The work space for one number of clusters, and the one way into the kernel."""

    def __init__(self, n_samples: int, k: int, n_features: int, n_threads: int) -> None:
        self.k = k
        self.crew = Crew(n_threads)
        self.centers = Centers.allocate(k, n_features, n_threads)
        self.centers.exact[k] = self.centers.before[k] = self.centers.single[k] = NOWHERE
        self.scratch = Scratch.allocate(n_samples, k, n_features, n_threads)
        self.target = np.empty((k, n_features))

    def take_over(self, known: Recollection) -> None:
        """Stand where a known solution stands."""
        self.centers.exact[: self.k] = known.centers
        self.centers.sums[0] = known.sums

    def run(
        self,
        samples: Samples,
        parent: State,
        state: State,
        target: FloatArray,
        inherit: bool,
        removed: int,
        quantile: float,
        power: int,
        lloyd: bool = True,
    ) -> None:
        """Run the kernel; see :func:`~evomeans.engines.cpu.refine.refine`."""
        self.target[:] = target
        self.crew.run(
            refine,
            samples,
            parent,
            state,
            self.centers,
            self.scratch,
            self.target,
            inherit,
            removed,
            quantile,
            power,
            lloyd,
        )

    @property
    def positions(self) -> FloatArray:
        """A copy of the centres."""
        return self.centers.exact[: self.k].copy()

    @property
    def inertia(self) -> float:
        """Sum of squared distances, in the frame."""
        return float(self.scratch.numbers[INERTIA])

    @property
    def iterations(self) -> int:
        """Assignments that the last run made."""
        return int(self.scratch.numbers[ITERATIONS])

    def empty_clusters(self) -> list[int]:
        """Clusters without weight."""
        weights = self.centers.weights
        return [] if weights.all() else np.flatnonzero(weights == 0.0).tolist()


def lengths(rows: NDArray[Any]) -> NDArray[np.float32]:
    """Norms of the rows, rounded up."""
    result = np.empty(len(rows), np.float32)
    for begin in range(0, len(rows), BLOCK):
        block = rows[begin : begin + BLOCK].astype(np.float64)
        result[begin : begin + BLOCK] = np.sqrt(np.einsum("ij,ij->i", block, block)) * (1 + 1e-6)
    return result
