"""The state of a search over k, its settings and its records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from evomeans.search.founding import Founding, KMeansPlusPlus, RandomSamples
from evomeans.search.population import Individual, clone_groups
from evomeans.search.settings import DEEP, SearchSettings, Strategy, check_limits

TAUGHT = 3
"""Solutions of neighbours with which a population begins."""

FRESH = (KMeansPlusPlus(greedy=True), RandomSamples(), KMeansPlusPlus(), RandomSamples())
"""Where a population begins that has no neighbours to begin from."""


@dataclass(frozen=True)
class PathSettings:
    """Parameters of the search for a whole path."""

    # The operators. The path itself decides where founders begin, when a population has converged
    # and how many have to agree.
    strategy: Strategy = DEEP
    # A population that has neighbours begins with solutions of theirs, and with this number divided
    # by that of clusters from nothing: with few clusters, neighbours teach little, and solutions
    # are cheap.
    scattered: float = 24.0
    # Solutions with which a population begins that has no neighbours.
    fresh_population: int = 8
    # Offspring in a row without improvement after which a population has converged: the sum of the
    # former and, for each cluster, the latter.
    patience: int = 12
    patience_per_cluster: float = 0.2
    # How many times as patient a population is with which a sweep begins, or which unites two that
    # disagreed.
    longer: float = 1.8
    # How many populations are begun anew, at most, for a number of clusters at which populations
    # have not agreed so far.
    confirmations: int = 0
    # Offspring in the making, see Strategy. Populations are short, and parents should not be old.
    lag: int = 4
    # Of one population.
    max_offspring: int = 5000
    # Seconds for the whole path.
    max_time: float | None = None

    def __post_init__(self) -> None:
        check_limits(self.max_time, None)

    @property
    def tolerance(self) -> float:
        """Relative differences of the inertia up to this are ignored."""
        return self.strategy.tolerance

    def population_for(self, n_clusters: int) -> int:
        """Return how many solutions a population begins with that has neighbours."""
        return TAUGHT + round(self.scattered / n_clusters)

    def search(
        self,
        n_clusters: int,
        founding: tuple[Founding, ...],
        population: int,
        patience: float = 1.0,
        seconds_left: float | None = None,
    ) -> SearchSettings:
        """Return the settings of one short search; its patience is in units of the usual one."""
        wait = patience * (self.patience + self.patience_per_cluster * n_clusters)
        strategy = replace(
            self.strategy,
            name=f"{self.strategy.name} on a path",
            founding=founding,
            agreement=1,
            lag=min(self.lag, self.strategy.lag),
        )
        return SearchSettings(
            min_population=min(TAUGHT, population),
            max_population=population,
            max_offspring=self.max_offspring,
            patience=max(1, round(wait)),
            max_time=None if seconds_left is None else max(seconds_left, 1e-3),
            # Neighbours tell where to begin, on all samples.
            subsample=None,
            strategy=strategy,
        )


@dataclass(frozen=True, slots=True)
class PathRecord:
    """The record of one step of a path.

    Parameters
    ----------
    number : int
        1, 2, … for the steps of the path.
    kind : str
        "up" and "down" for the two sweeps; "unite" for combining populations that disagreed;
        "grow" and "merge" for starts from a neighbouring k; "fresh" for a new population; "mean"
        for k = 1, and "exact" for one feature.
    k : int
        The number of clusters.
    source : int
        The number of clusters whose solutions it began with, 0 for none.
    inertia : float
        The lowest inertia of this step.
    best : float
        The lowest inertia for this number of clusters so far.
    improvement : float
        Relative improvement over the best before; 0 if there is none, or nothing to compare with.
    n_agreeing : int
        Independent populations that have come to the best.
    n_solutions : int
        Solutions made in this step.
    n_known : int
        Numbers of clusters that have a solution.
    n_open : int
        Numbers of clusters at which no two populations agree so far.
    n_total : int
        Numbers of clusters on the path.
    seconds : float
        Seconds since the path began.
    """

    number: int
    kind: str
    k: int
    source: int
    inertia: float
    best: float
    improvement: float
    n_agreeing: int
    n_solutions: int
    n_known: int
    n_open: int
    n_total: int
    seconds: float


PathObserver = Callable[[PathRecord], object]
"""Called with every record; returning ``True`` ends the path."""


# Solutions that are kept for each number of clusters, and for each of its populations.
MOST_KEPT, MOST_OF_A_POPULATION = 8, 4


class Kind(StrEnum):
    """The kinds of steps of a path."""

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
    """The next thing to do."""

    kind: Kind
    # The number of clusters it is for.
    k: int
    # The neighbour whose solutions it begins with; 0 for none.
    source: int = 0


@dataclass
class Entry:
    """The solutions for one number of clusters, and the evidence for them."""

    # The best solutions of all populations, best first.
    members: list[Individual] = field(default_factory=list)
    # Those of the two sweeps, which know nothing of each other.
    up: list[Individual] = field(default_factory=list)
    down: list[Individual] = field(default_factory=list)
    # The lowest inertia of each population that was searched by itself. Those that were combined
    # count as one, if that led to a lower inertia.
    alone: list[float] = field(default_factory=list)
    # Whether populations that disagreed have been combined, and no new one has come since.
    is_combined: bool = False
    # Populations begun anew, beyond the two sweeps.
    n_fresh: int = 0
    # Inertia of each neighbour whose solutions have been founders here.
    tested: dict[int, float] = field(default_factory=dict)
    # Solutions made for this number of clusters.
    n_solutions: int = 0

    @property
    def best(self) -> Individual:
        """The best solution."""
        return self.members[0]

    def n_agreeing(self, tolerance: float) -> int:
        """How many independent populations have reached the best solution."""
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
    """The state of the search: all that it needs to continue to the same result."""

    # The numbers of clusters, ascending; 1 is always among them.
    ks: list[int]
    # What the random numbers of all steps derive from.
    entropy: list[int]
    # Made so far.
    n_steps: int = 0
    # Spent so far.
    seconds: float = 0.0
    # By number of clusters, for those that have a solution.
    entries: dict[int, Entry] = field(default_factory=dict)

    def neighbours(self, k: int) -> list[int]:
        """Return the numbers of clusters before and after this one; 1 teaches nothing."""
        place = self.ks.index(k)
        around = [*self.ks[max(0, place - 1) : place], *self.ks[place + 1 : place + 2]]
        return [one for one in around if one > 1]

    def next_step(self, tolerance: float, confirmations: int) -> Step | None:
        """Return what to do next, from nothing but the state; None if every number is settled."""
        searched = [k for k in self.ks if k > 1]
        if 1 not in self.entries:
            return Step(Kind.MEAN, 1)
        for k in searched:
            if k not in self.entries or not self.entries[k].up:
                return Step(Kind.UP, k, max((j for j in searched if j < k), default=0))
        for k in reversed(searched):
            if not self.entries[k].down:
                return Step(Kind.DOWN, k, min((j for j in searched if j > k), default=0))
        return (
            self._disagreement(searched, tolerance)
            or self._lesson(searched, tolerance)
            or self._doubt(searched, tolerance, confirmations)
        )

    def _disagreement(self, searched: Sequence[int], tolerance: float) -> Step | None:
        """Return a number of clusters at which populations disagree, and have not been combined."""
        for k in searched:
            entry = self.entries[k]
            if not entry.is_combined and entry.n_agreeing(tolerance) < 2:
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
