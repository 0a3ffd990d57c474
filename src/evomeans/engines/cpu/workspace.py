"""The work space for one number of clusters, and the one way into the kernels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.jit import address_of
from evomeans.engines.course import Level
from evomeans.engines.cpu.kernels import (
    PLAIN,
    Kernels,
    Move,
    kernels_for,
    numbers_of,
    work_arrays,
)
from evomeans.engines.cpu.layout import Outcome, Samples, Solution, State
from evomeans.engines.cpu.offspring import OffspringArrays, Parts, choose_parts, make_offspring
from evomeans.engines.cpu.refine import refine, step, sum_distances
from evomeans.engines.cpu.seeding import Candidates, all_distances, draw_at, seed
from evomeans.engines.cpu.simd import WIDTH
from evomeans.engines.cpu.swaps.lists import SUCCESSES
from evomeans.engines.cpu.swaps.search import try_swaps
from evomeans.engines.cpu.threads import ABANDONED, ThreadTeam
from evomeans.engines.protocol import Order, Way
from evomeans.typing import Flags, FloatArray

# Products for each thread that are worth the meetings of threads when a centre is drawn.
WORTH_A_MEETING = 2**21


class Workspace:
    """The work space for one number of clusters, and the one way into the kernels."""

    def __init__(self, samples: Samples, k: int, n_features: int, n_threads: int) -> None:
        self.k = k
        self.team = ThreadTeam(n_threads)
        self.work = work_arrays(samples, k, n_features, n_threads, self.team.barrier)
        self.samples, self.centers, self.scratch = self.work[:3]
        self.target = self.centers.target
        self.swapped = self.work.clusters
        """The clusters after swaps."""

    def take_over(self, centers: FloatArray, sums: NDArray[np.int64]) -> None:
        """Take over the centres and sums of a known solution."""
        self.centers.exact[:] = centers
        self.centers.sums[1:] = 0
        self.centers.sums[0] = sums

    def run(
        self,
        parent: Solution,
        found: Solution,
        target: FloatArray,
        move: Move,
        order: Order = PLAIN,
    ) -> None:
        """Run the kernel; see :func:`~evomeans.engines.cpu.refine.refine`."""
        self.target[:] = target
        self._instruct(move, order)
        solutions = address_of(parent), address_of(found)
        self.team.run(self._kernels.entry(refine), address_of(self.work), *solutions)

    def _instruct(self, move: Move, order: Order, crossing: Sequence[int] = (0, 0, 0, 0)) -> None:
        """Write the record, with the addresses of all kernels that are wanted."""
        address = self._kernels.address
        self.work.record[0] = (
            *move,
            *crossing,
            address("assign"),
            address("lead") if move.leads else 0,
            address("move") if move.moves else 0,
            address("swap") if move.tries_swaps else 0,
            *numbers_of(order),
        )

    def swap(self, state: State, count: int, seed: float) -> bool:
        """Try swaps; return whether any was kept. The result is in ``swapped``."""
        if self.k < 2:
            return False
        swap = self._kernels.entry(try_swaps)
        swap(address_of(self.work), address_of(state), count, seed)
        return bool(self.work.undo.numbers[SUCCESSES] > 0)

    def breed(
        self, first: Solution, second: Solution, found: Solution, move: Move, order: Order
    ) -> None:
        """Make an offspring; see :func:`~evomeans.engines.cpu.offspring.make_offspring`."""
        self._offspring_arrays.coins[:] = order.numbers
        address, merges = self._kernels.address, move.way == Way.MERGING
        choose = address("choose") if move.tries_parts else 0
        cross = (address("merge"), 0) if merges else (0, address("cross"))
        self._instruct(move, order, (address("refine"), choose, *cross))
        solutions = address_of(first), address_of(second), address_of(found)
        make, arrays = self._kernels.entry(make_offspring), address_of(self._offspring_arrays)
        self.team.run(make, address_of(self.work), *solutions, arrays)

    @cached_property
    def _offspring_arrays(self) -> OffspringArrays:
        # The flag of the team ends long crossovers as it ends refinements.
        stop = self.team.barrier[ABANDONED : ABANDONED + 1]
        return OffspringArrays.allocate(self.k, self.target.shape[1], self._parts, stop)

    @cached_property
    def _kernels(self) -> Kernels:
        return kernels_for(self.work, self.k)

    def better_parts(
        self, first: tuple[NDArray[Any], FloatArray], second: tuple[NDArray[Any], FloatArray]
    ) -> tuple[Flags, Flags] | None:
        """Choose the better versions of parts, by labels (tiles, WIDTH) and centres of both."""
        parts = self._parts
        choose_parts(self.samples, *first, *second, parts)
        if not parts.is_better[0]:
            return None
        gone, taken = parts.chosen[parts.root].astype(np.bool_).reshape(2, self.k)
        return gone, taken

    @cached_property
    def _parts(self) -> Parts:
        return Parts.allocate(self.k)

    def step(self, state: State, target: FloatArray, *, fresh: bool, gone: int = -1) -> None:
        """Make a single assignment; see :func:`~evomeans.engines.cpu.refine.step`."""
        self.target[:] = target
        if fresh:
            self.centers.sums[:] = 0
        addresses = address_of(self.work), address_of(state)
        self.team.run(self._kernels.entry(step), *addresses, fresh, gone)

    def measure(self, state: State, power: int) -> float:
        """Return the weighted sum of the distances to the own centres, to this power."""
        addresses = address_of(self.work), address_of(state)
        self.team.run(self._kernels.entry(sum_distances), *addresses, power)
        return self.inertia

    def draw(self, target: float) -> int:
        """Return the place of the sample at which the sum just measured exceeds a target."""
        scratch = self.scratch
        return int(draw_at(scratch.nearby, scratch.partial, self.samples.places, target))

    def distances(self, centers: FloatArray) -> FloatArray:
        """Distances of all samples to these centres, in the frame."""
        self.centers.exact[:] = centers
        result = np.empty((len(self.samples.order), self.k))
        all_distances(self.samples, self.centers.exact, result)
        return result

    def seed(self, quantiles: FloatArray, chosen: NDArray[np.int64]) -> None:
        """Draw centres; see :func:`~evomeans.engines.cpu.seeding.seed`."""
        # The work space has room for as many candidates as centres.
        quantiles = np.ascontiguousarray(quantiles[:, : self.k])
        candidates = Candidates.allocate(
            quantiles.shape[1], len(self.samples.radii), self.target.shape[1]
        )
        memory = self.centers.exact, self.scratch, candidates
        n_products = candidates.gains.size * WIDTH * self.target.shape[1]
        most = max(1, n_products // WORTH_A_MEETING)
        self.team.run(seed, self.samples, *memory, quantiles, chosen, most=most)

    @property
    def positions(self) -> FloatArray:
        """A copy of the centres."""
        return self.centers.exact.copy()

    @property
    def sums(self) -> NDArray[np.int64]:
        """A copy of the cluster sums, totalled over the threads."""
        sums = self.centers.sums
        return np.array(sums[0]) if len(sums) == 1 else np.sum(sums, axis=0)

    @property
    def inertia(self) -> float:
        """Sum of squared distances, in the frame."""
        return float(self.scratch.outcome["inertia"][0])

    @property
    def outcome(self) -> Outcome:
        """What the last run says of itself."""
        return Outcome._make(self.scratch.outcome.item())

    @property
    def level(self) -> Level:
        """Inertia and cluster weights, the latter until the next run."""
        return Level(self.inertia, self.centers.weights)

    def labels(self, state: State) -> NDArray[np.int32]:
        """Labels in the user's order."""
        return state.labels.ravel()[self.samples.places].astype(np.int32)
