"""HG-means: the loop of the paper's Algorithm 1, with the operators of a strategy."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext

import numpy as np

from evomeans.engines.protocol import Abandoned, Engine, Order
from evomeans.engines.workers import Workers
from evomeans.search.history import Observer
from evomeans.search.levels import (
    DRAWING,
    REFINING,
    WorkLimit,
    best_solutions,
    draw_samples,
    level_sizes,
    refined_on,
    settings_below,
)
from evomeans.search.pipeline import Pipeline, cross_over, found, relocate
from evomeans.search.plan import Facts, local_search_between_levels, plan
from evomeans.search.search import Search, Weigh
from evomeans.search.settings import SearchSettings
from evomeans.search.state import Bounds, Keeper, KeepNothing, SearchState
from evomeans.search.stopping import DeferredInterrupt, SearchResult, StopReason, Timing
from evomeans.typing import FloatArray

log = logging.getLogger("evomeans")


def evolve(search: Search, workers: Workers, keeper: Keeper, levels: Sequence[int]) -> StopReason:
    """Run Algorithm 1 of the paper, and return why it ended.

    Orders go to the workers in turn and come back refined, in the same turn: what is in flight
    meanwhile is a matter of the pipeline.
    """
    state, engine = search.state, search.engine

    def place(orders: Sequence[Order], worker: Engine) -> list[Order]:
        return relocate(cross_over(found(orders, worker), worker), worker)

    making = Pipeline(workers, place, search.timing)
    making.resume(state.waiting, engine.batch)
    while (reason := search.reason_to_stop()) is None:
        # An engine that refines many together adds the whole round first.
        is_between = engine.batch == 1 or not len(making)
        if is_between and search.has_ended:
            making.drop()
            search.settle()
        population = state.population
        if levels and not population.is_founded:
            found_on_sample(search, levels)
        most = search.most_in_the_making()
        while (n_making := len(making)) < most:
            due = population.founders_due - n_making
            orders = search.found(due) if due > 0 else search.select()
            making.begin(orders, at_once=search.is_wanted(due))
        for order, refinement in making.refined(is_first=state.best is None):
            if refinement.is_given_up:
                state.give_up()
            else:
                individual, notes = search.add(order, refinement)
                population.survive(state.rng)
                search.record(individual, notes)
            # A single solution is the last of its round in any case.
            if engine.batch > 1 and search.reason_to_stop(in_round=True) is not None:
                break
        keeper.keep(state, making.waiting)
    keeper.end(state, making.waiting)
    return reason


def solve(
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
    levels: Sequence[int] | None = None,
    spent: float = 0.0,
    weigh: Weigh | None = None,
) -> SearchResult:
    """Search for the k-means clustering of the engine's samples with the lowest inertia.

    Parameters
    ----------
    engine : Engine
        Holds the samples.
    n_clusters, settings, rng
        Number of centres; population sizes, limits and strategy; source of all randomness.
    initial : sequence of (k, d) arrays
        Solutions to begin with, in the engine's frame; others complete the population.
    observers : sequence of callables
        Each is called with every :class:`OffspringRecord`; ``True`` ends the search. A
        :class:`SearchObserver` sees more.
    clock : callable
        Seconds, for ``max_time`` and the records.
    interrupt : DeferredInterrupt, optional
        One that the caller has entered; by default Ctrl-C is deferred for the search alone.
    keeper : Keeper, optional
        Stores the state of the search, and may continue from a stored one.
    levels : sequence of int, optional
        Sizes of the samples on which populations are founded, the largest first. By default those
        of :func:`~evomeans.search.levels.level_sizes`.
    spent : float
        Seconds that have gone into preparations. They count as time of the search.
    weigh : callable, optional
        Weighs the clusters of centres, in the engine's frame, with which the search has to end
        before K-means has. By default ``engine.weigh``.
    """
    keeper = keeper or KeepNothing()
    if levels is None:
        levels = level_sizes(settings, engine.n_samples, n_clusters, engine.most_sampled)
    rules = plan(settings, Facts.of(engine, n_clusters), n_clusters, 0.0).rules
    state = SearchState.beginning(rng, rules, initial)
    with (
        DeferredInterrupt() if interrupt is None else nullcontext(interrupt) as interrupt,
        Workers(engine, n_clusters, settings.most_at_a_time).at_work() as workers,
    ):
        keeper.begin(state, Bounds.of_search(engine, n_clusters, settings))
        state.seconds += spent
        timing = Timing(engine, n_clusters, settings.max_time, clock, state.seconds, interrupt)
        search = Search(engine, n_clusters, settings, state, timing, observers, weigh)
        with search.audience.watching(state):
            reason = evolve(search, workers, keeper, levels)
    return search.result(reason, levels)


def found_on_sample(search: Search, levels: Sequence[int]) -> None:
    """Let a population begin with the best solutions of a search on a sample."""
    engine, state, settings, k = search.engine, search.state, search.settings, search.n_clusters
    population, timing = state.population, search.timing
    population.is_founded = True
    rng = np.random.default_rng(state.rng.integers(2**63))
    try:
        samples = draw_samples(engine, k, levels, rng, timing.may_take(DRAWING))
    except Abandoned:
        return
    smallest = samples[-1]
    if smallest.n_samples < 2 * k:
        return
    ratio = engine.n_samples / smallest.n_samples
    below = solve(
        smallest,
        k,
        settings_below(settings, k, ratio, timing.seconds, engine.batch),
        rng,
        observers=[WorkLimit(smallest.n_samples, engine.n_samples, engine.batch)],
        clock=timing.clock,
        interrupt=timing.interrupt,
        levels=(),
    )
    solutions = best_solutions(below.population, settings.min_population)
    for sample in reversed(samples[:-1]):
        local_search = local_search_between_levels(sample.abilities)
        solutions = refined_on(sample, solutions, local_search, timing.may_take(REFINING))
    state.n_sampled, state.given = len(solutions), [*solutions, *state.given]
    population.sample_size, population.founders_due = smallest.n_samples, len(state.given)
    state.n_on_samples += below.n_offspring
    told = population.number, below.n_offspring, smallest.n_samples
    log.info("Population %d began with %d offspring on a sample of %d rows.", *told)
