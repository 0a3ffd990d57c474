"""Past the paper: what each part of the deep strategy brings, at equal CPU time.

On every problem and with every seed the paper's strategy runs until it ends by itself. Every
variant then has the CPU time that this took, in the same process; gaps are to the best value ever
found by anything.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from evomeans.engines import create_engine
from evomeans.search import DEEP, PAPER, Crossing, SearchResult, SearchSettings, solve
from evomeans.search.crossover import (
    matching_crossover,
    merging_crossover,
    partition_crossover,
    squared_matching_crossover,
)
from evomeans.search.population import independent_parents
from lab.paper.analysis import in_order, with_gaps
from lab.paper.experiment import Experiment, Plan, Row, Size
from lab.paper.figures import draw_reliability
from lab.paper.markdown import number, table
from lab.paper.problems import problem
from lab.paper.tasks import SeedTask, split_setups

SMALL_SETS = ("liver", "pima", "ionosphere", "tsplib1060", "tsplib3038", "image_segmentation")
LARGE_SETS = ("pendigit", "letters", "d15112")
SETUPS = {
    Size.SMOKE: ("iris:6",),
    Size.SMALL: (
        *(f"{name}:{m}" for name in SMALL_SETS for m in (100, 50, 40, 30, 20, 10)),
        *("pendigit:100", "d15112:100", "letters:50", "letters:20", "pendigit:50", "d15112:50"),
        *("letters:10", "pendigit:20", "d15112:20", "pendigit:10", "d15112:10"),
    ),
    Size.PAPER: (
        *(f"{name}:{m}" for name in LARGE_SETS for m in (100, 50, 40, 30, 20, 10)),
        *(f"{name}:{m}" for name in SMALL_SETS for m in (100, 50, 40, 30, 20, 10)),
    ),
}
EQUAL_TIME_SETUPS = {
    Size.SMOKE: SETUPS[Size.SMOKE],
    Size.SMALL: SETUPS[Size.PAPER][-36:],
    Size.PAPER: (
        *("letters:100", "pla85900:100", "skin:30", "pla85900:50", "letters:50", "d15112:100"),
        *("pendigit:100", "shuttle:20", "pendigit:50", *SETUPS[Size.PAPER][-36:]),
    ),
}
SEEDS = {Size.SMOKE: 2, Size.SMALL: 10, Size.PAPER: 20}
# A run within this many percent of the best value known has found it.
SUCCESS = 0.01
FEW_SAMPLES, MANY_CLUSTERS = 3100, 20

BY_DISTANCE, BY_SQUARES = Crossing(matching_crossover), Crossing(squared_matching_crossover)
VARIANTS = {
    "paper": PAPER,
    "deep": DEEP,
    "deep, no seeding": replace(DEEP, founding=PAPER.founding),
    "deep, no single moves": replace(DEEP, single_moves=False),
    "deep, no swaps": replace(DEEP, swaps=0.0),
    "deep, no partition": DEEP.without(partition_crossover),
    "deep, no merging": DEEP.without(merging_crossover),
    "deep, no restarts": replace(DEEP, agreement=1),
    "deep, any two parents": replace(DEEP, selection=independent_parents),
    "deep, matching by distance": replace(DEEP, crossovers=(*DEEP.crossovers[:-1], BY_DISTANCE)),
    "paper and single moves": replace(PAPER, single_moves=True),
}
ON_LARGE_SETS = ("paper", "deep", "deep, no single moves", "deep, no merging")


@dataclass(frozen=True)
class EqualTimeTask(SeedTask):
    """Run some variants on a problem, with one seed: the paper's, and others for as long."""

    @property
    def variants(self) -> Sequence[str]:
        """Their names, the paper's first."""
        return ("paper", "deep")

    def run(self) -> list[Row]:
        """Return a row per variant."""
        X = problem(self.dataset).X
        compile_kernels(X, self.m)
        rows: list[Row] = []
        budget: float | None = None
        for name in self.variants:
            settings = SearchSettings(max_time=budget, strategy=VARIANTS[name])
            if budget is not None:
                # It has as much time as the paper's took, not as many offspring.
                settings = replace(settings, max_offspring=10**9)
            result, seconds = search(X, self.m, self.seed, settings)
            budget = seconds if budget is None else budget
            rows.append(row_of(self, len(X), name, result, seconds))
        return rows


@dataclass(frozen=True)
class AblationTask(EqualTimeTask):
    """Run all variants on a problem, with one seed."""

    @property
    def variants(self) -> Sequence[str]:
        """All, or on large sets some."""
        return ON_LARGE_SETS if self.dataset in LARGE_SETS else tuple(VARIANTS)


def row_of(task: SeedTask, n: int, name: str, result: SearchResult, seconds: float) -> Row:
    """Return what a table needs to know of a search."""
    return {
        "dataset": task.dataset,
        "n": n,
        "m": task.m,
        "method": name,
        "seed": task.seed,
        "inertia": result.best.inertia,
        "cpu_s": round(seconds, 6),
        "offspring": result.n_offspring,
        "rediscoveries": result.n_rediscoveries,
    }


def compile_kernels(X: np.ndarray, m: int) -> None:
    """Let everything be compiled, or loaded, that the searches need, before a clock counts."""
    brief = SearchSettings(4, 8, max_offspring=20)
    for strategy in (PAPER, DEEP):
        search(X[:200], min(m, 50), 0, replace(brief, strategy=strategy))


def search(
    X: np.ndarray, m: int, seed: int, settings: SearchSettings
) -> tuple[SearchResult, float]:
    """Search on the CPU engine; also return the CPU seconds."""
    engine = create_engine("cpu", X, None)
    began = time.process_time()
    rng = np.random.default_rng(seed)
    result = solve(engine, m, settings, rng, clock=time.process_time)
    return result, time.process_time() - began


def plan(size: Size) -> Plan:
    """Return all problems with all seeds."""
    return plan_for(AblationTask, SETUPS[size], SEEDS[size])


def plan_equal_time(size: Size) -> Plan:
    """Return all problems with all seeds, for the two strategies alone."""
    return plan_for(EqualTimeTask, EQUAL_TIME_SETUPS[size], SEEDS[size])


def plan_for(task: type[EqualTimeTask], names: Sequence[str], n_seeds: int) -> Plan:
    """Return tasks of a kind."""
    setups, missing = split_setups(names)
    tasks = [task(dataset, m, seed) for dataset, m in setups for seed in range(n_seeds)]
    return Plan(tasks, missing)


@dataclass(frozen=True)
class Group:
    """Problems that are looked at together."""

    title: str
    few_samples: bool
    smallest_m: int = 0

    def has(self, row: Row) -> bool:
        """Whether a row belongs to it."""
        return (row["n"] < FEW_SAMPLES) == self.few_samples and row["m"] >= self.smallest_m


GROUPS = (
    Group("n < 3,100, m ≥ 20", few_samples=True, smallest_m=MANY_CLUSTERS),
    Group("n < 3,100, m = 100", few_samples=True, smallest_m=100),
    Group("n < 3,100, all m", few_samples=True),
    Group("n > 3,100, m ≥ 20", few_samples=False, smallest_m=MANY_CLUSTERS),
)


def render(rows: Sequence[Row], size: Size, folder: Path, name: str = "ablation") -> str:
    """Return a table per group of problems, and success and worst gap one by one."""
    scored = with_gaps(rows)
    shown = [row for row in scored if row["method"] in ("paper", "deep")]
    draw_reliability(shown, folder / f"{name}.png")
    seeds = len({row["seed"] for row in scored})
    text = [
        f"{seeds} seeds; every variant has the CPU time that the paper's strategy took to its end, "
        f"with the same seed. A success is a run within {SUCCESS} % of the best value ever "
        "found.\n"
    ]
    for group in GROUPS:
        own = [row for row in scored if group.has(row)]
        if own:
            count = len({(row["dataset"], row["m"]) for row in own})
            text += [f"**{group.title}** ({count} problems)\n", summary(own)]
    text += ["Mean gap / worst gap in percent / success, one by one:\n", one_by_one(scored)]
    text.append(f"![Gaps of all runs, paper and deep]({name}.png)\n")
    return "\n".join(text)


def summary(rows: Sequence[Row]) -> str:
    """Return a line per variant."""
    titles = ["", "mean gap (%)", "mean of the worst seeds", "worst gap", "success", "offspring"]
    lines = []
    for name in in_order(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == name]
        worst = worst_gaps(own)
        lines.append(
            [
                name,
                number(statistics.fmean(row["gap"] for row in own), "{:.4f}"),
                number(statistics.fmean(worst), "{:.4f}"),
                number(max(worst), "{:.3f}"),
                f"{100 * success_rate(own):.0f} %",
                f"{statistics.fmean(row['offspring'] for row in own):.0f}",
            ]
        )
    return table(titles, lines)


def one_by_one(rows: Sequence[Row]) -> str:
    """Return a line per problem."""
    names = in_order(row["method"] for row in rows)
    lines = []
    for setup in in_order((row["dataset"], row["m"]) for row in rows):
        cells = [f"{setup[0]}:{setup[1]}"]
        for name in names:
            own = [
                row for row in rows if (row["dataset"], row["m"]) == setup and row["method"] == name
            ]
            if own:
                mean = statistics.fmean(row["gap"] for row in own)
                worst = max(row["gap"] for row in own)
                cells.append(f"{mean:.4f} / {worst:.3f} / {100 * success_rate(own):.0f} %")
            else:
                cells.append("")
        lines.append(cells)
    return table(["", *names], lines)


def worst_gaps(rows: Sequence[Row]) -> list[float]:
    """Return the worst gap of every problem."""
    worst: dict[tuple[str, int], float] = {}
    for row in rows:
        setup = row["dataset"], row["m"]
        worst[setup] = max(worst.get(setup, 0.0), row["gap"])
    return list(worst.values())


def success_rate(rows: Sequence[Row]) -> float:
    """Return the share of runs that found the best value."""
    return statistics.fmean(row["gap"] <= SUCCESS for row in rows)


ABLATION = Experiment(
    "ablation",
    "The deep strategy compared with the paper's, and what its parts bring",
    plan,
    render,
)
EQUAL_TIME = Experiment(
    "equal-time",
    "The deep strategy compared with the paper's",
    plan_equal_time,
    partial(render, name="equal-time"),
)
