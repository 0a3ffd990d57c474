"""The search for a path: short searches that learn from their neighbours, until they agree."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from evomeans.engines.protocol import Engine, Order
from evomeans.engines.workers import watched
from evomeans.path.neighbours import Grown, Merged
from evomeans.path.state import (
    FRESH,
    MOST_OF_A_POPULATION,
    TAUGHT,
    Entry,
    Kind,
    PathObserver,
    PathRecord,
    PathSettings,
    PathState,
    Step,
    without_handle,
)
from evomeans.search.founding import Founding, KMeansPlusPlus
from evomeans.search.genetic import solve
from evomeans.search.history import Audience, OffspringRecord
from evomeans.search.population import Individual
from evomeans.search.search import Weigh
from evomeans.search.stopping import DeferredInterrupt, SearchResult, StopReason
from evomeans.typing import FloatArray

# Founders of the searches that unite populations, and of those that listen to a neighbour.
UNITED, LISTENING = 12, 3
# Until every number of clusters has a solution, one step may take this many times its share of the
# time left.
MOST_SHARES = 4.0
# Of the time left, what it may take to put the samples into order.
ORDERING = 0.5
# Up to so many clusters, populations that agree are not believed before they have settled: there,
# neighbours lead into the same wrong place more often, and searches cost next to nothing.
FEW_CLUSTERS = 8


class PathKeeper(Protocol):
    """Stores the state of a path from time to time."""

    def keep(self, state: PathState) -> None:
        """Store the state if it is time to."""

    def end(self, state: PathState) -> None:
        """Store the last state."""


@dataclass(frozen=True)
class PathOutcome:
    """What a step brought: solutions, best first, and how many were made."""

    solutions: Sequence[Individual]
    n_solutions: int


@dataclass
class FoundAgain:
    """An observer that ends a search which has found what another population had found.

    All founders are made first: the very first one may lead into the same wrong place, and the
    others may not.
    """

    # Inertia that is as deep.
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
    keeper: PathKeeper | None = None,
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
    reserve = reserve_for(engine, state.ks) if settings.max_time is not None else 0.0
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
            if keeper is not None:
                keeper.keep(state)
            if audience.said_stop:
                reason = StopReason.OBSERVER
                break
    if keeper is not None:
        keeper.end(state)
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
        case Kind.UNITE:
            population, patience = UNITED, settings.longer
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
        settings.search(
            k,
            founding,
            population,
            patience=patience,
            max_time=None if seconds_left is None else max(seconds_left, 1e-3),
        ),
        np.random.default_rng([*state.entropy, state.n_steps]),
        initial=given,
        observers=watching,
        interrupt=interrupt,
        weigh=weigh,
    )
    return PathOutcome(best_of(found), len(found.history))


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


def reserve_for(engine: Engine, ks: Sequence[int]) -> float:
    """Estimate how long it takes to label the samples for all numbers of clusters."""
    most = max(ks)
    return engine.labelling_seconds(most) * sum(ks) / most


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
        case Kind.UNITE:
            around = [
                (Grown if j < step.k else Merged)(tuple(entries[j].members[:MOST_OF_A_POPULATION]))
                for j in state.neighbours(step.k)
            ]
            given = [member.centers for member in entries[step.k].members]
            return (*around, KMeansPlusPlus()), given
    return FRESH, []


def best_of(found: SearchResult) -> list[Individual]:
    """Return the best members of the last population, without what the engine knows of them."""
    return [without_handle(one) for one in found.population[:MOST_OF_A_POPULATION]]


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
        case Kind.UNITE:
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
