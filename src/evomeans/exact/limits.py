"""How long a proof may work, who hears of it, and its threads."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeVar

Progress = Callable[[float, float, int], object]
"""Called with the lower bound and the upper bound in units of the data, and the nodes so far."""


def _silent(lower: float, upper: float, nodes: int) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class Limits:
    """When to stop.

    Parameters
    ----------
    gap : float
        Stop when the lower bound is within this share of the upper one.
    max_time : float
        Seconds from the start.
    interrupted : callable
        Whether a person wants it to end.
    progress : callable
        Called every now and then.
    clock : callable
        Returns seconds; a benchmark may count those of the processor.
    start : float
        What the clock said at the start, by default now.
    """

    gap: float = 1e-6
    max_time: float = 60.0
    interrupted: Callable[[], bool] = lambda: False
    progress: Progress = _silent
    clock: Callable[[], float] = time.monotonic
    start: float = math.nan

    def __post_init__(self) -> None:
        if math.isnan(self.start):
            object.__setattr__(self, "start", self.clock())

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return self.clock() - self.start

    @property
    def seconds_left(self) -> float:
        """Seconds until ``max_time``."""
        return self.max_time - self.seconds

    def expired(self) -> bool:
        """Whether to end with the best bound so far."""
        return self.interrupted() or self.seconds_left <= 0


Result = TypeVar("Result")


class Threads:
    """Calls functions side by side. Kernels and linear algebra do not hold the interpreter lock.

    Use it as a context, which ends the threads. Functions that run in it must not use it.

    Parameters
    ----------
    count : int
        Threads. One calls the functions one after the other, without any thread.
    """

    def __init__(self, count: int = 1) -> None:
        self.count = count
        self._pool = ThreadPoolExecutor(count, "evomeans proof") if count > 1 else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def map(
        self, function: Callable[..., Result], calls: Iterable[tuple[Any, ...]]
    ) -> list[Result]:
        """Call a function with each of the arguments; return the results in order."""
        if self._pool is None:
            return [function(*arguments) for arguments in calls]
        futures = [self._pool.submit(function, *arguments) for arguments in calls]
        return [future.result() for future in futures]
