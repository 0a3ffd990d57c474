"""The Dask engine beside the CPU engine and dask-ml, its overhead, its memory, and many workers.

Run with ``python -m benchmarks.distributed PART ...``; without a name, all parts but ``memory``:

  speed       1,000,000 x 10, m = 20, fast setting: CPU engine with two threads, Dask's local
              scheduler, and a cluster of two processes, side by side
  dask-ml     500,000 x 20, m = 50: ten restarts of dask-ml's KMeans, and one fast search
  overhead    what a request costs beyond the work it asks for, and a task on the scheduler
  islands     one search, and islands that exchange their best, at equal numbers of offspring
  simulation  an iteration on 1 to 400 workers, from the overheads measured here
  memory      a file of 4 GiB on two workers of 1 GiB each, for some minutes (--minutes)
"""

from __future__ import annotations

import argparse
import logging
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import mixture, parser_for
from evomeans import HGMeans
from evomeans.engines import create_engine
from evomeans.search import SearchSettings, evolve

PARTS = ("speed", "dask-ml", "overhead", "islands", "simulation")


@contextmanager
def local_cluster(workers: int = 2, memory: str = "auto") -> Iterator[Any]:
    """Start processes with a thread each."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            memory_limit=memory,
            dashboard_address=":0",
            silence_logs=logging.ERROR,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def timed_fit(model: HGMeans, X: Any, warm: Any = None) -> float:
    """Fit and return the seconds; compiled code is loaded before, by a fit to a few rows."""
    if warm is not None:
        HGMeans.fast(model.n_clusters, engine=model.engine, max_iter=1).fit(warm)
    began = time.perf_counter()
    model.fit(X)
    return time.perf_counter() - began


# ---- speed ---------------------------------------------------------------------------------------


def speed(n: int, seeds: int) -> None:
    X = mixture(n, 10, 20, 4.0)
    ratios: dict[str, list[float]] = {"local scheduler": [], "two processes": []}
    print(f"{n:,} x 10, m = 20, fast setting")
    with local_cluster() as client:
        for seed in range(seeds):
            cpu = HGMeans.fast(20, engine="cpu", n_jobs=2, random_state=seed)
            seconds = timed_fit(cpu, X, X[:2000])
            _tell("cpu, n_jobs=2", seed, cpu, seconds)
            for name in ratios:
                model = HGMeans.fast(20, engine="dask", random_state=seed)
                with local_threads() if name == "local scheduler" else client.as_current():
                    taken = timed_fit(model, X, X[:2000])
                _tell(f"dask, {name}", seed, model, taken, f"  {taken / seconds:.2f} x")
                ratios[name].append(taken / seconds)
    for name, values in ratios.items():
        print(f"dask on {name}: {statistics.median(values):.2f} times the CPU engine (limit 1.5)")


@contextmanager
def local_threads() -> Iterator[None]:
    """Take Dask's local scheduler, though there is a client."""
    import dask

    with dask.config.set(scheduler="threads", num_workers=2):
        yield


def _tell(name: str, seed: int, model: HGMeans, seconds: float, more: str = "") -> None:
    made = len(model.history_)
    print(
        f"  {name:<22} seed {seed}: {seconds:7.1f} s, {made} solutions, "
        f"{1e3 * seconds / made:.0f} ms each, inertia {model.inertia_:.7g}{more}",
        flush=True,
    )


# ---- dask-ml -------------------------------------------------------------------------------------


def dask_ml(n: int) -> None:
    import dask.array as da
    from dask_ml.cluster import KMeans

    X = mixture(n, 20, 150, 8.0)
    lazy = da.from_array(X, chunks=(n // 8, 20)).persist()
    scorer = HGMeans(50, engine="cpu", n_jobs=2)
    print(f"{n:,} x 20, m = 50, both on Dask's local scheduler, two threads")
    with local_threads():
        began, best = time.perf_counter(), np.inf
        for seed in range(10):
            found = KMeans(50, random_state=seed).fit(lazy)
            best = min(best, inertia_of(scorer, X, np.asarray(found.cluster_centers_)))
        seconds = time.perf_counter() - began
        print(f"  dask-ml, 10 restarts:  {seconds:7.1f} s, best inertia {best:.7g}", flush=True)
        model = HGMeans.fast(50, engine="dask", random_state=0)
        taken = timed_fit(model, lazy, X[:2000])
    gain = 100.0 * (1.0 - model.inertia_ / best)
    print(
        f"  evomeans, fast search: {taken:7.1f} s, inertia {model.inertia_:.7g}, "
        f"{gain:.2f} % lower, {taken / seconds:.2f} of the time"
    )


def inertia_of(scorer: HGMeans, X: Any, centers: Any) -> float:
    """Return the true inertia of centres; that of dask-ml sums distances that are not squared."""
    engine = create_engine("cpu", X, None, n_jobs=2, searching=False)
    return engine.assign(engine.frame.encode(centers.astype(np.float64)))[1]


# ---- overhead ------------------------------------------------------------------------------------


def overhead() -> dict[str, float]:
    """Measure what a request costs where there is next to no work."""
    X = mixture(4000, 10, 20, 4.0)
    costs = {"local": per_request(X)}
    with local_cluster() as client:
        costs["cluster"] = per_request(X)
        costs["task"] = per_task(client)
    print(
        f"A request of 25 solutions (m = 20, d = 10): {1e3 * costs['local']:.1f} ms on the local "
        f"scheduler, {1e3 * costs['cluster']:.1f} ms on a cluster of two; another task in the same "
        f"request {1e3 * costs['task']:.2f} ms",
        flush=True,
    )
    return costs


def per_request(X: Any, rounds: int = 200) -> float:
    """Seconds of a request beyond the work."""
    from evomeans.engines.distributed.questions import Question, Wanted

    engine = create_engine("dask", X, None)
    centers = engine.samples_at((np.arange(20) + 0.5) / 20)
    engine.refine([])
    questions = [Question(Wanted.SUMS, name, centers) for name in range(25)]
    for _ in range(10):
        engine.end(engine.begin(questions))
    engine.work_seconds = 0.0
    began = time.perf_counter()
    for _ in range(rounds):
        engine.end(engine.begin(questions))
    taken = time.perf_counter() - began
    engine.close()
    return (taken - engine.work_seconds) / rounds


def per_task(client: Any, count: int = 100) -> float:
    """Seconds that the scheduler and the client take for one more task."""
    request = np.zeros((25, 20, 10))
    workers = sorted(client.nthreads())

    def run(tasks: int) -> float:
        began = time.perf_counter()
        futures = [
            client.submit(_nothing, request, i, workers=[workers[i % 2]], pure=False)
            for i in range(tasks)
        ]
        client.gather(futures)
        return time.perf_counter() - began

    run(count)
    return statistics.median((run(count) - run(2)) / (count - 2) for _ in range(5))


def _nothing(request: Any, number: int) -> Any:
    return np.zeros((25, 20, 2, 11), np.int64)


# ---- islands -------------------------------------------------------------------------------------


def islands(seeds: int = 6, total: int = 1200, every: int = 100) -> None:
    """Compare one search with islands that get its offspring together."""
    print(f"{total} offspring in all; excess over the best found, mean of {seeds} seeds")
    problems = {
        "5,000 x 10, m = 50": (5000, 10, 50, 5.0),
        "10,000 x 5, m = 100": (10000, 5, 100, 4.0),
    }
    for name, (n, d, m, separation) in problems.items():
        engine = create_engine("cpu", mixture(n, d, m, separation), None)
        found = {
            count: [island_search(engine, m, count, total, every, seed) for seed in range(seeds)]
            for count in (1, 2, 4)
        }
        best = min(min(values) for values in found.values())
        texts = [
            f"{count} island{'s' * (count > 1)} {100 * (statistics.fmean(values) / best - 1):.3f} %"
            for count, values in found.items()
        ]
        print(f"  {name}: {', '.join(texts)}", flush=True)


def island_search(engine: Any, m: int, count: int, total: int, every: int, seed: int) -> float:
    """Evolve islands in turn; after each leg the best of each goes to the next one."""
    settings = SearchSettings(10, 20, max_offspring=every, patience=10**9)
    generators = [np.random.default_rng([seed, i]) for i in range(count)]
    populations: list[list[Any]] = [[] for _ in range(count)]
    best = np.inf
    for _ in range(total // (every * count)):
        results = [
            evolve(engine, m, replace(settings), generator, initial=population)
            for generator, population in zip(generators, populations, strict=True)
        ]
        best = min(best, *(result.best.inertia for result in results))
        populations = [[member.centers for member in result.population] for result in results]
        if count > 1:
            for i, result in enumerate(results):
                populations[(i + 1) % count].append(result.best.centers)
    return float(best)


# ---- many workers --------------------------------------------------------------------------------


def simulation(costs: dict[str, float] | None = None) -> None:
    """Predict an iteration of 25 solutions on many workers, m = 20, d = 10."""
    costs = costs or overhead()
    rows, per_row = 1e9, 25 * 1.5e-9
    request, reply = 25 * 20 * 10 * 8, 25 * 20 * 2 * 11 * 8
    bandwidth, fan_in = 1e9, 16
    print(f"1e9 rows, {1e9 * per_row:.0f} ns of work for a row, a network of 1 GB/s:")
    for workers in (1, 10, 100, 400):
        work = rows * per_row / workers
        tasks = workers + (workers // fan_in + 1 if workers > fan_in else 0)
        scheduling = costs["cluster"] + max(0, tasks - 2) * costs["task"]
        traffic = (request + reply) * min(workers, fan_in) / bandwidth
        total = work + scheduling + traffic
        print(
            f"  {workers:>4} workers: {total:8.2f} s an iteration, work {work:.2f} s, scheduler "
            f"{scheduling:.3f} s, traffic {traffic:.4f} s; efficiency {work / total:.0%}"
        )


# ---- memory --------------------------------------------------------------------------------------

ROWS, FEATURES, CLUSTERS, CLOUDS = 2**24, 64, 12, 60


def memory(minutes: float, rows: int) -> None:
    """Fit a file that is twice as large as the workers' memory together."""
    import psutil

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "X.npy"
        write_samples(path, rows)
        with local_cluster(memory="1GiB") as client:
            pids = set(client.run(os.getpid).values())
            peaks = dict.fromkeys(pids, 0)
            done = threading.Event()

            def watch() -> None:
                while not done.wait(0.1):
                    for pid in pids:
                        peaks[pid] = max(peaks[pid], psutil.Process(pid).memory_info().rss)

            watcher = threading.Thread(target=watch)
            watcher.start()
            X = np.load(path, mmap_mode="r")
            model = HGMeans.fast(
                CLUSTERS,
                engine="dask",
                random_state=0,
                max_time=60.0 * minutes,
                observers=show_solution,
            )
            seconds = timed_fit(model, X)
            done.set()
            watcher.join()
            same = set(client.run(os.getpid).values()) == pids
    first = model.history_[0].inertia
    print(
        f"{rows:,} x {FEATURES} float32 ({rows * FEATURES * 4 / 2**30:.1f} GiB), m = {CLUSTERS}, "
        f"two workers of 1 GiB, max_time {minutes:g} min: {seconds:.0f} s, "
        f"{len(model.history_)} solutions ({model.n_iter_} offspring), {model.stop_reason_}; "
        f"inertia {model.inertia_:.7g}, {100 * (1 - model.inertia_ / first):.2f} % below the first "
        f"K-means run; peaks {', '.join(f'{peak / 2**20:.0f} MiB' for peak in peaks.values())}; "
        f"{'no worker was' if same else 'WORKERS WERE'} restarted"
    )


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


def parse_arguments() -> argparse.Namespace:
    parser = parser_for(__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, "memory", []], default=[])
    parser.add_argument("--samples", type=int, help="fewer rows than said above")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=4.0)
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    costs = None
    for part in arguments.parts or PARTS:
        if part == "speed":
            speed(arguments.samples or 1_000_000, arguments.seeds)
        elif part == "dask-ml":
            dask_ml(arguments.samples or 500_000)
        elif part == "overhead":
            costs = overhead()
        elif part == "islands":
            islands()
        elif part == "simulation":
            simulation(costs)
        else:
            memory(arguments.minutes, arguments.samples or ROWS)


if __name__ == "__main__":
    main()
