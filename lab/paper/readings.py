"""Costs and gains of each reading of the paper, run to convergence on the same problems.

docs/laboratory/reading-the-paper.md lists them.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from evomeans.search import PAPER, SearchSettings
from evomeans.search.population import different_parents
from lab.paper.ablation import (
    BY_SQUARES,
    SMALL_SETS,
    SUCCESS,
    compile_kernels,
    row_of,
    search,
    success_rate,
    worst_gaps,
)
from lab.paper.analysis import in_order, with_gaps
from lab.paper.experiment import Experiment, Plan, Row, Size
from lab.paper.markdown import number, table
from lab.paper.problems import problem
from lab.paper.tasks import SeedTask, split_setups

SETUPS = {
    Size.SMOKE: ("iris:6",),
    Size.SMALL: tuple(f"{name}:{m}" for name in SMALL_SETS for m in (100, 50, 40, 30, 20, 10)),
}
SETUPS[Size.PAPER] = SETUPS[Size.SMALL]
SEEDS = {Size.SMOKE: 2, Size.SMALL: 10, Size.PAPER: 50}

AS_WRITTEN = SearchSettings(strategy=PAPER)
READINGS = {
    "as written": AS_WRITTEN,
    "relocation by distance": replace(AS_WRITTEN, roulette_power=1),
    "different parents": replace(AS_WRITTEN, strategy=replace(PAPER, selection=different_parents)),
    # As in the authors' program.
    "matching by squares": replace(AS_WRITTEN, strategy=replace(PAPER, crossovers=(BY_SQUARES,))),
    "different parents, squares": replace(
        AS_WRITTEN, strategy=replace(PAPER, selection=different_parents, crossovers=(BY_SQUARES,))
    ),
}


@dataclass(frozen=True)
class ReadingTask(SeedTask):
    """Run all readings on a problem, with one seed."""

    def run(self) -> list[Row]:
        """Return a row per reading."""
        X = problem(self.dataset).X
        compile_kernels(X, self.m)
        rows: list[Row] = []
        for name, settings in READINGS.items():
            result, seconds = search(X, self.m, self.seed, settings)
            rows.append(row_of(self, len(X), name, result, seconds))
        return rows


def plan(size: Size) -> Plan:
    """Return all problems with all seeds."""
    setups, missing = split_setups(SETUPS[size])
    tasks = [ReadingTask(dataset, m, seed) for dataset, m in setups for seed in range(SEEDS[size])]
    return Plan(tasks, missing)


def render(rows: Sequence[Row], size: Size, folder: Path) -> str:
    """Return a line per reading."""
    scored = with_gaps(rows)
    setups = len({(row["dataset"], row["m"]) for row in scored})
    seeds = len({row["seed"] for row in scored})
    titles = ["reading", "mean gap (%)", "worst gap", "success", "offspring", "CPU"]
    total = sum(row["cpu_s"] for row in scored if row["method"] == "as written")
    lines = []
    for name in in_order(row["method"] for row in scored):
        own = [row for row in scored if row["method"] == name]
        lines.append(
            [
                name,
                number(statistics.fmean(row["gap"] for row in own), "{:.3f}"),
                number(max(worst_gaps(own)), "{:.2f}"),
                f"{100 * success_rate(own):.0f} %",
                f"{statistics.fmean(row['offspring'] for row in own):.0f}",
                number(sum(row["cpu_s"] for row in own) / total, "{:.2f}"),
            ]
        )
    return (
        f"{setups} problems, {seeds} seeds, standard setting, every reading to convergence. CPU is "
        "in units of the search as written; a success is a run within "
        f"{SUCCESS} % of the best value ever found.\n\n" + table(titles, lines)
    )


READINGS_EXPERIMENT = Experiment(
    "readings", "Readings of the paper, each run to convergence", plan, render
)
