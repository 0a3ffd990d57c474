"""One refinement on the CPU: how the engine answers the steps of a course.

Nearly every refinement is a single call of the kernel, which the engine makes itself. What is here
follows where that leaves something to be done.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
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
    Swap,
    course,
)
from evomeans.engines.cpu.kernels import Move
from evomeans.engines.cpu.layout import Outcome, Solution
from evomeans.engines.cpu.samples import dense_rows, sit_on_centers
from evomeans.engines.cpu.workspace import Workspace
from evomeans.engines.frame import means_of
from evomeans.engines.protocol import Order
from evomeans.engines.rules import CERTAINLY_NO_ROUNDING, split_mixture
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
    is_misled = outcome.swaps_kept > 0 and inertia > outcome.unswapped
    is_rounding = inertia <= CERTAINLY_NO_ROUNDING * total_weight
    return not (is_misled or is_rounding or outcome.n_empty)


@dataclass
class Refining:
    """Carries out one course, from the parent ``known`` into ``found``.

    The kernel moves the centres, relocates one and runs K-means in a single call. So the centres to
    go to wait here until the course says what follows.
    """

    workspace: Workspace
    start: Order
    draw: WeightedDraw
    known: Solution | None
    found: Solution
    n_iter: int = 0
    _inherited: Solution | None = None
    _target: FloatArray | None = None
    _relocation: dict[str, Any] = field(default_factory=dict)

    def follow(self, total_weight: float) -> Level:
        """Let the course decide about every step."""
        answer, steps = None, course(self.start, total_weight)
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
                return self._move()
            case Swap():
                return self._swap()
            case IsOnSamples():
                return sit_on_centers(self.workspace.samples, self.workspace.scratch.nearby)
            case Snap():
                return self._snap()

    def _begin(self) -> None:
        self._inherited = self.known
        self._go_to(self.start.centers)

    def _go_to(self, centers: FloatArray | None, **relocation: Any) -> None:
        """Plan the next move of the centres, None lets them stay, and what is relocated then."""
        self._target, self._relocation = centers, relocation

    def _relocate(self, removed: int, alpha: float, quantile: float) -> None:
        """Choose the sample at once if that needs no distances; else leave it to the kernel."""
        if self._relocation:
            self._move(steps=0, moves=False)
        target = self.workspace.positions if self._target is None else self._target
        placed, uniform = choose_place(self.workspace, self.draw, alpha, quantile)
        self._go_to(target, gone=removed, placed=placed, uniform=uniform)

    def _move(self, **changes: Any) -> Level:
        """Move the centres as planned, and run K-means and single moves."""
        planned = {"inherit": self._inherited is not None, **self._relocation, **changes}
        move = Move.of(self.start, self.workspace.k)
        self.workspace.run(
            self.found if self._inherited is None else self._inherited,
            self.found,
            self.workspace.positions if self._target is None else self._target,
            move._replace(leads=False, tries_swaps=False, **planned),
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
        self._move(steps=-1, moves=False)
        found, samples = self.found, self.workspace.samples
        means, weights = means_of(found.sums, found.centers, samples.scales, samples.limb)
        return ClusterMeans(found.centers.copy(), means, weights)

    def _swap(self) -> bool:
        swaps = self.start.local_search.swaps
        if not self.workspace.swap(self.found.state, swaps, self.start.quantile):
            return False
        self._go_to(self.workspace.swapped.centers)
        return True

    def _snap(self) -> Level:
        workspace, counted = self.workspace, self.draw.counted
        target = workspace.positions
        labels, members = np.unique(workspace.labels(self.found.state)[counted], return_index=True)
        target[labels] = dense_rows(workspace.samples, counted[members], target.shape[1])
        workspace.run(self.found, self.found, target, Move(steps=0))
        return workspace.level
