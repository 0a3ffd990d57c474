"""The work space for one number of clusters, and the one way into the kernels."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.jit import address_of
from evomeans.engines.course import Level
from evomeans.engines.cpu.assignment import reassign
from evomeans.engines.cpu.hartigan import move_singles
from evomeans.engines.cpu.kernels import (
    PLAIN,
    Instructions,
    Kernels,
    Move,
    address_in,
    kernels_for,
    numbers_of,
)
from evomeans.engines.cpu.layout import (
    Centers,
    Samples,
    Scratch,
    Solution,
    SparseRows,
    State,
)
from evomeans.engines.cpu.offspring import (
    CROSS,
    MERGE,
    PARTS,
    REFINE,
    OffspringArrays,
    Parts,
    choose_parts,
    make_offspring,
)
from evomeans.engines.cpu.refine import (
    INERTIA,
    SWAPS,
    MomentumState,
    lead,
    refine,
    step,
    sum_distances,
)
from evomeans.engines.cpu.samples import with_room
from evomeans.engines.cpu.seeding import Candidates, all_distances, draw_at, seed
from evomeans.engines.cpu.swaps.lists import SUCCESSES, Clusters, UndoLog
from evomeans.engines.cpu.swaps.search import try_swaps
from evomeans.engines.cpu.threads import ABANDONED, ThreadTeam
from evomeans.engines.protocol import Order, Way
from evomeans.kernels import matching, ward
from evomeans.typing import Flags, FloatArray


class Outcome(NamedTuple):
    """What a run says of itself; see ``numbers`` of :class:`~evomeans.engines.cpu.layout.Scratch`.

    * ``inertia``: sum of squared distances, in the frame.
    * ``iterations``: assignments that it made.
    * ``swaps_kept``: how many; −1 if it tried none.
    * ``unswapped``: sum of squared distances before the swaps.
    * ``n_empty``: clusters without weight.
    * ``made_by``: how an offspring was made.
    """

    inertia: float
    iterations: float
    swaps_kept: float
    unswapped: float
    n_empty: float
    made_by: float


class Workspace:
    """The work space for one number of clusters, and the one way into the kernels."""

    def __init__(self, samples: Samples, k: int, n_features: int, n_threads: int) -> None:
        sparse = isinstance(samples.rows, SparseRows)
        samples = with_room(samples, k, n_features)
        self.k = k
        self.samples = samples
        self.team = ThreadTeam(n_threads)
        self.target = np.empty((k, n_features))
        self.centers = Centers.allocate(self.target, n_threads)
        self.scratch = Scratch.allocate(
            len(samples.order), k, n_features, n_threads, sparse, self.team.barrier
        )
        # Ways of crossing whose kernels are in the arrays of offspring.
        self._ways: set[tuple[bool, int]] = set()

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
        self.team.run(
            self._kernels.entry(refine),
            self._addresses[0],
            address_of(parent),
            address_of(found),
            *self._instructed(move, order),
        )

    def _instructed(self, move: Move, order: Order) -> tuple[Any, ...]:
        """Write the instructions, and return the addresses of all that they need."""
        kernels, (_, centers, scratch) = self._kernels, self._addresses
        self._instructions.record[0] = (
            *move,
            kernels.address(reassign),
            kernels.address(lead) if move.leads else 0,
            kernels.address(move_singles) if move.moves else 0,
            kernels.address(try_swaps) if move.tries_swaps else 0,
            *numbers_of(order),
        )
        swapping = self._swap_addresses if move.tries_swaps else (0, 0)
        momentum = address_of(self._momentum) if move.leads else 0
        return centers, scratch, *swapping, momentum, address_of(self._instructions)

    def forget_swaps(self) -> None:
        """Forget how many swaps the last run kept, in case the next one does not begin."""
        self.scratch.numbers[SWAPS] = -1.0

    def swap(self, state: State, count: int, seed: float) -> bool:
        """Try swaps; return whether any was kept. The result is in ``swapped``."""
        if self.k < 2:
            return False
        samples, centers, scratch = self._addresses
        swapping = self._swap_addresses
        swap = self._kernels.entry(try_swaps)
        swap(samples, *swapping, address_of(state), centers, scratch, count, seed)
        return bool(self._undo_log.numbers[SUCCESSES] > 0)

    def breed(
        self,
        first: Solution,
        second: Solution,
        found: Solution,
        move: Move,
        order: Order,
    ) -> None:
        """Make an offspring; see :func:`~evomeans.engines.cpu.offspring.make_offspring`."""
        self._offspring_arrays.coins[:] = order.numbers
        *shared, instructions = self._instructed(move, order)
        make = self._kernels.entry(make_offspring)
        arrays = self._offspring_arrays_for(move.tries_parts, move.way)
        solutions = address_of(first), address_of(second), address_of(found)
        self.team.begin_alone()
        make(self._addresses[0], *solutions, *shared, arrays, instructions)
        self.team.check()

    def _offspring_arrays_for(self, tries_parts: bool, way: int) -> int:
        """Return the address of the arrays of offspring, with all needed kernels in them."""
        if (tries_parts, way) not in self._ways:
            self._ways.add((tries_parts, way))
            addresses, kernels = self._offspring_arrays.addresses, self._kernels
            addresses[REFINE] = kernels.address(refine)
            if tries_parts:
                addresses[PARTS] = kernels.address(choose_parts)
            if way == Way.MERGING:
                addresses[MERGE] = address_in(*ward.kernel_calls())
            else:
                addresses[CROSS] = address_in(*matching.kernel_calls())
        return address_of(self._offspring_arrays)

    @cached_property
    def _instructions(self) -> Instructions:
        return Instructions.allocate()

    @cached_property
    def _offspring_arrays(self) -> OffspringArrays:
        # The flag of the team ends long crossovers as it ends refinements.
        stop = self.team.barrier[ABANDONED : ABANDONED + 1]
        return OffspringArrays.allocate(*self.target.shape, self._parts, stop)

    @cached_property
    def _addresses(self) -> tuple[int, int, int]:
        return address_of(self.samples), address_of(self.centers), address_of(self.scratch)

    @cached_property
    def _swap_addresses(self) -> tuple[int, int]:
        return address_of(self.swapped), address_of(self._undo_log)

    @cached_property
    def _momentum(self) -> MomentumState:
        return MomentumState.allocate(*self.target.shape)

    @cached_property
    def _kernels(self) -> Kernels:
        return kernels_for(self.samples, self.centers, self.scratch, self.k)

    @cached_property
    def swapped(self) -> Clusters:
        """The clusters after swaps."""
        sparse = isinstance(self.samples.rows, SparseRows)
        return Clusters.allocate(len(self.samples.order), *self.target.shape, sparse)

    @cached_property
    def _undo_log(self) -> UndoLog:
        return UndoLog.allocate(len(self.samples.order), *self.target.shape, self.team.barrier)

    def better_parts(
        self, first: tuple[NDArray[Any], FloatArray], second: tuple[NDArray[Any], FloatArray]
    ) -> tuple[Flags, Flags] | None:
        """Choose the better versions of parts; see :mod:`~evomeans.engines.cpu.offspring`.

        Of both solutions, labels (tiles, WIDTH) and centres (k, d).
        """
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
        self.team.run(step, self.samples, state, self.centers, self.scratch, fresh, gone)

    def measure(self, state: State, power: int) -> float:
        """Return the weighted sum of the distances to the own centres, to this power."""
        self.team.run(sum_distances, self.samples, state, self.centers, self.scratch, power)
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
        self.team.run(seed, self.samples, *memory, quantiles, chosen)

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
        return float(self.scratch.numbers[INERTIA])

    @property
    def outcome(self) -> Outcome:
        """What the last run says of itself."""
        return Outcome._make(self.scratch.numbers.tolist())

    @property
    def level(self) -> Level:
        """Inertia and cluster weights, the latter until the next run."""
        return Level(self.inertia, self.centers.weights)

    def labels(self, state: State) -> NDArray[np.int32]:
        """Labels in the user's order."""
        return state.labels.ravel()[self.samples.places].astype(np.int32)
