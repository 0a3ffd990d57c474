"""Past the paper: how long the deep strategy takes to where the paper's strategy ends.

The paper's strategy runs until it ends. The deep one has its final value for a target, and at most
four times the CPU time that it took.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evomeans.search import DEEP, SearchResult, SearchSettings
from lab.paper.ablation import compile_kernels, search
from lab.paper.analysis import in_order
from lab.paper.experiment import Experiment, Plan, Row, Size
from lab.paper.markdown import number, table
from lab.paper.problems import problem
from lab.paper.tasks import SeedTask, split_setups

SETUPS = {
    Size.SMOKE: ("iris:6",),
    Size.SMALL: (
        *("letters:50", "pendigit:100", "d15112:100", "letters:20", "pendigit:50", "d15112:50"),
        *("letters:10", "pendigit:20", "d15112:20", "pendigit:10", "d15112:10"),
    ),
}
SETUPS[Size.PAPER] = ("letters:100", *SETUPS[Size.SMALL])
SEEDS = {Size.SMOKE: 2, Size.SMALL: 5, Size.PAPER: 10}
LIMIT = 4.0
# Sums of squares of the same clusters in another numbering differ by less.
EQUAL = 1e-9


@dataclass(frozen=True)
class PaceTask(SeedTask):
    """Run both strategies on a problem, with one seed."""

    def run(self) -> list[Row]:
        """Return one row."""
        X = problem(self.dataset).X
        compile_kernels(X, self.m)
        paper, total = search(X, self.m, self.seed, SearchSettings())
        target = paper.best.inertia * (1.0 + EQUAL)
        settings = SearchSettings(
            max_offspring=10**9, max_time=LIMIT * total, target_inertia=target, strategy=DEEP
        )
        deep, seconds = search(X, self.m, self.seed, settings)
        reached = deep.best.inertia <= target
        return [
            {
                "dataset": self.dataset,
                "m": self.m,
                "method": "deep",
                "seed": self.seed,
                "inertia": deep.best.inertia,
                "paper_inertia": paper.best.inertia,
                "paper_s": round(total, 6),
                "paper_reached_s": round(reached_after(paper, target), 6),
                "deep_s": round(seconds, 6),
                "reached": int(reached),
            }
        ]


def reached_after(result: SearchResult, target: float) -> float:
    """Return the seconds after which a search had a value."""
    return next(record.seconds for record in result.history if record.best <= target)


def plan(size: Size) -> Plan:
    """Return all problems with all seeds."""
    setups, missing = split_setups(SETUPS[size])
    tasks = [PaceTask(dataset, m, seed) for dataset, m in setups for seed in range(SEEDS[size])]
    return Plan(tasks, missing)


def render(rows: Sequence[Row], size: Size, folder: Path) -> str:
    """Return a line per problem."""
    lines = []
    for setup in in_order((row["dataset"], row["m"]) for row in rows):
        own = [row for row in rows if (row["dataset"], row["m"]) == setup]
        means = [
            statistics.fmean(row[column] for row in own)
            for column in ("paper_s", "paper_reached_s", "deep_s")
        ]
        lines.append(
            [
                f"{setup[0]}:{setup[1]}",
                *(number(mean, "{:.2f}") for mean in means),
                number(means[2] / means[0], "{:.2f}"),
                number(means[2] / means[1], "{:.2f}"),
                f"{sum(row['reached'] for row in own)} of {len(own)}",
            ]
        )
    seeds = len({row["seed"] for row in rows})
    titles = ["", "paper, to its end (s)", "paper, to its value", "deep, to that value"]
    titles += ["deep / end", "deep / value", "reached"]
    return (
        f"CPU seconds, mean of {seeds} seeds. *Its value* is where the paper's strategy ends; a "
        f"run of the deep one that does not reach it counts with {LIMIT:.0f} times the whole time "
        "of the paper's, where it is stopped.\n\n" + table(titles, lines)
    )


PACE = Experiment("pace", "How soon the deep strategy is where the paper's ends", plan, render)
