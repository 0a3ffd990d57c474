"""All that a running search remembers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.engines.protocol import Start
from evomeans.search.history import History
from evomeans.search.individual import Individual


@dataclass(frozen=True)
class SearchState:
    """What a search needs, beside its problem and its settings, to go on to the same result.

    Parameters
    ----------
    population : list of Individual
        In the order in which parents are drawn from it.
    best : Individual, optional
        The deepest solution so far; not necessarily a member.
    leader : Individual, optional
        The deepest since the population was begun; not necessarily a member.
    finds : int
        Populations before this one that ended with the best.
    is_first : bool
        Whether there was no population before.
    given : list of (k, d) arrays
        Solutions to begin with that have not had their turn.
    round : list of Start
        Solutions begun together with others that were added, and not added themselves.
    founders_due : int
        Members with which the population begins that are still to be made.
    n_offspring : int
        Made so far.
    last_improvement : int
        The offspring that was the last to improve the best of its population, or the last one
        before the population began.
    history : History
        One record per solution made.
    seconds : float
        Time spent so far.
    random : dict
        State of the bit generator, as NumPy gives it.
    """

    population: list[Individual]
    best: Individual | None
    leader: Individual | None
    finds: int
    is_first: bool
    given: list[NDArray[np.float64]]
    round: list[Start]
    founders_due: int
    n_offspring: int
    last_improvement: int
    history: History
    seconds: float
    random: dict[str, Any]
