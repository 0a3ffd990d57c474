"""All that a running search remembers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b

import numpy as np

from evomeans.engines.protocol import Handle
from evomeans.search.history import History
from evomeans.search.population import Individual, Survival
from evomeans.typing import FloatArray


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
    swaps : int
        How many its refinement tries.
    removed : int
        The centre to relocate, −1 for none.
    made_by : str
        The operator that made it.
    is_independent : bool
        Whether it owes nothing to any other solution, as founders do that are drawn.
    least_explained : float
        What its refinement has to come to, or is given up
        (:class:`~evomeans.engines.protocol.Start`); 0 for nothing.
    parent : handle, optional
        The engine's memory of a parent. It is not stored: only speed depends on it.
    """

    centers: FloatArray
    alpha: float
    quantile: float
    swaps: int
    removed: int
    made_by: str
    is_independent: bool = False
    least_explained: float = 0.0
    parent: Handle | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Lineage:
    """A population that has found what it can. It has nothing in common with any other.

    Parameters
    ----------
    members : list of Individual
        Without what engines remember of them: it would take the place of the living.
    leader : Individual
        The deepest that it has found.
    rank : int
        0 for a population that was begun anew. One that unites two is a rank above them.
    n_agreeing : int
        How many of its founders, independently of each other, came as deep as the leader; 1 if it
        took offspring to get there.
    """

    members: list[Individual]
    leader: Individual
    rank: int
    n_agreeing: int

    def agrees_with(self, other: Lineage, tolerance: float) -> bool:
        """Whether both are as deep as each other."""
        one, two = self.leader, other.leader
        return one.is_as_deep_as(two, tolerance) and two.is_as_deep_as(one, tolerance)


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
    is_founded : bool
        Whether the population has had its solutions of a search on a sample, if it gets any.
    sample_size, n_sampled : int
        Rows of that sample, and how many of ``given``, from the front, come from there.
    population : list of Individual
        In the order in which parents are drawn from it.
    best : Individual, optional
        The deepest solution so far; not necessarily a member.
    leader : Individual, optional
        The deepest since the population was begun; not necessarily a member.
    milestone : float
        The leader's inertia when it last improved by as much as counts.
    is_inherited : bool
        Whether the leader comes from one of two populations that were united.
    rank, n_agreeing : int
        Of the population, see :class:`Lineage`.
    starts : list of int
        Digests of the centres with which founders have begun, if the strategy asks for them.
    lineages : list of Lineage
        Populations that have found what they can, independently of each other and of this one.
    population_number : int
        1 for the first population.
    waiting : list of Draft
        Solutions of the present round that have not been added.
    n_offspring, n_earlier : int
        Made so far, and how many of these before the population began.
    last_improvement : int
        The offspring that was the last to improve the best of its population, or the last one
        before the population began.
    spacing : float
        How far apart centres are, see :func:`~evomeans.search.plan.measure_spacing`; zero until
        there is a solution that is finished.
    n_given_up : int
        Offspring that were given up because they would have been worse than all survivors. They
        count as made, and that is all that becomes of them.
    n_on_samples : int
        Offspring of the searches on samples that populations began with. They do not count as made.
    history : History
        One record per solution made.
    seconds : float
        Time spent so far.
    """

    rng: np.random.Generator
    founders_due: int
    given: list[FloatArray]
    is_founded: bool = False
    sample_size: int = 0
    n_sampled: int = 0
    population: list[Individual] = field(default_factory=list)
    best: Individual | None = None
    leader: Individual | None = None
    milestone: float = 0.0
    is_inherited: bool = False
    rank: int = 0
    n_agreeing: int = 0
    starts: list[int] = field(default_factory=list)
    lineages: list[Lineage] = field(default_factory=list)
    population_number: int = 1
    waiting: list[Draft] = field(default_factory=list)
    n_offspring: int = 0
    n_earlier: int = 0
    last_improvement: int = 0
    spacing: float = 0.0
    n_given_up: int = 0
    n_on_samples: int = 0
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
    def n_made(self) -> int:
        """Solutions that have been made, founders and those given up included."""
        return len(self.history) + self.n_given_up

    @property
    def n_own(self) -> int:
        """Offspring that the population has made."""
        return self.n_offspring - self.n_earlier

    def count_agreeing(self, is_settled: bool, tolerance: float) -> int:
        """Count those that have come as deep as the best solution by themselves.

        These are populations; or, of one with several founders that came there, each of these, if
        its offspring have found nothing deeper (``is_settled``). A population that was united from
        others counts only once it has settled, or improved on what it inherited.
        """
        best = self.best
        assert best is not None
        deep = (one for one in self.lineages if one.leader.is_as_deep_as(best, tolerance))
        count = sum(one.n_agreeing for one in deep)
        is_deep = self.leader is not None and self.leader.is_as_deep_as(best, tolerance)
        if is_deep and (is_settled or not self.is_inherited):
            count += self.n_agreeing if is_settled else min(self.n_agreeing, 1)
        return count

    @property
    def is_exhausted(self) -> bool:
        """Whether the leader is only what another founder with the same start has come to."""
        return self.leader is not None and self.n_agreeing == 0

    def has_found_again(self, tolerance: float) -> bool:
        """Whether the population has come as deep as the deepest of the others."""
        best, leader = self.best, self.leader
        if best is None or leader is None or self.is_inherited or self.is_exhausted:
            return False
        is_deep = leader.is_as_deep_as(best, tolerance)
        return is_deep and any(one.leader.is_as_deep_as(best, tolerance) for one in self.lineages)

    def give_up(self) -> None:
        """Count an offspring that would not have survived."""
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

    def keep_best(
        self, child: Individual, tolerance: float, is_independent: bool, is_copy: bool = False
    ) -> None:
        """Remember the deepest solution of all, and that of the present population.

        A relative gain within the tolerance does not count as an improvement. A founder that began
        where another one had begun (``is_copy``) is not evidence.
        """
        if self.leader is None or child.inertia < self.milestone * (1.0 - tolerance):
            self.milestone, self.last_improvement = child.inertia, self.n_offspring
            self.is_inherited, self.n_agreeing = False, int(not is_copy)
        elif is_independent and child.is_as_deep_as(self.leader, tolerance):
            self.n_agreeing += 1
        if self.leader is None or child.inertia < self.leader.inertia:
            self.leader = child
        self.keep_deepest(child)

    def keep_deepest(self, solution: Individual) -> None:
        """Remember a solution if it is the deepest of all."""
        if self.best is None or solution.inertia < self.best.inertia:
            self.best = solution

    def settle(self, max_population: int, survive: Survival, tolerance: float) -> None:
        """Set the population aside, and unite it with another one of its rank or begin a new one.

        Two that agree are not united: they would have nothing to give to each other. Nor is one
        that has found the best again; it is evidence. Another one that agrees with an equal, but
        not on the best, is forgotten: it is neither.
        """
        assert self.leader is not None
        assert self.best is not None
        settled = Lineage(
            [replace(member, handle=None) for member in self.population],
            self.leader,
            self.rank,
            self.n_agreeing,
        )
        equals = [one for one in self.lineages if one.rank == self.rank]
        others = [one for one in equals if not settled.agrees_with(one, tolerance)]
        if others and not self.has_found_again(tolerance):
            self.lineages.remove(others[0])
            self._unite(settled, others[0], max_population, survive)
        else:
            if len(equals) == len(others) or self.leader.is_as_deep_as(self.best, tolerance):
                self.lineages.append(settled)
            self._begin_anew(max_population)
        self.population_number += 1
        self.n_earlier = self.last_improvement = self.n_offspring

    def _unite(self, one: Lineage, other: Lineage, count: int, survive: Survival) -> None:
        self.population = survive([*one.members, *other.members], count, self.rng)
        self.leader = min(one.leader, other.leader, key=lambda leader: leader.inertia)
        self.milestone = self.leader.inertia
        self.is_inherited, self.n_agreeing = True, 1
        self.founders_due = 0
        self.rank += 1

    def _begin_anew(self, max_population: int) -> None:
        self.population, self.leader = [], None
        self.is_inherited, self.is_founded, self.rank = False, False, 0
        self.founders_due = max_population
