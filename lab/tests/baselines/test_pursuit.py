"""Following a stream of solutions: the best is kept, each is recorded, and limits are obeyed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evomeans.engines import Refinement
from evomeans.search.stopping import DeferredInterrupt, StopReason
from fakes import ScriptedClock, refinement
from lab.baselines.pursuit import RunRecord, pursue


def stream(*inertias: float, clock: ScriptedClock | None = None) -> Iterator[Refinement]:
    """Solutions of these inertias, each of which takes a second."""
    for number, inertia in enumerate(inertias):
        if clock is not None:
            clock.now += 1.0
        yield refinement(inertia, number)


def test_the_best_is_kept_and_all_are_recorded() -> None:
    """The first of equal ones; ``best`` never rises."""
    clock = ScriptedClock(100.0)
    solutions = stream(9.0, 7.0, 8.0, 7.0, clock=clock)
    best, history, reason = pursue(solutions, DeferredInterrupt(), clock=clock)
    assert best.handle == "handle 1"
    assert reason is StopReason.MAX_OFFSPRING
    assert history == (
        RunRecord(number=1, inertia=9.0, best=9.0, n_iter=1, seconds=1.0),
        RunRecord(number=2, inertia=7.0, best=7.0, n_iter=2, seconds=2.0),
        RunRecord(number=3, inertia=8.0, best=7.0, n_iter=3, seconds=3.0),
        RunRecord(number=4, inertia=7.0, best=7.0, n_iter=4, seconds=4.0),
    )


@pytest.mark.parametrize(
    ("limits", "made", "reason"),
    [
        ({"max_time": 2.5}, 3, StopReason.MAX_TIME),
        ({"max_time": 2.0}, 2, StopReason.MAX_TIME),
        ({"max_time": 1e-9}, 1, StopReason.MAX_TIME),
        ({"target_inertia": 7.0}, 2, StopReason.TARGET_INERTIA),
        ({"target_inertia": 0.5}, 4, StopReason.PROVEN_OPTIMAL),
        ({}, 4, StopReason.PROVEN_OPTIMAL),
    ],
)
def test_limits_end_it_after_the_solution_that_reaches_them(limits, made, reason) -> None:
    """But never before there is one; inertia zero cannot be improved."""
    clock = ScriptedClock()
    solutions = stream(9.0, 7.0, 8.0, 0.0, 1.0, clock=clock)
    _, history, ended = pursue(solutions, DeferredInterrupt(), clock=clock, **limits)
    assert len(history) == made
    assert ended is reason


def test_an_interrupt_ends_it() -> None:
    """After the solution being made, which is not lost."""
    interrupt = DeferredInterrupt()

    def interrupted() -> Iterator[Refinement]:
        yield refinement(9.0, 0)
        interrupt.requested = True
        yield refinement(5.0, 1)
        raise AssertionError("no more solutions were asked for")

    best, _, reason = pursue(interrupted(), interrupt)
    assert best.inertia == 5.0
    assert reason is StopReason.INTERRUPTED
