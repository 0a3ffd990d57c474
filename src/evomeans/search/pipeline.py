"""Solutions in the making: begun in order, inserted in order, and refined side by side."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from threading import Lock
from typing import Any, TypeVar

from evomeans.engines.protocol import Abandoned, Engine, Refinement
from evomeans.engines.workers import MOMENT, Task, Workers
from evomeans.search.breeding import Made
from evomeans.search.state import Draft
from evomeans.typing import FloatArray

Plan = TypeVar("Plan")
Make = Callable[[Sequence[Plan], Engine], list[Draft]]
Refine = Callable[[Engine, Sequence[Draft]], list[Refinement]]
MakeAtOnce = Callable[[Sequence[Plan], Engine], list[Made] | None]


class Pipeline:
    """A queue of solutions.

    How far they are depends on the number of workers. What is seen of them does not: their order,
    and what they become.

    Parameters
    ----------
    workers : Workers
    refine : callable
        Turns drafts into refinements.
    """

    def __init__(self, workers: Workers, refine: Refine) -> None:
        self._workers = workers
        self._refine = refine
        self._broods: deque[tuple[Brood, Task[list[Made]]]] = deque()
        self._count = 0
        self._can_place_early = True

    def __len__(self) -> int:
        """Count the solutions that have been begun and not been taken."""
        return self._count

    def begin(
        self,
        make: Make[Plan],
        plans: Sequence[Plan],
        *,
        make_at_once: MakeAtOnce[Plan] | None = None,
        at_once: bool = True,
    ) -> None:
        """Add solutions that an engine refines together.

        Parameters
        ----------
        make : callable
            Turns the plans of solutions into drafts, with any engine and in any thread.
        plans : sequence
            One for each solution.
        make_at_once : callable, optional
            Turns the plans into refined solutions, or returns None if it cannot. No drafts are
            made then, unless somebody asks for them.
        at_once : bool
            Whether to refine them as soon as a worker is idle, and not only when they are taken.
        """
        if not at_once and self._workers.shares_engine:
            # While it is made, its drafts may be asked for: these two must not use one work space.
            make_at_once = None
        brood = Brood(make, plans, self._refine, make_at_once)
        self._broods.append((brood, self._workers.hand_out(brood.run, at_once=at_once)))
        self._count += len(plans)

    def resume(self, waiting: Sequence[Draft], batch: int) -> None:
        """Begin with the drafts of an earlier search."""
        for first in range(0, len(waiting), batch):
            self.begin(as_they_are, waiting[first : first + batch])

    def take(self) -> Iterator[Made]:
        """Wait for the oldest solutions that were begun together, and take them one by one.

        None come if it takes longer than a moment, so that the search sees limits and Ctrl-C.
        """
        brood, task = self._broods[0]
        if not self._workers.is_done(task, MOMENT):
            return
        for made in self._workers.result(task)[brood.n_taken :]:
            self._count -= 1
            brood.n_taken += 1
            yield made
        self._broods.popleft()

    def drafts(self) -> list[Draft]:
        """Return the drafts of all solutions that have not been taken."""
        engine = self._workers.engine
        return [draft for brood, _ in self._broods for draft in brood.drafts(engine)]

    def cut_short(self) -> tuple[Draft, FloatArray] | None:
        """End all refinements; return the draft of the oldest, and how far its centres had come.

        None if it has ended, and waits to be taken; or if the engine cannot place it early. It
        continues from there if it is taken after all, and those that were begun with it begin
        again.
        """
        brood, task = self._broods[0]
        may_cut = brood.is_placed or self._can_place_early
        if not may_cut or self._workers.is_done(task, 0.0):
            return None
        self.drop()
        if (drafts := self._placed_early(brood)) is None:
            return None
        draft, *others = drafts
        error, outcome = task.error, task.outcome
        if error is not None and not isinstance(error, Abandoned):
            raise error
        reached = None if error is None else error.centers
        if outcome is not None:
            # It was about to end.
            reached = outcome[0].refinement.centers
        centers = draft.centers if reached is None else reached
        # What it becomes then owes something to what it is now.
        rest = replace(draft, centers=centers, is_independent=False)
        self.begin(as_they_are, [rest, *others], at_once=False)
        return draft, centers

    def hurry(self) -> None:
        """Let the refinement of the oldest solution begin soon, even if it is not placed yet."""
        if not self._broods[0][0].is_placed:
            self.cut_short()

    def _placed_early(self, brood: Brood) -> list[Draft] | None:
        """Return drafts; those that are not made yet begin with samples drawn by weight."""
        engine = self._workers.engine
        engine.abandon(True)
        try:
            return brood.drafts(engine)
        except Abandoned:
            # It has to ask elsewhere for its samples, and begins again to do so.
            self._can_place_early = False
            brood.begin_again(self)
            return None
        finally:
            engine.abandon(False)

    def drop(self) -> None:
        """Give up all solutions."""
        self._workers.drop()
        self._broods.clear()
        self._count = 0


def as_they_are(drafts: Sequence[Draft], engine: Engine) -> list[Draft]:
    """Make drafts of drafts."""
    return list(drafts)


class Brood:
    """Solutions that are refined together; the parameters are those of :meth:`Pipeline.begin`."""

    __slots__ = ("_drafts", "_lock", "_make", "_make_at_once", "_plans", "_refine", "n_taken")

    def __init__(
        self,
        make: Make[Any],
        plans: Sequence[Any],
        refine: Refine,
        make_at_once: MakeAtOnce[Any] | None,
    ) -> None:
        self._make = make
        self._plans = plans
        self._refine = refine
        self._make_at_once = make_at_once
        self._drafts: list[Draft] | None = None
        self._lock = Lock()
        self.n_taken = 0

    @property
    def is_placed(self) -> bool:
        """Whether its drafts have been made."""
        return self._drafts is not None

    def begin_again(self, pipeline: Pipeline) -> None:
        """Join a pipeline from which they have been dropped."""
        pipeline.begin(self._make, self._plans, at_once=False)

    def drafts(self, engine: Engine) -> list[Draft]:
        """Return the drafts of those that have not been taken; make them if nobody has."""
        with self._lock:
            if self._drafts is None:
                self._drafts = self._make(self._plans, engine)
            return self._drafts[self.n_taken :]

    def run(self, engine: Engine) -> list[Made]:
        """Make and refine them."""
        made = None if self._make_at_once is None else self._make_at_once(self._plans, engine)
        if made is None:
            drafts = self.drafts(engine)
            made = list(map(Made.of, drafts, self._refine(engine, drafts)))
        return made
