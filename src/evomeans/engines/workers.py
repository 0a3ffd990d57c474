"""Work for several threads: engines over the same samples, and parts of large arrays.

Nothing here gains time unless what the threads do releases the interpreter.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, Generic, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from evomeans.engines.protocol import Engine

Item = TypeVar("Item")
Result = TypeVar("Result")
# Seconds between two looks at the clock and at Ctrl-C, while others work; and while a step that may
# be short is watched.
MOMENT, SHORT_MOMENT = 0.03, 0.005


class WorkerTask(Generic[Result]):
    """A job for an engine, and its result; leaner than :class:`concurrent.futures.Future`."""

    __slots__ = ("_done", "error", "is_done", "is_dropped", "job", "outcome")

    def __init__(self, job: Callable[[Engine], Result]) -> None:
        self.job = job
        self._done = Lock()
        self._done.acquire()
        # What came of it, or what ended it; both are None until then.
        self.outcome: Result | None = None
        self.error: BaseException | None = None
        self.is_done = False
        self.is_dropped = False

    def run(self, engine: Engine) -> None:
        """Do the job, unless its result is not needed any more."""
        try:
            if not self.is_dropped:
                self.outcome = self.job(engine)
        except BaseException as error:
            self.error = error
        finally:
            self.is_done = True
            self._done.release()

    def wait(self, timeout: float = -1.0) -> bool:
        """Wait until the job is done or dropped, or for some seconds; return whether it is."""
        if not self.is_done and self._done.acquire(timeout=timeout):
            # Others may be waiting as well.
            self._done.release()
        return self.is_done

    def result(self) -> Result:
        """Return what came of it once it is done, or raise the error that ended it."""
        if self.error is not None:
            raise self.error
        return cast("Result", self.outcome)


Queue = SimpleQueue[WorkerTask[Any] | None]


def watched(engine: Engine, job: Callable[[], Result], is_over: Callable[[], bool]) -> Result:
    """Let another thread do a job with an engine, and abandon it as soon as ``is_over()``.

    Meanwhile this thread looks at the clock, and receives Ctrl-C.
    """
    task = WorkerTask(lambda _: job())
    Thread(target=task.run, args=[engine], name="evomeans step").start()
    try:
        while not task.wait(SHORT_MOMENT):
            if is_over():
                break
    finally:
        if not task.is_done:
            engine.abandon(True)
            task.wait()
            engine.abandon(False)
    return task.result()


class Workers:
    """Engines that share their samples, each used by a thread of its own.

    There are up to ``most``, or ``engine`` alone where more would not help. Results depend neither
    on their number nor on their speed: nothing that an engine remembers changes a result.

    Jobs may have to be dropped, because time is up or because of Ctrl-C. If they take long, none is
    done in the thread that asks for the result: it would see neither.
    """

    def __init__(self, engine: Engine, n_clusters: int, most: int) -> None:
        self.engine = engine
        engines = engine.workers(n_clusters, most) if most > 1 else [engine]
        self._engines = engines if len(engines) > 1 else []
        # What no worker has been handed is done by this one if it takes long: with the threads of
        # all workers.
        lead = engine if len(engines) > 1 else engines[0]
        self._lead = lead if engine.takes_long(n_clusters) else None
        self._queue: Queue = SimpleQueue()
        self._lead_queue: Queue = SimpleQueue()
        self._threads: list[tuple[Thread, Queue]] = []
        self._handed_out: set[WorkerTask[Any]] = set()

    @property
    def shares_engine(self) -> bool:
        """Whether what is not handed out is done by ``engine`` itself, in a thread of its own."""
        return self._lead is self.engine

    def hand_out(
        self, job: Callable[[Engine], Result], *, at_once: bool = True
    ) -> WorkerTask[Result]:
        """Let a worker do a job as soon as it is idle.

        Without threads, or if it is not to be done ``at_once``, it is done when its result is asked
        for, and not at all if it is not.
        """
        task = WorkerTask(job)
        if self._engines and at_once:
            self._handed_out.add(task)
            self._queue.put(task)
        return task

    def is_done(self, task: WorkerTask[Any], timeout: float) -> bool:
        """Wait for a task that was handed out; one that was not is done when it is asked for."""
        if task not in self._handed_out:
            if self._lead is None:
                return True
            self._handed_out.add(task)
            if len(self._threads) == len(self._engines):
                self._start(self._lead, self._lead_queue, "evomeans lead")
            self._lead_queue.put(task)
        return task.wait(timeout)

    def result(self, task: WorkerTask[Result]) -> Result:
        """Return what came of a task, or raise the error that ended it."""
        if task not in self._handed_out:
            return task.job(self.engine)
        # If Ctrl-C ends the waiting, the task is still one to be dropped.
        task.wait()
        self._handed_out.discard(task)
        return task.result()

    def in_order(self, jobs: Iterable[Callable[[Engine], Result]]) -> Iterator[Result]:
        """Do jobs that do not depend on each other; yield what came of them in their order."""
        tasks: deque[WorkerTask[Result]] = deque()
        for job in jobs:
            tasks.append(self.hand_out(job))
            # Jobs take different times: if twice as many as workers are begun, none is idle.
            if len(tasks) >= max(1, 2 * len(self._engines)):
                yield self.result(tasks.popleft())
        while tasks:
            yield self.result(tasks.popleft())

    def drop(self) -> None:
        """Let go of all tasks whose results are not needed; return when no worker is busy."""
        for task in self._handed_out:
            task.is_dropped = True
        engines = [*self._engines, *([self._lead] if self._lead else [])]
        for engine in engines:
            engine.abandon(True)
        for task in self._handed_out:
            task.wait()
        for engine in engines:
            engine.abandon(False)
        self._handed_out.clear()

    @contextmanager
    def at_work(self) -> Iterator[Workers]:
        """Start the threads; drop what is left in the end."""
        for number, engine in enumerate(self._engines, start=1):
            self._start(engine, self._queue, f"evomeans worker {number}")
        try:
            yield self
        finally:
            self.drop()
            for _, queue in self._threads:
                queue.put(None)
            for thread, _ in self._threads:
                thread.join()
            self._threads.clear()

    def _start(self, engine: Engine, queue: Queue, name: str) -> None:
        """Let a thread do what comes from a queue: new ones for every task find cold caches."""
        thread = Thread(target=work, args=[engine, queue], name=name)
        self._threads.append((thread, queue))
        thread.start()


def work(engine: Engine, queue: Queue) -> None:
    """Do the tasks of a queue with an engine, up to a None."""
    while (task := queue.get()) is not None:
        task.run(engine)


# ---- parts of arrays -----------------------------------------------------------------------------

# Values that a thread looks at together: they stay in its cache while it does. Several threads look
# at so many parts each, for they wait for the interpreter between any two of them.
VALUES_AT_ONCE, PARTS_OF_A_THREAD = 2**17, 2


@cache
def threads_for(n_jobs: int) -> ThreadPoolExecutor:
    """Return threads that stay: starting them takes long. No job may wait for another one."""
    return ThreadPoolExecutor(n_jobs, "evomeans")


if hasattr(os, "register_at_fork"):
    # The threads of a process do not exist in its children.
    os.register_at_fork(after_in_child=threads_for.cache_clear)


def side_by_side(do: Callable[[Item], Result], items: Iterable[Item], n_jobs: int) -> list[Result]:
    """Let threads do something for every item, and return the results in the same order."""
    if n_jobs == 1:
        return [do(item) for item in items]
    with ThreadPoolExecutor(n_jobs, "evomeans") as pool:
        return list(pool.map(do, items))


def extremes(values: NDArray[Any], n_jobs: int = 1) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the lowest and highest values along the first axis; NaN if one is among them."""
    n_values = max(VALUES_AT_ONCE, values.size // (PARTS_OF_A_THREAD * n_jobs) if n_jobs > 1 else 0)
    at_once = max(1, n_values * len(values) // max(1, values.size))
    begins = range(0, len(values), at_once)
    ends = np.empty((2, len(begins), *values.shape[1:]), values.dtype)

    def look(nth: int) -> None:
        part = values[begins[nth] : begins[nth] + at_once]
        with np.errstate(invalid="ignore"):
            ends[:, nth] = part.min(axis=0), part.max(axis=0)

    run = map if n_jobs == 1 else threads_for(n_jobs).map
    list(run(look, range(len(begins))))
    with np.errstate(invalid="ignore"):
        return ends[0].min(axis=0), ends[1].max(axis=0)
