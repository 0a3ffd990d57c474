"""A population: its members, their parents and survivors, and when it has found what it can."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from operator import attrgetter
from typing import Any

import numpy as np

from evomeans.engines.protocol import Refinement
from evomeans.typing import FloatArray, Labels

# Sums of squares that agree to this relative difference come from the same clusters: rounding
# stays far below it, and distinct local minima this close are not worth telling apart.
CLONE_TOLERANCE = 1e-9
MARGIN = 2.0 * CLONE_TOLERANCE  # relative; clones of a solution are surely as close
# A smaller relative gain is rounding, not an improvement that resets the patience.
IMPROVEMENT = 1e-10
ALPHA_STEP = 0.2  # how far α of a child may be from the average of its parents


@dataclass(frozen=True, eq=False)
class Individual:
    """A local minimum: the paper's triplet (membership, coordinates, α).

    The membership is left out where it follows from the coordinates.

    Parameters
    ----------
    centers : (k, d) array
        The coordinate chromosome.
    inertia : float
        Its cost.
    cluster_weights : (k,) array
        Total sample weight of each cluster.
    alpha : float
        Mutation parameter in [0, 1].
    handle : object, optional
        The engine's memory of this solution.
    labels : (n,) array, optional
        The membership, of models in which samples need not belong to their closest centre.
    """

    centers: FloatArray = field(repr=False)
    inertia: float
    cluster_weights: FloatArray = field(repr=False)
    alpha: float
    handle: Any = field(default=None, repr=False)
    labels: Labels | None = field(default=None, repr=False)

    @classmethod
    def of(cls, refinement: Refinement, alpha: float) -> Individual:
        """Return a refined solution as a member of a population."""
        one = refinement
        return cls(one.centers, one.inertia, one.cluster_weights, alpha, one.handle, one.labels)

    @cached_property
    def explained(self) -> float:
        """Σ Wⱼ‖cⱼ‖², what the centres explain (:mod:`~evomeans.engines.course`)."""
        return float(self.cluster_weights @ np.sum(self.centers * self.centers, axis=1))

    @cached_property
    def weights_key(self) -> bytes:
        """The cluster weights in ascending order: the same for every numbering of the clusters."""
        return np.sort(self.cluster_weights).tobytes()

    def is_clone_of(self, other: Individual) -> bool:
        """Whether both are the same solution, up to the numbering of the clusters."""
        difference = abs(self.inertia - other.inertia)
        return (
            difference <= CLONE_TOLERANCE * other.inertia and self.weights_key == other.weights_key
        )


def inherited_alpha(first: float, second: float, uniform: float) -> float:
    """Average of the parents' α, moved by up to ±0.2 and clipped to [0, 1] (section 3.3)."""
    alpha = 0.5 * (first + second) + ALPHA_STEP * (2.0 * uniform - 1.0)
    return min(1.0, max(0.0, alpha))


Selection = Callable[[Sequence[Individual], Sequence[float]], tuple[Individual, Individual]]
"""Selects two parents from a population, by four uniform numbers."""

Survival = Callable[[Sequence[Individual], int, np.random.Generator], list[Individual]]
"""Keeps that many members of a population."""


INERTIA_OF = attrgetter("inertia")


def tournament(population: Sequence[Individual], first: float, second: float) -> Individual:
    """Return the better of two members, drawn with replacement by two uniform numbers."""
    a = population[int(first * len(population))]
    b = population[int(second * len(population))]
    return a if a.inertia <= b.inertia else b


def independent_parents(
    population: Sequence[Individual], uniforms: Sequence[float]
) -> tuple[Individual, Individual]:
    """Select two parents by independent binary tournaments, from four uniform numbers.

    Both may be the same solution, as in section 3.2 of the paper.
    """
    return tournament(population, *uniforms[:2]), tournament(population, *uniforms[2:])


def different_parents(
    population: Sequence[Individual], uniforms: Sequence[float]
) -> tuple[Individual, Individual]:
    """Select two different parents by binary tournament, from four uniform numbers.

    The second is drawn from the members that are not clones of the first, if there are any: a
    child of equal parents is only a mutation of them, and populations that converge early would
    make little else.
    """
    first = tournament(population, uniforms[0], uniforms[1])
    # Few are so close, which is quicker to see here than by asking each.
    inertia, margin = first.inertia, MARGIN * first.inertia
    others = [
        one
        for one in population
        if abs(one.inertia - inertia) > margin or not (one is first or one.is_clone_of(first))
    ]
    return first, tournament(others or population, uniforms[2], uniforms[3])


def survivors(
    population: Sequence[Individual], count: int, rng: np.random.Generator
) -> list[Individual]:
    """Keep ``count`` members: clones go first, then the worst.

    Of a group of clones a random one stays. If there are not enough different members, the best
    clones fill the places that are left. The result is sorted, best first.
    """
    originals: list[Individual] = []
    clones: list[Individual] = []
    for group in clone_groups(population):
        keep = int(rng.integers(len(group))) if len(group) > 1 else 0
        originals.append(group[keep])
        clones.extend(group[:keep] + group[keep + 1 :])
    kept = originals[:count] + clones[: max(0, count - len(originals))]
    return sorted(kept, key=INERTIA_OF)


def last_survivor(population: Sequence[Individual], count: int) -> Individual:
    """Return the worst of the ``count`` best different members.

    Something worse may survive in place of a clone, but is not worth its refinement.
    """
    return different_members(population)[:count][-1]


def different_members(population: Sequence[Individual]) -> list[Individual]:
    """Return the members of different inertias, the best first."""
    different: list[Individual] = []
    for member in sorted(population, key=INERTIA_OF):
        if not different or member.inertia > different[-1].inertia * (1.0 + CLONE_TOLERANCE):
            different.append(member)
    return different


def clone_groups(population: Sequence[Individual]) -> list[list[Individual]]:
    """Split a population into groups of clones, best group first."""
    groups: list[list[Individual]] = []
    for member in sorted(population, key=INERTIA_OF):
        # In this order clones are close, but different solutions of the same cost may lie between.
        for group in reversed(groups):
            if member.is_clone_of(group[0]):
                group.append(member)
                break
            if member.inertia - group[0].inertia > CLONE_TOLERANCE * group[0].inertia:
                groups.append([member])
                break
        else:
            groups.append([member])
    return groups


def spread(population: Sequence[Individual]) -> tuple[float, float, float, int]:
    """Return the best, the median and the worst inertia, and how many different ones there are."""
    inertias = sorted(map(INERTIA_OF, population))
    low, high = inertias[(len(inertias) - 1) // 2], inertias[len(inertias) // 2]
    distinct = 1 + sum([b - a > CLONE_TOLERANCE * a for a, b in pairwise(inertias)])
    return inertias[0], 0.5 * (low + high), inertias[-1], distinct


@dataclass(frozen=True)
class Patience:
    """How many offspring in a row may fail before a population has converged."""

    longest: int
    # Share of that if the best is one of the founders. One that has improved late may do so again,
    # so for every offspring up to the last improvement it waits for one more.
    first: float = 1.0
    # Of ``first``; if it is shared, divided by the number of founders that agree on the best.
    factor: float = 1.0
    is_shared: bool = False
    after_sample: int = 0  # at least, if the founders come from a search on a sample

    def after(self, n_offspring: int, n_agreeing: int = 1) -> int:
        """How many may fail after the best came with that many offspring."""
        factor = self.factor / max(1, n_agreeing) if self.is_shared else self.factor
        return min(self.longest, max(1, round(factor * self.first * self.longest)) + n_offspring)


@dataclass(frozen=True)
class PopulationRules:
    """The parameters of a population."""

    # Π_min survivors are selected as soon as there are more than Π_max members.
    min_size: int
    max_size: int
    n_founders: int
    selection: Selection
    survival: Survival
    tolerance: float  # relative; closer inertias are neither improvements nor disagreement
    patience: Patience


@dataclass(eq=False)
class Population:
    """Solutions that descend from the same founders, and what they have come to.

    Parameters
    ----------
    rules : PopulationRules
        A checkpoint does not store them: they follow from the strategy and the data.
    founders_due : int
        Founders that are still to be made.
    number : int
        1 for the first population of a search.
    members : sequence of Individual
        In the order in which parents are drawn. Those of a frozen population are a tuple.
    leader : Individual, optional
        The best since it was begun; not necessarily a member.
    milestone : float
        The leader's inertia when it last improved by more than the tolerance.
    is_inherited : bool
        Whether the leader comes from one of two populations that were combined.
    rank : int
        0 for a population that was begun anew. One that combines two is a rank above them.
    n_agreeing : int
        How many founders, independently of each other, came as far as the leader; 1 if it took
        offspring to get there.
    n_offspring, last_improvement : int
        Offspring made, and the last one of them that improved the leader.
    is_founded : bool
        Whether it has had its solutions of a search on a sample, if it gets any.
    sample_size : int
        Rows of that sample; 0 for none.
    """

    rules: PopulationRules
    founders_due: int
    number: int = 1
    members: Sequence[Individual] = field(default_factory=list)
    leader: Individual | None = None
    milestone: float = 0.0
    is_inherited: bool = False
    rank: int = 0
    n_agreeing: int = 0
    n_offspring: int = 0
    last_improvement: int = 0
    is_founded: bool = False
    sample_size: int = 0

    def __len__(self) -> int:
        return len(self.members)

    @property
    def since_improvement(self) -> int:
        """Offspring since the leader improved."""
        return self.n_offspring - self.last_improvement

    @property
    def is_settled(self) -> bool:
        """Whether the population has converged."""
        patience = self.rules.patience
        wait = patience.after(self.last_improvement, self.n_agreeing)
        if self.sample_size:
            wait = max(wait, patience.after_sample)
        return self.n_offspring - self.last_improvement >= wait

    @property
    def is_exhausted(self) -> bool:
        """Whether the leader is only what another founder with the same start has come to."""
        return self.leader is not None and self.n_agreeing == 0

    @property
    def least_explained(self) -> float:
        """What an offspring has to explain to survive."""
        return last_survivor(self.members, self.rules.min_size).explained

    def select(self, uniforms: Sequence[float]) -> tuple[Individual, Individual]:
        """Select two parents by four uniform numbers."""
        return self.rules.selection(self.members, uniforms)

    def has_clone_of(self, solution: Individual) -> bool:
        """Whether a member is the same solution."""
        inertia, margin = solution.inertia, MARGIN * solution.inertia
        for one in self.members:
            if abs(one.inertia - inertia) <= margin and solution.is_clone_of(one):
                return True
        return False

    def add(self, child: Individual, *, is_independent: bool, is_copy: bool = False) -> None:
        """Take a solution in, as a founder if any is due.

        A gain within the tolerance does not count as an improvement. A founder that began where
        another one had begun (``is_copy``) is not evidence that the leader has been found again.
        """
        assert isinstance(self.members, list), "A frozen population takes no members."
        if self.founders_due:
            self.founders_due -= 1
        else:
            self.n_offspring += 1
        if self.leader is None or child.inertia < self.milestone * (1.0 - self.rules.tolerance):
            self.milestone, self.last_improvement = child.inertia, self.n_offspring
            self.is_inherited, self.n_agreeing = False, int(not is_copy)
        elif is_independent and not is_copy and self.is_reached_by(child):
            self.n_agreeing += 1
        if self.leader is None or child.inertia < self.leader.inertia:
            self.leader = child
        self.members.append(child)

    def survive(self, rng: np.random.Generator) -> None:
        """Keep the survivors if there are too many members."""
        rules = self.rules
        if not self.founders_due and len(self.members) > rules.max_size:
            self.members = rules.survival(self.members, rules.min_size, rng)

    def is_reached_by(self, solution: Individual) -> bool:
        """Whether a solution is as good as the leader, up to the tolerance."""
        assert self.leader is not None
        return solution.inertia <= self.leader.inertia * (1.0 + self.rules.tolerance)

    def has_reached(self, solution: Individual) -> bool:
        """Whether the leader is as good as a solution, up to the tolerance."""
        limit = solution.inertia * (1.0 + self.rules.tolerance)
        return self.leader is not None and self.leader.inertia <= limit

    def agrees_with(self, other: Population) -> bool:
        """Whether both leaders are equally good, up to the tolerance."""
        assert self.leader is not None
        return other.has_reached(self.leader) and other.is_reached_by(self.leader)

    def frozen(self) -> Population:
        """Return a frozen copy of a population that has converged.

        Its members have no handles, which would occupy memory that live solutions need.
        """
        return replace(self, members=tuple(replace(one, handle=None) for one in self.members))

    def successor(self) -> Population:
        """Return a new population that has nothing in common with it."""
        return Population(self.rules, self.rules.n_founders, self.number + 1)

    def combined_with(self, other: Population, rng: np.random.Generator) -> Population:
        """Return a population of the best members of both, a rank above them."""
        assert self.leader is not None
        assert other.leader is not None
        leader = min(self.leader, other.leader, key=INERTIA_OF)
        both = [*self.members, *other.members]
        return Population(
            self.rules,
            founders_due=0,
            number=self.number + 1,
            members=self.rules.survival(both, self.rules.max_size, rng),
            leader=leader,
            milestone=leader.inertia,
            is_inherited=True,
            rank=self.rank + 1,
            n_agreeing=1,
            is_founded=self.is_founded,
            sample_size=self.sample_size,
        )
