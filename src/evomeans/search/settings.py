"""The parameters of the search."""

from __future__ import annotations

import math
from dataclasses import dataclass

from evomeans.search.strategy import PAPER, Strategy


@dataclass(frozen=True)
class SearchSettings:
    """Parameters of HG-means, named as in section 3 of the paper.

    Parameters
    ----------
    min_population : int
        Π_min, the number of survivors of a selection.
    max_population : int
        Π_max, the size of the initial population, and the size beyond which survivors are selected.
    max_offspring : int
        N₂, offspring in all.
    patience : int, optional
        N₁, offspring in a row without an improvement of the population's best. None leaves it to
        the strategy.
    max_time : float, optional
        Seconds after which no further offspring is made.
    target_inertia : float, optional
        Stop as soon as the best is at most this.
    roulette_power : {1, 2}
        Whether the sample on which a relocated centre lands is drawn by its distance to the
        closest centre (the paper's text) or by the squared distance (the authors' program and
        k-means++).
    subsample : "auto", int or None
        Rows of the smallest sample on which a search begins. "auto" leaves it to the strategy and
        the number of rows, None searches all rows from the beginning.
    strategy : Strategy
        The operators of the search.
    """

    min_population: int = 10
    max_population: int = 20
    max_offspring: int = 5000
    patience: int | None = None
    max_time: float | None = None
    target_inertia: float | None = None
    roulette_power: int = 2
    subsample: int | str | None = "auto"
    strategy: Strategy = PAPER

    def __post_init__(self) -> None:
        _require(self.min_population >= 1, "min_population", self.min_population, "at least 1")
        _require(
            self.max_population >= self.min_population,
            "max_population",
            self.max_population,
            f"at least min_population={self.min_population}",
        )
        _require(self.max_offspring >= 1, "max_offspring", self.max_offspring, "at least 1")
        _require(self.longest_wait(1) >= 1, "patience", self.patience, "at least 1")
        _require(self.roulette_power in (1, 2), "roulette_power", self.roulette_power, "1 or 2")
        if isinstance(self.subsample, int):
            _require(self.subsample >= 1, "subsample", self.subsample, "at least 1")
        elif self.subsample is not None:
            expected = "'auto', an int or None"
            _require(self.subsample == "auto", "subsample", self.subsample, expected)
        check_limits(self.max_time, self.target_inertia)

    def longest_wait(self, n_clusters: int) -> int:
        """How many offspring in a row may at most fail before a population has settled."""
        strategy = self.strategy
        if self.patience is not None:
            return self.patience
        return max(strategy.patience, round(strategy.patience_per_cluster * n_clusters))

    def wait_after(self, n_offspring: int, n_clusters: int, factor: float = 1.0) -> int:
        """How many offspring in a row may fail after the population's best came after so many.

        A population whose best is one of its founders improves soon or not at all; one that has
        improved late may do so again. ``factor`` is that of the plan, for the strategy's
        ``first_patience``.
        """
        longest = self.longest_wait(n_clusters)
        if self.patience is not None:
            return longest
        first = max(1, round(factor * self.strategy.first_patience * longest))
        return min(longest, first + n_offspring)

    @property
    def most_at_a_time(self) -> int:
        """How many solutions can be in the making, as far as the search is concerned."""
        return max(self.max_population, self.strategy.lag)

    def most_solutions(self, n_given: int) -> int:
        """Return how many solutions a search may make at most, if it begins with given ones."""
        # A population settles when it has waited in vain, or when it agrees with such a one.
        agreement = self.strategy.agreement
        settled = self.max_offspring // self.wait_after(0, 1)
        later = agreement * settled if agreement > 1 else 0
        founders = max(self.max_population, n_given) + later * self.max_population
        return founders + self.max_offspring + (self.strategy.first_swaps > 0.0)


def check_limits(max_time: float | None, target_inertia: float | None) -> None:
    """Check the range of the limits that every kind of search has."""
    if max_time is not None:
        _require(max_time > 0, "max_time", max_time, "positive, or None")
    if target_inertia is not None:
        _require(
            0 <= target_inertia < math.inf,
            "target_inertia",
            target_inertia,
            "finite and not negative, or None",
        )


def _require(condition: bool, name: str, value: object, expectation: str) -> None:
    if not condition:
        raise ValueError(f"{name}={value!r} must be {expectation}.")
