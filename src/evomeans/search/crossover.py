"""Crossovers: matching, from the paper (section 3.2), partition and merging; and division.

A crossover is a function of two parents and a :class:`Breeding`. A strategy lists them, and one of
your own can take their place (``examples/gallery/inside/own_crossover.py``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from evomeans.engines.protocol import Abandoned, Ability, Engine, Order, Way
from evomeans.engines.workers import side_by_side
from evomeans.search.population import Individual
from evomeans.typing import FloatArray

# Of a division: the share of centres of which the most crowded one is given up, and the samples
# drawn to choose a cluster; its halves begin this share of the way to a sample from its centre.
CROWDED_SHARE, DRAWN_TO_DIVIDE, HALF_STEP = 0.1, 4, 0.1


class Child(NamedTuple):
    """A solution before it is refined.

    Parameters
    ----------
    centers : (k, d) array
        Its own; parents are never modified.
    parent : Individual
        The parent whose centres are mostly those of the child, at the same positions. The engine
        continues from what it knows of it.
    is_complete : bool
        Whether it is better than both parents already, so that no centre is relocated.
    """

    centers: FloatArray
    parent: Individual
    is_complete: bool = False


@dataclass(frozen=True)
class Breeding:
    """Random numbers and the engine, for crossovers.

    Parameters
    ----------
    engine : Engine
        Holds the samples.
    coins : (k,) array
        Uniform numbers in [0, 1), one for each cluster.
    quantile : float
        The uniform number from which all draws of the offspring derive.

    Attributes
    ----------
    rng : numpy.random.Generator
        For crossovers that need more numbers than these.
    """

    engine: Engine
    coins: FloatArray
    quantile: float

    @cached_property
    def rng(self) -> np.random.Generator:
        """A source of its own, so that it does not matter in which order offspring are made."""
        return np.random.default_rng(int(self.quantile * 2.0**53))

    def check_stop(self) -> None:
        """Raise :class:`~evomeans.engines.protocol.Abandoned` if a kernel was ended."""
        if self.engine.stop[0]:
            raise Abandoned


Crossover = Callable[[Individual, Individual, Breeding], Child | None]
"""Makes a child of two parents; None leaves them to the next crossover of the strategy."""


@dataclass(frozen=True)
class Crossing:
    """A crossover, and when it is used.

    Parameters
    ----------
    crossover : callable
        See :data:`~evomeans.search.crossover.Crossover`.
    share : float
        Fraction of the offspring for which this crossover is tried.
    needs : frozenset of Ability
        What the engine must be able to do.
    up_to : float
        Effective size of clusters up to which it is used.
    """

    crossover: Crossover
    share: float = 1.0
    needs: frozenset[Ability] = frozenset()
    up_to: float = math.inf

    def __post_init__(self) -> None:
        if not 0.0 <= self.share <= 1.0:
            raise ValueError(f"share={self.share} must be between 0 and 1.")

    @property
    def name(self) -> str:
        """Name of the crossover in the records."""
        known = getattr(self.crossover, "__name__", type(self.crossover).__name__)
        return str(known).removesuffix("_crossover").replace("_", " ")


def matching_crossover(first: Individual, second: Individual, breeding: Breeding) -> Child:
    """Pair up the centres of two parents, and take one centre of each pair.

    Pairs have the least total distance, as in section 3.2 of the paper. From a pair whose coin is
    below one half the child takes the centre of ``second``.
    """
    return _matched(first, second, breeding, squared=False)


def squared_matching_crossover(first: Individual, second: Individual, breeding: Breeding) -> Child:
    """Pair up the centres of two parents by squared distance, and take one centre of each pair.

    Centres that both parents have are paired with each other, and the others at the least total
    of squares, as in the authors' program. With many features, plain distances pair centres that
    are wasted with each other, so that the child has as many of them as its parents
    (docs/laboratory/reading-the-paper.md).
    """
    return _matched(first, second, breeding, squared=True)


def _matched(first: Individual, second: Individual, breeding: Breeding, *, squared: bool) -> Child:
    # Importing the estimator loads no compiler.
    from evomeans.kernels.matching import MatchingArrays, cross

    child, is_second = np.empty_like(first.centers), np.empty(1, np.bool_)
    arrays = MatchingArrays.allocate(len(child), breeding.engine.stop)
    cross(first.centers, second.centers, breeding.coins, child, squared, arrays, is_second)
    breeding.check_stop()
    return Child(child, second if is_second[0] else first)


def partition_crossover(first: Individual, second: Individual, breeding: Breeding) -> Child | None:
    """Take the better version of every part in which two parents differ.

    A part is a set of samples that fills some clusters of one parent, and some of the other. The
    sum of squares is a sum over the parts, so the versions can be chosen one by one, as in
    the partition crossover for tours [1]_. They may even differ in the number of clusters, if
    other parts make up for it. None if the result is not better than both parents.

    References
    ----------
    .. [1] Whitley, D., Hains, D. and Howe, A. (2009). "Tunneling between optima: partition
       crossover for the traveling salesman problem". GECCO 2009, 915-922.
    """
    found = breeding.engine.better_parts(first.centers, second.centers, first.handle, second.handle)
    if found is None:
        return None
    gone, taken = found
    parent, places, others = first, gone, second.centers[taken]
    if np.count_nonzero(gone) > len(gone) // 2:
        parent, places, others = second, ~taken, first.centers[~gone]
    centers = parent.centers.copy()
    centers[places] = others
    return Child(centers, parent, is_complete=True)


def merging_crossover(first: Individual, second: Individual, breeding: Breeding) -> Child:
    """Merge the centres of both parents, the cheapest pairs first, until k are left.

    The child keeps what both parents agree on, and spends its centres where one of them had more
    than the other. This is Fränti's deterministic crossover [1]_, with the weights that clusters
    have in their own parent, so it needs no sample.

    References
    ----------
    .. [1] Fränti, P. (2000). "Genetic algorithm with deterministic crossover for vector
       quantization". Pattern Recognition Letters 21, 61-68.
    """
    k = len(first.centers)
    both = np.concatenate([first.centers, second.centers])
    weights = np.concatenate([first.cluster_weights, second.cluster_weights])
    engine = breeding.engine
    merged, _, origins = engine.merge(both, weights, k, engine.stop)
    breeding.check_stop()
    places = np.empty(k, dtype=np.intp)
    own = origins < k
    is_free = np.ones(k, dtype=np.bool_)
    is_free[origins[own]] = False
    places[own], places[~own] = origins[own], np.flatnonzero(is_free)
    return Child(merged[places.argsort()], first)


MATCHING = (matching_crossover, squared_matching_crossover)
WAYS: dict[Crossover, Way] = {
    partition_crossover: Way.PARTS,
    merging_crossover: Way.MERGING,
    matching_crossover: Way.MATCHING,
    squared_matching_crossover: Way.SQUARED_MATCHING,
}
"""How engines know the crossovers of this module."""
NAMES = {way: Crossing(crossover).name for crossover, way in WAYS.items()}


def divide(centers: FloatArray, rows: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Give up a centre that is close to another one, and divide a cluster.

    Let one cluster hold two clouds whose means are D apart, and let samples be at a squared
    distance of σ² from the mean of their cloud, on average. They are σ² + D²/4 away from the centre
    between the clouds, and 2σ² from a sample of their own. So a centre on a sample attracts hardly
    any other where D² < 4σ², which is the rule in many noisy features. One that begins close to the
    centre between the clouds divides their samples by a plane, and K-means does the rest.

    Of the rows, which are samples, the one that is farthest from its centre tells the cluster.
    """
    k = len(centers)
    if k < 2:
        return centers
    drawn = rng.choice(k, size=max(2, round(CROWDED_SHARE * k)), replace=False)
    apart = squares_between(centers[drawn], centers)
    apart[np.arange(len(drawn)), drawn] = np.inf
    removed = drawn[apart.min(axis=1).argmin()]
    away = squares_between(rows, centers)
    away[:, removed] = np.inf
    farthest = away.min(axis=1).argmax()
    divided = away[farthest].argmin()
    step = HALF_STEP * (rows[farthest] - centers[divided])
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


# ---- orders --------------------------------------------------------------------------------------


def cross_over(orders: Sequence[Order], engine: Engine) -> list[Order]:
    """Place the offspring among some orders: make a child of the parents of each."""
    if len(orders) == 1:
        return [cross(orders[0], engine)]
    # Our own crossovers may run at the same time; those of the user need not bear that.
    crossovers = [crossing.crossover for order in orders for crossing in order.crossovers]
    n_threads = min(engine.n_jobs, len(orders)) if all(one in WAYS for one in crossovers) else 1
    return side_by_side(lambda order: cross(order, engine), orders, n_threads)


def cross(order: Order, engine: Engine) -> Order:
    """Let the crossovers of an order try in turn."""
    if order.parents is None:
        return order
    first, second = order.parents
    breeding = Breeding(engine, order.numbers, order.quantile)
    for crossing in order.crossovers:
        child = crossing.crossover(first, second, breeding)
        if child is not None:
            if crossing.crossover not in WAYS:
                check_child(child, first.centers.shape, crossing.name)
            removed = -1 if child.is_complete else order.removed
            parent = child.parent.handle
            return order.placed(child.centers, crossing.name, removed=removed, parent=parent)
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


def ways_of(order: Order) -> list[Way]:
    """Return how an engine can make an offspring in one go; none if that takes several steps."""
    ways: list[Way] = []
    if order.parents is not None and not order.divides:
        for crossing in order.crossovers:
            if (way := WAYS.get(crossing.crossover)) is None:
                break
            ways.append(way)
            if way is not Way.PARTS:
                return ways
    return []


def relocate(orders: Sequence[Order], engine: Engine) -> list[Order]:
    """Divide a cluster where that takes the place of a relocation; engines do the others."""
    relocated = list(orders)
    divided = [i for i, one in enumerate(orders) if one.divides and one.removed >= 0]
    if divided:
        # The crossover may have drawn from Breeding.rng; these numbers are others.
        seeds = [[int(orders[i].quantile * 2.0**53), 1] for i in divided]
        sources = [np.random.default_rng(seed) for seed in seeds]
        # Together: an engine may have to ask elsewhere for its samples.
        rows = engine.samples_at(np.concatenate([rng.random(DRAWN_TO_DIVIDE) for rng in sources]))
        for i, own, rng in zip(divided, np.split(rows, len(divided)), sources, strict=True):
            centers = divide(orders[i].centers, own, rng)
            relocated[i] = replace(orders[i], centers=centers, removed=-1)
    return relocated
