"""Large data: searches that begin on samples, compared with searches of all rows, and with rivals.

Run ``python -m benchmarks.large`` for the first table (half an hour on two cores), or
``python -m benchmarks.large --rivals`` for the second. ``--seeds``, ``--limit`` (CPU seconds of
each search) and names of set-ups change what is run: ``skin:30``, or ``overlap:1000000:10:50`` for
a mixture of that many rows, features and clusters. Data sets are looked up as in docs/data.md.
All run on one thread. The measurements go to benchmarks/results/large.csv or large_rivals.csv.

The first table has two searches of each set-up and seed, ``subsample="auto"`` and
``subsample=None``, which is what every search was before there were samples. The best value of a
set-up is that of all its runs.

  to 0.01 %  CPU seconds until a solution is within 0.01 % of the best value; the limit if none is
  ratio      of these, geometric means over the seeds: less than 1 is faster
  first      CPU seconds until the first solution on all rows
  gap        of the last solution, on average, in percent

The second table stops ours when a rival of scikit-learn is done, measured in the same process just
before, and gives the inertia of ours relative to the rival's in percent: negative is deeper.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from typing import Any

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans
from threadpoolctl import threadpool_limits

from benchmarks.data import exit_on_data_errors
from benchmarks.measure import RESULTS, Column, Samples, Table, geometric_mean, mixture, parser_for
from benchmarks.measure import append_row as append
from benchmarks.setups import samples_of
from evomeans import HGMeans

SETUPS = (
    "skin:30",
    "shuttle:20",
    "pla85900:50",
    "pla85900:100",
    "letters:50",
    "letters:100",
    "overlap:1000000:10:50",
)
RIVAL_SETUPS = (
    "skin:30",
    "overlap:100000:10:20",
    "overlap:1000000:10:50",
    "mixture:1000000:10:50",
    "overlap:10000000:10:20",
)
OVERLAP = 3.0
WITHIN = 1e-4
RIVALS: dict[str, Callable[[int, int], Any]] = {
    "KMeans": lambda m, seed: KMeans(m, n_init=1, random_state=seed),
    "MiniBatchKMeans": lambda m, seed: MiniBatchKMeans(m, random_state=seed),
    "MiniBatchKMeans, 10 starts": lambda m, seed: MiniBatchKMeans(m, n_init=10, random_state=seed),
}

Run = dict[str, Any]


def samples_for(setup: str) -> tuple[Samples, int]:
    """Return the samples and the number of clusters; ``overlap`` is a mixture that overlaps."""
    if setup.startswith("overlap:"):
        n, d, m = map(int, setup.split(":")[1:])
        return mixture(n, d, m, OVERLAP), m
    X, m = samples_of(setup)
    return np.ascontiguousarray(X, dtype=np.float64), m


def compile_kernels() -> None:
    """Compile before anything is measured."""
    HGMeans(3, n_jobs=1, subsample=100, max_offspring=2).fit(mixture(1000, 3, 3, 5.0))


def search(setup: str, seed: int, limit: float) -> list[Run]:
    """Search with samples and without; return the improvements of both."""
    X, m = samples_for(setup)
    compile_kernels()
    runs = []
    for subsample in ("auto", None):
        began = time.process_time()
        steps: list[tuple[float, float]] = []

        def watch(record: Any, began: float = began, steps: Any = steps) -> bool:
            now = time.process_time() - began
            if not steps or record.best < steps[-1][1]:
                steps.append((now, record.best))
            return now > limit

        model = HGMeans(m, subsample=subsample, n_jobs=1, random_state=seed, max_time=2 * limit)
        model.set_params(observers=watch, max_offspring=10**6).fit(X)
        runs.append({"setup": setup, "seed": seed, "steps": steps, "reason": model.stop_reason_})
    return runs


def seconds_until(run: Run, value: float, limit: float) -> float:
    """Return after how many CPU seconds a run was as deep as a value, at most the limit."""
    return next((min(seconds, limit) for seconds, best in run["steps"] if best <= value), limit)


def row_of(setup: str, pairs: Sequence[list[Run]], limit: float) -> dict[str, Any]:
    """Return a row of the first table."""
    best = min(run["steps"][-1][1] for pair in pairs for run in pair)
    row: dict[str, Any] = {"setup": setup, "seeds": len(pairs), "limit": limit, "best": best}
    for name, runs in zip(("samples", "all"), zip(*pairs, strict=True), strict=True):
        reached = [seconds_until(run, best * (1.0 + WITHIN), limit) for run in runs]
        row[f"{name} seconds"] = geometric_mean(reached)
        row[f"{name} reached"] = sum(run["steps"][-1][1] <= best * (1 + WITHIN) for run in runs)
        row[f"{name} first"] = statistics.fmean(run["steps"][0][0] for run in runs)
        row[f"{name} gap"] = statistics.fmean(
            100.0 * (run["steps"][-1][1] / best - 1.0) for run in runs
        )
    row["ratio"] = row["samples seconds"] / row["all seconds"]
    return row


def against_rivals(setup: str, seed: int) -> dict[str, Any]:
    """Let rivals run, each followed by ours for as long; return how deep ours is beside them."""
    X, m = samples_for(setup)
    compile_kernels()
    row: dict[str, Any] = {"setup": setup, "seed": seed}
    for name, make in RIVALS.items():
        rival = make(m, seed)
        with threadpool_limits(1):
            began = time.perf_counter()
            rival.fit(X)
            seconds = time.perf_counter() - began
        ours = HGMeans(m, n_jobs=1, random_state=seed, max_time=seconds)
        began = time.perf_counter()
        ours.fit(X)
        row[f"{name} seconds"] = seconds
        row[f"{name} ours"] = time.perf_counter() - began
        row[f"{name} gap"] = 100.0 * (ours.inertia_ / -rival.score(X) - 1.0)
    return row


def print_searches(arguments: argparse.Namespace) -> None:
    """Measure and print the first table."""
    columns = [Column("set-up", "setup")]
    for name in ("samples", "all"):
        columns += [
            Column(f"{name}: to 0.01 %", f"{name} seconds", "{:.2f} s"),
            Column("reached", f"{name} reached"),
            Column("first", f"{name} first", "{:.2f} s"),
            Column("gap", f"{name} gap", "{:.4f}"),
        ]
    setups = arguments.setups or SETUPS
    table = Table([*columns, Column("ratio", "ratio", "{:.2f}x")], max(setups, key=len))
    table.print_head()
    rows = []
    # Compiled once, before several processes want to.
    compile_kernels()
    with ProcessPoolExecutor(arguments.processes) as pool:
        tasks = list(product(setups, range(arguments.seeds)))
        answers = pool.map(search, *zip(*tasks, strict=True), [arguments.limit] * len(tasks))
        for setup in setups:
            pairs = [next(answers) for _ in range(arguments.seeds)]
            rows.append(row_of(setup, pairs, arguments.limit))
            table.print_row(rows[-1])
            append(RESULTS / "large.csv", rows[-1])
    print(f"ratio, geometric mean: {geometric_mean(row['ratio'] for row in rows):.2f}x")


def print_rivals(arguments: argparse.Namespace) -> None:
    """Measure and print the second table."""
    columns = [Column("set-up", "setup"), Column("seed", "seed")]
    for name in RIVALS:
        columns += [
            Column(name, f"{name} seconds", "{:.2f} s"),
            Column("ours", f"{name} ours", "{:.2f} s"),
            Column("deeper by", f"{name} gap", "{:+.2f} %"),
        ]
    setups = arguments.setups or RIVAL_SETUPS
    table = Table(columns, max(setups, key=len))
    table.print_head()
    for setup, seed in product(setups, range(arguments.seeds)):
        row = against_rivals(setup, seed)
        table.print_row(row)
        append(RESULTS / "large_rivals.csv", row)


def parse_arguments() -> argparse.Namespace:
    parser = parser_for(__doc__)
    parser.add_argument("setups", nargs="*", help="dataset:clusters or overlap:n:d:clusters")
    parser.add_argument("--rivals", action="store_true", help="the second table")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--limit", type=float, default=60.0, help="CPU seconds of each search")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    print_rivals(arguments) if arguments.rivals else print_searches(arguments)


if __name__ == "__main__":
    with exit_on_data_errors():
        main()
