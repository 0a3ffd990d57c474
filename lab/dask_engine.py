"""The Dask engine compared with the CPU engine and dask-ml, its overhead and its memory.

Run with ``python -m lab dask_engine PART ...``; without a name, all parts but ``memory``:

  speed       1,000,000 x 10, m = 20, fast setting: CPU engine with two threads, Dask's local
              scheduler, and a cluster of two processes, side by side
  dask-ml     500,000 x 20, m = 50: ten restarts of dask-ml's KMeans, and one fast search
  overhead    what a request costs beyond the work it asks for
  islands     one search, and islands that exchange their best, at equal numbers of offspring
  memory      a file of 4 GiB on two workers of 1 GiB each, for some minutes (--minutes)

All searches but that of ``memory`` are those of the paper (strategy="paper"): the CPU engine makes
the same ones. dask-ml has to be installed for its part: pip install dask-ml.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from evomeans import HGMeans
from evomeans.engines import create_engine
from evomeans.search import SearchSettings, solve
from lab.dask_memory import ROWS, memory
from lab.dask_workers import local_cluster, overhead, paper_search, timed_fit
from lab.measure import mixture, parser_for

PARTS = ("speed", "dask-ml", "overhead", "islands")


# ---- speed ---------------------------------------------------------------------------------------


def speed(n: int, seeds: int) -> None:
    X = mixture(n, 10, 20, 4.0)
    ratios: dict[str, list[float]] = {"local scheduler": [], "two processes": []}
    print(f"{n:,} x 10, m = 20, fast setting; in memory for the CPU engine, in a file for Dask")
    with tempfile.TemporaryDirectory() as folder, local_cluster() as client:
        np.save(Path(folder) / "X.npy", X)
        stored = np.load(Path(folder) / "X.npy", mmap_mode="r")
        for seed in range(seeds):
            cpu = paper_search(20, engine="cpu", n_jobs=2, random_state=seed)
            seconds = timed_fit(cpu, X, X[:2000])
            _tell("cpu, n_jobs=2", seed, cpu, seconds)
            for name in ratios:
                model = paper_search(20, engine="dask", random_state=seed)
                with local_threads() if name == "local scheduler" else client.as_current():
                    taken = timed_fit(model, stored, X[:2000])
                _tell(f"dask, {name}", seed, model, taken, f"  {taken / seconds:.2f} x")
                ratios[name].append(taken / seconds)
    for name, values in ratios.items():
        each = ", ".join(f"{value:.2f}" for value in values)
        middle = statistics.median(values)
        print(f"dask on {name}: {middle:.2f} times the CPU engine ({each}; limit 1.5)", flush=True)


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
        model = paper_search(50, engine="dask", random_state=0)
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
            solve(engine, m, replace(settings), generator, initial=population)
            for generator, population in zip(generators, populations, strict=True)
        ]
        best = min(best, *(result.best.inertia for result in results))
        populations = [[member.centers for member in result.population] for result in results]
        if count > 1:
            for i, result in enumerate(results):
                populations[(i + 1) % count].append(result.best.centers)
    return float(best)


def parse_arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = parser_for("dask_engine", __doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, "memory", []], default=[])
    parser.add_argument("--samples", type=int, help="fewer rows than said above")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=4.0)
    return parser.parse_args(given)


def described_machine() -> str:
    names = ("numpy", "numba", "dask", "distributed")
    versions = [f"{name} {version(name)}" for name in names]
    system = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return ", ".join([system, f"Python {platform.python_version()}", *versions])


def main(given: Sequence[str] | None = None) -> None:
    arguments = parse_arguments(given)
    samples: int | None = arguments.samples
    parts = {
        "speed": lambda: speed(samples or 1_000_000, arguments.seeds),
        "dask-ml": lambda: dask_ml(samples or 500_000),
        "overhead": overhead,
        "islands": islands,
        "memory": lambda: memory(arguments.minutes, samples or ROWS),
    }
    options = " ".join(word for word in given or () if word not in arguments.parts)
    print(described_machine())
    for part in arguments.parts or PARTS:
        print(f"\n$ python -m lab dask_engine {part} {options}".rstrip(), flush=True)
        parts[part]()
