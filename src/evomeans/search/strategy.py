"""Which operators a search uses: the paper's, or those that go deeper."""

from __future__ import annotations

from dataclasses import dataclass

# Up to so many samples per cluster, on the mean, do Hartigan's moves pay, and swaps and partition
# crossover. The larger the clusters are, the less a single sample changes, the more of them a swap
# has to look at, and the fewer parts are there.
FEW_FOR_MOVES, FEW_FOR_SWAPS = 256, 64


@dataclass(frozen=True)
class Strategy:
    """A choice of operators for the one loop of :func:`~evomeans.search.genetic.evolve`.

    Parameters
    ----------
    name : str
        As the user writes it.
    seeding : bool
        Whether every other founder begins with centres drawn by k-means++ instead of any samples:
        a good first answer, and yet a population of all kinds.
    single_moves : bool
        Whether Hartigan's moves follow K-means, where clusters are small enough.
    swaps : float
        How many swaps follow, per cluster, where these are small enough: one centre at a time is
        put elsewhere, and back again if that does not pay.
    partition : float
        Share of the offspring for which the better versions of all parts are put together in which
        their parents differ, where clusters are small enough. If that is not better than both,
        merging or matching follows.
    merging : float
        Share of the offspring for which the centres of both parents are merged; those of the
        others are matched.
    agreement : int
        How many populations, each begun anew when the one before stopped improving, have to end
        with the same best solution before the search does.
    """

    name: str
    seeding: bool = False
    single_moves: bool = False
    swaps: float = 0.0
    partition: float = 0.0
    merging: float = 0.0
    agreement: int = 1


PAPER = Strategy("paper")
"""The paper's Algorithm 1 and nothing else."""

DEEP = Strategy(
    "deep",
    seeding=True,
    single_moves=True,
    swaps=1.0,
    partition=0.5,
    merging=0.2,
    agreement=2,
)
"""What docs/search.md describes; every part has its row in the ablation there.

On plain engines merging and new populations are left of it. On others, where clusters are
large, the first population is that of the paper.
"""

STRATEGIES = {strategy.name: strategy for strategy in (DEEP, PAPER)}
