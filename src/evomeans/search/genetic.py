"""HG-means: the loop of the paper's Algorithm 1, with the operators of a strategy."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace

import numpy as np

from evomeans.engines.protocol import Abandoned, Engine
from evomeans.engines.workers import Workers
from evomeans.search.breeding import breed, found
from evomeans.search.keeper import Bounds, Keeper, KeepNothing
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
from evomeans.search.observers import Observer
from evomeans.search.pipeline import Pipeline
from evomeans.search.settings import SearchSettings
from evomeans.search.state import SearchState
from evomeans.search.steps import Search, Weigh, plan_search
from evomeans.search.stopping import DeferredInterrupt, SearchResult, StopReason
from evomeans.typing import FloatArray

log = logging.getLogger("evomeans")


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
    levels: Sequence[int] | None = None,
    spent: float = 0.0,
    weigh: Weigh | None = None,
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
    levels : sequence of int, optional
        Sizes of the samples on which populations are founded, the largest first. By default those
        of :func:`~evomeans.search.levels.level_sizes`.
    spent : float
        Seconds that have gone into preparations. They count as time of the search.
    weigh : callable, optional
        Weighs the clusters of centres, in the engine's frame, with which the search has to end
        before K-means has. By default ``engine.weigh``.
    """
    rules = plan_search(settings, engine, n_clusters, 0.0)[1]
    state = SearchState.beginning(rng, rules, initial)
    keeper = keeper or KeepNothing()
    with (
        DeferredInterrupt() if interrupt is None else nullcontext(interrupt) as interrupt,
        Workers(engine, n_clusters, settings.most_at_a_time).at_work() as workers,
    ):
        keeper.begin(state, Bounds.of_search(engine, n_clusters, settings))
        state.seconds += spent
        if levels is None:
            levels = level_sizes(settings, engine.n_samples, n_clusters, engine.most_sampled)
        search = Search(engine, n_clusters, settings, state, observers, clock, weigh)
        making = Pipeline(workers, search.refine)
        making.resume(state.waiting, engine.batch)
        while (reason := search.reason_to_stop(interrupt.requested)) is None:
            # An engine that refines many together adds the whole round first.
            has_found = state.population.is_settled or state.has_found_again
            if has_found and (engine.batch == 1 or not len(making)):
                making.drop()
                state.settle()
            if levels and not state.population.is_founded:
                found_on_sample(search, levels, interrupt)
            while search.may_begin(len(making)):
                due = state.population.founders_due - len(making)
                if due > 0:
                    making.begin(found, search.draw_founders(due), at_once=state.best is not None)
                else:
                    pairs = [search.select() for _ in range(engine.batch)]
                    making.begin(
                        breed,
                        pairs,
                        make_at_once=search.make_offspring,
                        at_once=search.will_count(1 - due),
                    )
            for made in making.take():
                if made.refinement.is_given_up:
                    state.give_up()
                else:
                    search.add(made)
                # If time is up, what has been made in it is not thrown away. A single one is the
                # last of its round in any case.
                is_round = engine.batch > 1
                if is_round and search.reason_to_stop() not in (None, StopReason.MAX_TIME):
                    break
            if search.is_overdue(interrupt.requested):
                if (unfinished := making.cut_short()) is not None:
                    search.record(search.insert_unfinished(*unfinished))
            elif search.should_hurry():
                making.hurry()
            keeper.keep(state, making.drafts)
        keeper.end(state, making.drafts)
    return replace(search.result(reason), levels=(engine.n_samples, *levels))


def found_on_sample(search: Search, levels: Sequence[int], interrupt: DeferredInterrupt) -> None:
    """Let a population begin with the best solutions of a search on a sample."""
    engine, state, settings, k = search.engine, search.state, search.settings, search.n_clusters
    state.population.is_founded = True
    rng = np.random.default_rng(state.rng.integers(2**63))
    try:
        samples = draw_samples(engine, k, levels, rng, search.may_take(DRAWING, interrupt))
    except Abandoned:
        return
    smallest = samples[-1]
    if smallest.n_samples < 2 * k:
        return
    ratio = engine.n_samples / smallest.n_samples
    below = evolve(
        smallest,
        k,
        settings_below(settings, k, ratio, search.seconds, engine.batch),
        rng,
        observers=[WorkLimit(smallest.n_samples, engine.n_samples, engine.batch)],
        clock=search.clock,
        interrupt=interrupt,
        levels=(),
    )
    solutions = best_solutions(below.population, settings.min_population)
    for sample in reversed(samples[:-1]):
        solutions = refined_on(sample, solutions, search.may_take(REFINING, interrupt))
    population, state.n_sampled = state.population, len(solutions)
    state.given = [*solutions, *state.given]
    population.sample_size, population.founders_due = smallest.n_samples, len(state.given)
    state.n_on_samples += below.n_offspring
    log.info(
        "Population %d began with %d offspring on a sample of %d rows.",
        population.number,
        below.n_offspring,
        smallest.n_samples,
    )
