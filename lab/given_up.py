"""Offspring that are given up: what that saves, and whether the answer is as good.

Run ``python -m lab.given_up``; ``--seeds`` and names of set-ups as for lab.large
change what is run. Each search makes a fixed number of offspring on one thread, once as usual and
once with all of them refined to their end. The measurements go to
lab/results/given_up.csv.

  CPU       seconds of a fit, on average
  gap       of the answer to the best of all runs of the set-up, on average, in percent
  given up  share of the offspring
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from typing import Any
from unittest.mock import patch

from evomeans import HGMeans
from evomeans.engines import outlook
from lab.data import exit_on_data_errors
from lab.large import compile_kernels, samples_for
from lab.measure import RESULTS, Column, Samples, Table, append_row, parser_for

SETUPS = ("skin:30", "shuttle:20", "mixture:200000:10:50", "overlap:100000:10:20")
OFFSPRING = 100
COLUMNS = (
    Column("set-up", "setup"),
    Column("all: CPU", "all seconds", "{:.2f} s"),
    Column("gap", "all gap", "{:.4f}"),
    Column("now: CPU", "now seconds", "{:.2f} s"),
    Column("gap", "now gap", "{:.4f}"),
    Column("given up", "given up", "{:.0f} %", 100.0),
)


def fit(X: Samples, m: int, seed: int) -> tuple[float, float, float]:
    """Return CPU seconds, the inertia, and the share of offspring that were given up."""
    model = HGMeans(m, n_jobs=1, random_state=seed, max_offspring=OFFSPRING)
    # It is never settled, so that both make as many.
    model.set_params(n_iter_no_change=10 * OFFSPRING)
    began = time.process_time()
    model.fit(X)
    seconds = time.process_time() - began
    recorded = sum(not record.founder for record in model.history_)
    return seconds, model.inertia_, 1.0 - recorded / model.n_iter_


def compare(setup: str, seeds: range) -> dict[str, Any]:
    """Return a row of the table."""
    X, m = samples_for(setup)
    found: dict[str, list[tuple[float, float, float]]] = {"all": [], "now": []}
    for seed in seeds:
        with patch.object(outlook, "EARLIEST", sys.maxsize):
            found["all"].append(fit(X, m, seed))
        found["now"].append(fit(X, m, seed))
    best = min(inertia for runs in found.values() for _, inertia, _ in runs)
    row: dict[str, Any] = {"setup": setup, "seeds": len(seeds)}
    for name, runs in found.items():
        row[f"{name} seconds"] = statistics.fmean(seconds for seconds, *_ in runs)
        row[f"{name} gap"] = 100.0 * statistics.fmean(value / best - 1.0 for _, value, _ in runs)
    row["given up"] = statistics.fmean(share for *_, share in found["now"])
    return row


def parse_arguments() -> argparse.Namespace:
    parser = parser_for(__doc__)
    parser.add_argument("setups", nargs="*", help="dataset:clusters or overlap:n:d:clusters")
    parser.add_argument("--seeds", type=int, default=3)
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    setups = arguments.setups or SETUPS
    table = Table(COLUMNS, max(setups, key=len))
    table.print_head()
    compile_kernels()
    for setup in setups:
        row = compare(setup, range(arguments.seeds))
        table.print_row(row)
        append_row(RESULTS / "given_up.csv", row)


if __name__ == "__main__":
    with exit_on_data_errors():
        main()
