"""One refinement on the CPU: how the engine answers the steps of a course."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from evomeans.engines.course import (
    Assign,
    Begin,
    ClusterMeans,
    Descend,
    IsOnSamples,
    Level,
    Relocate,
    Snap,
    Step,
    Steps,
    Swap,
    course,
    least_of,
)
from evomeans.engines.cpu.instructions import Move
from evomeans.engines.cpu.layout import Solution
from evomeans.engines.cpu.samples import dense_rows, squared_norms
from evomeans.engines.cpu.workspace import Outcome, Workspace
from evomeans.engines.frame import means_of
from evomeans.engines.protocol import Order
from evomeans.engines.rules import (
    CERTAINLY_NO_ROUNDING,
    MAX_ITERATIONS,
    sits_on_centers,
    split_mixture,
)
from evomeans.engines.sampling import WeightedDraw
from evomeans.typing import FloatArray


def choose_place(
    workspace: Workspace, draw: WeightedDraw, alpha: float, quantile: float
) -> tuple[int, float]:
    """Choose the sample that a centre is relocated to, if that needs no distances.

    Returns its place, −1 if it is drawn by its distance, and the uniform number left for that draw.
    """
    by_distance, quantile = split_mixture(alpha, quantile)
    if by_distance and workspace.k > 1:
        return -1, quantile
    return int(workspace.samples.places[draw.row(quantile)]), quantile


def is_common_end(outcome: Outcome, total_weight: float) -> bool:
    """Whether nothing is left to do after a single call of the kernel.

    That is so if it was given up; or unless swaps have raised the sum of squares, there are empty
    clusters, or samples may equal their centres.
    """
    inertia = outcome.inertia
    if math.isinf(inertia):
        return True
    is_misled = outcome.swaps_kept > 0.0 and inertia > outcome.unswapped
    is_rounding = inertia <= CERTAINLY_NO_ROUNDING * total_weight
    return not (is_misled or is_rounding or outcome.n_empty)


class Refining:
    """Carries out one course.

    The kernel relocates a centre, runs K-means, tries swaps, and runs K-means again after them, in
    a single call. So the centres to go to wait here until the course says what follows; and where
    the kernel is ahead of the course, its results do.

    * ``workspace``: the work space; it holds the centres.
    * ``draw``: of samples by their weight.
    * ``known``: the parent of the start.
    * ``found``, out
    """

    def __init__(
        self,
        workspace: Workspace,
        start: Order,
        draw: WeightedDraw,
        known: Solution | None,
        found: Solution,
    ) -> None:
        self.workspace = workspace
        self.start = start
        self.draw = draw
        self.known = known
        self.found = found
        self.n_iter = 0
        limit = start.local_search.max_iter
        self._steps = MAX_ITERATIONS if limit is None else limit
        # Whether momentum precedes the next fixed point, and whether swaps follow it: the course
        # asks for them once.
        self._has_momentum = limit is None and start.local_search.momentum
        self._is_swapping = limit is None and workspace.k > 1
        self._kept: bool | None = None
        self._ahead: Level | None = None

    def run(self, total_weight: float) -> Level:
        """Do what the kernel does in a single call, and follow the course from there."""
        start = self.start
        self._begin()
        if start.removed >= 0:
            self._relocate(start.removed, start.alpha, start.quantile)
        reached = self._descend()
        if is_common_end(self.workspace.outcome, total_weight):
            return self.workspace.level
        if self._has_momentum:
            # There is more to decide than the course would ask for from here on.
            return self._step_by_step(total_weight)
        return self._follow(course(start, total_weight, reached))

    def _step_by_step(self, total_weight: float) -> Level:
        """Begin anew, and let the course decide about every step."""
        self.n_iter, self._has_momentum, self._is_swapping = 0, False, False
        self._kept = self._ahead = None
        return self._follow(course(self.start, total_weight))

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
        self._inherited = self.known
        self._go_to(self.start.centers)

    def _go_to(
        self,
        centers: FloatArray | None,
        removed: int = -1,
        placed: int = -1,
        quantile: float = 0.0,
    ) -> None:
        """Plan the next move of the centres; None lets them stay."""
        self._target, self._removed = centers, removed
        self._placed, self._quantile = placed, quantile

    def _relocate(self, removed: int, alpha: float, quantile: float) -> None:
        """Choose the sample at once if that needs no distances; else leave it to the kernel."""
        if self._removed >= 0:
            self._move(steps=0)
        target = self.workspace.positions if self._target is None else self._target
        self._go_to(target, removed, *choose_place(self.workspace, self.draw, alpha, quantile))

    def _descend(self) -> Level:
        """Run K-means and single moves, and then the swaps that the course will ask for."""
        if self._ahead is not None:
            level, self._ahead = self._ahead, None
            return level
        swaps = self._is_swapping and self.start.local_search.swaps > 0
        level = self._move(self._steps, swaps=swaps, momentum=self._has_momentum)
        outcome = self.workspace.outcome
        if outcome.swaps_kept < 0.0:
            return level
        self._is_swapping, self._kept = False, outcome.swaps_kept > 0.0
        if not self._kept:
            return level
        self._ahead = level
        # The kernel swaps only where no cluster is empty; by now, one may be.
        return Level(outcome.unswapped, np.ones(self.workspace.k))

    def _move(self, steps: int, *, swaps: bool = False, momentum: bool = False) -> Level:
        """Move the centres as planned, and let K-means, single moves and swaps follow."""
        local_search = self.start.local_search
        self.workspace.run(
            self.found if self._inherited is None else self._inherited,
            self.found,
            self.workspace.positions if self._target is None else self._target,
            Move(
                self._inherited is not None,
                self._removed,
                self._placed,
                self._quantile,
                steps,
                least_of(local_search, self.start.least_explained),
                momentum,
                local_search.single_moves and steps > 0,
                swaps,
            ),
            self.start,
        )
        self.n_iter += int(self.workspace.outcome.iterations)
        self._inherited = self.found
        self._go_to(None)
        return self.workspace.level

    def _assign(self, centers: FloatArray | None) -> ClusterMeans:
        """Assign the samples to the centres as planned, or to these; the inertia is not needed."""
        if centers is not None:
            self._go_to(centers)
        self._move(steps=-1)
        found, samples = self.found, self.workspace.samples
        means, weights = means_of(found.sums, found.centers, samples.scales, samples.limb)
        return ClusterMeans(found.centers.copy(), means, weights)

    def _swap(self) -> bool:
        if self._kept is not None:
            return self._kept
        self._is_swapping = False
        swaps = self.start.local_search.swaps
        if not self.workspace.swap(self.found.state, swaps, self.start.quantile):
            return False
        self._go_to(self.workspace.swapped.centers)
        return True

    def _is_on_samples(self) -> bool:
        samples = self.workspace.samples
        squares, norms = self.workspace.scratch.nearby, squared_norms(samples)
        if len(samples.weights):
            counted = np.flatnonzero(samples.weights)
            squares, norms = squares[counted] / samples.weights[counted], norms[counted]
        return sits_on_centers(squares, norms)

    def _snap(self) -> Level:
        workspace, counted = self.workspace, self.draw.counted
        target = workspace.positions
        labels, members = np.unique(workspace.labels(self.found.state)[counted], return_index=True)
        target[labels] = dense_rows(workspace.samples, counted[members], target.shape[1])
        workspace.run(self.found, self.found, target, Move(steps=0))
        return workspace.level
