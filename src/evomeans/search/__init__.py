"""The genetic search: its loop, settings, operators and observers."""

from evomeans.search.crossover import Crossing
from evomeans.search.genetic import solve
from evomeans.search.history import History, OffspringRecord, SearchObserver
from evomeans.search.population import Individual, Population
from evomeans.search.settings import DEEP, PAPER, STRATEGIES, SearchSettings, Strategy
from evomeans.search.stopping import SearchResult, StopReason

__all__ = [
    "DEEP",
    "PAPER",
    "STRATEGIES",
    "Crossing",
    "History",
    "Individual",
    "OffspringRecord",
    "Population",
    "SearchObserver",
    "SearchResult",
    "SearchSettings",
    "StopReason",
    "Strategy",
    "solve",
]
