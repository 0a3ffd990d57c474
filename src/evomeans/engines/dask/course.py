"""K-means from one start, told as a sequence of questions to the blocks and what follows."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.engines.dask.blocks import Survey
from evomeans.engines.dask.questions import Ground, Question, Wanted
from evomeans.engines.protocol import FloatArray, Refinement, Start
from evomeans.engines.rules import (
    CERTAINLY_NO_ROUNDING,
    MAX_ITERATIONS,
    MAX_REPAIRS,
    repair_draw,
    split_mixture,
)

Asking = Generator[Question, Any, None]


class Course:
    """The way of one solution. Many go side by side and ask together.

    Parameters
    ----------
    start : Start
    name : int
        Of the solution, for the workers.
    parent : int
        The name of the parent, −1 if there is none.
    ground : Ground
    survey : Survey
    """

    def __init__(
        self, start: Start, name: int, parent: int, ground: Ground, survey: Survey
    ) -> None:
        self.start = start
        self.name = name
        self.parent = parent
        self.ground = ground
        self.survey = survey
        self.centers = start.centers.copy()
        self.weights = np.zeros(len(self.centers))
        self.inertia = 0.0
        self.n_iter = 0

    def run(self) -> Generator[Question, Any, Refinement]:
        """Relocate, run K-means to its fixed point, and refill clusters that end up empty.

        Every question yielded is to be answered by what all blocks together say to it.
        """
        start, k = self.start, len(self.centers)
        if start.removed >= 0:
            yield from self._relocate(start.removed, start.alpha, start.quantile)
        yield from self._lloyd()
        repairs = 0
        while empty := np.flatnonzero(self.weights == 0.0).tolist():
            if (yield from self._sits_on_samples()) or repairs >= MAX_REPAIRS * k:
                break
            for j in empty:
                repairs += 1
                yield from self._relocate(j, *repair_draw(start.alpha, start.quantile, repairs))
            yield from self._lloyd()
        if (yield from self._sits_on_samples()):
            yield from self._snap()
        inertia = self.ground.frame.inertia_in_data_units(self.inertia)
        return Refinement(self.centers, inertia, self.weights, self.n_iter)

    def _lloyd(self) -> Asking:
        """Move centres to the means of their clusters until none moves any more."""
        for _ in range(MAX_ITERATIONS):
            sums = yield self._question(Wanted.SUMS)
            self.n_iter += 1
            before = self.centers
            self.centers, self.weights = means_of(sums, before, self.ground)
            # As the CPU engine sees it: squares of the smallest moves vanish.
            if not np.any(np.sum((self.centers - before) ** 2, axis=1) > 0.0):
                break
        yield from self._measure()

    def _measure(self) -> Asking:
        distances = yield self._question(Wanted.DISTANCES)
        self.inertia = sum(in_order(distances))

    def _relocate(self, removed: int, alpha: float, quantile: float) -> Asking:
        """Put one centre onto a sample drawn from the mixture (the paper's eq. 5)."""
        by_distance, quantile = split_mixture(alpha, quantile)
        row = None
        if by_distance and len(self.centers) > 1:
            asked = {"gone": removed, "power": self.start.power}
            distances = yield self._question(Wanted.DISTANCES, **asked)
            self.n_iter += 1
            if (found := locate(in_order(distances), quantile)) is not None:
                block, rest = found
                drawn = yield self._question(Wanted.DRAW, picks={block: rest}, **asked)
                row = drawn[block]
        if row is None:
            picks, _ = positions(self.survey, np.array([quantile]))
            drawn = yield Question(Wanted.ROWS, picks=picks)
            (row,) = next(iter(drawn.values()))
        self.centers = self.centers.copy()
        self.centers[removed] = row

    def _sits_on_samples(self) -> Generator[Question, Any, bool]:
        if self.inertia > CERTAINLY_NO_ROUNDING * self.survey.total_weight:
            return False
        answers = yield self._question(Wanted.ON_CENTERS)
        return all(answers.values())

    def _snap(self) -> Asking:
        """Put every centre onto one of its samples, where all of them are up to rounding."""
        members = yield self._question(Wanted.MEMBERS)
        self.centers = self.centers.copy()
        for block in sorted(members, reverse=True):
            for j, row in members[block].items():
                self.centers[j] = row
        sums = yield self._question(Wanted.SUMS)
        _, self.weights = means_of(sums, self.centers, self.ground)
        yield from self._measure()

    def _question(self, wanted: Wanted, **details: Any) -> Question:
        return Question(wanted, self.name, self.centers, self.parent, **details)


def means_of(
    sums: NDArray[np.int64], centers: FloatArray, ground: Ground
) -> tuple[FloatArray, FloatArray]:
    """Return the means and weights of clusters; an empty cluster's centre stays.

    The same arithmetic as :func:`~evomeans.engines.cpu.sums.update_center`, to the last bit.
    """
    totals = sums[:, 0] + sums[:, 1] * (1.0 / ground.limb)
    weights = totals[:, -1] / ground.scales[-1]
    filled = weights > 0.0
    means = centers.copy()
    means[filled] = totals[filled, :-1] / (ground.scales[:-1] * weights[filled, None])
    return means, weights


def in_order(answers: Mapping[int, float]) -> list[float]:
    """Return what blocks said in their order, in which it has to be summed."""
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

    Returns
    -------
    picks : dict of int to array
        For each block concerned, what is left of the targets within it: row numbers if weights are
        equal, else cumulated weights.
    order : list of (int, int)
        For each quantile, its block and its place in the picks of that block.
    """
    cumulated = survey.cumulated
    weights = np.diff(cumulated, prepend=0.0)
    targets = quantiles * cumulated[-1]
    last = np.flatnonzero(weights)[-1]
    blocks = np.minimum(np.searchsorted(cumulated, targets, side="right"), last)
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
