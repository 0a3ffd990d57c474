"""Strategies (which operators a search uses) and settings (how long it may search)."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, fields, replace

from evomeans.engines.protocol import Ability
from evomeans.search.crossover import (
    Crossing,
    Crossover,
    matching_crossover,
    merging_crossover,
    partition_crossover,
    squared_matching_crossover,
)
from evomeans.search.founding import Founding, KMeansPlusPlus, RandomMeans, RandomSamples
from evomeans.search.population import (
    IMPROVEMENT,
    Patience,
    Selection,
    Survival,
    different_parents,
    independent_parents,
    survivors,
)

# Effective size of clusters (see ``search/plan.py``) up to which Hartigan's moves help, and up to
# which partition crossover does: in larger ones a sample changes less, and parts are fewer.
SMALL_FOR_MOVES, SMALL_FOR_PARTS = 256, 128
# Samples per cluster up to which all swaps are tried: the more there are, the more a swap costs.
FEW_FOR_SWAPS = 128
# Samples per cluster from which on momentum helps: with fewer, K-means ends before.
MANY_FOR_MOMENTUM = 2_000
# Spacing of clusters (see ``search/plan.py``) up to which they are so noisy that populations are
# small; and with which a sample is as far from a centre between two clouds as from another sample.
VERY_NOISY, NOISY = 0.75, 4.0
# If so many starts agree, more would tell nothing new, whatever certainty is asked for.
MOST_AGREEING = 50

# The lag is at most FIRST_LAG at first, and grows by one for every LAG_GROWTH offspring.
FIRST_LAG, LAG_GROWTH = 8, 4


def _require(condition: bool, name: str, value: object, expectation: str) -> None:
    if not condition:
        raise ValueError(f"{name}={value!r} must be {expectation}.")


@dataclass(frozen=True)
class Strategy:
    """A choice of operators for the one loop of :func:`~evomeans.search.genetic.evolve`.

    ``dataclasses.replace`` exchanges one of them. The defaults are those of the paper.

    Where the distances within clusters are larger than those between, a K-means run is long and
    ends far from the best, but swaps and merging find it from a few of them. So populations of such
    *noisy* clusters are small on engines that can swap, and there are no single moves.

    Parameters
    ----------
    name : str
        Users may write it.
    founding : tuple of Founding
        Where founders begin; they take turns.
    distinct_starts : bool
        Whether a founder that begins where another one has begun is no evidence that the best
        solution has been found again.
    selection : callable
        Selects the parents.
    crossovers : tuple of Crossing
        Tried in this order until one makes a child. The last has to make one.
    divides_below : float
        Spacing of clusters (:func:`~evomeans.search.plan.measure_spacing`) below which relocation
        divides a cluster on engines that cannot swap (:mod:`~evomeans.search.crossover`).
    survival : callable
        Selects the survivors of a population that has grown too large.
    lag : int
        Offspring i is bred after offspring i − ``lag`` has been inserted, so that as many can be
        refined at the same time. 1 is the sequential search of the paper.
    single_moves : bool
        Whether Hartigan's moves follow K-means.
    swaps : float
        How many swaps follow, per cluster: one centre at a time is put elsewhere, and back again if
        that does not help.
    first_swaps : float
        How many swaps per cluster the very first solution gets, as the second one, unless clusters
        are noisy; fewer in proportion to their cost beyond twice ``swaps_up_to``. So there is a
        good answer soon.
    moves_up_to : float
        Effective size of clusters up to which single moves are made.
    swaps_up_to : float
        Samples per cluster, on average, up to which offspring try all swaps. Beyond that they try
        fewer in proportion to their cost; founders still try all.
    momentum_from : float
        Samples per cluster, on average, from which on K-means has momentum
        (:mod:`~evomeans.engines.course`).
    momentum_up_to : float
        Effective size of clusters up to which it has momentum in any case.
    noisy_up_to : float
        Spacing of clusters up to which they are noisy.
    noisy_founders : int
        Founders of a population of noisy clusters.
    noisy_swaps : float
        How many swaps per cluster these founders try.
    noisy_patience : float
        Factor of ``first_patience`` for noisy clusters. It is divided by the number of founders
        that agree on the best of their population.
    patience, patience_per_cluster : int and float
        Offspring in a row without an improvement of the population's best after which it has
        converged at the latest: the former, or with many clusters the latter for each.
    first_patience : float
        Share of that after which it has converged if its best is one of its founders. For every
        offspring up to the last improvement it waits for one more.
    tolerance : float
        Relative differences of the sum of squares up to this are ignored: they count neither as
        improvements nor as disagreement between populations.
    agreement : int
        1 ends the search when the first population has converged. Otherwise another one begins, and
        so on, until at least this many of them, independent of each other, have come to the best
        solution, and the search is as certain as it should be.
    sample_per_cluster : int
        How many rows for each cluster the sample has on which a search begins, if there are many
        times as many (:mod:`~evomeans.search.levels`). 0 searches all rows from the beginning.
    """

    name: str
    _: KW_ONLY
    founding: tuple[Founding, ...] = (RandomSamples(),)
    distinct_starts: bool = False

    selection: Selection = independent_parents
    crossovers: tuple[Crossing, ...] = (Crossing(matching_crossover),)
    divides_below: float = 0.0
    survival: Survival = survivors
    lag: int = 1

    single_moves: bool = False
    swaps: float = 0.0
    first_swaps: float = 0.0
    moves_up_to: float = SMALL_FOR_MOVES
    swaps_up_to: float = FEW_FOR_SWAPS
    momentum_from: float = math.inf
    momentum_up_to: float = 0.0

    noisy_up_to: float = 0.0
    noisy_founders: int = 5
    noisy_swaps: float = 0.0
    noisy_patience: float = 0.3

    patience: int = 500
    patience_per_cluster: float = 0.0
    first_patience: float = 1.0
    tolerance: float = IMPROVEMENT
    agreement: int = 1

    sample_per_cluster: int = 0

    def __post_init__(self) -> None:
        if not all(isinstance(one, Crossing) for one in self.crossovers):
            raise TypeError("crossovers must be a tuple of Crossing(crossover).")
        for name in ("lag", "noisy_founders", "patience", "agreement"):
            _require(getattr(self, name) >= 1, name, getattr(self, name), "at least 1")
        factor = self.noisy_patience
        _require(0.0 < factor <= 1.0, "noisy_patience", factor, "between 0 and 1")
        _require(self.tolerance >= 0.0, "tolerance", self.tolerance, "at least 0")

    @property
    def identity(self) -> str:
        """The name, and all settings if it is not built in; checkpoints compare it."""
        if STRATEGIES.get(self.name) == self:
            return self.name
        settings = {one.name: getattr(self, one.name) for one in fields(self)}
        for name in ("selection", "survival"):
            settings[name] = getattr(settings[name], "__name__", "")
        settings["founding"] = [(one.name, getattr(one, "greedy", None)) for one in self.founding]
        settings["crossovers"] = [(one.name, one.share, one.up_to) for one in self.crossovers]
        return str(settings)

    def longest_wait(self, n_clusters: int) -> int:
        """How many offspring in a row may at most fail, if the user has no other wish."""
        return max(self.patience, round(self.patience_per_cluster * n_clusters))

    def lag_after(self, n_offspring: int) -> int:
        """Return the lag after so many offspring of a population.

        At first every offspring counts: there the best parents of one are the latest.
        """
        return min(self.lag, FIRST_LAG + n_offspring // LAG_GROWTH)

    def without(self, crossover: Crossover) -> Strategy:
        """Return the same strategy without one of its crossovers."""
        kept = tuple(one for one in self.crossovers if one.crossover is not crossover)
        return replace(self, crossovers=kept)


PAPER = Strategy("paper")
"""Algorithm 1 of the paper."""

DEEP = Strategy(
    "deep",
    # K-means++ first: where a few samples lie far out, random ones make a poor early answer.
    founding=(KMeansPlusPlus(greedy=True), KMeansPlusPlus(), RandomSamples(), RandomSamples()),
    selection=different_parents,
    crossovers=(
        Crossing(partition_crossover, 0.5, frozenset({Ability.PARTS}), SMALL_FOR_PARTS),
        Crossing(merging_crossover, 0.2),
        Crossing(squared_matching_crossover),
    ),
    single_moves=True,
    swaps=0.3,
    first_swaps=1.0,
    momentum_from=MANY_FOR_MOMENTUM,
    divides_below=NOISY,
    noisy_up_to=VERY_NOISY,
    noisy_swaps=1.0,
    patience=150,
    patience_per_cluster=3.0,
    first_patience=1 / 3,
    tolerance=1e-5,
    agreement=2,
    sample_per_cluster=300,
    lag=24,
)
"""The default; docs/background/how-it-works.md describes it, with an ablation of every part."""

MODELS = replace(
    DEEP, name="deep, models", founding=(*DEEP.founding[:-1], RandomMeans()), distinct_starts=True
)
"""The default of spherical, trimmed and constrained k-means, whose local searches depend more on
where they begin."""

STRATEGIES = {strategy.name: strategy for strategy in (DEEP, PAPER)}


@dataclass(frozen=True)
class SearchSettings:
    """Parameters of HG-means, named as in section 3 of the paper.

    Parameters
    ----------
    min_population : int
        Π_min, the number of survivors of a selection.
    max_population : int
        Π_max, the size of the initial population, and the size beyond which survivors are selected.
    max_offspring : int
        N₂, offspring in all.
    patience : int, optional
        N₁, offspring in a row without an improvement of the population's best. None leaves it to
        the strategy.
    max_time : float, optional
        Seconds after which no further offspring is made.
    target_inertia : float, optional
        Stop as soon as the best is at most this.
    certainty : float
        Stop as soon as the probability that the best has been found is at least this
        (:mod:`~evomeans.search.certainty`), if the strategy looks for it again.
    roulette_power : {1, 2}
        Whether the sample on which a relocated centre lands is drawn by its distance to the
        closest centre (the paper's text) or by the squared distance (the authors' program and
        k-means++).
    subsample : "auto", int or None
        Rows of the smallest sample on which a search begins. "auto" leaves it to the strategy and
        the number of rows, None searches all rows from the beginning.
    strategy : Strategy
        The operators of the search.
    """

    min_population: int = 10
    max_population: int = 20
    max_offspring: int = 5000
    patience: int | None = None
    max_time: float | None = None
    target_inertia: float | None = None
    certainty: float = 0.0
    roulette_power: int = 2
    subsample: int | str | None = "auto"
    strategy: Strategy = PAPER

    def __post_init__(self) -> None:
        low, high = self.min_population, self.max_population
        _require(low >= 1, "min_population", low, "at least 1")
        _require(high >= low, "max_population", high, f"at least min_population={low}")
        _require(self.max_offspring >= 1, "max_offspring", self.max_offspring, "at least 1")
        _require(self.longest_wait(1) >= 1, "patience", self.patience, "at least 1")
        _require(self.roulette_power in (1, 2), "roulette_power", self.roulette_power, "1 or 2")
        if isinstance(self.subsample, int):
            _require(self.subsample >= 1, "subsample", self.subsample, "at least 1")
        elif self.subsample is not None:
            expected = "'auto', an int or None"
            _require(self.subsample == "auto", "subsample", self.subsample, expected)
        _require(0.0 <= self.certainty <= 1.0, "certainty", self.certainty, "between 0 and 1")
        check_limits(self.max_time, self.target_inertia)

    def longest_wait(self, n_clusters: int) -> int:
        """How many offspring in a row may at most fail before a population has converged."""
        return self.strategy.longest_wait(n_clusters) if self.patience is None else self.patience

    def patience_for(self, n_clusters: int) -> Patience:
        """Return how long populations of this many clusters wait for an improvement."""
        longest = self.longest_wait(n_clusters)
        return Patience(longest, 1.0 if self.patience is not None else self.strategy.first_patience)

    @property
    def most_at_a_time(self) -> int:
        """How many solutions can be in the making, as far as the search is concerned."""
        return max(self.max_population, self.strategy.lag)


def check_limits(max_time: float | None, target_inertia: float | None) -> None:
    """Check the range of the limits that every kind of search has."""
    if max_time is not None:
        _require(max_time > 0, "max_time", max_time, "positive, or None")
    if target_inertia is not None:
        expected = "finite and not negative, or None"
        _require(0 <= target_inertia < math.inf, "target_inertia", target_inertia, expected)
