"""A search on an engine, a clock and uniform numbers that are scripted."""

from __future__ import annotations

from evomeans.engines.protocol import Ability
from evomeans.search import Crossing, SearchSettings, Strategy, solve
from evomeans.search.crossover import matching_crossover, partition_crossover
from evomeans.search.settings import SMALL_FOR_PARTS
from fakes import ScriptedClock, ScriptedEngine, ScriptedRandom

FOUNDERS = [40.0, 10.0, 30.0, 20.0]
FOUNDER_UNIFORMS = [[0.1, 0.15], [0.2, 0.25], [0.3, 0.35], [0.4, 0.45]]
AGREEING = Strategy("two populations", agreement=2)
MATCHING = Crossing(matching_crossover)
ALL, NONE = frozenset(Ability), frozenset()


def small(**changes) -> SearchSettings:
    """Π_min = 2, Π_max = 4: four founders."""
    return SearchSettings(**{"min_population": 2, "max_population": 4, **changes})


def restarting(**changes) -> SearchSettings:
    """Begin anew after three offspring without improvement; two populations have to agree."""
    return small(**{"patience": 3, "strategy": AGREEING, **changes})


def run(script, settings=None, *, k=2, uniforms=(), rng=None, initial=(), observers=(), **engine):
    """Evolve on a scripted engine; return the engine and the result."""
    fake = ScriptedEngine(script, **engine)
    rng = ScriptedRandom([*FOUNDER_UNIFORMS, *uniforms]) if rng is None else rng
    result = solve(
        fake,
        k,
        small() if settings is None else settings,
        rng,
        initial=initial,
        observers=observers,
        clock=fake.clock or ScriptedClock(),
    )
    return fake, result


def inertias(result) -> list[float]:
    return [member.inertia for member in result.population]


def parts(share: float = 1.0) -> Crossing:
    return Crossing(partition_crossover, share, frozenset({Ability.PARTS}), SMALL_FOR_PARTS)


def crossing(*crossovers: Crossing, **others) -> Strategy:
    """Return a strategy with these crossovers before the matching one."""
    return Strategy("crossing", crossovers=(*crossovers, MATCHING), **others)
