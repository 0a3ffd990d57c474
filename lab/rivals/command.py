"""All methods at equal CPU time: gaps, success, anytime curves and a diagram of ranks.

``python -m lab rivals --workers 16`` lets every baseline of evomeans race on 36 problems, and
HG-means in three settings (paper, fast, deep). A race is one method on one problem with one seed,
on one thread. The method is restarted with new seeds until the CPU time is used up. That is the
mean CPU time that HG-means takes until it ends in the setting of the paper, which is measured
first, or ``--seconds``. ``--large`` adds problems with up to 245,000 samples. Names of problems
(``liver:50 mixture:20000:10:50``) replace all of them.

Rows are kept in ``--results`` as soon as they are there, and not measured again: the same command
continues after an interruption, and new methods or seeds are added to what is there. ``--render``
only writes the page and the pictures anew. The authors' packages ``flspp`` and ``bkmeans`` race too
if they are installed. The data sets are looked up as in docs/laboratory/data.md.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections import defaultdict
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from lab.data.registry import dataset_named
from lab.measure import RESULTS, parse_setup, parser_for
from lab.paper.ablation import SMALL_SETS
from lab.paper.pages import propose_values
from lab.paper.runner import complete_rows, run_tasks
from lab.rivals.contestants import contestants
from lab.rivals.page import write_page
from lab.rivals.race import BudgetTask, RaceTask

CLUSTERS = (100, 50, 40, 30, 20, 10)
SMALL = [f"{name}:{m}" for m, name in product(CLUSTERS, SMALL_SETS)]
LARGE = [
    *("pla85900:25", "skin:10", "shuttle:15", "letters:50", "letters:20"),
    *("d15112:100", "d15112:50", "pendigit:100", "pendigit:50"),
]
# A shorter race would measure the start of a search.
LEAST_SECONDS = 0.02


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = parser_for("rivals", __doc__)
    parser.prog = "python -m lab rivals"
    parser.add_argument("setups", nargs="*", help="dataset:clusters or mixture:n:d:clusters")
    parser.add_argument("--large", action="store_true", help="add the large problems")
    parser.add_argument("--methods", nargs="+", metavar="NAME", help="default: all of them")
    parser.add_argument("--seeds", type=int, default=5, help="races of each method (default: 5)")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument(
        "--seconds", type=float, help="CPU seconds of every race (default: as HG-means takes)"
    )
    parser.add_argument(
        "--patience",
        type=float,
        default=30.0,
        help="abandon a run after this many times the CPU time of the race (default: 30)",
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument(
        "--results", type=Path, default=RESULTS, help="folder of the rows, page and pictures"
    )
    parser.add_argument("--name", default="rivals", help="of the files there (default: rivals)")
    parser.add_argument("--render", action="store_true", help="only write the page anew")
    chosen = parser.parse_args(arguments)
    for name, least in (("seeds", 1), ("workers", 1), ("first_seed", 0)):
        if getattr(chosen, name) < least:
            parser.error(f"--{name.replace('_', '-')} must be at least {least}")
    if chosen.seconds is not None and not chosen.seconds > 0.0:
        parser.error(f"--seconds {chosen.seconds} must be positive")
    if not chosen.patience >= 1.0:
        parser.error(f"--patience {chosen.patience} must be at least 1")
    for setup in chosen.setups:
        if not setup.startswith("mixture:"):
            # Its best known value is needed in the end; a wrong name shows now.
            dataset_named(parse_setup(setup)[0])
    known = contestants()
    chosen.methods = chosen.methods or list(known)
    for method in chosen.methods:
        if method not in known:
            parser.error(f"--methods: {method!r} is none of {', '.join(known)}")
    return chosen


def budgets(setups: Sequence[str], seeds: range, path: Path, workers: int) -> dict[str, float]:
    """Return the CPU seconds of a race on every problem, which are measured if they are not known.

    What is in the file counts, whatever the seeds: races that are added later get the same time.
    """
    known = _mean_seconds(path)
    due = [setup for setup in setups if setup not in known]
    if due:
        print("CPU times of HG-means in the setting of the paper:")
        run_tasks([BudgetTask(setup, seed) for setup in due for seed in seeds], path, workers)
        known = _mean_seconds(path)
    return {setup: max(known[setup], LEAST_SECONDS) for setup in setups}


def _mean_seconds(path: Path) -> dict[str, float]:
    seconds = defaultdict(list)
    for row in complete_rows(path):
        seconds[row["setup"]].append(row["cpu_s"])
    return {setup: statistics.fmean(values) for setup, values in seconds.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = parse(arguments)
    rows_path = chosen.results / f"{chosen.name}.csv"
    if not chosen.render:
        setups = chosen.setups or SMALL + (LARGE if chosen.large else [])
        seeds = range(chosen.first_seed, chosen.first_seed + chosen.seeds)
        if chosen.seconds is None:
            path = chosen.results / f"{chosen.name}-budgets.csv"
            times = budgets(setups, seeds, path, chosen.workers)
        else:
            times = dict.fromkeys(setups, chosen.seconds)
        # The longest first keeps all processes busy.
        order = sorted(setups, key=lambda setup: -times[setup])
        known = contestants()
        tasks = [
            RaceTask(setup, method, seed, times[setup], chosen.patience)
            for setup, seed, method in product(order, seeds, chosen.methods)
            # Another seed would change nothing.
            if known[method].is_random or seed == seeds[0]
        ]
        print(f"{len(tasks)} races, {sum(task.budget for task in tasks):.0f} CPU seconds")
        run_tasks(tasks, rows_path, chosen.workers)
    rows = complete_rows(rows_path)
    if not rows:
        raise SystemExit(f"There are no results in {rows_path} yet.")
    page = rows_path.with_suffix(".md")
    print(write_page(rows, page, f"python -m lab rivals{_options(chosen)}"))
    print(f"wrote {page} and its pictures")
    propose_values(rows)


def _options(chosen: argparse.Namespace) -> str:
    """Return the options of the command that decide what is measured."""
    words = [*chosen.setups, *(["--large"] if chosen.large else [])]
    defaults = {"seeds": 5, "first_seed": 0, "seconds": None, "patience": 30.0, "name": "rivals"}
    for name, default in defaults.items():
        if (value := getattr(chosen, name)) != default:
            words.append(f"--{name.replace('_', '-')} {value}")
    return "".join(f" {word}" for word in words)
