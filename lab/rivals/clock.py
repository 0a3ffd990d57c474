"""CPU time: what is left of it, and when to give up."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType


class OutOfTimeError(Exception):
    """A run took far longer than it was given."""


@dataclass(frozen=True)
class Clock:
    """Counts the CPU seconds of this process from now on.

    Parameters
    ----------
    budget : float
        CPU seconds.
    """

    budget: float
    began: float = field(default_factory=time.process_time)

    @staticmethod
    def read() -> float:
        """Return the CPU seconds of this process."""
        return time.process_time()

    @property
    def seconds(self) -> float:
        """CPU seconds since it began."""
        return time.process_time() - self.began

    @property
    def left(self) -> float:
        """CPU seconds that are left; negative if it is too late."""
        return self.budget - self.seconds


@contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Raise :class:`OutOfTimeError` after this CPU time, as soon as Python has its turn.

    Only systems with the signal SIGPROF can do that, and only the main thread. Without a limit, a
    method that has nothing to show before its end may take hours.
    """
    if not hasattr(signal, "SIGPROF"):
        yield
        return

    def give_up(signum: int, frame: FrameType | None) -> None:
        raise OutOfTimeError(f"it took more than {seconds:.3g} CPU seconds")

    before = signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, seconds if math.isfinite(seconds) else 0.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)
