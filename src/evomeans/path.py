"""The search for a path over the number of clusters: short searches that learn from neighbours."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import ClassVar, Literal

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

    # The operators; the path decides where founders begin and when a population has converged.
    strategy: Strategy = DEEP
    # Divided by the number of clusters: founders from nothing that join those of neighbours. With
    # few clusters, neighbours teach little, and solutions are cheap.
    scattered: float = 24.0
    # Solutions with which a population begins that has no neighbours.
    fresh_population: int = 8
    # Offspring in a row without improvement after which a population has converged: the sum of the
    # former and, for each cluster, the latter.
    patience: int = 12
    patience_per_cluster: float = 0.2
    # Times as patient are populations that begin a sweep, or combine two that disagreed.
    longer: float = 1.8
    # At most so many populations are begun anew where populations have not agreed so far.
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

Kind = Literal["mean", "up", "down", "combine", "grow", "merge", "fresh", "exact"]
"""The kinds of steps of a path; :class:`PathRecord` explains them."""


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
        groups = clone_groups([*self.members, *solutions])
        self.members = [group[0] for group in groups[:MOST_KEPT]]


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
        entries, searched = self.entries, [k for k in self.ks if k > 1]
        if 1 not in entries:
            return Step("mean", 1)
        for k in searched:
            if k not in entries or not entries[k].up:
                return Step("up", k, max((j for j in searched if j < k), default=0))
        for k in reversed(searched):
            if not entries[k].down:
                return Step("down", k, min((j for j in searched if j > k), default=0))
        doubtful = [k for k in searched if entries[k].n_agreeing(tolerance) < 2]
        for k in doubtful:
            if not entries[k].is_combined:
                return Step("combine", k)
        for k in searched:
            for j in self.neighbours(k):
                # It has found something since its solutions were founders here.
                if entries[j].best.inertia < entries[k].tested.get(j, np.inf) * (1.0 - tolerance):
                    return Step("grow" if j < k else "merge", k, j)
        fresh = (k for k in doubtful if entries[k].n_fresh < confirmations)
        return next((Step("fresh", k) for k in fresh), None)


# Divisions that are looked at for each centre that is added, and the steps of 2-means of each.
DIVISIONS, ROUNDS = 12, 3
# Samples on which divisions are judged: at least the first number, and the second per centre.
FEW_SAMPLES, SAMPLES_PER_CENTER = 1000, 20
# Among how many of the cheapest mergers one is drawn; the cheapest ones are drawn most often.
MERGERS = 4


@dataclass(frozen=True, eq=False)
class Taught:
    """Founders that begin with solutions for another number of clusters, best first.

    Where centres are missing, the cluster is divided that gains most on some samples; where there
    are too many, clusters are merged that cost little to merge.
    """

    solutions: tuple[Individual, ...] = field(repr=False)
    name: ClassVar[str] = "taught"

    def draw(self, n_samples: int, n_clusters: int, rng: np.random.Generator) -> FloatArray:
        """Draw which solution is taken, and a number that decides how it changes."""
        return np.append(rng.random(2), n_clusters)

    def place(self, engine: Engine, draws: Sequence[FloatArray]) -> list[FloatArray]:
        """Divide or merge clusters until there are as many as there should be."""
        placed = []
        for which, number, n_clusters in (numbers.tolist() for numbers in draws):
            # The first ones are likelier.
            solution = self.solutions[int(which * which * len(self.solutions))]
            change = merged if len(solution.centers) > n_clusters else grown
            placed.append(change(engine, solution, int(n_clusters), number))
        return placed


def grown(engine: Engine, solution: Individual, n_clusters: int, number: float) -> FloatArray:
    """Divide clusters until there are enough."""
    rng = np.random.default_rng(int(number * 2.0**53))
    # Drawn by their weight; all of them if these are few.
    size, n = max(FEW_SAMPLES, SAMPLES_PER_CENTER * n_clusters), engine.n_samples
    rows = engine.samples_at(rng.random(size) if size < n else (np.arange(n) + 0.5) / n)
    centers = solution.centers
    while len(centers) < n_clusters:
        centers = divide_best(rows, centers, rng)
    return centers


def merged(engine: Engine, solution: Individual, n_clusters: int, number: float) -> FloatArray:
    """Merge clusters until few enough are left."""
    # Imported late: importing the estimator loads no compiler.
    from evomeans.kernels.ward import pnn_merge

    nth = int(number * number * MERGERS)
    return pnn_merge(*merge_pair(solution.centers, solution.cluster_weights, nth), n_clusters)[0]


def divide_best(rows: FloatArray, centers: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Divide the cluster for which that gains most, judged by some samples.

    A division begins with a sample, drawn by its squared distance to its centre. One centre comes
    twice if all samples lie on theirs.
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
    """Divide samples around their centre in two; return the gain and the means of the halves.

    The first plane between the halves goes through the centre, perpendicular to the direction, and
    some steps of 2-means follow. The gain is AB/(A + B)·‖a − b‖², with means a, b and sizes A, B.
    """
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
# Shares of the time left that a step may take until every number of clusters has a solution.
MOST_SHARES = 4.0
# Of the time left, what it may take to put the samples into order.
ORDERING = 0.5
# Up to so many clusters, searches converge even if populations agree: neighbours lead into the same
# wrong place more often there, and searches cost next to nothing.
FEW_CLUSTERS = 8


def follow_path(
    engine: Engine,
    state: PathState,
    settings: PathSettings,
    *,
    observers: Sequence[PathObserver] = (),
    interrupt: DeferredInterrupt,
    spent: float = 0.0,
    weigh_for: Callable[[int], Weigh | None] = lambda _: None,
) -> StopReason:
    """Search for the best clusterings with all numbers of clusters of the state, which changes.

    One sweep goes up: every population begins with solutions that have one centre fewer, and
    divides a cluster of theirs. Another one goes down: two clusters of solutions with one centre
    more are merged. They know nothing of each other, so two independent populations agree where
    both come to the same inertia. Elsewhere they are combined. Whatever is found is shown to the
    neighbours, until none of them improves; what has been found only once is searched for anew.

    The arguments are those of :func:`~evomeans.search.genetic.solve`; ``weigh_for`` returns what
    weighs the clusters of a search with some number of them. The reason is ``AGREEMENT`` if there
    is nothing left to do.
    """
    began = time.perf_counter() - state.seconds - spent
    reserve = 0.0
    if settings.max_time is not None:
        # The samples have to be labelled for all numbers of clusters.
        reserve = engine.labelling_seconds(max(state.ks)) * sum(state.ks) / max(state.ks)
    reason = StopReason.AGREEMENT
    audience = Audience(observers)
    with audience.watching(state):
        while (step := state.next_step(settings.tolerance, settings.confirmations)) is not None:
            limit, n_missing = settings.max_time, len(state.ks) - len(state.entries)
            left = None if limit is None else began + limit - reserve - time.perf_counter()
            # Every number of clusters gets a solution, however little time there is.
            if left is not None and left <= 0.0 and not n_missing:
                reason = StopReason.MAX_TIME
                break
            if left is not None and n_missing:
                left *= min(1.0, MOST_SHARES / n_missing)
            weigh = weigh_for(step.k)
            found, n_made = take_step(engine, state, settings, step, interrupt, left, weigh)
            if not found or interrupt.requested:
                # What was interrupted begins anew when the path continues, with the same numbers.
                reason = StopReason.INTERRUPTED
                break
            is_first = step.k not in state.entries
            seconds = time.perf_counter() - began
            record = learn(state, step, found, n_made, settings.tolerance, seconds)
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
    weigh: Weigh | None,
) -> tuple[list[Individual], int]:
    """Return solutions, best first, and how many were made; none if Ctrl-C leaves no solution."""
    if step.kind == "mean":
        return find_mean(engine, interrupt, seconds_left)
    k, entries = step.k, state.entries
    founding: tuple[Founding, ...] = FRESH
    population, patience = settings.fresh_population, 1.0
    given: list[FloatArray] = []
    watching: list[Callable[[OffspringRecord], bool]] = []
    match step.kind:
        case "up" | "down" if step.source:
            population = TAUGHT + round(settings.scattered / k)
            begun = Taught(tuple(getattr(entries[step.source], step.kind)))
            founding = (*[begun] * TAUGHT, *FRESH)
        case "up" | "down":
            # A whole sweep begins here.
            patience = settings.longer
        case "grow" | "merge":
            population, patience = LISTENING, 0.0
            founding = (lesson(entries[step.source]),)
        case "combine":
            population, patience = COMBINED, settings.longer
            around = [lesson(entries[j]) for j in state.neighbours(k)]
            founding = (*around, KMeansPlusPlus())
            given = [member.centers for member in entries[k].members]
    if k > FEW_CLUSTERS and (step.kind == "fresh" or (step.kind == "down" and step.source)):
        # What another population has found is enough, once all founders are made: the very first
        # one may lead into the same wrong place, and the others may not.
        bound, made = entries[k].best.inertia * (1.0 + settings.tolerance), count(1)
        watching.append(lambda record: next(made) >= population and record.best <= bound)
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
    best = [replace(one, handle=None) for one in found.population[:MOST_OF_A_POPULATION]]
    return best, len(found.history)


def lesson(entry: Entry) -> Taught:
    """Return founders that begin with the best solutions of a neighbour."""
    return Taught(tuple(entry.members[:MOST_OF_A_POPULATION]))


def find_mean(
    engine: Engine, interrupt: DeferredInterrupt, seconds_left: float | None
) -> tuple[list[Individual], int]:
    """Find the centre of all samples; they stay as they are if there is no time for an order."""
    start = Order(engine.samples_at(np.array([0.5])))
    end = math.inf if seconds_left is None else time.perf_counter() + ORDERING * seconds_left

    def is_over() -> bool:
        return interrupt.requested or time.perf_counter() >= end

    (mean,) = watched(engine, lambda: engine.refine([start]), is_over)
    if not mean.is_complete:
        if interrupt.requested:
            return [], 0
        (mean,) = engine.refine([start])
    return [Individual(mean.centers, mean.inertia, mean.cluster_weights, alpha=0.0)], 1


def learn(
    state: PathState,
    step: Step,
    solutions: list[Individual],
    n_made: int,
    tolerance: float,
    seconds: float,
) -> PathRecord:
    """Let the state know what a step brought, and return its record."""
    k, lowest, entries = step.k, solutions[0].inertia, state.entries
    entry = entries.setdefault(k, Entry())
    before = entry.best.inertia if entry.members else np.inf
    is_deeper = lowest < before * (1.0 - tolerance)
    entry.add(solutions)
    entry.n_solutions += n_made
    match step.kind:
        case "up" | "down":
            setattr(entry, step.kind, solutions)
            if step.source:
                neighbour = getattr(entries[step.source], step.kind)
                entry.tested[step.source] = neighbour[0].inertia
        case "grow" | "merge":
            entry.tested[step.source] = entries[step.source].best.inertia
        case "combine":
            entry.tested |= {j: entries[j].best.inertia for j in state.neighbours(k)}
        case "fresh":
            entry.n_fresh += 1
    # A population that has found nothing lower has nothing to give.
    entry.is_combined = step.kind == "combine" or (entry.is_combined and not is_deeper)
    if step.kind in ("mean", "exact"):
        # There is nothing to be found again.
        entry.alone += [lowest, lowest]
    elif is_deeper or step.kind in ("up", "down", "fresh"):
        entry.alone.append(lowest)
    state.n_steps += 1
    state.seconds = seconds
    return PathRecord(
        number=state.n_steps,
        kind=step.kind,
        k=k,
        source=step.source,
        inertia=lowest,
        best=entry.best.inertia,
        improvement=1.0 - lowest / before if lowest < before < np.inf else 0.0,
        n_agreeing=entry.n_agreeing(tolerance),
        n_solutions=n_made,
        n_known=len(entries),
        n_open=sum(one.n_agreeing(tolerance) < 2 for one in entries.values()),
        n_total=len(state.ks),
        seconds=seconds,
    )
