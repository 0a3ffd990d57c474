"""The incremental frame of the nonsmooth methods: starts, local minima, solutions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from evomeans.engines.protocol import Order, Refinement
from evomeans.typing import FloatArray
from lab.baselines.engine import BaselineEngine
from lab.baselines.incremental import IncrementalBaseline
from lab.baselines.nonsmooth.evaluation import Search, minimise, minimise_together
from lab.baselines.nonsmooth.objective import AuxiliaryFunction, ClusterFunction, Scale

Conjugate = Callable[[FloatArray], FloatArray]
"""From a slope to the point at which the gradient of f₁ is that slope."""

# Two starts are one within this share of the objective for one cluster, divided by k.
TOLERANCE = 1e-4


@dataclass(eq=False, repr=False, kw_only=True)
class NonsmoothBaseline(IncrementalBaseline):
    """An incremental method with a solver for nonsmooth functions in the place of K-means.

    Subclasses add the starts and the solver. It is used twice: for the auxiliary function, from
    every start, and for all centres together, from every local minimum that is left.
    """

    @abstractmethod
    def _starts(
        self,
        engine: BaselineEngine,
        solution: Refinement,
        squares: FloatArray,
        tolerance: float,
    ) -> FloatArray:
        """Return where the auxiliary function is minimised from.

        ``tolerance`` is the squared distance within which two places are one.
        """

    @abstractmethod
    def _chosen(
        self, engine: BaselineEngine, minima: FloatArray, values: FloatArray, tolerance: float
    ) -> FloatArray:
        """Return the local minima of the auxiliary function that are worth a solution."""

    @abstractmethod
    def _optimise(self, x: FloatArray, conjugate: Conjugate) -> Search:
        """Begin to minimise a function from ``x``."""

    def _new_centers(
        self, engine: BaselineEngine, solution: Refinement, squares: FloatArray
    ) -> FloatArray:
        scale = Scale.of(engine, solution)
        tolerance = TOLERANCE * scale.spread / (len(solution.centers) + 1)
        starts = self._starts(engine, solution, squares, tolerance)
        function = AuxiliaryFunction(engine, squares, scale, starts)
        zero = np.zeros(starts.shape[1])
        numbers = range(len(starts))
        found = minimise_together(
            [self._optimise(zero, partial(function.conjugate, number)) for number in numbers],
            function,
        )
        minima = function.points(list(numbers), np.array([each.x for each in found]))
        values = np.array([each.value for each in found])
        return self._chosen(engine, minima, values, tolerance)

    def _descend(self, engine: BaselineEngine, start: Order) -> Refinement:
        """Minimise over all centres; K-means makes the result a fixed point."""
        function = ClusterFunction.around(engine, start.centers, start.parent)
        if function.unit == 0.0:
            return super()._descend(engine, start)
        zero = np.zeros(start.centers.size)
        found = minimise(self._optimise(zero, function.conjugate), function)
        last = Order(function.centers(found.x), parent=function.handle)
        return super()._descend(engine, last)
