"""HG-means: the loop of the paper's Algorithm 1, with the operators of a strategy."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from evomeans.engines.protocol import Engine, GuidingEngine, Handle, Refinement, Start
from evomeans.search.crossover import (
    Child,
    matching_crossover,
    merging_crossover,
    partition_crossover,
)
from evomeans.search.history import History, OffspringRecord
from evomeans.search.individual import Individual
from evomeans.search.interrupts import DeferredInterrupt
from evomeans.search.keeping import NoCheckpoint
from evomeans.search.mutation import inherited_alpha
from evomeans.search.observers import Observer, notify
from evomeans.search.population import select_parents, survivors
from evomeans.search.result import SearchResult
from evomeans.search.settings import SearchSettings
from evomeans.search.state import SearchState
from evomeans.search.stopping import Progress, StopReason, reason_to_stop
from evomeans.search.strategy import FEW_FOR_MOVES, FEW_FOR_SWAPS, PAPER, Strategy

# A smaller relative gain is rounding, not an improvement that resets the patience.
IMPROVEMENT = 1e-10


def evolve(
    engine: Engine,
    n_clusters: int,
    settings: SearchSettings,
    rng: np.random.Generator,
    *,
    initial: Sequence[NDArray[np.float64]] = (),
    observers: Sequence[Observer] = (),
    clock: Callable[[], float] = time.perf_counter,
    interrupt: DeferredInterrupt | None = None,
    checkpoint: NoCheckpoint | None = None,
) -> SearchResult:
    """Search for the deepest k-means clustering of the engine's samples.

    Parameters
    ----------
    engine : Engine
        Holds the samples.
    n_clusters : int
        Number of centres k.
    settings : SearchSettings
        Population sizes and stopping criteria.
    rng : numpy.random.Generator
        Source of all randomness.
    initial : sequence of (k, d) arrays
        Solutions to begin with, in the engine's frame; random ones fill the population up.
    observers : sequence of callables
        Each is called with every :class:`OffspringRecord`; ``True`` ends the search.
    clock : callable
        Seconds, for ``max_time`` and the records.
    interrupt : DeferredInterrupt, optional
        One that the caller has entered; by default Ctrl-C is deferred for the search alone.
    checkpoint : Checkpoint, optional
        Where the search keeps its state, and from where it goes on.

    Returns
    -------
    SearchResult
    """
    search = _Search(engine, n_clusters, settings, rng, initial, observers, clock)
    checkpoint = checkpoint or NoCheckpoint()
    with DeferredInterrupt() if interrupt is None else nullcontext(interrupt) as interrupt:
        checkpoint.begin(search)
        while (reason := search.reason_to_stop(interrupt.requested)) is None:
            starts = search.next_round()
            for start, refinement in zip(starts, engine.refine(starts), strict=True):
                search.add(start, refinement)
                # If time is up, what has been made in it is not thrown away.
                if search.reason_to_stop() not in (None, StopReason.MAX_TIME):
                    break
            checkpoint.keep(search)
        checkpoint.end(search)
    return search.result(reason)


class _Search:
    """The state of a running search and the steps that change it."""

    def __init__(
        self,
        engine: Engine,
        n_clusters: int,
        settings: SearchSettings,
        rng: np.random.Generator,
        initial: Sequence[NDArray[np.float64]],
        observers: Sequence[Observer],
        clock: Callable[[], float],
    ) -> None:
        self.engine = engine
        self.n_clusters = n_clusters
        self.settings = settings
        self.rng = rng
        self.observers = observers
        self.clock = clock
        self.began = clock()
        self.given = list(initial)
        self.round: list[Start] = []
        self.founders_due = max(settings.max_population, len(initial))
        self.population: list[Individual] = []
        self.best: Individual | None = None
        self.leader: Individual | None = None
        self.finds = 0
        self.is_first = True
        self.n_offspring = 0
        self.last_improvement = 0
        self.history = History()
        self.observer_said_stop = False

    @property
    def shape(self) -> tuple[int, int]:
        """Centres and features of a solution."""
        return self.n_clusters, len(self.engine.frame.shift)

    @property
    def seconds(self) -> float:
        """Time since the search began, without that between a checkpoint and its resumption."""
        return self.clock() - self.began

    def state(self) -> SearchState:
        """Return all that changes while the search runs."""
        return SearchState(
            population=self.population,
            best=self.best,
            leader=self.leader,
            finds=self.finds,
            is_first=self.is_first,
            given=self.given,
            round=self.round,
            founders_due=self.founders_due,
            n_offspring=self.n_offspring,
            last_improvement=self.last_improvement,
            history=self.history,
            seconds=self.seconds,
            random=dict(self.rng.bit_generator.state),
        )

    def restore(self, state: SearchState) -> None:
        """Take the place of the search that had this state."""
        self.population = state.population
        self.best = state.best
        self.leader = state.leader
        self.finds = state.finds
        self.is_first = state.is_first
        self.given = state.given
        self.round = state.round
        self.founders_due = state.founders_due
        self.n_offspring = state.n_offspring
        self.last_improvement = state.last_improvement
        self.history = state.history
        self.began = self.clock() - state.seconds
        self.rng.bit_generator.state = state.random

    @property
    def per_cluster(self) -> float:
        """Samples per cluster, on the mean."""
        return self.engine.n_samples / self.n_clusters

    @property
    def operators(self) -> Strategy:
        """The strategy of the present population.

        Where clusters are large, K-means is all the local search there is. Then the first
        population is the paper's: others are fast at first, but less deep on some data, and have
        their turn later.
        """
        if self.is_first and not self.engine.is_plain and self.per_cluster > FEW_FOR_MOVES:
            return PAPER
        return self.settings.strategy

    def next_round(self) -> list[Start]:
        """Begin as many solutions as the engine likes at once, founders before offspring.

        If a search ended within a round, the rest of that round comes first.
        """
        batch = self.engine.batch
        if not self.round and self.is_stagnant:
            self.begin_anew()
        if not self.round and self.founders_due:
            self.round = self.found(min(batch, self.founders_due))
        elif not self.round:
            self.round = [self.breed() for _ in range(batch)]
        return list(self.round)

    def found(self, count: int) -> list[Start]:
        """Begin members of a population: given solutions first, then random ones."""
        given, self.given = self.given[:count], self.given[count:]
        mixtures, seeded, slots = [], {}, []
        for place in range(count):
            mixtures.append(self.rng.random(2).tolist())
            if place < len(given):
                continue
            if self.is_seeded(self.founders_due - place):
                seeded[place] = self.seed()
            else:
                # Distinct slots of equal weight: distinct samples, unless one fills two slots.
                n_samples = self.engine.n_samples
                slots.append(self.rng.choice(n_samples, self.n_clusters, replace=False))
        # All at once: samples may be far away.
        sampled = iter(self.samples_in(slots) if slots else ())
        places = range(len(given), count)
        found = [*given, *(seeded[p] if p in seeded else next(sampled) for p in places)]
        starts = [
            self.start(centers, alpha, quantile)
            for centers, (alpha, quantile) in zip(found, mixtures, strict=True)
        ]
        if self.best is None:
            # There is a first answer before any swaps take their time.
            starts[0] = replace(starts[0], swaps=0)
        return starts

    def samples_in(self, slots: Sequence[NDArray[np.int64]]) -> NDArray[np.float64]:
        """Return the samples in the slots of several founders."""
        drawn = self.engine.samples_at((np.concatenate(slots) + 0.5) / self.engine.n_samples)
        return drawn.reshape(len(slots), *self.shape)

    def is_seeded(self, due: int) -> bool:
        """Whether the founder that begins when so many are due is: every other one."""
        return self.operators.seeding and not self.engine.is_plain and due % 2 == 0

    def seed(self) -> NDArray[np.float64]:
        """Draw centres by k-means++."""
        return cast(GuidingEngine, self.engine).seed(self.rng.random(self.n_clusters))

    def breed(self) -> Start:
        """Select two parents, cross them over, and choose the centre to relocate."""
        k, strategy = self.n_clusters, self.operators
        uniforms = self.rng.random(k + 7)
        *chances, step, removed, quantile = uniforms[k:].tolist()
        parents = select_parents(self.population, chances)
        alpha = inherited_alpha(parents[0].alpha, parents[1].alpha, step)
        if (whole := self.put_together(*parents)) is not None:
            # It is better than both: a relocation would rather spoil it.
            return self.start(whole.centers, alpha, quantile, parent=whole.parent.handle)
        if self.happens(strategy.merging):
            child = merging_crossover(*parents)
        else:
            child = matching_crossover(*parents, uniforms[:k])
        return self.start(child.centers, alpha, quantile, int(removed * k), child.parent.handle)

    def put_together(self, first: Individual, second: Individual) -> Child | None:
        """Take the better parts of both parents, if the strategy wants that, and it pays.

        Large clusters hang together, and what does not makes members of a population too alike.
        """
        if self.engine.is_plain or self.per_cluster > FEW_FOR_SWAPS:
            return None
        if not self.happens(self.operators.partition):
            return None
        return partition_crossover(cast(GuidingEngine, self.engine), first, second)

    def start(
        self,
        centers: NDArray[np.float64],
        alpha: float,
        quantile: float,
        removed: int = -1,
        parent: Handle | None = None,
    ) -> Start:
        """Ask for a refinement as the settings want it."""
        start = Start(centers, alpha, quantile, removed, self.settings.roulette_power, parent)
        if self.engine.is_plain:
            return start
        moves, swaps = self.operators.single_moves, round(self.operators.swaps * self.n_clusters)
        return replace(
            start,
            single_moves=moves and self.per_cluster <= FEW_FOR_MOVES,
            swaps=swaps if self.per_cluster <= FEW_FOR_SWAPS else 0,
        )

    def happens(self, probability: float) -> bool:
        """Toss a coin, but none for what never happens: the paper's search has its own numbers."""
        return probability > 0.0 and self.rng.random() < probability

    def add(self, start: Start, refinement: Refinement) -> None:
        """Take a refined solution into the population; select survivors if it grew too large."""
        self.round.pop(0)
        child = Individual(
            refinement.centers,
            refinement.inertia,
            refinement.cluster_weights,
            start.alpha,
            refinement.handle,
        )
        if self.founders_due:
            self.founders_due -= 1
        else:
            self.n_offspring += 1
        self.keep_best(child)
        clone = any(child.is_clone_of(member) for member in self.population)
        self.population.append(child)
        accepted = True
        if not self.founders_due and len(self.population) > self.settings.max_population:
            self.population = survivors(self.population, self.settings.min_population, self.rng)
            accepted = any(member is child for member in self.population)
        record = OffspringRecord(
            number=self.n_offspring,
            inertia=child.inertia,
            best=self.lowest,
            alpha=child.alpha,
            n_iter=refinement.n_iter,
            seconds=self.seconds,
            population_size=len(self.population),
            accepted=accepted,
            clone=clone,
        )
        self.history.append(record)
        self.observer_said_stop = notify(self.observers, record)

    def keep_best(self, child: Individual) -> None:
        """Remember the deepest solution of all, and that of the present population."""
        if self.leader is None or child.inertia < self.leader.inertia:
            if self.leader and is_improvement(child, self.leader):
                self.last_improvement = self.n_offspring
            self.leader = child
        if self.best is None or child.inertia < self.best.inertia:
            if self.best and not child.is_clone_of(self.best):
                self.finds = 0
            self.best = child

    @property
    def lowest(self) -> float:
        """Inertia of the best solution, once there is one."""
        assert self.best is not None
        return self.best.inertia

    @property
    def is_stagnant(self) -> bool:
        """Whether the population has stopped improving."""
        return self.n_offspring - self.last_improvement >= self.settings.patience

    @property
    def times_found(self) -> int:
        """Populations that came to the best solution; they know nothing of each other."""
        assert self.best is not None
        return self.finds + bool(self.leader and self.leader.is_clone_of(self.best))

    def begin_anew(self) -> None:
        """Give way to a new population, and keep only the best."""
        self.finds = self.times_found
        self.population, self.leader, self.is_first = [], None, False
        self.founders_due = self.settings.max_population
        self.last_improvement = self.n_offspring

    def reason_to_stop(self, interrupted: bool = False) -> StopReason | None:
        """Return why the search should end now, if it should."""
        if self.best is None:
            return None
        if interrupted:
            return StopReason.INTERRUPTED
        if self.observer_said_stop:
            return StopReason.OBSERVER
        progress = Progress(
            offspring=self.n_offspring,
            since_improvement=self.n_offspring - self.last_improvement,
            finds=self.times_found,
            seconds=self.seconds,
            best=self.best.inertia,
        )
        return reason_to_stop(progress, self.settings)

    def final_population(self) -> tuple[Individual, ...]:
        """Return the members, best first, and the best of all, should they not have it."""
        assert self.best is not None
        members = list(self.population)
        if not any(member.is_clone_of(self.best) for member in members):
            members.append(self.best)
        return tuple(sorted(members, key=lambda member: member.inertia))

    def result(self, reason: StopReason) -> SearchResult:
        """Return what was found."""
        assert self.best is not None
        return SearchResult(
            best=self.best,
            population=self.final_population(),
            history=self.history,
            stop_reason=reason,
            n_offspring=self.n_offspring,
            n_rediscoveries=max(0, self.times_found - 1),
        )


def is_improvement(child: Individual, other: Individual) -> bool:
    """Whether a solution is deeper than another by more than rounding."""
    return child.inertia < other.inertia * (1.0 - IMPROVEMENT)
