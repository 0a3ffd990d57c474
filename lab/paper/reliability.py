"""How sure is the result? Success rate and worst gap over many seeds."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from lab.paper.analysis import in_order, with_gaps
from lab.paper.experiment import Experiment, Plan, Row, Size
from lab.paper.figures import draw_reliability
from lab.paper.markdown import number, seconds, table
from lab.paper.methods import (
    Method,
    best_of,
    breathing,
    hg_deep,
    hg_fast,
    hg_means,
    random_swap,
)
from lab.paper.tasks import method_tasks, split_setups

SEEDS = {Size.SMOKE: 3, Size.SMALL: 20, Size.PAPER: 20}
SETUPS = {
    Size.SMOKE: ("iris:6", "german_towns:5"),
    Size.SMALL: (
        "german_towns:10",
        "iris:10",
        "liver:10",
        "liver:30",
        "pima:20",
        "ionosphere:20",
        "tsplib1060:10",
        "tsplib1060:50",
        "tsplib3038:20",
        "image_segmentation:20",
    ),
    Size.PAPER: (
        *(f"iris:{m}" for m in (5, 10)),
        *(f"liver:{m}" for m in (5, 10, 20, 30, 50)),
        *(f"pima:{m}" for m in (5, 10, 20, 30, 50)),
        *(f"ionosphere:{m}" for m in (5, 10, 20, 30, 50)),
        *(f"tsplib1060:{m}" for m in (10, 20, 50, 100)),
        *(f"tsplib3038:{m}" for m in (10, 20, 50, 100)),
        *(f"image_segmentation:{m}" for m in (10, 20, 50, 100)),
        *(f"pendigit:{m}" for m in (10, 20, 50, 100)),
        *(f"letters:{m}" for m in (10, 20, 50)),
        *(f"d15112:{m}" for m in (5, 10, 25)),
    ),
}
REPEATS = {Size.SMOKE: 10, Size.SMALL: 500, Size.PAPER: 500}
# A run within this many percent of the best value known has found it.
SUCCESS = 0.01


def methods(size: Size) -> list[Method]:
    """Return what is compared: ours, and what people use today."""
    return [
        hg_deep(),
        hg_means(),
        hg_fast(),
        best_of("k-means++", 1),
        best_of("k-means++", REPEATS[size]),
        breathing(),
        random_swap(n_swaps=50 if size is Size.SMOKE else 5000),
    ]


def plan(size: Size) -> Plan:
    """Return all methods on all problems, with the same seeds."""
    setups, missing = split_setups(SETUPS[size])
    tasks = [
        task
        for dataset, m in setups
        for task in method_tasks(dataset, (m,), methods(size), SEEDS[size])
    ]
    return Plan(tasks, missing)


def render(rows: Sequence[Row], size: Size, folder: Path) -> str:
    """Return success rates and worst gaps, for all problems together and one by one."""
    scored = with_gaps(rows)
    draw_reliability(scored, folder / "reliability.png")
    names = in_order([*(one.name for one in methods(size)), *(row["method"] for row in scored)])
    setups = in_order(f"{row['dataset']}:{row['m']}" for row in scored)
    seeds = len({row["seed"] for row in scored})
    overall = []
    for name in names:
        own = [row for row in scored if row["method"] == name]
        worst = [
            max(row["gap"] for row in own if f"{row['dataset']}:{row['m']}" == setup)
            for setup in setups
        ]
        overall.append(
            [
                name,
                f"{100 * statistics.fmean(row['gap'] <= SUCCESS for row in own):.0f} %",
                number(statistics.fmean(row["gap"] for row in own), "{:.3f}"),
                number(statistics.fmean(worst), "{:.3f}"),
                number(max(worst), "{:.3f}"),
                seconds(statistics.median(row["cpu_s"] for row in own)),
            ]
        )
    titles = ["", "success", "mean gap (%)", "mean worst gap", "worst gap", "median CPU s"]
    lines = []
    for setup in setups:
        cells = [setup]
        for name in names:
            gaps = [
                row["gap"]
                for row in scored
                if row["method"] == name and f"{row['dataset']}:{row['m']}" == setup
            ]
            rate = 100 * statistics.fmean(gap <= SUCCESS for gap in gaps)
            cells.append(f"{rate:.0f} % / {number(max(gaps), '{:.3f}')}")
        lines.append(cells)
    return (
        f"A success is a run within {SUCCESS} % of the best value known; {seeds} seeds, "
        f"{len(setups)} problems. *Repeated* is the best of {REPEATS[size]} runs.\n\n"
        + table(titles, overall)
        + "\nSuccess rate / worst gap in percent, one by one:\n\n"
        + table(["", *names], lines)
        + "\n![Gaps of all runs](reliability.png)\n"
    )


RELIABILITY = Experiment("reliability", "Success rate and worst gap over 20 seeds", plan, render)
