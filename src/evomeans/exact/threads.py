"""Several threads for one proof, without any influence on its result."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self, TypeVar

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
