"""A file larger than the memory of the workers; see ``benchmarks.dask_engine``."""

from __future__ import annotations

import logging
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.dask_workers import local_cluster, timed_fit
from evomeans import HGMeans
from evomeans.wording import levels_text

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
        with local_cluster(memory="1GiB") as client, watched(client) as seen:
            model = HGMeans(
                CLUSTERS,
                engine="dask",
                random_state=0,
                max_time=60.0 * minutes,
                observers=show_solution,
            )
            seconds = timed_fit(model, np.load(path, mmap_mode="r"))
    runs = np.array([record.inertia for record in model.history_ if record.number == 0])
    # Extremes, a pilot, the sample; K-means of the first round side by side, and a last look.
    first = [record.n_iter for record in model.history_ if record.population == 1]
    passes = 3 + max(first[: model.min_population]) + 1
    print(f"{levels_text(model.levels_)} About {passes} passes to the first complete answer.")
    print(
        f"ended after {seconds:.0f} s with {len(runs)} K-means runs and {model.n_iter_} offspring "
        f"({model.stop_reason_}): inertia {model.inertia_:.7g}, "
        f"{100 * (1 - model.inertia_ / runs[0]):.2f} % below the first K-means run, "
        f"{100 * (1 - model.inertia_ / runs.mean()):.2f} % below their mean, "
        f"{100 * (1 - model.inertia_ / runs.min()):.2f} % below the best of them\n"
        f"memory of the workers: {', '.join(f'{peak / 2**20:.0f} MiB' for peak in seen.peaks)} "
        f"at most; removed by the scheduler: {seen.removed}, restarted by their memory limit: "
        f"{seen.restarted}, paused: {seen.paused} times"
    )


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
