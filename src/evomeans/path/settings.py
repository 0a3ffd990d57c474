"""How much effort a path spends on each number of clusters."""

from __future__ import annotations

from dataclasses import dataclass, replace

from evomeans.search.founding import Founding, KMeansPlusPlus, RandomSamples
from evomeans.search.settings import SearchSettings, check_limits
from evomeans.search.strategy import DEEP, Strategy

TAUGHT = 3
"""Solutions of neighbours with which a population begins."""

FRESH = (KMeansPlusPlus(greedy=True), RandomSamples(), KMeansPlusPlus(), RandomSamples())
"""Where a population begins that has no neighbours to begin from."""


@dataclass(frozen=True)
class PathSettings:
    """Parameters of the search for a whole path.

    Parameters
    ----------
    strategy : Strategy
        The operators. Where founders begin, when a population has settled and how many have to
        agree is the path's own business.
    scattered : float
        A population that has neighbours begins with solutions of theirs, and with this number
        divided by that of clusters from nothing: with few clusters, neighbours teach little, and
        solutions are cheap.
    fresh_population : int
        Solutions with which a population begins that has no neighbours.
    patience, patience_per_cluster : int and float
        Offspring in a row without improvement after which a population has settled: the sum of the
        former and, for each cluster, the latter.
    longer : float
        How many times as patient a population is with which a sweep begins, or which unites two
        that disagreed.
    confirmations : int
        How many populations are begun anew, at most, for a number of clusters at which populations
        have not agreed so far.
    lag : int
        Offspring in the making, see :class:`~evomeans.search.strategy.Strategy`. Populations are
        short, and parents should not be old.
    max_offspring : int
        Of one population.
    max_time : float, optional
        Seconds for the whole path.
    """

    strategy: Strategy = DEEP
    scattered: float = 24.0
    fresh_population: int = 8
    patience: int = 12
    patience_per_cluster: float = 0.2
    longer: float = 1.8
    confirmations: int = 0
    lag: int = 4
    max_offspring: int = 5000
    max_time: float | None = None

    def __post_init__(self) -> None:
        for name, least in (
            ("scattered", 0),
            ("fresh_population", 1),
            ("patience", 1),
            ("confirmations", 0),
            ("lag", 1),
            ("max_offspring", 1),
        ):
            if getattr(self, name) < least:
                raise ValueError(f"{name}={getattr(self, name)!r} must be at least {least}.")
        check_limits(self.max_time, None)

    @property
    def tolerance(self) -> float:
        """Relative differences of inertia that are none."""
        return self.strategy.tolerance

    def population_for(self, n_clusters: int) -> int:
        """Return how many solutions a population begins with that has neighbours."""
        return TAUGHT + round(self.scattered / n_clusters)

    def search(
        self,
        n_clusters: int,
        founding: tuple[Founding, ...],
        population: int,
        *,
        patience: float = 1.0,
        max_time: float | None = None,
    ) -> SearchSettings:
        """Return the settings of one short search.

        Parameters
        ----------
        n_clusters : int
        founding : tuple of Founding
        population : int
        patience : float
            In units of the usual one; 0 for none.
        max_time : float, optional
            Seconds.
        """
        wait = patience * (self.patience + self.patience_per_cluster * n_clusters)
        strategy = replace(
            self.strategy,
            name=f"{self.strategy.name} on a path",
            founding=founding,
            agreement=1,
            lag=min(self.lag, self.strategy.lag),
        )
        return SearchSettings(
            min_population=min(TAUGHT, population),
            max_population=population,
            max_offspring=self.max_offspring,
            patience=max(1, round(wait)),
            max_time=max_time,
            # Neighbours tell where to begin, on all samples.
            subsample=None,
            strategy=strategy,
        )
