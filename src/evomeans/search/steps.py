"""The steps of the loop: what begins next, what becomes of a solution, and when to end."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from evomeans.engines.protocol import Engine, LocalSearch, Refinement, Start
from evomeans.search.breeding import Founder, Made, Parents, breed_and_refine
from evomeans.search.certainty import certainty, gather
from evomeans.search.founding import Founding, KMeansPlusPlus, quick_start
from evomeans.search.history import SWAPPED, OffspringRecord
from evomeans.search.levels import SWAPPED_BELOW, wait_of_sampled
from evomeans.search.observers import Observer, notify
from evomeans.search.plan import Operators, measure_spacing, missing_abilities, plan
from evomeans.search.population import (
    Individual,
    inherited_alpha,
    last_survivor,
    lookalikes,
    spread,
)
from evomeans.search.settings import SearchSettings
from evomeans.search.state import Draft, SearchState
from evomeans.search.stopping import (
    DeferredInterrupt,
    Progress,
    SearchResult,
    StopReason,
    reason_to_stop,
)
from evomeans.typing import FloatArray

# Founders that are in the making at the same time.
MOST_FOUNDERS = 64
# Of the time that is left, what it may take to place the first solution; K-means gets the rest.
PLACING = 0.3
# If k-means++ would take longer than that, a quick start takes its place: of so much of the time
# left, or of all of it if there are fewer looks at all samples left than K-means needs to get
# anywhere. It has so much of the limit, and so many seconds, even if labels need all the time:
# without a single iteration, an answer is worth little.
QUICK, A_START = 0.15, 2.0
LEAST_SHARE, LEAST_SECONDS = 0.1, 0.1


class Newcomer(NamedTuple):
    """A solution that has just joined the population, and what its record says of it."""

    individual: Individual
    n_iter: int
    made_by: str
    is_founder: bool
    is_clone: bool


class Weighed(NamedTuple):
    """Centres, total weights of the samples that are closest to them, and the inertia."""

    centers: FloatArray
    weights: FloatArray
    inertia: float


Weigh = Callable[[FloatArray], Weighed]


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
        weigh: Weigh | None = None,
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
        self.is_unfinished = False
        self.weigh = weigh or self._weigh
        left = self.seconds_left
        self._hurries_at = math.inf if left is None else self.seconds + PLACING * left
        self._is_quick, self._overdue_at = False, -math.inf
        self._plans: dict[float, Operators] = {}
        strategy = settings.strategy
        least_factor = strategy.noisy_patience / strategy.noisy_founders
        self._least_wait = settings.wait_after(0, n_clusters, least_factor)

    @property
    def operators(self) -> Operators:
        """What the present population works with."""
        spacing = self.state.spacing
        if (planned := self._plans.get(spacing)) is None:
            engine, k = self.engine, self.n_clusters
            per_cluster = engine.n_samples / k
            d = len(engine.frame.shift)
            planned = plan(self.settings.strategy, engine.abilities, k, per_cluster, spacing, d)
            self._plans[spacing] = planned
        return planned

    @property
    def n_founders(self) -> int:
        """How many founders a population has, as far as is known of the clusters.

        An engine that refines many together would gain nothing by fewer.
        """
        most, founders = self.settings.max_population, self.operators.founders
        return most if founders is None or self.engine.batch > 1 else min(most, founders)

    @property
    def is_settled(self) -> bool:
        """Whether the population has found what it can."""
        state = self.state
        waited = state.since_improvement
        if waited < self._least_wait:
            # The rule is asked several times for every offspring, and mostly answers here.
            return False
        improved, factor = state.last_improvement - state.n_earlier, self.operators.patience
        if self.operators.divides_patience:
            factor /= max(1, state.n_agreeing)
        wait = self.settings.wait_after(improved, self.n_clusters, factor)
        if state.sample_size:
            n_samples = self.engine.n_samples
            wait = max(wait, wait_of_sampled(self.settings, self.n_clusters, n_samples))
        return waited >= wait

    @property
    def n_agreeing(self) -> int:
        """How many independent starts have come as deep as the best solution."""
        return self.state.count_agreeing(self.is_settled, self.settings.strategy.tolerance)

    def should_settle(self) -> bool:
        """Whether the population has found what it can, or what another one has found."""
        return self.is_settled or self.state.has_found_again(self.settings.strategy.tolerance)

    def settle(self) -> None:
        """Let the population stand apart; another one takes its place."""
        settings = self.settings
        survive, tolerance = self.operators.survival, settings.strategy.tolerance
        self.state.settle(settings.max_population, survive, tolerance)
        self.state.founders_due = min(self.state.founders_due, self.n_founders)

    @property
    def seconds(self) -> float:
        """How long the search has taken."""
        return self.clock() - self.began

    @property
    def reserve(self) -> float:
        """Seconds that it will take to label the samples, once the search has ended."""
        is_timed = self.settings.max_time is not None
        return self.engine.labelling_seconds(self.n_clusters) if is_timed else 0.0

    @property
    def seconds_left(self) -> float | None:
        """How long it may still take; None if there is no limit."""
        limit = self.settings.max_time
        return None if limit is None else limit - self.reserve - self.seconds

    def may_take(self, share: float, interrupt: DeferredInterrupt) -> Callable[[], bool]:
        """Return what says that a step has taken a share of the time left, or that Ctrl-C came."""
        left = self.seconds_left
        end = math.inf if left is None else self.seconds + share * max(left, 0.0)
        return lambda: interrupt.requested or self.seconds >= end

    def draw_founders(self, due: int) -> list[Founder]:
        """Draw members of a population, of which ``due`` are still to be begun."""
        state, operators, n_samples = self.state, self.operators, self.engine.n_samples
        founders: list[Founder] = []
        for place in range(due, max(0, due - self.engine.batch), -1):
            alpha, quantile = state.rng.random(2).tolist()
            swaps = round_by_chance(operators.founder_swaps, state.rng)
            if state.given:
                made_by = f"sample of {state.sample_size:,}" if state.n_sampled else "given"
                if state.n_sampled and n_samples >= SWAPPED_BELOW * self.n_clusters:
                    swaps = 0
                state.n_sampled = max(0, state.n_sampled - 1)
                founders.append(Founder(alpha, quantile, swaps, made_by, state.given.pop(0)))
            elif place == state.founders_due and state.n_made == 1 and operators.first_swaps:
                assert state.best is not None
                first, swaps = state.best, operators.first_swaps
                founders.append(
                    Founder(alpha, quantile, swaps, SWAPPED, first.centers, first.handle)
                )
            else:
                turn = self._turn(self.n_founders - place)
                numbers = turn.draw(n_samples, self.n_clusters, state.rng)
                founders.append(Founder(alpha, quantile, swaps, turn, numbers))
        return founders

    def _turn(self, nth: int) -> Founding:
        """Return where the nth founder begins."""
        founding, left = self.operators.founding, self.seconds_left
        turn = founding[nth % len(founding)]
        if left is None or self.state.best is not None or not isinstance(turn, KMeansPlusPlus):
            return turn
        # A look at all samples for each candidate of all centres takes as long as their labels.
        look = self.engine.labelling_seconds(self.n_clusters)
        if turn.n_trials(self.n_clusters) * look <= PLACING * max(left, 0.0):
            return turn
        assert self.settings.max_time is not None
        least = LEAST_SHARE * self.settings.max_time + LEAST_SECONDS
        seconds = max(QUICK * left if left >= A_START * look else left, least)
        self._is_quick, self._overdue_at = True, self.seconds + least
        self._hurries_at = self.seconds + seconds
        return quick_start(self.engine, self.n_clusters, seconds / look)

    def select(self) -> Parents:
        """Select two parents, and draw all numbers that their offspring needs."""
        k, operators = self.n_clusters, self.operators
        uniforms = self.state.rng.random(k + 7 + operators.n_chances)
        numbers = uniforms[k:].tolist()
        first, second = operators.selection(self.state.population, numbers[:4])
        step, removed, quantile = numbers[4:7]
        return Parents(
            first,
            second,
            operators.tried(numbers[7:]),
            uniforms[:k],
            inherited_alpha(first.alpha, second.alpha, step),
            quantile,
            int(removed * k),
            round_by_chance(operators.swaps, self.state.rng),
            self._least_explained() if operators.momentum else 0.0,
            operators.divides,
        )

    def _least_explained(self) -> float:
        """Return what offspring have to explain to survive."""
        population, count = self.state.population, self.settings.min_population
        return last_survivor(population, count).explained

    def may_begin(self, n_making: int) -> bool:
        """Whether to begin another solution, or round of them, while some are in the making."""
        state = self.state
        if state.best is None or self.engine.batch > 1:
            # All threads help with the first solution, so that there is an early answer. An engine
            # that refines many together does so in rounds.
            return n_making == 0
        if n_making < state.founders_due:
            # Founders do not depend on each other, but so many that no worker waits are enough.
            return n_making < max(MOST_FOUNDERS, self.settings.strategy.lag)
        has_parents = len(state.population) >= self.settings.min_population
        lag = self.settings.strategy.lag_after(state.n_own)
        return n_making < lag and (has_parents or not state.founders_due)

    def will_count(self, place: int) -> bool:
        """Whether a worker should begin with an offspring that is in this place of the making.

        One beyond the limit is only bred, because a search that continues from here with a higher
        limit begins with it. And if there is one at a time, all threads help with it.
        """
        is_within = self.state.n_offspring + place <= self.settings.max_offspring
        return is_within and self.settings.strategy.lag > 1

    def refine(self, engine: Engine, drafts: Sequence[Draft]) -> list[Refinement]:
        """Let an engine run the local search of drafts."""
        power = self.settings.roulette_power
        return engine.refine(
            [
                Start(
                    one.centers,
                    one.alpha,
                    one.quantile,
                    one.removed,
                    power,
                    one.parent,
                    self.local_search(one.swaps),
                    one.least_explained,
                )
                for one in drafts
            ]
        )

    def local_search(self, swaps: int) -> LocalSearch:
        """Return how solutions of the present population are refined."""
        operators = self.operators
        return LocalSearch(None, operators.single_moves, swaps, operators.momentum)

    def make_offspring(self, pairs: Sequence[Parents], engine: Engine) -> list[Made] | None:
        """Let an engine make and refine an offspring in one go, if it can."""
        if len(pairs) > 1:
            return None
        (parents,) = pairs
        search, power = self.local_search(parents.swaps), self.settings.roulette_power
        made = breed_and_refine(parents, engine, power, search)
        return None if made is None else [made]

    def add(self, made: Made) -> None:
        """Take a refined solution in, let others go if there are too many, and write it down."""
        state, settings = self.state, self.settings
        newcomer = self.insert(made)
        if not state.founders_due and len(state.population) > settings.max_population:
            survive = self.operators.survival
            state.population = survive(state.population, settings.min_population, state.rng)
        self.record(newcomer)

    def insert(self, made: Made) -> Newcomer:
        """Take a refined solution into the population.

        The first one after its swaps stays outside: it is an early answer, and a population in
        which it is far ahead of all others would soon consist of its descendants.
        """
        state, refinement = self.state, made.refinement
        is_outside = made.made_by == SWAPPED
        is_founder = is_outside or state.founders_due > 0
        state.founders_due -= is_founder and not is_outside
        state.n_offspring += not is_founder
        individual = Individual(
            refinement.centers,
            refinement.inertia,
            refinement.cluster_weights,
            made.alpha,
            refinement.handle,
            refinement.labels,
        )
        similar = lookalikes(individual, state.population)
        is_clone = any(individual.is_clone_of(one) for one in similar)
        # An unfinished solution, of no iterations, tells nothing.
        is_first = not any(record.n_iter for record in state.history)
        if is_first and not self.is_unfinished:
            in_data_units = self.engine.frame.inertia_in_data_units
            total_weight = self.engine.total_weight
            state.spacing = measure_spacing(individual, total_weight, in_data_units)
            if self.n_founders < self.settings.max_population:
                others = max(len(state.given), self.n_founders - 1)
                state.founders_due = min(state.founders_due, others)
        if is_outside:
            state.keep_deepest(individual)
        else:
            tolerance, is_independent = self.settings.strategy.tolerance, made.is_independent
            is_copy = self._is_copy(made)
            state.keep_best(individual, tolerance, is_independent and not is_copy, is_copy)
            state.population.append(individual)
        return Newcomer(individual, refinement.n_iter, made.made_by, is_founder, is_clone)

    def _is_copy(self, made: Made) -> bool:
        """Whether a founder began where another one had, and that matters to the strategy."""
        if made.start is None or not self.settings.strategy.distinct_starts:
            return False
        return self.state.has_begun(made.start)

    def is_overdue(self, interrupted: bool) -> bool:
        """Whether time is up, or Ctrl-C has ended it, and there is no solution yet."""
        if self.state.best is not None:
            return False
        left = self.seconds_left
        is_late = left is not None and left <= 0.0 and self.seconds >= self._overdue_at
        return interrupted or is_late

    def should_hurry(self) -> bool:
        """Whether to place the first solution has taken its share of the time; said once."""
        is_placing = self._is_quick or self.engine.is_prepared
        if self.seconds < self._hurries_at or not is_placing:
            return False
        self._hurries_at = math.inf
        return self.state.best is None

    def _weigh(self, centers: FloatArray) -> Weighed:
        return Weighed(centers, *self.engine.weigh(centers))

    def insert_unfinished(self, draft: Draft, centers: FloatArray) -> Newcomer:
        """Take the first solution as it is: time is up before K-means has ended.

        It stays to be made, and the pipeline has the rest of it, if the search is continued.
        """
        centers, weights, inertia = self.weigh(centers)
        self.is_unfinished = True
        refinement = Refinement(centers, inertia, weights, n_iter=0)
        newcomer = self.insert(Made.of(draft, refinement))
        self.state.founders_due += 1
        return newcomer

    def record(self, newcomer: Newcomer) -> None:
        """Write down what became of a solution, and show it to the observers."""
        state, individual = self.state, newcomer.individual
        assert state.best is not None
        state.seconds = self.seconds
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
        if self.is_unfinished:
            return StopReason.MAX_TIME
        state.seconds = self.seconds
        progress = Progress(
            offspring=state.n_offspring,
            is_settled=self.is_settled,
            n_agreeing=self.n_agreeing,
            seconds=state.seconds,
            best=state.best.inertia,
            solutions=len(state.history),
            is_exhausted=state.is_exhausted,
            reserve=self.reserve,
            certainty=self.certainty() if self.should_settle() else 0.0,
        )
        return reason_to_stop(progress, self.settings)

    def certainty(self) -> float:
        """Return how probable it is that nothing within reach is better than the best solution."""
        strategy = self.settings.strategy
        if strategy.agreement == 1:
            return math.nan
        patience = self.settings.longest_wait(self.n_clusters)
        history, k = self.state.history, self.n_clusters
        return certainty(gather(history, k, patience, strategy.tolerance))

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
            n_rediscoveries=max(0, self.n_agreeing - 1),
            certainty=self.certainty(),
            missing_abilities=missing_abilities(self.settings.strategy, self.engine.abilities),
            is_unfinished=self.is_unfinished,
            n_given_up=state.n_given_up,
            n_on_samples=state.n_on_samples,
        )


def round_by_chance(expected: float, rng: np.random.Generator) -> int:
    """Return one of the two whole numbers around a value, which is their mean in the long run."""
    return int(expected) if expected == int(expected) else int(expected + rng.random())
