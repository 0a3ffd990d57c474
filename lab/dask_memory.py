"""A file larger than the memory of the workers; see ``lab.dask_engine``."""

from __future__ import annotations

import logging
import math
import os
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import numpy as np

from evomeans import HGMeans, OffspringRecord
from evomeans.engines.dask.engine import DaskEngine
from evomeans.engines.dask.steps import Question
from evomeans.wording import levels_text
from lab.dask_workers import local_cluster, timed_fit

ROWS, FEATURES, CLUSTERS, CLOUDS = 2**24, 64, 12, 60


def memory(minutes: float, rows: int) -> None:
    """Fit a file that is twice as large as the workers' memory together."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "X.npy"
        write_samples(path, rows)
        print(
            f"{rows:,} x {FEATURES} float32 ({rows * FEATURES * 4 / 2**30:.1f} GiB), "
            f"m = {CLUSTERS}, two workers of 1 GiB, max_time {minutes:g} min",
            flush=True,
        )
        X = np.load(path, mmap_mode="r")
        with local_cluster(memory="1GiB") as client:
            # Compiles what the fit needs before anything is measured.
            searching(1.0, subsample=100, max_offspring=2).fit(X[:2000])
            with watched(client) as seen, counted_work() as work:
                model = searching(60.0 * minutes, observers=[show_solution, work])
                seconds = timed_fit(model, X)
    founders = [record.inertia for record in model.history_ if record.founder]
    gains = [100.0 * (1.0 - model.inertia_ / value) for value in (founders[0], min(founders))]
    print(
        f"{levels_text(model.levels_)}\n"
        f"passes over the data to the first complete answer: {work.first_passes} "
        f"(after {work.first_seconds:.0f} s), in all: {work.passes}\n"
        f"offspring on samples: {work.on_samples:,}; refinements on all rows: "
        f"{len(model.history_)}, {model.n_iter_} of offspring\n"
        f"ended after {seconds:.0f} s ({model.stop_reason_}): inertia {model.inertia_:.7g}, "
        f"{gains[0]:.2f} % below the first solution, {gains[1]:.2f} % below the best founder\n"
        f"memory of the workers: {', '.join(f'{peak / 2**20:.0f} MiB' for peak in seen.peaks)} "
        f"at most; removed by the scheduler: {seen.removed}, restarted by their memory limit: "
        f"{seen.restarted}, paused: {seen.paused} times"
    )


def searching(seconds: float, **parameters: Any) -> HGMeans:
    """Return a model that searches on Dask for some time."""
    parameters = {"engine": "dask", "random_state": 0, "max_time": seconds, **parameters}
    return HGMeans(CLUSTERS, **parameters)


class Work(logging.Handler):
    """Counts the passes over all blocks, and the offspring on samples, which the log tells."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        # The engine looks through all blocks before the first request.
        self.passes = 1
        self.on_samples = self.first_passes = 0
        self.first_seconds = math.nan

    def __call__(self, record: OffspringRecord) -> None:
        """Remember when the first solution came; one more pass would label the rows."""
        if not self.first_passes:
            self.first_passes, self.first_seconds = self.passes + 1, record.seconds

    def emit(self, record: logging.LogRecord) -> None:
        """Add the offspring of a search on a sample."""
        if str(record.msg).startswith("Population %d began with"):
            _, n_offspring, _ = cast(tuple[int, int, int], record.args)
            self.on_samples += n_offspring


@contextmanager
def counted_work() -> Iterator[Work]:
    """Count the work of the Dask engine."""
    work, log, ask = Work(), logging.getLogger("evomeans"), DaskEngine.ask

    def counting(engine: DaskEngine, questions: Sequence[Question]) -> list[Any]:
        # These two concern some blocks only.
        work.passes += any(question.wanted not in ("draw", "rows") for question in questions)
        return ask(engine, questions)

    level = log.level
    log.addHandler(work)
    log.setLevel(logging.INFO)
    try:
        with patch.object(DaskEngine, "ask", counting):
            yield work
    finally:
        log.setLevel(level)
        log.removeHandler(work)


class Seen:
    """What happened to the workers: their largest memory, and whether they stopped working."""

    def __init__(self) -> None:
        self.peaks: list[int] = []
        self.removed = self.restarted = self.paused = 0


class Messages(logging.Handler):
    """Counts what nannies in this process say."""

    def __init__(self, seen: Seen) -> None:
        super().__init__(logging.INFO)
        self.seen = seen

    def emit(self, record: logging.LogRecord) -> None:
        """Count restarts."""
        self.seen.restarted += "memory budget. Restarting" in record.getMessage()


@contextmanager
def watched(client: Any) -> Iterator[Seen]:
    """Watch the workers of a local cluster, from outside."""
    import psutil
    from distributed.diagnostics.plugin import SchedulerPlugin

    seen = Seen()
    processes = [psutil.Process(pid) for pid in client.run(os.getpid).values()]
    peaks = dict.fromkeys(processes, 0)

    class Losses(SchedulerPlugin):
        name = "losses"

        def remove_worker(self, *_: Any, **__: Any) -> None:
            seen.removed += 1

    plugin, done = Losses(), threading.Event()
    scheduler = client.cluster.scheduler

    def watch() -> None:
        paused: set[str] = set()
        while not done.wait(0.05):
            for process in processes:
                if process.is_running():
                    peaks[process] = max(peaks[process], process.memory_info().rss)
            now = {
                one
                for one, state in list(scheduler.workers.items())
                if state.status.name == "paused"
            }
            seen.paused += len(now - paused)
            paused = now

    scheduler.add_plugin(plugin)
    handler = Messages(seen)
    logging.getLogger("distributed").addHandler(handler)
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield seen
    finally:
        done.set()
        watcher.join()
        logging.getLogger("distributed").removeHandler(handler)
        scheduler.remove_plugin("losses")
        seen.peaks = list(peaks.values())


def show_solution(record: Any) -> None:
    print(
        f"  {record.seconds:6.0f} s: offspring {record.number}, {record.n_iter} iterations, "
        f"inertia {record.inertia:.7g}",
        flush=True,
    )


def write_samples(path: Path, rows: int) -> None:
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(CLOUDS, FEATURES)).astype(np.float32)
    X = np.lib.format.open_memmap(path, "w+", np.float32, (rows, FEATURES))
    for begin in range(0, rows, 2**17):
        part = X[begin : begin + 2**17]
        part[:] = 0.1 * rng.standard_normal(part.shape, dtype=np.float32)
        part += centers[rng.integers(CLOUDS, size=len(part))]
    X.flush()
