"""The one place that decides which operators a population gets."""

from __future__ import annotations

from dataclasses import dataclass

from evomeans.engines.protocol import Ability, LocalSearch
from evomeans.search.founding import Founding
from evomeans.search.population import Selection, Survival
from evomeans.search.strategy import FEW_FOR_MOVES, FEW_FOR_SWAPS, Crossing, Strategy


@dataclass(frozen=True)
class Operators:
    """What one population works with; the fields are those of a strategy.

    Parameters
    ----------
    founding : tuple of Founding
    selection : callable
    crossovers : tuple of Crossing
    local_search : LocalSearch
    survival : callable
    """

    founding: tuple[Founding, ...]
    selection: Selection
    crossovers: tuple[Crossing, ...]
    local_search: LocalSearch
    survival: Survival


def plan(
    strategy: Strategy,
    abilities: frozenset[Ability],
    n_samples: int,
    n_clusters: int,
    population: int,
) -> Operators:
    """Turn a strategy into the operators of a population.

    Parameters
    ----------
    strategy : Strategy
    abilities : frozenset of Ability
        Of the engine. What it lacks is left out; :func:`missing_abilities` names it.
    n_samples, n_clusters : int
    population : int
        1 for the first, 2 for the next one, and so on.

    Returns
    -------
    Operators
    """
    per_cluster = n_samples / n_clusters
    is_large = per_cluster > FEW_FOR_MOVES
    if population == 1 and is_large and strategy.opening and Ability.SEEDING in abilities:
        # Only K-means is left of the local search. Then seeded founders give an early answer but
        # on some data a worse one in the end, so they wait for the second population.
        strategy = strategy.opening
    moves = strategy.single_moves and Ability.SINGLE_MOVES in abilities and not is_large
    swaps = Ability.SWAPS in abilities and per_cluster <= FEW_FOR_SWAPS
    return Operators(
        founding=tuple(one for one in strategy.founding if one.needs <= abilities),
        selection=strategy.selection,
        crossovers=tuple(
            one
            for one in strategy.crossovers
            if one.needs <= abilities and per_cluster <= one.up_to and one.share > 0.0
        ),
        local_search=LocalSearch(
            single_moves=moves, swaps=round(strategy.swaps * n_clusters) if swaps else 0
        ),
        survival=strategy.survival,
    )


def missing_abilities(strategy: Strategy, abilities: frozenset[Ability]) -> frozenset[Ability]:
    """Return what a strategy would use and the engine cannot do."""
    wanted = LocalSearch(single_moves=strategy.single_moves, swaps=int(strategy.swaps > 0.0)).needs
    needs = [one.needs for one in strategy.founding] + [one.needs for one in strategy.crossovers]
    return wanted.union(*needs) - abilities
