"""All that a running search remembers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from evomeans.engines.protocol import FloatArray, Handle
from evomeans.search.history import History
from evomeans.search.individual import Individual


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """A solution that waits for its refinement.

    Parameters
    ----------
    centers : (k, d) array
    alpha : float
        Its mutation parameter.
    quantile : float
        The uniform number from which all draws of its refinement derive.
    removed : int
        The centre to relocate, −1 for none.
    made_by : str
        The operator that made it.
    parent : handle, optional
        The engine's memory of a parent. It is not stored: only speed depends on it.
    """

    centers: FloatArray
    alpha: float
    quantile: float
    removed: int
    made_by: str
    parent: Handle | None = None


@dataclass
class SearchState:
    """What the search works on, and all that it needs to continue to the same result.

    A checkpoint stores the fields one by one, by their types, so that a new field is one edit.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of all randomness.
    founders_due : int
        Members with which the population begins that are still to be made.
    given : list of (k, d) arrays
        Solutions to begin with that have not had their turn.
    population : list of Individual
        In the order in which parents are drawn from it.
    best : Individual, optional
        The deepest solution so far; not necessarily a member.
    leader : Individual, optional
        The deepest since the population was begun; not necessarily a member.
    finds : int
        Populations before this one that ended with the best.
    population_number : int
        1 for the first population.
    waiting : list of Draft
        Solutions of the present round that have not been added.
    n_offspring : int
        Made so far.
    last_improvement : int
        The offspring that was the last to improve the best of its population, or the last one
        before the population began.
    history : History
        One record per solution made.
    seconds : float
        Time spent so far.
    """

    rng: np.random.Generator
    founders_due: int
    given: list[FloatArray]
    population: list[Individual] = field(default_factory=list)
    best: Individual | None = None
    leader: Individual | None = None
    finds: int = 0
    population_number: int = 1
    waiting: list[Draft] = field(default_factory=list)
    n_offspring: int = 0
    last_improvement: int = 0
    history: History = field(default_factory=History)
    seconds: float = 0.0

    @classmethod
    def beginning(
        cls, rng: np.random.Generator, max_population: int, initial: Sequence[FloatArray]
    ) -> SearchState:
        """Return the state of a search that has made nothing yet."""
        return cls(rng, max(max_population, len(initial)), list(initial))

    @property
    def since_improvement(self) -> int:
        """Offspring since the best of the population improved."""
        return self.n_offspring - self.last_improvement

    @property
    def times_found(self) -> int:
        """Populations that came to the best solution, independently of each other."""
        assert self.best is not None
        return self.finds + bool(self.leader and self.leader.is_clone_of(self.best))

    def keep_best(self, child: Individual) -> None:
        """Remember the deepest solution of all, and that of the present population."""
        if self.leader is None or child.inertia < self.leader.inertia:
            if self.leader and child.improves_on(self.leader):
                self.last_improvement = self.n_offspring
            self.leader = child
        if self.best is None or child.inertia < self.best.inertia:
            if self.best and not child.is_clone_of(self.best):
                self.finds = 0
            self.best = child

    def restart(self, max_population: int) -> None:
        """Let a new population take the place of this one; only the best is kept."""
        self.finds = self.times_found
        self.population, self.leader = [], None
        self.population_number += 1
        self.founders_due = max_population
        self.last_improvement = self.n_offspring
