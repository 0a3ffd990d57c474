"""All that the search for a path remembers, and what it does next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from evomeans.search.individual import Individual
from evomeans.search.population import clone_groups

# Solutions that are kept for each number of clusters, and for each of its populations.
MOST_KEPT, MOST_OF_A_POPULATION = 8, 4


class Kind(StrEnum):
    """What a step of the path does for a number of clusters."""

    MEAN = "mean"
    UP = "up"
    DOWN = "down"
    UNITE = "unite"
    GROW = "grow"
    MERGE = "merge"
    FRESH = "fresh"
    EXACT = "exact"


@dataclass(frozen=True)
class Step:
    """The next thing to do.

    Parameters
    ----------
    kind : Kind
    k : int
        The number of clusters it is for.
    source : int
        The neighbour whose solutions it begins with; 0 for none.
    """

    kind: Kind
    k: int
    source: int = 0


@dataclass
class Entry:
    """What is known of one number of clusters.

    Parameters
    ----------
    members : list of Individual
        The best solutions of all populations, best first.
    up, down : list of Individual
        Those of the two sweeps, which know nothing of each other.
    alone : list of float
        The lowest inertia of each population that was searched by itself. Those that were united
        count as one, if that led deeper.
    is_united : bool
        Whether populations that disagreed have been united, and no new one has come since.
    n_fresh : int
        Populations begun anew, beyond the two sweeps.
    tested : dict of int to float
        Inertia of each neighbour whose solutions have been founders here.
    n_solutions : int
        Solutions made for this number of clusters.
    """

    members: list[Individual] = field(default_factory=list)
    up: list[Individual] = field(default_factory=list)
    down: list[Individual] = field(default_factory=list)
    alone: list[float] = field(default_factory=list)
    is_united: bool = False
    n_fresh: int = 0
    tested: dict[int, float] = field(default_factory=dict)
    n_solutions: int = 0

    @property
    def best(self) -> Individual:
        """The deepest solution."""
        return self.members[0]

    def n_agreeing(self, tolerance: float) -> int:
        """How many independent populations have come as deep as the best solution."""
        bound = self.best.inertia * (1.0 + tolerance)
        return max(1, sum(inertia <= bound for inertia in self.alone))

    def add(self, solutions: Iterable[Individual]) -> None:
        """Keep the best of these and of all so far; no two are the same."""
        groups = clone_groups([*self.members, *(without_handle(one) for one in solutions)])
        self.members = [group[0] for group in groups[:MOST_KEPT]]


def without_handle(solution: Individual) -> Individual:
    """Return a solution without what its engine remembers of it."""
    return replace(solution, handle=None) if solution.handle is not None else solution


@dataclass
class PathState:
    """What the search works on, and all that it needs to continue to the same result.

    Parameters
    ----------
    ks : list of int
        The numbers of clusters, ascending; 1 is always among them.
    entropy : list of int
        What the random numbers of all steps derive from.
    n_steps : int
        Made so far.
    seconds : float
        Spent so far.
    entries : dict of int to Entry
        By number of clusters, for those that have a solution.
    """

    ks: list[int]
    entropy: list[int]
    n_steps: int = 0
    seconds: float = 0.0
    entries: dict[int, Entry] = field(default_factory=dict)

    def add_ks(self, ks: Iterable[int]) -> None:
        """Let further numbers of clusters belong to the path."""
        self.ks = sorted({*self.ks, *ks})

    def neighbours(self, k: int) -> list[int]:
        """Return the numbers of clusters before and after this one; 1 teaches nothing."""
        place = self.ks.index(k)
        around = [*self.ks[max(0, place - 1) : place], *self.ks[place + 1 : place + 2]]
        return [one for one in around if one > 1]

    def next_step(self, tolerance: float, confirmations: int) -> Step | None:
        """Return what to do next; None if every number of clusters is settled.

        It depends on nothing but the state, so that a path that was interrupted continues as if it
        had not been.
        """
        searched = [k for k in self.ks if k > 1]
        if 1 not in self.entries:
            return Step(Kind.MEAN, 1)
        for k in searched:
            if k not in self.entries or not self.entries[k].up:
                return Step(Kind.UP, k, self._before(k, searched))
        for k in reversed(searched):
            if not self.entries[k].down:
                return Step(Kind.DOWN, k, self._after(k, searched))
        return (
            self._disagreement(searched, tolerance)
            or self._lesson(searched, tolerance)
            or self._doubt(searched, tolerance, confirmations)
        )

    def _before(self, k: int, searched: Sequence[int]) -> int:
        return max((j for j in searched if j < k), default=0)

    def _after(self, k: int, searched: Sequence[int]) -> int:
        return min((j for j in searched if j > k), default=0)

    def _disagreement(self, searched: Sequence[int], tolerance: float) -> Step | None:
        """Return a number of clusters at which populations disagree, and have not been united."""
        for k in searched:
            entry = self.entries[k]
            if not entry.is_united and entry.n_agreeing(tolerance) < 2:
                return Step(Kind.UNITE, k)
        return None

    def _lesson(self, searched: Sequence[int], tolerance: float) -> Step | None:
        """Return a neighbour that has found something since it was last listened to."""
        for k in searched:
            entry = self.entries[k]
            for j in self.neighbours(k):
                known = entry.tested.get(j, float("inf"))
                if self.entries[j].best.inertia < known * (1.0 - tolerance):
                    return Step(Kind.GROW if j < k else Kind.MERGE, k, j)
        return None

    def _doubt(self, searched: Sequence[int], tolerance: float, confirmations: int) -> Step | None:
        """Return a number of clusters whose best solution has been found only once."""
        for k in searched:
            entry = self.entries[k]
            if entry.n_fresh < confirmations and entry.n_agreeing(tolerance) < 2:
                return Step(Kind.FRESH, k)
        return None
