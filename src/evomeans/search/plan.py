"""The one place that decides which operators a population gets."""

from __future__ import annotations

from dataclasses import dataclass

from evomeans.engines.protocol import Ability, LocalSearch
from evomeans.search.founding import Founding
from evomeans.search.population import Selection, Survival
from evomeans.search.strategy import Crossing, Strategy


@dataclass(frozen=True)
class Operators:
    """What one population works with.

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
    is_large = per_cluster > strategy.moves_up_to
    if population == 1 and is_large and strategy.opening and Ability.SEEDING in abilities:
        # Only K-means is left of the local search. Then seeded founders give an early answer but
        # on some data a worse one in the end, so they wait for the second population.
        strategy = strategy.opening
    moves = strategy.single_moves and Ability.SINGLE_MOVES in abilities and not is_large
    swaps = Ability.SWAPS in abilities and per_cluster <= strategy.swaps_up_to
    operators = Operators(
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
    for kind in ("founding", "crossovers"):
        if not getattr(operators, kind):
            raise ValueError(
                f"No {kind} of strategy {strategy.name!r} can be used here: the engine can do "
                f"{', '.join(sorted(abilities)) or 'K-means only'}, and there are "
                f"{per_cluster:.3g} samples per cluster. Add one that needs nothing."
            )
    return operators


def needed_abilities(strategy: Strategy, n_samples: int, n_clusters: int) -> frozenset[Ability]:
    """Return what the populations of a strategy use if the engine can do everything."""
    needed: set[Ability] = set()
    for population in (1, 2) if strategy.agreement > 1 else (1,):
        wanted = plan(strategy, frozenset(Ability), n_samples, n_clusters, population)
        needed |= wanted.local_search.needs
        needed |= frozenset().union(*(one.needs for one in wanted.founding))
        needed |= frozenset().union(*(one.needs for one in wanted.crossovers))
    return frozenset(needed)


def missing_abilities(
    strategy: Strategy, abilities: frozenset[Ability], n_samples: int, n_clusters: int
) -> frozenset[Ability]:
    """Return what the populations of a strategy would use and the engine cannot do."""
    return needed_abilities(strategy, n_samples, n_clusters) - abilities
