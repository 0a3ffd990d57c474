"""Draws of rows: by quantiles of the weight, and for samples of all rows.

A row is taken if a uniform number, which is a function of the seed and of the row's number alone,
is below its probability. So one pass over the rows suffices, in any order and in any blocks.

Half of the probability is by the weight of a row, half by what it costs to represent it by the
closest of some rough centres: a few rows far out may need a centre of their own. Weights of w/p
make sums over the sample unbiased estimates of sums over all rows (importance sampling, as for the
coresets of Bachem, Lucic and Krause, KDD 2018).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.typing import FloatArray

# The multipliers of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
GOLDEN, FIRST, SECOND = (
    np.uint64(number) for number in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)
# Rows that are looked at together.
ROWS_PER_DRAW = 2**20


@dataclass(frozen=True)
class Drawing:
    """How a sample is drawn.

    * ``seed``: below 2⁶⁴.
    * ``size``: how many rows to expect.
    * ``centers`` (k, d): rough centres in the engine's frame. Without them, only weights count.
    * ``cost``: about Σ w‖x − c‖² over all rows, c being the closest of these centres, in the frame.
    * ``in_order``: whether an engine should put them into order; not for one short run of K-means.
    """

    seed: int
    size: int
    centers: FloatArray | None = None
    cost: float = 0.0
    in_order: bool = True

    def choose(
        self,
        costs: FloatArray | None,
        weights: FloatArray | None,
        total_weight: float,
        n_rows: int,
        first: int = 0,
    ) -> tuple[NDArray[np.intp], FloatArray]:
        """Return the rows of a block that are taken, numbered within it, and their weights.

        ``costs`` are w‖x − c‖² of each row, None if there are no centres. ``total_weight`` is that
        of all blocks, and ``first`` the number of the first row among all.
        """
        rows: list[Any] = []
        taken: list[Any] = []
        for begin in range(0, n_rows, ROWS_PER_DRAW):
            part = slice(begin, min(begin + ROWS_PER_DRAW, n_rows))
            own = np.ones(part.stop - begin) if weights is None else weights[part]
            chances = self._chances(own, total_weight, None if costs is None else costs[part])
            chosen = np.flatnonzero(uniforms(self.seed, first + begin, len(own)) < chances)
            rows.append(chosen + begin)
            taken.append(own[chosen] / chances[chosen])
        return np.concatenate(rows), np.concatenate(taken)

    def _chances(
        self, weights: FloatArray, total_weight: float, costs: FloatArray | None
    ) -> FloatArray:
        """Return the probability of each row to be taken; zero if it weighs nothing."""
        shares = weights / total_weight
        if costs is not None and self.cost > 0.0:
            shares = 0.5 * (shares + costs / self.cost)
        return np.minimum(self.size * shares, 1.0)


def uniforms(seed: int, first: int, count: int) -> FloatArray:
    """Return a number in [0, 1) for each row number from ``first`` on, by SplitMix64."""
    with np.errstate(over="ignore"):
        z = np.arange(first + 1, first + count + 1, dtype=np.uint64) * GOLDEN + np.uint64(seed)
        z = (z ^ (z >> np.uint64(30))) * FIRST
        z = (z ^ (z >> np.uint64(27))) * SECOND
        z ^= z >> np.uint64(31)
    return np.ldexp((z >> np.uint64(11)).astype(np.float64), -53)


def wheel_stops(cumulated: FloatArray, targets: Any, last: Any) -> NDArray[np.intp]:
    """Return where a wheel of cumulated chances stops at targets between 0 and their total.

    Rounding must not lead beyond ``last``, the last place that has a chance.
    """
    stops: NDArray[np.intp] = np.minimum(np.searchsorted(cumulated, targets, side="right"), last)
    return stops


def roulette(chances: FloatArray, quantiles: FloatArray) -> NDArray[np.intp]:
    """Return the indices whose shares of the cumulated chances hold these quantiles in [0, 1)."""
    cumulated = np.cumsum(chances)
    return wheel_stops(cumulated, quantiles * cumulated[-1], np.flatnonzero(chances)[-1])


NONE_TAKEN = np.empty(0, np.intp)


class WeightedDraw:
    """Turns uniform numbers into row numbers, each row having its share of the total weight."""

    def __init__(self, n_samples: int, weights: FloatArray | None) -> None:
        self.n_samples = n_samples
        self.weights = weights

    def rows(self, quantiles: FloatArray) -> NDArray[np.intp]:
        """Return the rows at these quantiles in [0, 1)."""
        if self.weights is None:
            return np.minimum((quantiles * self.n_samples).astype(np.intp), self._last)
        return wheel_stops(self._cumulated, quantiles * self._cumulated[-1], self._last)

    def row(self, quantile: float) -> int:
        """Return the row at one quantile."""
        if self.weights is None:
            return min(int(quantile * self.n_samples), self._last)
        return int(wheel_stops(self._cumulated, quantile * self._cumulated[-1], self._last))

    def distinct_rows(
        self, quantiles: FloatArray, taken: NDArray[np.intp] = NONE_TAKEN
    ) -> NDArray[np.intp]:
        """Return the rows at these quantiles; others in place of those drawn twice or ``taken``.

        The others have weight too. Rows repeat only if there are no others.
        """
        rows = self.rows(quantiles)
        is_new = np.zeros(len(rows), np.bool_)
        is_new[np.unique(rows, return_index=True)[1]] = True
        is_new &= ~np.isin(rows, taken)
        if is_new.all():
            return rows
        places = np.flatnonzero(~is_new)
        free = np.setdiff1d(self.counted, np.concatenate([rows, taken]))
        places = places[: len(free)]
        rows[places] = free[np.arange(len(places)) * len(free) // max(1, len(places))]
        return rows

    @cached_property
    def counted(self) -> NDArray[np.intp]:
        """The rows that have weight."""
        if self.weights is None:
            return np.arange(self.n_samples)
        return np.flatnonzero(self.weights)

    @cached_property
    def _cumulated(self) -> FloatArray:
        assert self.weights is not None
        return np.cumsum(self.weights)

    @cached_property
    def _last(self) -> int:
        return self.n_samples - 1 if self.weights is None else int(self.counted[-1])
