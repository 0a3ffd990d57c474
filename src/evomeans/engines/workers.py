"""Several engines over the same samples, so that many refinements run at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

from evomeans.engines.protocol import Engine

Result = TypeVar("Result")
Result_co = TypeVar("Result_co", covariant=True)


class Task(Protocol[Result_co]):
    """Work that has been handed to the workers."""

    def result(self) -> Result_co:
        """Wait until it is done; return what came of it, or raise the error that ended it."""
        ...


class Postponed(Generic[Result]):
    """A task that is done when its result is asked for."""

    def __init__(self, work: Callable[[], Result]) -> None:
        self._work = work

    def result(self) -> Result:
        """Do the work."""
        return self._work()


class Workers:
    """Engines that share their samples, each used by one thread at a time.

    Results depend neither on the number of workers nor on their speed: an engine has no memory
    that changes a result.

    Parameters
    ----------
    engine : Engine
        It works alone where more would not pay.
    n_clusters : int
    most : int
        Workers at most.
    """

    def __init__(self, engine: Engine, n_clusters: int, most: int) -> None:
        self.engine = engine
        self._engines = engine.workers(n_clusters, most) if most > 1 else [engine]
        self._idle = list(self._engines)
        self._tasks: set[Future[object]] = set()
        count = len(self._engines)
        self._pool = ThreadPoolExecutor(count, "evomeans") if count > 1 else None

    def hand_out(self, job: Callable[[Engine], Result]) -> Task[Result]:
        """Let a worker do a job as soon as one is idle.

        Without threads the job is done when its result is asked for, and not at all if it is not.
        """
        if self._pool is None:
            return Postponed(lambda: job(self.engine))
        task = self._pool.submit(self._do, job)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _do(self, job: Callable[[Engine], Result]) -> Result:
        engine = self._idle.pop()
        try:
            return job(engine)
        finally:
            self._idle.append(engine)

    def drop(self) -> None:
        """Let go of all tasks whose results nobody will ask for; return when no worker is busy."""
        running = [task for task in list(self._tasks) if not task.cancel()]
        for engine in self._engines:
            engine.abandon(True)
        wait(running)
        for engine in self._engines:
            engine.abandon(False)

    @contextmanager
    def at_work(self) -> Iterator[Workers]:
        """Drop what is left in the end, and end the threads."""
        try:
            yield self
        finally:
            if self._pool is not None:
                self.drop()
                self._pool.shutdown()
