"""What the lag of the search costs in depth: the same offspring, bred from older populations.

Offspring i is bred after offspring i − L has been inserted, so that L of them can be refined at the
same time. Run ``python -m lab.lag`` (an hour of CPU time, shared by all cores); ``--seeds``
and ``--lags`` make it shorter. The data sets are looked up as in docs/data.md.

36 set-ups with ten seeds each; for each L, the gap to the best value known, in percent, after some
numbers of offspring: on average over all runs, on average over the worst seed of each set-up, and
the share of runs within 0.01 %.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import product
from typing import Any

from evomeans import HGMeans
from evomeans.search import DEEP
from lab.best_known import best_known
from lab.data import exit_on_data_errors
from lab.measure import Column, Table, parse_setup, parser_for
from lab.paper.ablation import SMALL_SETS, SUCCESS
from lab.setups import samples_of

CLUSTERS = (10, 20, 30, 40, 50, 100)
LAGS = (1, 4, 8, 16, 24, 32)
OFFSPRING = (50, 100, 200, 500)
Run = tuple[str, int, int]
"""Set-up, seed and lag."""


def depths(run: Run) -> list[float]:
    """Search with one thread; return the best inertia after each number of offspring."""
    setup, seed, lag = run
    X, m = samples_of(setup)
    strategy = replace(DEEP, name=f"deep, lag {lag}", lag=lag)
    model = HGMeans(
        m, random_state=seed, n_jobs=1, strategy=strategy, max_offspring=max(OFFSPRING)
    ).fit(X)
    numbers, best = model.history_.column("number"), model.history_.column("best")
    return [float(best[numbers <= count][-1]) for count in OFFSPRING]


def summary(lag: int, found: dict[Run, list[float]], known: dict[str, float]) -> dict[str, Any]:
    """Return a row of the table."""
    row: dict[str, Any] = {"lag": lag}
    setups = {setup for setup, _, _ in found}
    for place, count in enumerate(OFFSPRING):
        gaps = {
            setup: [
                100.0 * (values[place] / known[setup] - 1.0)
                for run, values in found.items()
                if run[0] == setup and run[2] == lag
            ]
            for setup in setups
        }
        every = [gap for own in gaps.values() for gap in own]
        row[f"mean {count}"] = statistics.fmean(every)
        row[f"worst {count}"] = statistics.fmean(max(own) for own in gaps.values())
        row[f"success {count}"] = statistics.fmean(gap <= SUCCESS for gap in every)
    return row


def best_of(setup: str, found: dict[Run, list[float]]) -> float:
    """Return the best value known of a set-up, or the best of these runs if that is lower."""
    own = min(values[-1] for run, values in found.items() if run[0] == setup)
    known = best_known(*parse_setup(setup))
    return own if known is None else min(own, known.value)


def columns() -> Iterable[Column]:
    """Return the columns of the table: three for each number of offspring."""
    yield Column("L", "lag")
    for count in OFFSPRING:
        yield Column(f"{count}: mean", f"mean {count}", "{:.4f}")
        yield Column("worst", f"worst {count}", "{:.4f}")
        yield Column("success", f"success {count}", "{:.0f} %", 100.0)


def parse_arguments() -> argparse.Namespace:
    parser = parser_for(__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--lags", nargs="+", type=int, default=LAGS)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    setups = [f"{name}:{m}" for m, name in product(reversed(CLUSTERS), SMALL_SETS)]
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    runs: Sequence[Run] = list(product(setups, seeds, arguments.lags))
    # Compiled once, before several processes want to.
    depths(("tsplib1060:20", 0, 1))
    with ProcessPoolExecutor(arguments.processes) as pool:
        found = dict(zip(runs, pool.map(depths, runs), strict=True))
    known = {setup: best_of(setup, found) for setup in setups}
    table = Table(list(columns()), "32")
    table.print_head()
    for lag in arguments.lags:
        table.print_row(summary(lag, found, known))


if __name__ == "__main__":
    with exit_on_data_errors():
        main()
