"""Whole default searches: how long they take, and how often they find the best.

Run ``python -m lab whole_runs --against REV`` to compare with another version (an hour of
CPU time, shared by all cores), or without it to look at this one alone. ``--seeds``,
``--first-seed`` and names of problems (``letters:50 digits:30``) change what is run; by default it
is 36 problems with less than 3,100 samples, and the handwritten digits. ``--fast`` runs
``HGMeans.fast`` instead, of both versions. Data sets are looked up as in docs/laboratory/data.md.

Both versions solve a problem with the same seed one after the other, on one thread. The best value
of a problem is the best known, or the best of these runs if that is lower. A success is a run
within 0.01 % of it. The columns, for each version:

  success  share of the runs
  gap      above the best value, on average and in the worst run, in percent
  CPU      seconds of a whole fit, on average; compilation is excluded
  ratio    of the CPU seconds: less than 1 is faster

At the end runs are sorted by what they say of themselves: ``n_rediscoveries_``, and the share of
successes among those that say so. ``--results FILE`` writes a row for each run of this version, for
``lab.calibration`` to draw.
"""

from __future__ import annotations

import argparse
import csv
import os
import queue
import statistics
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from lab.best_known import best_known
from lab.measure import Column, Table, geometric_mean, parse_setup, parser_for
from lab.paper.ablation import SMALL_SETS, SUCCESS
from lab.revisions import ROOT, source_of
from lab.setups import samples_of
from lab.side_by_side import Answer, Version, started

CLUSTERS = (100, 50, 40, 30, 20, 10)
DIGITS = ("digits:60", "digits:30", "digits:10")
MOST_OFFSPRING = 5000

Found = dict[tuple[str, int], list[Answer]]
"""By problem and seed: an answer of each version."""
Save = Callable[[str, Path], dict[str, Any]]
"""Writes the samples of a problem into a folder, and returns what asks for a search on them."""


def solve_all(
    setups: Sequence[str],
    seeds: Iterable[int],
    sources: Sequence[Path],
    processes: int,
    save: Save,
) -> Found:
    """Let processes of all versions solve the problems, one version after the other."""
    tasks = list(product(setups, seeds))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        requests = {setup: save(setup, folder) for setup in setups}
        idle: queue.SimpleQueue[list[Version]] = queue.SimpleQueue()
        for _ in range(processes):
            idle.put([stack.enter_context(started(source)) for source in sources])

        def solve(task: tuple[str, int], **changed: float) -> list[Answer]:
            versions = idle.get()
            request = {**requests[task[0]], "seed": task[1], **changed}
            answers = [version.search(request) for version in versions]
            idle.put(versions)
            return answers

        # Compiled once, before several processes want to. No time is left for a search.
        solve(tasks[-1], limit=0.0)
        with ThreadPoolExecutor(processes) as pool:
            return dict(zip(tasks, pool.map(solve, tasks), strict=True))


def saved(setup: str, folder: Path) -> dict[str, Any]:
    """Write the samples of a problem; return what asks for a default search on them."""
    X, m = samples_of(setup)
    path = folder / f"{setup.replace(':', '-')}.npy"
    np.save(path, X)
    return {"samples": str(path), "clusters": m, "offspring": MOST_OFFSPRING}


def saved_for_fast(setup: str, folder: Path) -> dict[str, Any]:
    """Write the samples of a problem; return what asks for a fast search on them."""
    return {**saved(setup, folder), "offspring": None}


def best_value(setup: str, found: Found) -> float:
    """Return the best value known, or the best of these runs if that is lower."""
    own: float = min(
        one["inertia"] for task, both in found.items() if task[0] == setup for one in both
    )
    known = None if setup.startswith("digits:") else best_known(*parse_setup(setup))
    return own if known is None else min(own, known.value)


def add_gaps(found: Found) -> None:
    """Set how far every answer is above the best value, in percent."""
    best = {setup: best_value(setup, found) for setup, _ in found}
    for (setup, _), answers in found.items():
        for one in answers:
            one["gap"] = 100.0 * (one["inertia"] / best[setup] - 1.0)


def summary(setup: str, found: Found) -> dict[str, Any]:
    """Return a row of the table."""
    row: dict[str, Any] = {"setup": setup}
    runs = [answers for task, answers in found.items() if task[0] == setup]
    for side, own in enumerate(zip(*runs, strict=True)):
        gaps = [one["gap"] for one in own]
        row[f"success {side}"] = statistics.fmean(gap <= SUCCESS for gap in gaps)
        row[f"gap {side}"] = statistics.fmean(gaps)
        row[f"worst {side}"] = max(gaps)
        row[f"cpu {side}"] = statistics.fmean(one["cpu"] for one in own)
        row[f"offspring {side}"] = statistics.fmean(one["offspring"] for one in own)
    row["ratio"] = row["cpu 1"] / row["cpu 0"] if "cpu 1" in row else 1.0
    return row


def write_rows(path: Path, found: Found) -> None:
    """Write a row for each run of the last version."""
    rows = [
        {
            "setup": setup,
            "seed": seed,
            "inertia": answers[-1]["inertia"],
            "gap": round(answers[-1]["gap"], 6),
            "cpu_s": round(answers[-1]["cpu"], 4),
            "offspring": answers[-1]["offspring"],
            "rediscoveries": answers[-1]["rediscoveries"],
            "certainty": round(answers[-1]["certainty"], 4),
        }
        for (setup, seed), answers in found.items()
    ]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def columns(n_versions: int) -> list[Column]:
    """Return the columns of the table."""
    shown = [Column("problem", "setup")]
    for side, name in enumerate(("before", "now") if n_versions > 1 else ("now",)):
        shown += [
            Column(f"{name}: success", f"success {side}", "{:.0f} %", 100.0),
            Column("gap", f"gap {side}", "{:.4f}"),
            Column("worst", f"worst {side}", "{:.4f}"),
            Column("CPU", f"cpu {side}", "{:.2f} s"),
            Column("offspring", f"offspring {side}", "{:.0f}"),
        ]
    return [*shown, Column("ratio", "ratio", "{:.2f}x")] if n_versions > 1 else shown


def print_totals(rows: Sequence[dict[str, Any]], found: Found, n_versions: int) -> None:
    """Print means over all problems, and what the runs of the last version say of themselves."""
    for side in range(n_versions):
        success = [row[f"success {side}"] for row in rows]
        gap = statistics.fmean(row[f"gap {side}"] for row in rows)
        seconds = geometric_mean(row[f"cpu {side}"] for row in rows)
        print(
            f"{'now' if side == n_versions - 1 else 'before'}: success "
            f"{100 * statistics.fmean(success):.1f} %, least {100 * min(success):.0f} %; "
            f"mean gap {gap:.4f} %; CPU {seconds:.2f} s (geometric mean)"
        )
    if n_versions > 1:
        print(f"CPU now by before: {geometric_mean(row['ratio'] for row in rows):.3f}x")
    last = [answers[-1] for answers in found.values()]
    for count in sorted({one["rediscoveries"] for one in last}):
        own = [one["gap"] <= SUCCESS for one in last if one["rediscoveries"] == count]
        print(f"n_rediscoveries_ {count}: {100 * statistics.fmean(own):.1f} % of {len(own)} runs")


def parse_arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = parser_for("whole_runs", __doc__)
    parser.add_argument("setups", nargs="*", help="dataset:clusters or mixture:n:d:clusters")
    parser.add_argument("--against", metavar="REV", help="the version before, or its folder src")
    parser.add_argument("--fast", action="store_true", help="run HGMeans.fast")
    parser.add_argument("--results", type=Path, metavar="FILE", help="write the rows there")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None) -> None:
    arguments = parse_arguments(given)
    small = [f"{name}:{m}" for m, name in product(CLUSTERS, SMALL_SETS)]
    setups = arguments.setups or [*DIGITS, *small]
    sources = [source_of(arguments.against)] if arguments.against else []
    sources.append(ROOT / "src")
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    save = saved_for_fast if arguments.fast else saved
    found = solve_all(setups, seeds, sources, arguments.processes, save)
    add_gaps(found)
    if arguments.results is not None:
        write_rows(arguments.results, found)
    table = Table(columns(len(sources)), max(setups, key=len))
    table.print_head()
    rows = [summary(setup, found) for setup in setups]
    for row in rows:
        table.print_row(row)
    print_totals(rows, found, len(sources))
