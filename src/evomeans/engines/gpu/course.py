"""The course of a batch of refinements on the device, with momentum.

The rules are those of :mod:`~evomeans.engines.course`.
Centres stay on the device. After an iteration, the host reads four numbers of each solution and
answers with one: the part of the last step by which its centres go beyond the means.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from evomeans.engines.course import (
    AbandonRule,
    Begin,
    Descend,
    IsOnSamples,
    Lead,
    Level,
    MomentumSchedule,
    Relocate,
    Snap,
    Step,
    course,
)
from evomeans.engines.gpu.batch import DeviceMemory, Lloyd
from evomeans.engines.protocol import Order
from evomeans.engines.rules import MAX_ITERATIONS, sits_on_centers, split_mixture
from evomeans.engines.sampling import WeightedDraw
from evomeans.typing import FloatArray

Command = dict[int, Any]
"""What the course in each slot of the batch asks for."""


class BatchRefining:
    """Carries out the courses of several starts, each in a slot of the batch.

    Steps of the same kind are answered together. K-means comes last: it begins when every course
    that has not ended asks for it.
    """

    def __init__(self, lloyd: Lloyd, draw: WeightedDraw) -> None:
        self.lloyd, self.samples, self.batch = lloyd, lloyd.samples, lloyd.batch
        self.draw = draw
        # Slots whose centres were put onto samples.
        self.snapped: set[int] = set()

    def run(
        self, starts: Sequence[Order], memory: DeviceMemory, total_weight: float
    ) -> list[Level]:
        """Follow all courses to their ends."""
        self.starts, self.memory = starts, memory
        courses = [course(start, total_weight, leads=True) for start in starts]
        asked: dict[int, Step] = {slot: next(steps) for slot, steps in enumerate(courses)}
        levels: dict[int, Level] = {}
        while asked:
            for slot, answer in self._answers(asked).items():
                try:
                    asked[slot] = courses[slot].send(answer)
                except StopIteration as end:
                    levels[slot] = end.value
                    del asked[slot]
        return [levels[slot] for slot in range(len(starts))]

    def _answers(self, asked: dict[int, Step]) -> Command:
        """Answer the first kind of step that any course asks for."""
        answers = {
            Begin: self._begin,
            Relocate: self._relocate,
            IsOnSamples: self._are_on_samples,
            Snap: self._snap,
            Lead: self._lead,
            Descend: self._descend,
        }
        for kind, answer in answers.items():
            if chosen := {slot: step for slot, step in asked.items() if isinstance(step, kind)}:
                return answer(chosen)
        raise NotImplementedError(f"The GPU engine has no answer to {next(iter(asked.values()))}.")

    def _begin(self, asked: Command) -> Command:
        """Take over labels and sums of parents: fewer of them have to change then."""
        # All courses begin together, and none begins again: there are no swaps.
        assert list(asked) == list(range(len(self.starts)))
        self.batch.load([start.centers for start in self.starts])
        for slot in asked:
            known = self.memory.recall(self.starts[slot].parent, self.batch.k)
            if known is not None:
                self.batch.labels[slot] = known.labels
                self.batch.sums[slot] = known.sums
        return dict.fromkeys(asked)

    def _carry_out(self, slots: Sequence[int], *steps: str) -> None:
        """Make some steps of these solutions alone."""
        self.batch.activate(slots)
        self.lloyd.carry_out(*steps, bound=len(slots))

    def _relocate(self, asked: Command) -> Command:
        batch = self.batch
        parts = {slot: split_mixture(step.alpha, step.quantile) for slot, step in asked.items()}
        slots = batch.tensor(list(asked), torch.int64)
        removed = batch.tensor([step.removed for step in asked.values()], torch.int64)
        drawn = self.draw.rows(np.array([quantile for _, quantile in parts.values()]))
        batch.fallback[slots] = batch.tensor(drawn, torch.int64)
        batch.drawn[slots] = batch.fallback[slots]
        far = {slot: quantile for slot, (by_distance, quantile) in parts.items() if by_distance}
        if far and batch.k > 1:
            self._draw_by_distance(asked, far)
        batch.centers[slots, removed] = self.samples.rows[batch.drawn[slots]].double()
        return dict.fromkeys(asked)

    def _draw_by_distance(self, asked: Command, quantiles: dict[int, float]) -> None:
        """Draw samples by their distances to the closest of the centres that remain."""
        batch = self.batch
        slots = batch.tensor(list(quantiles), torch.int64)
        batch.excluded[slots] = batch.tensor([asked[s].removed for s in quantiles], torch.int32)
        batch.power[slots] = batch.tensor([self.starts[s].power for s in quantiles], torch.int32)
        batch.quantile[slots] = batch.tensor(list(quantiles.values()), torch.float64)
        steps = "prepare", "propose", "decide", "update", "measure", "draw"
        self._carry_out(list(quantiles), *steps)
        batch.excluded[slots] = -1

    def _lead(self, asked: Command) -> Command:
        """Lead solutions to fixed points, or near them."""
        batch, slots = self.batch, list(asked)
        schedules = {slot: MomentumSchedule() for slot in slots}
        rules = {slot: AbandonRule(step.least) for slot, step in asked.items()}
        answers: Command = dict.fromkeys(slots)
        before = None
        for _ in range(MAX_ITERATIONS):
            self.lloyd.check()
            at = batch.tensor(slots, torch.int64)
            centers = batch.centers[at]
            self._carry_out(slots, "prepare", "propose", "decide", "update", "move")
            batch.n_iter[at] += 1
            means, weights = batch.centers[at], batch.cluster_weights[at]
            step = means - (centers if before is None else before)
            # By a mask, which the host need not see.
            step.masked_fill_((weights == 0.0)[:, :, None], 0.0)
            left, shares = [], []
            numbers = progress(centers, means, weights, step)
            for place, (explained, uphill, is_fixed, is_moving) in enumerate(numbers):
                schedule = schedules[slots[place]]
                if rules[slots[place]].is_too_little(explained):
                    answers[slots[place]] = weights[place].cpu().numpy()
                elif not is_fixed:
                    left.append(place)
                    signs = {"is_moving": bool(is_moving), "is_uphill": uphill > 0.0}
                    shares.append(0.0 if schedule.is_plain() else schedule.share(**signs))
            if not left:
                break
            slots = [slots[place] for place in left]
            if len(left) < len(means):
                among = batch.tensor(left, torch.int64)
                means, step = means[among], step[among]
            # In two steps: together they would be rounded once, and elsewhere twice.
            step *= batch.tensor(shares, torch.float64)[:, None, None]
            batch.centers[batch.tensor(slots, torch.int64)] = means + step
            before = means
        return answers

    def _descend(self, asked: Command) -> Command:
        """Run K-means, then measure Σw‖x−c‖² from labels that are up to date."""
        batch, slots = self.batch, list(asked)
        self._carry_out(slots, "prepare")
        self.lloyd.run(len(slots))
        batch.power.fill_(2)
        self._carry_out(slots, "measure")
        inertias = batch.totals.cpu().numpy()
        weights = batch.cluster_weights.cpu().numpy()
        return {slot: Level(float(inertias[slot]), weights[slot]) for slot in slots}

    def _are_on_samples(self, asked: Command) -> Command:
        rows, weights = self.samples.rows, self.draw.weights
        norms = np.concatenate(
            [part.double().square().sum(dim=1).cpu() for part in rows.split(2**16)]
        )
        answers = {}
        for slot in asked:
            squares, own = self.batch.nearby[slot].cpu().numpy(), norms
            if weights is not None:
                counted = self.draw.counted
                squares, own = squares[counted] / weights[counted], norms[counted]
            answers[slot] = sits_on_centers(squares, own)
        return answers

    def _snap(self, asked: Command) -> Command:
        batch, counted, levels = self.batch, self.draw.counted, {}
        self.snapped.update(asked)
        for slot in asked:
            labels = batch.labels[slot].cpu().numpy()[counted]
            present, members = np.unique(labels, return_index=True)
            rows = self.samples.rows[batch.tensor(counted[members], torch.int64)]
            batch.centers[slot, batch.tensor(present, torch.int64)] = rows.double()
            labels, inertia = self.assign(slot)
            weights = np.bincount(labels, self.draw.weights, batch.k).astype(np.float64)
            levels[slot] = Level(inertia, weights)
        return levels

    def advance(self, start: FloatArray, n_iter: int) -> tuple[Any, Any]:
        """Return centres after some iterations of K-means, and the weights of their clusters."""
        self.batch.load([start])
        self._carry_out([0], "prepare")
        self.lloyd.run(1, n_iter)
        return self.batch.centers[0].clone(), self.batch.cluster_weights[0].clone()

    def assign(self, slot: int) -> tuple[NDArray[np.int32], float]:
        """Labels of the closest centres of one solution, and its inertia in the frame."""
        self.batch.power[slot] = 2
        self._carry_out([slot], "prepare", "propose", "decide", "measure")
        labels: NDArray[np.int32] = self.batch.labels[slot].to("cpu", copy=True).numpy()
        return labels, float(self.batch.totals[slot])


def progress(centers: Any, means: Any, weights: Any, step: Any) -> list[list[float]]:
    """Return what the host learns of every solution after an assignment; waits for the device.

    What the centres explain, whether momentum points uphill if that is above zero, whether they are
    a fixed point, and whether a mean has moved.
    """
    weights = weights[:, :, None]
    terms = torch.stack(
        [weights * (centers * (2.0 * means - centers)), weights * (centers - means) * step]
    )
    explained, uphill = folded(terms.flatten(2))
    is_fixed, is_moving = (centers == means).flatten(1).all(1), step.flatten(1).any(1)
    columns = explained, uphill, is_fixed.double(), is_moving.double()
    numbers: list[list[float]] = torch.stack(columns, dim=1).tolist()
    return numbers


def folded(values: Any) -> Any:
    """Sum up the last dimension, in an order that depends on nothing but its length.

    The order of PyTorch's own sums depends on what else is summed up, and the bits with it.
    """
    while (count := values.shape[-1]) > 1:
        half = (count + 1) // 2
        first = values[..., :half].clone()
        first[..., : count - half] += values[..., half:]
        values = first
    return values[..., 0]
