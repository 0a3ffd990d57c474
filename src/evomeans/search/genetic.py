"""HG-means: the loop of the paper's Algorithm 1, with the operators of a strategy."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from evomeans.engines.protocol import Engine, FloatArray, Refinement, Start
from evomeans.search.crossover import BUILT_IN, Breeding, Child
from evomeans.search.founding import Founding
from evomeans.search.history import OffspringRecord
from evomeans.search.individual import CLONE_TOLERANCE, Individual, inherited_alpha
from evomeans.search.interrupts import DeferredInterrupt
from evomeans.search.keeping import Keeper, KeepNothing
from evomeans.search.observers import Observer, notify
from evomeans.search.plan import Operators, missing_abilities, plan
from evomeans.search.population import spread
from evomeans.search.result import SearchResult
from evomeans.search.settings import SearchSettings
from evomeans.search.state import Draft, SearchState
from evomeans.search.stopping import Progress, StopReason, reason_to_stop


def evolve(
    engine: Engine,
    n_clusters: int,
    settings: SearchSettings,
    rng: np.random.Generator,
    *,
    initial: Sequence[FloatArray] = (),
    observers: Sequence[Observer] = (),
    clock: Callable[[], float] = time.perf_counter,
    interrupt: DeferredInterrupt | None = None,
    keeper: Keeper | None = None,
) -> SearchResult:
    """Search for the deepest k-means clustering of the engine's samples.

    Parameters
    ----------
    engine : Engine
        Holds the samples.
    n_clusters, settings, rng
        Number of centres; population sizes, limits and strategy; source of all randomness.
    initial : sequence of (k, d) arrays
        Solutions to begin with, in the engine's frame; others complete the population.
    observers : sequence of callables
        Each is called with every :class:`OffspringRecord`; ``True`` ends the search.
    clock : callable
        Seconds, for ``max_time`` and the records.
    interrupt : DeferredInterrupt, optional
        One that the caller has entered; by default Ctrl-C is deferred for the search alone.
    keeper : Keeper, optional
        Stores the state of the search, and may continue from a stored one.
    """
    state = SearchState.beginning(rng, settings.max_population, initial)
    keeper = keeper or KeepNothing()
    with DeferredInterrupt() if interrupt is None else nullcontext(interrupt) as interrupt:
        keeper.begin(state, (n_clusters, len(engine.frame.shift)))
        search = Search(engine, n_clusters, settings, state, observers, clock)
        while (reason := search.reason_to_stop(interrupt.requested)) is None:
            if not state.waiting and state.since_improvement >= settings.patience:
                state.restart(settings.max_population)
            if not state.waiting and state.founders_due:
                state.waiting = search.found(min(engine.batch, state.founders_due))
            elif not state.waiting:
                for _ in range(engine.batch):
                    parents = search.select()
                    child, made_by = search.cross_over(parents)
                    state.waiting.append(search.relocate(child, parents, made_by))
            for refinement in search.refine():
                newcomer = search.insert(refinement)
                if not state.founders_due and len(state.population) > settings.max_population:
                    survive = search.operators.survival
                    state.population = survive(state.population, settings.min_population, rng)
                search.record(newcomer)
                # If time is up, what has been made in it is not thrown away.
                if search.reason_to_stop() not in (None, StopReason.MAX_TIME):
                    break
            keeper.keep(state)
        keeper.end(state)
    return search.result(reason)


class Parents(NamedTuple):
    """Two parents, and the uniform numbers of their offspring."""

    first: Individual
    second: Individual
    coins: FloatArray
    step: float
    removed: float
    quantile: float


def check_child(child: object, shape: tuple[int, ...], name: str) -> None:
    """Refuse what a crossover must not return; it may be the user's own."""
    if not isinstance(child, Child):
        raise TypeError(f"Crossover {name!r} must return a Child or None, got {type(child)}.")
    if child.centers.shape != shape:
        raise ValueError(
            f"Crossover {name!r} must return centres of shape {shape}, got {child.centers.shape}."
        )
    if not np.isfinite(child.centers).all():
        raise ValueError(f"Crossover {name!r} must return finite centres.")


class Newcomer(NamedTuple):
    """A solution that has just joined the population, and what its record says of it."""

    individual: Individual
    n_iter: int
    made_by: str
    is_founder: bool
    is_clone: bool


class Search:
    """The steps of a search; all that they change is the state."""

    def __init__(
        self,
        engine: Engine,
        n_clusters: int,
        settings: SearchSettings,
        state: SearchState,
        observers: Sequence[Observer],
        clock: Callable[[], float],
    ) -> None:
        self.engine = engine
        self.n_clusters = n_clusters
        self.settings = settings
        self.state = state
        self.observers = observers
        self.clock = clock
        # Time between a checkpoint and its resumption does not count.
        self.began = clock() - state.seconds
        self.observer_said_stop = False
        self._plans: dict[int, Operators] = {}

    @property
    def operators(self) -> Operators:
        """What the present population works with."""
        number, engine = self.state.population_number, self.engine
        if number not in self._plans:
            self._plans[number] = plan(
                self.settings.strategy, engine.abilities, engine.n_samples, self.n_clusters, number
            )
        return self._plans[number]

    def found(self, count: int) -> list[Draft]:
        """Begin members of a population: given solutions first, then those of the strategy."""
        state, founding = self.state, self.operators.founding
        given, state.given = state.given[:count], state.given[count:]
        mixtures: list[list[float]] = []
        draws: dict[Founding, dict[int, FloatArray]] = {one: {} for one in founding}
        for place in range(count):
            mixtures.append(state.rng.random(2).tolist())
            if place >= len(given):
                turn = founding[(state.founders_due - place) % len(founding)]
                numbers = turn.draw(self.engine.n_samples, self.n_clusters, state.rng)
                draws[turn][place] = numbers
        begun = {place: (centers, "given") for place, centers in enumerate(given)}
        for one, drawn in draws.items():
            centers = one.place(self.engine, list(drawn.values())) if drawn else []
            begun |= {place: (own, one.name) for place, own in zip(drawn, centers, strict=True)}
        return [
            Draft(begun[place][0], alpha, quantile, removed=-1, made_by=begun[place][1])
            for place, (alpha, quantile) in enumerate(mixtures)
        ]

    def select(self) -> Parents:
        """Select two parents, and draw all numbers that their offspring needs in any case."""
        k = self.n_clusters
        uniforms = self.state.rng.random(k + 7)
        *chances, step, removed, quantile = uniforms[k:].tolist()
        parents = self.operators.selection(self.state.population, chances)
        return Parents(*parents, uniforms[:k], step, removed, quantile)

    def cross_over(self, parents: Parents) -> tuple[Child, str]:
        """Let the crossovers try in turn; return the child and the name of the one that made it."""
        rng = self.state.rng
        breeding = Breeding(self.engine, parents.coins, rng)
        for crossing in self.operators.crossovers:
            if crossing.share < 1.0 and rng.random() >= crossing.share:
                continue
            child = crossing.crossover(parents.first, parents.second, breeding)
            if child is not None:
                if crossing.crossover not in BUILT_IN:
                    check_child(child, parents.first.centers.shape, crossing.name)
                return child, crossing.name
        raise ValueError(
            f"No crossover of strategy {self.settings.strategy.name!r} made a child. The last one "
            "must have share=1.0, work on every engine, and never return None."
        )

    def relocate(self, child: Child, parents: Parents, made_by: str) -> Draft:
        """Choose the centre of a child to relocate; the engine puts it onto a drawn sample."""
        alpha = inherited_alpha(parents.first.alpha, parents.second.alpha, parents.step)
        removed = -1 if child.is_complete else int(parents.removed * self.n_clusters)
        return Draft(child.centers, alpha, parents.quantile, removed, made_by, child.parent.handle)

    def refine(self) -> list[Refinement]:
        """Let the engine run the local search of all that waits."""
        local_search, power = self.operators.local_search, self.settings.roulette_power
        starts = [
            Start(
                one.centers, one.alpha, one.quantile, one.removed, power, one.parent, local_search
            )
            for one in self.state.waiting
        ]
        if self.state.best is None:
            # There is a first answer before any swaps take their time.
            starts[0] = replace(starts[0], local_search=replace(local_search, swaps=0))
        return self.engine.refine(starts)

    def insert(self, refinement: Refinement) -> Newcomer:
        """Take the first that waits, now refined, into the population."""
        state, draft = self.state, self.state.waiting.pop(0)
        is_founder = state.founders_due > 0
        state.founders_due -= is_founder
        state.n_offspring += not is_founder
        individual = Individual(
            refinement.centers,
            refinement.inertia,
            refinement.cluster_weights,
            draft.alpha,
            refinement.handle,
        )
        inertia = individual.inertia
        is_clone = any(
            individual.is_clone_of(member)
            for member in state.population
            if abs(member.inertia - inertia) <= CLONE_TOLERANCE * member.inertia
        )
        state.keep_best(individual)
        state.population.append(individual)
        return Newcomer(individual, refinement.n_iter, draft.made_by, is_founder, is_clone)

    def record(self, newcomer: Newcomer) -> None:
        """Write down what became of a solution, and show it to the observers."""
        state, individual = self.state, newcomer.individual
        assert state.best is not None
        state.seconds = self.clock() - self.began
        best, median, worst, distinct = spread(state.population)
        record = OffspringRecord(
            number=state.n_offspring,
            inertia=individual.inertia,
            best=state.best.inertia,
            alpha=individual.alpha,
            n_iter=newcomer.n_iter,
            seconds=state.seconds,
            population_size=len(state.population),
            accepted=individual in state.population,
            clone=newcomer.is_clone,
            population=state.population_number,
            founder=newcomer.is_founder,
            made_by=newcomer.made_by,
            since_improvement=state.since_improvement,
            population_best=best,
            population_median=median,
            population_worst=worst,
            population_distinct=distinct,
        )
        state.history.append(record)
        if self.observers:
            centers = self.engine.frame.decode(individual.centers)
            self.observer_said_stop = notify(self.observers, replace(record, centers=centers))

    def reason_to_stop(self, interrupted: bool = False) -> StopReason | None:
        """Return why the search should end now, if it should."""
        state = self.state
        if state.best is None:
            return None
        if interrupted:
            return StopReason.INTERRUPTED
        if self.observer_said_stop:
            return StopReason.OBSERVER
        state.seconds = self.clock() - self.began
        progress = Progress(
            offspring=state.n_offspring,
            since_improvement=state.since_improvement,
            finds=state.times_found,
            seconds=state.seconds,
            best=state.best.inertia,
        )
        return reason_to_stop(progress, self.settings)

    def result(self, reason: StopReason) -> SearchResult:
        """Return what was found."""
        state = self.state
        assert state.best is not None
        members = list(state.population)
        if not any(member.is_clone_of(state.best) for member in members):
            members.append(state.best)
        return SearchResult(
            best=state.best,
            population=tuple(sorted(members, key=lambda member: member.inertia)),
            history=state.history,
            stop_reason=reason,
            n_offspring=state.n_offspring,
            n_rediscoveries=max(0, state.times_found - 1),
            missing_abilities=missing_abilities(
                self.settings.strategy,
                self.engine.abilities,
                self.engine.n_samples,
                self.n_clusters,
            ),
        )
