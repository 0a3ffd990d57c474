"""HG-means: the loop of the paper's Algorithm 1, with the operators of a strategy."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from threading import Lock

import numpy as np

from evomeans.engines.protocol import Abandoned, Engine, Order, Refinement
from evomeans.engines.workers import MOMENT, Workers, WorkerTask
from evomeans.search.crossover import cross_over, relocate, ways_of
from evomeans.search.founding import found
from evomeans.search.history import Audience, Observer
from evomeans.search.levels import (
    DRAWING,
    REFINING,
    WorkLimit,
    draw_samples,
    level_sizes,
    refined_on,
    settings_below,
)
from evomeans.search.plan import Facts, plan
from evomeans.search.population import Population, different_members
from evomeans.search.search import Bounds, Search, SearchState, Weigh
from evomeans.search.settings import SearchSettings
from evomeans.search.stopping import DeferredInterrupt, SearchResult, StopReason, Timing
from evomeans.typing import FloatArray

log = logging.getLogger("evomeans")


def evolve(search: Search, workers: Workers, levels: Sequence[int]) -> StopReason:
    """Run Algorithm 1 of the paper, and return why it ended."""
    state, engine = search.state, search.engine

    def place(orders: Sequence[Order], worker: Engine) -> list[Order]:
        return relocate(cross_over(found(orders, worker), worker), worker)

    making = Pipeline(workers, place, search.timing)
    making.resume(state.waiting, engine.batch)
    state.ask_waiting = making.waiting
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
        search.audience.tell("on_round", state, False)
    if reason is StopReason.MAX_TIME and (stopped := making.stopped()):
        search.add_stopped(stopped)
    search.audience.tell("on_round", state, True)
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
    levels : sequence of int, optional
        Sizes of the samples on which populations are founded, the largest first. By default those
        of :func:`~evomeans.search.levels.level_sizes`.
    spent : float
        Seconds that have gone into preparations. They count as time of the search.
    weigh : callable, optional
        Returns the cluster weights of centres in the engine's frame. It is used if the search has
        to end before its first run of K-means has. By default ``engine.weigh``.
    """
    if levels is None:
        levels = level_sizes(settings, engine.n_samples, n_clusters, engine.most_sampled)
    rules = plan(settings, Facts.of(engine, n_clusters), n_clusters, 0.0).rules
    population = Population(rules, max(rules.n_founders, len(initial)))
    bounds = Bounds.of_search(engine, n_clusters, settings)
    state, audience = SearchState(rng, population, list(initial), bounds), Audience(observers)
    with (
        DeferredInterrupt() if interrupt is None else nullcontext(interrupt) as interrupt,
        Workers(engine, n_clusters, settings.most_at_a_time).at_work() as workers,
        audience.watching(state),
    ):
        state.seconds += spent
        timing = Timing(engine, n_clusters, settings.max_time, clock, state.seconds, interrupt)
        search = Search(engine, n_clusters, settings, state, timing, audience, weigh)
        reason = evolve(search, workers, levels)
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
    best = different_members(below.population)[: settings.min_population]
    solutions = [one.centers for one in best]
    for sample in reversed(samples[:-1]):
        solutions = refined_on(sample, solutions, timing.may_take(REFINING))
    state.n_sampled, state.given = len(solutions), [*solutions, *state.given]
    population.sample_size, population.founders_due = smallest.n_samples, len(state.given)
    state.n_on_samples += below.n_offspring
    told = population.number, below.n_offspring, smallest.n_samples
    log.info("Population %d began with %d offspring on a sample of %d rows.", *told)


Place = Callable[[Sequence[Order], Engine], list[Order]]
"""Makes the centres with which orders begin, in any thread: a function of its arguments alone."""
Refined = tuple[Order, Refinement]


class Pipeline:
    """A queue of solutions, begun in order, made side by side, and taken in order.

    Their order, and what they become, do not depend on the number of workers.
    """

    def __init__(self, workers: Workers, place: Place, timing: Timing) -> None:
        self._workers = workers
        self._place = place
        self._timing = timing
        self._rounds: deque[tuple[Round, WorkerTask[list[Refined]]]] = deque()
        self._count = 0
        self._can_place_early = True

    def __len__(self) -> int:
        """Count the solutions that have been begun and not been taken."""
        return self._count

    def begin(self, orders: Sequence[Order], *, at_once: bool = True) -> None:
        """Add solutions to refine together, by an idle worker or, not ``at_once``, when taken."""
        # While one is made in one go, its centres may be asked for, which needs another work space.
        in_one_go = len(orders) == 1 and (at_once or not self._workers.shares_engine)
        new = Round(orders, self._place, in_one_go)
        self._rounds.append((new, self._workers.hand_out(new.run, at_once=at_once)))
        self._count += len(orders)

    def resume(self, waiting: Sequence[Order], batch: int) -> None:
        """Begin with the orders of an earlier search."""
        for first in range(0, len(waiting), batch):
            self.begin(waiting[first : first + batch])

    def refined(self, *, is_first: bool = False) -> Iterator[Refined]:
        """Wait for the oldest solutions that were begun together, and take them one by one.

        None come if it takes longer than a moment, so that the search sees limits and Ctrl-C. If it
        is the first solution of a search, and that has to end, it comes as it is.
        """
        oldest, task = self._rounds[0]
        # Where there is no time at all, as for most k of a path, moments add up.
        moment = min(MOMENT, self._timing.grace, self._timing.until_hurry) if is_first else MOMENT
        if not self._workers.is_done(task, moment):
            if is_first and self._timing.is_overdue:
                yield from self._cut_short()
            elif is_first and self._timing.should_hurry() and not oldest.is_placed:
                # Its refinement begins soon, from wherever it is placed by now.
                placed = self._cut_short()
                if self._timing.has_no_k_means:
                    yield from placed
            return
        for made in self._workers.result(task)[oldest.n_taken :]:
            self._count -= 1
            oldest.n_taken += 1
            yield made
        self._rounds.popleft()

    def waiting(self) -> list[Order]:
        """Return the orders, placed, of all solutions that have not been taken."""
        engine = self._workers.engine
        return [order for one, _ in self._rounds for order in one.placed(engine)]

    def stopped(self) -> list[Refined]:
        """Stop all solutions that are being made, and return them as they are."""
        unplaced = [one for one, _ in self._rounds if not one.is_placed]
        self._workers.drop()
        for one in unplaced:
            one.forget_places()
        outcomes = [task.outcome for _, task in self._rounds if task.outcome is not None]
        return [made for one in outcomes for made in one if not made[1].is_complete]

    def drop(self) -> None:
        """Give up all solutions."""
        self._workers.drop()
        self._rounds.clear()
        self._count = 0

    def _cut_short(self) -> list[Refined]:
        """Stop all refinements; return the oldest one as it is.

        None if it has ended, or the engine cannot place it early. It continues from there if it is
        taken after all, and those that were begun with it begin again.
        """
        oldest, task = self._rounds[0]
        may_cut = oldest.is_placed or self._can_place_early
        if not may_cut or self._workers.is_done(task, 0.0):
            return []
        self.drop()
        if (orders := self._placed_early(oldest)) is None:
            return []
        order, *others = orders
        if task.error is not None and not isinstance(task.error, Abandoned):
            raise task.error
        # If there is no outcome, it was still being placed. If it is complete, it was about to end.
        reached = order.centers if task.outcome is None else task.outcome[0][1].centers
        # What it becomes then owes something to what it is now.
        rest = replace(order, centers=reached, is_independent=False)
        self.begin([rest, *others], at_once=False)
        return [(order, Refinement.stopped(rest))]

    def _placed_early(self, oldest: Round) -> list[Order] | None:
        """Return orders; those that are not placed yet begin with samples drawn by weight."""
        engine = self._workers.engine
        engine.abandon(True)
        try:
            return oldest.placed(engine)
        except Abandoned:
            # It has to ask elsewhere for its samples, and begins again to do so.
            self._can_place_early = False
            self.begin(oldest.orders, at_once=False)
            return None
        finally:
            engine.abandon(False)


class Round:
    """Solutions that are refined together; ``in_one_go``, an offspring is not placed first."""

    __slots__ = ("_in_one_go", "_lock", "_place", "_placed", "n_taken", "orders")

    def __init__(self, orders: Sequence[Order], place: Place, in_one_go: bool) -> None:
        self.orders = orders
        self._place = place
        self._in_one_go = in_one_go
        self._placed: list[Order] | None = None
        self._lock = Lock()
        self.n_taken = 0

    @property
    def is_placed(self) -> bool:
        """Whether its orders have been placed."""
        return self._placed is not None

    def placed(self, engine: Engine) -> list[Order]:
        """Return the orders of those that have not been taken; place them if that is not done."""
        with self._lock:
            if self._placed is None:
                self._placed = self._place(self.orders, engine)
            return self._placed[self.n_taken :]

    def forget_places(self) -> None:
        """Place the orders again when they are asked for: an engine that is abandoned hurries."""
        self._placed = None

    def run(self, engine: Engine) -> list[Refined]:
        """Make and refine them."""
        if self._in_one_go and (ways := ways_of(self.orders[0])):
            made = engine.offspring(self.orders[0], ways)
            if made is not None:
                return [(self.orders[0], made)]
        orders = self.placed(engine)
        return list(zip(orders, engine.refine(orders), strict=True))
