"""Solutions in the making: begun in order, taken in order, and made side by side."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from threading import Lock

from evomeans.engines.protocol import Abandoned, Engine, Order, Refinement
from evomeans.engines.workers import MOMENT, Workers, WorkerTask
from evomeans.search.breeding import make_at_once
from evomeans.search.timing import Timing

Place = Callable[[Sequence[Order], Engine], list[Order]]
Made = tuple[Order, Refinement]


class Pipeline:
    """A queue of solutions.

    How far they are depends on the number of workers. What is seen of them does not: their order,
    and what they become.

    Parameters
    ----------
    workers : Workers
    place : callable
        Makes the centres with which orders begin, with any engine and in any thread.
    timing : Timing
        Says when a search without a solution has to hurry, or to end.
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

    Parameters
    ----------
    orders : sequence of Order
    place : callable
        See :class:`Pipeline`.
    in_one_go : bool
        Whether an engine may make an offspring without placing it first.
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
        """Return the orders of those that have not been taken; place them if nobody has."""
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
