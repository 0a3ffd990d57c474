"""What a search returns."""

from __future__ import annotations

from dataclasses import dataclass

from evomeans.engines.protocol import Ability
from evomeans.search.history import History
from evomeans.search.individual import Individual
from evomeans.search.stopping import StopReason


@dataclass(frozen=True)
class SearchResult:
    """The outcome of a search; complete whatever ended it.

    Parameters
    ----------
    best : Individual
        The deepest solution ever found.
    population : tuple of Individual
        The final members, best first.
    history : History
        One record per solution made.
    stop_reason : StopReason
        Which criterion ended the search.
    n_offspring : int
        Offspring made.
    n_rediscoveries : int
        Further starts, of founders or populations, that led to the best solution independently.
    missing_abilities : frozenset of Ability
        What the strategy would have used and the engine cannot do.
    is_unfinished : bool
        Whether time was up before the first run of K-means had ended. The best solution is where
        it had come to then, and not a fixed point.
    n_given_up : int
        Of the offspring, those that were given up because they would have been worse than all
        survivors.
    n_on_samples : int
        Offspring of searches on samples, which are not among the others.
    levels : tuple of int
        Rows that the search was about, all rows first, then those of samples.
    """

    best: Individual
    population: tuple[Individual, ...]
    history: History
    stop_reason: StopReason
    n_offspring: int
    n_rediscoveries: int = 0
    missing_abilities: frozenset[Ability] = frozenset()
    is_unfinished: bool = False
    n_given_up: int = 0
    n_on_samples: int = 0
    levels: tuple[int, ...] = ()
