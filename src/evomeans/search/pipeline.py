"""Solutions in the making: begun in order, taken in order, and made side by side.

What happens to an order before it is refined, :func:`found`, :func:`cross_over` and
:func:`relocate`, are functions of their arguments alone, so any worker can call them, at any
time. Each leaves orders as they are that it does not concern.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from threading import Lock

import numpy as np

from evomeans.engines.protocol import Abandoned, Engine, Order, Refinement, Way
from evomeans.engines.workers import MOMENT, Workers, WorkerTask, side_by_side
from evomeans.search.crossover import CANDIDATES, WAYS, Breeding, Child, divide
from evomeans.search.stopping import Timing

Place = Callable[[Sequence[Order], Engine], list[Order]]
Made = tuple[Order, Refinement]


class Pipeline:
    """A queue of solutions.

    How far they are depends on the number of workers. What is seen of them does not: their order,
    and what they become. ``place`` makes the centres with which orders begin, with any engine and
    in any thread; ``timing`` says when a search without a solution has to hurry, or to end.
    """

    def __init__(self, workers: Workers, place: Place, timing: Timing) -> None:
        self._workers = workers
        self._place = place
        self._timing = timing
        self._broods: deque[tuple[Brood, WorkerTask[list[Made]]]] = deque()
        self._count = 0
        self._can_place_early = True

    def __len__(self) -> int:
        """Count the solutions that have been begun and not been taken."""
        return self._count

    def begin(self, orders: Sequence[Order], *, at_once: bool = True) -> None:
        """Add solutions that an engine refines together.

        ``at_once`` says whether to make them as soon as a worker is idle, and not only when they
        are taken.
        """
        # While one is made in one go, its centres may be asked for. These two must not use one work
        # space.
        in_one_go = len(orders) == 1 and (at_once or not self._workers.shares_engine)
        brood = Brood(orders, self._place, in_one_go)
        self._broods.append((brood, self._workers.hand_out(brood.run, at_once=at_once)))
        self._count += len(orders)

    def resume(self, waiting: Sequence[Order], batch: int) -> None:
        """Begin with the orders of an earlier search."""
        for first in range(0, len(waiting), batch):
            self.begin(waiting[first : first + batch])

    def refined(self, *, is_first: bool = False) -> Iterator[Made]:
        """Wait for the oldest solutions that were begun together, and take them one by one.

        None come if it takes longer than a moment, so that the search sees limits and Ctrl-C. If it
        is the first solution of a search, and that has to end, it comes as it is.
        """
        brood, task = self._broods[0]
        # Where there is no time at all, as for most k of a path, moments add up.
        moment = min(MOMENT, self._timing.grace) if is_first else MOMENT
        if not self._workers.is_done(task, moment):
            if is_first and self._timing.is_overdue:
                yield from self._cut_short()
            elif is_first and self._timing.should_hurry() and not brood.is_placed:
                # Its refinement begins soon, from wherever it is placed by now.
                self._cut_short()
            return
        for made in self._workers.result(task)[brood.n_taken :]:
            self._count -= 1
            brood.n_taken += 1
            yield made
        self._broods.popleft()

    def waiting(self) -> list[Order]:
        """Return the orders, placed, of all solutions that have not been taken."""
        engine = self._workers.engine
        return [order for brood, _ in self._broods for order in brood.placed(engine)]

    def drop(self) -> None:
        """Give up all solutions."""
        self._workers.drop()
        self._broods.clear()
        self._count = 0

    def _cut_short(self) -> list[Made]:
        """Stop all refinements; return the oldest one as it is.

        None if it has ended, and waits to be taken; or if the engine cannot place it early. It
        continues from there if it is taken after all, and those that were begun with it begin
        again.
        """
        brood, task = self._broods[0]
        may_cut = brood.is_placed or self._can_place_early
        if not may_cut or self._workers.is_done(task, 0.0):
            return []
        self.drop()
        if (orders := self._placed_early(brood)) is None:
            return []
        order, *others = orders
        if task.error is not None and not isinstance(task.error, Abandoned):
            raise task.error
        # If there is no outcome, it was still being placed. If it is complete, it was about to end.
        reached = order.centers if task.outcome is None else task.outcome[0][1].centers
        # What it becomes then owes something to what it is now.
        rest = replace(order, centers=reached, is_independent=False)
        self.begin([rest, *others], at_once=False)
        return [(order, Refinement.stopped(rest))]

    def _placed_early(self, brood: Brood) -> list[Order] | None:
        """Return orders; those that are not placed yet begin with samples drawn by weight."""
        engine = self._workers.engine
        engine.abandon(True)
        try:
            return brood.placed(engine)
        except Abandoned:
            # It has to ask elsewhere for its samples, and begins again to do so.
            self._can_place_early = False
            self.begin(brood.orders, at_once=False)
            return None
        finally:
            engine.abandon(False)


class Brood:
    """Solutions that are refined together.

    If they may be made ``in_one_go``, an engine makes an offspring without placing it first.
    """

    __slots__ = ("_in_one_go", "_lock", "_place", "_placed", "n_taken", "orders")

    def __init__(self, orders: Sequence[Order], place: Place, in_one_go: bool) -> None:
        self.orders = orders
        self._place = place
        self._in_one_go = in_one_go
        self._placed: list[Order] | None = None
        self._lock = Lock()
        self.n_taken = 0

    @property
    def is_placed(self) -> bool:
        """Whether its orders have been placed."""
        return self._placed is not None

    def placed(self, engine: Engine) -> list[Order]:
        """Return the orders of those that have not been taken; place them if that is not done."""
        with self._lock:
            if self._placed is None:
                self._placed = self._place(self.orders, engine)
            return self._placed[self.n_taken :]

    def run(self, engine: Engine) -> list[Made]:
        """Make and refine them."""
        if self._in_one_go and (made := make_at_once(self.orders[0], engine)) is not None:
            return [(self.orders[0], made)]
        orders = self.placed(engine)
        return list(zip(orders, engine.refine(orders), strict=True))


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


def relocate(orders: Sequence[Order], engine: Engine) -> list[Order]:
    """Divide a cluster where that takes the place of a relocation; engines do the others."""
    relocated = list(orders)
    divided = [i for i, one in enumerate(orders) if one.divides and one.removed >= 0]
    if divided:
        # The crossover may have drawn from Breeding.rng; these numbers are others.
        seeds = [[int(orders[i].quantile * 2.0**53), 1] for i in divided]
        sources = [np.random.default_rng(seed) for seed in seeds]
        # Together: an engine may have to ask elsewhere for its samples.
        rows = engine.samples_at(np.concatenate([rng.random(CANDIDATES) for rng in sources]))
        for i, own, rng in zip(divided, np.split(rows, len(divided)), sources, strict=True):
            centers = divide(orders[i].centers, own, rng)
            relocated[i] = replace(orders[i], centers=centers, removed=-1)
    return relocated
