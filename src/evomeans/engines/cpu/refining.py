"""One refinement on the CPU: how the engine answers the steps of a course."""

from __future__ import annotations

from typing import Any

import numpy as np

from evomeans.engines.course import (
    Assign,
    Begin,
    Clusters,
    Descend,
    IsOnSamples,
    Level,
    Relocate,
    Snap,
    Step,
    Steps,
    Swap,
    course,
    is_common_end,
)
from evomeans.engines.cpu.layout import State
from evomeans.engines.cpu.memory import Recollection
from evomeans.engines.cpu.room import Room
from evomeans.engines.cpu.samples import dense_rows, squared_norms
from evomeans.engines.draws import WeightedDraw
from evomeans.engines.fixed_point import means_of
from evomeans.engines.protocol import FloatArray, Start
from evomeans.engines.rules import MAX_ITERATIONS, sits_on_centers, split_mixture


class Refining:
    """Carries out one course.

    The kernel relocates a centre, runs K-means, tries swaps, and runs K-means again after them, in
    a single call. So the centres to go to wait here until the course says what follows; and where
    the kernel is ahead of the course, its results do.

    Parameters
    ----------
    room : Room
        The work space; it holds the centres.
    start : Start
    draw : WeightedDraw
        Of samples by their weight.
    known : Recollection, optional
        What is known of the parent of the start.
    state : State, out
        Of the samples in the end.
    """

    def __init__(
        self,
        room: Room,
        start: Start,
        draw: WeightedDraw,
        known: Recollection | None,
        state: State,
    ) -> None:
        self.room = room
        self.start = start
        self.draw = draw
        self.known = known
        self.state = state
        self.n_iter = 0
        limit = start.local_search.max_iter
        self._steps = MAX_ITERATIONS if limit is None else limit
        # Whether swaps follow the next fixed point: the course asks for them once. With momentum,
        # there is more than the kernel does in a call.
        self._is_swapping = limit is None and not start.local_search.momentum and room.k > 1
        self._kept: bool | None = None
        self._ahead: Level | None = None

    def run(self, total_weight: float) -> Level:
        """Do what the kernel does in a single call, and follow the course from there."""
        start, reached = self.start, None
        if not start.local_search.momentum:
            self._begin()
            if start.removed >= 0:
                self._relocate(start.removed, start.alpha, start.quantile)
            reached = self._descend()
            # Nearly always there is nothing left to do, and no need to ask what.
            end = reached if self._ahead is None else self._ahead
            if end.inertia <= reached.inertia and is_common_end(end, total_weight):
                return end
        return self._follow(course(start, total_weight, reached))

    def _follow(self, steps: Steps[Level]) -> Level:
        answer: Any = None
        while True:
            try:
                answer = self._answer(steps.send(answer))
            except StopIteration as end:
                level: Level = end.value
                return level

    def _answer(self, step: Step) -> Any:
        match step:
            case Begin():
                return self._begin()
            case Relocate():
                return self._relocate(step.removed, step.alpha, step.quantile)
            case Assign():
                return self._assign(step.centers)
            case Descend():
                return self._descend()
            case Swap():
                return self._swap()
            case IsOnSamples():
                return self._is_on_samples()
            case Snap():
                return self._snap()

    def _begin(self) -> None:
        self._inherited: State | None = None
        if self.known is not None:
            self.room.take_over(self.known)
            self._inherited = self.known.state
        self._go_to(self.start.centers)

    def _go_to(self, centers: FloatArray | None, removed: int = -1, quantile: float = 0.0) -> None:
        """Plan the next move of the centres; None lets them stay."""
        self._target, self._removed, self._quantile = centers, removed, quantile
        self._is_relocating = False

    def _relocate(self, removed: int, alpha: float, quantile: float) -> None:
        """Choose the sample at once if that needs no distances; else leave it to the kernel."""
        if self._is_relocating:
            self._move(steps=0)
        centers = self.room.positions if self._target is None else self._target
        by_distance, quantile = split_mixture(alpha, quantile)
        if by_distance and len(centers) > 1:
            self._go_to(centers, removed, quantile)
        else:
            centers = centers.copy()
            drawn = self.draw.rows(np.array([quantile]))
            centers[removed] = dense_rows(self.room.samples, drawn, centers.shape[1])[0]
            self._go_to(centers)
        self._is_relocating = True

    def _descend(self) -> Level:
        """Run K-means and single moves, and then the swaps that the course will ask for."""
        if self._ahead is not None:
            level, self._ahead = self._ahead, None
            return level
        swaps = self.start.local_search.swaps if self._is_swapping else 0
        level = self._move(self._steps, swaps)
        if (kept := self.room.swaps_kept) < 0:
            return level
        self._is_swapping, self._kept = False, kept > 0
        if not kept:
            return level
        self._ahead = level
        # The kernel swaps only where no cluster is empty; by now, one may be.
        return Level(self.room.unswapped, np.ones(self.room.k))

    def _move(self, steps: int, swaps: int = 0) -> Level:
        """Move the centres as planned, and let K-means, single moves and swaps follow."""
        self.room.run(
            self.state if self._inherited is None else self._inherited,
            self.state,
            self.room.positions if self._target is None else self._target,
            self._inherited is not None,
            self._removed,
            self._quantile,
            self.start.power,
            steps,
            self.start.local_search.single_moves and steps > 0,
            swaps,
            self.start.quantile,
        )
        self.n_iter += self.room.iterations
        self._inherited = self.state
        self._go_to(None)
        return self.room.level

    def _assign(self, centers: FloatArray | None) -> Clusters:
        """Assign the samples to the centres as planned, or to these; the inertia is not needed."""
        if centers is not None:
            self._go_to(centers)
        self._move(steps=-1)
        room, samples = self.room, self.room.samples
        means, weights = means_of(room.sums, room.centers.exact, samples.scales, samples.limb)
        return Clusters(room.positions, means, weights)

    def _swap(self) -> bool:
        if self._kept is not None:
            return self._kept
        self._is_swapping = False
        swaps = self.start.local_search.swaps
        if not self.room.swap(self.state, swaps, self.start.quantile):
            return False
        self._go_to(self.room.swapped.centers)
        return True

    def _is_on_samples(self) -> bool:
        samples = self.room.samples
        squares, norms = self.room.scratch.nearby, squared_norms(samples)
        if len(samples.weights):
            counted = np.flatnonzero(samples.weights)
            squares, norms = squares[counted] / samples.weights[counted], norms[counted]
        return sits_on_centers(squares, norms)

    def _snap(self) -> Level:
        room, counted = self.room, self.draw.counted
        target = room.positions
        labels, members = np.unique(room.labels(self.state)[counted], return_index=True)
        target[labels] = dense_rows(room.samples, counted[members], target.shape[1])
        room.run(self.state, self.state, target, False, -1, 0.0, 1, steps=0)
        return room.level
