"""One search: all that it remembers, what it orders next, and what becomes of a solution."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

import numpy as np

from evomeans.engines.protocol import NOT_STORED, NOWHERE, Ability, Engine, Order, Refinement
from evomeans.search.certainty import certainty, gather, work
from evomeans.search.crossover import NAMES
from evomeans.search.founding import Founding
from evomeans.search.history import SWAPPED, Audience, History, OffspringRecord
from evomeans.search.plan import (
    Facts,
    Plan,
    measure_spacing,
    missing_abilities,
    most_swaps,
    plan,
)
from evomeans.search.population import (
    INERTIA_OF,
    Individual,
    Population,
    inherited_alpha,
    spread,
)
from evomeans.search.settings import SearchSettings
from evomeans.search.stopping import Progress, SearchResult, StopReason, Timing, reason_to_stop
from evomeans.typing import FloatArray

MOST_FOUNDERS = 64  # that are in the making at the same time


@dataclass(frozen=True)
class Bounds:
    """What every state of a search is within. A stored one that is not would harm the kernels."""

    n_clusters: int
    n_features: int
    n_samples: int  # how many labels a solution has, if any
    total_weight: float
    most_swaps: int  # of a refinement
    abilities: frozenset[Ability]

    @classmethod
    def of_search(cls, engine: Engine, n_clusters: int, settings: SearchSettings) -> Bounds:
        """Return the bounds of a search with an engine."""
        sizes = n_clusters, len(engine.frame.shift), engine.n_samples
        swaps = most_swaps(settings.strategy, n_clusters)
        return cls(*sizes, engine.total_weight, swaps, engine.abilities)


@dataclass
class SearchState:
    """The state of the search: all that it needs to continue to the same result.

    A checkpoint stores the fields one by one, by their types, so that a new field is one edit.
    """

    rng: np.random.Generator  # source of all randomness
    population: Population  # the present one
    # Solutions to begin with that have not had their turn; so many of these, from the front, come
    # from a search on a sample.
    given: list[FloatArray]
    bounds: Bounds = field(metadata=NOT_STORED)
    # Returns what belongs in ``waiting``; only those who store it ask.
    ask_waiting: Callable[[], list[Order]] = field(default=list, metadata=NOT_STORED)
    n_sampled: int = 0
    # Frozen ones that have converged, independently of each other and of the present one.
    settled: list[Population] = field(default_factory=list)
    best: Individual | None = None  # not necessarily a member
    # Digests of the centres with which founders have begun, if the strategy asks for them.
    starts: list[int] = field(default_factory=list)
    # Solutions of the present round that have not been added.
    waiting: list[Order] = field(default_factory=list)
    n_offspring: int = 0  # of all populations
    spacing: float = 0.0  # see plan.measure_spacing; zero until a solution is finished
    # Offspring that were abandoned, worse than all survivors. They only count as made.
    n_given_up: int = 0
    # Offspring of the searches on samples that populations began with. They do not count as made.
    n_on_samples: int = 0
    history: History = field(default_factory=History)
    seconds: float = 0.0

    @property
    def n_made(self) -> int:
        """Solutions that have been made, founders and abandoned ones included."""
        return len(self.history) + self.n_given_up

    def agreement(self, is_settled: bool) -> tuple[int, bool]:
        """Return how many independent starts have reached the best, and whether this one has again.

        The starts are populations; or, of one with several founders that came there, each of these,
        if its offspring have found nothing lower. A population that was combined from others counts
        only once it has converged (``is_settled``), or improved on what it inherited. It has found
        the best again if one that has converged had found it before.
        """
        population, best = self.population, self.best
        assert best is not None
        count, is_known = 0, False
        for one in self.settled:
            if one.has_reached(best):
                count, is_known = count + one.n_agreeing, True
        if not population.has_reached(best):
            return count, False
        if is_settled:
            own = population.n_agreeing
        else:
            own = 0 if population.is_inherited else min(population.n_agreeing, 1)
        is_evidence = not population.is_inherited and not population.is_exhausted
        return count + own, is_evidence and is_known

    def give_up(self) -> None:
        """Count an offspring that would not have survived."""
        self.population.n_offspring += 1
        self.n_offspring += 1
        self.n_given_up += 1

    def has_begun(self, centers: FloatArray) -> bool:
        """Whether a founder has begun with these centres before, in any order; remember them."""
        in_order = centers[np.lexsort(centers.T)]
        start = int.from_bytes(blake2b(in_order.tobytes(), digest_size=7).digest())
        is_known = start in self.starts
        if not is_known:
            self.starts.append(start)
        return is_known

    def settle(self) -> None:
        """Set the population aside, and combine it with another one of its rank or begin a new one.

        Two that agree are not combined, because neither has anything that the other lacks. A
        population that has found the best again is kept as evidence. One that agrees with another
        of its rank on a worse solution is dropped.
        """
        assert self.best is not None
        _, has_found_again = self.agreement(is_settled=True)
        settled = self.population.frozen()
        equals = [one for one in self.settled if one.rank == settled.rank]
        others = [one for one in equals if not settled.agrees_with(one)]
        if others and not has_found_again:
            self.settled.remove(others[0])
            self.population = settled.combined_with(others[0], self.rng)
            return
        if len(equals) == len(others) or settled.has_reached(self.best):
            self.settled.append(settled)
        self.population = settled.successor()


Weigh = Callable[[FloatArray], tuple[FloatArray, FloatArray, float]]
"""Returns the centres of a refinement that was stopped, as they are after it, the total weights of
the samples that are closest to them, and the inertia."""


@dataclass(eq=False)
class Search:
    """The steps of a search; all that they change is the state."""

    engine: Engine
    n_clusters: int
    settings: SearchSettings
    state: SearchState
    timing: Timing
    audience: Audience
    weigh: Weigh | None = None
    is_unfinished: bool = False
    # Whether the population has found what it can, or what another one has found.
    has_ended: bool = False

    def __post_init__(self) -> None:
        # Whether a solution is finished, which tells of the clusters.
        self._has_learned = any(record.n_iter for record in self.state.history)
        self.facts = Facts.of(self.engine, self.n_clusters)
        self._plan()

    def _plan(self) -> None:
        """Plan what the population works with, as far as is known of the clusters."""
        spacing = self.state.spacing
        self.plan: Plan = plan(self.settings, self.facts, self.n_clusters, spacing)
        self.state.population.rules = self.plan.rules

    def settle(self) -> None:
        """Set the population aside; another one takes its place."""
        self.audience.tell("on_settled", self.state.population)
        self.state.settle()

    def most_in_the_making(self) -> int:
        """Return up to how many solutions, or rounds of them, may be in the making now."""
        population, strategy = self.state.population, self.settings.strategy
        if self.state.best is None or self.engine.batch > 1:
            # All threads help with the first solution, so that there is an early answer. An engine
            # that refines many together does so in rounds.
            return 1
        due = population.founders_due
        # Founders do not depend on each other, but so many that no worker waits are enough.
        if due > (most_founders := max(MOST_FOUNDERS, strategy.lag)):
            return most_founders
        if due and len(population.members) < self.settings.min_population:
            return due
        return max(due, strategy.lag_after(population.n_offspring))

    def is_wanted(self, due: int) -> bool:
        """Whether a worker should begin with what is ordered next, if ``due`` founders are due.

        All threads help with the first solution, and with offspring that come one at a time. One
        beyond the limit is only bred: a search that continues with a higher limit begins with it.
        """
        if due > 0:
            return self.state.best is not None
        is_within = self.state.n_offspring + 1 - due <= self.settings.max_offspring
        return is_within and self.settings.strategy.lag > 1

    def found(self, due: int) -> list[Order]:
        """Order founders of a population, of which ``due`` are still to be begun."""
        # Where solutions take long, the first one is an early answer.
        is_alone = self.state.best is None and self.facts.has_small_rounds
        most = 1 if is_alone else self.facts.round_size
        places = range(due, max(0, due - most), -1)
        return [self._founder(place) for place in places]

    def _founder(self, place: int) -> Order:
        state, plan = self.state, self.plan
        alpha, quantile = state.rng.random(2).tolist()
        order = Order(
            alpha=alpha,
            quantile=quantile,
            power=self.settings.roulette_power,
            local_search=plan.local_search(round_by_chance(plan.founder_swaps, state.rng)),
        )
        if state.given:
            is_sampled, sample_size = state.n_sampled > 0, state.population.sample_size
            state.n_sampled = max(0, state.n_sampled - 1)
            if is_sampled and not plan.swaps_sampled:
                order = replace(order, local_search=plan.local_search(0))
            made_by = f"sample of {sample_size:,}" if is_sampled else "given"
            return order.placed(state.given.pop(0), made_by)
        if place == state.population.founders_due and state.n_made == 1 and plan.first_swaps:
            assert state.best is not None
            order = replace(order, local_search=plan.local_search(plan.first_swaps))
            return order.placed(state.best.centers, SWAPPED, parent=state.best.handle)
        turn: Founding = plan.founding[(plan.rules.n_founders - place) % len(plan.founding)]
        founding = turn if state.best is not None else self.timing.in_time(turn)
        numbers = founding.draw(self.engine.n_samples, self.n_clusters, state.rng)
        return replace(order, founding=founding, numbers=numbers)

    def select(self) -> list[Order]:
        """Select parents, and order a round of offspring."""
        return [self._offspring() for _ in range(self.facts.round_size)]

    def _offspring(self) -> Order:
        k, plan, population, rng = self.n_clusters, self.plan, self.state.population, self.state.rng
        uniforms = rng.random(k + 7 + plan.n_chances)
        numbers = uniforms[k:].tolist()
        first, second = population.select(numbers[:4])
        step, removed, quantile = numbers[4:7]
        return Order(
            centers=NOWHERE,
            alpha=inherited_alpha(first.alpha, second.alpha, step),
            quantile=quantile,
            removed=int(removed * k),
            power=self.settings.roulette_power,
            local_search=plan.local_search(round_by_chance(plan.swaps, rng)),
            least_explained=population.least_explained if plan.momentum else 0.0,
            parents=(first, second),
            crossovers=plan.tried(numbers[7:]),
            divides=plan.divides,
            numbers=uniforms[:k],
        )

    def add(self, order: Order, refinement: Refinement) -> tuple[Individual, dict[str, Any]]:
        """Take a refined solution into the population; return it, and what its record says of it.

        The first one after its swaps stays outside: a population in which it is far ahead would
        soon consist of its descendants. Where clusters are noisy, founders have as many swaps.

        If time is up before the first run of K-means has ended, the solution is taken as it is. It
        stays to be made, and the pipeline has the rest of it, if the search is continued.
        """
        state, population = self.state, self.state.population
        if not refinement.is_complete:
            self.is_unfinished = True
            refinement = self._as_it_is(refinement)
        individual = Individual.of(refinement, order.alpha)
        is_outside = order.made_by == SWAPPED and not self.plan.swapped_joins
        is_founder = is_outside or population.founders_due > 0
        is_clone = population.has_clone_of(individual)
        state.n_offspring += not is_founder
        if state.best is None or individual.inertia < state.best.inertia:
            state.best = individual
        if not is_outside:
            is_checked = order.is_independent and self.settings.strategy.distinct_starts
            is_copy = is_checked and state.has_begun(order.centers)
            population.add(individual, is_independent=order.is_independent, is_copy=is_copy)
        if self.is_unfinished:
            # It tells nothing of the clusters.
            population.founders_due += 1
        elif not self._has_learned:
            self._learn(individual)
            self._has_learned = refinement.n_iter > 0
        made_by = order.made_by if refinement.way is None else NAMES[refinement.way]
        notes = {"n_iter": refinement.n_iter, "founder": is_founder, "clone": is_clone}
        return individual, {**notes, "made_by": made_by}

    def add_stopped(self, made: Sequence[tuple[Order, Refinement]]) -> None:
        """Take what the best of some stopped solutions has reached, if it is better than the best.

        It stays outside the population, and stays to be made if the search is continued.
        """
        state = self.state
        assert state.best is not None
        order, refinement = min(made, key=lambda one: one[1].inertia)
        if refinement.inertia > state.best.inertia:
            return
        individual = Individual.of(self._as_it_is(refinement), order.alpha)
        if individual.inertia < state.best.inertia:
            state.best = individual
            is_founder = state.population.founders_due > 0
            notes = {"n_iter": 0, "founder": is_founder, "clone": False}
            self.record(individual, {**notes, "made_by": order.made_by})

    def _as_it_is(self, stopped: Refinement) -> Refinement:
        """Return a refinement that ends where it was stopped."""
        reached = stopped.centers
        weighed = self.weigh(reached) if self.weigh else (reached, *self.engine.weigh(reached))
        centers, weights, inertia = weighed
        return Refinement(centers, inertia, weights, n_iter=0)

    def _learn(self, first: Individual) -> None:
        """Learn from the first solution how far apart clusters are, and plan anew."""
        state, in_data_units = self.state, self.engine.frame.inertia_in_data_units
        state.spacing = measure_spacing(
            first, self.engine.total_weight, in_data_units, on_sphere=self.engine.on_sphere
        )
        self._plan()
        population, n_founders = state.population, self.plan.rules.n_founders
        if n_founders < self.settings.max_population:
            others = max(len(state.given), n_founders - 1)
            population.founders_due = min(population.founders_due, others)

    def record(self, individual: Individual, notes: dict[str, Any]) -> None:
        """Write down what became of a solution, and show it to the observers."""
        state, population = self.state, self.state.population
        assert state.best is not None
        state.seconds = self.timing.seconds
        best, median, worst, distinct = spread(population.members)
        record = OffspringRecord(
            number=state.n_offspring,
            inertia=individual.inertia,
            best=state.best.inertia,
            alpha=individual.alpha,
            seconds=state.seconds,
            population_size=len(population.members),
            accepted=individual in population.members,
            population=population.number,
            since_improvement=population.since_improvement,
            population_best=best,
            population_median=median,
            population_worst=worst,
            population_distinct=distinct,
            **notes,
        )
        state.history.append(record)
        if self.audience.seeing:
            shown = replace(record, centers=self.engine.frame.decode(individual.centers))
            self.audience.show(shown, is_best=individual is state.best)

    def reason_to_stop(self, *, in_round: bool = False) -> StopReason | None:
        """Return why the search should end now, if it should.

        If time is up or Ctrl-C comes ``in_round``, what has been made is not thrown away.
        """
        state, timing = self.state, self.timing
        if state.best is None:
            return None
        if timing.interrupt.requested and not in_round:
            return StopReason.INTERRUPTED
        if self.audience.said_stop:
            return StopReason.OBSERVER
        if self.is_unfinished:
            return StopReason.MAX_TIME
        state.seconds, facts = timing.seconds, self.facts
        is_settled = state.population.is_settled
        n_agreeing, has_found_again = state.agreement(is_settled)
        self.has_ended = is_settled or has_found_again
        progress = Progress(
            offspring=state.n_offspring,
            is_settled=is_settled,
            n_agreeing=n_agreeing,
            seconds=state.seconds,
            best=state.best.inertia,
            solutions=len(state.history),
            is_exhausted=state.population.is_exhausted,
            reserve=timing.reserve,
            certainty=self.certainty() if self.has_ended else 0.0,
            work=work(state.n_made, facts.n_samples, facts.n_features, self.n_clusters),
        )
        reason = reason_to_stop(progress, self.settings)
        return None if in_round and reason is StopReason.MAX_TIME else reason

    def certainty(self) -> float:
        """Return how probable it is that nothing within reach is better than the best solution."""
        strategy = self.settings.strategy
        if strategy.agreement == 1:
            return math.nan
        patience = strategy.longest_wait(self.n_clusters)
        return certainty(gather(self.state.history, patience, strategy.tolerance))

    def result(self, reason: StopReason, levels: Sequence[int]) -> SearchResult:
        """Return what was found."""
        state = self.state
        assert state.best is not None
        members = list(state.population.members)
        if not any(member.is_clone_of(state.best) for member in members):
            members.append(state.best)
        n_agreeing, _ = state.agreement(state.population.is_settled)
        return SearchResult(
            best=state.best,
            population=tuple(sorted(members, key=INERTIA_OF)),
            history=state.history,
            stop_reason=reason,
            n_offspring=state.n_offspring,
            n_rediscoveries=max(0, n_agreeing - 1),
            certainty=self.certainty(),
            missing_abilities=missing_abilities(self.settings.strategy, self.engine.abilities),
            is_unfinished=self.is_unfinished,
            n_given_up=state.n_given_up,
            n_on_samples=state.n_on_samples,
            levels=(self.engine.n_samples, *levels),
        )


def round_by_chance(expected: float, rng: np.random.Generator) -> int:
    """Return one of the two whole numbers around a value, which is their mean in the long run."""
    return int(expected) if expected == int(expected) else int(expected + rng.random())
