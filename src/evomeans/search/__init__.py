"""The genetic search over sets of centres; any engine that has the verbs will do."""

from evomeans.search.genetic import evolve
from evomeans.search.history import History, OffspringRecord
from evomeans.search.individual import Individual
from evomeans.search.result import SearchResult
from evomeans.search.settings import SearchSettings
from evomeans.search.stopping import StopReason
from evomeans.search.strategy import DEEP, PAPER, STRATEGIES, Crossing, Strategy

__all__ = [
    "DEEP",
    "PAPER",
    "STRATEGIES",
    "Crossing",
    "History",
    "Individual",
    "OffspringRecord",
    "SearchResult",
    "SearchSettings",
    "StopReason",
    "Strategy",
    "evolve",
]
