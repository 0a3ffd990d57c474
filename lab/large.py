"""Large data: searches that begin on samples, compared with searches of all rows, and with rivals.

Run ``python -m lab large`` for the first table (twenty minutes on two cores), or
``python -m lab large --rivals`` for the second. ``--seeds``, ``--limit`` (CPU seconds of
each search) and names of problems change what is run: ``skin:30``, or ``overlap:1000000:10:50`` for
a mixture of that many rows, features and clusters. docs/laboratory/data.md says where data sets are
looked up. All run on one thread. The measurements go to lab/results/large.csv or large_rivals.csv.
All improvements of the searches go to large_steps.csv, and ``python -m lab large --draw`` draws
those of three sizes, or of the named problems, into docs/images/large-data.png (which needs the
extra ``plot``). Rows are added to these files; remove them to begin anew.

``python -m lab large --against REV`` compares the default search with that of another
version, each in a process of its own, and writes large_versions.csv. With ``--paper-time``, the
limit of each problem is the CPU time that the paper's strategy takes until it ends.
``--file 100000000`` fits a memory map with this many rows on all cores for ``--minutes``, and
prints the peak of memory.
``--gpu 10000000:50:100`` fits a mixture on a GPU, with the seed ``--first-seed``. ``--momentum``
runs K-means with momentum and without, from the same starts.

The first table has two searches of each problem and seed, ``subsample="auto"`` and
``subsample=None``. The best value of a problem is that of all its runs.

  to 0.01 %  CPU seconds until a solution is within 0.01 % of the best value; the limit if none is
  ratio      of these, geometric means over the seeds: less than 1 is faster
  first      CPU seconds until the first solution on all rows
  gap        of the last solution, on average, in percent

The second table stops ours when a rival of scikit-learn is done, measured in the same process just
before, and gives the inertia of ours relative to the rival's in percent: negative is deeper.
"""

from __future__ import annotations

import argparse
import csv
import os
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans
from threadpoolctl import threadpool_limits

from evomeans import HGMeans
from evomeans.engines import Order, create_engine
from evomeans.engines.protocol import LocalSearch
from lab.large_fits import fit_file, fit_on_gpu
from lab.measure import RESULTS, Column, Samples, Table, geometric_mean, mixture, parser_for
from lab.measure import append_row as append
from lab.revisions import ROOT, source_of
from lab.setups import samples_of
from lab.whole_runs import solve_all

SETUPS = (
    "skin:30",
    "shuttle:20",
    "pla85900:50",
    "pla85900:100",
    "letters:50",
    "letters:100",
    "overlap:1000000:10:50",
)
# Those with enough rows for samples.
SAMPLED_SETUPS = ("shuttle:20", "skin:30", "mixture:1000000:10:50", "overlap:1000000:10:50")
PICTURED = SAMPLED_SETUPS[:3]
RIVAL_SETUPS = (
    "skin:30",
    "overlap:100000:10:20",
    "overlap:1000000:10:50",
    "mixture:1000000:10:50",
    "overlap:10000000:10:20",
)
MOMENTUM_SETUPS = (
    "skin:30",
    "pla85900:50",
    "mixture:100000:10:50",
    "overlap:100000:10:20",
    "overlap:1000000:10:50",
)
OVERLAP = 3.0
NAMES, VERSIONS = ("samples", "all"), ("now", "before")
LABELS = {"samples": "begins on samples", "all": "all rows"}
STEPS, PICTURE = RESULTS / "large_steps.csv", RESULTS.parents[1] / "docs/images/large-data.png"
COLORS, LOWEST, LONGEST = ("#0072B2", "#D55E00"), 1e-5, 60.0
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


def row_of(
    setup: str, pairs: Sequence[list[Run]], limit: float, names: Sequence[str] = NAMES
) -> dict[str, Any]:
    """Return a row of the first table."""
    best = min(run["steps"][-1][1] for pair in pairs for run in pair)
    row: dict[str, Any] = {"setup": setup, "seeds": len(pairs), "limit": limit, "best": best}
    for name, runs in zip(names, zip(*pairs, strict=True), strict=True):
        reached = [seconds_until(run, best * (1.0 + WITHIN), limit) for run in runs]
        row[f"{name} seconds"] = geometric_mean(reached)
        row[f"{name} reached"] = sum(run["steps"][-1][1] <= best * (1 + WITHIN) for run in runs)
        row[f"{name} first"] = statistics.fmean(run["steps"][0][0] for run in runs)
        row[f"{name} gap"] = statistics.fmean(
            100.0 * (run["steps"][-1][1] / best - 1.0) for run in runs
        )
    row["ratio"] = row[f"{names[0]} seconds"] / row[f"{names[1]} seconds"]
    return row


def against_rivals(setup: str, seed: int) -> dict[str, Any]:
    """Let rivals run, each followed by ours for as long; return how deep ours is beside them."""
    X, m = samples_for(setup)
    # Compiles and loads what is needed for many rows before anything is measured.
    HGMeans(m, n_jobs=1, max_offspring=1, max_time=1.0).fit(X[:300_000])
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
    setups = arguments.setups or SAMPLED_SETUPS
    table = table_of(setups, NAMES)
    table.print_head()
    rows = []
    # Compiled once, before several processes want to.
    compile_kernels()
    with ProcessPoolExecutor(arguments.processes) as pool:
        tasks = list(product(setups, seeds_of(arguments)))
        answers = pool.map(search, *zip(*tasks, strict=True), [arguments.limit] * len(tasks))
        for setup in setups:
            pairs = [next(answers) for _ in range(arguments.seeds)]
            keep_steps(pairs)
            rows.append(row_of(setup, pairs, arguments.limit))
            table.print_row(rows[-1])
            append(RESULTS / "large.csv", rows[-1])
    print(f"ratio, geometric mean: {geometric_mean(row['ratio'] for row in rows):.2f}x")


def print_versions(arguments: argparse.Namespace) -> None:
    """Let this version and another one search, and print a table like the first."""
    setups = arguments.setups or SETUPS
    limits = dict.fromkeys(setups, arguments.limit)
    if arguments.paper_time:
        compile_kernels()
        with ProcessPoolExecutor(arguments.processes) as pool:
            limits = dict(zip(setups, pool.map(paper_seconds, setups), strict=True))
    sources = [ROOT / "src", source_of(arguments.against)]

    def save(setup: str, folder: Path) -> dict[str, Any]:
        X, m = samples_for(setup)
        path = folder / f"{setup.replace(':', '-')}.npy"
        np.save(path, X)
        return {"samples": str(path), "clusters": m, "offspring": 10**6, "limit": limits[setup]}

    found = solve_all(setups, seeds_of(arguments), sources, arguments.processes, save)
    table, rows = table_of(setups, VERSIONS), []
    table.print_head()
    for setup in setups:
        pairs = [answers for task, answers in found.items() if task[0] == setup]
        rows.append(row_of(setup, pairs, limits[setup], VERSIONS))
        table.print_row(rows[-1])
        append(RESULTS / "large_versions.csv", {"against": arguments.against, **rows[-1]})
    print(f"ratio, geometric mean: {geometric_mean(row['ratio'] for row in rows):.2f}x")


def paper_seconds(setup: str) -> float:
    """Return the CPU seconds of a whole search with the paper's strategy."""
    X, m = samples_for(setup)
    HGMeans(m, strategy="paper", n_jobs=1, max_offspring=2, random_state=0).fit(X)
    began = time.process_time()
    HGMeans(m, strategy="paper", n_jobs=1, random_state=0).fit(X)
    return time.process_time() - began


def seeds_of(arguments: argparse.Namespace) -> range:
    """Return the seeds to run."""
    return range(arguments.first_seed, arguments.first_seed + arguments.seeds)


def table_of(setups: Sequence[str], names: Sequence[str]) -> Table:
    """Return the table of two kinds of searches."""
    columns = [Column("problem", "setup")]
    for name in names:
        columns += [
            Column(f"{name}: to 0.01 %", f"{name} seconds", "{:.2f} s"),
            Column("reached", f"{name} reached"),
            Column("first", f"{name} first", "{:.2f} s"),
            Column("gap", f"{name} gap", "{:.4f}"),
        ]
    return Table([*columns, Column("ratio", "ratio", "{:.2f}x")], max(setups, key=len))


def keep_steps(pairs: Sequence[list[Run]]) -> None:
    """Write all improvements of the searches down."""
    for pair in pairs:
        for name, run in zip(NAMES, pair, strict=True):
            for seconds, best in run["steps"]:
                step = {"setup": run["setup"], "seed": run["seed"], "search": name}
                append(STEPS, {**step, "seconds": round(seconds, 3), "inertia": best})


def draw(setups: Sequence[str]) -> None:
    """Draw the mean gap over time, of searches with samples and without."""
    from matplotlib import pyplot as plt

    with STEPS.open(newline="") as file:
        steps = list(csv.DictReader(file))
    figure, panels = plt.subplots(1, len(setups), figsize=(4 * len(setups), 3.2), squeeze=False)
    for panel, setup in zip(panels[0], setups, strict=True):
        own = [step for step in steps if step["setup"] == setup]
        best = min(float(step["inertia"]) for step in own)
        times = np.geomspace(0.05, LONGEST, 300)
        for name, color in zip(NAMES, COLORS, strict=True):
            runs = {step["seed"]: [] for step in own}
            for step in own:
                if step["search"] == name:
                    runs[step["seed"]].append((float(step["seconds"]), float(step["inertia"])))
            gaps = np.mean([gaps_at(times, run, best) for run in runs.values()], axis=0)
            panel.plot(times, np.maximum(gaps, LOWEST), color=color, label=LABELS[name])
        panel.set(xscale="log", yscale="log", xlim=(0.05, LONGEST), xlabel="CPU seconds")
        panel.set_title(title_of(setup))
        panel.grid(alpha=0.3)
    panels[0][0].set_ylabel("mean gap to the best value, %")
    panels[0][0].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=110)
    print(f"drawn: {PICTURE.name}")


def title_of(setup: str) -> str:
    """Return the words for a problem: ``mixture:1000000:10:50`` has 1,000,000 rows."""
    name, *numbers = setup.split(":")
    rows = f", {int(numbers[0]):,} rows" if len(numbers) > 1 else ""
    return f"{name}{rows}, k = {numbers[-1]}"


def gaps_at(times: Samples, run: Sequence[tuple[float, float]], best: float) -> Samples:
    """Return the gap of a run at each time in percent; not a number before its first solution."""
    seconds, values = np.array(run).T
    places = np.searchsorted(seconds, times, side="right") - 1
    gaps: Samples = np.where(places >= 0, 100.0 * (values[places] / best - 1.0), np.nan)
    return gaps


def print_momentum(arguments: argparse.Namespace) -> None:
    """Run K-means with and without momentum from the same k-means++ starts."""
    setups = arguments.setups or MOMENTUM_SETUPS
    columns = [Column("problem", "setup")]
    for name in ("plain", "momentum"):
        columns += [
            Column(f"{name}: iterations", f"{name} iterations", "{:.0f}"),
            Column("CPU", f"{name} cpu", "{:.3f} s"),
            Column("gap", f"{name} gap", "{:.3f}"),
        ]
    table = Table(columns, max(setups, key=len))
    table.print_head()
    compile_kernels()
    for setup in setups:
        row = compare_momentum(setup, seeds_of(arguments))
        table.print_row(row)
        append(RESULTS / "large_momentum.csv", row)


def compare_momentum(setup: str, seeds: Sequence[int]) -> dict[str, Any]:
    """Return means over the starts: iterations, CPU seconds, and gaps to the best of all runs."""
    X, m = samples_for(setup)
    engine = create_engine("cpu", X, None, n_jobs=1)
    found: dict[str, list[tuple[float, float, float]]] = {"plain": [], "momentum": []}
    for seed in seeds:
        centers = engine.seed(np.random.default_rng(seed).random((m, 1)))
        for name, runs in found.items():
            local_search = LocalSearch(momentum=name == "momentum")
            began = time.process_time()
            (result,) = engine.refine([Order(centers, local_search=local_search)])
            runs.append((result.n_iter, time.process_time() - began, result.inertia))
    best = min(inertia for runs in found.values() for *_, inertia in runs)
    row: dict[str, Any] = {"setup": setup, "starts": len(seeds)}
    for name, runs in found.items():
        iterations, cpu, inertia = np.mean(runs, axis=0).tolist()
        row |= {f"{name} iterations": iterations, f"{name} cpu": cpu}
        row[f"{name} gap"] = 100.0 * (inertia / best - 1.0)
    return row


def print_rivals(arguments: argparse.Namespace) -> None:
    """Measure and print the second table."""
    columns = [Column("problem", "setup"), Column("seed", "seed")]
    for name in RIVALS:
        columns += [
            Column(name, f"{name} seconds", "{:.2f} s"),
            Column("ours", f"{name} ours", "{:.2f} s"),
            Column("deeper by", f"{name} gap", "{:+.2f} %"),
        ]
    setups = arguments.setups or RIVAL_SETUPS
    table = Table(columns, max(setups, key=len))
    table.print_head()
    for setup, seed in product(setups, seeds_of(arguments)):
        row = against_rivals(setup, seed)
        table.print_row(row)
        append(RESULTS / "large_rivals.csv", row)


def parse_arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = parser_for("large", __doc__)
    parser.add_argument("setups", nargs="*", help="dataset:clusters or overlap:n:d:clusters")
    parser.add_argument("--rivals", action="store_true", help="the second table")
    parser.add_argument("--momentum", action="store_true", help="K-means with and without")
    parser.add_argument("--draw", action="store_true", help="draw what was measured")
    parser.add_argument("--file", type=int, metavar="ROWS", help="fit a memory map")
    parser.add_argument("--gpu", metavar="N:D:M", help="fit a mixture on a GPU")
    parser.add_argument("--minutes", type=float, default=10.0, help="time for the memory map")
    parser.add_argument("--against", metavar="REV", help="another version, or its folder src")
    parser.add_argument("--paper-time", action="store_true", help="limits by the paper's strategy")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=60.0, help="CPU seconds of each search")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None) -> None:
    arguments = parse_arguments(given)
    if arguments.draw:
        draw(arguments.setups or PICTURED)
    elif arguments.file:
        fit_file(arguments.file, arguments.minutes)
    elif arguments.gpu:
        fit_on_gpu(arguments.gpu, arguments.minutes, arguments.first_seed)
    elif arguments.rivals:
        print_rivals(arguments)
    elif arguments.momentum:
        print_momentum(arguments)
    elif arguments.against:
        print_versions(arguments)
    else:
        print_searches(arguments)
