"""Functions that nonsmooth optimisers minimise, and how these are run.

An optimiser is a generator: it yields the points at which it wants the function and receives an
:class:`Evaluation` for each. It never calls the function itself, so one loop can run many
optimisers side by side and evaluate all their points at once.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from evomeans.typing import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """A function f at a point.

    Parameters
    ----------
    value : float
    gradient : (n,) array
        A subgradient of f.
    convex : (n,) array, optional
        If f = f₁ − f₂ is a difference of convex functions, a subgradient of f₁ such that
        ``convex`` − ``gradient`` is one of f₂. None stands for f₁ = f and f₂ = 0.
    """

    value: float
    gradient: FloatArray
    convex: FloatArray | None = None

    @property
    def first(self) -> FloatArray:
        """The subgradient of f₁."""
        return self.gradient if self.convex is None else self.convex

    @property
    def second(self) -> FloatArray:
        """The subgradient of f₂."""
        if self.convex is None:
            return np.zeros_like(self.gradient)
        return self.convex - self.gradient


class Ending(StrEnum):
    """Why an optimiser stopped."""

    STATIONARY = "stationary"
    """No direction promises a decrease above the tolerance."""
    NO_CHANGE = "no change"
    """The value has hardly changed for several iterations."""
    MAX_ITERATIONS = "max iterations"
    NO_DESCENT = "no descent"
    """The line search found nothing, not even with the metric forgotten."""


@dataclass(frozen=True, slots=True, eq=False)
class Minimum:
    """Where an optimiser ended: the best point that it has seen."""

    x: FloatArray
    value: float
    n_iterations: int
    ending: Ending


Search = Generator[FloatArray, Evaluation, Minimum]
"""An optimiser at work, from a start on."""
Function = Callable[[FloatArray], Evaluation]
Functions = Callable[[Sequence[int], FloatArray], Sequence[Evaluation]]
"""Evaluates rows of points; the row i is asked for by the search with the number ``which[i]``."""


def minimise(search: Search, function: Function) -> Minimum:
    """Run an optimiser on a function."""
    try:
        x = next(search)
        while True:
            x = search.send(function(x))
    except StopIteration as end:
        found: Minimum = end.value
        return found


def minimise_together(searches: Sequence[Search], functions: Functions) -> list[Minimum]:
    """Run optimisers side by side; those still at work have their points evaluated together."""
    found: dict[int, Minimum] = {}
    asked = {number: next(search) for number, search in enumerate(searches)}
    while asked:
        which = list(asked)
        evaluations = functions(which, np.array([asked[number] for number in which]))
        for number, evaluation in zip(which, evaluations, strict=True):
            try:
                asked[number] = searches[number].send(evaluation)
            except StopIteration as end:
                found[number] = end.value
                del asked[number]
    return [found[number] for number in range(len(searches))]
