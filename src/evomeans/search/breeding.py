"""From drawn numbers to drafts: all that happens to a solution before it is refined.

These are functions of their arguments alone, so that any worker can call them, at any time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from evomeans.engines.protocol import Engine, FloatArray, Handle
from evomeans.search.crossover import BUILT_IN, Breeding, Child
from evomeans.search.dividing import CANDIDATES, divide
from evomeans.search.founding import Founding
from evomeans.search.individual import Individual, inherited_alpha
from evomeans.search.state import Draft
from evomeans.search.strategy import Crossing


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
    """Two parents, the crossovers to try on them, and the uniform numbers of their offspring."""

    first: Individual
    second: Individual
    crossovers: tuple[Crossing, ...]
    chances: Sequence[float]
    coins: FloatArray
    step: float
    removed: float
    quantile: float
    swaps: int
    divides: bool
    least_explained: float


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
    drafts = [relocate(*cross_over(parents, engine), parents) for parents in pairs]
    divided = [i for i, parents in enumerate(pairs) if parents.divides and drafts[i].removed >= 0]
    if divided:
        # Together: an engine may have to ask elsewhere for its samples.
        sources = [Breeding(engine, pairs[i].coins, pairs[i].quantile).rng for i in divided]
        rows = engine.samples_at(np.concatenate([rng.random(CANDIDATES) for rng in sources]))
        for i, own, rng in zip(divided, np.split(rows, len(divided)), sources, strict=True):
            drafts[i] = replace(drafts[i], centers=divide(drafts[i].centers, own, rng), removed=-1)
    return drafts


def cross_over(parents: Parents, engine: Engine) -> tuple[Child, str]:
    """Let the crossovers try in turn; return the child and the name of the one that made it."""
    breeding = Breeding(engine, parents.coins, parents.quantile)
    for crossing, chance in zip(parents.crossovers, parents.chances, strict=True):
        if chance >= crossing.share:
            continue
        child = crossing.crossover(parents.first, parents.second, breeding)
        if child is not None:
            if crossing.crossover not in BUILT_IN:
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
    alpha = inherited_alpha(parents.first.alpha, parents.second.alpha, parents.step)
    removed = -1 if child.is_complete else int(parents.removed * len(child.centers))
    return Draft(
        child.centers,
        alpha,
        parents.quantile,
        parents.swaps,
        removed,
        made_by,
        least_explained=parents.least_explained,
        parent=child.parent.handle,
    )
