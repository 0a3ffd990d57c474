"""The search for a path over the number of clusters: short searches that learn from neighbours."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import ClassVar

import numpy as np
from scipy.spatial.distance import pdist

from evomeans.engines.protocol import Engine, Order
from evomeans.engines.sampling import roulette
from evomeans.engines.workers import watched
from evomeans.search.founding import Founding, KMeansPlusPlus, RandomSamples
from evomeans.search.genetic import solve
from evomeans.search.history import Audience, OffspringRecord
from evomeans.search.population import Individual, clone_groups
from evomeans.search.search import Weigh
from evomeans.search.settings import DEEP, SearchSettings, Strategy, check_limits
from evomeans.search.stopping import DeferredInterrupt, StopReason
from evomeans.typing import FloatArray

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
    # How many times as patient a population is with which a sweep begins, or which combines two
    # that disagreed.
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
        "up" and "down" for the two sweeps; "combine" for populations that disagreed;
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
    COMBINE = "combine"
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
                return Step(Kind.COMBINE, k)
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


# Divisions that are looked at for each centre that is added, and the steps of 2-means of each.
DIVISIONS, ROUNDS = 12, 3
# Samples on which divisions are judged: at least the first number, and the second per centre.
FEW_SAMPLES, SAMPLES_PER_CENTER = 1000, 20
# Among how many of the cheapest mergers one is drawn; the cheapest ones are drawn most often.
MERGERS = 4


@dataclass(frozen=True, eq=False)
class Taught:
    """Founders that begin with solutions for another number of clusters, best first."""

    solutions: tuple[Individual, ...] = field(repr=False)

    def draw(self, n_samples: int, n_clusters: int, rng: np.random.Generator) -> FloatArray:
        """Draw which solution is taken, and a number that decides how it changes."""
        return np.append(rng.random(2), n_clusters)

    def chosen(self, uniform: float) -> Individual:
        """Return one of the solutions; the first ones are likelier."""
        return self.solutions[int(uniform * uniform * len(self.solutions))]


class Grown(Taught):
    """Solutions with more centres: the cluster is divided that gains most on some samples."""

    name: ClassVar[str] = "grown"

    def place(self, engine: Engine, draws: Sequence[FloatArray]) -> list[FloatArray]:
        """Divide clusters until there are enough."""
        placed = []
        for which, number, n_clusters in (numbers.tolist() for numbers in draws):
            rng = np.random.default_rng(int(number * 2.0**53))
            # Drawn by their weight; all of them if these are few.
            size, n = max(FEW_SAMPLES, SAMPLES_PER_CENTER * int(n_clusters)), engine.n_samples
            rows = engine.samples_at(rng.random(size) if size < n else (np.arange(n) + 0.5) / n)
            centers = self.chosen(which).centers
            while len(centers) < n_clusters:
                centers = divide_best(rows, centers, rng)
            placed.append(centers)
        return placed


class Merged(Taught):
    """Solutions with fewer centres: clusters that cost little to merge are merged."""

    name: ClassVar[str] = "merged"

    def place(self, engine: Engine, draws: Sequence[FloatArray]) -> list[FloatArray]:
        """Merge clusters until few enough are left."""
        # Imported late: importing the estimator loads no compiler.
        from evomeans.kernels.ward import pnn_merge

        placed = []
        for which, number, n_clusters in (numbers.tolist() for numbers in draws):
            solution = self.chosen(which)
            merged = merge_pair(
                solution.centers, solution.cluster_weights, int(number * number * MERGERS)
            )
            placed.append(pnn_merge(*merged, int(n_clusters))[0])
        return placed


def divide_best(rows: FloatArray, centers: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Divide the cluster for which that gains most, judged by some samples.

    A division begins with a sample, drawn by its squared distance to its centre: the first plane
    between the halves goes through the centre, perpendicular to the direction of the sample, and
    some steps of 2-means follow. With the means a and b and the sizes A and B of the halves it
    gains AB/(A + B)·‖a − b‖². One centre comes twice if all samples lie on theirs.
    """
    # Around their mean, so that few digits cancel.
    middle = centers.mean(axis=0)
    near, places = rows - middle, centers - middle
    labels = ((places * places).sum(axis=1) - 2.0 * (near @ places.T)).argmin(axis=1)
    offsets = near - places[labels]
    errors = np.einsum("ij,ij->i", offsets, offsets)
    best_gain, best = -1.0, np.vstack([centers, centers[:1]])
    if not errors.any():
        return best
    drawn = roulette(errors, rng.random(DIVISIONS))
    for j in np.unique(labels[drawn]):
        own = offsets[labels == j]
        for sample in np.unique(drawn[labels[drawn] == j]):
            gain, halves = divide(own, offsets[sample])
            if gain > best_gain:
                best_gain = gain
                best = np.vstack([centers, centers[j] + halves[1]])
                best[j] = centers[j] + halves[0]
    return best


def divide(offsets: FloatArray, direction: FloatArray) -> tuple[float, FloatArray]:
    """Divide samples around their centre in two; return the gain and the means of the halves."""
    normal, level = direction, 0.0
    gain, halves = 0.0, np.array([np.zeros_like(direction), direction])
    total, n = offsets.sum(axis=0), len(offsets)
    for _ in range(ROUNDS):
        beyond = (offsets @ normal > level).astype(np.float64)
        count = float(beyond.sum())
        if count in (0.0, n):
            break
        a = beyond @ offsets
        b = (total - a) / (n - count)
        a /= count
        normal, level = a - b, 0.5 * float((a - b) @ (a + b))
        gain = count * (n - count) / n * float(normal @ normal)
        halves = np.array([b, a])
    return gain, halves


def merging_costs(centers: FloatArray, weights: FloatArray) -> FloatArray:
    """Return what merging any two clusters costs, wₐwᵦ/(wₐ+wᵦ)·‖cₐ−cᵦ‖², as a condensed matrix."""
    a, b = np.triu_indices(len(centers), 1)
    # By a power of two, so that no product overflows or vanishes.
    exponent = math.frexp(weights.max())[1]
    near_one = np.ldexp(weights, -exponent)
    total, product = near_one[a] + near_one[b], near_one[a] * near_one[b]
    shares = np.divide(product, total, out=np.zeros_like(total), where=total > 0.0)
    costs: FloatArray = np.ldexp(shares, exponent) * pdist(centers, "sqeuclidean")
    return costs


def merge_pair(
    centers: FloatArray, weights: FloatArray, nth: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Merge the two clusters that cost least to merge, or the nth pair after these."""
    costs = merging_costs(centers, weights)
    pair = np.argsort(costs, kind="stable")[min(nth, len(costs) - 1)]
    a, b = (int(places[pair]) for places in np.triu_indices(len(centers), 1))
    total = weights[a] + weights[b]
    share = weights[b] / total if total > 0.0 else 0.5
    merged, left = np.delete(centers, b, axis=0), np.delete(weights, b)
    merged[a], left[a] = centers[a] + share * (centers[b] - centers[a]), total
    return merged, left


# Founders of the searches that combine populations, and of those that listen to a neighbour.
COMBINED, LISTENING = 12, 3
# Until every number of clusters has a solution, one step may take this many times its share of the
# time left.
MOST_SHARES = 4.0
# Of the time left, what it may take to put the samples into order.
ORDERING = 0.5
# Up to so many clusters, populations that agree are not believed before they have converged: there,
# neighbours lead into the same wrong place more often, and searches cost next to nothing.
FEW_CLUSTERS = 8


@dataclass(frozen=True)
class PathOutcome:
    """The outcome of a step: solutions, best first, and how many were made."""

    solutions: Sequence[Individual]
    n_solutions: int


@dataclass
class FoundAgain:
    """An observer that ends a search which has found what another population had found.

    All founders are made first: the very first one may lead into the same wrong place, and the
    others may not.
    """

    # Inertia that is as low.
    bound: float
    # Founders that are still to be made.
    n_left: int

    def __call__(self, record: OffspringRecord) -> bool:
        """Return whether it is enough."""
        self.n_left -= 1
        return self.n_left <= 0 and record.best <= self.bound


def follow_path(
    engine: Engine,
    state: PathState,
    settings: PathSettings,
    *,
    observers: Sequence[PathObserver] = (),
    interrupt: DeferredInterrupt,
    clock: Callable[[], float] = time.perf_counter,
    spent: float = 0.0,
    weigh_for: Callable[[int], Weigh | None] = lambda _: None,
) -> StopReason:
    """Search for the best clusterings with all numbers of clusters of the state.

    One sweep goes up: every population begins with solutions that have one centre fewer, and
    divides a cluster of theirs. Another one goes down: two clusters of solutions with one centre
    more are merged. They know nothing of each other. Where both come to the same inertia,
    two independent populations agree. Where they do not, they are combined. Whatever is found is
    shown to the neighbours, until none of them improves; and what has been found
    only once is searched for anew.

    The state is a new one, or one to continue from; it changes. The arguments are those of
    :func:`~evomeans.search.genetic.solve`, and ``weigh_for`` returns what weighs the clusters of a
    search with some number of them. The reason is ``AGREEMENT`` if there is nothing left to do.
    """
    began = clock() - state.seconds - spent
    reserve = 0.0
    if settings.max_time is not None:
        # The samples have to be labelled for all numbers of clusters.
        reserve = engine.labelling_seconds(max(state.ks)) * sum(state.ks) / max(state.ks)
    reason = StopReason.AGREEMENT
    audience = Audience(observers)
    with audience.watching(state):
        while (step := state.next_step(settings.tolerance, settings.confirmations)) is not None:
            limit, n_missing = settings.max_time, len(state.ks) - len(state.entries)
            left = None if limit is None else began + limit - reserve - clock()
            # Every number of clusters gets a solution, however little time there is.
            if left is not None and left <= 0.0 and not n_missing:
                reason = StopReason.MAX_TIME
                break
            if left is not None and n_missing:
                left *= min(1.0, MOST_SHARES / n_missing)
            weigh = weigh_for(step.k)
            outcome = take_step(engine, state, settings, step, interrupt, left, weigh)
            if outcome is None or interrupt.requested:
                # What was interrupted begins anew when the path continues, with the same numbers.
                reason = StopReason.INTERRUPTED
                break
            is_first = step.k not in state.entries
            record = learn(state, step, outcome, settings.tolerance, clock() - began)
            audience.show(record, is_best=is_first or record.improvement > 0.0)
            audience.tell("on_round", state, False)
            if audience.said_stop:
                reason = StopReason.OBSERVER
                break
        audience.tell("on_round", state, True)
    return reason


def take_step(
    engine: Engine,
    state: PathState,
    settings: PathSettings,
    step: Step,
    interrupt: DeferredInterrupt,
    seconds_left: float | None,
    weigh: Weigh | None = None,
) -> PathOutcome | None:
    """Make the solutions of a step; the state is only read. None if Ctrl-C leaves no solution."""
    if step.kind is Kind.MEAN:
        return find_mean(engine, interrupt, seconds_left)
    k, entry = step.k, state.entries.get(step.k, Entry())
    founding, given = founders(state, step)
    population = settings.population_for(k) if step.source else settings.fresh_population
    patience = 1.0
    watching: list[FoundAgain] = []
    match step.kind:
        case Kind.COMBINE:
            population, patience = COMBINED, settings.longer
        case Kind.GROW | Kind.MERGE:
            population, patience = LISTENING, 0.0
        case Kind.UP | Kind.DOWN if not step.source:
            # A whole sweep begins here.
            patience = settings.longer
        case Kind.DOWN | Kind.FRESH if k > FEW_CLUSTERS:
            bound = entry.best.inertia * (1.0 + settings.tolerance)
            watching.append(FoundAgain(bound, population))
    found = solve(
        engine,
        k,
        settings.search(k, founding, population, patience, seconds_left),
        np.random.default_rng([*state.entropy, state.n_steps]),
        initial=given,
        observers=watching,
        interrupt=interrupt,
        weigh=weigh,
    )
    best = [without_handle(one) for one in found.population[:MOST_OF_A_POPULATION]]
    return PathOutcome(best, len(found.history))


def find_mean(
    engine: Engine, interrupt: DeferredInterrupt, seconds_left: float | None
) -> PathOutcome | None:
    """Find the centre of all samples; they stay as they are if there is no time for an order."""
    start = Order(engine.samples_at(np.array([0.5])))
    end = math.inf if seconds_left is None else time.perf_counter() + ORDERING * seconds_left

    def is_over() -> bool:
        return interrupt.requested or time.perf_counter() >= end

    (mean,) = watched(engine, lambda: engine.refine([start]), is_over)
    if not mean.is_complete:
        if interrupt.requested:
            return None
        (mean,) = engine.refine([start])
    return PathOutcome([Individual(mean.centers, mean.inertia, mean.cluster_weights, alpha=0.0)], 1)


def founders(state: PathState, step: Step) -> tuple[tuple[Founding, ...], list[FloatArray]]:
    """Return how the population of a step begins, and the solutions that join it as they are."""
    entries = state.entries
    match step.kind:
        case Kind.UP if step.source:
            return (*[Grown(tuple(entries[step.source].up))] * TAUGHT, *FRESH), []
        case Kind.DOWN if step.source:
            return (*[Merged(tuple(entries[step.source].down))] * TAUGHT, *FRESH), []
        case Kind.GROW:
            return (Grown(tuple(entries[step.source].members[:MOST_OF_A_POPULATION])),), []
        case Kind.MERGE:
            return (Merged(tuple(entries[step.source].members[:MOST_OF_A_POPULATION])),), []
        case Kind.COMBINE:
            around = [
                (Grown if j < step.k else Merged)(tuple(entries[j].members[:MOST_OF_A_POPULATION]))
                for j in state.neighbours(step.k)
            ]
            given = [member.centers for member in entries[step.k].members]
            return (*around, KMeansPlusPlus()), given
    return FRESH, []


def learn(
    state: PathState, step: Step, outcome: PathOutcome, tolerance: float, seconds: float
) -> PathRecord:
    """Let the state know what a step brought, and return its record."""
    k, lowest = step.k, outcome.solutions[0].inertia
    entry = state.entries.setdefault(k, Entry())
    before = entry.best.inertia if entry.members else np.inf
    is_deeper = lowest < before * (1.0 - tolerance)
    entry.add(outcome.solutions)
    entry.n_solutions += outcome.n_solutions
    match step.kind:
        case Kind.UP | Kind.DOWN:
            setattr(entry, step.kind.value, list(outcome.solutions))
            entry.alone.append(lowest)
            if step.source:
                neighbour = getattr(state.entries[step.source], step.kind.value)
                entry.tested[step.source] = neighbour[0].inertia
        case Kind.FRESH:
            entry.n_fresh += 1
            # One that is shallower has nothing to give.
            entry.is_combined &= not is_deeper
            entry.alone.append(lowest)
        case Kind.COMBINE:
            entry.is_combined = True
            for j in state.neighbours(k):
                entry.tested[j] = state.entries[j].best.inertia
            if is_deeper:
                entry.alone.append(lowest)
        case Kind.GROW | Kind.MERGE:
            entry.tested[step.source] = state.entries[step.source].best.inertia
            if is_deeper:
                entry.is_combined = False
                entry.alone.append(lowest)
        case Kind.MEAN | Kind.EXACT:
            # There is nothing to be found again.
            entry.alone += [lowest, lowest]
    state.n_steps += 1
    state.seconds = seconds
    counts = [one.n_agreeing(tolerance) for one in state.entries.values()]
    return PathRecord(
        number=state.n_steps,
        kind=str(step.kind),
        k=k,
        source=step.source,
        inertia=lowest,
        best=entry.best.inertia,
        improvement=1.0 - lowest / before if lowest < before < np.inf else 0.0,
        n_agreeing=entry.n_agreeing(tolerance),
        n_solutions=outcome.n_solutions,
        n_known=len(state.entries),
        n_open=sum(count < 2 for count in counts),
        n_total=len(state.ks),
        seconds=seconds,
    )
