"""From drawn numbers to drafts: all that happens to a solution before it is refined.

These are functions of their arguments alone, so that any worker can call them, at any time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from evomeans.engines.protocol import (
    Engine,
    FloatArray,
    Handle,
    LocalSearch,
    Mating,
    Refinement,
    Way,
)
from evomeans.engines.threads import side_by_side
from evomeans.search.crossover import WAYS, Breeding, Child
from evomeans.search.dividing import CANDIDATES, divide, source_of
from evomeans.search.founding import Founding
from evomeans.search.individual import Individual
from evomeans.search.state import Draft
from evomeans.search.strategy import Crossing

NAMES = {way: Crossing(crossover).name for crossover, way in WAYS.items()}


class Founder(NamedTuple):
    """A member with which a population begins.

    Parameters
    ----------
    alpha, quantile, swaps
        As in :class:`~evomeans.search.state.Draft`.
    founding : Founding or str
        Where it begins, or where a given solution comes from.
    numbers : array
        What ``founding`` has drawn, or the given centres.
    parent : handle, optional
        The engine's memory of these centres.
    """

    alpha: float
    quantile: float
    swaps: int
    founding: Founding | str
    numbers: FloatArray
    parent: Handle | None = None


class Parents(NamedTuple):
    """Two parents, and all that was drawn for their offspring.

    Parameters
    ----------
    first, second : Individual
    crossovers : sequence of Crossing
        Tried in this order, until one makes a child.
    coins : (k,) array
        Uniform numbers.
    alpha, quantile, removed, swaps, least_explained
        As in :class:`~evomeans.search.state.Draft`. No centre is removed from a child that is
        complete.
    divides : bool
        Whether relocation divides a cluster (:mod:`~evomeans.search.dividing`).
    """

    first: Individual
    second: Individual
    crossovers: Sequence[Crossing]
    coins: FloatArray
    alpha: float
    quantile: float
    removed: int
    swaps: int
    least_explained: float
    divides: bool = False


class Made(NamedTuple):
    """A refined solution, and what its record says of how it was made.

    Parameters
    ----------
    alpha, made_by, is_independent
        As in :class:`~evomeans.search.state.Draft`.
    refinement : Refinement
    start : (k, d) array, optional
        Where it began, if it is independent.
    """

    alpha: float
    made_by: str
    is_independent: bool
    refinement: Refinement
    start: FloatArray | None = None

    @classmethod
    def of(cls, draft: Draft, refinement: Refinement) -> Made:
        """Return what became of a draft."""
        start = draft.centers if draft.is_independent else None
        return cls(draft.alpha, draft.made_by, draft.is_independent, refinement, start)


def found(founders: Sequence[Founder], engine: Engine) -> list[Draft]:
    """Place founders; those of a kind are placed together."""
    begun = {i: one.numbers for i, one in enumerate(founders) if isinstance(one.founding, str)}
    for founding in {one.founding for one in founders if not isinstance(one.founding, str)}:
        places = [i for i, one in enumerate(founders) if one.founding == founding]
        drawn = [founders[i].numbers for i in places]
        begun |= dict(zip(places, founding.place(engine, drawn), strict=True))
    return [
        Draft(
            begun[i],
            one.alpha,
            one.quantile,
            one.swaps,
            removed=-1,
            made_by=one.founding if isinstance(one.founding, str) else one.founding.name,
            is_independent=not isinstance(one.founding, str),
            parent=one.parent,
        )
        for i, one in enumerate(founders)
    ]


def breed(pairs: Sequence[Parents], engine: Engine) -> list[Draft]:
    """Make one offspring of each pair of parents."""
    # Our own crossovers may run at the same time; those of the user need not bear that.
    crossovers = [crossing.crossover for parents in pairs for crossing in parents.crossovers]
    n_threads = min(engine.n_jobs, len(pairs)) if all(one in WAYS for one in crossovers) else 1

    def cross(parents: Parents) -> Draft:
        return relocate(*cross_over(parents, engine), parents)

    drafts = side_by_side(cross, pairs, n_threads)
    divided = [i for i, parents in enumerate(pairs) if parents.divides and drafts[i].removed >= 0]
    if divided:
        sources = [source_of(pairs[i].quantile) for i in divided]
        # Together: an engine may have to ask elsewhere for its samples.
        rows = engine.samples_at(np.concatenate([rng.random(CANDIDATES) for rng in sources]))
        for i, own, rng in zip(divided, np.split(rows, len(divided)), sources, strict=True):
            drafts[i] = replace(drafts[i], centers=divide(drafts[i].centers, own, rng), removed=-1)
    return drafts


def breed_and_refine(
    parents: Parents, engine: Engine, power: int, local_search: LocalSearch
) -> Made | None:
    """Let an engine make an offspring in one go; None if it has to be made step by step."""
    if parents.divides:
        return None
    ways: list[Way] = []
    for crossing in parents.crossovers:
        if (way := WAYS.get(crossing.crossover)) is None:
            return None
        ways.append(way)
        if way is not Way.PARTS:
            break
    else:
        return None
    made = engine.offspring(
        Mating(
            parents.first.handle,
            parents.second.handle,
            ways,
            parents.coins,
            parents.alpha,
            parents.quantile,
            parents.removed,
            power,
            local_search,
            parents.least_explained,
        )
    )
    if made is None:
        return None
    way, refinement = made
    return Made(parents.alpha, NAMES[way], False, refinement)


def cross_over(parents: Parents, engine: Engine) -> tuple[Child, str]:
    """Let the crossovers try in turn; return the child and the name of the one that made it."""
    breeding = Breeding(engine, parents.coins, parents.quantile)
    for crossing in parents.crossovers:
        child = crossing.crossover(parents.first, parents.second, breeding)
        if child is not None:
            if crossing.crossover not in WAYS:
                check_child(child, parents.first.centers.shape, crossing.name)
            return child, crossing.name
    raise ValueError(
        "No crossover of the strategy made a child. The last one must have share=1.0, work on "
        "every engine, and never return None."
    )


def check_child(child: object, shape: tuple[int, ...], name: str) -> None:
    """Refuse what a crossover must not return; it may be the user's own."""
    if not isinstance(child, Child):
        raise TypeError(f"Crossover {name!r} must return a Child or None, got {type(child)}.")
    if child.centers.shape != shape:
        raise ValueError(
            f"Crossover {name!r} must return centres of shape {shape}, got {child.centers.shape}."
        )
    if not np.isfinite(child.centers).all():
        raise ValueError(f"Crossover {name!r} must return finite centres.")


def relocate(child: Child, made_by: str, parents: Parents) -> Draft:
    """Choose the centre of a child to relocate; the engine puts it onto a drawn sample."""
    return Draft(
        child.centers,
        parents.alpha,
        parents.quantile,
        parents.swaps,
        -1 if child.is_complete else parents.removed,
        made_by,
        least_explained=parents.least_explained,
        parent=child.parent.handle,
    )
