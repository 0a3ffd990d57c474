"""Following a stream of solutions: the best is kept, the way written down, and limits are kept."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evomeans.baselines.pursuit import Limits, pursue
from evomeans.engines import Refinement
from evomeans.search.interrupts import DeferredInterrupt
from evomeans.search.stopping import StopReason
from fakes import ScriptedClock, refinement


def stream(*inertias: float, clock: ScriptedClock | None = None) -> Iterator[Refinement]:
    """Solutions of these inertias, each of which takes a second."""
    for number, inertia in enumerate(inertias):
        if clock is not None:
            clock.now += 1.0
        yield refinement(inertia, number)


def test_the_best_is_kept_and_the_way_is_written_down() -> None:
    """The first of equal ones; ``best`` never rises."""
    clock = ScriptedClock(100.0)
    pursuit = pursue(stream(9.0, 7.0, 8.0, 7.0, clock=clock), Limits(), clock=clock)
    assert pursuit.best.handle == "handle 1"
    assert pursuit.stop_reason is StopReason.MAX_ITER
    columns = [(r.number, r.inertia, r.best, r.n_iter, r.seconds) for r in pursuit.history]
    assert columns == [
        (1, 9.0, 9.0, 1, 1.0),
        (2, 7.0, 7.0, 2, 2.0),
        (3, 8.0, 7.0, 3, 3.0),
        (4, 7.0, 7.0, 4, 4.0),
    ]


@pytest.mark.parametrize(
    ("limits", "made", "reason"),
    [
        (Limits(max_time=2.5), 3, StopReason.MAX_TIME),
        (Limits(max_time=2.0), 2, StopReason.MAX_TIME),
        (Limits(max_time=1e-9), 1, StopReason.MAX_TIME),
        (Limits(target_inertia=7.0), 2, StopReason.TARGET_INERTIA),
        (Limits(target_inertia=0.5), 4, StopReason.PROVEN_OPTIMAL),
        (Limits(), 4, StopReason.PROVEN_OPTIMAL),
    ],
)
def test_limits_end_it_after_the_solution_that_reaches_them(limits, made, reason) -> None:
    """But never before there is one; inertia zero cannot be improved."""
    clock = ScriptedClock()
    pursuit = pursue(stream(9.0, 7.0, 8.0, 0.0, 1.0, clock=clock), limits, clock=clock)
    assert len(pursuit.history) == made
    assert pursuit.stop_reason is reason


def test_an_interrupt_ends_it() -> None:
    """After the solution being made, which is not lost."""
    interrupt = DeferredInterrupt()

    def interrupted() -> Iterator[Refinement]:
        yield refinement(9.0, 0)
        interrupt.requested = True
        yield refinement(5.0, 1)
        raise AssertionError("nobody wants more")

    pursuit = pursue(interrupted(), Limits(), interrupt)
    assert pursuit.best.inertia == 5.0
    assert pursuit.stop_reason is StopReason.INTERRUPTED
