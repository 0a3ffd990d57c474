"""One refinement as a sequence of questions to the blocks of samples."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

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
    course,
)
from evomeans.engines.dask.blocks import Survey
from evomeans.engines.dask.steps import Ground, Question, Wanted
from evomeans.engines.frame import means_of
from evomeans.engines.protocol import Order, Refinement
from evomeans.engines.rules import MAX_ITERATIONS, split_mixture
from evomeans.engines.sampling import wheel_stops
from evomeans.typing import FloatArray

Asking = Generator[Question, Any, None]
Said = TypeVar("Said")


@dataclass
class BlockCourse:
    """One refinement whose steps are answered by blocks of samples.

    Every step of the :func:`~evomeans.engines.course.course` becomes questions to the blocks. Many
    solutions ask side by side.
    """

    start: Order
    name: int
    """Of the solution, for the workers."""
    parent: int
    """The name of the parent, −1 if there is none."""
    ground: Ground
    survey: Survey

    def __post_init__(self) -> None:
        self.centers = self.start.centers
        self.n_iter = 0

    def run(self) -> Generator[Question, Any, Refinement]:
        """Follow the course; every question is to be answered by all blocks together."""
        steps = course(self.start, self.survey.total_weight)
        answer: Any = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as end:
                inertia = self.ground.frame.inertia_in_data_units(end.value.inertia)
                return Refinement(self.centers, inertia, end.value.weights, self.n_iter)
            answer = yield from self._answer(step)

    def _answer(self, step: Step) -> Generator[Question, Any, Any]:
        match step:
            case Begin():
                self.centers = self.start.centers.copy()
                return None
            case Relocate():
                return (yield from self._relocate(step.removed, step.alpha, step.quantile))
            case Assign():
                return (yield from self._assign(step.centers))
            case Descend():
                return (yield from self._lloyd())
            case IsOnSamples():
                answers = yield self._question("on_centers")
                return all(answers.values())
            case Snap():
                return (yield from self._snap())
            case _:
                raise NotImplementedError(f"The Dask engine has no answer to {step}.")

    def _assign(self, centers: FloatArray | None) -> Generator[Question, Any, ClusterMeans]:
        if centers is not None:
            self.centers = centers
        sums = yield self._question("sums")
        self.n_iter += 1
        ground = self.ground
        means, weights = means_of(sums, self.centers, ground.scales, ground.limb)
        return ClusterMeans(self.centers, means, weights)

    def _lloyd(self) -> Generator[Question, Any, Level]:
        """Move centres to the means of their clusters until none moves any more."""
        weights = np.zeros(len(self.centers))
        for _ in range(MAX_ITERATIONS):
            before, self.centers, weights = yield from self._assign(None)
            # As the CPU engine sees it: squares of the smallest moves vanish.
            if not np.any(np.sum((self.centers - before) ** 2, axis=1) > 0.0):
                break
        return (yield from self._measure(weights))

    def _measure(self, weights: FloatArray) -> Generator[Question, Any, Level]:
        distances = yield self._question("distances")
        return Level(sum(in_order(distances)), weights)

    def _relocate(self, removed: int, alpha: float, quantile: float) -> Asking:
        """Put one centre onto a sample drawn from the mixture (the paper's eq. 5)."""
        by_distance, quantile = split_mixture(alpha, quantile)
        row = None
        if by_distance and len(self.centers) > 1:
            asked = {"gone": removed, "power": self.start.power}
            distances = yield self._question("distances", **asked)
            self.n_iter += 1
            if (found := locate(in_order(distances), quantile)) is not None:
                block, rest = found
                drawn = yield self._question("draw", picks={block: rest}, **asked)
                row = drawn[block]
        if row is None:
            picks, _ = positions(self.survey, np.array([quantile]))
            drawn = yield Question("rows", picks=picks)
            (row,) = next(iter(drawn.values()))
        self.centers = self.centers.copy()
        self.centers[removed] = row

    def _snap(self) -> Generator[Question, Any, Level]:
        """Put every centre onto one of its samples, where all of them are up to rounding."""
        members = yield self._question("members")
        self.centers = self.centers.copy()
        for block in sorted(members, reverse=True):
            for j, row in members[block].items():
                self.centers[j] = row
        sums = yield self._question("sums")
        _, weights = means_of(sums, self.centers, self.ground.scales, self.ground.limb)
        return (yield from self._measure(weights))

    def _question(self, wanted: Wanted, **details: Any) -> Question:
        return Question(wanted, self.name, self.centers, self.parent, **details)


def in_order(answers: Mapping[int, Said]) -> list[Said]:
    """Return what blocks said in their order, which sums depend on."""
    return [answers[block] for block in sorted(answers)]


def locate(totals: list[float], quantile: float) -> tuple[int, float] | None:
    """Return the block whose share of the total holds a quantile, and what is left for it to draw.

    None if the total is zero.
    """
    drawable = [block for block, total in enumerate(totals) if total > 0.0]
    if not drawable:
        return None
    target = quantile * sum(totals)
    for block in drawable[:-1]:
        if totals[block] > target:
            return block, target
        target -= totals[block]
    return drawable[-1], target


def positions(
    survey: Survey, quantiles: FloatArray
) -> tuple[dict[int, NDArray[Any]], list[tuple[int, int]]]:
    """Find the rows at quantiles of the cumulated weight.

    Returns for each block concerned what is left of the targets within it, row numbers if weights
    are equal, else cumulated weights; and for each quantile, its block and its place in there.
    """
    cumulated = survey.cumulated
    weights = np.diff(cumulated, prepend=0.0)
    targets = quantiles * cumulated[-1]
    blocks = wheel_stops(cumulated, targets, np.flatnonzero(weights)[-1])
    rests = targets - (cumulated - weights)[blocks]
    if survey.equal_weights:
        # Equal weights count rows: what rounding has left of a target is no row.
        rests = np.minimum(rests.astype(np.int64), survey.sizes[blocks] - 1)
    picks: dict[int, list[Any]] = {}
    order = []
    for block, rest in zip(blocks.tolist(), rests, strict=True):
        picks.setdefault(block, []).append(rest)
        order.append((block, len(picks[block]) - 1))
    return {block: np.array(rest) for block, rest in picks.items()}, order
