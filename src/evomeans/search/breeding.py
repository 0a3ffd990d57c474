"""From drawn numbers to drafts: crossover, relocation and division before the refinement.

Relocation where samples are noisy: a cluster is divided, and no sample becomes a centre.

Let one cluster hold two clouds whose means are D apart, and let samples be at a squared distance of
σ² from the mean of their cloud, on average. A sample of the same cloud is σ² + D²/4 away from the
centre between the clouds, and 2σ² from a sample. So a centre on a sample attracts hardly any other
where D² < 4σ², which is the rule in many noisy features. A centre that begins close to the one
between the clouds divides their samples by a plane, and K-means does the rest.

Engines that swap centres need none of this: a swap divides a cluster, too.

From drawn numbers to drafts: all that happens to a solution before it is refined.

These are functions of their arguments alone, so that any worker can call them, at any time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from evomeans.engines.protocol import Engine, Handle, LocalSearch, Mating, Refinement, Way
from evomeans.engines.workers import side_by_side
from evomeans.search.crossover import WAYS, Breeding, Child
from evomeans.search.founding import Founding
from evomeans.search.population import Individual
from evomeans.search.settings import Crossing
from evomeans.search.state import Draft
from evomeans.typing import FloatArray

# The centre that is given up is the most crowded one of this share of all.
SHARE = 0.1
# How many samples are drawn; the cluster of the one that is farthest from its centre is divided.
CANDIDATES = 4
# How far the two halves begin from the centre of their cluster, on the way to the drawn sample.
STEP = 0.1


def source_of(quantile: float) -> np.random.Generator:
    """Return the random numbers of an offspring that is divided.

    A crossover may have drawn from :attr:`~evomeans.search.crossover.Breeding.rng`; these are
    others.
    """
    return np.random.default_rng([int(quantile * 2.0**53), 1])


def divide(centers: FloatArray, rows: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Give up a centre that is close to another one, and divide a cluster.

    Parameters
    ----------
    centers : (k, d) array
    rows : (q, d) array
        Samples. The cluster of the one that is farthest from its centre is divided.
    rng : numpy.random.Generator
        Draws the centres that may be given up.

    Returns
    -------
    (k, d) array
        The given-up centre and that of the cluster are on both sides of where the latter was.
    """
    k = len(centers)
    if k < 2:
        return centers
    drawn = rng.choice(k, size=max(2, round(SHARE * k)), replace=False)
    apart = squares_between(centers[drawn], centers)
    apart[np.arange(len(drawn)), drawn] = np.inf
    removed = drawn[apart.min(axis=1).argmin()]
    away = squares_between(rows, centers)
    away[:, removed] = np.inf
    farthest = away.min(axis=1).argmax()
    divided = away[farthest].argmin()
    step = STEP * (rows[farthest] - centers[divided])
    moved = centers.copy()
    moved[removed], moved[divided] = centers[divided] + step, centers[divided] - step
    return moved


def squares_between(some: FloatArray, others: FloatArray) -> FloatArray:
    """Return the squared distances between the rows of two arrays."""
    # Around a mean, so that few digits cancel.
    middle = others.mean(axis=0)
    some, others = some - middle, others - middle
    norms = np.sum(some * some, axis=1)[:, None] + np.sum(others * others, axis=1)
    squares: FloatArray = np.maximum(norms - 2.0 * (some @ others.T), 0.0)
    return squares


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
        Whether relocation divides a cluster (:mod:`~evomeans.search.breeding`).
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
