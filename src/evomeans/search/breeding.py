"""What happens to an order before it is refined: founding, crossover, relocation and division.

These are functions of their arguments alone, so that any worker can call them, at any time. Each
leaves orders as they are that it does not concern.

Relocation where samples are noisy: a cluster is divided, and no sample becomes a centre.

Let one cluster hold two clouds whose means are D apart, and let samples be at a squared distance of
σ² from the mean of their cloud, on average. A sample of the same cloud is σ² + D²/4 away from the
centre between the clouds, and 2σ² from a sample. So a centre on a sample attracts hardly any other
where D² < 4σ², which is the rule in many noisy features. A centre that begins close to the one
between the clouds divides their samples by a plane, and K-means does the rest.

Engines that swap centres need none of this: a swap divides a cluster, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from evomeans.engines.protocol import Engine, Order, Refinement, Way
from evomeans.engines.workers import side_by_side
from evomeans.search.crossover import WAYS, Breeding, Child
from evomeans.search.settings import Crossing
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


def found(orders: Sequence[Order], engine: Engine) -> list[Order]:
    """Place the founders among some orders; those of a kind are placed together."""
    placed = list(orders)
    for founding in {one.founding for one in orders if one.founding is not None}:
        places = [i for i, one in enumerate(orders) if one.founding == founding]
        centers = founding.place(engine, [orders[i].numbers for i in places])
        for i, own in zip(places, centers, strict=True):
            placed[i] = orders[i].placed(own, founding.name, is_independent=True)
    return placed


def cross_over(orders: Sequence[Order], engine: Engine) -> list[Order]:
    """Place the offspring among some orders: make a child of the parents of each."""
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


def relocate(orders: Sequence[Order], engine: Engine) -> list[Order]:
    """Divide a cluster where that takes the place of a relocation; engines do the others."""
    relocated = list(orders)
    divided = [i for i, one in enumerate(orders) if one.divides and one.removed >= 0]
    if divided:
        sources = [source_of(orders[i].quantile) for i in divided]
        # Together: an engine may have to ask elsewhere for its samples.
        rows = engine.samples_at(np.concatenate([rng.random(CANDIDATES) for rng in sources]))
        for i, own, rng in zip(divided, np.split(rows, len(divided)), sources, strict=True):
            centers = divide(orders[i].centers, own, rng)
            relocated[i] = replace(orders[i], centers=centers, removed=-1)
    return relocated


def make_at_once(order: Order, engine: Engine) -> Refinement | None:
    """Let an engine make an offspring in one go; None if it has to be made step by step."""
    if order.parents is None or order.divides:
        return None
    ways: list[Way] = []
    for crossing in order.crossovers:
        if (way := WAYS.get(crossing.crossover)) is None:
            return None
        ways.append(way)
        if way is not Way.PARTS:
            return engine.offspring(order, ways)
    return None
