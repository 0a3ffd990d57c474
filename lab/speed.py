"""Cost of an offspring by its parts; whole runs compared with the authors' program.

Run with ``python -m lab speed`` (a few minutes), with problems of your own as in
``python -m lab speed letters:50 skin:10``, or with ``--full``: all problems of the authors'
program, five seeds each, kept row by row in lab/results/speed.csv. With ``--resume`` a full
run that was stopped continues where it was, instead of measuring everything again.

Everything is CPU time on one thread, float64, standard setting, compilation excluded, and so is the
garbage collector's look through what the compiler leaves behind (0.1 s, every now and then). The
yardstick Y is a run of ``KMeans(init="random", n_init=1, tol=0, max_iter=1000, algorithm="lloyd")``
on one thread, the mean of ten seeds, measured before and after the search. The columns:

  CPU            of the whole search: making the engine, initial population, offspring (a fit also
                 assigns the samples to the answer, once or twice)
  each, in Y     an offspring, without what comes before the first one
  cross … book   shares of an offspring: selection and crossover, relocation, K-means, bookkeeping
  start          share of the whole that comes before the first offspring
  iter           K-means iterations of an offspring
  avoided        share of the n·m distances per iteration that were not computed
  authors        how many times faster than the authors' C++ program, whole runs, each in its own Y
  sklearn        Y by our K-means run from random samples (the mean of the initial population)
  2 threads      gain in wall time of a short search, where there are a million products n·m·d;
                 not with --full, which may well run beside something else
  objective      mean of the seeds, relative to the mean of the authors' program

How the parts of an offspring are told apart is described in lab/anatomy.py.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from evomeans.engines import Order, create_engine
from evomeans.search import SearchSettings
from lab.anatomy import bare_seconds, dissect, gain_from_threads
from lab.data import ReferenceRun, load, reference_runs
from lab.measure import (
    RESULTS,
    Column,
    Samples,
    Table,
    append_row,
    gap,
    geometric_mean,
    parse_setup,
    parser_for,
    read_rows,
    timed,
    yardstick_seconds,
)
from lab.setups import SEARCHES

WHOLE = SearchSettings().max_offspring
PARTS = ("crossover", "relocation", "kmeans", "bookkeeping")
# Offspring that take longer do not feel the clocks; other searches are run again without.
UNDISTURBED = 1e-3
# Two threads are tried from this many products on, in searches of about so many seconds.
TRY_THREADS, THREADS_SECONDS = 1_000_000, 1.5

Row = dict[str, Any]

COLUMNS = (
    Column("problem", "setup"),
    Column("n", "n"),
    Column("d", "d"),
    Column("Y", "yardstick_s", "{:.2f} ms", 1e3),
    Column("offspring", "offspring", "{:.0f}"),
    Column("CPU", "cpu_s", "{:.2f} s"),
    Column("each", "each_s", "{:.2f} ms", 1e3),
    Column("in Y", "each_in_y", "{:.3f}"),
    Column("cross", "crossover_share", "{:.1f} %", 100.0),
    Column("reloc", "relocation_share", "{:.1f} %", 100.0),
    Column("K-means", "kmeans_share", "{:.1f} %", 100.0),
    Column("book", "bookkeeping_share", "{:.1f} %", 100.0),
    Column("start", "start_share", "{:.1f} %", 100.0),
    Column("iter", "iterations", "{:.1f}"),
    Column("avoided", "avoided", "{:.1f} %", 100.0),
    Column("authors", "to_authors", "{:.1f}x"),
    Column("sklearn", "to_sklearn", "{:.1f}x"),
    Column("2 threads", "two_threads", "{:.2f}x"),
    Column("objective", "objective", "{:+.3f} %"),
)


def measure(dataset: str, m: int, seed: int, limit: int, threads: bool) -> Row:
    """Run one search, the yardstick beside it; try two threads if asked to.

    Times are CPU seconds; the names of the parts are those of :class:`Anatomy`.
    """
    X, settings = load(dataset), SearchSettings(max_offspring=limit)
    yardsticks = yardstick_seconds(X, m)
    anatomy = dissect(X, m, settings, seed)
    whole = anatomy.whole
    if anatomy.each < UNDISTURBED:
        whole = statistics.fmean(bare_seconds(X, m, settings, seed) for _ in range(3))
    yardsticks += yardstick_seconds(X, m)
    return {
        "dataset": dataset,
        "m": m,
        "seed": seed,
        "limit": limit,
        "n": X.shape[0],
        "d": X.shape[1],
        "yardstick_s": statistics.fmean(yardsticks),
        "cpu_s": whole,
        "each_s": anatomy.each * whole / anatomy.whole,
        **asdict(anatomy),
        "two_threads": try_threads(X, m, anatomy.each) if threads else math.nan,
    }


def try_threads(X: Samples, m: int, each: float) -> float:
    """Gain from two threads in a short search; not a number where there is too little to share."""
    if X.size * m < TRY_THREADS:
        return math.nan
    offspring = min(300, max(20, round(THREADS_SECONDS / each)))
    return gain_from_threads(X, m, SearchSettings(5, 10, max_offspring=offspring))


def summarise(rows: Sequence[Row], known: ReferenceRun | None) -> Row:
    """Sum the seeds of a problem up in one row of the table."""
    first = rows[0]
    same = {key: first[key] for key in ("dataset", "m", "n", "d")}
    mean = {key: average(row[key] for row in rows) for key in first.keys() - same.keys()}
    parts = sum(mean[part] for part in PARTS)
    start = mean["building"] + mean["founding"]
    return {
        **mean,
        **same,
        "setup": f"{first['dataset']}:{first['m']}",
        **{f"{part}_share": mean[part] / parts for part in PARTS},
        "start_share": start / (start + parts),
        "each_in_y": average(row["each_s"] / row["yardstick_s"] for row in rows),
        "to_sklearn": average(row["yardstick_s"] / row["founder"] for row in rows),
        **(beside_authors(rows, known) if known and first["limit"] == WHOLE else {}),
    }


def beside_authors(rows: Sequence[Row], known: ReferenceRun) -> Row:
    """Compare whole runs with the authors' program: time in yardsticks, and objective."""
    ours = average(row["cpu_s"] / row["yardstick_s"] for row in rows)
    return {
        "to_authors": known.cpu_s / known.yardstick_s / ours,
        "objective": average(gap(row["inertia"], known.objective_mean) for row in rows),
    }


def average(values: Iterable[float]) -> float:
    """Mean of the values that are numbers."""
    return statistics.fmean([v for v in values if not math.isnan(v)] or [math.nan])


def measure_all(
    setups: Sequence[tuple[str, int]], seeds: int, limit: int, output: Path | None, threads: bool
) -> list[Row]:
    """Measure every problem, or take from ``output`` what is there; print and return the table."""
    known = {(run.dataset, run.m): run for run in reference_runs()}
    done = {key_of(row): row for row in read_rows(output)} if output else {}
    table = Table(COLUMNS, max((f"{name}:{m}" for name, m in setups), key=len))
    table.print_head()
    summaries = []
    for name, m in setups:
        for key in [(name, m, seed, limit) for seed in range(seeds)]:
            if key not in done:
                done[key] = measure(*key, threads=threads and key[2] == 0)
                if output:
                    append_row(output, done[key])
        rows = [done[name, m, seed, limit] for seed in range(seeds)]
        summaries.append(summarise(rows, known.get((name, m))))
        table.print_row(summaries[-1])
    return summaries


def key_of(row: Row) -> tuple[str, int, int, int]:
    """Return what tells measurements apart."""
    return row["dataset"], row["m"], row["seed"], row["limit"]


def print_summary(summaries: Sequence[Row]) -> None:
    """Print how the problems compare with the authors' program, by size."""
    large = [row for row in summaries if row["n"] >= 1000]
    print()
    print_ratios("n >= 1,000", large)
    print_ratios("n >= 1,000, m >= 50", [row for row in large if row["m"] >= 50])
    print_ratios("n < 1,000, m >= 20", [r for r in summaries if r["n"] < 1000 and r["m"] >= 20])


def print_ratios(title: str, summaries: Sequence[Row]) -> None:
    """Print mean and minimum of the ratio to the authors' program, and the mean objective."""
    rows = [row for row in summaries if not math.isnan(row.get("to_authors", math.nan))]
    if not rows:
        return
    worst = min(rows, key=lambda row: row["to_authors"])
    print(
        f"{title}: {geometric_mean(row['to_authors'] for row in rows):.1f} times faster than the "
        f"authors' program (geometric mean of {len(rows)} problems), at least "
        f"{worst['to_authors']:.1f} ({worst['setup']}); "
        f"objective {average(row['objective'] for row in rows):+.4f} % of theirs"
    )


def print_overhead(dataset: str, m: int, turns: int = 5) -> None:
    """Print what Python itself takes per offspring on a small set, at best of several turns."""
    X, offspring = load(dataset), 1000
    settings = SearchSettings(max_offspring=offspring, patience=offspring)
    bare = min(bare_seconds(X, m, settings) for _ in range(turns))
    watched = [dissect(X, m, settings, probe=False) for _ in range(turns)]
    each = (bare - min(turn.building + turn.founding for turn in watched)) / offspring
    search = each - min(turn.kmeans for turn in watched) / offspring
    engine = min(seconds_at_rest(X, m) for _ in range(turns))
    print(
        f"Python per offspring on {dataset}:{m}: {1e6 * (search + engine):.0f} µs "
        f"(search {1e6 * search:.0f} µs, engine {1e6 * engine:.0f} µs) of {1e6 * each:.0f} µs"
    )


def seconds_at_rest(X: Samples, m: int, repeats: int = 1000) -> float:
    """CPU seconds to refine a solution that is at rest.

    On few samples that is what the engine does in Python: its kernel sees at once that nothing
    has moved.
    """
    engine = create_engine("cpu", X, None)
    (solution,) = engine.refine([Order(engine.samples_at((np.arange(m) + 0.5) / m))])
    start = Order(solution.centers, parent=solution.handle)
    return timed(lambda: [engine.refine([start]) for _ in range(repeats)])[1] / repeats


def parse_arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = parser_for("speed", __doc__)
    parser.add_argument("setups", nargs="*", help="dataset:clusters, e.g. letters:50")
    parser.add_argument("--full", action="store_true", help="all problems of the authors' program")
    parser.add_argument("--seeds", type=int, help="searches of a problem; 1, and 5 with --full")
    parser.add_argument(
        "--offspring", type=int, default=WHOLE, help="at most; with fewer than 5000 no run is whole"
    )
    parser.add_argument("--output", type=Path, help="CSV file for a row per problem and seed")
    parser.add_argument("--resume", action="store_true", help="keep the rows that it has")
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None) -> None:
    arguments = parse_arguments(given)
    setups = [parse_setup(setup) for setup in arguments.setups or SEARCHES]
    output = arguments.output
    if arguments.full:
        setups = [(run.dataset, run.m) for run in reference_runs()]
        output = output or RESULTS / "speed.csv"
    if output and not arguments.resume:
        output.unlink(missing_ok=True)
    seeds = arguments.seeds or (5 if arguments.full else 1)
    print_summary(
        measure_all(setups, seeds, arguments.offspring, output, threads=not arguments.full)
    )
    print_overhead("iris", 10)
