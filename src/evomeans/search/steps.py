"""The steps of the loop: what begins next, what becomes of a solution, and when to end."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from evomeans.engines.protocol import Engine, LocalSearch, Refinement, Start
from evomeans.search.breeding import Founder, Made, Parents, breed_and_refine
from evomeans.search.founding import Founding, KMeansPlusPlus, quick_start
from evomeans.search.history import OffspringRecord
from evomeans.search.levels import SWAPPED_BELOW, wait_of_sampled
from evomeans.search.observers import Observer, notify
from evomeans.search.plan import Operators, measure_spacing, missing_abilities, plan
from evomeans.search.population import Individual, Rules, inherited_alpha, spread
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
# What the record calls the first solution after its swaps.
SWAPPED = "swaps of the first"
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
        self._plans: dict[float, tuple[Operators, Rules]] = {}
        state.population.rules = self.rules

    @property
    def operators(self) -> Operators:
        """What the present population works with."""
        return self._planned[0]

    @property
    def rules(self) -> Rules:
        """The parameters of populations, as far as is known of the clusters."""
        return self._planned[1]

    @property
    def _planned(self) -> tuple[Operators, Rules]:
        spacing = self.state.spacing
        if (planned := self._plans.get(spacing)) is None:
            planned = self._plans[spacing] = plan_search(
                self.settings, self.engine, self.n_clusters, spacing
            )
        return planned

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
                made_by = (
                    f"sample of {state.population.sample_size:,}" if state.n_sampled else "given"
                )
                if state.n_sampled and n_samples >= SWAPPED_BELOW * self.n_clusters:
                    swaps = 0
                state.n_sampled = max(0, state.n_sampled - 1)
                founders.append(Founder(alpha, quantile, swaps, made_by, state.given.pop(0)))
            elif (
                place == state.population.founders_due
                and state.n_made == 1
                and operators.first_swaps
            ):
                assert state.best is not None
                first, swaps = state.best, operators.first_swaps
                founders.append(
                    Founder(alpha, quantile, swaps, SWAPPED, first.centers, first.handle)
                )
            else:
                turn = self._turn(self.rules.n_founders - place)
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
        population = self.state.population
        first, second = population.select(numbers[:4])
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
            population.least_explained if operators.momentum else 0.0,
            operators.divides,
        )

    def may_begin(self, n_making: int) -> bool:
        """Whether to begin another solution, or round of them, while some are in the making."""
        state = self.state
        if state.best is None or self.engine.batch > 1:
            # All threads help with the first solution, so that there is an early answer. An engine
            # that refines many together does so in rounds.
            return n_making == 0
        population = state.population
        if n_making < population.founders_due:
            # Founders do not depend on each other, but so many that no worker waits are enough.
            return n_making < max(MOST_FOUNDERS, self.settings.strategy.lag)
        has_parents = len(population) >= self.settings.min_population
        lag = self.settings.strategy.lag_after(population.n_offspring)
        return n_making < lag and (has_parents or not population.founders_due)

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
        newcomer = self.insert(made)
        self.state.population.survive(self.state.rng)
        self.record(newcomer)

    def insert(self, made: Made) -> Newcomer:
        """Take a refined solution into the population.

        The first one after its swaps stays outside: it is an early answer, and a population in
        which it is far ahead of all others would soon consist of its descendants.
        """
        state, refinement = self.state, made.refinement
        population, is_outside = state.population, made.made_by == SWAPPED
        is_founder = is_outside or population.founders_due > 0
        individual = Individual(
            refinement.centers,
            refinement.inertia,
            refinement.cluster_weights,
            made.alpha,
            refinement.handle,
            refinement.labels,
        )
        is_clone = population.has_clone_of(individual)
        state.n_offspring += not is_founder
        state.keep_best(individual)
        if not is_outside:
            is_copy = self._is_copy(made)
            population.add(individual, is_independent=made.is_independent, is_copy=is_copy)
        # An unfinished solution, of no iterations, tells nothing.
        if not self.is_unfinished and not any(record.n_iter for record in state.history):
            self._learn(individual)
        return Newcomer(individual, refinement.n_iter, made.made_by, is_founder, is_clone)

    def _learn(self, first: Individual) -> None:
        """Learn from the first solution how far apart clusters are, and plan anew."""
        state, in_data_units = self.state, self.engine.frame.inertia_in_data_units
        state.spacing = measure_spacing(first, self.engine.total_weight, in_data_units)
        population, rules = state.population, self.rules
        population.rules = rules
        if rules.n_founders < rules.max_size:
            others = max(len(state.given), rules.n_founders - 1)
            population.founders_due = min(population.founders_due, others)

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
        self.state.population.founders_due += 1
        return newcomer

    def record(self, newcomer: Newcomer) -> None:
        """Write down what became of a solution, and show it to the observers."""
        state, individual = self.state, newcomer.individual
        population = state.population
        assert state.best is not None
        state.seconds = self.seconds
        best, median, worst, distinct = spread(population.members)
        record = OffspringRecord(
            number=state.n_offspring,
            inertia=individual.inertia,
            best=state.best.inertia,
            alpha=individual.alpha,
            n_iter=newcomer.n_iter,
            seconds=state.seconds,
            population_size=len(population),
            accepted=individual in population.members,
            clone=newcomer.is_clone,
            population=population.number,
            founder=newcomer.is_founder,
            made_by=newcomer.made_by,
            since_improvement=population.since_improvement,
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
            is_settled=state.population.is_settled,
            n_agreeing=state.n_agreeing,
            seconds=state.seconds,
            best=state.best.inertia,
            solutions=len(state.history),
            is_exhausted=state.population.is_exhausted,
            reserve=self.reserve,
        )
        return reason_to_stop(progress, self.settings)

    def result(self, reason: StopReason) -> SearchResult:
        """Return what was found."""
        state = self.state
        assert state.best is not None
        members = list(state.population.members)
        if not any(member.is_clone_of(state.best) for member in members):
            members.append(state.best)
        return SearchResult(
            best=state.best,
            population=tuple(sorted(members, key=lambda member: member.inertia)),
            history=state.history,
            stop_reason=reason,
            n_offspring=state.n_offspring,
            n_rediscoveries=max(0, state.n_agreeing - 1),
            missing_abilities=missing_abilities(self.settings.strategy, self.engine.abilities),
            is_unfinished=self.is_unfinished,
            n_given_up=state.n_given_up,
            n_on_samples=state.n_on_samples,
        )


def plan_search(
    settings: SearchSettings, engine: Engine, n_clusters: int, spacing: float
) -> tuple[Operators, Rules]:
    """Turn settings into operators and the parameters of populations.

    An engine that refines many together would gain nothing by fewer founders.
    """
    strategy, most, n_samples = settings.strategy, settings.max_population, engine.n_samples
    per_cluster, d = n_samples / n_clusters, len(engine.frame.shift)
    operators = plan(strategy, engine.abilities, n_clusters, per_cluster, spacing, d)
    is_few = operators.founders is not None and engine.batch == 1
    patience = replace(
        settings.patience_for(n_clusters),
        after_sample=wait_of_sampled(settings, n_clusters, n_samples),
    )
    if settings.patience is None:
        patience = replace(
            patience, factor=operators.patience, is_shared=operators.divides_patience
        )
    return operators, Rules(
        settings.min_population,
        most,
        min(most, operators.founders or most) if is_few else most,
        operators.selection,
        operators.survival,
        strategy.tolerance,
        patience,
    )


def round_by_chance(expected: float, rng: np.random.Generator) -> int:
    """Return one of the two whole numbers around a value, which is their mean in the long run."""
    return int(expected) if expected == int(expected) else int(expected + rng.random())
