"""All that a running search remembers, and what it asks of a place that keeps it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Protocol

import numpy as np

from evomeans.engines.protocol import Ability, Engine, Order
from evomeans.search.history import History
from evomeans.search.plan import most_swaps
from evomeans.search.population import Individual, Population, PopulationRules
from evomeans.search.settings import SearchSettings
from evomeans.typing import FloatArray


@dataclass
class SearchState:
    """What the search works on, and all that it needs to continue to the same result.

    A checkpoint stores the fields one by one, by their types, so that a new field is one edit.
    """

    # Source of all randomness.
    rng: np.random.Generator
    # The present one.
    population: Population
    # Solutions to begin with that have not had their turn; so many of these, from the front, come
    # from a search on a sample.
    given: list[FloatArray]
    n_sampled: int = 0
    # Those that have found what they can, independently of each other and of the present one. They
    # are frozen.
    settled: list[Population] = field(default_factory=list)
    # Not necessarily a member.
    best: Individual | None = None
    # Digests of the centres with which founders have begun, if the strategy asks for them.
    starts: list[int] = field(default_factory=list)
    # Solutions of the present round that have not been added.
    waiting: list[Order] = field(default_factory=list)
    # Made so far by all populations.
    n_offspring: int = 0
    # How far apart centres are (plan.measure_spacing); zero until a solution is finished.
    spacing: float = 0.0
    # Offspring that were given up because they would have been worse than all survivors. They count
    # as made, and that is all that becomes of them.
    n_given_up: int = 0
    # Offspring of the searches on samples that populations began with. They do not count as made.
    n_on_samples: int = 0
    history: History = field(default_factory=History)
    seconds: float = 0.0

    @classmethod
    def beginning(
        cls, rng: np.random.Generator, rules: PopulationRules, initial: Sequence[FloatArray]
    ) -> SearchState:
        """Return the state of a search that has made nothing yet."""
        return cls(rng, Population(rules, max(rules.n_founders, len(initial))), list(initial))

    @property
    def n_made(self) -> int:
        """Solutions that have been made, founders and those given up included."""
        return len(self.history) + self.n_given_up

    def agreement(self, is_settled: bool) -> tuple[int, bool]:
        """Return how many independent starts have reached the best, and whether this one has again.

        The starts are populations; or, of one with several founders that came there, each of these,
        if its offspring have found nothing lower. A population that was combined from others counts
        only once it has settled (``is_settled``), or improved on what it inherited. It has found
        the best again if one that has settled had found it before.
        """
        population, best = self.population, self.best
        assert best is not None
        count, is_known = 0, False
        for one in self.settled:
            if one.has_reached(best):
                count, is_known = count + one.n_agreeing, True
        if not population.has_reached(best):
            return count, False
        if is_settled:
            own = population.n_agreeing
        else:
            own = 0 if population.is_inherited else min(population.n_agreeing, 1)
        is_evidence = not population.is_inherited and not population.is_exhausted
        return count + own, is_evidence and is_known

    def give_up(self) -> None:
        """Count an offspring that would not have survived."""
        self.population.give_up()
        self.n_offspring += 1
        self.n_given_up += 1

    def has_begun(self, centers: FloatArray) -> bool:
        """Whether a founder has begun with these centres before, in any order; remember them."""
        in_order = centers[np.lexsort(centers.T)]
        start = int.from_bytes(blake2b(in_order.tobytes(), digest_size=7).digest())
        is_known = start in self.starts
        if not is_known:
            self.starts.append(start)
        return is_known

    def settle(self) -> None:
        """Set the population aside, and unite it with another one of its rank or begin a new one.

        Two that agree are not combined: they would have nothing to give to each other. Nor is one
        that has found the best again; it is evidence. Another one that agrees with an equal, but
        not on the best, is forgotten: it is neither.
        """
        assert self.best is not None
        _, has_found_again = self.agreement(is_settled=True)
        settled = self.population.frozen()
        equals = [one for one in self.settled if one.rank == settled.rank]
        others = [one for one in equals if not settled.agrees_with(one)]
        if others and not has_found_again:
            self.settled.remove(others[0])
            self.population = settled.combined_with(others[0], self.rng)
            return
        if len(equals) == len(others) or settled.has_reached(self.best):
            self.settled.append(settled)
        self.population = settled.successor()


Waiting = Callable[[], list[Order]]
"""Returns what belongs into ``SearchState.waiting``; only those who store it ask."""


@dataclass(frozen=True)
class Bounds:
    """What every state of a search is within. A stored one that is not would harm the kernels."""

    n_clusters: int
    n_features: int
    # How many labels a solution has, if any.
    n_samples: int
    total_weight: float
    # Of a refinement.
    most_swaps: int
    abilities: frozenset[Ability]

    @classmethod
    def of_search(cls, engine: Engine, n_clusters: int, settings: SearchSettings) -> Bounds:
        """Return the bounds of a search with an engine."""
        sizes = n_clusters, len(engine.frame.shift), engine.n_samples
        swaps = most_swaps(settings.strategy, n_clusters)
        return cls(*sizes, engine.total_weight, swaps, engine.abilities)


class Keeper(Protocol):
    """Stores the state of a search from time to time."""

    def begin(self, state: SearchState, bounds: Bounds) -> None:
        """Turn the state of a new search into a stored one within the bounds, if there is one."""

    def keep(self, state: SearchState, waiting: Waiting) -> None:
        """Store the state if it is time to."""

    def end(self, state: SearchState, waiting: Waiting) -> None:
        """Store the last state."""


class KeepNothing:
    """The keeper of a search that needs none."""

    def begin(self, state: SearchState, bounds: Bounds) -> None:
        """Leave the state as it is."""

    def keep(self, state: SearchState, waiting: Waiting) -> None:
        """Store nothing."""

    end = keep
