"""Anytime curves: how deep each method is after a given CPU time.

Time is counted in units Y of one single-threaded scikit-learn run of K-means from random samples
on the same data, measured in the same process.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path

from lab.measure import yardstick_seconds
from lab.paper.analysis import in_order, with_gaps
from lab.paper.experiment import Experiment, Plan, Row, Size
from lab.paper.figures import draw_anytime
from lab.paper.markdown import number, table
from lab.paper.problems import problem
from lab.paper.tasks import split_setups
from lab.paper.traces import TRACERS, Tracer

GRID = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000)
SETUPS = {
    Size.SMOKE: ("iris:6",),
    Size.SMALL: (
        "liver:30",
        "pima:40",
        "ionosphere:20",
        "tsplib1060:50",
        "tsplib3038:30",
        "image_segmentation:30",
        "pendigit:20",
        "d15112:25",
    ),
    Size.PAPER: (
        *(f"liver:{m}" for m in (10, 20, 30, 50)),
        *(f"ionosphere:{m}" for m in (10, 20, 30, 50)),
        *(f"tsplib1060:{m}" for m in (10, 30, 50, 100)),
        *(f"tsplib3038:{m}" for m in (10, 30, 50, 100)),
        *(f"image_segmentation:{m}" for m in (10, 30, 50, 100)),
        *(f"pendigit:{m}" for m in (10, 20, 50, 100)),
        *(f"letters:{m}" for m in (10, 20, 50, 100)),
        *(f"d15112:{m}" for m in (5, 10, 25)),
        *(f"shuttle:{m}" for m in (5, 10, 25)),
    ),
}
SEEDS = {Size.SMOKE: 1, Size.SMALL: 3, Size.PAPER: 10}
BUDGET = {Size.SMOKE: 20, Size.SMALL: 100, Size.PAPER: 1000}
SHOWN = (1, 3, 10, 20, 50, 100, 200, 500, 1000)


@lru_cache(maxsize=1)
def yardstick(dataset: str, m: int) -> float:
    """Return Y in CPU seconds."""
    return statistics.fmean(yardstick_seconds(problem(dataset).X, m))


@dataclass(frozen=True)
class TraceTask:
    """Watch a method on a problem.

    Parameters
    ----------
    dataset : str
    m : int
    tracer : str
        Name of one of the tracers.
    seed : int
    budget : float
        In Y.
    """

    dataset: str
    m: int
    tracer: str
    seed: int
    budget: float

    @property
    def key(self) -> tuple[str, ...]:
        """Set-up, method and seed."""
        return self.dataset, str(self.m), self.tracer, str(self.seed)

    def run(self) -> list[Row]:
        """Return a row for every point of the grid of times at which there is a solution."""
        X = problem(self.dataset).X
        unit = yardstick(self.dataset, self.m)
        method = tracer(self.tracer)
        method.load_kernels()
        points = list(method.trace(X, self.m, self.seed, self.budget * unit))
        rows: list[Row] = []
        for y in GRID:
            reached = [inertia for seconds, inertia in points if seconds <= y * unit]
            if reached and y <= self.budget:
                rows.append(self._row(y, min(reached), unit))
        if not rows:
            # Even the first solution took longer than the budget: it is all there is.
            seconds, inertia = points[0]
            rows.append(self._row(round(seconds / unit, 3), inertia, unit))
        return rows

    def _row(self, y: float, inertia: float, unit: float) -> Row:
        return {
            "dataset": self.dataset,
            "m": self.m,
            "method": self.tracer,
            "seed": self.seed,
            "y": y,
            "inertia": inertia,
            "yardstick_s": unit,
        }


def tracer(name: str) -> Tracer:
    """Return the tracer of that name."""
    [found] = [one for one in TRACERS if one.name == name]
    return found


def plan(size: Size) -> Plan:
    """Return all installed methods on all problems."""
    setups, missing = split_setups(SETUPS[size])
    names = [one.name for one in TRACERS if one.is_installed]
    seeds = range(SEEDS[size])
    tasks = [
        TraceTask(dataset, m, name, seed, BUDGET[size])
        for (dataset, m), name, seed in product(setups, names, seeds)
    ]
    absent = [f"the package {one.package}" for one in TRACERS if not one.is_installed]
    return Plan(tasks, [*missing, *absent])


def render(rows: Sequence[Row], size: Size, folder: Path) -> str:
    """Draw the curves, and return the mean gaps at some times."""
    scored = with_gaps(rows)
    methods = [one.name for one in TRACERS if any(row["method"] == one.name for row in rows)]
    draw_anytime(scored, methods, folder / "anytime.png")
    setups = in_order(setup_of(row) for row in scored)
    seeds = len({row["seed"] for row in rows})
    text = [
        f"Mean gap in percent over {len(setups)} problems and {seeds} seeds to the best value "
        "known, after a CPU time of so many scikit-learn runs. A dash: not every run had a "
        "solution yet.\n"
    ]
    times = [y for y in SHOWN if y <= BUDGET[size]]
    lines = []
    for method in methods:
        cells = [method]
        for y in times:
            reached = [row["gap"] for row in scored if row["method"] == method and row["y"] == y]
            complete = len(reached) == len(setups) * seeds
            cells.append(number(statistics.fmean(reached) if complete else None, "{:.3f}"))
        lines.append(cells)
    text.append(table(["", *(f"{y} Y" for y in times)], lines))
    text.append(f"Problems: {', '.join(setups)}.\n")
    text.append("![Gap against CPU time](anytime.png)\n")
    return "\n".join(text)


def setup_of(row: Row) -> str:
    """Return the problem of a row as the command line writes it."""
    return f"{row['dataset']}:{row['m']}"


ANYTIME = Experiment(
    "anytime", "Anytime curves: best gap against CPU time, all methods", plan, render
)
