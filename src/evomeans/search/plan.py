"""The one place that decides which operators a population gets.

What helps depends on how large clusters are, but samples per cluster alone do not tell. A single
sample matters where its own centre is hardly closer than the next one, and that is rare in the
plane and the rule in many noisy features. So the *effective size* of clusters is n/k times their
spacing (:func:`measure_spacing`), in units of the spacing of a regular grid in the plane.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from evomeans.engines.protocol import Ability, Engine, LocalSearch
from evomeans.kernels import MOST_MATCHED_EXACTLY
from evomeans.search.crossover import Crossing, merging_crossover, squares_between
from evomeans.search.founding import Founding, KMeansPlusPlus, MergedStarts, RandomSamples
from evomeans.search.levels import SWAPPED_BELOW, level_sizes, wait_of_sampled
from evomeans.search.population import Individual, PopulationRules
from evomeans.search.settings import SearchSettings, Strategy

# The centres of squares with sides 1 are 1 apart, and E‖x − c‖² = 1/6 within.
SPACING_OF_A_GRID = 6.0
# With d features of equal noise, samples are closer to one of them than to the mean if their noise
# in its direction exceeds √d/2 deviations: three with 36 features, so next to no sample is.
NOISY_FEATURES = 36
# How much larger than for offspring clusters may be before the first solution gets fewer swaps.
FIRST_SHARE = 2.0
# Products of an assignment from which on a founder and its swaps take about a second, so that there
# are few of them; and how many founders there are with thousands of clusters.
LONG_FOUNDER, FEWEST_FOUNDERS = 2**29, 3
# Samples per cluster from which on K-means has momentum where a founder takes long. With fewer,
# bounds avoid so many comparisons that more iterations without momentum are faster.
MANY_IF_LONG = 200
# Of more centres than this, some of them tell the spacing; and a larger spacing says no more.
MOST_CENTERS, WIDEST = 1024, 1e12


class Facts(NamedTuple):
    """The properties of an engine and its samples that a plan depends on."""

    abilities: frozenset[Ability]
    n_samples: int
    n_features: int
    batch: int = 1
    round_size: int = 1

    @classmethod
    def of(cls, engine: Engine, n_clusters: int) -> Facts:
        """Return the facts of an engine, and how many solutions it makes in a round."""
        sizes = engine.batch, engine.round_size(n_clusters)
        return cls(engine.abilities, engine.n_samples, len(engine.frame.shift), *sizes)

    @property
    def has_small_rounds(self) -> bool:
        """Whether solutions take so long that rounds are small."""
        return self.round_size < self.batch

    def takes_long(self, n_clusters: int) -> bool:
        """Whether a founder takes long on an engine that makes one solution at a time."""
        n_products = self.n_samples * self.n_features * n_clusters
        return self.batch == 1 and n_products >= LONG_FOUNDER


@dataclass(frozen=True)
class Plan:
    """The operators, rules and patience of a population."""

    founding: tuple[Founding, ...]  # they take turns
    crossovers: tuple[Crossing, ...]
    single_moves: bool
    momentum: bool
    divides: bool  # whether relocation divides a cluster (crossover.divide)
    founder_swaps: float  # on average
    swaps: float  # of offspring, on average
    first_swaps: int  # which make the second solution of the first one; 0 for no such solution
    swapped_joins: bool  # whether that one is a founder
    swaps_sampled: bool  # whether founders from a search on a sample have swaps on all rows
    rules: PopulationRules

    @cached_property
    def n_chances(self) -> int:
        """How many crossovers are tried for a share of the offspring only."""
        return sum(one.share < 1.0 for one in self.crossovers)

    def tried(self, chances: Sequence[float]) -> list[Crossing]:
        """Return the crossovers to try, by a uniform number for each that has a share only."""
        drawn = iter(chances)
        return [one for one in self.crossovers if one.share >= 1.0 or next(drawn) < one.share]

    def local_search(self, swaps: int) -> LocalSearch:
        """Return how a solution with this many swaps is refined."""
        return LocalSearch(None, self.single_moves, swaps, self.momentum)


def measure_spacing(
    solution: Individual,
    total_weight: float,
    in_data_units: Callable[[float], float],
    *,
    on_sphere: bool = False,
) -> float:
    """Return the squared distance of a centre from the closest other, over that of its samples.

    The former is a median over the clusters, because a few may be far out; the latter is a mean.
    Zero if there is only one centre, or all samples lie on theirs. ``in_data_units`` converts
    squared distances of centres, which are in the frame of an engine.

    On the sphere, centres of length one stand for means of a length ℓ < 1. Two of these are ℓ²
    times as far apart, and their samples at 1 − ℓ² from them instead of 2 (1 − ℓ).
    """
    centers = solution.centers[solution.cluster_weights > 0.0]
    error = solution.inertia / total_weight
    if len(centers) < 2 or error == 0.0:
        return 0.0
    some = np.arange(0, len(centers), -(-len(centers) // MOST_CENTERS))
    squares = squares_between(centers[some], centers)
    squares[np.arange(len(some)), some] = np.inf
    apart = in_data_units(float(np.median(squares.min(axis=1))))
    if on_sphere:
        length = max(0.0, 1.0 - error)
        apart *= 2.0 * length * length / (1.0 + length)
    return min(apart / error, WIDEST)


def effective_size(per_cluster: float, spacing: float) -> float:
    """Return the effective size of clusters; infinite if the spacing is not known."""
    return per_cluster * spacing / SPACING_OF_A_GRID if spacing > 0.0 else np.inf


def plan(settings: SearchSettings, facts: Facts, n_clusters: int, spacing: float) -> Plan:
    """Turn settings into what a population works with.

    What the engine cannot do is left out; :func:`missing_abilities` names it. The spacing of the
    clusters is zero before the first solution, which therefore gets K-means only and is there soon.
    """
    strategy, abilities = settings.strategy, facts.abilities
    per_cluster = facts.n_samples / n_clusters
    size = effective_size(per_cluster, spacing)
    can_swap = Ability.SWAPS in abilities and spacing > 0.0
    is_noisy = can_swap and spacing <= strategy.noisy_up_to
    takes_long = founders_take_long(settings, facts, n_clusters)
    has_fewest = takes_long and facts.batch == 1 and n_clusters > MOST_MATCHED_EXACTLY
    moves = Ability.SINGLE_MOVES in abilities and size <= strategy.moves_up_to and not is_noisy
    is_slow = per_cluster >= strategy.momentum_from or size <= strategy.momentum_up_to
    is_slow |= facts.takes_long(n_clusters) and per_cluster >= MANY_IF_LONG
    swaps = strategy.swaps * n_clusters if can_swap else 0.0
    # Whether a centre on a sample would attract hardly any others.
    is_lonely = facts.n_features >= NOISY_FEATURES and 0.0 < spacing < strategy.divides_below
    share = strategy.swaps_up_to / per_cluster
    # With larger clusters fewer, so that they take no longer than a run of K-means.
    first_swaps = strategy.first_swaps * n_clusters * min(1.0, FIRST_SHARE * share)
    if is_noisy:
        # There it takes the place of a founder, with as many swaps, if these take long.
        first_swaps = strategy.noisy_swaps * n_clusters if facts.takes_long(n_clusters) else 0.0
    founding = strategy.founding
    crossovers = tuple(
        one
        for one in strategy.crossovers
        if one.needs <= abilities and size <= one.up_to and one.share > 0.0
    )
    names = [one.crossover for one in crossovers]
    many = n_clusters > MOST_MATCHED_EXACTLY and merging_crossover in names
    if many and (facts.has_small_rounds or has_fewest):
        # Merging takes the place of matching, which takes longer and brings less where only a few
        # solutions are made. Random samples make poor early solutions.
        place = names.index(merging_crossover)
        crossovers = *crossovers[:place], replace(crossovers[place], share=1.0)
        if has_fewest:
            greedy = KMeansPlusPlus(greedy=True)
            founding = (greedy,) if greedy in founding else founding
        else:
            # k-means++ would delay the first one.
            founding = tuple(
                MergedStarts() if isinstance(one, RandomSamples) else one
                for one in reversed(founding)
            )
    planned = Plan(
        founding=founding,
        crossovers=crossovers,
        single_moves=strategy.single_moves and moves,
        momentum=Ability.MOMENTUM in abilities and is_slow,
        divides=not can_swap and is_lonely,
        founder_swaps=strategy.noisy_swaps * n_clusters if is_noisy else swaps,
        swaps=swaps * min(1.0, share),
        first_swaps=round(first_swaps) if can_swap else 0,
        swapped_joins=is_noisy or has_fewest,
        swaps_sampled=per_cluster < SWAPPED_BELOW,
        rules=rules_for(settings, facts, n_clusters, is_noisy),
    )
    for kind in ("founding", "crossovers"):
        # Offspring come after the first solution, which tells the spacing.
        if not getattr(planned, kind) and (kind == "founding" or spacing > 0.0):
            raise ValueError(
                f"No {kind} of strategy {strategy.name!r} can be used here: the engine can do "
                f"{', '.join(sorted(abilities)) or 'K-means only'}, and the effective size of "
                f"clusters is {size:.3g}. Add one that needs nothing."
            )
    return planned


def rules_for(
    settings: SearchSettings, facts: Facts, n_clusters: int, is_noisy: bool
) -> PopulationRules:
    """Return the parameters of populations: small ones if clusters are noisy or founders take long.

    An engine that refines many together gains nothing by fewer founders, unless rounds are small.
    """
    strategy, n_founders = settings.strategy, settings.max_population
    sizes = settings.min_population, settings.max_population
    few = min(n_founders, strategy.noisy_founders)
    takes_long = founders_take_long(settings, facts, n_clusters)
    if is_noisy and facts.batch == 1:
        n_founders = few
    elif takes_long:
        n_founders = min(n_founders, max(few, facts.round_size))
        sizes = min(sizes[0], n_founders), min(sizes[1], 2 * n_founders)
    # Rounds of more solutions are filled.
    if takes_long and n_clusters > MOST_MATCHED_EXACTLY and facts.round_size < few:
        n_founders = min(n_founders, FEWEST_FOUNDERS)
    patience = replace(
        settings.patience_for(n_clusters),
        after_sample=wait_of_sampled(settings, n_clusters, facts.n_samples),
    )
    if is_noisy and settings.patience is None:
        patience = replace(patience, factor=strategy.noisy_patience, is_shared=True)
    operators = strategy.selection, strategy.survival
    return PopulationRules(*sizes, n_founders, *operators, strategy.tolerance, patience)


def founders_take_long(settings: SearchSettings, facts: Facts, n_clusters: int) -> bool:
    """Whether there is time for a few founders only; not if they come from a search on a sample."""
    if settings.strategy.noisy_up_to == 0.0:
        return False
    if facts.has_small_rounds:
        return True
    is_sampled = bool(level_sizes(settings, facts.n_samples, n_clusters))
    return facts.takes_long(n_clusters) and not is_sampled


def most_swaps(strategy: Strategy, n_clusters: int) -> int:
    """Return how many swaps a solution gets at most, whatever the clusters."""
    per_cluster = max(strategy.swaps, strategy.noisy_swaps, strategy.first_swaps)
    return math.ceil(per_cluster * n_clusters) + 1


def needed_abilities(strategy: Strategy) -> frozenset[Ability]:
    """Return what a strategy uses if the engine can do everything, and clusters are small."""
    wanted = {
        Ability.SEEDING: any(isinstance(one, KMeansPlusPlus) for one in strategy.founding),
        Ability.SINGLE_MOVES: strategy.single_moves,
        Ability.SWAPS: strategy.swaps > 0.0,
    }
    needed = {ability for ability, is_wanted in wanted.items() if is_wanted}
    needed |= frozenset().union(*(one.needs for one in strategy.crossovers))
    return frozenset(needed)


def missing_abilities(strategy: Strategy, abilities: frozenset[Ability]) -> frozenset[Ability]:
    """Return what a strategy would use, at least where clusters are small, and an engine lacks."""
    return needed_abilities(strategy) - abilities
